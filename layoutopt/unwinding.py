"""Unwinding: choose the locations of a graph's sinks so that ValuedPairs earn the most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from layoutopt import __version__
from layoutopt.assignment import Assignment, Beginning, begin, by_name
from layoutopt.check.claims import counts
from layoutopt.check.elements import Evaluation, evaluate, most
from layoutopt.check.occupancy import overfull
from layoutopt.choosing import HEURISTICS, choose
from layoutopt.errors import InputError, InternalError, SizeError
from layoutopt.exact.methods import METHODS
from layoutopt.graphs.hooking import heeded, hooked
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import tiled
from layoutopt.graphs.values import nearest, to_decimal
from layoutopt.heuristics.greedy0 import greedy0
from layoutopt.limits import Limits, Progress, interruptible, limited
from layoutopt.lowered import Lowered
from layoutopt.lowering import lower
from layoutopt.machine.capacitated import fits, place
from layoutopt.machine.simulated import solve_hooked
from layoutopt.problem import IntArray
from layoutopt.result import Result, Stopped, UnwindingResult

SOLVERS = (*METHODS, *HEURISTICS)
"""Names that :func:`unwind` takes."""

START_LIMIT = 10**6
"""Graphs of up to so many elements begin with what ``greedy0`` chooses."""

START_SHARE = 0.2
"""Share of the time that ``greedy0`` may take for that."""

TAIL = 0.2
"""Share of the time that may be kept for what comes after solving."""


def unwind(
    graph: Store,
    solver: str = "auto",
    *,
    fixed: Assignment | None = None,
    start: Assignment | None = None,
    barriers: str | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> UnwindingResult:
    """Choose layouts for a graph's sinks, and prove how good they are.

    Parameters
    ----------
    graph, solver
        The graph.  ``"auto"``: reductions, bounds, search.  ``"cpsat"``, ``"mip"``: the integer
        programme of one of each class.  ``"greedy0"``: a heuristic.
    fixed, start
        Layouts (:data:`~layoutopt.assignment.Assignment`), whole or in part, that are kept (score
        and bound are those of the best rest), or to begin with (the answer is at least as good).
    barriers
        ``"opaque"``: hooks are ignored; the result's graph has none.  ``"simulated"``: they give
        the tiles of barriers' outputs; so they do by default, if there is a tile memory.
    time_limit, gap
        Seconds for the whole call, none by default; relative gap at which to stop, 0 for a proof.
    seed, workers
        Seed of everything random; threads of a search.  With 1, equal calls give equal results.
    progress
        Called with every :class:`~layoutopt.limits.Progress`.

    Returns
    -------
    UnwindingResult
        Checked against :mod:`layoutopt.check`; without layouts if time ran out too early.

    Raises
    ------
    InputError
        If solver, graph, limits or given layouts cannot be used.
    SizeError
        If the graph is too irregular to be solved by classes, and too large for memory.
    SolverError
        If CP-SAT or HiGHS was asked for by name and failed.
    """
    _check_input(graph, solver, start)
    limits = limited(time_limit, gap, seed, workers, progress)
    begun = begin(heeded(graph, barriers), by_name(graph, fixed), by_name(graph, start))
    run = _Run(begun.given.graph, limits, begun)
    with interruptible(limits):
        return run.answer(run.result(solver), solver)


solve = unwind
"""The same, under the name of its command."""


class _Run:
    """One call of :func:`unwind`."""

    def __init__(self, graph: Store, limits: Limits, begun: Beginning) -> None:
        self.graph, self.limits, self.begun = graph, limits, begun
        self.seconds: dict[str, float] = {}
        self.size = counts(graph)

    def result(self, solver: str) -> Result:
        """Return what a solver finds, nothing if time runs out."""
        try:
            return self.heuristic(solver) if solver in HEURISTICS else self.exact(solver)
        except TimeoutError:
            return Result(stopped=self.limits.stopped or Stopped.TIME_LIMIT)
        except MemoryError:
            raise SizeError("the graph does not fit this machine's memory") from None

    def heuristic(self, name: str) -> Result:
        """Return the layouts that a heuristic chooses."""
        with self._phase("solve"):
            layouts = choose(self.graph, name, self.limits, self.begun.given)
        return Result(labelling=layouts)

    def exact(self, name: str) -> Result:
        """Return what an exact method finds; on a tile memory, within its capacity."""
        memory = self.graph.tile_memory
        if memory is None:
            return self._lowered(name)
        lacking = overfull(self.graph)
        if lacking:
            return Result(infeasible=lacking)
        if hooked(self.graph):
            return self._hooked(name)
        bound = None
        if memory.grain == 1 and all(value >= 0 for _, _, value in self.graph.pairs):
            free = self._lowered(name)
            if free.labelling is None or fits(self.graph, free.labelling):
                return free
            bound = free.bound
        if self.begun.given.count:
            raise InputError("fixed layouts on a tile memory whose capacity binds are not solved")
        try:
            with self._phase("place"):
                placed = place(self.graph, self.limits)
        except TimeoutError:  # what is proved without capacity still holds
            return Result(bound=bound, stopped=self.limits.stopped or Stopped.TIME_LIMIT)
        self.size |= placed.size
        return placed.result

    def _hooked(self, name: str) -> Result:
        """Solve a graph whose barriers have hooks."""
        if self.begun.given.count:
            raise InputError("fixed layouts of graphs with barrier hooks are not solved")
        with self._phase("hooks"):
            return solve_hooked(self.graph, self.limits, lambda other: self._other(other, name))

    def _other(self, graph: Store, name: str) -> Result:
        """Solve another graph in the time that is left."""
        run = _Run(graph, self.limits, begin(graph, None, None))
        result = run.exact(name)
        self.seconds |= run.seconds
        self.size = run.size | self.size
        return result

    def _lowered(self, name: str) -> Result:
        """Lower the graph, solve the problem that comes out, and restore layouts."""
        with self._phase("trace"):
            lowered = lower(tiled(self.graph), self.limits, self.begun.given)
        self.size |= lowered.size
        with self._phase("solve"):
            result = self._solve(lowered, name)
        with self._phase("restore"):
            layouts = None if result.labelling is None else lowered.layouts(result.labelling)
        unit, constant = lowered.unit, lowered.constant
        objective, bound = (
            None if x is None else to_decimal(constant + int(x), unit)
            for x in (result.objective, result.bound)
        )
        return replace(result, objective=objective, bound=bound, labelling=layouts)

    def answer(self, result: Result, solver: str) -> UnwindingResult:
        """Check layouts against the specification, and report what they earn."""
        checked, layouts = None, result.labelling
        if layouts is not None:
            self.limits.report("checking")
            with self._phase("check"):
                checked = evaluate(self.graph, layouts)
            _confirm(self.graph, checked, result)
        if self.begun.beats(checked):
            checked, layouts = self.begun.evaluation, self.begun.layouts
        self.seconds["total"] = time.monotonic() - self.limits.started
        return UnwindingResult(
            objective=None if checked is None else checked.score,
            bound=result.bound,
            labelling=layouts,
            stopped=result.stopped,
            infeasible=result.infeasible,
            seconds=self.seconds,
            instance=self.graph.name,
            solver=solver,
            version=__version__,
            seed=self.limits.seed,
            max_score=most(self.graph),
            size=self.size,
            pairs=() if checked is None else checked.pairs,
            order=() if checked is None else checked.order,
            graph=self.graph,
        )

    def _solve(self, lowered: Lowered, name: str) -> Result:
        """Solve the lowered problem, messages in the graph's own unit."""
        limits = self._early().steady()

        def score(x: float) -> float:
            return nearest(lowered.unit * int(x))

        limits = limits.restated(score, score).beside(lowered.constant)
        start = self._start(lowered, limits)
        problem = lowered.problem
        result = METHODS[name](problem, limits, start)
        if result.labelling is None:
            if start is None:
                start = problem.labels + np.arange(problem.nodes)  # everything fresh
            result = replace(result, objective=problem.value(start), labelling=start)
        return result

    def _start(self, lowered: Lowered, limits: Limits) -> IntArray | None:
        """Return what greedy0 chooses, if it is quick enough to ask."""
        if self.begun.start is not None:
            return lowered.labels(self.begun.start)
        if self.size["elements"] > START_LIMIT or not lowered.problem.nodes:
            return None
        try:
            short = limits.within(START_SHARE * limits.left)
            return lowered.labels(greedy0(self.graph, short, self.begun.given))
        except TimeoutError:
            return None

    def _early(self) -> Limits:
        """Return limits that leave time to write layouts down and to check them.

        That takes up to about twice as long as tracing did.
        """
        if self.limits.left == float("inf"):
            return self.limits
        tail = min(2 * self.seconds["trace"], TAIL * self.limits.left)
        return self.limits.within(self.limits.left - tail)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begun


def _check_input(graph: Store, solver: str, start: Assignment | None) -> None:
    if solver not in SOLVERS:
        raise InputError(f"unknown solver {solver!r}; known: {', '.join(SOLVERS)}")
    if start is not None and solver in HEURISTICS:
        raise InputError(f"{solver} begins from nothing; start is for {', '.join(METHODS)}")
    if not graph.ops:
        raise InputError("the graph has no ops")


def _confirm(graph: Store, checked: Evaluation, result: Result) -> None:
    """Stop where solver and specification disagree.

    On a tile memory a location that a solver thinks of as fresh may happen to be another's tile.
    """
    if checked.violations:
        raise InternalError(f"the layouts break a rule: {checked.violations[0]}")
    lucky = graph.tile_memory is not None and (checked.score or 0) > (result.objective or 0)
    if result.objective is not None and checked.score != result.objective and not lucky:
        raise InternalError(f"score {checked.score}, but the solver says {result.objective}")
    if result.bound is not None and checked.score is not None and result.bound < checked.score:
        raise InternalError(f"score {checked.score} above the bound {result.bound}")
