"""Claims of result files: status, score, bound, gap and counts, against the specification."""

from __future__ import annotations

from collections.abc import Iterator

from layoutopt.base.result import PairScore, Status, UnwindingResult
from layoutopt.check import order
from layoutopt.check.elements import Evaluation, counts, dependencies, evaluate, sure_to_fit
from layoutopt.graphs.store import GraphStore

GAP_TOLERANCE = 1e-9
"""Tolerance for the gap, a binary float; all other numbers must be exact."""


def violations(
    graph: GraphStore, result: UnwindingResult, status: Status, gap: float | None
) -> Iterator[str]:
    """Yield a line for each wrong claim of a result, whose file states status and gap.

    If there are none, the layouts are legal and have the claimed score.  That the bound is valid
    cannot be checked; that the score does not exceed it is.
    """
    if result.instance != graph.name:
        yield f"instance: the result belongs to {result.instance!r}, not to {graph.name!r}"
    yield from _counts(graph, result)
    if result.layouts is None:
        if result.score is not None:
            yield f"score: {result.score} is claimed without layouts"
        yield from _status(graph, result, status, gap)
        return
    found = evaluate(graph, result.layouts)
    yield from found.violations
    yield from _numbers(found, result)
    yield from _status(graph, result, status, gap)
    if not found.violations and result.order:
        yield from order.faults(dependencies(graph, result.layouts), result.order)


def _counts(graph: GraphStore, result: UnwindingResult) -> Iterator[str]:
    for name, count in counts(graph).items():
        if result.size.get(name, count) != count:
            yield f"size: {name} is {count}, the result says {result.size[name]}"


def _numbers(found: Evaluation, result: UnwindingResult) -> Iterator[str]:
    if found.score is not None and found.score != result.score:
        yield f"score: the layouts have {found.score}, the result says {result.score}"
    if found.max_score != result.max_score:
        yield f"max_score: is {found.max_score}, the result says {result.max_score}"
    if found.score is not None and result.bound is not None and result.bound < found.score:
        yield f"bound: {result.bound} is below the layouts' score {found.score}"
    if found.score is None or not result.pairs:
        return
    if len(found.pairs) != len(result.pairs):
        yield f"pairs: the instance has {len(found.pairs)}, the result {len(result.pairs)}"
        return
    for i, (own, claimed) in enumerate(zip(found.pairs, result.pairs, strict=True)):
        if own != claimed:
            yield f"pairs[{i}]: is {_pair(own)}, the result says {_pair(claimed)}"


def _pair(pair: PairScore) -> str:
    matched = f"{pair.matched} of {pair.elements} elements matched"
    return f"{pair.a} and {pair.b}, value {pair.value}, {matched}"


def _status(
    graph: GraphStore, result: UnwindingResult, status: Status, gap: float | None
) -> Iterator[str]:
    """Compare the claimed status and gap with the claimed score and bound."""
    right = result.status
    if status is Status.INFEASIBLE:
        yield from _infeasible(graph, result)
    elif status is not right:
        about = f"score {result.score} and bound {result.bound}"
        yield f"status: {about} mean {right}, the result says {status}"
    own = result.gap
    if gap is not None and (own is None or abs(own - gap) > GAP_TOLERANCE * max(1.0, own)):
        yield f"gap: score and bound give {own}, the result says {gap}"


def _infeasible(graph: GraphStore, result: UnwindingResult) -> Iterator[str]:
    """Check a claim of infeasibility as far as possible without a search."""
    if result.score is not None or result.bound is not None or result.layouts is not None:
        yield "status: the result says infeasible, but has layouts, a score or a bound"
    if graph.tile_memory is None:
        yield "status: instances without a tile memory are feasible, the result says infeasible"
    elif sure_to_fit(graph):
        yield "status: the sinks fit the tiles, the result says infeasible"
