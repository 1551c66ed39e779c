"""A schedule carried out by a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Generic, TypeAlias

from layoutopt.errors import InputError
from layoutopt.graphs import ops
from layoutopt.graphs.op import Kind, Shape, UnwindingOp, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.views import Stripes
from layoutopt.program import strided
from layoutopt.program.schedule import Run, Schedule
from layoutopt.program.steps import Know, Place
from layoutopt.program.strided import cut
from layoutopt.program.target import Handle, Target, Views

Box: TypeAlias = tuple[int, int, int]


def viewed(
    graph: GraphStore, target: Views[Handle], wanted: Sequence[int], root: Callable[[int], Handle]
) -> list[Handle]:
    """Return tensors as views of the roots that they come from.

    Parameters
    ----------
    wanted
        Tensor numbers.
    root
        Returns a root tensor (a sink, source, fixed point or barrier output) by number.
        Asked once for each root.
    """
    found: dict[int, Handle] = {}
    todo = list(wanted)
    while todo:
        t = todo[-1]
        producer = graph.producers[t]
        carriers = graph.carriers(producer)
        missing = [c for c in carriers if c not in found]
        if t in found or not missing:
            todo.pop()
        if t in found:
            continue
        if missing:
            todo.extend(missing)
        elif graph.ops[producer].kind is Kind.VIEW:
            inputs = [found[c] for c in carriers]
            shapes = [graph.shapes[c] for c in carriers]
            found[t] = _view(target, graph.ops[producer], inputs, shapes, graph.shapes[t])
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
    """Return the output of a view op, for one tensor per carrier."""
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
    raise TypeError(f"{type(op).__name__} is no view")


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
    """Return the indices of the middle axis of three that nested stripes keep.

    Only slices, reshapes and concats are used.  All whole periods are cut out together, as
    more of the first axis, so that the number of views depends on that of stripes alone.

    Parameters
    ----------
    x, box
        A tensor and its shape, of three axes.
    stripes
        Outermost first: see :mod:`layoutopt.graphs.views`.
    first
        What index 0 is to the outermost stripe.

    Returns
    -------
    tuple
        The tensor, and how many indices of its middle axis are left.
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

    Yields
    ------
    tuple
        Where a run starts, in how many periods it repeats, its length, and what its first
        index is to the next stripe.
    """
    on, off, phase = stripe
    period = on + off
    inside = (first - phase) % period
    head = min(-inside % period, n)  # what index 0 finds of the period that it is in
    whole = (n - head) // period
    tail = head + whole * period
    every = (
        (0, 1, min(head, on - inside), inside),
        (head, whole, on, 0),
        (tail, 1, min(n - tail, on), 0),
    )
    return (run for run in every if run[1] > 0 and run[2] > 0)


METHODS = tuple(name for part in (Target, Views) for name in vars(part) if name[0] != "_")
"""What a target must be able to do."""


def lower(schedule: Schedule, target: Target[Handle]) -> dict[str, Handle]:
    """Carry a schedule out: run the ops, and give every sink its locations.

    Parameters
    ----------
    schedule
        Ops and steps in order: see :func:`~layoutopt.schedule`.
    target
        What they are carried out in: see :class:`~layoutopt.Target`.

    Returns
    -------
    dict
        The sinks by name, as the target created them.

    Raises
    ------
    InputError
        If there is no schedule, if the target lacks a method or gives a barrier another
        number of outputs than it has, or if the schedule was changed by hand so that a
        barrier comes too late.
    """
    if not isinstance(schedule, Schedule):
        raise InputError("lower needs a schedule, as schedule(graph, result) returns it")
    for name in METHODS:
        if not callable(getattr(target, name, None)):
            raise InputError(f"the target has no method {name!r}; needed: {', '.join(METHODS)}")
    state = _State(schedule.graph, target)
    for item in schedule:
        match item:
            case Run():
                target.run(item.op)
            case Place():
                state.place(item)
            case Know():
                state.know(item)
    return {sink.name: state.sink(sink.index) for sink in schedule.graph.sinks()}


class _State(Generic[Handle]):
    """What a target has made so far, by tensor number.

    ``sinks`` are those created; ``roots`` the locations that tensors have of their own: those
    of sources and fixed points, fresh ones of sinks, and those of barriers that are known.
    """

    def __init__(self, graph: GraphStore, target: Target[Handle]) -> None:
        self.graph, self.target = graph, target
        self.sinks: dict[int, Handle] = {}
        self.roots: dict[int, Handle] = {}
        self.ops = {op.id: i for i, op in enumerate(graph.ops)}

    def sink(self, t: int) -> Handle:
        """Return a sink, created if need be."""
        if t not in self.sinks:
            self.sinks[t] = self.target.create(self.graph.tensor_name(t), self.graph.shapes[t])
        return self.sinks[t]

    def place(self, step: Place) -> None:
        """Copy the locations of one piece."""
        origin, sink = self.graph.number(step.piece[0]), self.graph.number(step.sink)
        if self._unknown(origin):
            raise InputError(f"{step}: the barrier is not known yet")
        source, destination = self._own(origin), self.sink(sink)
        before, after = self.graph.shapes[origin], self.graph.shapes[sink]
        for _, start, to, loops in strided.parts(step.piece, size(before), size(after)):
            read = [(extent, stride) for extent, stride, _ in loops]
            written = [(extent, stride) for extent, _, stride in loops]
            self.target.copy(
                strided.view(self.target, source, before, start, read),
                strided.view(self.target, destination, after, to, written),
            )

    def know(self, step: Know) -> None:
        """Let a barrier give its outputs their locations."""
        barrier = self.ops[step.barrier]
        inputs = viewed(self.graph, self.target, self.graph.op_inputs[barrier], self._held)
        outputs = self.graph.op_outputs[barrier]
        shapes = [self.graph.shapes[t] for t in outputs]
        made = self.target.barrier(step.barrier, inputs, shapes)
        if len(made) != len(outputs):
            what = f"{len(made)} tensors for {len(outputs)} outputs"
            raise InputError(f"the target's barrier({step.barrier!r}, ...) gave {what}")
        self.roots.update(zip(outputs, made, strict=True))

    def _held(self, t: int) -> Handle:
        """Return what a root tensor holds so far."""
        sink = self.graph.ops[self.graph.producers[t]].kind is Kind.SINK
        if self._unknown(t) or (sink and t not in self.sinks):
            return self.target.placeholder(self.graph.shapes[t])
        return self.sinks[t] if sink else self._own(t)

    def _unknown(self, t: int) -> bool:
        """Return whether a tensor is an output of a barrier that is not known yet."""
        kind = self.graph.ops[self.graph.producers[t]].kind
        return kind is Kind.BARRIER and t not in self.roots

    def _own(self, t: int) -> Handle:
        """Return the locations that a root tensor has of its own."""
        if t not in self.roots:
            self.roots[t] = self.target.own(self.graph.tensor_name(t), self.graph.shapes[t])
        return self.roots[t]
