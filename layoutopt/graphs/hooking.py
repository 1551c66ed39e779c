"""Barriers with hooks: what they say on a tile memory, and graphs without those that are views.

Hooks mean something on a tile memory only.  The built-in ones lay each output element like one
certain input element, and a tile can be taken whoever else is there, so such a barrier is a view.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from layoutopt.base.errors import InputError
from layoutopt.graphs.ops import (
    Array,
    Barrier,
    Reshape,
    Sink,
    Slice,
    Source,
    SubSample,
    UnwindingOp,
    size,
)
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import hook_of, memory_of
from layoutopt.tiles.hooks import Strided, hooked_tiles, read_elements, strided_outputs

BARRIERS = ("opaque", "simulated")
"""What barriers with hooks may be taken as."""


def hooked(graph: GraphStore) -> list[int]:
    """Return the numbers of the barriers whose outputs' tiles a hook gives."""
    return [i for i in range(len(graph.ops)) if hook_of(graph, i) is not None]


def opaque(graph: GraphStore) -> GraphStore:
    """Return a graph with the same tensors in which no barrier has a hook."""
    found = type(graph)(graph.name, graph.description)
    for op in graph.ops:
        found.add(replace(op, hook=None) if isinstance(op, Barrier) else op)
    return _finished(found, graph, {})


def apply_hook_mode(graph: GraphStore, barriers: str | None) -> GraphStore:
    """Return a graph whose hooks are obeyed or ignored, as they are to be.

    Parameters
    ----------
    barriers
        ``None``: hooks are obeyed where the graph has a tile memory.  ``"simulated"``: the same,
        but there must be one.  ``"opaque"``: no barrier has a hook.

    Raises
    ------
    InputError
        If it is anything else, or a hook that is to be obeyed is unknown or does not fit.
    """
    if barriers not in (None, *BARRIERS):
        raise InputError(f"unknown barriers {barriers!r}; known: {', '.join(BARRIERS)}")
    if barriers == "simulated" and graph.tile_memory is None:
        raise InputError("barriers can be simulated on a tile memory only; the graph has none")
    if barriers == "opaque":
        return opaque(graph) if hooked(graph) else graph
    check_hooks(graph)
    return graph


def check_hooks(graph: GraphStore) -> None:
    """Raise unless every hook that matters is known and fits its barrier.

    Raises
    ------
    InputError
        That names barrier and hook.
    """
    for i in hooked(graph):
        _strided(graph, i)


def output_tiles(graph: GraphStore, i: int, inputs: Sequence[Array]) -> list[Array]:
    """Return the tiles of the outputs of a barrier with a hook, flat.

    Parameters
    ----------
    i
        The barrier's number.
    inputs
        The tiles of each input, flat.

    Raises
    ------
    InputError
        If the hook does not fit or fails; the text names barrier and hook.
    """
    shaped = [
        np.asarray(tiles, np.int64).reshape(graph.shapes[t])
        for tiles, t in zip(inputs, graph.op_inputs[i], strict=True)
    ]
    shapes = [graph.shapes[t] for t in graph.op_outputs[i]]
    try:
        found = hooked_tiles(hook_of(graph, i) or "", shaped, shapes, memory_of(graph))
    except InputError as error:
        raise InputError(f"barrier {graph.ops[i].id!r}: {error.reason}") from error.__cause__
    return [tiles.reshape(-1) for tiles in found]


def reads(graph: GraphStore, i: int) -> list[Array] | None:
    """Return which input elements decide each output element, if a barrier's hook says so.

    See :func:`layoutopt.tiles.hooks.read_elements`.
    """
    inputs = [graph.shapes[t] for t in graph.op_inputs[i]]
    outputs = [graph.shapes[t] for t in graph.op_outputs[i]]
    try:
        return read_elements(hook_of(graph, i) or "", inputs, outputs)
    except InputError as error:
        raise InputError(f"barrier {graph.ops[i].id!r}: {error.reason}") from error.__cause__


