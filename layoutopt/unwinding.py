"""Unwinding: choose the locations of a graph's sinks so that ValuedPairs earn the most."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from threading import Event

import numpy as np

from layoutopt import __version__
from layoutopt.base.deadline import LAST_ENDS, LATE, Answer, run_phase
from layoutopt.base.entries import Entry, Takes
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
from layoutopt.registry import built_in, find


def assert_consistent(
    graph: GraphStore, checked: Evaluation, result: Result, solver: Entry
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

SHORT_OF_MEMORY = (Stopped.SIZE_LIMIT, Stopped.MEMORY_LIMIT)
"""Ends of a search for which there was too little memory, as was foreseen, or not."""

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
    chosen = _checked_input(graph, find(solver), start)
    kept, first = by_name(graph, fixed, "fixed"), by_name(graph, start, "start")
    share = CERTIFYING if certificate else 0.0
    call = Call(begin(apply_hook_mode(graph, barriers), kept, first), limits, share)
    with interruptible(limits):
        secure(call, chosen)
        answer = certified(call, check_layouts(call, find_layouts(call, chosen), chosen))
    return replace(answer, seconds=answer.seconds | {"total": time.monotonic() - limits.started})


solve = unwind
"""The same, under the name of its command."""


@dataclass(eq=False)
class Call:
    """One call of :func:`unwind`: what its steps share.

    Parameters
    ----------
    begun
        The graph with what is given beforehand.
    limits
        Those of the whole call.
    kept
        Share of the time for what comes after the answer.
    """

    begun: WarmStart
    limits: Limits
    kept: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    instance_hash: str | None = None
    solved: SolvedGraph | None = None
    size: dict[str, int] = field(init=False)
    reserve: Reserve = field(init=False)

    def __post_init__(self) -> None:
        self.size = counts(self.graph)
        self.reserve = Reserve(self.begun, self.limits)

    @property
    def graph(self) -> GraphStore:
        """The graph."""
        return self.begun.given.graph

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


def secure(call: Call, solver: Entry) -> None:
    """Find and check layouts before anything else, if time is limited."""
    if call.limits.left < math.inf:
        begun = time.monotonic()
        call.reserve.open(heuristic=solver.takes is not Takes.GRAPH)
        call.seconds["secure"] = time.monotonic() - begun
    # Here, so that after Ctrl-C only the check is left to do.
    call.instance_hash = known_hash(call.graph)


def find_layouts(call: Call, solver: Entry) -> Result:
    """Return the layouts that a solver finds, with a bound; nothing if time runs out.

    If memory does not suffice, ``greedy0`` is asked, unless its answer is in hand already.
    """
    try:
        return _strategy(solver)(call, solver)
    except (TimeoutError, MemoryError) as error:
        if isinstance(error, MemoryError):
            call.limits.full.set()
        stopped = call.limits.stopped or Stopped.TIME_LIMIT
    except SizeError:
        call.reserve.close(patience=math.inf)
        if call.reserve.best is None and solver.takes is Takes.GRAPH:
            raise
        stopped = Stopped.SIZE_LIMIT
    if stopped not in SHORT_OF_MEMORY:
        return Result(stopped=stopped)
    call.reserve.close(patience=math.inf)
    if call.reserve.best is not None or solver.takes is Takes.GRAPH:
        return Result(stopped=stopped)
    call.limits = replace(call.limits, full=Event())  # what the solver took is free again
    return replace(find_layouts(call, find("greedy0")), stopped=stopped)


def exact(call: Call, solver: Entry) -> Result:
    """Return what an exact method finds; on a tile memory, within its capacity."""
    memory = call.graph.tile_memory
    if memory is None:
        return lower_and_solve(call, solver)
    from layoutopt.check.occupancy import overfull
    from layoutopt.machine.capacitated import fits, place

    if lacking := overfull(call.graph):
        return Result(infeasible=lacking)
    if hooked(call.graph):
        from layoutopt.machine.simulated import solve_hooked

        _refuse_given(call)
        return call.phase(
            "hooks", lambda: solve_hooked(call.graph, call.limits, partial(_other, call, solver))
        )
    bound = None
    if memory.grain == 1 and all(value >= 0 for _, _, value in call.graph.pairs):
        free = lower_and_solve(call, solver)
        if free.labelling is None or fits(call.graph, free.labelling):
            return free
        bound = free.bound
    if call.begun.given.count:
        raise InputError("fixed layouts on a tile memory whose capacity binds are not solved")
    try:
        placed = call.phase("place", lambda: place(call.graph, call.limits))
    except TimeoutError:  # what is proved without capacity still holds
        return Result(bound=bound, stopped=call.limits.stopped or Stopped.TIME_LIMIT)
    call.size |= placed.size
    return placed.result


def approximate(call: Call, solver: Entry) -> Result:
    """Return what a heuristic on labelling problems finds; it knows nothing of capacity."""
    if call.graph.tile_memory is None:
        return lower_and_solve(call, solver)
    if hooked(call.graph):
        from layoutopt.machine.simulated import solve_unhooked

        _refuse_given(call)
        found = solve_unhooked(call.graph, partial(_other, call, solver))
    else:
        found = lower_and_solve(call, solver)
    kept = found.labelling
    if kept is not None and evaluate(call.graph, kept).violations:
        kept = None
    return replace(found, objective=None, bound=None, labelling=kept)


def heuristic(call: Call, solver: Entry) -> Result:
    """Return the layouts that a heuristic on graphs chooses."""
    from layoutopt.lowering.heuristics import choose

    work = partial(choose, call.graph, solver, call.limits, call.begun.given)
    return Result(labelling=call.phase("solve", work))


def _strategy(solver: Entry) -> Callable[[Call, Entry], Result]:
    """Return how layouts are found by a solver."""
    if solver.takes is Takes.GRAPH:
        return heuristic
    return exact if solver.proves else approximate


def _refuse_given(call: Call) -> None:
    if call.begun.given.count:
        raise InputError("fixed layouts of graphs with barrier hooks are not solved")


def _other(call: Call, solver: Entry, graph: GraphStore) -> Result:
    """Solve another graph in the time that is left."""
    other = Call(begin(graph, None, None), call.limits)
    result = _strategy(solver)(other, solver)
    call.seconds.update(other.seconds)
    call.size = other.size | call.size
    return result


def lower_and_solve(call: Call, solver: Entry) -> Result:
    """Lower the graph to a labelling problem, solve that, and restore layouts."""
    given = call.begun.given
    lowered = call.phase("trace", lambda: lower(tiled(call.graph), call.limits, given))
    call.size |= lowered.size
    solution = solve_problem(call, lowered, solver)
    labels = solution.labelling
    call.limits.report("restoring layouts")
    layouts = call.phase("restore", partial(lowered.layouts, labels))
    if solver.proves:
        call.solved = SolvedGraph(lowered, labels)
    if solution.bound is None:
        solution = replace(solution, bound=lowered.problem.ceiling())
    objective, bound = (
        None if x is None else to_decimal(lowered.constant + int(x), lowered.unit)
        for x in (solution.objective, solution.bound)
    )
    return replace(solution, objective=objective, bound=bound, labelling=layouts)


def solve_problem(call: Call, lowered: Lowered, solver: Entry) -> Result:
    """Solve the lowered problem, messages in the graph's own unit."""

    def score(x: float) -> float:
        return nearest(lowered.unit * int(x))

    # Restoring and checking layouts take up to about as long as tracing, and half of it again;
    # a solver of other people needs a moment to stop, too.
    left = call.limits.left
    after = max(1.5 * call.seconds["trace"], ENDING * left) if left < math.inf else 0.0
    early = call.limits.saving(after + call.kept * left)
    limits = early.steady().restated(score, score).beside(lowered.constant)
    start, problem = _start(call, lowered, limits), lowered.problem
    limits.report(f"solving {problem.nodes:,} nodes")
    work: Callable[[], Result] = partial(solver.load(), problem, limits, start)
    try:
        result = call.phase("solve", work, limits)
    except TimeoutError:
        result = Result(stopped=limits.stopped or Stopped.TIME_LIMIT)
    if result.labelling is None:
        from layoutopt.network.heuristics.frame import allowed

        if start is None or not allowed(problem, start):
            start = problem.labels + np.arange(problem.nodes)  # everything fresh
        result = replace(result, objective=problem.value(start), labelling=start)
    return result


def _start(call: Call, lowered: Lowered, limits: Limits) -> IntArray | None:
    """Return what greedy0 chooses, if it is quick enough to ask."""
    if call.begun.start is not None:
        return lowered.labels(call.begun.start)
    if call.size["elements"] > START_LIMIT or not lowered.problem.nodes:
        return None
    if call.reserve.origins is not None:
        return lowered.labels(call.reserve.origins)
    if call.reserve.running:
        return None
    try:
        short = limits.within(START_SHARE * limits.left)
        work = partial(greedy0, call.graph, short, call.begun.given)
        call.reserve.origins = call.phase("solve", work, short)
        return lowered.labels(call.reserve.origins)
    except TimeoutError:
        return None


def check_layouts(call: Call, result: Result, solver: Entry) -> UnwindingResult:
    """Check layouts against the specification, and report what they earn."""
    checked, layouts = None, result.labelling
    if layouts is not None:
        checked, why = _evaluation(call, layouts)
        if checked is not None:
            assert_consistent(call.graph, checked, result, solver)
        else:  # what is not checked is no answer
            layouts, result = None, replace(result, stopped=why)
            _keep_plain(call, why)
    else:
        _keep_plain(call, result.stopped)
    checked, layouts = _best(call, checked, layouts, solver, result.stopped)
    return UnwindingResult(
        objective=None if checked is None else checked.score,
        bound=_bound(call, result),
        labelling=layouts,
        stopped=result.stopped,
        infeasible=result.infeasible,
        seconds=call.seconds,
        instance=call.graph.name,
        instance_hash=call.instance_hash,
        solver=solver.name,
        version=__version__,
        seed=call.limits.seed,
        max_score=most(call.graph) if checked is None else checked.max_score,
        size=call.size,
        pairs=() if checked is None else checked.pairs,
        order=() if checked is None else checked.order,
        graph=call.graph,
    )


