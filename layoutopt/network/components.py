"""Connected components, strongly connected ones, what links reach, and colourings.

Small graphs are walked in Python, which spares loading SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Node = TypeVar("Node", bound=Hashable)

FEW = 500  # graphs of up to so many nodes and links are small


def components(nodes: int, first: NDArray[Any], second: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """Return the number of connected components, and the component of each node.

    ``first`` and ``second`` are the ends of each link.  Components are numbered in the order of
    their smallest nodes.
    """
    if nodes + len(first) > FEW:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        matrix = coo_array((np.ones(len(first), bool), (first, second)), shape=(nodes, nodes))
        count, of = connected_components(matrix, directed=False)
        return int(count), of
    sets = DisjointSets(nodes)
    for u, v in zip(first.tolist(), second.tolist(), strict=True):
        sets.join(u, v)
    number: dict[int, int] = {}
    found = [number.setdefault(sets.find(u), len(number)) for u in range(nodes)]
    return len(number), np.array(found, np.int32)


class DisjointSets:
    """Disjoint sets of the numbers ``0 .. count - 1``, each named by its smallest number."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def find(self, x: int) -> int:
        """Return the name of the set of a number."""
        above = self._above
        while above[x] != x:
            above[x] = x = above[above[x]]
        return x

    def join(self, x: int, y: int) -> bool:
        """Join the sets of two numbers; return whether there were two."""
        x, y = self.find(x), self.find(y)
        self._above[max(x, y)] = min(x, y)
        return x != y


def reached(starts: Iterable[Node], near: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Return some nodes, each once, and all that links lead to from them, near ones first."""
    found = list(dict.fromkeys(starts))
    known = set(found)
    for u in found:  # grows meanwhile
        for v in near(u):
            if v not in known:
                known.add(v)
                found.append(v)
    return found


def strong_components(nodes: int, arcs: NDArray[Any]) -> NDArray[Any]:
    """Return the strongly connected component of each node; arcs have shape ``(m, 2)``."""
    if nodes <= FEW:
        table = reachable(nodes, arcs)
        names = np.where(table & table.T, np.arange(nodes), nodes)
        return np.asarray(names.min(axis=1, initial=nodes))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(arcs), bool), tuple(arcs.T)), shape=(nodes, nodes))
    return np.asarray(connected_components(matrix, connection="strong")[1])


def colouring(nodes: int, edges: NDArray[Any]) -> NDArray[Any]:
    """Return a colour for each node, such that the ends of an edge, shape ``(m, 2)``, differ."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    return coloured(np.searchsorted(ends[:, 0], np.arange(nodes + 1)), ends[:, 1])


def coloured(starts: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Colour a graph with few colours: greedily, nodes of many neighbours first.

    The neighbours of node ``u``, which get other colours, are
    ``others[starts[u] : starts[u + 1]]``.
    """
    ends, listed = starts.tolist(), others.tolist()
    colour = [-1] * (len(ends) - 1)
    for u in np.argsort(-np.diff(starts), kind="stable").tolist():
        taken = {colour[v] for v in listed[ends[u] : ends[u + 1]]}
        c = 0
        while c in taken:
            c += 1
        colour[u] = c
    return np.array(colour, np.int64)


def reachable(count: int, arcs: NDArray[Any]) -> NDArray[Any]:
    """Return a table: whether each node leads to, or is, each node by arcs."""
    table = np.eye(count, dtype=bool)
    table[tuple(arcs.T)] = True
    for u in range(count):
        table[np.flatnonzero(table[:, u])] |= table[u]
    return table
