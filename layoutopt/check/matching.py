"""Numbers of positions of ValuedPairs with equal locations, counted by boxes.

Every tensor's elements are divided into boxes; each is at the locations of a box of a root tensor.
A view's boxes follow from its carriers' by solving an equation for each pair of overlapping boxes
(:mod:`layoutopt.boxes.join`), independently of the number of elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box, canonical, unfolded
from layoutopt.boxes.equation import Equations, Term
from layoutopt.boxes.join import BoxIndex, common, image
from layoutopt.boxes.merge import merged
from layoutopt.check.affine import moves
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Kind, Shape, Source, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import POOL, TileMaps
from layoutopt.tiles.counting import Counts, on_both, on_each, summed, together

Layouts = Mapping[str, Sequence[Piece]]


class Tracing:
    """Boxes of all tensors, derived through views from those of root tensors, which are given."""

    def __init__(
        self, graph: GraphStore, given: Callable[[int], Iterable[Box]], equations: Equations
    ) -> None:
        self.graph, self.given, self.equations = graph, given, equations
        self._found: dict[int, list[Box]] = {}
        self._places: dict[int, BoxIndex] = {}

    def boxes(self, t: int) -> list[Box]:
        """Return the boxes of a tensor; each element is in exactly one."""
        for out in self.graph.view_order([t], self._found):
            self._found[out] = merged(self._traced(out), self.equations)
        return self._found[t]

    def places(self, t: int) -> BoxIndex:
        """Return an index of a tensor's boxes."""
        if t not in self._places:
            self._places[t] = BoxIndex(self.boxes(t), self.graph.shapes[t], self.equations)
        return self._places[t]

    def _traced(self, t: int) -> Iterator[Box]:
        graph, producer = self.graph, self.graph.producers[t]
        op = graph.ops[producer]
        if op.kind is not Kind.VIEW:
            yield from self.given(t)
            return
        carriers = graph.carriers(producer)
        for move in moves(op, [graph.shapes[c] for c in carriers], graph.shapes[t]):
            places = self.places(carriers[move.label])
            yield from image(canonical(*move), places, self.equations)


