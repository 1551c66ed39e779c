"""Claims of a result, held against the worth of its layouts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from layoutopt.base.numbers import to_decimal, to_integers
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.check import order
from layoutopt.check.elements import Evaluation, evaluate
from layoutopt.check.occupancy import sure_to_fit
from layoutopt.check.order import dependencies
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore

GAP_TOLERANCE = 1e-9
"""The gap is written as a binary number; everything else must be exact."""


def violations(
    graph: GraphStore, result: UnwindingResult, status: Status, gap: float | None
) -> Iterator[str]:
    """Name everything in a result that is not so.

    Parameters
    ----------
    graph
        The instance.
    result
        What is claimed.
    status, gap
        The status and gap that the result's file states.

    Yields
    ------
    str
        One line for each broken rule or wrong number.  None of them means that the layouts
        are legal and earn what the result says.  That a bound is proved cannot be seen from
        files; that it is not contradicted by the score can.
    """
    if result.instance != graph.name:
        yield f"instance: the result is of {result.instance!r}, the instance is {graph.name!r}"
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


def counts(graph: GraphStore) -> dict[str, int]:
    """Return how large a graph is.

    Returns
    -------
    dict
        ``tensors``; ``elements`` of all tensors; ``free_elements``, those of sinks; and
        ``edges``, the positions of all pairs.
    """
    sizes = [size(shape) for shape in graph.shapes]
    return {
        "tensors": len(sizes),
        "elements": sum(sizes),
        "free_elements": sum(t.size for t in graph.sinks()),
        "edges": sum(sizes[a] for a, _, _ in graph.pairs),
    }


def ceiling(graph: GraphStore) -> Decimal:
    """Return what no layouts can exceed: all that pairs worth something earn if they match.

    Values of pairs of the same tensors are added up; a tensor always matches itself.
    """
    values, unit = to_integers([value for _, _, value in graph.pairs])
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for (a, b, _), value in zip(graph.pairs, values, strict=True):
        sums[min(a, b), max(a, b)] += value
    earned = (
        value * size(graph.shapes[a]) for (a, b), value in sums.items() if value > 0 or a == b
    )
    return to_decimal(sum(earned), unit)


def _numbers(found: Evaluation, result: UnwindingResult) -> Iterator[str]:
    if found.score is not None and found.score != result.score:
        yield f"score: the layouts earn {found.score}, the result says {result.score}"
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
            yield f"pairs[{i}]: is {own}, the result says {claimed}"


def _status(
    graph: GraphStore, result: UnwindingResult, status: Status, gap: float | None
) -> Iterator[str]:
    """Hold the claimed status and gap against the claimed score and bound."""
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
    """Hold the claim that there is no solution against what can be seen without a search."""
    if result.score is not None or result.bound is not None or result.layouts is not None:
        yield "status: the result says infeasible, but has layouts, a score or a bound"
    if graph.tile_memory is None:
        yield "status: every instance without a tile memory has a solution, the result has none"
    elif sure_to_fit(graph):
        yield "status: the sinks fit the tiles, the result says infeasible"