def viewed(graph: GraphStore) -> GraphStore:
    """Return a graph in which only hooks of users are left, and only those that matter.

    Barriers with a built-in hook become views; of barriers whose outputs no pair is influenced
    by, the hook is left out.  Sinks, sources and barriers that stay keep their names.

    Raises
    ------
    InputError
        If a hook is unknown, or does not fit its barrier.
    """
    found = type(graph)(graph.name)
    names: dict[str, str] = {}
    needed = _needed(graph)
    for i, op in enumerate(graph.ops):
        op = replace(op, inputs=tuple(names.get(name, name) for name in op.inputs))
        lies = _strided(graph, i) if hook_of(graph, i) is not None else None
        if lies is not None:
            for t, how in zip(graph.op_outputs[i], lies, strict=True):
                name = _view(found, graph, t, op.inputs[how.source], how)
                names[graph.tensor_name(t)] = name
        elif isinstance(op, Barrier) and not any(t in needed for t in graph.op_outputs[i]):
            found.add(replace(op, hook=None))
        else:
            found.add(op)
    return _finished(found, graph, names)


def relaxed(graph: GraphStore) -> GraphStore:
    """Return a graph in which outputs of barriers with hooks are sinks, free to lie anywhere."""
    found = type(graph)(graph.name)
    names: dict[str, str] = {}
    for i, op in enumerate(graph.ops):
        if hook_of(graph, i) is None:
            found.add(replace(op, inputs=tuple(names.get(name, name) for name in op.inputs)))
            continue
        for t in graph.op_outputs[i]:
            name = unused(found, graph, graph.tensor_name(t))
            names[graph.tensor_name(t)] = name
            found.add(Sink(id=name, inputs=(), shape=graph.shapes[t]))
    return _finished(found, graph, names)


def unused(found: GraphStore, graph: GraphStore, name: str) -> str:
    """Return a name that no op of two graphs has, made from another."""
    taken = {op.id for op in graph.ops} | {op.id for op in found.ops}
    name = name.replace(":", "#")
    while name in taken:
        name += "#"
    return name


def _finished(found: GraphStore, graph: GraphStore, names: dict[str, str]) -> GraphStore:
    """Add pairs and tile memory."""
    for a, b, value in graph.pairs:
        one, two = (graph.tensor_name(t) for t in (a, b))
        found.valued_pair(names.get(one, one), names.get(two, two), value)
    found.tile_memory = graph.tile_memory
    return found


def _strided(graph: GraphStore, i: int) -> list[Strided] | None:
    inputs = [graph.shapes[t] for t in graph.op_inputs[i]]
    outputs = [graph.shapes[t] for t in graph.op_outputs[i]]
    try:
        return strided_outputs(hook_of(graph, i) or "", inputs, outputs)
    except InputError as error:
        raise InputError(f"barrier {graph.ops[i].id!r}: {error.reason}") from None


def _view(found: GraphStore, graph: GraphStore, t: int, source: str, how: Strided) -> str:
    """Add the views that make a tensor of some elements of another, and return its name."""
    shape = graph.shapes[t]
    last = unused(found, graph, graph.tensor_name(t))
    if not size(shape):
        found.add(Source(id=last, inputs=(), shape=shape))
        return last
    sampled, cut = f"{last}.windows", f"{last}.first"
    sampled, cut = unused(found, graph, sampled), unused(found, graph, cut)
    zero = (0,) * len(how.counts)
    steps: list[UnwindingOp] = [
        SubSample(id=sampled, inputs=(source,), strides=how.strides),
        Slice(id=cut, inputs=(sampled,), lower=zero, upper=how.counts),
        Reshape(id=last, inputs=(cut,), shape=shape),
    ]
    for op in steps:
        found.add(op)
    return last


def _needed(graph: GraphStore) -> set[int]:
    """Return the tensors that pairs are influenced by, through views and hooks."""
    found = {t for pair in graph.pairs for t in pair[:2]}
    for i in range(len(graph.ops) - 1, -1, -1):
        if any(t in found for t in graph.op_outputs[i]):
            found.update(graph.carriers(i) if hook_of(graph, i) is None else graph.op_inputs[i])
    return found
