"""Unwinding: choose the locations of a graph's sinks so that ValuedPairs earn the most."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np

from layoutopt import __version__
from layoutopt.base.deadline import LAST_ENDS, LATE, Answer, run_phase
from layoutopt.base.errors import InputError, InternalError, SizeError, SolverError
from layoutopt.base.limits import Limits, Progress, interruptible, limited
from layoutopt.base.numbers import nearest, to_decimal
from layoutopt.base.result import Result, Stopped, UnwindingResult
from layoutopt.check.elements import Evaluation, ceiling, counts, evaluate, most
from layoutopt.check.matching import Layouts
from layoutopt.graphs.locations import check_graph
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import apply_hook_mode, hooked, tiled
from layoutopt.io.instance import known_hash
from layoutopt.lowering.assignment import Assignment, WarmStart, begin, by_name
from layoutopt.lowering.greedy0 import greedy0
from layoutopt.lowering.lower import Lowered, SolvedGraph, lower
from layoutopt.lowering.reserve import START_LIMIT, Reserve
from layoutopt.network.problem import IntArray
from layoutopt.registry import Solver, SolverKind, built_in, find


def assert_consistent(
    graph: GraphStore, checked: Evaluation, result: Result, solver: Solver
) -> None:
    """Stop where solver and specification disagree.

    Raises
    ------
    InternalError, SolverError
        If they do: the latter if the solver is a user's.
    """
    fault = _fault(graph, checked, result)
    if fault and solver.own:
        raise SolverError(f"solver {solver.name!r}: {fault}")
    if fault:
        raise InternalError(fault)


def _fault(graph: GraphStore, checked: Evaluation, result: Result) -> str:
    """Return in what solver and specification disagree, if in anything.

    On a tile memory a location that a solver thinks of as fresh may happen to be another's tile.
    """
    if checked.violations:
        return f"the layouts break a rule: {checked.violations[0]}"
    lucky = graph.tile_memory is not None and (checked.score or 0) > (result.objective or 0)
    if result.objective is not None and checked.score != result.objective and not lucky:
        return f"score {checked.score}, but the solver says {result.objective}"
    if result.bound is not None and checked.score is not None and result.bound < checked.score:
        return f"score {checked.score} above the bound {result.bound}"
    return ""


SOLVERS = built_in()
"""Names that :func:`unwind` takes, apart from users' own."""

START_SHARE = 0.2
"""Share of the time that ``greedy0`` may take for that."""

ENDING = 0.05
"""Share of the time, at least, that is kept for what comes after a search."""

CERTIFYING = 1 / 3
"""Share of the time that is kept for a certificate."""


