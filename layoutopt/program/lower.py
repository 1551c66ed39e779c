"""A schedule carried out by a target."""

from __future__ import annotations

from typing import Generic

from layoutopt.errors import InputError
from layoutopt.graphs.op import Kind, size
from layoutopt.graphs.store import Store
from layoutopt.program import strided
from layoutopt.program.schedule import Run, Schedule
from layoutopt.program.steps import Know, Place
from layoutopt.program.target import Handle, Target, Views
from layoutopt.program.views import viewed

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

    def __init__(self, graph: Store, target: Target[Handle]) -> None:
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
