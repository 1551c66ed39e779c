"""The plain CP-SAT model: one Boolean per element and location, equality reified.

What one writes first, kept as the yardstick.  Elements that agree choose the same location:
``match => (x[e, l] <=> x[f, l])`` for every location ``l``.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from ortools.sat.python import cp_model

from layoutopt.network.problem import Labelling
from models.statement import Statement


def proved(given: Statement, seconds: float) -> tuple[bool, float]:
    """Solve a statement by the plain model.

    One fresh location is offered beside the given ones, which is enough where no value is
    negative.

    Returns
    -------
    proved, gap
        Whether the optimum was proved, and the relative gap that was left.
    """
    model = cp_model.CpModel()
    places = range(len(given.locations) + 1)
    elements = sorted({e for pair in given.agree for e in pair} | {e for e, _ in given.earn})
    at = {e: [model.new_bool_var("") for _ in places] for e in elements}
    for row in at.values():
        model.add_exactly_one(row)
    unit = lcm(*(v.denominator for v in (*given.agree.values(), *given.earn.values())))
    terms = []
    for (e, f), value in given.agree.items():
        match = model.new_bool_var("")
        for x, y in zip(at[e], at[f], strict=True):
            model.add(x == y).only_enforce_if(match)
        terms.append(int(value * unit) * match)
    terms += [int(value * unit) * at[e][place] for (e, place), value in given.earn.items()]
    _order(model, given, at)
    model.maximize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    gap = (solver.best_objective_bound - solver.objective_value) / max(
        abs(solver.objective_value), 1e-9
    )
    return status == cp_model.OPTIMAL, gap


def _order(model: cp_model.CpModel, given: Statement, at: dict[int, list[cp_model.IntVar]]) -> None:
    """Let every barrier be known before it is needed."""
    rank = {b: model.new_int_var(0, len(given.reads), "") for b in given.reads}
    for first, second in given.arcs:
        model.add(rank[first] < rank[second])
    for reader, read in given.reads.items():
        for e in read & at.keys():
            for place, barrier in enumerate(given.barrier_of):
                if barrier is not None:
                    model.add(rank[barrier] < rank[reader]).only_enforce_if(at[e][place])


def statement(problem: Labelling) -> Statement:
    """Return a labelling problem without order rules as a statement."""
    return Statement(
        elements=[("x", 0, u) for u in range(problem.nodes)],
        locations=list(range(problem.labels)),
        agree={
            (u, v): Fraction(w)
            for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True)
        },
        earn={
            (u, k): Fraction(r)
            for (u, k), r in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True)
        },
        constant=Fraction(0),
        barrier_of=[None] * problem.labels,
        reads={},
        arcs=set(),
    )
