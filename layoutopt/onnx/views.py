"""Operations that only move elements: views of their operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from layoutopt.errors import InputError
from layoutopt.graphs.op import Shape
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.barriers import barrier
from layoutopt.onnx.sketch import Node, Outputs, Rule, Sketch, Step


def identity(sketch: Sketch, node: Node) -> Outputs:
    """Add the operand once more."""
    return sketch.graph.identity(node.operand(0), name=node.name)


def dropout(sketch: Sketch, node: Node) -> Outputs:
    """Add the data once more, and for the mask a barrier."""
    x = node.operand(0)
    name, mask, *_ = (*node.outputs, None)
    return [
        None if name is None else sketch.graph.identity(x, name=name),
        None if mask is None else sketch.graph.barrier([x], x.shape, name=mask),
    ][: len(node.outputs)]


def reshape(sketch: Sketch, node: Node) -> Outputs:
    """Add the elements in another shape: Reshape, Flatten, Squeeze and Unsqueeze."""
    return sketch.graph.reshape(node.operand(0), node.shape, name=node.name)


def expand(sketch: Sketch, node: Node) -> Outputs:
    """Add the broadcast operand."""
    return sketch.graph.expand(node.operand(0), node.shape, name=node.name)


def transpose(sketch: Sketch, node: Node) -> Outputs:
    """Add the operand with its axes in another order, reversed if none is given."""
    x = node.operand(0)
    permutation = node.attributes.get("perm", range(len(x.shape))[::-1])
    return sketch.graph.dim_shuffle(x, permutation, name=node.name)


def concat(sketch: Sketch, node: Node) -> Outputs:
    """Add the operands one after the other."""
    axis = _axis(node.attributes.get("axis", 1), len(node.shape))
    return sketch.graph.concat(node.operands, axis, name=node.name)


def split(sketch: Sketch, node: Node) -> Outputs:
    """Add the operand's parts along an axis, of given sizes or all but the last alike."""
    if node.unknown(1):
        return barrier(sketch, node)
    x = node.operand(0)
    axis = _axis(node.attributes.get("axis", 0), len(x.shape))
    sizes = node.integers("split", 1)
    if sizes is None:
        part = -(-x.shape[axis] // len(node.outputs))
        starts = [min(k * part, x.shape[axis]) for k in range(len(node.outputs) + 1)]
    else:
        starts = list(accumulate(sizes, initial=0))
    if len(starts) != len(node.outputs) + 1:
        raise InputError(f"{len(starts) - 1} sizes for {len(node.outputs)} outputs")
    parts: list[Tensor | None] = []
    for name, (start, stop) in zip(node.outputs, pairwise(starts), strict=True):
        lower, upper = [0] * len(x.shape), list(x.shape)
        lower[axis], upper[axis] = start, stop
        parts.append(None if name is None else sketch.graph.slice(x, lower, upper, name=name))
    return parts


def take(sketch: Sketch, node: Node) -> Outputs:
    """Add a slice with steps; negative ones go backwards.

    Along an axis of ``n``, negative bounds count from the end, and bounds outside are moved
    to the nearest end, as Python's slices do.
    """
    if any(node.unknown(i) for i in range(1, len(node.inputs))):
        return barrier(sketch, node)
    x = node.operand(0)
    rank = len(x.shape)
    lower, upper, strides, back = [0] * rank, list(x.shape), [1] * rank, []
    for start, end, given, step in _bounds(node):
        axis = _axis(given, rank)
        kept = range(*slice(start, end, step).indices(x.shape[axis]))
        first, last = (min(kept[0], kept[-1]), max(kept[0], kept[-1])) if kept else (0, -1)
        lower[axis], upper[axis], strides[axis] = first, last + 1, abs(step)
        if step < 0:
            back.append(axis)
    stages: list[Step] = [(Graph.slice, lower, upper)]
    stages += [(Graph.reverse, back)] if back else []
    stages += [(Graph.sub_sample, strides)] if max(strides, default=1) > 1 else []
    return sketch.chain(x, node.name, stages)


def _bounds(node: Node) -> Iterable[tuple[int, int, int, int]]:
    """Return start, end, axis and step for each axis that a slice names."""
    starts, ends = node.integers("starts", 1), node.integers("ends", 2)
    if starts is None or ends is None:
        raise InputError("starts or ends are missing")
    axes = node.integers("axes", 3)
    axes = list(range(len(starts))) if axes is None else axes
    steps = node.integers("steps", 4)
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise InputError("starts, ends, axes and steps have different lengths")
    if 0 in steps:
        raise InputError("a step is 0")
    return zip(starts, ends, axes, steps, strict=True)


def tile(sketch: Sketch, node: Node) -> Outputs:
    """Add the operand repeated along each axis: ``(n,) -> (1, n) -> (r, n) -> (r n,)``."""
    x = node.operand(0)
    repeats = node.integers("repeats", 1)
    if repeats is None or len(repeats) != len(x.shape):
        return barrier(sketch, node)
    single = [k for n in x.shape for k in (1, n)]
    many = [k for r, n in zip(repeats, x.shape, strict=True) for k in (r, n)]
    stages = (Graph.reshape, single), (Graph.expand, many), (Graph.reshape, node.shape)
    return sketch.chain(x, node.name, stages)


def depth_to_space(sketch: Sketch, node: Node) -> Outputs:
    """Add channels moved into blocks of ``b x b`` pixels.

    The channel splits into (b, b, C) in mode DCR and into (C, b, b) in mode CRD.
    """
    x, b = node.operand(0), int(node.required("blocksize"))
    n, c, h, w = _images(x)
    if b < 1 or c % (b * b):
        raise InputError(f"{c} channels are no multiple of {b} x {b}")
    if node.attributes.get("mode", b"DCR") == b"DCR":
        split, order = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
    return sketch.chain(x, node.name, _regrouped(split, order, node.shape))


def space_to_depth(sketch: Sketch, node: Node) -> Outputs:
    """Add blocks of ``b x b`` pixels moved into channels.

    The channel becomes (b, b, C) in mode DCR and (C, b, b) in mode CRD.
    """
    x, b = node.operand(0), int(node.required("blocksize"))
    n, c, h, w = _images(x)
    if b < 1 or h % b or w % b:
        raise InputError(f"{h} x {w} pixels do not divide into blocks of {b} x {b}")
    split = (n, c, h // b, b, w // b, b)
    channels = (3, 5, 1) if node.attributes.get("mode", b"DCR") == b"DCR" else (1, 3, 5)
    return sketch.chain(x, node.name, _regrouped(split, (0, *channels, 2, 4), node.shape))


def _regrouped(split: Shape, order: Shape, joined: Shape) -> Sequence[Step]:
    return (Graph.reshape, split), (Graph.dim_shuffle, order), (Graph.reshape, joined)


def _images(x: Tensor) -> Shape:
    if len(x.shape) != 4:
        raise InputError(f"needs an operand of rank 4, {x.name!r} has rank {len(x.shape)}")
    return x.shape


def _axis(axis: int, rank: int) -> int:
    """Return an axis counted from the start."""
    if not -rank <= axis < rank:
        raise InputError(f"axis {axis} does not exist in a tensor of rank {rank}")
    return int(axis) % rank


VIEWS = {
    "BitCast": Rule(identity),
    "Cast": Rule(identity),
    "CastLike": Rule(identity, unread=(1,)),
    "Concat": Rule(concat),
    "DepthToSpace": Rule(depth_to_space),
    "Dropout": Rule(dropout, structure=(1, 2)),
    "Expand": Rule(expand, structure=(1,)),
    "Flatten": Rule(reshape),
    "Identity": Rule(identity),
    "Reshape": Rule(reshape, structure=(1,)),
    "Slice": Rule(take, structure=(1, 2, 3, 4)),
    "SpaceToDepth": Rule(space_to_depth),
    "Split": Rule(split, structure=(1,)),
    "Squeeze": Rule(reshape, structure=(1,)),
    "Tile": Rule(tile, structure=(1,)),
    "Transpose": Rule(transpose),
    "Unsqueeze": Rule(reshape, structure=(1,)),
}
