"""Ways through views, place by place: forward to their outputs, back to sinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from layoutopt.graphs.ops import (
    Expand,
    Flatten,
    Identity,
    Kind,
    Reshape,
    Shape,
    Squeeze,
    SumLike,
    size,
)
from layoutopt.graphs.store import GraphStore
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
        if isinstance(op, Identity | Flatten | Squeeze | Reshape | SumLike):
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


def missing_below(graph: GraphStore, t: int, known: Container[int]) -> Iterator[int]:
    """Yield what a tensor is made of through views and is not known, carriers first.

    Each is known before the next one is asked for; the tensor itself comes last.
    """
    todo = [t]
    while todo:
        missing = [c for c in graph.carriers(graph.producers[todo[-1]]) if c not in known]
        if missing:
            todo += missing
        elif (below := todo.pop()) not in known:
            yield below


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
        for below in missing_below(self.graph, t, self._roots):
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
        for below in missing_below(self.graph, t, self._paths):
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
        ends = np.cumsum(counts)
        if not len(ends) or not ends[-1]:
            return
        rows = np.repeat(first - ends + counts, counts) + np.arange(ends[-1])
        order = np.argsort(self.reader[rows], kind="stable")
        rows, origin = rows[order], np.repeat(places, counts)[order]
        reader = self.reader[rows]
        cuts = np.flatnonzero(np.diff(reader)) + 1
        heads = reader[np.concatenate([[0], cuts])].tolist()
        images, origins = np.split(self.image[rows], cuts), np.split(origin, cuts)
        yield from zip(heads, images, origins, strict=True)


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
