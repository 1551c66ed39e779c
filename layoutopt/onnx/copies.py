"""Copies, for readers in several layouts, of what costs nothing to make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from layoutopt.conversion.modes import MOST_AXES, VIEWS
from layoutopt.conversion.rules.operator import RemapError
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.conversion.rules.views import reshape_groups, reshape_sizes
from layoutopt.onnx.attributes import op_of
from layoutopt.onnx.edited import EditedNetwork, is_view
from layoutopt.onnx.protobuf import (
    all_nodes,
    bodies,
    captured,
    copied,
    graphs,
    onnx,
    set_items,
    versions_of,
)
from layoutopt.onnx.types import UNSQUEEZED, shape_of, type_name

MADE_OF_CONSTANTS = {("DequantizeLinear", True), ("ConstantOfShape", False)}
"""Op types whose results hold nothing but constants, and whether all that they read is known."""


def separate(
    network: EditedNetwork, graph: onnx.GraphProto, values: Mapping[str, NDArray[Any]]
) -> None:
    """Give readers their own copies of what costs nothing to make, in whatever order of axes.

    All readers have their own of a tensor that is filled, whose shape is permuted, of a
    constant that is dequantised, which is laid out for each, and of views of these; and of what
    is given other axes of size 1 beside a transpose.  So do views in bodies of what is outside,
    and outputs that are constants.  Other views stand there twice.  But readers of a view share
    it, and its transposes, if it is not known which axes become which.  ``values`` are those of
    small constants by name.
    """
    constants = {x.name for x in graph.initializer if x.name not in network.held}
    constants |= {n.output[0] for n in graph.node if n.op_type == "Constant"}
    every = list(all_nodes(graph))
    taken = {value.name for value in graph.output}.union(*map(captured, graph.node))
    reads = Counter(x for n in every for x in n.input)
    reads.update(value.name for one in graphs(graph) for value in one.output)
    leading, behind = _beside_transposes(every)
    twice = _shared_views(network, graph, values)
    second: dict[str, str] = {}
    made: dict[str, onnx.NodeProto] = {}  # what all readers have their own of
    rooted = set[str]()  # constants among these
    nodes = list[Any]()
    for node in graph.node:
        for one in (x for body in bodies(node) for x in all_nodes(body) if is_view(x)):
            name = one.input[0]
            if one.output[0] in leading and name in made and reads[name] > 1:
                reads[name] -= 1
                nodes += _separated(network, one, 0, made, rooted)
        standard = network.keys.is_standard(node)
        kind = node.op_type, constants.issuperset({*node.input} - {""})
        result = node.output[0]
        if kind in MADE_OF_CONSTANTS and (standard or node.domain == "com.microsoft"):
            made[result] = node
            rooted.add(result)
            nodes.append(node)
            continue
        if node.op_type == "Identity" and reads[node.input[0]] > 1:
            reads[node.input[0]] -= 1
            node.input[0] = _copy_tensor(network, graph, node.input[0])  # made an output
        view = is_view(node) and standard
        for k, name in enumerate(node.input):
            node.input[k] = name = second.pop(name, name)
            if name in taken and name in made:
                reads[name] -= 1
                nodes += _separated(network, node, k, made, rooted)
            taken.add(node.input[k])
        of_constants = view and node.input[0] in rooted
        moved = view and result in leading | behind and _moves_ones(network, node)
        passed = view and node.op_type == "Transpose" and node.input[0] in made
        if passed or ((moved or of_constants) and _are_axes_known(network, node, values)):
            made[result] = node
            rooted.update([result] if of_constants else [])
        nodes.append(node)
        if view and result in twice and result not in made:
            nodes.append(_copy(network, node))
            second[result] = nodes[-1].output[0]
    if len(nodes) > len(graph.node):
        set_items(graph.node, nodes)


def _shared_views(
    network: EditedNetwork, graph: onnx.GraphProto, values: Mapping[str, NDArray[Any]]
) -> set[str]:
    """Return the tensors that several nodes read, and are views of what several nodes read.

    Transposes and other axes of size 1 make no difference.  Views of unknown axes do not count.
    """
    source: dict[str, str] = {}
    read, direct = [value.name for value in graph.output], set[str]()
    for node in graph.node:
        direct.update(node.input)
        if is_view(node) and (node.op_type == "Transpose" or _moves_ones(network, node)):
            source[node.output[0]] = source.get(node.input[0], node.input[0])
        else:
            read += [*node.input, *captured(node)]
    reads = Counter(source.get(name, name) for name in read)
    shared = {name for name, count in reads.items() if count > 1}
    return {
        node.output[0]
        for node in graph.node
        if is_view(node)
        and source.get(node.input[0], node.input[0]) in shared
        and node.output[0] in shared & direct - network.pinned
        and _are_axes_known(network, node, values)
    }


def _are_axes_known(
    network: EditedNetwork, node: onnx.NodeProto, values: Mapping[str, NDArray[Any]]
) -> bool:
    """Return whether it is known which axes of a view become which."""
    op = op_of(node, versions_of(network.model), values)
    before, after = (
        tuple(shape_of(network.types.get(x)) for x in xs) for xs in (node.input, node.output)
    )
    op = replace(op, input_shapes=before, output_shapes=after)
    try:
        if op.type == "Reshape":
            reshape_groups(op, *reshape_sizes(op))
    except RemapError:
        return False
    known = op.type in VIEWS or None not in operator_of(op).follow(op)
    return known and op.shape(0) is not None


def _separated(
    network: EditedNetwork,
    node: onnx.NodeProto,
    place: int,
    made: dict[str, onnx.NodeProto],
    rooted: set[str],
) -> list[onnx.NodeProto]:
    """Let a node read a copy that nobody else reads; return the nodes that make it.

    They are added to what is ``made``, and copies of constants to what is ``rooted``.
    """
    name = node.input[place]
    copies = list(_copies(network, name, made))
    node.input[place] = copies[-1].output[0]
    made.update((copy.output[0], copy) for copy in copies)
    rooted.update(copy.output[0] for copy in copies if name in rooted)
    return copies


def _moves_ones(network: EditedNetwork, node: onnx.NodeProto) -> bool:
    """Return whether a view only adds or takes away axes of size 1, in all orders of axes."""
    kind = network.types.get(node.input[0])
    before, after = shape_of(kind), shape_of(network.types.get(node.output[0]))
    if kind is None or before is None or after is None or node.op_type == "Transpose":
        return False
    wide = [size for size in before if size != 1]
    known = sum(isinstance(size, int) for size in wide) >= len(wide) - 1
    few = len(wide) <= MOST_AXES
    narrow = type_name(kind.tensor_type.elem_type) in UNSQUEEZED
    return wide == [size for size in after if size != 1] and known and few and not narrow


def _copies(
    network: EditedNetwork, name: str, made: Mapping[str, onnx.NodeProto]
) -> Iterator[onnx.NodeProto]:
    """Yield copies of a node that makes a tensor, and of what only it needs, that one last."""
    own = _copy(network, made[name])
    if own.input[0] in made:
        for copy in _copies(network, own.input[0], made):
            yield copy
            own.input[0] = copy.output[0]
    yield own


def _copy(network: EditedNetwork, node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a node that makes the same under another name."""
    own, name = copied(node), node.output[0]
    own.name, own.output[0] = "", network.names.fresh(name)
    network.types[own.output[0]] = network.types.get(name)
    return own


def _copy_tensor(network: EditedNetwork, graph: onnx.GraphProto, name: str) -> str:
    """Return the name of a copy of a constant; of what is none, its own."""
    tensors = {x.name: x for x in graph.initializer if x.name not in network.held}
    if name not in tensors:
        return name
    new = network.names.fresh(name)
    graph.initializer.add().CopyFrom(tensors[name])
    graph.initializer[-1].name = new
    if graph is network.model.graph and name in network.weights:
        network.weights[new] = network.weights[name]
    return new


def _beside_transposes(nodes: Sequence[onnx.NodeProto]) -> tuple[set[str], set[str]]:
    """Return the tensors from which views lead to a transpose, and those that views make of one."""
    leading, behind = set[str](), set[str]()
    for node in reversed(nodes):
        if node.op_type == "Transpose" or (is_view(node) and node.output[0] in leading):
            leading.update((node.input[0], node.output[0]))
    for node in nodes:
        if node.op_type == "Transpose" or (is_view(node) and node.input[0] in behind):
            behind.add(node.output[0])
    return leading, behind
