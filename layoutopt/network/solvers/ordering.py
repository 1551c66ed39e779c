"""The master problem of barrier order: which arcs to open, so that none close a cycle.

Each part earns at most its top.  A *cut* ``(part, closed, value)`` says that the part earns at
most ``value`` while all arcs of ``closed`` are closed::

    maximise    sum_p theta[p]
    subject to  theta[p] <= value + (top[p] - value) sum_{a in closed} z[a]    every cut
                z[a] = 1 only if rank[b] < rank[c]                             a = (b, c)
                rank[b] < rank[c]                                              static (b, c)

CP-SAT solves it; orders and implications are what it is made for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from layoutopt.base.limits import Limits
from layoutopt.network.solvers.threads import run_stoppable

Arc = tuple[int, int]

LARGEST = 2**55
"""The sum of all tops stays below this, if need be in a coarser unit."""


@dataclass(frozen=True)
class OrderCut:
    """A part earns at most ``value`` while all arcs of ``closed`` are closed."""

    part: int
    closed: frozenset[Arc]
    value: int


@dataclass(frozen=True)
class OrderSolution:
    """What the master problem found.

    Parameters
    ----------
    bound
        No order lets the parts earn more, as far as the cuts tell.
    rank
        A rank for each barrier, ``None`` if time ran out before any order was found.
    """

    bound: int
    rank: list[int] | None


def best_order(
    barriers: int,
    static: Sequence[Arc],
    tops: Sequence[int],
    cuts: Sequence[OrderCut],
    limits: Limits,
) -> OrderSolution:
    """Choose an order that the parts like best.

    Parameters
    ----------
    barriers
        Number of barriers.
    static
        Arcs that are always there.
    tops
        What each part earns at most.
    cuts
        What is known beside the tops.
    """
    unit = math.gcd(*(top - cut.value for cut in cuts for top in [tops[cut.part]])) or 1
    losses = [-(-(tops[cut.part] - cut.value) // unit) for cut in cuts]
    while sum(losses) >= LARGEST:  # rounding losses down keeps the bound true
        unit, losses = 2 * unit, [loss // 2 for loss in losses]
    model = cp_model.CpModel()
    rank = [model.new_int_var(0, barriers - 1, f"rank{b}") for b in range(barriers)]
    for b, c in static:
        model.add(rank[b] < rank[c])
    opened = {arc: model.new_bool_var(f"z{arc}") for cut in cuts for arc in cut.closed}
    for (b, c), z in opened.items():
        model.add(rank[b] < rank[c]).only_enforce_if(z)
    worst: dict[int, int] = {}
    for cut, loss in zip(cuts, losses, strict=True):
        worst[cut.part] = max(worst.get(cut.part, 0), loss)
    lost = {p: model.new_int_var(0, most, f"lost{p}") for p, most in worst.items()}
    for cut, loss in zip(cuts, losses, strict=True):
        closed = [opened[arc].negated() for arc in sorted(cut.closed)]
        model.add(lost[cut.part] >= loss).only_enforce_if(closed)
    model.minimize(sum(lost.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = limits.seed % 2**31
    solver.parameters.catch_sigint_signal = False
    if limits.left < float("inf"):
        solver.parameters.max_time_in_seconds = limits.left
    status = run_stoppable(lambda: solver.solve(model), solver.stop_search, limits)
    least = max(0, int(solver.response_proto.inner_objective_lower_bound))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return OrderSolution(sum(tops) - least * unit, None)
    return OrderSolution(sum(tops) - least * unit, [solver.value(r) for r in rank])
