"""Greedy0, the only algorithm of poprithms' unwinding, on arrays of elements.

State: which elements of which tensor have a location (are *covered*), and in which order the
*pieces* came that cover them; a stack of new pieces; a queue of directed pairs.  Sources cover
themselves.  Pieces flow forward through views, last in first out; a barrier whose inputs are all
covered covers its outputs.  When nothing flows any more, the pair of highest value with a tensor
that grew since is taken, its covered side is carried back from its other side to the sinks, as
far as these are not covered yet, and flow goes on.  Covered elements are never revised.

Ties: a larger value first; then the partner whose op is farther from the end of the graph
(longest path, counted in ops, fixed points counting as sources); then the larger number of
the tensor that grew; then that of its partner.  Where one sink element is reached from
several positions, the earlier piece wins, then the earlier way back: sinks in order; a tensor's
ways are noted when the tensor before it is visited, and the latest consumer is visited first, so
that a direct way comes before one through other views.  Through ``expand`` only index 0 of a
broadcast dimension leads back.

What remains uncovered in the end gets fresh locations, all at once, and flow goes on; the
original stops with an error there.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import ranges, to_integers, unique
from layoutopt.graphs.locations import FixedElements, Origins, first_numbers, own_origins
from layoutopt.graphs.ops import Array, Expand, KeepsOrder, Kind, Shape, size
from layoutopt.graphs.store import GraphStore
from layoutopt.network.components import reached
from layoutopt.network.problem import IntArray


class Elements:
    """Elements of a graph, numbered within each tensor by flat index."""

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        self._gathers: dict[int, tuple[IntArray, list[int]]] = {}
        self._count = np.arange(0)

    def count(self, t: int) -> int:
        """Return how many elements a tensor has."""
        return size(self.graph.shapes[t])

    def gather(self, i: int) -> tuple[IntArray, list[int]] | None:
        """Return where each output element of view ``i`` comes from, as ``source, starts``.

        Sources count through the elements of all carriers, of which ``starts`` are the first
        numbers, and their end; ``None`` if every element keeps its number.
        """
        op = self.graph.ops[i]
        if isinstance(op, KeepsOrder):
            return None
        if i not in self._gathers:
            shapes = [self.graph.shapes[t] for t in self.graph.carriers(i)]
            starts = np.cumsum([0, *map(size, shapes)]).tolist()
            if starts[-1] > len(self._count):
                self._count = np.arange(starts[-1])
            arrays = [
                self._count[a:b].reshape(shape)
                for (a, b), shape in zip(pairwise(starts), shapes, strict=True)
            ]
            self._gathers[i] = np.asarray(op.view(arrays)).reshape(-1), starts
        return self._gathers[i]

    def lowest(self, i: int) -> IntArray:
        """Return which output elements of ``expand`` op ``i`` are at index 0 where it broadcasts.

        The result is Boolean, shape ``(elements,)``.
        """
        [carrier] = self.graph.carriers(i)
        out = self.graph.shapes[self.graph.op_outputs[i][0]]
        found = np.zeros(out, bool)
        found[_corner(self.graph.shapes[carrier], out)] = True
        return found.reshape(-1)


def _corner(shape: Shape, out: Shape) -> tuple[slice, ...]:
    lead = (slice(0, 1),) * (len(out) - len(shape))
    return lead + tuple(slice(0, 1) if n == 1 else slice(None) for n in shape)


Path = tuple[int, ...]
"""A root tensor, then op and input index of each view taken where there was a choice."""


class BackwardMaps:
    """Index maps of a graph's views, made when they are first needed."""

    def __init__(self, graph: GraphStore, places: Elements) -> None:
        self.graph, self.places = graph, places
        self._roots: dict[int, IntArray] = {}
        self._paths: dict[int, tuple[IntArray, list[Path]]] = {}
        self._numbers: dict[int, IntArray] = {}
        sinks = [t for t, p in enumerate(graph.producers) if graph.ops[p].kind is Kind.SINK]
        self._sinks = np.array(sinks, np.int64)
        self._starts = np.cumsum([0, *map(places.count, sinks)])
        self._readers = Counter(t for inputs in graph.op_inputs for t in inputs)
        self._first = dict(zip(sinks, self._starts.tolist(), strict=False))

    def straight(self, i: int) -> bool:
        """Return whether every output place of a view has its input's number."""
        return self.places.gather(i) is None

    def image(self, i: int, k: int) -> tuple[IntArray, IntArray]:
        """Return the output places that come from input ``k``, and the origin of each."""
        found = self.places.gather(i)
        if found is None:
            every = np.arange(self.places.count(self.graph.op_outputs[i][0]))
            return every, every
        source, starts = found
        carriers = list(self.graph.ops[i].carriers(len(self.graph.op_inputs[i])))
        start, end = starts[carriers.index(k)], starts[carriers.index(k) + 1]
        image = np.flatnonzero((source >= start) & (source < end))
        return image, source[image] - start

    def roots(self, t: int) -> IntArray:
        """Return the sink place, by number, that each place leads back to, or -1."""
        for below in self.graph.view_order([t], self._roots):
            self._roots[below] = self._roots_of(below)
        return self._roots[t]

    def sink_of(self, roots: IntArray) -> tuple[int, IntArray]:
        """Return the sink of root places of one sink, and their numbers in it."""
        at = int(np.searchsorted(self._starts, roots[0], side="right")) - 1
        return int(self._sinks[at]), roots - self._starts[at]

    def flags(self, marked: Mapping[int, IntArray]) -> IntArray:
        """Return for each sink place, by number, whether it is marked."""
        flags = np.zeros(int(self._starts[-1]), bool)
        for t, mask in marked.items():
            flags[self._first[t] : self._first[t] + len(mask)] = mask
        return flags

    def many(self, t: int) -> bool:
        """Return whether several ways may lead back from a tensor."""
        return len(self._path(t)[1]) > 1

    def numbers(self, t: int) -> IntArray:
        """Return for each place which of the ways back is its own, in order."""
        if t not in self._numbers:
            number, paths = self._path(t)
            rank = np.empty(len(paths), np.int64)
            last = self.graph.producers[t]
            order = sorted(range(len(paths)), key=lambda n: inverse(paths[n], last))
            rank[order] = np.arange(len(paths))
            self._numbers[t] = rank[number] if len(paths) else number
        return self._numbers[t]

    def _roots_of(self, t: int) -> IntArray:
        i, count = self.graph.producers[t], self.places.count(t)
        op = self.graph.ops[i]
        if op.kind is Kind.SINK:
            return np.arange(self._first[t], self._first[t] + count)
        if op.kind is not Kind.VIEW:
            return np.full(count, -1)
        below = [self._roots[c] for c in self.graph.carriers(i)]
        found = self.places.gather(i)
        if found is None:
            return below[0]
        roots = np.concatenate(below)[found[0]]
        if isinstance(op, Expand):
            roots[~self.places.lowest(i)] = -1
        return roots

    def _path(self, t: int) -> tuple[IntArray, list[Path]]:
        """Return for each place the number of its path from a sink, and the paths."""
        for below in self.graph.view_order([t], self._paths):
            self._paths[below] = self._path_of(below)
        return self._paths[t]

    def _path_of(self, t: int) -> tuple[IntArray, list[Path]]:
        i = self.graph.producers[t]
        op, count = self.graph.ops[i], self.places.count(t)
        if op.kind is not Kind.VIEW:
            return np.zeros(count, np.int64), [(t,)]
        numbers: list[IntArray] = []
        paths: list[Path] = []
        for k in op.carriers(len(self.graph.op_inputs[i])):
            below = self.graph.op_inputs[i][k]
            number, ways = self._paths[below]
            numbers.append(number + len(paths))
            paths += [(*path, i, k) for path in ways] if self._readers[below] > 1 else ways
        found = self.places.gather(i)
        if found is None:
            return numbers[0], paths
        number = np.concatenate(numbers)[found[0]]
        if len(paths) == 1:
            return number, paths
        present, number = np.unique(number, return_inverse=True)
        return number, [paths[n] for n in present.tolist()]


