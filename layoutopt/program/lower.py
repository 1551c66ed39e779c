"""Execution of schedules by a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt, prod
from typing import Generic, TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.base.result import Piece
from layoutopt.graphs import ops
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Kind, Shape, Stripes, UnwindingOp, size
from layoutopt.graphs.store import GraphStore
from layoutopt.program.steps import BarrierReady, Place, Run, Schedule
from layoutopt.program.target import Handle, Target, Views

Loops: TypeAlias = Sequence[tuple[int, int]]
"""``(extent, stride)`` of each loop, strides of any sign."""


@dataclass(frozen=True)
class _Level:
    """A loop of a box: its number, its extent, and its stride without the sign."""

    loop: int
    extent: int
    stride: int


def parts(piece: Piece, origin_size: int, sink_size: int) -> Iterator[Piece]:
    """Split a piece, which sets no element twice, into pieces with nested loops on both sides.

    Origin and sink have so many elements.  No loop has an extent of 1.
    """
    todo: list[Piece] = [(*piece[:3], tuple(loop for loop in piece[3] if loop[0] != 1))]
    while todo:
        origin, start, to, loops = todo.pop()
        bad = obstacle(sink_size, [(n, t) for n, _, t in loops])
        if bad is None:
            bad = obstacle(origin_size, [(n, f) for n, f, _ in loops])
        if bad is None:
            yield origin, start, to, loops
            continue
        n, f, t = loops[bad]
        before, after = loops[:bad], loops[bad + 1 :]
        shorter = ((n - 1, f, t),) if n > 2 else ()
        todo.append((origin, start + (n - 1) * f, to + (n - 1) * t, before + after))
        todo.append((origin, start, to, before + shorter + after))


def obstacle(size: int, loops: Loops) -> int | None:
    """Return the loop to shorten so that a box may become nested; ``None`` if it is nested.

    The tensor has ``size`` elements, and loops have extents of 2 or more.
    """
    return _blocks(size, _levels(loops))[1]


def view(target: Views[Handle], x: Handle, shape: Shape, start: int, loops: Loops) -> Handle:
    """Return the elements of a box as a tensor with a dimension for each loop.

    The box, which begins at ``start`` of the flat tensor, is nested, with extents of 2 or more.
    Dimensions of stride 0 are expanded; the view is not a window then.  Without loops, the shape is
    ``(1,)``.
    """
    levels = _levels(loops)
    blocks, bad = _blocks(prod(shape), levels)
    if bad is not None:
        raise ValueError(f"the box is not nested: loop {bad}")
    current: Shape = (prod(shape),)
    x = x if shape == current else target.reshape(x, current)
    first = start + sum((extent - 1) * stride for extent, stride in loops if stride < 0)
    for level, block in zip(levels, blocks, strict=False):
        reach = (level.extent - 1) * level.stride + block
        inside = max(0, first + reach - current[-1])
        x, current = cut(target, x, current, -1, first - inside, first - inside + reach)
        current = (*current[:-1], reach // block, block)
        x = target.reshape(x, current)
        x, current = _strided_sampled(target, x, current, -2, level.stride // block)
        first = inside
    last = levels[-1] if levels else _Level(0, 1, 1)
    reach = (last.extent - 1) * last.stride + 1
    x, current = cut(target, x, current, -1, first, first + reach)
    x, current = _strided_sampled(target, x, current, -1, last.stride)
    return _in_order(target, x, loops, levels)


def cut(
    target: Views[Handle], x: Handle, shape: Shape, axis: int, low: int, high: int
) -> tuple[Handle, Shape]:
    """Return the indices ``low <= i < high`` of one axis, and the resulting shape."""
    if (low, high) == (0, shape[axis]):
        return x, shape
    lower, upper = [0] * len(shape), list(shape)
    lower[axis], upper[axis] = low, high
    after = tuple(end - start for start, end in zip(lower, upper, strict=True))
    return target.slice(x, tuple(lower), tuple(upper)), after


def _strided_sampled(
    target: Views[Handle], x: Handle, shape: Shape, axis: int, stride: int
) -> tuple[Handle, Shape]:
    """Return every ``stride``-th index of one axis, and the resulting shape."""
    if stride == 1:
        return x, shape
    strides = [1] * len(shape)
    strides[axis] = stride
    after = tuple(-(-n // s) for n, s in zip(shape, strides, strict=True))
    return target.sub_sample(x, tuple(strides)), after


def _in_order(target: Views[Handle], x: Handle, loops: Loops, levels: list[_Level]) -> Handle:
    """Reverse, permute and expand dimensions, from one per level to one per loop."""
    back = tuple(d for d, level in enumerate(levels) if loops[level.loop][1] < 0)
    if back:
        x = target.reverse(x, back)
    order = tuple(sorted(range(len(levels)), key=lambda d: levels[d].loop))
    if order != tuple(range(len(levels))):
        x = target.dim_shuffle(x, order)
    if len(levels) == len(loops):
        return x
    if levels:
        x = target.reshape(x, tuple(extent if stride else 1 for extent, stride in loops))
    return target.expand(x, tuple(extent for extent, _ in loops))


def _levels(loops: Loops) -> list[_Level]:
    """Return the loops by descending stride, without those of stride 0."""
    levels = [_Level(d, n, abs(stride)) for d, (n, stride) in enumerate(loops) if stride]
    return sorted(levels, key=lambda level: -level.stride)


def _blocks(size: int, levels: list[_Level]) -> tuple[list[int], int | None]:
    """Return the blocks' lengths for all loops but the innermost, and a loop that prevents them."""
    span = 1 + sum((level.extent - 1) * level.stride for level in levels)
    found: list[int] = []
    for level, inner in pairwise(levels):
        span -= (level.extent - 1) * level.stride
        if span > level.stride:
            # Loops overlap; the one of smaller extent is split.
            return found, min(level, inner, key=lambda x: x.extent).loop
        block = _block(size - (level.extent - 1) * level.stride, level.stride, span)
        if block is None:
            return found, level.loop
        found.append(block)
        size = block
    return found, None


