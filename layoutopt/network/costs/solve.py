"""Minimise a sum of costs of labels and of pairs of labels, and prove it."""

from __future__ import annotations

from math import inf

import numpy as np

from layoutopt.base.errors import InputError, InternalError
from layoutopt.base.limits import Limits
from layoutopt.base.result import Stopped
from layoutopt.network.costs.binary import two_labels
from layoutopt.network.costs.heuristic import construct, polish
from layoutopt.network.costs.normal import level
from layoutopt.network.costs.problem import CostAnswer, Problem, cost
from layoutopt.network.costs.reductions import reduce
from layoutopt.network.costs.search import FoundLabels, solve_parts
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.problem import IntArray


def solve_pbqp(
    problem: Problem, limits: Limits | None = None, start: IntArray | None = None
) -> CostAnswer:
    """Return a labelling of least cost, or the proof that none is allowed.

    Where every node has two labels a minimum cut decides most; reductions, elimination on
    narrow parts, the linear relaxation and search solve the rest.  Equal arguments give equal
    answers unless a time limit ends the computation.

    Parameters
    ----------
    limits
        When to stop, with the best labelling and bound so far.  Its gap is not used: small
        parts are proved one by one.
    start
        Shape ``(nodes,)``: an allowed labelling; the answer is never worse.

    Raises
    ------
    InputError
        If the start is no allowed labelling.
    """
    limits = limits or Limits()
    if start is not None and cost(problem, start) is None:
        raise InputError("the labelling to begin with does what is forbidden")
    try:
        found = _solve(problem, limits, start)
    except Infeasible:
        if start is not None:
            raise InternalError("an allowed labelling contradicts infeasibility") from None
        return CostAnswer(infeasible=True)
    return _answer(problem, found, limits, start)


def heuristic_pbqp(problem: Problem, limits: Limits | None = None) -> CostAnswer:
    """Return a good labelling and a weak bound, or a bound alone, in short time.

    Parameters
    ----------
    limits
        When to stop making it better, and the seed.
    """
    try:
        work = Work.of(problem)
        reduce(work, Limits())
    except Infeasible:
        return CostAnswer(infeasible=True)
    level(work)
    bound, labels = work.bound(), construct(work)
    if labels is None:
        return CostAnswer(bound=bound)
    labels = polish(work, labels, limits or Limits())
    work.restore(labels)
    found = np.array(labels, np.int64)
    return CostAnswer(objective=cost(problem, found), bound=bound, labelling=found)


def _solve(problem: Problem, limits: Limits, start: IntArray | None) -> FoundLabels:
    cut = two_labels(problem)
    if cut is None:
        begin = None if start is None else start.tolist()
        return solve_parts(Work.of(problem), limits, begin)
    labels = cut.labels.copy()
    left = np.flatnonzero(labels < 0)
    if not len(left):
        return FoundLabels(labels.tolist(), cut.bound)
    begin = None if start is None else start[left].tolist()
    rest = solve_parts(Work.of(cut.rest), limits, begin)
    bound = max(cut.bound, cut.constant + rest.bound)
    if rest.labels is None:
        return FoundLabels(None, bound)
    labels[left] = rest.labels
    return FoundLabels(labels.tolist(), bound)


def _answer(
    problem: Problem, found: FoundLabels, limits: Limits, start: IntArray | None
) -> CostAnswer:
    """Return the better of two labellings, at its cost as the problem says it."""
    labels = None if found.labels is None else np.array(found.labels, np.int64)
    objective = None if labels is None else cost(problem, labels)
    given = None if start is None else cost(problem, start)
    if start is not None and given is not None and (objective is None or given < objective):
        labels, objective = start.copy(), given
    if objective is not None and objective < found.bound:
        raise InternalError(f"a labelling costs {objective}, less than the bound {found.bound}")
    stopped = Stopped.FINISHED
    if objective != found.bound:
        timed = limits.deadline < inf  # parts get shares of the time
        stopped = limits.stopped or (Stopped.TIME_LIMIT if timed else Stopped.SIZE_LIMIT)
    return CostAnswer(objective=objective, bound=found.bound, labelling=labels, stopped=stopped)
