"""Ways through views, element by element: forward to their outputs, back to sinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from layoutopt.graphs.op import Kind, size
from layoutopt.graphs.ops import Expand, Flatten, Identity, Reshape, Squeeze, SumLike
from layoutopt.graphs.store import Store
from layoutopt.problem import IntArray

Path = tuple[int, ...]
"""A root tensor, then op and input index of each view taken where there was a choice."""


class Ways:
    """Index maps of a graph's views, made when they are first needed."""

    def __init__(self, graph: Store) -> None:
        self.graph = graph
        self._gathers: dict[int, tuple[IntArray, list[int]]] = {}
        self._count = np.arange(0)
        self._roots: dict[int, IntArray] = {}
        self._paths: dict[int, tuple[IntArray, list[Path]]] = {}
        self._numbers: dict[int, IntArray] = {}
        sinks = [t for t, p in enumerate(graph.producers) if graph.ops[p].kind is Kind.SINK]
        self._sinks = np.array(sinks, np.int64)
        sizes = [size(graph.shapes[t]) for t in sinks]
        self._starts = np.cumsum([0, *sizes])
        self._readers = Counter(t for inputs in graph.op_inputs for t in inputs)
        self._first = dict(zip(sinks, self._starts.tolist(), strict=False))

    def straight(self, i: int) -> bool:
        """Return whether every output element of a view has its input's flat position."""
        return self._gather(i) is None

    def image(self, i: int, k: int) -> tuple[IntArray, IntArray]:
        """Return the output elements that come from input ``k``, and the origin of each."""
        found = self._gather(i)
        if found is None:
            every = np.arange(size(self.graph.shapes[self.graph.op_outputs[i][0]]))
            return every, every
        source, starts = found
        carriers = list(self.graph.ops[i].carriers(len(self.graph.op_inputs[i])))
        start, end = starts[carriers.index(k)], starts[carriers.index(k) + 1]
        image = np.flatnonzero((source >= start) & (source < end))
        return image, source[image] - start

    def roots(self, t: int) -> IntArray:
        """Return the sink element, by number, that each element leads back to, or -1."""
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
        """Return the sink of root elements of one sink, and their flat places in it."""
        at = int(np.searchsorted(self._starts, roots[0], side="right")) - 1
        return int(self._sinks[at]), roots - self._starts[at]

    def flags(self, marked: Mapping[int, IntArray]) -> IntArray:
        """Return for each sink element, by number, whether it is marked.

        Parameters
        ----------
        marked
            For some sinks which of their elements are marked.
        """
        flags = np.zeros(int(self._starts[-1]), bool)
        for t, mask in marked.items():
            flags[self._first[t] : self._first[t] + len(mask)] = mask
        return flags

    def many(self, t: int) -> bool:
        """Return whether several ways may lead back from a tensor."""
        return len(self._path(t)[1]) > 1

    def numbers(self, t: int) -> IntArray:
        """Return for each element which of the ways back is its own, in order."""
        if t not in self._numbers:
            number, paths = self._path(t)
            rank = np.empty(len(paths), np.int64)
            rank[sorted(range(len(paths)), key=lambda n: paths[n])] = np.arange(len(paths))
            self._numbers[t] = rank[number] if len(paths) else number
        return self._numbers[t]

    def _gather(self, i: int) -> tuple[IntArray, list[int]] | None:
        """Return where each output element of a view comes from.

        Returns
        -------
        source, starts
            Numbers that count through the elements of all carriers, and the first number of
            each carrier; ``None`` if every element keeps its flat position.
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

    def _carriers(self, t: int) -> list[int]:
        return self.graph.carriers(self.graph.producers[t])

    def _roots_of(self, t: int) -> IntArray:
        i = self.graph.producers[t]
        op, shape = self.graph.ops[i], self.graph.shapes[t]
        if op.kind is Kind.SINK:
            return np.arange(self._first[t], self._first[t] + size(shape))
        if op.kind is not Kind.VIEW:
            return np.full(size(shape), -1)
        below = [self._roots[c] for c in self._carriers(t)]
        found = self._gather(i)
        if found is None:
            return below[0]
        roots = np.concatenate(below)[found[0]]
        if isinstance(op, Expand):
            roots[~_lowest(self.graph.shapes[self._carriers(t)[0]], shape)] = -1
        return roots

    def _path(self, t: int) -> tuple[IntArray, list[Path]]:
        """Return for each element the number of its path from a sink, and the paths."""
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
        op, count = self.graph.ops[i], size(self.graph.shapes[t])
        if op.kind is not Kind.VIEW:
            return np.zeros(count, np.int64), [(t,)]
        numbers: list[IntArray] = []
        paths: list[Path] = []
        for k in op.carriers(len(self.graph.op_inputs[i])):
            below = self.graph.op_inputs[i][k]
            number, ways = self._paths[below]
            numbers.append(number + len(paths))
            paths += [(*path, i, k) for path in ways] if self._readers[below] > 1 else ways
        found = self._gather(i)
        if found is None:
            return numbers[0], paths
        number = np.concatenate(numbers)[found[0]]
        if len(paths) == 1:
            return number, paths
        present, number = np.unique(number, return_inverse=True)
        return number, [paths[n] for n in present.tolist()]


def _lowest(shape: tuple[int, ...], out: tuple[int, ...]) -> IntArray:
    """Return which elements of a broadcast output are at index 0 where it is broadcast."""
    lowest = np.zeros(out, bool)
    lead = len(out) - len(shape)
    box = [slice(0, 1)] * lead
    box += [slice(0, 1) if n == 1 else slice(None) for n in shape]
    lowest[tuple(box)] = True
    return lowest.reshape(-1)
