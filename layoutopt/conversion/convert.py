"""Choose layouts of least cost for a graph, with proof."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from layoutopt.conversion.candidates import Choices, choices
from layoutopt.conversion.costs import NO_TIMES, Costs, Pair, measured, parse_objective
from layoutopt.conversion.costs import costs as weights_of
from layoutopt.conversion.explain import remaining
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.labelling import Labelling, labelling
from layoutopt.conversion.modes import ModeTable
from layoutopt.conversion.orders import has_parts
from layoutopt.conversion.result import Conversion
from layoutopt.conversion.rewrite import Rewritten, rewrite
from layoutopt.conversion.tally import tally
from layoutopt.conversion.times import Times
from layoutopt.conversion.values import Values, transposition, values_of
from layoutopt.errors import InputError, InternalError
from layoutopt.limits import Limits
from layoutopt.pbqp.problem import Answer
from layoutopt.pbqp.solve import solve_pbqp
from layoutopt.requirements.costs import OpCosts
from layoutopt.requirements.requirements import Requirements


def convert_graph(
    graph: ConversionGraph,
    *,
    desired: Requirements | None = None,
    costs: OpCosts | None = None,
    objective: str = "bytes",
    free_io: bool = False,
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
        ``"bytes"`` that transforms move, their ``"count"``, or both in order: ``"bytes,count"``,
        ``"count,bytes"``.  With ``costs``, ``"time"`` in place of one of these, or alone.
    free_io
        Whether inputs and outputs may come in other layouts.
    limits
        When to stop.

    Raises
    ------
    InputError
        If the objective is another, or a desired layout cannot be had by permuting whole axes.
    """
    names = parse_objective(objective, costs is not None)
    times = costs or NO_TIMES
    clock = _Clock()
    with clock.phase("modes"), _no_collection():
        table = ModeTable(desired, Times(graph, costs) if costs else None)
        values, every = _choices(graph, table, free_io)
    with clock.phase("problem"), _no_collection():
        weights, problem = _problem(graph, values, every, names, free_io, times)
    with clock.phase("solve"):
        answer = solve_pbqp(problem.problem, limits or Limits(), problem.start)
    with clock.phase("rewrite"), _no_collection():
        written = _rewritten(graph, values, every, problem, answer, free_io)
    with clock.phase("check"):
        before, after = tally(graph), tally(written.graph, written.relaid)
        found = measured(after, names, times, Times(written.graph, times).total())
        solved = weights.split((answer.objective or 0) + problem.constant)
        _check(graph, found, solved, None if desired or costs else measured(before, names, times))
    return Conversion(
        graph=written.graph,
        relaid=written.relaid,
        freed=written.freed,
        objectives=names,
        objective=found,
        bound=weights.split((answer.bound or 0) + problem.constant),
        stopped=answer.stopped,
        seconds=clock.seconds,
        before=before,
        after=after,
        explain=partial(
            remaining,
            graph,
            written.graph,
            values,
            written.moved,
            frozenset(after.by_op),
            _single(every),
        ),
    )


def _single(every: list[Choices]) -> frozenset[str]:
    """Return the names of ops that have no choice."""
    return frozenset(one.op.name for one in every if len(one.rows) == 1)


def _check(graph: ConversionGraph, found: Pair, solved: Pair, before: Pair | None) -> None:
    """Hold what the new graph costs against what the solver says, and what it cost before."""
    if found != solved:
        raise InternalError(f"graph {graph.name!r}: transforms cost {found}, solved as {solved}")
    if before is not None and found > before:
        raise InternalError(f"graph {graph.name!r}: transforms cost {found}, before {before}")


def _choices(
    graph: ConversionGraph, table: ModeTable, free_io: bool
) -> tuple[Values, list[Choices]]:
    values = values_of(graph)
    ops = [(op, table.of(op)) for op in graph.ops if transposition(op) is None]
    inputs = [name for name, tensor in graph.tensors.items() if tensor.kind == "input"]
    whole = graph.outputs if free_io else []
    return values, choices(values, ops, [*inputs, *graph.outputs], whole)


def _problem(
    graph: ConversionGraph,
    values: Values,
    every: list[Choices],
    names: tuple[str, ...],
    free_io: bool,
    times: OpCosts,
) -> tuple[Costs, Labelling]:
    kinds = {"constant", "input"} if free_io else {"constant"}
    free = [number for number, value in enumerate(values.every) if value.kind in kinds]
    rows = [row for one in every for row in one.rows.values()]
    needs = {need for row in rows for side in (row.takes, row.gives) for need in side}
    kept = _in_parts(graph, values, every) if free_io else frozenset(graph.outputs)
    forced = [values.written(name) for name in graph.outputs if name in kept]
    sizes = [values.every[v].bytes for v, _ in needs.union(forced)]
    weights = weights_of(names, sizes, times, [[m.time for m in one.modes.every] for one in every])
    try:
        return weights, labelling(values, every, weights, free, forced)
    except InputError as error:
        what = f"graph {graph.name!r}, objective {','.join(names)}"
        raise InputError(f"{what}: {error.reason}; one objective needs smaller numbers") from None


def _rewritten(
    graph: ConversionGraph,
    values: Values,
    every: list[Choices],
    problem: Labelling,
    answer: Answer,
    free_io: bool,
) -> Rewritten:
    assert answer.labelling is not None
    numbers = problem.modes(every, answer.labelling)
    orders = problem.orders(answer.labelling)
    kept = _in_parts(graph, values, every) if free_io else frozenset(graph.outputs)
    return rewrite(graph, values, every, numbers, orders, kept)


def _in_parts(graph: ConversionGraph, values: Values, every: list[Choices]) -> frozenset[str]:
    """Return the outputs that are required in parts of axes: these are not freed."""
    found = {
        number
        for one in every
        for row in one.rows.values()
        for number, order in row.gives
        if has_parts(order)
    }
    return frozenset(name for name in graph.outputs if values.number[name] in found)


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


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin
