"""Choose layouts of least cost for a graph, with proof, and say why transforms remain."""

from __future__ import annotations

import gc
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from layoutopt.base.entries import Takes, entries
from layoutopt.base.errors import InputError, InternalError, OptionError
from layoutopt.base.limits import Limits, Stopped
from layoutopt.conversion.candidates import ModeRow, choices
from layoutopt.conversion.carried import carried
from layoutopt.conversion.cost_table import (
    NO_TIMES,
    Amounts,
    OpCosts,
    OpTimes,
    measured,
    parse_objective,
    tally,
)
from layoutopt.conversion.cost_table import costs as costs_of
from layoutopt.conversion.desired import Desired
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.heuristics import completed, labels_of
from layoutopt.conversion.labelling import LabellingBuilder, proved, stated
from layoutopt.conversion.modes import Mode, ModeTable, as_written, joined, orders_of_many
from layoutopt.conversion.required import required
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.result import Conversion, PhaseTimes, Remaining, StatedProblem, Tally
from layoutopt.conversion.rewrite import MovedValue, RewrittenGraph
from layoutopt.conversion.rules.bodies import OpPart, parts
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.registry import computes_along_axes, written_layout
from layoutopt.conversion.values import Value, Values, transposition, values_of
from layoutopt.layout.factors import Order, has_factors, items_of, names_of
from layoutopt.layout.layout import ANY, Layout
from layoutopt.network.network import CostAnswer
from layoutopt.network.problem import IntArray


def convert_graph(
    graph: ConversionGraph,
    *,
    desired: Requirements | None = None,
    costs: OpCosts | None = None,
    objective: str = "bytes",
    free_io: bool = False,
    microsoft: bool = False,
    solver: str = "auto",
    written: Collection[str] = (),
    limits: Limits | None = None,
) -> Conversion:
    """Return a graph that computes the same, with transforms of least cost.

    See docs/conversion.md for what is minimised.

    Parameters
    ----------
    graph
        The graph; it is not changed.
    desired
        The layouts in which ops must run, those of a backend for example.  None: as they are
        written.
    costs
        What ops take in each layout, which are the layouts that they may run in, and what
        transforms take.
    objective
        ``"bytes"`` that transforms move, their ``"count"``, ops ``"changed"`` although they compute
        along axes, with ``costs`` ``"time"``; or several in order, as in ``"count,changed,bytes"``.
    free_io
        Whether inputs and outputs may come in other layouts.
    microsoft
        Whether products of matrices may become FusedMatMul, and a QLinearConv one with channels
        last, ops of onnxruntime alone.
    solver
        ``"auto"`` proves that nothing is better.  Heuristics prove nothing: ``"forward"``,
        ``"push-through"``, ``"one-layout"``, ``"chains"`` (:mod:`.heuristics`), and ``"pbqp"``.
    written
        Names of ops that run as they are written, whatever is required of them.
    limits
        When to stop.

    Raises
    ------
    InputError
        If objective or solver is another, or ops cannot run in a desired layout.
    """
    names = parse_objective(objective, costs is not None)
    if solver not in SOLVERS:
        raise OptionError(f"unknown solver {solver!r}; known: {', '.join(SOLVERS)}")
    run = _Run(graph, desired, costs, names, free_io, microsoft, frozenset(written))
    answer = run.answer(solver, limits or Limits())
    return run.conversion(answer, _SOLVERS[solver].proves)


def unconverted(
    graph: ConversionGraph,
    objectives: tuple[str, ...],
    costs: OpCosts | None,
    why: str,
    tallied: Tally | None = None,
    stopped: Stopped = Stopped.FINISHED,
) -> Conversion:
    """Return a conversion that leaves a graph as it is given, and proves nothing.

    ``why`` says why its transforms are there, ``tallied`` what they cost if that is known already,
    ``stopped`` why nothing is proved.
    """
    tallied = tally(graph) if tallied is None else tallied
    times = OpTimes(graph, costs).total() if costs else 0
    read = {op.name: op.inputs[0] for op in graph.ops if op.inputs}
    lines = [
        Remaining(name, read.get(name, ""), "", "", size, "", (), why)
        for name, size in tallied.by_op.items()
    ]

    def state() -> StatedProblem:
        raise InputError(f"graph {graph.name!r}: it is left as it is given; nothing is proved")

    return Conversion(
        graph=graph,
        relaid={},
        freed={},
        objectives=objectives,
        objective=measured(tallied, objectives, costs or NO_TIMES, times),
        bound=(0,) * len(objectives),
        stopped=stopped,
        seconds={},
        before=tallied,
        after=tallied,
        explain=partial(tuple, lines),
        state=state,
    )


