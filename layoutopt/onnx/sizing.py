"""Shapes that follow from no node: measured in one run, else as far as they are declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from layoutopt.errors import InputError
from layoutopt.onnx.network import live_nodes
from layoutopt.onnx.protobuf import captured
from layoutopt.onnx.rules import type_of
from layoutopt.onnx.running import run_at_random
from layoutopt.onnx.shapes import Shaped, settled

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TypeProto

SECONDS = 20.0
"""Seconds that a run may take."""

MOST_ELEMENTS = 2**28
"""Elements of all tensors of known shape, above which a network is not run."""

ROUNDS = 20
"""So often are sizes of 1 taken where nothing is known, before what follows is inferred."""


def sized(shaped: Shaped, whole: Callable[[], ModelProto]) -> Shaped:
    """Return a network with shapes for all tensors that have at least a rank.

    They are those of one run on random inputs if there is one; else sizes that nothing tells
    are taken for 1.  Its notes say so.

    Parameters
    ----------
    shaped
        The network, with what shape inference tells.
    whole
        Returns the same network with its weights and the sizes of its inputs.
    """
    unknown = _unknown(shaped)
    if not unknown:
        return shaped
    origins = listed(Counter(map(type_of, _origins(shaped, unknown))))
    try:
        found = _measured(shaped, whole, unknown | (_made(shaped) & shaped.declared))
    except InputError as error:
        return _guessed(replace(shaped, unmeasured=error.reason))
    note = f"shapes that are those of one run on random inputs, from these ops on: {origins}"
    return _guessed(replace(_with(shaped, found), notes=(*shaped.notes, note)))


def _guessed(shaped: Shaped) -> Shaped:
    """Return a network with sizes of 1 where tensors have a rank but no known shape."""
    counts: Counter[str] = Counter()
    for k in range(ROUNDS + 1):
        unknown = _unknown(shaped)
        ranked = _ranked(shaped, unknown)
        nodes = _origins(shaped, unknown) if k < ROUNDS else shaped.model.graph.node
        first = [node for node in nodes if not ranked.keys().isdisjoint(node.output)]
        if not first:
            break
        counts.update(map(type_of, first))
        names = {name for node in first for name in node.output}
        chosen = {name: ranked[name] for name in names & ranked.keys()}
        shaped = replace(_with(shaped, chosen), guessed=shaped.guessed | chosen.keys())
    if not counts:
        return shaped
    why = f" ({shaped.unmeasured})" if shaped.unmeasured else ""
    note = f"sizes that nothing tells, taken for 1{why}: {listed(counts)}"
    return replace(shaped, notes=(*shaped.notes, note))


def _unknown(shaped: Shaped) -> set[str]:
    """Return the tensors that matter whose shapes are not known."""
    return _made(shaped) - shaped.shapes.keys() - set(shaped.others)


def _made(shaped: Shaped) -> set[str]:
    nodes, wanted = live_nodes(shaped)
    return {name for node in nodes for name in node.output if name in wanted}


def _origins(shaped: Shaped, unknown: set[str]) -> list[NodeProto]:
    """Return the nodes that make tensors of unknown shape of those of known ones."""
    return [
        node
        for node in shaped.model.graph.node
        if not unknown.isdisjoint(node.output)
        and unknown.isdisjoint(node.input)
        and unknown.isdisjoint(captured(node))
    ]


def _ranked(shaped: Shaped, names: set[str]) -> dict[str, TypeProto]:
    """Return the types of those tensors that have a rank, with sizes of 1 where none is known."""
    from onnx import TypeProto

    found = {}
    graph = shaped.model.graph
    for value in (*graph.value_info, *graph.output):
        if value.name in names and value.type.tensor_type.HasField("shape"):
            kind = TypeProto()
            kind.CopyFrom(value.type)
            for dim in kind.tensor_type.shape.dim:
                if not dim.HasField("dim_value"):
                    dim.dim_value = 1
            found[value.name] = kind
    return found


def listed(counts: Mapping[str, int]) -> str:
    """Return names with how many there are of each, in one line."""
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def _measured(
    shaped: Shaped, whole: Callable[[], ModelProto], names: set[str]
) -> dict[str, TypeProto]:
    """Return types of tensors as one run on random inputs makes them.

    Raises
    ------
    InputError
        If there is no such run.
    """
    from onnx import ValueInfoProto, helper

    if sum(int(np.prod(x, dtype=object)) for x in shaped.shapes.values()) > MOST_ELEMENTS:
        raise InputError("it is too large for a run that would tell them")
    model = whole()
    del model.graph.output[:]
    del model.graph.value_info[:]
    model.graph.output.extend(ValueInfoProto(name=name) for name in sorted(names))
    _, found = run_at_random(model, seconds=SECONDS)
    return {
        name: helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in found.items()
        if isinstance(x, np.ndarray)
    }


def _with(shaped: Shaped, kinds: Mapping[str, TypeProto]) -> Shaped:
    """Return a network with types of some more tensors, and what follows from these."""
    graph = shaped.model.graph
    kept = [value for value in graph.value_info if value.name not in kinds]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    outputs = {value.name: value for value in graph.output}
    for name, kind in kinds.items():
        value = outputs.get(name) or graph.value_info.add(name=name)
        value.type.CopyFrom(kind)
    new = settled(shaped.model)
    return replace(shaped, model=new.model, shapes=new.shapes, values=new.values, others=new.others)
