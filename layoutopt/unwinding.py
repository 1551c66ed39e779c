"""Unwinding: layouts of a graph's sinks that maximise the score over its ValuedPairs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from threading import Event

import numpy as np

from layoutopt import __version__
from layoutopt.base.deadline import LAST_ENDS, LATE, Answer, run_phase
from layoutopt.base.entries import Entry, Takes, built_in
from layoutopt.base.errors import InputError, InternalError, SizeError, SolverError
from layoutopt.base.limits import Limits, Progress, Stopped, callbacks_raise, interruptible, limited
from layoutopt.base.numbers import nearest, to_decimal
from layoutopt.base.result import Result, UnwindingResult
from layoutopt.check.elements import Evaluation, ceiling, counts, evaluate, most
from layoutopt.check.matching import Layouts
from layoutopt.graphs.locations import check_graph, hooked
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import apply_hook_mode, tiled
from layoutopt.io.instance import known_hash
from layoutopt.lowering.assignment import (
    START_LIMIT,
    Assignment,
    Reserve,
    WarmStart,
    begin,
    by_name,
)
from layoutopt.lowering.greedy0 import greedy0
from layoutopt.lowering.lower import Lowered, SolvedGraph, lower
from layoutopt.network.problem import IntArray


def assert_consistent(
    graph: GraphStore, checked: Evaluation, result: Result, solver: Entry
) -> None:
    """Check that the solver's result agrees with the evaluation of its layouts.

    Raises ``InternalError`` if they disagree, ``SolverError`` if the solver is a user's.
    """
    fault = _fault(graph, checked, result)
    if fault and solver.own:
        raise SolverError(f"solver {solver.name!r}: {fault}")
    if fault:
        raise InternalError(fault)


def _fault(graph: GraphStore, checked: Evaluation, result: Result) -> str:
    """Return the first disagreement between solver and evaluation, or an empty string.

    On a tile memory, a location counted as fresh may coincide with a used tile, so the evaluated
    score may exceed the solver's.
    """
    if checked.violations:
        return f"the layouts break a rule: {checked.violations[0]}"
    higher = graph.tile_memory is not None and (checked.score or 0) > (result.objective or 0)
    if result.objective is not None and checked.score != result.objective and not higher:
        return f"the layouts score {checked.score}, but the solver claims {result.objective}"
    if result.bound is not None and checked.score is not None and result.bound < checked.score:
        return f"the score {checked.score} exceeds the bound {result.bound}"
    return ""


SOLVERS = tuple(built_in())
"""Names of the built-in solvers of :func:`unwind`."""

START_SHARE = 0.2
"""Largest share of the remaining time for the initial solution by ``greedy0``."""

ENDING = 0.05
"""Smallest share of the remaining time reserved for restoring and checking layouts."""

SHORT_OF_MEMORY = (Stopped.SIZE_LIMIT, Stopped.MEMORY_LIMIT)
"""Searches that were refused or stopped for lack of memory."""

CERTIFYING = 1 / 3
"""Share of the remaining time reserved for a certificate."""


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
    """Maximise the score of a graph over the layouts of its sinks, with a proved upper bound.

    Parameters
    ----------
    solver
        Exact: ``"auto"`` (reductions, bounds, search), ``"cpsat"``, ``"mip"``.  Heuristics: all
        others of :data:`SOLVERS`.  Or the name of a registered solver; see ``docs/solvers.md``.
    fixed, start
        Layouts (:data:`~layoutopt.lowering.assignment.Assignment`) of some sinks or parts of them:
        ``fixed`` is kept, and the bound holds for layouts that keep it; ``start`` is an initial
        solution, and the result scores at least as much.
    barriers
        ``"opaque"``: hooks of barriers are ignored, and the result's graph has none.
        ``"simulated"``, the default on a tile memory: hooks compute the tiles of barriers' outputs.
    time_limit, gap
        Seconds for the whole call, unlimited by default; relative gap at which to stop.
    seed, workers
        Random seed; threads of the search.  With one thread, results are reproducible.
    certificate
        Whether to attach a certificate of the bound; see ``docs/certificates.md``.
    progress
        Callback for each :class:`~layoutopt.base.limits.Progress`.

    Returns
    -------
    UnwindingResult
        Evaluated by :mod:`layoutopt.check`; without layouts if time ran out before any were found.

    Raises
    ------
    InputError
        If solver, graph, limits or given layouts are invalid.
    SizeError
        If the graph is too irregular to be solved by classes, and too large by elements.
    SolverError
        If CP-SAT or HiGHS was requested by name and failed, or a user's solver failed.
    """
    limits = limited(time_limit, gap, seed, workers, progress)
    chosen = _checked_input(graph, solver_named(solver), start)
    kept, first = by_name(graph, fixed, "fixed"), by_name(graph, start, "start")
    seen = apply_hook_mode(graph, barriers) if barriers is not None or hooked(graph) else graph
    call = Call(begin(seen, kept, first), limits, CERTIFYING if certificate else 0.0)
    with callbacks_raise(limits), interruptible(limits):
        secure(call, chosen)
        answer = certified(call, check_layouts(call, find_layouts(call, chosen), chosen))
    return replace(answer, seconds=answer.seconds | {"total": time.monotonic() - limits.started})


solve = unwind
"""Alias of :func:`unwind`, named as the command."""


@dataclass(eq=False)
class Call:
    """State shared by the steps of one call of :func:`unwind`."""

    begun: WarmStart  # the graph with its fixed layouts and initial solution
    limits: Limits  # limits of the whole call
    kept: float = 0.0  # share of the remaining time reserved for a certificate
    seconds: dict[str, float] = field(default_factory=dict)
    instance_hash: str | None = None
    solved: SolvedGraph | None = None
    size: dict[str, int] = field(init=False)
    reserve: Reserve = field(init=False)

    def __post_init__(self) -> None:
        kept = self.begun.given.count
        self.size = counts(self.graph) | ({"given": kept} if kept else {})
        self.reserve = Reserve(self.begun, self.limits)

    @property
    def graph(self) -> GraphStore:
        """The graph."""
        return self.begun.given.graph

    def phase(self, name: str, work: Callable[[], Answer], limits: Limits | None = None) -> Answer:
        """Run a phase, and add its seconds to ``seconds[name]``.

        Raises ``TimeoutError`` if it exceeds its limits, by default those of the whole call.
        """
        begun, secured = time.monotonic(), self.reserve.best is not None
        try:
            return run_phase(name, work, limits or self.limits, secured)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begun


def secure(call: Call, solver: Entry) -> None:
    """If time is limited, find and check layouts to return in case the search is interrupted."""
    if call.limits.left < math.inf:
        begun = time.monotonic()
        call.reserve.open(heuristic=solver.takes is not Takes.GRAPH)
        call.seconds["secure"] = time.monotonic() - begun
    # Computed now, so that only the check remains after Ctrl-C.
    call.instance_hash = known_hash(call.graph)


def find_layouts(call: Call, solver: Entry) -> Result:
    """Return a solver's layouts and bound; an empty result if time runs out.

    If memory runs out and no layouts are secured, ``greedy0`` is used instead.
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
    call.limits = replace(call.limits, full=Event())  # the solver's memory is free again
    return replace(find_layouts(call, built_in()["greedy0"]), stopped=stopped)


def exact(call: Call, solver: Entry) -> Result:
    """Solve by an exact method; on a tile memory, within its capacity, which only auto respects."""
    memory = call.graph.tile_memory
    if memory is None:
        return lower_and_solve(call, solver)
    from layoutopt.check.elements import overfull, too_full
    from layoutopt.machine.capacitated import place

    if lacking := overfull(call.graph):
        return Result(infeasible=lacking)
    plain = memory.grain == 1 and all(value >= 0 for _, _, value in call.graph.pairs)
    if solver.name != "auto" and (hooked(call.graph) or not plain):
        return approximate(call, solver)
    if hooked(call.graph):
        from layoutopt.machine.simulated import solve_hooked

        _refuse_given(call)
        return call.phase(
            "hooks", lambda: solve_hooked(call.graph, call.limits, partial(_other, call, solver))
        )
    bound = None
    if plain:
        free = lower_and_solve(call, solver)
        if free.labelling is None or not any(too_full(call.graph, free.labelling)):
            return free
        if solver.name != "auto":
            return replace(free, objective=None, labelling=None)
        bound = free.bound
    if call.begun.given.count:
        raise InputError("fixed layouts are not supported on tiles whose capacity or grain binds")
    try:
        placed, size = call.phase("place", lambda: place(call.graph, call.limits))
    except TimeoutError:  # the bound without capacity remains valid
        return Result(bound=bound, stopped=call.limits.stopped or Stopped.TIME_LIMIT)
    call.size |= size
    return placed


def approximate(call: Call, solver: Entry) -> Result:
    """Solve regardless of capacity, hooks and grain; layouts that exceed capacity are dropped."""
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
    """Solve by a heuristic on graphs."""
    from layoutopt.lowering.heuristics import choose

    work = partial(choose, call.graph, solver, call.limits, call.begun.given)
    return Result(labelling=call.phase("solve", work))


def _strategy(solver: Entry) -> Callable[[Call, Entry], Result]:
    """Return the function that finds layouts by a solver."""
    if solver.takes is Takes.GRAPH:
        return heuristic
    return exact if solver.proves else approximate


def _refuse_given(call: Call) -> None:
    if call.begun.given.count:
        raise InputError("fixed layouts are not supported for graphs with barrier hooks")


def _other(call: Call, solver: Entry, graph: GraphStore) -> Result:
    """Solve another graph in the remaining time."""
    other = Call(begin(graph, None, None), call.limits)
    result = _strategy(solver)(other, solver)
    call.seconds.update(other.seconds)
    call.size = other.size | call.size
    return result


def lower_and_solve(call: Call, solver: Entry) -> Result:
    """Lower the graph to a labelling problem, solve it, and restore layouts."""
    given = call.begun.given
    graph = call.graph if call.graph.tile_memory is None else tiled(call.graph)
    lowered = call.phase("trace", lambda: lower(graph, call.limits, given))
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
    """Solve the lowered problem; progress reports are in the graph's unit."""

    def score(x: float) -> float:
        return nearest(lowered.unit * int(x))

    # Restoring and checking layouts take up to about 1.5 times as long as tracing; a user's
    # solver needs time to stop.
    left = call.limits.left
    after = max(1.5 * call.seconds["trace"], ENDING * left) if left < math.inf else 0.0
    early = call.limits.saving(after + call.kept * left)
    limits = early.steady("max").restated(score, score).beside(lowered.constant)
    start, problem = _start(call, lowered, limits), lowered.problem
    limits.report(f"solving {problem.nodes:,} nodes")
    work: Callable[[], Result] = partial(solver.load(), problem, limits, start)
    try:
        result = call.phase("solve", work, limits)
    except TimeoutError:
        result = Result(stopped=limits.stopped or Stopped.TIME_LIMIT)
    if result.labelling is None:
        from layoutopt.network.heuristics.frame import allowed

        begun, start = start, problem.labels + np.arange(problem.nodes)  # everything fresh
        with suppress(TimeoutError):
            if begun is not None and call.phase("restore", partial(allowed, problem, begun)):
                start = begun
        result = replace(result, objective=problem.value(start), labelling=start)
    return result


def _start(call: Call, lowered: Lowered, limits: Limits) -> IntArray | None:
    """Return an initial labelling: the user's, else greedy0's if the graph is small enough."""
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
    """Evaluate layouts by the specification, and return the result."""
    checked, layouts = None, result.labelling
    if layouts is not None:
        checked, why = _evaluation(call, layouts)
        if checked is not None:
            assert_consistent(call.graph, checked, result, solver)
        else:  # only checked layouts are returned
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
    """Evaluate layouts by the specification; without an evaluation, return why it stopped."""
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
    """Return the layouts found, or the secured ones if those are better or the only ones."""
    call.reserve.close()
    kept = call.reserve.best
    heuristic = not solver.proves
    finished = heuristic and not call.limits.over and why is not Stopped.SIZE_LIMIT
    if kept is None or (finished and call.begun.evaluation is None):
        return checked, layouts  # a heuristic that finished in time is reported unimproved
    mine = None if checked is None else checked.score
    if mine is None or (
        (solver.proves or call.begun.evaluation is not None)
        and kept.evaluation.score is not None
        and kept.evaluation.score > mine
    ):
        return kept.evaluation, kept.layouts
    return checked, layouts


def _keep_plain(call: Call, why: Stopped) -> None:
    """Secure default layouts if there are no others and time remains."""
    limits = call.limits
    if call.reserve.best is not None:
        return
    if limits.interrupt.is_set():
        call.reserve.plain(max(0.0, limits.interrupt.at + LAST_ENDS - time.monotonic()))
    elif why in SHORT_OF_MEMORY:
        call.reserve.plain(limits.left + LATE)


def _bound(call: Call, result: Result) -> Decimal | None:
    """Return the best known bound; None if the problem is infeasible."""
    if result.infeasible:
        return None
    most = ceiling(call.graph)
    return most if result.bound is None else min(most, Decimal(result.bound))


def certified(call: Call, answer: UnwindingResult) -> UnwindingResult:
    """Attach a certificate to the answer, if one was requested."""
    if not call.kept:
        return answer
    from layoutopt.certify.unwinding import certified

    return certified(answer, call.solved, built_in()["auto"].load(), call.limits)


def solver_named(name: str) -> Entry:
    """Return a solver by its name; users' own are looked up in the registry."""
    own = built_in()
    if isinstance(name, str) and name in own:
        return own[name]
    from layoutopt.registry import find

    return find(name)


def _checked_input(graph: GraphStore, solver: Entry, start: Assignment | None) -> Entry:
    """Return the solver if it takes this."""
    check_graph(graph)
    if start is not None and solver.takes is Takes.GRAPH:
        others = ", ".join(n for n, entry in built_in().items() if entry.takes is not Takes.GRAPH)
        raise InputError(f"solver {solver.name} does not support start; use one of {others}")
    if not graph.ops:
        raise InputError("the graph has no ops")
    return solver