def unwind(
    graph: GraphStore,
    solver: str = "auto",
    *,
    fixed: Assignment | None = None,
    start: Assignment | None = None,
    barriers: str | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    certificate: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> UnwindingResult:
    """Choose layouts for a graph's sinks, and prove how good they are.

    Parameters
    ----------
    graph, solver
        The graph.  Exact: ``"auto"`` (reductions, bounds, search), ``"cpsat"``, ``"mip"``.
        Heuristics: all others of :data:`SOLVERS`.  Or a name of your own; see ``docs/solvers.md``.
    fixed, start
        Layouts (:data:`~layoutopt.lowering.assignment.Assignment`), whole or in part, that are kept
        (score and bound are those of the best rest), or to begin with (the answer is at least as
        good).
    barriers
        ``"opaque"``: hooks are ignored; the result's graph has none.  ``"simulated"``: they give
        the tiles of barriers' outputs; so they do by default, if there is a tile memory.
    time_limit, gap
        Seconds for the whole call, none by default; relative gap at which to stop, 0 for a proof.
    seed, workers
        Seed of everything random; threads of a search.  With 1, equal calls give equal results.
    certificate
        Whether the result gets evidence for its bound; see ``docs/certificates.md``.
    progress
        Called with every :class:`~layoutopt.base.limits.Progress`.

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
        If CP-SAT or HiGHS was asked for by name and failed, or a user's solver did.
    """
    limits = limited(time_limit, gap, seed, workers, progress)
    found = _checked_input(graph, find(solver), start)
    kept, first = by_name(graph, fixed, "fixed"), by_name(graph, start, "start")
    begun = begin(apply_hook_mode(graph, barriers), kept, first)
    run = _Run(begun, limits, CERTIFYING if certificate else 0.0)
    with interruptible(limits):
        run.secure(found)
        answer = run.certified(run.answer(run.result(found), found))
    return replace(answer, seconds=answer.seconds | {"total": time.monotonic() - limits.started})


solve = unwind
"""The same, under the name of its command."""


class _Run:
    """One call of :func:`unwind`."""

    def __init__(self, begun: WarmStart, limits: Limits, kept: float = 0.0) -> None:
        self.graph, self.limits, self.begun = begun.given.graph, limits, begun
        self.kept = kept  # share of the time for what comes after the answer
        self.seconds: dict[str, float] = {}
        self.size = counts(self.graph)
        self.solved: SolvedGraph | None = None
        self.instance_hash: str | None = None
        self.reserve = Reserve(begun, limits)

    def secure(self, solver: Solver) -> None:
        """Find and check layouts before anything else, if time is limited."""
        if self.limits.left < math.inf:
            begun = time.monotonic()
            self.reserve.open(heuristic=solver.kind is not SolverKind.GRAPH)
            self.seconds["secure"] = time.monotonic() - begun
        # Here, so that after Ctrl-C only the check is left to do.
        self.instance_hash = known_hash(self.graph)

    def phase(self, name: str, work: Callable[[], Answer], limits: Limits | None = None) -> Answer:
        """Return what a phase returns, and count what it takes.

        Raises
        ------
        TimeoutError
            If its limits, those of the whole call by default, end it.
        """
        begun, secured = time.monotonic(), self.reserve.best is not None
        try:
            return run_phase(name, work, limits or self.limits, secured)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begun

    def result(self, solver: Solver) -> Result:
        """Return what a solver finds, nothing if time or memory runs out."""
        try:
            return self.found(solver)
        except TimeoutError:
            return Result(stopped=self.limits.stopped or Stopped.TIME_LIMIT)
        except MemoryError:
            return self.limits.exhausted()
        except SizeError:
            self.reserve.close(patience=math.inf)
            if self.reserve.best is not None:
                return Result(stopped=Stopped.SIZE_LIMIT)
            if solver.kind is SolverKind.GRAPH:
                raise
            return replace(self.result(find("greedy0")), stopped=Stopped.SIZE_LIMIT)

    def found(self, solver: Solver) -> Result:
        """Return what a solver finds in time."""
        kinds = {
            SolverKind.EXACT: self.exact,
            SolverKind.APPROXIMATE: self.approximate,
            SolverKind.GRAPH: self.heuristic,
        }
        return kinds[solver.kind](solver)

    def heuristic(self, solver: Solver) -> Result:
        """Return the layouts that a heuristic on graphs chooses."""
        from layoutopt.lowering.heuristics import choose

        own, given = solver.call if solver.own else None, self.begun.given
        work = partial(choose, self.graph, solver.name, self.limits, given, own=own)
        return Result(labelling=self.phase("solve", work))

    def approximate(self, solver: Solver) -> Result:
        """Return what a heuristic on labelling problems finds; it knows nothing of capacity."""
        if self.graph.tile_memory is None:
            return self._lowered(solver)
        if hooked(self.graph):
            from layoutopt.machine.simulated import solve_unhooked

            self._refuse_given()
            found = solve_unhooked(self.graph, lambda other: self._other(other, solver))
        else:
            found = self._lowered(solver)
        kept = found.labelling
        if kept is not None and evaluate(self.graph, kept).violations:
            kept = None
        return replace(found, objective=None, bound=None, labelling=kept)

    def exact(self, solver: Solver) -> Result:
        """Return what an exact method finds; on a tile memory, within its capacity."""
        memory = self.graph.tile_memory
        if memory is None:
            return self._lowered(solver)
        from layoutopt.check.occupancy import overfull
        from layoutopt.machine.capacitated import fits, place

        if lacking := overfull(self.graph):
            return Result(infeasible=lacking)
        if hooked(self.graph):
            return self._hooked(solver)
        bound = None
        if memory.grain == 1 and all(value >= 0 for _, _, value in self.graph.pairs):
            free = self._lowered(solver)
            if free.labelling is None or fits(self.graph, free.labelling):
                return free
            bound = free.bound
        if self.begun.given.count:
            raise InputError("fixed layouts on a tile memory whose capacity binds are not solved")
        try:
            placed = self.phase("place", lambda: place(self.graph, self.limits))
        except TimeoutError:  # what is proved without capacity still holds
            return Result(bound=bound, stopped=self.limits.stopped or Stopped.TIME_LIMIT)
        self.size |= placed.size
        return placed.result

    def _hooked(self, solver: Solver) -> Result:
        """Solve a graph whose barriers have hooks."""
        from layoutopt.machine.simulated import solve_hooked

        self._refuse_given()
        other = partial(self._other, solver=solver)
        return self.phase("hooks", lambda: solve_hooked(self.graph, self.limits, other))

    def _refuse_given(self) -> None:
        if self.begun.given.count:
            raise InputError("fixed layouts of graphs with barrier hooks are not solved")

    def _other(self, graph: GraphStore, solver: Solver) -> Result:
        """Solve another graph in the time that is left."""
        run = _Run(begin(graph, None, None), self.limits)
        result = run.found(solver)
        self.seconds.update(run.seconds)
        self.size = run.size | self.size
        return result

    def _lowered(self, solver: Solver) -> Result:
        """Lower the graph, solve the problem that comes out, and restore layouts."""
        given = self.begun.given
        lowered = self.phase("trace", lambda: lower(tiled(self.graph), self.limits, given))
        self.size |= lowered.size
        result = self._solve(lowered, solver)
        if result.bound is None:
            result = replace(result, bound=lowered.problem.ceiling())
        labels = result.labelling
        restore = partial(lowered.layouts, labels)
        self.limits.report("restoring layouts")
        layouts = None if labels is None else self.phase("restore", restore)
        if labels is not None and solver.kind is SolverKind.EXACT:
            self.solved = SolvedGraph(lowered, labels)
        unit, constant = lowered.unit, lowered.constant
        objective, bound = (
            None if x is None else to_decimal(constant + int(x), unit)
            for x in (result.objective, result.bound)
        )
        return replace(result, objective=objective, bound=bound, labelling=layouts)

    def answer(self, result: Result, solver: Solver) -> UnwindingResult:
        """Check layouts against the specification, and report what they earn."""
        checked, layouts = None, result.labelling
        if layouts is not None:
            checked, why = self._checked(layouts)
            if checked is not None:
                assert_consistent(self.graph, checked, result, solver)
            else:  # what is not checked is no answer
                layouts, result = None, replace(result, stopped=why)
                self._keep_plain(why)
        elif self.limits.interrupt.is_set():
            self._keep_plain(Stopped.INTERRUPTED)
        checked, layouts = self._best(checked, layouts, solver, result.stopped)
        return UnwindingResult(
            objective=None if checked is None else checked.score,
            bound=self._bound(result),
            labelling=layouts,
            stopped=result.stopped,
            infeasible=result.infeasible,
            seconds=self.seconds,
            instance=self.graph.name,
            instance_hash=self.instance_hash,
            solver=solver.name,
            version=__version__,
            seed=self.limits.seed,
            max_score=most(self.graph) if checked is None else checked.max_score,
            size=self.size,
            pairs=() if checked is None else checked.pairs,
            order=() if checked is None else checked.order,
            graph=self.graph,
        )

    def certified(self, answer: UnwindingResult) -> UnwindingResult:
        """Return an answer with its certificate, if time is kept for one."""
        if not self.kept:
            return answer
        from layoutopt.certify.unwinding import certified

        return certified(answer, self.solved, find("auto").call, self.limits)

    def _bound(self, result: Result) -> Decimal | None:
        """Return the best bound that is known; none where there is no solution."""
        if result.infeasible:
            return None
        most = ceiling(self.graph)
        return most if result.bound is None else min(most, Decimal(result.bound))

    def _keep_plain(self, why: Stopped) -> None:
        """Secure default layouts where nothing else is in hand, if there is time for that."""
        limits = self.limits
        if self.reserve.best is not None:
            return
        if limits.interrupt.is_set():
            self.reserve.plain(max(0.0, limits.interrupt.at + LAST_ENDS - time.monotonic()))
        elif why is Stopped.SIZE_LIMIT:
            self.reserve.plain(limits.left + LATE)

    def _best(
        self, checked: Evaluation | None, layouts: Layouts | None, solver: Solver, why: Stopped
    ) -> tuple[Evaluation | None, Layouts | None]:
        """Return what was found, or what is in hand if that is better or all that there is."""
        self.reserve.close()
        kept = self.reserve.best
        heuristic = solver.kind is not SolverKind.EXACT
        told = heuristic and not self.limits.over and why is not Stopped.SIZE_LIMIT
        if kept is None or (told and self.begun.evaluation is None):
            return checked, layouts  # what a heuristic finds in time is told as it is
        mine = None if checked is None else checked.score
        if mine is None or (
            (solver.kind is SolverKind.EXACT or self.begun.evaluation is not None)
            and kept.evaluation.score is not None
            and kept.evaluation.score > mine
        ):
            return kept.evaluation, kept.layouts
        return checked, layouts

    def _checked(self, layouts: Layouts) -> tuple[Evaluation | None, Stopped]:
        """Return what layouts earn by the specification; nothing, and why, if that is not told."""
        self.limits.report("checking")
        try:
            found = self.phase("check", partial(evaluate, self.graph, layouts))
        except TimeoutError:
            return None, self.limits.stopped or Stopped.TIME_LIMIT
        except SizeError:
            return None, Stopped.SIZE_LIMIT
        return found, Stopped.FINISHED

    def _solve(self, lowered: Lowered, solver: Solver) -> Result:
        """Solve the lowered problem, messages in the graph's own unit."""

        def score(x: float) -> float:
            return nearest(lowered.unit * int(x))

        # Restoring and checking layouts take up to about as long as tracing, and half of it again;
        # a solver of other people needs a moment to stop, too.
        left = self.limits.left
        after = max(1.5 * self.seconds["trace"], ENDING * left) if left < math.inf else 0.0
        early = self.limits.saving(after + self.kept * left)
        limits = early.steady().restated(score, score).beside(lowered.constant)
        start, problem = self._start(lowered, limits), lowered.problem
        limits.report(f"solving {problem.nodes:,} nodes")
        work: Callable[[], Result] = partial(solver.call, problem, limits, start)
        try:
            result = self.phase("solve", work, limits)
        except TimeoutError:
            result = Result(stopped=limits.stopped or Stopped.TIME_LIMIT)
        if result.labelling is None:
            from layoutopt.network.heuristics.frame import allowed

            if start is None or not allowed(problem, start):
                start = problem.labels + np.arange(problem.nodes)  # everything fresh
            result = replace(result, objective=problem.value(start), labelling=start)
        return result

    def _start(self, lowered: Lowered, limits: Limits) -> IntArray | None:
        """Return what greedy0 chooses, if it is quick enough to ask."""
        if self.begun.start is not None:
            return lowered.labels(self.begun.start)
        if self.size["elements"] > START_LIMIT or not lowered.problem.nodes:
            return None
        if self.reserve.origins is not None:
            return lowered.labels(self.reserve.origins)
        if self.reserve.running:
            return None
        try:
            short = limits.within(START_SHARE * limits.left)
            work = partial(greedy0, self.graph, short, self.begun.given)
            self.reserve.origins = self.phase("solve", work, short)
            return lowered.labels(self.reserve.origins)
        except TimeoutError:
            return None


def _checked_input(graph: GraphStore, solver: Solver, start: Assignment | None) -> Solver:
    """Return the solver if it takes this."""
    check_graph(graph)
    if start is not None and solver.kind is SolverKind.GRAPH:
        others = ", ".join(name for name in SOLVERS if find(name).kind is not SolverKind.GRAPH)
        raise InputError(f"solver {solver.name} does not support start; use one of {others}")
    if not graph.ops:
        raise InputError("the graph has no ops")
    return solver
