"""How ops enter an unwinding graph: as views, as ops that follow an operand, or as barriers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, combinations, pairwise

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import sliced
from layoutopt.conversion.rules.builder import GraphBuilder, Node, Outputs, Step
from layoutopt.graphs.ops import Shape, SumLike, dominates
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


def barrier(builder: GraphBuilder, node: Node) -> Outputs:
    """Add one barrier for each output that is read.

    They read the same operands, so they become known together, as the outputs of a single
    barrier would; but each keeps its own name.
    """
    operands = tuple({x.index: x for x in node.operands}.values())
    return [
        None if shape is None else builder.graph.barrier(operands, shape, name=name)
        for name, shape in zip(node.op.outputs, node.shapes, strict=True)
    ]


def normalisation(builder: GraphBuilder, node: Node, channels: bool = True) -> Outputs:
    """Add a barrier whose parameters broadcast to the data.

    If ``channels``, a vector belongs to the channels, axis 1, rather than to the last axis.
    """
    x = node.operand(0)
    for i, p in enumerate(node.inputs[1:], 1):
        if p is not None:
            if channels and p.shape == x.shape[1:2]:
                p = builder.aligned(p, len(x.shape), 1, node.name, f"parameter{i}")
            builder.tie(x, p, "barrier.parameter", node.name, f"parameter{i}")
    return barrier(builder, node)


def unknown(builder: GraphBuilder, node: Node) -> Outputs:
    """Add a barrier for an op of unknown meaning.

    Operands that broadcast to the first one, and are smaller, are taken for its parameters.
    """
    first, *others = node.inputs or (None,)
    for i, p in enumerate(others, 1):
        if first is not None and p is not None and p.size < first.size:
            builder.tie(first, p, "barrier.parameter", node.name, f"parameter{i}")
    return barrier(builder, node)


def constant(builder: GraphBuilder, node: Node) -> Outputs:
    """Add a tensor that depends on no data: its locations are free."""
    return builder.sink(node.name, node.shape)


NUMPY_SINCE = 7
"""Operator set since which operands broadcast by NumPy's rules."""


def elementwise(builder: GraphBuilder, node: Node, first: int = 0) -> Outputs:
    """Add an op whose locations follow the first operand of the output's shape.

    That operand is looked for from the position ``first`` on.
    """
    operands = node.operands
    axis = broadcast_axis(node)
    if axis is not None:
        x, y = operands
        operands = x, builder.aligned(y, len(x.shape), axis, node.name, "1")
    return _sum_like(builder, node, operands, first)


def broadcast_axis(node: Node) -> int | None:
    """Return from which axis on the second operand stands beside the first, if not at the end.

    Operator sets before 7 name such an axis.
    """
    if node.op.opset >= NUMPY_SINCE or len(node.operands) != 2:
        return None
    x, y = node.operands
    rank = max(len(x.shape), 1)
    if node.op.type == "PRelu":
        return 1 % rank if y.shape == x.shape[1:2] else None
    return node.op.integer("axis", 0) % rank if "axis" in node.op.attributes else None


def prelu(builder: GraphBuilder, node: Node) -> Outputs:
    """Add a leaky rectifier, whose slopes older operator sets give per channel."""
    return (per_channel if node.op.opset < NUMPY_SINCE else elementwise)(builder, node)


def per_channel(builder: GraphBuilder, node: Node) -> Outputs:
    """Add an op whose parameters may be vectors along an axis of the first operand."""
    x, *others = node.operands
    axis = node.op.integer("axis", 1) % max(len(x.shape), 1)
    along = x.shape[axis : axis + 1]
    placed = [
        builder.aligned(p, len(x.shape), axis, node.name, str(i)) if p.shape == along else p
        for i, p in enumerate(others, 1)
    ]
    if all(dominates(x.shape, p.shape) for p in placed):
        return _sum_like(builder, node, (x, *placed))
    return barrier(builder, node)  # one parameter for each block of several elements


def _sum_like(
    builder: GraphBuilder, node: Node, operands: Sequence[Tensor], first: int = 0
) -> Outputs:
    """Add the op, and a pair for every two operands of which one broadcasts to the other.

    With no operand of the output's shape a barrier is added, and no pairs.
    """
    order = [*range(first, len(operands)), *range(first)]
    carrier = next((i for i in order if operands[i].shape == node.shape), None)
    if carrier is None:
        return barrier(builder, node)
    return together(builder, node.name, operands, "elementwise", carrier)


def together(
    builder: GraphBuilder, name: str, operands: Sequence[Tensor], table: str, carrier: int = 0
) -> Tensor:
    """Add an op that lies like one of its operands, and draw every two of these together.

    Of the values' table, ``equal`` is for operands of one shape, ``broadcast`` for those of which
    one broadcasts to the other.  ``carrier`` is the position of the operand that the op lies like;
    it has the op's shape.
    """
    op = SumLike(id=name, inputs=tuple(x.name for x in operands), unwindable_inputs=(carrier,))
    (out,) = builder.graph.add(op)
    for (i, x), (j, y) in combinations(enumerate(operands), 2):
        if x.shape == y.shape:
            builder.pair(x, y, f"{table}.equal")
        elif dominates(x.shape, y.shape):
            builder.tie(x, y, f"{table}.broadcast", name, str(j))
        else:
            builder.tie(y, x, f"{table}.broadcast", name, str(i))
    return out


