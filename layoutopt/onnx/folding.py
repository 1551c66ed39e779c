"""Constants of a model, and the nodes that compute shapes from other shapes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from layoutopt.conversion.rules.registry import type_facts
from layoutopt.graphs.ops import Array, Shape, size
from layoutopt.layout.factors import Shape as AnyShape
from layoutopt.layout.factors import numbers_of
from layoutopt.onnx.protobuf import SMALL, array, bodies, is_standard, set_items, type_of
from layoutopt.onnx.weights import array_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def known_values(graph: GraphProto) -> dict[str, Array]:
    """Return the small constants of a graph by name: initialisers and constant nodes."""
    found = {x.name: array(x) for x in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and is_standard(node.domain):
            found[node.output[0]] = _constant(node)
    return {name: value for name, value in found.items() if value is not None}


def fold(model: ModelProto, shapes: Mapping[str, Shape]) -> bool:
    """Replace nodes that compute shapes by constants; return whether there were any.

    A node computes shapes if it is ``Shape`` or ``Size`` of a tensor of known shape, if all that
    it computes with are such results and constants, or if its result is needed where only
    structure is: as axes, bounds or sizes.  What computes with weights alone stays.
    """
    values = known_values(model.graph)
    candidates = _structural(model.graph) | _of_shapes(model.graph, values)
    folded = {}
    for k, node in enumerate(model.graph.node):
        if k in candidates:
            results = _evaluated(model, node, values, shapes)
            if results is not None:
                folded[k] = results
                values.update(results)
    if folded:
        nodes = [
            new for k, node in enumerate(model.graph.node) for new in _kept(node, folded.get(k))
        ]
        set_items(model.graph.node, nodes)
    return bool(folded)


def _structural(graph: GraphProto) -> set[int]:
    """Return the nodes, by number, whose results are needed as structure."""
    needed: set[str] = set()
    found = set()
    for k in reversed(range(len(graph.node))):
        node = graph.node[k]
        known = type_facts(type_of(node))
        if not needed.isdisjoint(node.output):
            found.add(k)
            positions: Iterable[int] = set(range(len(node.input))).difference(known.unread)
        else:
            positions = [i for i in known.structural if i < len(node.input)]
        needed.update(node.input[i] for i in positions)
        needed.discard("")
    return {k for k in found if graph.node[k].op_type != "Constant"}


def _of_shapes(graph: GraphProto, values: Mapping[str, Array]) -> set[int]:
    """Return the nodes, by number, that compute with shapes and constants only."""
    derived: set[str] = set()
    found = set()
    for k, node in enumerate(graph.node):
        known = type_facts(type_of(node))
        data = {
            name
            for i, name in enumerate(node.input)
            if name and i not in known.structural and i not in known.unread
        }
        start = node.op_type in ("Shape", "Size") and is_standard(node.domain)
        if start or (data & derived and all(x in derived or x in values for x in data)):
            found.add(k)
            derived.update(node.output)
    return found


def _evaluated(
    model: ModelProto, node: NodeProto, values: Mapping[str, Array], shapes: Mapping[str, Shape]
) -> dict[str, Array] | None:
    """Return a node's outputs by name, or nothing if they are not known or not small."""
    if node.op_type in ("Shape", "Size") and is_standard(node.domain):
        value = shape_value(node, shapes.get(node.input[0]))
        return None if value is None else {node.output[0]: value}
    inputs = {name: values.get(name) for name in node.input if name}
    known = type_facts(type_of(node))
    barred = known.random or known.takes_room
    barred = barred or any(bodies(node)) or not is_standard(node.domain)
    small = known.shrinks or all(
        name in shapes and size(shapes[name]) <= SMALL for name in node.output if name
    )
    if barred or not small or any(x is None for x in inputs.values()):
        return None
    results = run_alone(model, node, {k: v for k, v in inputs.items() if v is not None})
    if results is None:
        return None
    names = filter(None, node.output)
    named = {k: np.asarray(v) for k, v in zip(names, results, strict=True)}
    return named if all(v.size <= SMALL for v in named.values()) else None


def run_alone(
    model: ModelProto, node: NodeProto, inputs: Mapping[str, Array]
) -> list[Array] | None:
    """Return the outputs of a node of a model, None if they cannot be told."""
    from onnx import ValueInfoProto, helper
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [node],
        "node",
        [ValueInfoProto(name=name) for name in inputs],
        [ValueInfoProto(name=name) for name in node.output if name],
    )
    if _slices_from_before(node, inputs):
        return None
    alone = helper.make_model(graph, opset_imports=model.opset_import)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = list(ReferenceEvaluator(alone).run(None, dict(inputs)))
    except Exception:  # whatever it is, the value is not known; shape inference may know more
        return None
    return results


def _slices_from_before(node: NodeProto, inputs: Mapping[str, Array]) -> bool:
    """Return whether a slice goes backwards from before its start, where ONNX's evaluator errs."""
    if node.op_type != "Slice" or len(node.input) < 5 or not node.input[4]:
        return False
    data, starts, steps = (inputs[node.input[n]] for n in (0, 1, 4))
    axes = inputs[node.input[3]] if node.input[3] else range(len(starts))
    bounds = zip(axes, starts, steps, strict=False)
    return any(step < 0 and start < -data.shape[axis] for axis, start, step in bounds)


def shape_value(node: NodeProto, shape: AnyShape | None) -> Array | None:
    """Return what ``Shape`` or ``Size`` of a tensor of some shape gives, if all of it is known."""
    bounds = {a.name: a.i for a in node.attribute}
    sizes = numbers_of(shape and shape[bounds.get("start", 0) : bounds.get("end", len(shape))])
    if sizes is None:
        return None
    return np.array(size(sizes) if node.op_type == "Size" else sizes, np.int64)


def _kept(node: NodeProto, results: Mapping[str, Array] | None) -> list[NodeProto]:
    from onnx import helper, numpy_helper

    if results is None:
        return [node]
    return [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))
        for name, value in results.items()
    ]


def _constant(node: NodeProto) -> Array | None:
    """Return the value of a constant node, if it is small and numeric."""
    names = [a.name for a in node.attribute]
    if names == ["value"]:
        return array(node.attribute[0].t)
    numeric = len(names) == 1 and names[0].startswith(("value_int", "value_float"))
    return array_of(node) if numeric else None
