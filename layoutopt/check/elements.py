"""The specification: score and rules of layouts, element by element or piece by piece.

Locations are numbered: every element of every root tensor (sink, source, barrier output,
fixed point) has a number of its own; sources with a ``mapping`` have one number per distinct
value.  Elements of sinks have the numbers given by their pieces, those of views the numbers of
their inputs.  A ValuedPair adds its value to the score for each position with equal numbers.  For
many elements, :mod:`layoutopt.check.matching` counts equal locations by boxes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np

from layoutopt.base import result
from layoutopt.base.numbers import number, to_decimal, to_integers
from layoutopt.base.result import (
    PairScore,
    Piece,
    Status,
    Step,
    UnwindingResult,
    pairs_shown,
)
from layoutopt.base.shown import Part, Shown, Words
from layoutopt.boxes.box import Box
from layoutopt.boxes.cover import Covers
from layoutopt.boxes.equation import Equations
from layoutopt.check import occupancy, order
from layoutopt.check.affine import STEPS, carried, either
from layoutopt.check.hooked import Hooked, same_tile, without_hooks
from layoutopt.check.matching import Layouts, Matching
from layoutopt.check.occupancy import sure_to_fit
from layoutopt.check.order import dependencies
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Array, Kind, Source, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import hooked, root_tiles
from layoutopt.tiles.blocks import TileMap


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
        yield from pairs_shown(self.pairs)


def evaluate(graph: GraphStore, layouts: Layouts) -> Evaluation:
    """Compute the score of layouts and check every rule, by elements if small, else by pieces.

    Parameters
    ----------
    layouts
        Pieces by sink name.

    Raises
    ------
    SizeError
        If the graph is too large by elements, and its layouts too irregular by pieces.
    """
    return either(graph, partial(by_elements, graph, layouts), partial(by_pieces, graph, layouts))


def by_elements(graph: GraphStore, layouts: Layouts) -> Evaluation:
    """Evaluate layouts with an array for each tensor."""
    broken = coverage(graph, layouts, lambda layout, sink: result.cover(layout, sink.size))
    if broken:
        return Evaluation(broken, None, most(graph))
    waits = order.by_elements(graph, layouts)
    if hooked(graph):
        found = Hooked(graph, layouts)
        matched = [found.matched(a, b) for a, b, _ in graph.pairs]
        return _evaluation(graph, matched, waits, occupancy.faults(graph, layouts, found.alike))
    numbers = _Numbers(graph)

    def alike(t: int, others: Sequence[Box]) -> int:
        """Count elements of a sink on the same tile as other elements of it."""
        return same_tile(numbers.laid_out(t, layouts[graph.tensor_name(t)]), others)

    return _evaluation(
        graph,
        _matches(graph, layouts, numbers),
        waits,
        occupancy.faults(graph, layouts, alike),
    )


def by_pieces(graph: GraphStore, layouts: Layouts, limit: int = STEPS) -> Evaluation:
    """Evaluate layouts by boxes, independently of the number of elements.

    Parameters
    ----------
    limit
        Limit of steps; see :class:`layoutopt.boxes.equation.Equations`.

    Raises
    ------
    SizeError
        If the limit is exceeded.
    """
    equations = Equations(limit)
    covers = Covers(equations)
    broken = coverage(graph, layouts, lambda layout, sink: covers.fault(layout, sink.shape))
    if broken:
        return Evaluation(broken, None, most(graph))
    seen = without_hooks(graph, layouts)
    matching = Matching(seen, layouts, equations)
    matched = [matching.matched(a, b) for a, b, _ in seen.pairs]
    waits = order.by_pieces(seen, layouts, equations.left)
    return _evaluation(graph, matched, waits, occupancy.faults(seen, layouts, matching.alike))


def _evaluation(
    graph: GraphStore,
    matched: Sequence[int],
    given: order.Dependencies,
    of_memory: Iterator[str],
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
        broken += of_memory
    return Evaluation(tuple(broken), _earned(graph, matched), most(graph), pairs, steps)


def most(graph: GraphStore) -> Decimal:
    """Return the score if every pair matched at every position."""
    return _earned(graph, [size(graph.shapes[a]) for a, _, _ in graph.pairs])


def _earned(graph: GraphStore, matched: Sequence[int]) -> Decimal:
    multiples, unit = to_integers([value for _, _, value in graph.pairs])
    return to_decimal(sum(v * m for v, m in zip(multiples, matched, strict=True)), unit)


def coverage(
    graph: GraphStore, layouts: Layouts, cover: Callable[[Sequence[Piece], Tensor], str | None]
) -> tuple[str, ...]:
    """Return a line for every sink that is not covered exactly once, and for every invalid piece.

    Parameters
    ----------
    cover
        Returns the reason why pieces do not cover a sink, or ``None``.
    """
    return tuple(_uncovered(graph, layouts, cover))


def _uncovered(
    graph: GraphStore, layouts: Layouts, cover: Callable[[Sequence[Piece], Tensor], str | None]
) -> Iterator[str]:
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
        reason = None if bad else cover(layouts[name], sink)
        if reason is not None:
            yield f"sink {name!r}: {reason}"


class _Numbers:
    """The location numbers of root tensors."""

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        self.base: dict[int, int] = {}
        self.pool: dict[int | str, int] = {}
        count = 0
        for t, producer in enumerate(graph.producers):
            if graph.ops[producer].kind is not Kind.VIEW:
                self.base[t] = count
                count += size(graph.shapes[t])
        self.count = count
        for op in graph.ops:
            for where in (op.mapping or ()) if isinstance(op, Source) else ():
                self.pool.setdefault(where, len(self.pool))
        small = self.count + len(self.pool) < 2**31
        self.dtype = np.dtype(np.int32 if small else np.int64)
        self.tiles: dict[int, TileMap] = {}
        self.mapped: dict[int, Array] = {}

    def own(self, t: int) -> Array:
        """Return the numbers of a root tensor's own locations."""
        if self.graph.tile_memory is not None:
            return self._rule(t).tiles()
        return self.at(t, np.arange(size(self.graph.shapes[t]), dtype=self.dtype))

    def at(self, t: int, elements: Array) -> Array:
        """Return the numbers of the locations of flat elements of a root tensor.

        Mappings and rules are evaluated once per tensor, not once per piece.
        """
        op = self.graph.ops[self.graph.producers[t]]
        if self.graph.tile_memory is not None:
            return self._rule(t).at(elements)
        if not isinstance(op, Source) or op.mapping is None:
            return elements + self.dtype.type(self.base[t])
        if t not in self.mapped:
            numbers = [self.count + self.pool[w] for w in op.mapping]
            self.mapped[t] = np.array(numbers, self.dtype)
        return self.mapped[t][elements]

    def _rule(self, t: int) -> TileMap:
        if t not in self.tiles:
            self.tiles[t] = root_tiles(self.graph, t)
        return self.tiles[t]

    def laid_out(self, t: int, layout: Sequence[Piece]) -> Array:
        """Return the numbers of the locations of a sink's elements."""
        taken = np.empty(size(self.graph.shapes[t]), self.dtype)
        on_tiles = self.graph.tile_memory is not None
        for piece in layout:
            where = result.read(piece)
            if not (on_tiles and piece[0] == TILE):
                where = self.at(self.graph.number(piece[0]), where)
            taken[result.written(piece)] = where
        return taken


