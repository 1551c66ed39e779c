"""The specification: score and rules of layouts, element by element or piece by piece.

A ValuedPair adds its value to the score for each position with equal locations.  These are numbered
by :mod:`layoutopt.check.located`; for many elements, :mod:`layoutopt.check.matching` counts equal
ones by boxes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TypeAlias

from layoutopt.base import result
from layoutopt.base.errors import InputError
from layoutopt.base.numbers import number, to_decimal, to_integers
from layoutopt.base.result import PairScore, Status, Step, UnwindingResult, pairs_table
from layoutopt.base.shown import Part, Shown, Words
from layoutopt.boxes.cover import Covers
from layoutopt.boxes.equation import Equations
from layoutopt.check import occupancy, order
from layoutopt.check.affine import SMALL, STEPS, either
from layoutopt.check.located import Hooked, Located, without_hooks
from layoutopt.check.matching import Layouts, Matching
from layoutopt.check.occupancy import sure_to_fit
from layoutopt.check.order import dependencies
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import hooked


@dataclass(frozen=True)
class Evaluation(Shown):
    """Score and violations of layouts.

    Parameters
    ----------
    violations
        One line for each violated rule; empty if the layouts are legal.
    score
        Exact; ``None`` if the layouts do not cover the sinks.
    max_score
        The score if every pair matched at every position.
    pairs
        Score of each ValuedPair.
    order
        An order in which the sinks can be set.
    missing
        Number of sink elements without a location.
    """

    violations: tuple[str, ...]
    score: Decimal | None
    max_score: Decimal
    pairs: tuple[PairScore, ...] = ()
    order: tuple[Step, ...] = ()
    missing: int = 0

    def shown_parts(self) -> Iterator[Part]:
        """Yield the score, the violations, and the table of pairs."""
        yield Words(f"score {number(self.score)} of {number(self.max_score)}")
        yield from (Words(line, "bad") for line in self.violations)
        yield pairs_table(self.pairs)


def evaluate(graph: GraphStore, layouts: Layouts) -> Evaluation:
    """Compute the score of layouts and check every rule, by elements if small, else by pieces."""
    return either(graph, partial(by_elements, graph, layouts), partial(by_pieces, graph, layouts))


def by_elements(graph: GraphStore, layouts: Layouts) -> Evaluation:
    """Evaluate layouts with an array for each tensor."""
    broken = coverage(graph, layouts)
    if broken:
        return Evaluation(broken, None, most(graph))
    waits = order.by_elements(graph, layouts)
    located = Hooked(graph, layouts) if hooked(graph) else Located(graph, layouts)
    of_memory = partial(occupancy.faults, graph, layouts, located.alike)
    return _evaluation(graph, located.matches(), waits, of_memory)


def by_pieces(graph: GraphStore, layouts: Layouts, limit: int = STEPS) -> Evaluation:
    """Evaluate layouts by boxes, in at most so many steps, however many elements there are."""
    equations = Equations(limit)
    broken = coverage(graph, layouts, equations)
    if broken:
        return Evaluation(broken, None, most(graph))
    seen = without_hooks(graph, layouts)
    matching = Matching(seen, layouts, equations)
    matched = [matching.matched(a, b) for a, b, _ in seen.pairs]
    waits = order.by_pieces(seen, layouts, equations.left)
    of_memory = partial(occupancy.faults, seen, layouts, matching.alike)
    return _evaluation(graph, matched, waits, of_memory)


def _evaluation(
    graph: GraphStore,
    matched: Sequence[int],
    given: order.Dependencies,
    of_memory: Callable[[], Iterator[str]],
) -> Evaluation:
    pairs = tuple(
        PairScore(graph.tensor_name(a), graph.tensor_name(b), v, size(graph.shapes[a]), m)
        for (a, b, v), m in zip(graph.pairs, matched, strict=True)
    )
    steps, cycle = order.derive(given)
    names = ", ".join(repr(graph.ops[b].id) for b in cycle[:5])
    what = "waits for itself" if len(cycle) == 1 else "wait for each other"
    broken = [f"barrier order: {names} {what}"] if cycle else []
    if graph.tile_memory is not None:
        broken += of_memory()
    return Evaluation(tuple(broken), _earned(graph, matched), most(graph), pairs, steps)


def most(graph: GraphStore) -> Decimal:
    """Return the score if every pair matched at every position."""
    return _earned(graph, [size(graph.shapes[a]) for a, _, _ in graph.pairs])


def _earned(graph: GraphStore, matched: Sequence[int]) -> Decimal:
    multiples, unit = to_integers([value for _, _, value in graph.pairs])
    return to_decimal(sum(v * m for v, m in zip(multiples, matched, strict=True)), unit)


Spread: TypeAlias = Located | Matching
"""What counts elements by tile: those on ``each``, and positions of two tensors on ``both``."""


def spread(graph: GraphStore, layouts: Layouts) -> Spread:
    """Return the counts of elements by tile, by elements in small graphs, by pieces in large ones.

    Layouts cover all sinks.  Barriers with hooks are evaluated element by element.
    """
    if hooked(graph):
        found = Hooked(graph, layouts)
        if not found.complete:
            raise InputError("barrier order: a barrier with a hook waits for itself")
        return found
    if sum(map(size, graph.shapes)) <= SMALL:
        return Located(graph, layouts)
    return Matching(graph, layouts, Equations(STEPS))


def uncovered(graph: GraphStore, layouts: Layouts) -> tuple[str, ...]:
    """Return what :func:`coverage` does, by the faster method."""
    return either(
        graph,
        partial(coverage, graph, layouts),
        lambda limit: coverage(graph, layouts, Equations(limit)),
    )


def coverage(
    graph: GraphStore, layouts: Layouts, equations: Equations | None = None
) -> tuple[str, ...]:
    """Return a line for every sink that is not covered exactly once, and for every invalid piece.

    With equations this is found by pieces, else by elements.
    """
    return tuple(_uncovered(graph, layouts, None if equations is None else Covers(equations)))


def _uncovered(graph: GraphStore, layouts: Layouts, covers: Covers | None) -> Iterator[str]:
    sinks = {sink.name: sink for sink in graph.sinks()}
    roots = {
        graph.tensor_name(t): size(graph.shapes[t])
        for t, producer in enumerate(graph.producers)
        if graph.ops[producer].kind is not Kind.VIEW
    }
    if graph.tile_memory is not None:
        roots[TILE] = graph.tile_memory.tiles
    for name in layouts:
        if name not in sinks:
            yield f"layouts: {name!r} is not a sink of the instance"
    for name, sink in sinks.items():
        if name not in layouts:
            yield f"sink {name!r}: has no layout"
            continue
        bad = False
        for i, piece in enumerate(layouts[name]):
            origin = roots.get(piece[0])
            reason = (
                f"its origin {piece[0]!r} must be a source, barrier, fixed point or sink"
                if origin is None
                else result.fault(piece, sink.size, origin)
            )
            if reason is not None:
                bad = True
                yield f"sink {name!r}: piece {i}: {reason}"
        if bad:
            continue
        if covers is None:
            reason = result.cover(layouts[name], sink.size)
        else:
            reason = covers.fault(layouts[name], sink.shape)
        if reason is not None:
            yield f"sink {name!r}: {reason}"


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


def counts(graph: GraphStore) -> dict[str, int]:
    """Count tensors, elements, those of sinks, and as edges the positions of all pairs."""
    sizes = [size(shape) for shape in graph.shapes]
    return {
        "tensors": len(sizes),
        "elements": sum(sizes),
        "free_elements": sum(t.size for t in graph.sinks()),
        "edges": sum(sizes[a] for a, _, _ in graph.pairs),
    }


def ceiling(graph: GraphStore) -> Decimal:
    """Return a bound on all scores: the score if exactly the pairs of positive value match.

    Values of pairs of the same tensors are added up first; a tensor always matches itself.
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
