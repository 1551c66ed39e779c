"""Connected components, strongly connected ones, what links reach, and colourings.

Small graphs are walked in Python, which spares loading SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
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
    parent = list(range(nodes))

    def root(u: int) -> int:
        while parent[u] != u:
            parent[u] = u = parent[parent[u]]
        return u

    for u, v in zip(first.tolist(), second.tolist(), strict=True):
        parent[root(u)] = root(v)
    number: dict[int, int] = {}
    found = [number.setdefault(root(u), len(number)) for u in range(nodes)]
    return len(number), np.array(found, np.int32)


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


def strong_components(arcs: Iterable[tuple[Node, Node]]) -> list[list[Node]]:
    """Return the strongly connected components of a directed graph (Tarjan, 1972)."""
    after: dict[Node, list[Node]] = {}
    for u, v in arcs:
        after.setdefault(u, []).append(v)
        after.setdefault(v, [])
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    found: list[list[Node]] = []
    closed: set[Node] = set()
    open_nodes: list[Node] = []
    for begin in after:
        if begin in number:
            continue
        path: list[tuple[Node, Iterator[Node]]] = [(begin, iter(after[begin]))]
        number[begin] = low[begin] = len(number)
        open_nodes.append(begin)
        while path:
            u, rest = path[-1]
            for v in rest:
                if v not in number:
                    number[v] = low[v] = len(number)
                    open_nodes.append(v)
                    path.append((v, iter(after[v])))
                    break
                if v not in closed:
                    low[u] = min(low[u], number[v])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[u])
                if low[u] == number[u]:
                    members = [open_nodes.pop()]
                    while members[-1] != u:
                        members.append(open_nodes.pop())
                    found.append(members)
                    closed.update(members)
    return found


def coloured(starts: NDArray[Any], others: NDArray[Any]) -> list[int]:
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
    return colour


def reachable(count: int, arcs: NDArray[Any]) -> NDArray[Any]:
    """Return a table: whether each node leads to, or is, each node by arcs."""
    table = np.eye(count, dtype=bool)
    table[tuple(arcs.T)] = True
    for u in range(count):
        table |= table[:, u, None] & table[u]
    return table
