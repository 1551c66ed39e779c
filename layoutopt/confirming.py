"""Solver and specification, held against each other before an answer is given."""

from __future__ import annotations

from layoutopt.check.elements import Evaluation
from layoutopt.errors import InternalError, SolverError
from layoutopt.graphs.store import GraphStore
from layoutopt.plugins.registry import Solver
from layoutopt.result import Result


def confirm(graph: GraphStore, checked: Evaluation, result: Result, solver: Solver) -> None:
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