def identity(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the operand once more."""
    return builder.graph.identity(node.operand(0), name=node.name)


def dropout(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the data once more, and for the mask a barrier."""
    x = node.operand(0)
    name, mask, *_ = (*node.op.outputs, "")
    return [
        builder.graph.identity(x, name=name) if name else None,
        builder.graph.barrier([x], x.shape, name=mask) if mask else None,
    ][: len(node.op.outputs)]


def reshape(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the elements in another shape: Reshape, Flatten, Squeeze and Unsqueeze."""
    return builder.graph.reshape(node.operand(0), node.shape, name=node.name)


def expand(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the broadcast operand."""
    return builder.graph.expand(node.operand(0), node.shape, name=node.name)


def transpose(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the operand with its axes in another order, reversed if none is given."""
    x = node.operand(0)
    permutation = node.op.integers("perm") or range(len(x.shape))[::-1]
    return builder.graph.dim_shuffle(x, permutation, name=node.name)


def concat(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the operands one after the other."""
    axis = node.op.axis(1, len(node.shape))
    return builder.graph.concat(node.operands, axis, name=node.name)


def split(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the operand's parts along an axis, of given sizes or all but the last alike."""
    if node.optional(1) is not None:
        return barrier(builder, node)
    x, names = node.operand(0), node.op.outputs
    axis = node.op.axis(0, len(x.shape))
    sizes = node.op.integers("split")
    if sizes is None:
        part = -(-x.shape[axis] // len(names))
        starts = [min(k * part, x.shape[axis]) for k in range(len(names) + 1)]
    else:
        starts = list(accumulate(sizes, initial=0))
    if len(starts) != len(names) + 1:
        raise InputError(f"{len(starts) - 1} sizes for {len(names)} outputs")
    parts: list[Tensor | None] = []
    for name, (start, stop) in zip(names, pairwise(starts), strict=True):
        lower, upper = [0] * len(x.shape), list(x.shape)
        lower[axis], upper[axis] = start, stop
        parts.append(builder.graph.slice(x, lower, upper, name=name) if name else None)
    return parts


def take(builder: GraphBuilder, node: Node) -> Outputs:
    """Add a slice with steps; negative ones go backwards.

    See :func:`~layoutopt.base.numbers.sliced`.
    """
    if any(x is not None for x in node.inputs[1:]):
        return barrier(builder, node)
    x = node.operand(0)
    rank = len(x.shape)
    lower, upper, strides, back = [0] * rank, list(x.shape), [1] * rank, []
    for start, end, axis, step in _bounds(node, rank):
        kept = sliced(x.shape[axis], start, end, step)
        first, last = (min(kept[0], kept[-1]), max(kept[0], kept[-1])) if kept else (0, -1)
        lower[axis], upper[axis], strides[axis] = first, last + 1, abs(step)
        if step < 0:
            back.append(axis)
    stages: list[Step] = [(Graph.slice, lower, upper)]
    stages += [(Graph.reverse, back)] if back else []
    stages += [(Graph.sub_sample, strides)] if max(strides, default=1) > 1 else []
    return builder.chain(x, node.name, stages)


def _bounds(node: Node, rank: int) -> Iterable[tuple[int, int, int, int]]:
    """Return start, end, axis and step for each axis that a slice names."""
    starts, ends, steps = map(node.op.integers, ("starts", "ends", "steps"))
    axes = node.op.axes(rank)
    if starts is None or ends is None:
        raise InputError("starts or ends are missing")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise InputError("starts, ends, axes and steps have different lengths")
    if 0 in steps:
        raise InputError("a step is 0")
    return zip(starts, ends, axes, steps, strict=True)


def tile(builder: GraphBuilder, node: Node) -> Outputs:
    """Add the operand repeated along each axis: ``(n,) -> (1, n) -> (r, n) -> (r n,)``."""
    x = node.operand(0)
    repeats = node.op.integers("repeats")
    if repeats is None or len(repeats) != len(x.shape):
        return barrier(builder, node)
    single = [k for n in x.shape for k in (1, n)]
    many = [k for r, n in zip(repeats, x.shape, strict=True) for k in (r, n)]
    stages = (Graph.reshape, single), (Graph.expand, many), (Graph.reshape, node.shape)
    return builder.chain(x, node.name, stages)


def depth_to_space(builder: GraphBuilder, node: Node) -> Outputs:
    """Add channels moved into blocks of ``b x b`` pixels.

    The channel splits into (b, b, C) in mode DCR and into (C, b, b) in mode CRD.
    """
    x, b = node.operand(0), _block_size(node)
    n, c, h, w = _images(x)
    if b < 1 or c % (b * b):
        raise InputError(f"{c} channels are no multiple of {b} x {b}")
    if node.op.attributes.get("mode", "DCR") == "DCR":
        split, order = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
    return builder.chain(x, node.name, _regrouped(split, order, node.shape))


def space_to_depth(builder: GraphBuilder, node: Node) -> Outputs:
    """Add blocks of ``b x b`` pixels moved into channels.

    The channel becomes (b, b, C) in mode DCR and (C, b, b) in mode CRD.
    """
    x, b = node.operand(0), _block_size(node)
    n, c, h, w = _images(x)
    if b < 1 or h % b or w % b:
        raise InputError(f"{h} x {w} pixels do not divide into blocks of {b} x {b}")
    split = (n, c, h // b, b, w // b, b)
    channels = (3, 5, 1) if node.op.attributes.get("mode", "DCR") == "DCR" else (1, 3, 5)
    return builder.chain(x, node.name, _regrouped(split, (0, *channels, 2, 4), node.shape))


def _regrouped(split: Shape, order: Shape, joined: Shape) -> Sequence[Step]:
    return (Graph.reshape, split), (Graph.dim_shuffle, order), (Graph.reshape, joined)


def _block_size(node: Node) -> int:
    if "blocksize" not in node.op.attributes:
        raise InputError("attribute 'blocksize' is missing")
    return node.op.integer("blocksize", 1)


def _images(x: Tensor) -> Shape:
    if len(x.shape) != 4:
        raise InputError(f"needs an operand of rank 4, {x.name!r} has rank {len(x.shape)}")
    return x.shape


def convolution(
    builder: GraphBuilder, node: Node, data: int = 0, weights: int = 1, bias: int | None = 2
) -> Outputs:
    """Add a convolution of operands in these positions; the bias has one element per channel."""
    x = node.operand(data)
    out = _fixed_point(builder, node)
    builder.target(x, "convolution.data", node.name, "data")
    builder.target(node.operand(weights), "convolution.weights", node.name, "weights")
    addend = None if bias is None else node.optional(bias)
    if addend is not None:
        column = builder.aligned(addend, len(out.shape), 1, node.name, "bias")
        builder.tie(out, column, "convolution.bias", node.name, "bias")
    builder.pair(x, out, "convolution.chain")
    return out


def matmul(builder: GraphBuilder, node: Node, lhs: int = 0, rhs: int = 1) -> Outputs:
    """Add a matrix product, of batches too, of operands in two positions."""
    left, right = node.operand(lhs), node.operand(rhs)
    _check_summed(left, right)
    return _product(builder, node, left, right)


def _check_summed(lhs: Tensor, rhs: Tensor) -> None:
    """Refuse operands whose summed axes differ: the last of one, the last but one of the other."""
    if lhs.shape and rhs.shape and lhs.shape[-1] != rhs.shape[-2:][0]:
        raise InputError(f"operands of shapes {list(lhs.shape)} and {list(rhs.shape)} do not fit")


def gemm(builder: GraphBuilder, node: Node) -> Outputs:
    """Add ``A' B' + C``, where a prime stands for a transposition that the node may ask for."""
    lhs = _transposed(builder, node, 0, "transA", "lhs")
    rhs = _transposed(builder, node, 1, "transB", "rhs")
    _check_summed(lhs, rhs)
    out = _product(builder, node, lhs, rhs)
    addend = node.optional(2)
    if addend is not None:
        builder.tie(out, addend, "matmul.bias", node.name, "bias")
    return out


def einsum(builder: GraphBuilder, node: Node) -> Outputs:
    """Add a product of two operands, or a barrier for any other number."""
    if len(node.operands) != 2:
        return barrier(builder, node)
    return _product(builder, node, node.operand(0), node.operand(1))


def _product(builder: GraphBuilder, node: Node, lhs: Tensor, rhs: Tensor) -> Tensor:
    out = _fixed_point(builder, node)
    draw_product(builder, lhs, rhs, out, "matmul")
    return out


def draw_product(builder: GraphBuilder, lhs: Tensor, rhs: Tensor, out: Tensor, table: str) -> None:
    """Draw a product's operands to their targets, and to the output if they have its shape.

    The values' table has ``lhs``, ``rhs`` and ``chain``.
    """
    builder.target(lhs, f"{table}.lhs", out.name, "lhs")
    builder.target(rhs, f"{table}.rhs", out.name, "rhs")
    builder.pair(lhs, out, f"{table}.chain")
    builder.pair(rhs, out, f"{table}.chain")


def _transposed(builder: GraphBuilder, node: Node, position: int, flag: str, role: str) -> Tensor:
    x = node.operand(position)
    if not node.op.integer(flag, 0):
        return x
    name = builder.helper(node.name, f"{role}.transposed")
    return builder.graph.dim_shuffle(x, (1, 0), name=name)


def _fixed_point(builder: GraphBuilder, node: Node) -> Tensor:
    return builder.graph.fixed_point(node.operands, node.shape, name=node.name)