def _block(room: int, stride: int, span: int) -> int | None:
    """Return the largest divisor of a stride from ``span`` to ``room``, if any."""
    root = isqrt(stride)
    for count in range(-(-stride // room), min(stride // span, root) + 1):
        if stride % count == 0:
            return stride // count
    for block in range(min(room, root), span - 1, -1):
        if stride % block == 0:
            return block
    return None


Box: TypeAlias = tuple[int, int, int]


def viewed(
    graph: GraphStore, target: Views[Handle], wanted: Sequence[int], root: Callable[[int], Handle]
) -> list[Handle]:
    """Return tensors, by number, as views of their root tensors.

    Roots (sinks, sources, fixed points and barriers' outputs) are asked for once each.
    """
    found: dict[int, Handle] = {}
    for t in graph.view_order(wanted):
        op, carriers = graph.op_of(t), graph.carriers(graph.producers[t])
        if op.kind is Kind.VIEW:
            shapes = [graph.shapes[c] for c in carriers]
            found[t] = _view(target, op, [found[c] for c in carriers], shapes, graph.shapes[t])
        else:
            found[t] = root(t)
    return [found[t] for t in wanted]


def _view(
    target: Views[Handle],
    op: UnwindingOp,
    inputs: Sequence[Handle],
    shapes: Sequence[Shape],
    out: Shape,
) -> Handle:
    x, shape = inputs[0], shapes[0]
    match op:
        case ops.Identity() | ops.SumLike():
            return x
        case ops.Reshape() | ops.Flatten() | ops.Squeeze():
            return target.reshape(x, out)
        case ops.DimShuffle():
            return target.dim_shuffle(x, op.permutation)
        case ops.Reverse():
            return target.reverse(x, op.dims)
        case ops.Slice():
            return target.slice(x, op.lower, op.upper)
        case ops.SubSample():
            return target.sub_sample(x, op.strides)
        case ops.SettSample():
            return _sampled(target, x, shape, op.setts)
        case ops.Concat():
            return target.concat(inputs, op.axis)
        case ops.Expand():
            return target.expand(x, out)
    raise TypeError(f"{type(op).__name__} is not a view")


def _sampled(target: Views[Handle], x: Handle, shape: Shape, setts: Sequence[Stripes]) -> Handle:
    """Return the indices that nested stripes keep, one axis after the other."""
    for axis, stripes in enumerate(setts):
        if stripes:
            before, after = shape[:axis], shape[axis + 1 :]
            box = (prod(before), shape[axis], prod(after))
            x, kept = striped(target, target.reshape(x, box), box, stripes)
            shape = (*before, kept, *after)
            x = target.reshape(x, shape)
    return x


def striped(
    target: Views[Handle], x: Handle, box: Box, stripes: Stripes, first: int = 0
) -> tuple[Handle, int]:
    """Return the indices of the middle axis of three that nested stripes keep, and their number.

    ``box`` is the shape, and ``first`` the position of index 0 in the outermost stripe.  Only
    slices, reshapes and concats are used.  All whole periods are selected together, by moving them
    to the first axis, so that the number of views depends on that of stripes only.
    """
    rows, n, columns = box
    if not stripes:
        return x, n
    period = stripes[0][0] + stripes[0][1]
    parts: list[Handle] = []
    total = 0
    for low, periods, on, start in _runs(n, stripes[0], first):
        if periods == 1:
            part, _ = cut(target, x, box, 1, low, low + on)
        else:
            part, _ = cut(target, x, box, 1, low, low + periods * period)
            whole = (rows * periods, period, columns)
            part, _ = cut(target, target.reshape(part, whole), whole, 1, 0, on)
        part, kept = striped(target, part, (rows * periods, on, columns), stripes[1:], start)
        if periods > 1:
            part = target.reshape(part, (rows, periods * kept, columns))
        if kept:
            parts.append(part)
            total += periods * kept
    if not parts:
        return cut(target, x, box, 1, 0, 0)[0], 0
    return parts[0] if len(parts) == 1 else target.concat(parts, 1), total


def _runs(n: int, stripe: tuple[int, int, int], first: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs that a stripe keeps of the indices ``0 .. n-1``.

    Each is its start, number of periods in which it repeats, its length, and the position of its
    first index in the next stripe.
    """
    on, off, phase = stripe
    period = on + off
    inside = (first - phase) % period
    head = min(-inside % period, n)  # rest of the period that contains index 0
    whole = (n - head) // period
    tail = head + whole * period
    every = (
        (0, 1, min(head, on - inside), inside),
        (head, whole, on, 0),
        (tail, 1, min(n - tail, on), 0),
    )
    return (run for run in every if run[1] > 0 and run[2] > 0)


METHODS = tuple(name for part in (Target, Views) for name in vars(part) if name[0] != "_")
"""Names of the methods of a target."""


def lower(schedule: Schedule, target: Target[Handle]) -> dict[str, Handle]:
    """Execute a schedule: run its ops, and place every sink.

    Parameters
    ----------
    schedule
        Ops and steps in order: see :func:`~layoutopt.schedule`.
    target
        The framework; see :class:`~layoutopt.Target`.

    Returns
    -------
    dict
        The sinks by name, as the target created them.

    Raises
    ------
    InputError
        If the first argument is not a schedule, its layouts are on a tile memory, the target lacks
        a method or returns a wrong number of outputs of a barrier, or a modified schedule violates
        barrier order.
    """
    if not isinstance(schedule, Schedule):
        raise InputError("expected a schedule, as returned by schedule(graph, result)")
    for name in METHODS:
        if not callable(getattr(target, name, None)):
            raise InputError(f"the target has no method {name!r}; required: {', '.join(METHODS)}")
    if any(isinstance(item, Place) and item.piece[0] == TILE for item in schedule):
        raise InputError("layouts on a tile memory are tiles, not locations of tensors")
    state = _State(schedule.graph, target)
    for item in schedule:
        match item:
            case Run():
                target.run(item.op)
            case Place():
                state.place(item)
            case BarrierReady():
                state.know(item)
    return {sink.name: state.sink(sink.index) for sink in schedule.graph.sinks()}


class _State(Generic[Handle]):
    """Values made by a target so far, by tensor number.

    ``sinks`` are created sinks; ``roots`` own locations: those of sources and fixed points,
    fresh ones of sinks, and those of known barriers.
    """

    def __init__(self, graph: GraphStore, target: Target[Handle]) -> None:
        self.graph, self.target = graph, target
        self.sinks: dict[int, Handle] = {}
        self.roots: dict[int, Handle] = {}

    def sink(self, t: int) -> Handle:
        """Return a sink, created at the first call."""
        if t not in self.sinks:
            self.sinks[t] = self.target.create(self.graph.tensor_name(t), self.graph.shapes[t])
        return self.sinks[t]

    def place(self, step: Place) -> None:
        origin, sink = self.graph.number(step.piece[0]), self.graph.number(step.sink)
        if self._unknown(origin):
            raise InputError(f"{step}: the barrier is not known yet")
        source, destination = self._own(origin), self.sink(sink)
        before, after = self.graph.shapes[origin], self.graph.shapes[sink]
        for _, start, to, loops in parts(step.piece, size(before), size(after)):
            read = [(extent, stride) for extent, stride, _ in loops]
            written = [(extent, stride) for extent, _, stride in loops]
            self.target.copy(
                view(self.target, source, before, start, read),
                view(self.target, destination, after, to, written),
            )

    def know(self, step: BarrierReady) -> None:
        barrier = self.graph.op_number(step.barrier)
        inputs = viewed(self.graph, self.target, self.graph.op_inputs[barrier], self._held)
        outputs = self.graph.op_outputs[barrier]
        shapes = [self.graph.shapes[t] for t in outputs]
        made = self.target.barrier(step.barrier, inputs, shapes)
        if len(made) != len(outputs):
            what = f"{len(made)} tensors for {len(outputs)} outputs"
            raise InputError(f"the target's barrier({step.barrier!r}, ...) returned {what}")
        self.roots.update(zip(outputs, made, strict=True))

    def _held(self, t: int) -> Handle:
        """Return the present value of a root tensor."""
        sink = self.graph.op_of(t).kind is Kind.SINK
        if self._unknown(t) or (sink and t not in self.sinks):
            return self.target.placeholder(self.graph.shapes[t])
        return self.sinks[t] if sink else self._own(t)

    def _unknown(self, t: int) -> bool:
        """Return whether a tensor is an output of a barrier that is not yet known."""
        return self.graph.op_of(t).kind is Kind.BARRIER and t not in self.roots

    def _own(self, t: int) -> Handle:
        """Return the own locations of a root tensor."""
        if t not in self.roots:
            self.roots[t] = self.target.own(self.graph.tensor_name(t), self.graph.shapes[t])
        return self.roots[t]
