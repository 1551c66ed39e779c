"""The specification: score and rules of layouts, element by element or piece by piece.

A ValuedPair adds its value to the score for each position with equal locations.  Elements of sinks
have the location numbers given by their pieces, those of views the numbers of their inputs, all
others numbers of their own (:mod:`layoutopt.graphs.locations`); on a tile memory, the numbers are
those of tiles, whose bytes are limited.  For many elements, :mod:`layoutopt.check.matching` counts
equal locations by boxes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property, partial
from typing import TypeAlias, TypeVar

import numpy as np

from layoutopt.base import result
from layoutopt.base.errors import InputError, SizeError
from layoutopt.base.limits import require
from layoutopt.base.numbers import number, to_decimal, to_integers
from layoutopt.base.result import PairScore, Step, pairs_table
from layoutopt.base.table import Part, Shown, Words
from layoutopt.boxes.box import Box, canonical
from layoutopt.boxes.cover import Covers
from layoutopt.boxes.equation import Equations
from layoutopt.check import order
from layoutopt.check.affine import passed_on
from layoutopt.check.matching import Layouts, Matching
from layoutopt.graphs.locations import TILE, Locations, hook_of, hooked
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import (
    TileMaps,
    check_hooks,
    memory_of,
    output_tiles,
    require_countable,
    viewed,
)
from layoutopt.tiles.counting import Counts, counted, on_each, summed

T = TypeVar("T")

SMALL = 2 * 10**6
"""Largest number of elements for which graphs are checked element by element."""

LARGE = 10**9
"""The same if the check by pieces exceeds its limit."""

STEPS = 2 * 10**6
"""Limit of steps by pieces, about one minute."""

ELEMENTS_PER_STEP = 1000
"""Elements that are checked in the time of one step."""


def either(graph: GraphStore, by_elements: Callable[[], T], by_pieces: Callable[[int], T]) -> T:
    """Return the result of the faster of two equivalent methods, by a graph's number of elements.

    ``by_elements`` takes time and memory proportional to it, ``by_pieces`` raises
    :class:`~layoutopt.base.errors.SizeError` after so many steps.
    """
    count = sum(map(size, graph.shapes))
    if count > LARGE:
        return by_pieces(STEPS)
    if count > SMALL:
        try:
            return by_pieces(min(STEPS, count // ELEMENTS_PER_STEP))
        except SizeError:
            pass
    return by_elements()


ELEMENT_BYTES = 24
"""Bytes per element where hooks are evaluated."""

UNKNOWN = -1
"""The tile of an element that depends on itself."""


class Located:
    """The location numbers of a graph's elements in layouts, which cover all sinks."""

    def __init__(self, graph: GraphStore, layouts: Layouts) -> None:
        self.graph, self.layouts = graph, layouts
        self.on_tiles = graph.tile_memory is not None
        self.numbers = Locations(graph)
        self.dtype = np.dtype(np.int32 if self.numbers.count < 2**31 else np.int64)
        self.found: dict[int, Array] = {}

    @cached_property
    def maps(self) -> TileMaps:
        """The tiles of root tensors, on a tile memory."""
        return TileMaps(self.graph)

    def of(self, t: int) -> Array:
        """Return the numbers of a tensor's elements, flat, which are kept."""
        for out in self.graph.view_order([t], self.found):
            self.found[out] = self.made(out, self.found)
        return self.found[t]

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""
        return counted(self.of(t))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""
        mine, other = self.of(a), self.of(b)
        return counted(mine[mine == other])

    def alike(self, t: int, others: Sequence[Box]) -> int:
        """Count elements of a tensor on the same tile as the others that boxes map them to."""
        tiles = self.of(t)
        same = (tiles[result.read(box)] == tiles[result.written(box)] for box in others)
        return sum(map(int, map(np.count_nonzero, same)))

    def matches(self) -> list[int]:
        """Count the positions with equal locations of each pair; arrays are held while needed."""
        graph = self.graph
        due: dict[int, list[int]] = defaultdict(list)
        for p, (a, b, _) in enumerate(graph.pairs):
            due[max(a, b)].append(p)  # whichever of both is made last
        needed = graph.view_order({t for a, b, _ in graph.pairs for t in (a, b)})
        last = {c: t for t in needed for c in graph.carriers(graph.producers[t])}
        for t, ps in due.items():
            last.update({end: max(t, last.get(end, t)) for p in ps for end in graph.pairs[p][:2]})
        expire: dict[int, list[int]] = defaultdict(list)
        for t, reader in last.items():
            expire[reader].append(t)
        found: dict[int, Array] = {}
        matched = [0] * len(graph.pairs)
        for t in needed:
            found[t] = self.made(t, found)
            for p in due[t]:
                a, b, _ = graph.pairs[p]
                matched[p] = int(np.count_nonzero(found[a] == found[b]))
            for gone in expire[t]:
                del found[gone]
        return matched

    def made(self, t: int, found: Mapping[int, Array]) -> Array:
        """Return the numbers of a tensor's elements, flat, if those of a view's carriers are."""
        kind = self.graph.op_of(t).kind
        if kind is Kind.VIEW:
            return passed_on(self.graph, t, found)
        if kind is Kind.SINK:
            return self._laid_out(t)
        if self.on_tiles:
            return self.maps[t].tiles()
        return self.at(t, np.arange(size(self.graph.shapes[t]), dtype=self.dtype))

    def at(self, t: int, elements: Array) -> Array:
        """Return the numbers of the locations of flat elements of a root tensor."""
        return self.maps[t].at(elements) if self.on_tiles else self.numbers.own_at(t, elements)

    def _laid_out(self, t: int) -> Array:
        taken = np.empty(size(self.graph.shapes[t]), self.dtype)
        for piece in self.layouts[self.graph.tensor_name(t)]:
            where = result.read(piece)
            if not (self.on_tiles and piece[0] == TILE):
                where = self.at(self.graph.number(piece[0]), where)
            taken[result.written(piece)] = where
        return taken