def _matches(graph: GraphStore, layouts: Layouts, numbers: _Numbers) -> list[int]:
    """Count the positions with equal locations of each pair."""
    due: dict[int, list[int]] = {}
    for p, (a, b, _) in enumerate(graph.pairs):
        due.setdefault(max(graph.producers[a], graph.producers[b]), []).append(p)
    needed = _ancestors(graph, {t for a, b, _ in graph.pairs for t in (a, b)})
    producers = sorted({graph.producers[t] for t in needed})
    last = {t: i for i in producers for t in graph.carriers(i)}
    for i, ps in due.items():
        last.update({t: max(i, last.get(t, i)) for p in ps for t in graph.pairs[p][:2]})
    expire: dict[int, list[int]] = {}
    for t, i in last.items():
        expire.setdefault(i, []).append(t)
    found: dict[int, Array] = {}
    matched = [0] * len(graph.pairs)
    for i in producers:
        for t in graph.op_outputs[i]:
            if t in needed:
                found[t] = _locations(graph, i, t, found, numbers, layouts)
        for p in due.get(i, ()):
            a, b, _ = graph.pairs[p]
            matched[p] = int(np.count_nonzero(found[a] == found[b]))
        for t in expire.get(i, ()):
            del found[t]
    return matched


def _locations(
    graph: GraphStore, i: int, t: int, found: dict[int, Array], numbers: _Numbers, layouts: Layouts
) -> Array:
    op = graph.ops[i]
    if op.kind is Kind.SINK:
        return numbers.laid_out(t, layouts[graph.tensor_name(t)])
    if op.kind is not Kind.VIEW:
        return numbers.own(t)
    carriers = graph.carriers(i)
    shapes = [graph.shapes[c] for c in carriers]
    return carried(op, [found[c] for c in carriers], shapes, graph.shapes[t])


def _ancestors(graph: GraphStore, tensors: set[int]) -> set[int]:
    """Return tensors and all tensors that their locations come from."""
    every = set(tensors)
    for i in range(len(graph.ops) - 1, -1, -1):
        if any(t in every for t in graph.op_outputs[i]):
            every.update(graph.carriers(i))
    return every


GAP_TOLERANCE = 1e-9
"""Tolerance for the gap, a binary float; all other numbers must be exact."""


def violations(
    graph: GraphStore, result: UnwindingResult, status: Status, gap: float | None
) -> Iterator[str]:
    """Yield a line for each wrong claim of a result.

    Parameters
    ----------
    status, gap
        Those stated by the result's file.

    Yields
    ------
    str
        A violated rule or wrong number.  If there are none, the layouts are legal and have the
        claimed score.  That the bound is valid cannot be checked; that the score does not exceed
        it is.
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
    """Count tensors, elements and pair positions of a graph.

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