def state_graph(
    graph: ConversionGraph,
    *,
    desired: Requirements | None = None,
    costs: OpCosts | None = None,
    objective: str = "bytes",
    free_io: bool = False,
    microsoft: bool = False,
) -> StatedProblem:
    """Return what :func:`convert_graph` chooses from, as plain data, and the graph as it is given.

    Arguments and errors are the same.
    """
    names = parse_objective(objective, costs is not None)
    run = _Run(graph, desired, costs, names, free_io, microsoft)
    return run.stated(run.problem.start)


_SOLVERS = entries(Takes.TABLES, Takes.MODES)

SOLVERS = tuple(_SOLVERS)
"""Names of solvers."""


@dataclass
class _Run:
    """One call of :func:`convert_graph`; the arguments are its own."""

    graph: ConversionGraph
    desired: Requirements | None
    costs: OpCosts | None
    names: tuple[str, ...]
    free_io: bool
    microsoft: bool
    written: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.times, self.clock = self.costs or NO_TIMES, PhaseTimes(time.monotonic())
        with _no_collection():
            self._choose()
            self.clock.end("modes")
            self._state()
            self.clock.end("problem")

    def _choose(self) -> None:
        graph = self.graph
        times = OpTimes(graph, self.costs) if self.costs else None
        layouts = carried(graph) if self.desired is not None else {}
        moves = [(op, transposition(op)) for op in graph.ops]
        if isinstance(self.desired, Desired):
            for op, order in moves:
                if order is not None or op.bodies:
                    required(op, self.desired)  # refuses layouts of what runs in none as a whole
        orders = orders_of_many(order for _, order in moves if order is not None)
        table = ModeTable(self.desired, times, self.written, self.microsoft, layouts, orders)
        self.values = values_of(graph)
        others = (op for op, order in moves if order is None)
        self.parts: list[OpPart] = [part for op in others for part in parts(op)]
        ops = [(part.op, table.of(part.op)) for part in self.parts]
        inputs = [name for name, tensor in graph.tensors.items() if tensor.kind == "input"]
        self.every = choices(self.values, ops, [*inputs, *graph.outputs])

    def _state(self) -> None:
        values, every = self.values, self.every
        rows = [row for one in every for row in one.rows.values()]
        needs = {need for row in rows for side in (row.takes, row.gives) for need in side}
        self.free = self._freed(rows) if self.free_io else {}
        forced = list(map(values.written, self._wanted()))
        moves = [values.every[v].move for v, _ in needs.union(forced, self.free.items())]
        prices = [set(map(one.price, one.rows)) for one in every]
        self.weights = costs_of(self.names, moves, self.times, prices)
        builder = LabellingBuilder(values, every, self.weights, self.free, forced)
        self.problem = builder.labelling()

    def _freed(self, rows: Sequence[ModeRow]) -> dict[int, Order]:
        """Return the values whose order is chosen, each in that in which it is written.

        They are inputs, and outputs that ops give in parts; any other output is given back in
        whichever order it comes.
        """
        inputs = [value.root for value in self.values.every if value.kind == "input"]
        parts = {v for row in rows for v, order in row.gives if has_factors(order)}
        ends = [name for name in self.graph.outputs if self.values.number[name] in parts]
        return dict(map(self.values.written, (*inputs, *ends)))

    def stated(self, labels: IntArray | None) -> StatedProblem:
        """Return the problem as plain data, and what is chosen."""
        assert labels is not None
        modes, orders = self.problem.modes(labels), self.problem.orders(labels)
        wanted = self._wanted()
        return stated(self.values, self.every, self.weights, self.free, wanted, modes, orders)

    def _wanted(self) -> list[str]:
        """Return the outputs that are wanted as they are written, and are no constants."""
        names = [] if self.free_io else self.graph.outputs
        return [name for name in names if self.values.of(name)[0].kind != "constant"]

    def answer(self, solver: str, limits: Limits) -> CostAnswer:
        """Choose; of a heuristic it is only known that nothing costs less than nothing.

        Where it leaves more than the given graph has, the graph stays as it is given.
        """
        stated = self.problem
        entry = _SOLVERS[solver]
        if entry.proves:

            def first(cost: float) -> float:
                return self._objective(int(cost))[0]

            # a graph takes about as long to write down as to state, and half of it again
            early = limits.saving(1.5 * (time.monotonic() - limits.started))
            begin = self._standard(early) if self.microsoft else stated.start
            return proved(stated, begin, early.restated(first, first).steady("min"))
        if entry.takes is Takes.TABLES:
            labels = entry.load()(stated.problem, limits).labelling
        else:
            labels = np.array(labels_of(stated, entry.load()(stated)), np.int64)
        labels = self._unless_worse(labels)
        return CostAnswer(labelling=labels, objective=stated.cost(labels), bound=-stated.constant)

    def _standard(self, limits: Limits) -> IntArray:
        """Return the best labels without onnxruntime's own ops, which are found much sooner."""
        standard, stated = replace(self, microsoft=False), self.problem
        labels = standard.answer("auto", limits.within(limits.left / 2).partial()).labelling
        assert labels is not None
        modes = zip(standard.every, standard.problem.modes(labels), strict=True)
        found = completed(stated, [one.rows[number] for one, number in modes])
        return self._unless_worse(np.array(labels_of(stated, found), np.int64))

    def _unless_worse(self, labels: IntArray | None) -> IntArray:
        """Return labels, or those of the given graph if these cost less."""
        given = self.problem.cost(self.problem.start)
        worth = None if labels is None else self.problem.cost(labels)
        if labels is None or worth is None or (given is not None and given < worth):
            return self.problem.start
        return labels

    def _objective(self, cost: int | None) -> Amounts:
        """Return the value of each objective by what a labelling costs; a bound is at least 0."""
        return self.weights.split(max((cost or 0) + self.problem.constant, 0))

    def conversion(self, answer: CostAnswer, exact: bool) -> Conversion:
        """Write the graph down, and check what it costs."""
        assert answer.labelling is not None
        self.clock.end("solve")
        numbers = self.problem.modes(answer.labelling)
        modes = [one.mode(number) for one, number in zip(self.every, numbers, strict=True)]
        with _no_collection():
            written = self._rewritten(modes, self.problem.orders(answer.labelling))
        self.clock.end("rewrite")
        before = tally(self.graph)
        after = tally(written.new, written.padding, written.narrow)
        ops = OpTimes(written.new, self.times).total()
        changed = self._changed(modes)
        along_axes = {op.name for op in changed if computes_along_axes(op)}
        found = measured(after, self.names, self.times, ops, len(along_axes))
        what = f"graph {self.graph.name!r}: transforms cost {found}"
        if found != (solved := self._objective(answer.objective)):
            raise InternalError(f"{what}, solved as {solved}")
        given = measured(before, self.names, self.times)
        if exact and self.desired is None and self.costs is None and found > given:
            raise InternalError(f"{what}, before {given}")
        self.clock.end("check")
        return Conversion(
            graph=written.new,
            relaid=written.relaid,
            freed=written.freed,
            objectives=self.names,
            objective=found,
            bound=self._objective(answer.bound),
            stopped=answer.stopped,
            seconds=self.clock.seconds,
            before=before,
            after=after,
            explain=partial(
                remaining,
                self.graph,
                written.new,
                self.values,
                written.moved,
                written.padding,
                after.by_op,
                frozenset(one.op.name for one in self.every if len(one.rows) == 1),
            ),
            state=partial(self.stated, answer.labelling),
            changed=frozenset(op.name for op in changed),
        )

    def _changed(self, modes: Sequence[Mode]) -> list[Op]:
        """Return the ops, or parts of them, that do not run as they are written."""
        pairs = zip(self.parts, modes, strict=True)
        return [part.op for part, mode in pairs if mode.orders != as_written(part.op).orders]

    def _rewritten(self, modes: Sequence[Mode], orders: Mapping[int, Order]) -> RewrittenGraph:
        by_owner: dict[str, list[tuple[OpPart, Mode]]] = {}
        for part, mode in zip(self.parts, modes, strict=True):
            by_owner.setdefault(part.owner.name, []).append((part, mode))
        whole = {name: joined(own[0][0].owner, own) for name, own in by_owner.items()}
        return RewrittenGraph(self.graph, self.values, whole, orders, self.free_io)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no garbage in circles: there is none, and to look takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