class Hooked(Located):
    """The tiles of all tensors of a graph whose barriers have hooks, ``found`` by number.

    The tiles of a barrier's outputs are computed from those of its inputs.  Tiles that depend on
    themselves remain unknown; they violate barrier order.
    """

    def __init__(self, graph: GraphStore, layouts: Layouts) -> None:
        require(ELEMENT_BYTES * sum(map(size, graph.shapes)), "evaluating hooks for every element")
        check_hooks(graph)
        super().__init__(graph, layouts)
        for _ in range(len(hooked(graph)) + 1):  # each round computes at least one more barrier
            self.before, self.found = self.found, {}
            for i in range(len(graph.ops)):
                self._make(i)
            self.complete = not any((tiles == UNKNOWN).any() for tiles in self.found.values())
            if self.complete:
                break

    def matches(self) -> list[int]:
        """Count the positions with equal tiles of each pair."""
        pairs = [(self.found[a], self.found[b]) for a, b, _ in self.graph.pairs]
        return [int(np.count_nonzero((a == b) & (a != UNKNOWN))) for a, b in pairs]

    def at(self, t: int, elements: Array) -> Array:
        """Return the tiles of flat elements of a root tensor, as known after the last round."""
        if hook_of(self.graph, self.graph.producers[t]) is None:
            return super().at(t, elements)
        known = self.before.get(t)
        return np.full(len(elements), UNKNOWN) if known is None else known[elements]

    def _make(self, i: int) -> None:
        """Compute the tiles of an op's outputs."""
        graph, outputs = self.graph, self.graph.op_outputs[i]
        if hook_of(graph, i) is None:
            for t in outputs:
                self.found[t] = self.made(t, self.found)
            return
        inputs = [self.found[t] for t in graph.op_inputs[i]]
        if any((tiles == UNKNOWN).any() for tiles in inputs):
            found = [np.full(size(graph.shapes[t]), UNKNOWN) for t in outputs]
        else:
            found = output_tiles(graph, i, inputs)
        self.found |= zip(outputs, found, strict=True)


def takes_hooked(graph: GraphStore, layouts: Layouts) -> bool:
    """Return whether the origin of a piece is an output of a barrier with a hook."""
    outputs = {graph.tensor_name(t) for i in hooked(graph) for t in graph.op_outputs[i]}
    return any(piece[0] in outputs for layout in layouts.values() for piece in layout)


def without_hooks(graph: GraphStore, layouts: Layouts) -> GraphStore:
    """Return a graph for the check by pieces, with views in place of built-in hooks.

    Users' hooks, and pieces whose origins are outputs of barriers with hooks, are refused.
    """
    if not hooked(graph):
        return graph
    found = viewed(graph)
    if hooked(found) or takes_hooked(graph, layouts):
        count = sum(map(size, graph.shapes))
        what = "users' hooks" if hooked(found) else "pieces with origins in barriers with hooks"
        raise SizeError(f"{what} are evaluated element by element; {count:,} are too many")
    return found


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
    of_memory = partial(_misfits, graph, layouts, located.alike)
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
    of_memory = partial(_misfits, seen, layouts, matching.alike)
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
    roots = {graph.tensor_name(t): size(graph.shapes[t]) for t in graph.roots()}
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


def dependencies(graph: GraphStore, layouts: Layouts) -> order.Dependencies:
    """Return the dependencies between pieces and barriers.

    Included are barriers that are origins of pieces, and those that these depend on.
    """
    return either(
        graph, partial(order.by_elements, graph, layouts), partial(order.by_pieces, graph, layouts)
    )


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


SHOWN = 3
"""Largest number of overfull tiles in a message."""

HEAVIEST = 3
"""Largest number of sinks in a message."""


def occupied(graph: GraphStore, layouts: Layouts) -> Array:
    """Return the bytes of sink elements on each tile, shape ``(tiles,)``; see :func:`held`."""
    total = np.zeros(memory_of(graph).tiles, np.int64)
    for _, own in held(graph, layouts):
        total += own
    return total


