"""Rules of elementwise ops, of those whose attributes name axes, and of those that index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, permutations, product
from math import factorial
from typing import Any

from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.operator import (
    Axes,
    Follow,
    RemapError,
    Remapped,
    fitted,
    is_identity,
    permuted,
)
from layoutopt.layout.permutations import Permutation


def axis_rule(default: int | None) -> Callable[[Op, Permutation], Mapping[str, Any]]:
    """Return a rule that moves the attribute ``axis``; the default is None if it must be there."""

    def moved(op: Op, permutation: Permutation) -> Mapping[str, Any]:
        return {"axis": permutation.index(op.axis(default, len(permutation)))}

    return moved


def concatenated(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the attribute ``axis`` of operands that fit each other.

    Runtimes take any sizes if an operand has no elements, where a version of ONNX infers nothing.
    """
    axis = op.axis(None, len(permutation))
    shapes = [shape for shape in op.input_shapes if shape is not None]
    for place, sizes in enumerate(zip(*shapes, strict=False)):
        if place != axis and len({size for size in sizes if isinstance(size, int)}) > 1:
            raise RemapError(f"{op}: its operands have other sizes along axis {place}")
    return {"axis": permutation.index(axis)}


def moved_axes(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the attribute ``axes``; one that is missing or empty stays so."""
    axes = op.axes(len(permutation))
    return {"axes": tuple(map(permutation.index, axes))} if axes else {}


def mean_variance(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the attribute ``axes``, by default all but axis 1 of four."""
    rank, axes = len(permutation), op.integers("axes") or (0, 2, 3)
    if axes == (0, 2, 3) and rank < 4:  # which runtimes take, and ONNX does not define
        raise RemapError(f"{op}: its axes are those of four by default, and it has {rank}")
    return {"axes": tuple(map(permutation.index, op.axes(rank) or axes))}


def flattened_softmax(op: Op, permutation: Permutation, default: int = 1) -> Mapping[str, Any]:
    """Keep all axes from ``axis`` on at the end: before opset 13 they are one."""
    rank = len(permutation)
    start = _start(op, rank, default)
    if set(permutation[start:]) != set(range(start, rank)):
        raise RemapError(
            f"{op}: before opset 13 it takes axes {start} to {rank - 1} for one; "
            "they must stay behind the others"
        )
    return {}


def flattened_hardmax(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep all axes from ``axis`` on in place: the first of equal elements is taken."""
    start = _start(op, len(permutation))
    if permutation[start:] != tuple(range(start, len(permutation))):
        raise RemapError(
            f"{op}: before opset 13 it looks for the first of the largest along axes {start} to "
            f"{len(permutation) - 1} as one; they must stay in order"
        )
    return {}


def _start(op: Op, rank: int, default: int = 1) -> int:
    return rank if op.integer("axis", default) == rank else op.axis(default, rank)


def normalised_tail(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Keep all axes from ``axis`` on at the end; scale and bias take their new order."""
    rank = len(permutation)
    axis = op.axis(-1, rank)
    if set(permutation[axis:]) != set(range(axis, rank)):
        raise RemapError(
            f"{op}: it normalises axes {axis} to {rank - 1}; they must stay behind the others"
        )
    tail = tuple(i - axis for i in permutation[axis:])
    inputs: list[Permutation | None] = [permutation]
    for n in range(1, len(op.inputs)):
        of = op.rank(n)
        if op.has(n) and of is None and not is_identity(permutation):
            raise RemapError(f"{op}: the rank of input {n} is unknown")
        whole = permutation if of is not None and of > len(tail) else tail  # a scale of more axes
        inputs.append(None if of is None else fitted(whole, of))
    return Remapped({}, tuple(inputs))


def kept_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return which axes a reduction keeps."""
    rank = op.rank(0)
    if rank is None:
        return (None,) * len(op.outputs)
    gone = op.axes(rank)
    if gone is None and op.has(1):
        return (tuple(range(rank)) if op.integer("keepdims", 1) else None,)
    if not gone:
        gone = () if op.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    return (_all_but(op, rank, gone),)


def kept_but_one(op: Op) -> tuple[Axes | None, ...]:
    """Return which axes ArgMax and ArgMin keep; runtimes take a scalar, too."""
    rank = op.rank(0)
    if not rank:
        return (None if rank is None else (),)
    return (_all_but(op, rank, (op.axis(0, rank),)),)


def _all_but(op: Op, rank: int, gone: tuple[int, ...]) -> Axes:
    return tuple(i for i in range(rank) if op.integer("keepdims", 1) or i not in gone)


def pad(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Permute the pads of both ends, or the axes that they are for."""
    if op.has(3) and "axes" not in op.attributes:
        raise RemapError(f"{op}: its axes are known at run time only")
    if (axes := moved_axes(op, permutation)) or op.integers("axes") == ():
        return axes
    pads, rank = op.integers("pads"), len(permutation)
    if pads is None and op.has(1):
        return _with_entries(op, 1, (*permutation, *(rank + axis for axis in permutation)))
    if pads is None or len(pads) != 2 * rank:
        raise RemapError(f"{op}: its pads must be two for each of {rank} axes")
    return {"pads": permuted(pads[:rank], permutation) + permuted(pads[rank:], permutation)}


def cut(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axes of a Slice, by default the first ones."""
    if (axes := moved_axes(op, permutation)) or op.integers("axes") == ():
        return axes
    starts, given = op.integers("starts"), op.shape(1)
    count = len(starts) if starts is not None else given[0] if given else None
    if not isinstance(count, int) or count > len(permutation):
        raise RemapError(f"{op}: it is not known how many axes it cuts")
    return {"axes": tuple(map(permutation.index, range(count)))}


def tile(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Permute the numbers of repeats."""
    if "repeats" not in op.attributes:
        return _with_entries(op, 1, permutation)
    return {"repeats": permuted(_of_each(op, "repeats", len(permutation)), permutation)}


def expand(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Permute the shape to broadcast to, the operand with axes of 1 in front."""
    shape, rank = op.integers("shape"), op.rank(0)
    inputs = (None if rank is None else fitted(permutation, rank),) + (None,) * (len(op.inputs) - 1)
    if shape is None:
        found = _with_entries(op, 1, permutation)
        return replace(found, inputs=inputs)
    full = (1,) * (len(permutation) - len(shape)) + shape
    return Remapped({"shape": permuted(full, permutation)}, inputs)


def expanded_rank(op: Op) -> int | None:
    """Return the rank of what Expand makes."""
    shape, rank = op.integers("shape"), op.rank(0)
    count = _size(op, 1) if shape is None else len(shape)
    return None if rank is None or count is None else max(rank, count)


def shape_of(op: Op, permutation: Permutation) -> Remapped:
    """Pick the entries of a Shape in the order in which they were.

    Those that follow each other need no Gather where a Shape may start and end anywhere.
    """
    rank = len(permutation)
    start, end = op.integer("start", 0), op.integer("end", rank)
    picked = tuple(permutation.index(axis) for axis in range(rank)[slice(start, end)])
    if op.opset < SHAPE_SLICED:
        return Remapped({}, (permutation,), (None,), {1: picked})
    if picked and picked == tuple(range(picked[0], picked[0] + len(picked))):
        return Remapped({"start": picked[0], "end": picked[-1] + 1}, (permutation,), (None,))
    whole = {"start": 0, "end": rank} if {"start", "end"} & set(op.attributes) else {}
    return Remapped(whole, (permutation,), (None,), {1: picked})


SHAPE_SLICED = 15
"""The version of the operator set since which Shape may start and end at any axis."""


def filled_shape(op: Op, permutation: Permutation) -> Remapped:
    """Permute the shape of what ConstantOfShape makes."""
    return Remapped({}, (None,), (permutation,), {0: permutation})


def filled_rank(op: Op) -> int | None:
    """Return the rank of what ConstantOfShape makes."""
    return _size(op, 0)


def _size(op: Op, n: int) -> int | None:
    """Return the number of entries of a vector, None if it is not known."""
    shape = op.shape(n)
    size = shape[0] if shape is not None and len(shape) == 1 else None
    return size if isinstance(size, int) else None


def _with_entries(op: Op, n: int, indices: tuple[int, ...]) -> Remapped:
    """Return the op with other entries of a vector that is known at run time only."""
    if _size(op, n) not in (None, len(indices)):
        raise RemapError(f"{op}: input {n} must be a vector of {len(indices)} entries")
    return Remapped(entries={n: indices})


def crop(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Permute the shape of CenterCropPad, or the axes that it is for."""
    if axes := moved_axes(op, permutation):
        return axes
    if "shape" not in op.attributes:
        return _with_entries(op, 1, permutation)
    return {"shape": permuted(_of_each(op, "shape", len(permutation)), permutation)}


def reverse_sequence(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move both axes."""
    rank = len(permutation)
    batch, time = op.axis(1, rank, "batch_axis"), op.axis(0, rank, "time_axis")
    if {permutation.index(batch), permutation.index(time)} != {0, 1}:
        raise RemapError(f"{op}: batch and time must be the first two axes")
    return {"batch_axis": permutation.index(batch), "time_axis": permutation.index(time)}


def triangle(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the last two axes of Trilu; where they change places, so do upper and lower."""
    rank = len(permutation)
    if permutation[-2:] == (rank - 2, rank - 1):
        return {}
    if permutation[-2:] != (rank - 1, rank - 2):
        raise RemapError(f"{op}: the last two axes must stay the last two")
    if op.has(1) and "k" not in op.attributes:
        raise RemapError(f"{op}: its k are known at run time only")
    return {"upper": 1 - op.integer("upper", 1), "k": min(-op.integer("k", 0), 2**63 - 1)}


def _of_each(op: Op, name: str, rank: int) -> tuple[int, ...]:
    values = op.integers(name)
    if values is None or len(values) != rank:
        raise RemapError(f"{op}: its {name} must be one for each of {rank} axes")
    return values


def places_shape(op: Op, shape: Shape) -> Shape:
    """Return the shape of the places of non-zeros: runtimes take a scalar for a vector."""
    return (max(len(shape), 1), None)


def counted_shape(op: Op, shape: Shape) -> Shape:
    """Return the shape of a Range; how rounding changes the number of its elements is not known."""
    return (None,)


LARGEST = (2**31 - 1, 2**63 - 1)
"""Ends of slices that runtimes take for the end of an axis, backwards too."""


def sliced_shape(op: Op, shape: Shape) -> Shape | None:
    """Return what is known of the shape of a Slice that runs back to the largest numbers."""
    ends, steps = op.integers("ends") or (), op.integers("steps") or ()
    if not any(end in LARGEST and step < 0 for end, step in zip(ends, steps, strict=False)):
        return None
    axes = op.axes(len(shape)) or tuple(range(len(ends)))
    return tuple(None if axis in axes else size for axis, size in enumerate(shape))


def framed_shape(op: Op, shape: Shape) -> Shape | None:
    """Return what is known of the shape of an STFT with defaults, which ONNX takes for others."""
    return None if "onesided" in op.attributes else (shape[0], None, None, 2)


def fixed_axes(*axes: int | None) -> Follow:
    """Return a function that tells that the result has these axes, whatever the op."""

    def fixed(op: Op) -> tuple[Axes | None, ...]:
        return (axes,)

    return fixed


def gather(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis; what the indices give comes out in its place."""
    if op.rank(1) is None:
        raise RemapError(f"{op}: the rank of its indices is unknown")
    return axis_rule(0)(op, permutation)


def gathered_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the data's axes, the axes of the indices in place of the one gathered along."""
    rank, indices = op.rank(0), op.rank(1)
    if rank is None or indices is None:
        return (None,)
    axis = op.axis(0, rank)
    return ((*range(axis), *(axis,) * indices, *range(axis + 1, rank)),)


def one_hot_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the axes of the indices, and between them the new one."""
    rank = op.rank(0)
    if rank is None:
        return (None,)
    axis = op.axis(-1, rank + 1)
    return ((*range(axis), None, *range(axis, rank)),)


def compress(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis; without one, elements are taken in order."""
    if "axis" not in op.attributes:
        raise RemapError(f"{op}: without an axis it takes elements in their order")
    return axis_rule(None)(op, permutation)


def compressed_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return all axes, or with no axis to compress the only one that is left, a new one."""
    rank = op.rank(0)
    if "axis" not in op.attributes:
        return ((None,),)
    return (None if rank is None else tuple(range(rank)),)


def _depth(op: Op) -> int | None:
    """Return how many leading axes of the data GatherND and ScatterND find by index."""
    shape = op.shape(1)
    depth = shape[-1] if shape else None
    return depth + op.integer("batch_dims", 0) if isinstance(depth, int) else None


def _kept_head(op: Op, permutation: Permutation) -> int:
    """Return the number of axes that stay in front, or refuse."""
    depth = _depth(op)
    if depth is None:
        raise RemapError(f"{op}: the size of the last axis of its indices is unknown")
    if not is_identity(permutation[:depth]):
        raise RemapError(f"{op}: its indices count along the first {depth} axes; these must stay")
    return depth


def gather_nd(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the axes that indices count along in front; the others move."""
    _kept_head(op, permutation)
    return {}


def gathered_nd_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the axes of the indices but the last, and those data axes that are not found."""
    rank, indices, depth = op.rank(0), op.rank(1), _depth(op)
    if rank is None or indices is None or depth is None:
        return (None,)
    batch = op.integer("batch_dims", 0)
    front = (*range(batch), *(None,) * (indices - 1 - batch))
    return ((*front, *range(depth, rank)),)


MOST_INDEXED = 720
"""Orders of data and indices that are tried together; of more, data or both stay as they are."""


def index_orders(op: Op) -> Iterator[Remapped]:
    """Yield a Gather or GatherND whose indices come in other orders, and so does the result."""
    rank, indices = op.rank(0), op.rank(1)
    depth = _depth(op) if op.type == "GatherND" else 0
    if rank is None or indices is None or depth is None or depth > rank:
        return
    axis = None if op.type == "GatherND" else op.axis(0, rank)
    free = range(op.integer("batch_dims", 0), indices - (axis is None))
    if factorial(max(0, len(free))) > MOST_INDEXED:
        return
    tails: Iterable[Permutation] = permutations(range(depth, rank))
    if factorial(rank - depth) * factorial(max(0, len(free))) > MOST_INDEXED:
        tails = [tuple(range(depth, rank))]
    for tail, moved in product(tails, permutations(free)):
        order = (*range(free.start), *moved, *range(free.stop, indices))
        if is_identity(order):
            continue
        if axis is None:
            place, out = {}, (*order[:-1], *(a - depth + indices - 1 for a in tail))
        else:
            rows: list[Sequence[int]] = [[a + (indices - 1) * (a > axis)] for a in tail]
            rows[tail.index(axis)] = [axis + i for i in order]
            place, out = {"axis": tail.index(axis)}, tuple(chain(*rows))
        yield Remapped({**op.attributes, **place}, ((*range(depth), *tail), order), (out,))


def cached(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis of the sequence; the batch stays in front."""
    if permutation[0] != 0:
        raise RemapError(f"{op}: its first axis is the batch, and must stay there")
    return axis_rule(-2)(op, permutation)


def scatter_nd(op: Op, permutation: Permutation) -> Remapped:
    """Keep the axes that indices count along in front; the others move, of updates too."""
    rank, indices, depth = len(permutation), op.rank(1), _kept_head(op, permutation)
    if indices is None:
        raise RemapError(f"{op}: the rank of its indices is unknown")
    front = indices - 1  # axes of the updates that are the indices'
    updates = (*range(front), *(i - depth + front for i in permutation[depth:]))
    return Remapped({}, (permutation, None, fitted(updates, front + rank - depth)))


def unchanged(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Change no attribute."""
    return {}


def with_bias(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the last axis, which a bias is added along, in its place."""
    if op.has(1) and permutation[-1] != len(permutation) - 1:
        raise RemapError(f"{op}: its bias is of the last axis, which must stay last")
    return {}


def dropout(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Change nothing, unless elements are dropped at random: others would be."""
    if op.has(2) and op.integer("training_mode", 1):
        raise RemapError(f"{op}: in training it drops elements by their order")
    return {}


def scaled_axis(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Move the axis that scales are given along; scales of blocks move with the data."""
    rank, scale = len(permutation), op.rank(1)
    if scale is None:
        raise RemapError(f"{op}: the rank of its scale is unknown")
    moved = axis_rule(1)
    if scale > 1:
        every = tuple(permutation if op.has(n) else None for n in range(len(op.inputs)))
        return Remapped(moved(op, permutation), every)
    if scale == 0 or not -rank <= op.integer("axis", 1) < rank:
        return {}  # one scale for all: the axis is ignored
    return moved(op, permutation)


def with_scalars(op: Op) -> tuple[Axes | None, ...]:
    """Return that the first result has all axes, and the others, a scale and a zero point, none."""
    rank = op.rank(0)
    return (None if rank is None else tuple(range(rank)), (), ())[: len(op.outputs)]


def softmax_of_opset(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis as in the version of the standard that the op follows."""
    if op.integer("opset", 1) >= SINGLE_AXIS:
        return axis_rule(-1)(op, permutation)
    return flattened_softmax(op, permutation, -1)


SINGLE_AXIS = 13
"""The version of the operator set since which Softmax is along one axis."""


def quantised_concat(op: Op, permutation: Permutation) -> Remapped:
    """Move the axis; tensors stand behind the result's scale and zero point, each with its own."""
    axis = permutation.index(op.axis(None, len(permutation)))
    inputs = (permutation if n >= 2 and n % 3 == 2 else None for n in range(len(op.inputs)))
    return Remapped({"axis": axis}, tuple(inputs))


def skip_normalisation(op: Op, permutation: Permutation) -> Remapped:
    """Keep the last axis in its place; both operands have the same shape."""
    if permutation[-1] != len(permutation) - 1:
        raise RemapError(f"{op}: it normalises the last axis, which must stay last")
    if op.shape(0) != op.shape(1):
        raise RemapError(f"{op}: its operands have other shapes")
    if any(op.outputs[1:3]):
        raise RemapError(f"{op}: its mean and variance are asked for")
    inputs = (permutation, permutation, *(None for _ in op.inputs[2:]))
    outputs = (None if n in (1, 2) else permutation for n in range(len(op.outputs)))
    return Remapped({}, inputs, tuple(outputs))