NAMED = 3
"""How many takers a line names."""


def remaining(
    old: ConversionGraph,
    new: ConversionGraph,
    values: Values,
    moved: Mapping[str, MovedValue],
    padding: Mapping[str, str],
    costly: Mapping[str, int],
    single: Collection[str],
) -> tuple[Remaining, ...]:
    """Return why each transpose of the new graph that moves elements is there.

    ``values`` are those of the old graph, ``moved`` tells what transposes of the new one do, by
    name, ``padding`` the transposes of ops that pad or cut, ``costly`` the bytes of those that move
    elements, ``single`` ops that run in one mode only.
    """
    layouts, places = carried(old), {op.name: n for n, op in enumerate(new.ops)}
    found = []
    for n, op in enumerate(new.ops):
        if op.name in costly and op.name in moved:
            how = moved[op.name]
            letters = _letters(old, values, values.every[how.value], layouts)
            both = n, places.get(padding.get(op.name, ""), n)
            source = values.every[how.value].root
            origin = _origin(new, new.ops[min(both)].inputs[0])
            giver = next(_ends(new, origin, single, behind=False), f"constant {source!r}")
            behind = _ends(new, new.ops[max(both)].outputs[0], single, behind=True)
            takers = tuple(dict.fromkeys(behind)) or ("nobody",)
            forms = ([*items_of(form)] for form in (how.source, how.target))
            before, after = ("".join(names_of(tuple(items), letters)) for items in forms)
            who = ", ".join(takers[:NAMED]) + (", ..." if len(takers) > NAMED else "")
            why = f"{source!r} comes as {before} from {giver}, and {who} takes it as {after}"
            size = costly[op.name]
            found.append(Remaining(op.name, source, before, after, size, giver, takers, why))
    return tuple(found)