def inverse(path: Path, last: int) -> Path:
    """Return what paths that end in op ``last`` are ordered by.

    A stack holds the tensors whose readers are still to be visited, so that of several readers
    the latest comes first; but the inputs of one reader are noted in their own order.
    """
    signs = [1] + [-1] * (len(path) - 1)
    if path[-2:-1] == (last,):
        signs[-1] = 1
    return tuple(sign * number for sign, number in zip(signs, path, strict=True))


@dataclass(frozen=True, eq=False)
class ForwardMaps:
    """A table by place, so that a piece meets only the views that it goes through."""

    starts: IntArray  # shape (places + 1,): the rows of each place
    reader: IntArray  # a reader's number for each row
    image: IntArray  # the place in its output

    def of(self, places: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield for each reader, in order, its output places that come from places.

        The third of each is the origin of each output place.
        """
        first = self.starts[places]
        counts = self.starts[places + 1] - first
        rows = ranges(first, counts)
        if not len(rows):
            return
        order = np.argsort(self.reader[rows], kind="stable")
        rows, origin = rows[order], np.repeat(places, counts)[order]
        reader, image = self.reader[rows], self.image[rows]
        cuts = (np.flatnonzero(reader[1:] != reader[:-1]) + 1).tolist()
        for a, b in pairwise([0, *cuts, len(rows)]):
            yield int(reader[a]), image[a:b], origin[a:b]


def routes(count: int, readers: Sequence[tuple[int, IntArray, IntArray]]) -> ForwardMaps:
    """Return the routes of a tensor of ``count`` places.

    ``readers`` are for each its number, places of its output, and the origin of each.
    """
    nothing = np.zeros(0, np.int64)
    origin = np.concatenate([nothing, *(o for _, _, o in readers)])
    image = np.concatenate([nothing, *(i for _, i, _ in readers)])
    reader = np.repeat([n for n, _, _ in readers], [len(i) for _, i, _ in readers])
    order = np.argsort(origin, kind="stable")
    starts = np.searchsorted(origin[order], np.arange(count + 1))
    return ForwardMaps(starts, reader[order].astype(np.int64), image[order])


def relevant(graph: GraphStore, given: FixedElements) -> list[int]:
    """Return the tensors that pairs, and barriers whose outputs matter, depend on."""

    def below(t: int) -> list[int]:
        i = graph.producers[t]
        found = [*graph.carriers(i), *(given.tensors(t) if t in given.origins else ())]
        if graph.ops[i].kind is Kind.BARRIER:
            found += [*graph.op_outputs[i], *graph.op_inputs[i]]
        return found

    return sorted(reached((t for a, b, _ in graph.pairs for t in (a, b)), below))


def consumers(graph: GraphStore) -> dict[int, list[tuple[int, int]]]:
    """Return for each tensor who reads it, in order: op and input index.

    Fixed points do not count: in the original they are sources that read nothing.
    """
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, op in enumerate(graph.ops):
        if op.kind is not Kind.FIXED_POINT:
            for k, t in enumerate(graph.op_inputs[i]):
                found[t].append((i, k))
    return found


def lengths(graph: GraphStore, readers: dict[int, list[tuple[int, int]]]) -> list[int]:
    """Return for each op the number of ops on the longest path from it to the end.

    ``readers`` are those of :func:`consumers`.
    """
    length = [1] * len(graph.ops)
    for i in range(len(graph.ops) - 1, -1, -1):
        after = [length[j] for t in graph.op_outputs[i] for j, _ in readers.get(t, ())]
        length[i] = 1 + max(after, default=0)
    return length


def partners(graph: GraphStore) -> dict[int, dict[int, int]]:
    """Return for each tensor its partners, with the values of repeated pairs added up.

    Values are whole multiples of one unit, which compare faster than decimals.
    """
    found: dict[int, dict[int, int]] = defaultdict(dict)
    values, _ = to_integers([value for _, _, value in graph.pairs])
    for (a, b, _), value in zip(graph.pairs, values, strict=True):
        for t, p in ((a, b), (b, a)):
            found[t][p] = found[t].get(p, 0) + value
    return found


Reached = tuple[int, IntArray, IntArray]
"""The number of a consumer, the places of its output, and the origin of each."""


def greedy0(
    graph: GraphStore,
    limits: Limits,
    given: FixedElements | None = None,
    places: Elements | None = None,
) -> Origins:
    """Choose layouts as Greedy0 does; raise ``TimeoutError`` if time runs out.

    Given elements are covered from the start, or as soon as the barrier is known whose locations
    they take.  ``places`` are the graph's elements.  Return for each sink and element the root
    tensor and the flat element there whose location it takes.
    """
    given = FixedElements(graph) if given is None else given
    places = Elements(graph) if places is None else places
    return _GreedyByElements(graph, limits, given, places).run()


class Greedy:
    """The order of Greedy0: new pieces flow through views, then the best pair carries back.

    Pairs of higher value come first, then those of ops with longer paths behind them.
    """

    def __init__(self, graph: GraphStore, limits: Limits) -> None:
        self.graph, self.limits = graph, limits
        self.consumers = consumers(graph)
        self.length = lengths(graph, self.consumers)
        self.partners = partners(graph)
        self.stack: list[tuple[int, Any]] = []
        self.queue: list[tuple[int, int, int, int]] = []

    def settle(self) -> None:
        """Flow and take pairs until neither does anything more."""
        while self.stack or self.queue:
            for t in sorted(self._flow()):
                for p, value in self.partners.get(t, {}).items():
                    op = self.graph.producers[p]
                    heapq.heappush(self.queue, (-value, -self.length[op], -t, -p))
            while self.queue and not self.stack:
                if self.limits.over:
                    raise TimeoutError
                self.limits.report("greedy0")
                _, _, t, p = heapq.heappop(self.queue)
                self._carry_back(-t, -p)

    def _flow(self) -> set[int]:
        """Carry new pieces forward, the latest first; return the tensors that grew."""
        raise NotImplementedError

    def _carry_back(self, t: int, p: int) -> None:
        """Cover sinks so that uncovered elements of ``p`` get the locations that ``t`` has."""
        raise NotImplementedError


class _GreedyByElements(Greedy):
    """The state of one run.

    ``where[t]`` holds the location of each place of tensor ``t`` as a number (first number of
    the root tensor plus place there), -1 while it is not covered; ``since[t]`` the number of the
    piece that covered it.
    """

    def __init__(
        self, graph: GraphStore, limits: Limits, given: FixedElements, places: Elements
    ) -> None:
        super().__init__(graph, limits)
        self.given, self.places = given, places
        self.ways = BackwardMaps(graph, places)
        self.first, count = first_numbers(graph)
        self.roots = np.array([*self.first], np.int64), np.array([*self.first.values()], np.int64)
        sizes = [places.count(t) for t in range(len(graph.shapes))]
        kind = np.int32 if count < 2**31 else np.int64
        needed = relevant(graph, given)
        self.where: dict[int, Array] = {t: np.full(sizes[t], -1, kind) for t in needed}
        self.since: dict[int, Array] = {t: np.zeros(sizes[t], np.int32) for t in needed}
        self.missing = {t: sizes[t] for t in needed}
        self.routes: dict[int, ForwardMaps] = {}
        self.sorted: dict[int, tuple[list[int], list[int], list[int]]] = {}
        given_masks = {t: tensors >= 0 for t, (tensors, _) in given.origins.items()}
        self.closed = self.ways.flags(given_masks)
        self.pieces = 0

    def run(self) -> Origins:
        """Cover everything, and return where the sinks' elements are."""
        for i, op in enumerate(self.graph.ops):
            inputs = self.graph.op_inputs[i]
            starts = op.kind in (Kind.SOURCE, Kind.FIXED_POINT) or (
                op.kind is Kind.BARRIER and all(self.missing.get(t, 0) == 0 for t in inputs)
            )
            for t in self.graph.op_outputs[i] if starts else ():
                self._cover_itself(t)
        for t in self.given.origins:
            self._cover_given(t)
        self.settle()
        for sink in self.graph.sinks():
            if sink.index in self.where:
                self._cover_itself(sink.index)
        self.settle()
        return {sink.index: self._origins(sink.index) for sink in self.graph.sinks()}

    def _flow(self) -> set[int]:
        grew = set()
        while self.stack:
            t, places = self.stack.pop()
            grew.add(t)
            for n, image, origin in self._readers(t, places):
                i, _ = self.consumers[t][n]
                if self.graph.ops[i].kind is Kind.BARRIER:
                    self._learn(i)
                else:
                    self._cover(self.graph.op_outputs[i][0], image, self.where[t][origin])
        return grew

    def _readers(self, t: int, places: IntArray) -> Iterator[Reached]:
        """Return what a piece reaches, in the order of the tensor's consumers."""
        barriers, straight, others = self._sorted(t)
        found: list[Reached] = [(n, places, places) for n in (*barriers, *straight)]
        if others:
            if t not in self.routes:
                images = [(n, *self.ways.image(*self.consumers[t][n])) for n in others]
                self.routes[t] = routes(len(self.where[t]), images)
            found += self.routes[t].of(places)
        yield from sorted(found, key=lambda reached: reached[0])

    def _sorted(self, t: int) -> tuple[list[int], list[int], list[int]]:
        """Return numbers of consumers: barriers, views in the same order, other views."""
        if t not in self.sorted:
            barriers: list[int] = []
            straight: list[int] = []
            others: list[int] = []
            for n, (i, k) in enumerate(self.consumers[t]):
                op, inputs = self.graph.ops[i], self.graph.op_inputs[i]
                if op.kind is Kind.BARRIER:
                    barriers.append(n)
                elif k in op.carriers(len(inputs)) and self.graph.op_outputs[i][0] in self.where:
                    (straight if self.ways.straight(i) else others).append(n)
            self.sorted[t] = barriers, straight, others
        return self.sorted[t]

    def _learn(self, i: int) -> None:
        """Cover the outputs of a barrier whose inputs are all covered."""
        outputs = {out for out in self.graph.op_outputs[i] if out in self.where}
        if outputs and all(self.missing[x] == 0 for x in self.graph.op_inputs[i]):
            for out in sorted(outputs):
                self._cover_itself(out)
            for t in self.given.origins:
                if not outputs.isdisjoint(self.given.tensors(t)):
                    self._cover_given(t)

    def _cover_itself(self, t: int) -> None:
        """Give the uncovered elements of a root tensor their own locations."""
        if t in self.where and self.missing[t]:
            uncovered = self.where[t] < 0
            if t in self.given.origins:
                uncovered &= self.given.origins[t][0] < 0
            places = np.flatnonzero(uncovered)
            self._cover(t, places, places + self.first[t])

    def _cover_given(self, t: int) -> None:
        """Cover the given elements of a sink whose locations are known by now."""
        tensors, elements = self.given.origins[t]
        for origin in unique(tensors[tensors >= 0]).tolist():
            is_barrier = self.graph.ops[self.graph.producers[origin]].kind is Kind.BARRIER
            if t in self.where and not (is_barrier and self.missing[origin]):
                places = np.flatnonzero((tensors == origin) & (self.where[t] < 0))
                self._cover(t, places, elements[places] + self.first[origin])

    def _cover(self, t: int, places: IntArray, locations: Array) -> None:
        """Add a piece."""
        if not len(places):
            return
        self.pieces += 1
        self.where[t][places] = locations
        self.since[t][places] = self.pieces
        self.missing[t] -= len(places)
        self.stack.append((t, places))

    def _carry_back(self, t: int, p: int) -> None:
        if not self.missing[p] or self.missing[t] == len(self.where[t]):
            return
        roots = self.ways.roots(p)
        known = (self.where[p] < 0) & (self.where[t] >= 0)
        usable = np.flatnonzero(known & (roots >= 0))
        if self.given.origins:
            usable = usable[~self.closed[roots[usable]]]
        if not len(usable):
            return
        root, piece = roots[usable], self.since[t][usable]
        order = np.argsort(root, kind="stable")
        twice = bool((np.diff(root[order]) == 0).any())
        several = twice or self.ways.many(p)
        way = self.ways.numbers(p)[usable] if several else np.zeros_like(root)
        # Earlier pieces first, earlier ways first; each root only once.
        order = np.lexsort((way, piece))
        _, once = np.unique(root[order], return_index=True)
        order = order[np.sort(once)]
        same = (np.diff(piece[order]) == 0) & (np.diff(way[order]) == 0)
        for part in np.split(order, np.flatnonzero(~same) + 1):
            sink, places = self.ways.sink_of(root[part])
            self._cover(sink, places, self.where[t][usable[part]])

    def _origins(self, sink: int) -> tuple[IntArray, IntArray]:
        if sink not in self.where:
            return self.given.placed(sink, own_origins(self.graph, sink))
        tensors, starts = self.roots
        # Tensors without places share their first number with the next one.
        at = np.searchsorted(starts, self.where[sink], side="right") - 1
        return tensors[at], self.where[sink] - starts[at]


Heuristic: TypeAlias = Callable[[GraphStore, Limits, FixedElements, Elements], Origins]
"""From a graph and what is given to the origin of each place of each sink."""
