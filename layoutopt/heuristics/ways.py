"""Ways through views, place by place: forward to their outputs, back to sinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from layoutopt.graphs.op import Kind
from layoutopt.graphs.ops import Expand
from layoutopt.graphs.store import GraphStore
from layoutopt.heuristics.places import Places
from layoutopt.problem import IntArray

Path = tuple[int, ...]
"""A root tensor, then op and input index of each view taken where there was a choice."""


class BackwardMaps:
    """Index maps of a graph's views, made when they are first needed.

    Parameters
    ----------
    graph
        The graph.
    places
        The places of its tensors.
    """

    def __init__(self, graph: GraphStore, places: Places) -> None:
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
        todo = [] if t in self._roots else [t]
        while todo:
            below = todo[-1]
            missing = [c for c in self._carriers(below) if c not in self._roots]
            if missing:
                todo.extend(missing)
            else:
                todo.pop()
                self._roots[below] = self._roots_of(below)
        return self._roots[t]

    def sink_of(self, roots: IntArray) -> tuple[int, IntArray]:
        """Return the sink of root places of one sink, and their numbers in it."""
        at = int(np.searchsorted(self._starts, roots[0], side="right")) - 1
        return int(self._sinks[at]), roots - self._starts[at]

    def flags(self, marked: Mapping[int, IntArray]) -> IntArray:
        """Return for each sink place, by number, whether it is marked.

        Parameters
        ----------
        marked
            For some sinks which of their places are marked.
        """
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
            order = sorted(range(len(paths)), key=lambda n: turned(paths[n], last))
            rank[order] = np.arange(len(paths))
            self._numbers[t] = rank[number] if len(paths) else number
        return self._numbers[t]

    def _carriers(self, t: int) -> list[int]:
        return self.graph.carriers(self.graph.producers[t])

    def _roots_of(self, t: int) -> IntArray:
        i, count = self.graph.producers[t], self.places.count(t)
        op = self.graph.ops[i]
        if op.kind is Kind.SINK:
            return np.arange(self._first[t], self._first[t] + count)
        if op.kind is not Kind.VIEW:
            return np.full(count, -1)
        below = [self._roots[c] for c in self._carriers(t)]
        found = self.places.gather(i)
        if found is None:
            return below[0]
        roots = np.concatenate(below)[found[0]]
        if isinstance(op, Expand):
            roots[~self.places.lowest(i)] = -1
        return roots

    def _path(self, t: int) -> tuple[IntArray, list[Path]]:
        """Return for each place the number of its path from a sink, and the paths."""
        todo = [] if t in self._paths else [t]
        while todo:
            below = todo[-1]
            missing = [c for c in self._carriers(below) if c not in self._paths]
            if missing:
                todo.extend(missing)
            else:
                todo.pop()
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


def turned(path: Path, last: int) -> Path:
    """Return what paths that end in op ``last`` are ordered by.

    A stack holds the tensors whose readers are still to be visited, so that of several readers
    the latest comes first; but the inputs of one reader are noted in their own order.
    """
    signs = [1] + [-1] * (len(path) - 1)
    if path[-2:-1] == (last,):
        signs[-1] = 1
    return tuple(sign * number for sign, number in zip(signs, path, strict=True))