class Matching:
    """Boxes labelled by the root tensors of their elements' locations, in given layouts."""

    def __init__(self, graph: GraphStore, layouts: Layouts, equations: Equations) -> None:
        self.graph, self.layouts, self.equations = graph, layouts, equations
        self.tracing = Tracing(graph, self._given, equations)
        self.pool: dict[int | str, int] = {}
        self.maps = TileMaps(graph)
        self._together, self._on_each = cache(together), cache(on_each)
        self._on_both = cache(on_both)
        self.answers: dict[object, int] = {}

    def matched(self, a: int, b: int) -> int:
        """Count the positions at which two tensors of one shape have equal locations."""
        mine, other = self.tracing.boxes(a), self.tracing.boxes(b)
        if self.graph.tile_memory is not None:
            return self._on_tiles(mine, other, self.graph.shapes[a])
        same = set(mine) & set(other)
        total = sum(box.elements for box in same)
        rest: dict[int, list[Box]] = defaultdict(list)
        for box in other:
            if box not in same:
                rest[box.label].append(box)
        shape = self.graph.shapes[a]
        near = {
            root: BoxIndex(some, shape, self.equations, self._shape(root))
            for root, some in rest.items()
        }
        for box in mine:
            if box not in same and box.label in near:
                total += sum(self._equal(box, twin) for twin in near[box.label].near(box))
        return total

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""
        return summed(map(self._on_tile, self.tracing.boxes(t)))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""
        shape = self.graph.shapes[a]
        same, others = self._meeting(self.tracing.boxes(a), self.tracing.boxes(b), shape)
        parts = list(map(self._on_tile, same))
        for box, twin in others:
            maps = self.maps[box.label], self.maps[twin.label]
            parts += [self._on_both(maps, *part) for part in common(box, twin, self.equations)]
        return summed(parts)

    def _on_tile(self, box: Box) -> Counts:
        loops = tuple([(n, step) for n, step, _ in box.loops])
        return self._on_each(self.maps[box.label], box.start, loops)

    def alike(self, t: int, others: Sequence[Box]) -> int:
        """Count elements of a tensor on the same tile as the others given by boxes."""
        places, shape = self.tracing.places(t), self.graph.shapes[t]
        there = [box for other in others for box in image(other, places, self.equations)]
        return self._on_tiles(self.tracing.boxes(t), there, shape)

    def _meeting(
        self, mine: Sequence[Box], other: Sequence[Box], shape: Shape
    ) -> tuple[set[Box], Iterator[tuple[Box, Box]]]:
        """Return the boxes that are in both lists, and pairs of others that may overlap."""
        same = set(mine) & set(other)
        left, right = (
            [part for box in side if box not in same for part in unfolded(box, shape)]
            for side in (mine, other)
        )
        near = BoxIndex(right, shape, self.equations)
        return same, ((box, twin) for box in left for twin in near.near(box))

    def _on_tiles(self, mine: Sequence[Box], other: Sequence[Box], shape: Shape) -> int:
        """Count the positions at which two lists of boxes have equal tiles, cached."""
        sides = (tuple((id(self.maps[b.label]), *b[1:]) for b in side) for side in (mine, other))
        key = *sides, shape
        if key not in self.answers:
            same, others = self._meeting(mine, other, shape)
            self.answers[key] = sum(box.elements for box in same) + sum(
                self._equal_tiles(box, twin) for box, twin in others
            )
        return self.answers[key]

    def _equal_tiles(self, a: Box, b: Box) -> int:
        """Count the common elements of two boxes that are on equal tiles."""
        maps = self.maps[a.label], self.maps[b.label]
        return sum(self._together(maps, *part) for part in common(a, b, self.equations))

    def _shape(self, root: int) -> Shape:
        return () if root == POOL else self.graph.shapes[root]

    def _equal(self, a: Box, b: Box) -> int:
        """Count the common elements of two boxes that have equal locations."""
        total = 0
        for (one, two), loops in common(a, b, self.equations):
            gaps = tuple([Term(there - other, n, ()) for n, (there, other) in loops])
            total += self.equations.count(gaps, two - one)
        return total

    def _given(self, t: int) -> Iterator[Box]:
        """Yield the boxes of a root tensor, by its pieces or at its own locations."""
        if self.graph.op_of(t).kind is not Kind.SINK:
            yield from self._own(t)
            return
        on_tiles = self.graph.tile_memory is not None
        for name, start, to, loops in self.layouts[self.graph.tensor_name(t)]:
            origin = POOL if on_tiles and name == TILE else self.graph.number(name)
            piece = canonical(origin, start, to, loops)
            if on_tiles or _mapping(self.graph, origin) is None:
                yield piece
            else:
                yield from image(piece, self.tracing.places(origin), self.equations)

    def _own(self, t: int) -> Iterator[Box]:
        """Yield the boxes of a tensor at its own locations or those of its mapping."""
        mapping, count = _mapping(self.graph, t), size(self.graph.shapes[t])
        if mapping is not None and self.graph.tile_memory is None:
            yield from _runs([self.pool.setdefault(v, len(self.pool)) for v in mapping])
        elif count:
            yield canonical(t, 0, 0, [(count, 1, 1)])


def _mapping(graph: GraphStore, t: int) -> tuple[int | str, ...] | None:
    op = graph.op_of(t)
    return op.mapping if isinstance(op, Source) else None


def _runs(values: Sequence[int]) -> Iterator[Box]:
    """Yield boxes of a list of numbers: runs with constant differences."""
    steps = [b - a for a, b in pairwise(values)]
    first = 0
    while first < len(values):
        step = steps[first] if first < len(steps) else 0
        end = first
        while end < len(steps) and steps[end] == step:
            end += 1
        yield canonical(POOL, values[first], first, [(end + 1 - first, step, 1)])
        first = end + 1