def _evaluation(call: Call, layouts: Layouts) -> tuple[Evaluation | None, Stopped]:
    """Return what layouts earn by the specification; nothing, and why, if that is not told."""
    call.limits.report("checking")
    try:
        found = call.phase("check", partial(evaluate, call.graph, layouts))
    except TimeoutError:
        return None, call.limits.stopped or Stopped.TIME_LIMIT
    except SizeError:
        return None, Stopped.SIZE_LIMIT
    return found, Stopped.FINISHED


def _best(
    call: Call, checked: Evaluation | None, layouts: Layouts | None, solver: Entry, why: Stopped
) -> tuple[Evaluation | None, Layouts | None]:
    """Return what was found, or what is in hand if that is better or all that there is."""
    call.reserve.close()
    kept = call.reserve.best
    heuristic = not solver.proves
    told = heuristic and not call.limits.over and why is not Stopped.SIZE_LIMIT
    if kept is None or (told and call.begun.evaluation is None):
        return checked, layouts  # what a heuristic finds in time is told as it is
    mine = None if checked is None else checked.score
    if mine is None or (
        (solver.proves or call.begun.evaluation is not None)
        and kept.evaluation.score is not None
        and kept.evaluation.score > mine
    ):
        return kept.evaluation, kept.layouts
    return checked, layouts


def _keep_plain(call: Call, why: Stopped) -> None:
    """Secure default layouts where nothing else is in hand, if there is time for that."""
    limits = call.limits
    if call.reserve.best is not None:
        return
    if limits.interrupt.is_set():
        call.reserve.plain(max(0.0, limits.interrupt.at + LAST_ENDS - time.monotonic()))
    elif why in SHORT_OF_MEMORY:
        call.reserve.plain(limits.left + LATE)


def _bound(call: Call, result: Result) -> Decimal | None:
    """Return the best bound that is known; none where there is no solution."""
    if result.infeasible:
        return None
    most = ceiling(call.graph)
    return most if result.bound is None else min(most, Decimal(result.bound))


def certified(call: Call, answer: UnwindingResult) -> UnwindingResult:
    """Return an answer with its certificate, if time is kept for one."""
    if not call.kept:
        return answer
    from layoutopt.certify.unwinding import certified

    return certified(answer, call.solved, find("auto").load(), call.limits)


def _checked_input(graph: GraphStore, solver: Entry, start: Assignment | None) -> Entry:
    """Return the solver if it takes this."""
    check_graph(graph)
    if start is not None and solver.takes is Takes.GRAPH:
        others = ", ".join(name for name in SOLVERS if find(name).takes is not Takes.GRAPH)
        raise InputError(f"solver {solver.name} does not support start; use one of {others}")
    if not graph.ops:
        raise InputError("the graph has no ops")
    return solver
