"""Reshapes around products, and one behind the other, taken away where sizes are open or kept."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np

from layoutopt.layout.factors import Shape, Size, numbers_of
from layoutopt.layout.reshape import written_sizes
from layoutopt.onnx.edited import EditedNetwork, Scope, is_view
from layoutopt.onnx.protobuf import captured, onnx, set_items
from layoutopt.onnx.types import shape_of, turned_axes


def multiply_batches(network: EditedNetwork, graph: onnx.GraphProto, scope: Scope) -> None:
    """Let products with a matrix take tensors as they are, not as a matrix of open size.

    That is where a Reshape joins axes of a tensor to rows, and another one behind the product
    splits these as they were.
    """
    made = {n.output[0]: n for n in graph.node if network.keys.is_standard(n)}
    reads = Counter(x for n in graph.node for x in (*n.input, *captured(n)))
    reads.update(value.name for value in graph.output)
    nodes = list[Any]()
    for node in graph.node:
        product = made.get(node.input[0]) if _reshapes(made.get(node.output[0])) else None
        joined = made.get(product.input[0]) if product is not None and product.input else None
        found = None
        if product is not None and joined is not None and _reshapes(joined):
            alone = reads[node.input[0]] == 1 and node.input[0] not in network.pinned
            if alone and _multiplies_rows(network, product, scope):
                found = _batch_product(network, graph, joined, product, node)
        nodes += found or [node]
        network.changed |= found is not None
    set_items(graph.node, nodes)


def _multiplies_rows(network: EditedNetwork, node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether a node multiplies rows by a matrix, and adds the same to all of them."""
    if node.op_type != "Gemm":
        return node.op_type == "MatMul"
    given = {"alpha": 1, "beta": 1} | {a.name: a.i or a.f for a in node.attribute}
    weight = scope.constants.get(node.input[1])
    turned = given.get("transB", 0) and not (weight is not None and weight.own)
    if given.get("transA", 0) or given["alpha"] != 1 or turned:
        return False
    if len(node.input) < 3 or not node.input[2]:
        return True
    known = scope.constants.get(node.input[2])
    added = known.shape if known else shape_of(network.types.get(node.input[2]))
    return given["beta"] == 1 and bool(added) and {*(added or ())[:-1]} <= {1}


def _batch_product(
    network: EditedNetwork,
    graph: onnx.GraphProto,
    joined: onnx.NodeProto,
    product: onnx.NodeProto,
    split: onnx.NodeProto,
) -> list[onnx.NodeProto] | None:
    """Return the nodes that compute a product between two reshapes without these, if any."""
    names = joined.input[0], joined.output[0], product.output[0], split.output[0]
    before, rows, columns, after = (shape_of(network.types.get(name)) for name in names)
    if before is None or after is None or rows is None or columns is None:
        return None
    ends = rows[-1], columns[-1]
    count = common_batch(before, after, ends) if len(rows) == len(columns) == 2 else None
    if count is None or isinstance(rows[0], int):
        return None
    steps: list[tuple[str, str, dict[str, Any]]] = []
    if len(before) > count + 1:
        steps.append(("Reshape", _joined(network, graph, split, count, ends[:1]), {}))
    matrix, nodes = product.input[1], list[Any]()
    if any(a.name == "transB" and a.i for a in product.attribute):
        turned = network.names.fresh(f"{matrix}_turned")
        nodes.append(onnx.helper.make_node("Transpose", [matrix], [turned], perm=[1, 0]))
        matrix = turned
    steps.append(("MatMul", matrix, {"name": product.name}))
    if len(product.input) > 2 and product.input[2]:
        steps.append(("Add", product.input[2], {}))
    if len(after) > count + 1:
        steps.append(("Reshape", _joined(network, graph, split, count, after[count:]), {}))
    source = names[0]
    for k, (kind, operand, told) in enumerate(steps, 1):
        result = names[3] if k == len(steps) else network.names.fresh(f"{names[2]}_{kind.lower()}")
        nodes.append(onnx.helper.make_node(kind, [source, operand], [result], **told))
        source = result
    return nodes


def _joined(
    network: EditedNetwork, graph: onnx.GraphProto, node: onnx.NodeProto, count: int, last: Shape
) -> str:
    """Return the name of a new shape that copies so many sizes, and ends with others."""
    shape = np.array([0] * count + [*last], np.int64)
    return network.new_constant(graph, f"{node.output[0]}_shape", shape)


def common_batch(before: Shape, after: Shape, ends: tuple[Size, Size]) -> int | None:
    """Return how many leading axes two reshapes leave as they are, None if that is not known.

    The first joins axes before the last ``ends[0]`` elements to rows, which are as many as those
    that the second one splits before the last ``ends[1]`` elements.  So one size may be unknown.
    """
    if 0 in before or 0 in after:
        return None
    for count in range(min(len(before), len(after)) - 1, 1, -1):
        tails = [numbers_of(shape[count:]) for shape in (before, after)]
        if [None if tail is None else prod(tail) for tail in tails] != [*ends] or None in tails:
            continue
        pairs = zip(before[:count], after[:count], strict=True)
        unequal = [pair for pair in pairs if None in pair or pair[0] != pair[1]]
        if not unequal or (len(unequal) == 1 and numbers_of(unequal[0]) is None):
            return count
    return None


def join_reshapes(network: EditedNetwork, graph: onnx.GraphProto, scope: Scope) -> None:
    """Let reshapes to known shapes read what was there before other reshapes.

    That is where nobody else reads between them, where it comes back as it was, or where sizes
    between them are not known.
    """
    made: dict[str, onnx.NodeProto] = {}
    reads = Counter(x for n in graph.node for x in (*n.input, *captured(n)))
    reads.update(value.name for value in graph.output)
    for node in graph.node:
        if not is_view(node) or not network.keys.is_standard(node):
            continue
        if node.op_type == "Transpose" and node.input[0] in made:
            _reshape_instead(network, graph, scope, node)
        if node.op_type != "Transpose":
            made[node.output[0]] = node
        target = scope.values.get(node.input[1]) if len(node.input) > 1 else None
        if node.op_type != "Reshape" or target is None or not np.all(target):
            continue
        while (before := made.get(node.input[0])) is not None:
            known = numbers_of(shape_of(network.types.get(node.input[0]))) is not None
            same = network.same_shape(before.input[0], node.output[0])
            names = {*before.input, *before.output}
            if network.pinned & names or (known and not same and reads[node.input[0]] > 1):
                break
            reads[node.input[0]] -= 1
            node.input[0] = before.input[0]
            reads[node.input[0]] += 1
            network.changed = True


def _reshape_instead(
    network: EditedNetwork, graph: onnx.GraphProto, scope: Scope, node: onnx.NodeProto
) -> None:
    """Let a Transpose that moves axes of size 1 alone be a Reshape, where one size is open."""
    shape = shape_of(network.types.get(node.input[0]))
    if shape is None or 0 in shape or numbers_of(shape) is not None:
        return
    order = turned_axes(node, len(shape))
    wide = [axis for axis in order if shape[axis] != 1]
    sizes = written_sizes([shape[axis] for axis in order])
    if wide == sorted(wide) and sizes is not None:
        target = np.array(sizes)
        name = network.new_constant(graph, f"{node.output[0]}_shape", target)
        scope.values[name] = target
        node.op_type = "Reshape"
        node.input.append(name)
        del node.attribute[:]


def _reshapes(node: onnx.NodeProto | None) -> bool:
    return node is not None and node.op_type == "Reshape"