def _origin(graph: ConversionGraph, name: str) -> str:
    """Return the tensor that one was made of by reshapes that were added."""
    op = graph.producer(name)
    while op is not None and op.name == f"reshape_{name}":
        name = op.inputs[0]
        op = graph.producer(name)
    return name


def _letters(
    graph: ConversionGraph, values: Values, value: Value, layouts: Mapping[str, Layout]
) -> list[str]:
    """Return a letter for each axis of a value, their numbers if some letters are not known."""
    for name in value.tensors:
        readers = [written_layout(op, n) for op, n in graph.consumers(name)]
        for layout in (layouts[name], *readers):
            found = _by_axis(layout, values.frame[name])
            if found is not None:
                return found
    return [str(axis) for axis in range(len(value.shape))]


def _by_axis(layout: Layout | None, frame: tuple[int, ...]) -> list[str] | None:
    if layout is None or len(layout.dims) != len(frame):
        return None
    found = [""] * len(frame)
    for axis, dim in zip(frame, layout.dims, strict=True):
        found[axis] = dim.name
    return None if ANY in found or len(set(found)) < len(found) else found


def _ends(
    graph: ConversionGraph, name: str, single: Collection[str], *, behind: bool
) -> Iterator[str]:
    """Yield the nearest ops before, or behind, a tensor that have no choice, inputs or outputs.

    If there are none, it is the first op.
    """
    seen, waiting, first, found = {name}, [name], list[str](), False
    for tensor in waiting:
        if behind:
            ops = [op for op, _ in graph.consumers(tensor)]
            end = f"output {tensor!r}" if tensor in graph.outputs else ""
        else:
            maker = graph.producer(tensor)
            ops = [] if maker is None else [maker]
            end = f"input {tensor!r}" if graph.tensors[tensor].kind == "input" else ""
        ends = [end] if end else []
        for op in ops:
            first.append(str(op))
            if op.name in single:
                ends.append(str(op))
            elif transposition(op) is None:
                new = op.outputs if behind else op.inputs
                waiting += [other for other in dict.fromkeys(new) if other and other not in seen]
                seen.update(new)
        found = found or bool(ends)
        yield from ends
    yield from () if found else first[:1]