def held(graph: GraphStore, layouts: Layouts) -> Iterator[tuple[Tensor, Array]]:
    """Yield each sink, and the bytes of its elements on each tile, shape ``(tiles,)``."""
    memory = memory_of(graph)
    require_countable(sum(sink_bytes(graph).values()))
    where = Hooked(graph, layouts) if takes_hooked(graph, layouts) else None
    maps = TileMaps(graph)
    once = cache(on_each)  # equal layers have equal boxes
    for sink in graph.sinks():
        if where is not None:
            there = where.of(sink.index)
            tiles, numbers = counted(there[there != UNKNOWN])
        else:
            tiles, numbers = summed(
                once(maps.of(name), start, tuple([(n, step) for n, step, _ in loops]))
                for name, start, _, loops in layouts[sink.name]
            )
        count = np.zeros(memory.tiles, np.int64)
        count[tiles] = numbers * memory.bytes_of(sink.name)
        yield sink, count


def sink_bytes(graph: GraphStore) -> dict[str, int]:
    """Return the bytes of all elements of each sink of a graph with a tile memory, by name."""
    memory = memory_of(graph)
    return {sink.name: sink.size * memory.bytes_of(sink.name) for sink in graph.sinks()}


def overfull(graph: GraphStore) -> str:
    """Return the reason why all sinks exceed a graph's tile memory in total, or an empty string.

    The bytes used on a tile are a multiple of the greatest common divisor of the grains' bytes.
    """
    memory, need = memory_of(graph), sink_bytes(graph)
    total, common = sum(need.values()), math.gcd(*_grains(graph)) or 1
    room = memory.tiles * (memory.bytes_per_tile // common * common)
    if total <= room:
        return ""
    heaviest = sorted(need, key=lambda name: -need[name])[:HEAVIEST]
    largest = ", ".join(f"{name!r} {need[name]:,}" for name in heaviest)
    multiples = f" in multiples of {common:,}" if total <= memory.total else ""
    return (
        f"sinks need {total:,} bytes, {total - room:,} more than all {memory.tiles:,} "
        f"tiles hold{multiples}; the heaviest: {largest}"
    )


def sure_to_fit(graph: GraphStore) -> bool:
    """Return whether the sinks fit into a graph's tile memory even if packed greedily.

    If a grain of ``w`` bytes fits on no tile, every tile has at most ``w - g`` free bytes, where
    ``g`` divides the bytes of all grains.
    """
    memory, grains = memory_of(graph), _grains(graph)
    common = math.gcd(*grains) or 1
    least = memory.bytes_per_tile // common * common - max(grains, default=0) + common
    return sum(sink_bytes(graph).values()) <= memory.tiles * max(least, 0)


def _grains(graph: GraphStore) -> set[int]:
    """Return the distinct numbers of bytes of grains of sinks."""
    memory = memory_of(graph)
    found = set()
    for sink in graph.sinks():
        whole, rest = divmod(sink.size, memory.grain)
        sizes = ([memory.grain] if whole else []) + ([rest] if rest else [])
        found |= {size * memory.bytes_of(sink.name) for size in sizes}
    return found


def _misfits(
    graph: GraphStore, layouts: Layouts, alike: Callable[[int, Sequence[Box]], int]
) -> Iterator[str]:
    """Yield a line for each rule of the tile memory that layouts violate.

    ``alike`` counts elements of a tensor, by number, on the same tile as the others given by boxes.
    """
    memory = memory_of(graph)
    yield from too_full(graph, layouts)
    if memory.grain > 1:
        for sink in graph.sinks():
            apart = sink.size - alike(sink.index, _heads(sink, memory.grain))
            if apart:
                yield (
                    f"grain: {apart} elements of sink {sink.name!r} are not on the tile of the "
                    f"first element of their grain of {memory.grain}"
                )


def too_full(graph: GraphStore, layouts: Layouts) -> Iterator[str]:
    """Yield a line if layouts, of which elements may be missing, overfill tiles."""
    room, used = memory_of(graph).bytes_per_tile, occupied(graph, layouts)
    over = np.flatnonzero(used > room)
    if len(over):
        excess = int((used[over] - room).sum())
        named = ", ".join(f"tile {t} holds {used[t]}" for t in over[:SHOWN].tolist())
        more = f" and {len(over) - SHOWN} more tiles are overfull" if len(over) > SHOWN else ""
        yield f"capacity: {named} of {room} bytes{more}; {excess} bytes too many in all"


def _heads(sink: Tensor, grain: int) -> list[Box]:
    """Return the map from each element of a sink to the first of its grain, as boxes."""
    whole = sink.size // grain * grain
    found = []
    if whole:
        found.append(canonical(sink.index, 0, 0, [(whole // grain, grain, grain), (grain, 0, 1)]))
    if sink.size > whole:
        found.append(canonical(sink.index, whole, whole, [(sink.size - whole, 0, 1)]))
    return found
