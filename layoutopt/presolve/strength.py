"""Sets of nodes that are tied together more strongly than anything draws them apart.

A set is *strong* for a number ``c`` if every partition of it into ``k`` sets cuts edges of at
least ``c (k - 1)``.  The largest strong sets are the parts of an optimal attack on a
network (Cunningham, *Optimal attack and reinforcement of a network*, J. ACM 32, 1985), and
are found as in the greedy algorithm for it: nodes come one by one, and each joins those sets
``T`` of what came before that maximise ``w(T and the node) - c |T|``, with ``w`` the weight of
all edges within.  That is a minimum cut.

The union is strong: let a partition of it have the node in ``P_0``.  The choice of ``T``
gives ``w(P_0) - c (|P_0| - 1) <= w - c |T|``, and ``w(P_j) <= c (|P_j| - 1)`` for the others, which
would have joined before; so at least ``c (k - 1)`` is cut.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from ortools.graph.python import max_flow

from layoutopt.errors import SolverError
from layoutopt.limits import Limits

LARGEST = 2**61
"""Sums of weights stay below this, so that flows fit 64 bits."""

WORK = 3 * 10**5
"""Nodes in all minimum cuts together; a few seconds at most."""

Graph = dict[int, dict[int, int]]


def strong_sets(
    near: Sequence[Mapping[int, int]], nodes: Sequence[int], loss: int, limits: Limits
) -> list[list[int]]:
    """Return disjoint strong sets of two nodes or more.

    Parameters
    ----------
    near
        For each node its neighbours and the weights of the edges to them, none negative.
    nodes
        The nodes to look at.
    loss
        The number ``c``, not negative.
    limits
        When to stop: what was found by then is returned.
    """
    graph: Graph = {u: dict(near[u]) for u in nodes}
    union = _Union(graph, loss)
    for u in nodes:
        if u in graph:
            union.close(u)
    core = _core(graph, loss)
    whole = {u: {v: w for v, w in graph[u].items() if v in core} for u in core}
    cuttable = sum(sum(around.values()) for around in whole.values()) + loss < LARGEST
    if cuttable and loss > 0:
        inner = _Union(whole, loss)
        _grow(inner, limits)
        for first, *others in inner.members.values():
            union.join([first, *others])
    return [own for own in union.members.values() if len(own) > 1]


class _Union:
    """A graph whose nodes are joined, small ones into large ones.

    ``members`` are the nodes that each of its nodes was made of.
    """

    def __init__(self, graph: Graph, loss: int) -> None:
        self.graph, self.loss = graph, loss
        self.members = {u: [u] for u in graph}

    def close(self, u: int) -> int:
        """Join a node with all that it has a heavy edge to, and so on; return the joint one."""
        todo = [v for v, w in self.graph[u].items() if w >= self.loss]
        while todo:
            v = todo.pop()
            if v in self.graph and v != u:
                u, changed = self._join(u, v)
                todo += [x for x in changed if self.graph[u][x] >= self.loss]
        return u

    def join(self, nodes: Sequence[int]) -> int:
        """Join nodes, and return the joint one."""
        u = nodes[0]
        for v in nodes[1:]:
            u, _ = self._join(u, v)
        return u

    def _join(self, u: int, v: int) -> tuple[int, list[int]]:
        """Join two nodes; return the one that stays, and its neighbours whose edges changed."""
        graph = self.graph
        if len(graph[u]) < len(graph[v]):
            u, v = v, u
        moved = graph.pop(v)
        moved.pop(u, None)
        graph[u].pop(v, None)
        for x, w in moved.items():
            del graph[x][v]
            graph[u][x] = graph[x][u] = graph[u].get(x, 0) + w
        self.members[u] += self.members.pop(v)
        return u, list(moved)


def _grow(union: _Union, limits: Limits) -> None:
    """Let the nodes of a graph come one by one, and join what they bind together."""
    graph, loss = union.graph, union.loss
    come: set[int] = set()
    work = 0
    for count, node in enumerate(_most_attached_first(graph)):
        if node not in graph or node in come:
            continue
        if work > WORK or (count % 64 == 0 and limits.over):
            return
        u, joined = node, [node]
        while joined:
            u = union.close(union.join([u, *(v for v in joined if v != u)]))
            joined = []
            if sum(w for v, w in graph[u].items() if v in come) >= loss:
                part = _part(graph, u, come)
                work += len(part)
                core = _core(part, loss, u)
                joined = _best(part, core, u, loss) if len(core) > 1 else []
        come.add(u)


def _core(graph: Graph, loss: int, pinned: int = -1) -> set[int]:
    """Return the nodes that are left when those with edges of less than ``loss`` go, and so on."""
    total = {u: sum(around.values()) for u, around in graph.items()}
    gone = {u for u, all_edges in total.items() if all_edges < loss and u != pinned}
    todo = list(gone)
    while todo:
        for v, w in graph[todo.pop()].items():
            total[v] -= w
            if total[v] < loss and v not in gone and v != pinned:
                gone.add(v)
                todo.append(v)
    return graph.keys() - gone


def _most_attached_first(graph: Graph) -> Iterator[int]:
    """Yield the nodes, always one with the heaviest edges to the earlier ones.

    The graph may shrink meanwhile: weights are those of the beginning.
    """
    edges = {u: list(around.items()) for u, around in graph.items()}
    attached = dict.fromkeys(graph, 0)
    heap: list[tuple[int, int]] = []
    done: set[int] = set()
    for start in edges:
        heapq.heappush(heap, (0, start))
        while heap:
            _, u = heapq.heappop(heap)
            if u in done:
                continue
            done.add(u)
            yield u
            for v, w in edges[u]:
                if v not in done:
                    attached[v] += w
                    heapq.heappush(heap, (-attached[v], v))


def _part(graph: Graph, start: int, allowed: Collection[int]) -> Graph:
    """Return the part of a graph that is reached from a node through allowed ones."""
    part: Graph = {start: {}}
    todo = [start]
    while todo:
        u = todo.pop()
        for v, w in graph[u].items():
            if v in allowed or v == start:
                part[u][v] = w
                if v not in part:
                    part[v] = {}
                    todo.append(v)
    return part


def _best(part: Graph, core: Collection[int], pinned: int, loss: int) -> list[int]:
    """Return the largest set ``T`` that maximises ``w(T and pinned) - loss |T|``, within a core.

    Twice that is a sum over the nodes of their edges' weights, less ``2 loss`` each, less the
    weight of the edges that leave.
    """
    names = [pinned, *(u for u in core if u != pinned)]
    place = {u: k for k, u in enumerate(names)}
    edges = [(place[u], place[v], w) for u in names for v, w in part[u].items() if v in place]
    tails, heads, weights = np.array(edges, np.int64).T
    n = len(names)
    gain = np.zeros(n, np.int64)
    np.add.at(gain, tails, weights)
    gain[1:] -= 2 * loss
    gain[0] = weights.sum() + 1  # more than all edges: it stays
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(tails, heads, weights)
    likes, dislikes = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
    flow.add_arcs_with_capacity(np.full(len(likes), n), likes, gain[likes])
    flow.add_arcs_with_capacity(dislikes, np.full(len(dislikes), n + 1), -gain[dislikes])
    if not len(dislikes):
        return names[1:]
    status = flow.solve(n, n + 1)
    if status != flow.OPTIMAL:
        raise SolverError(f"maximum flow ended with status {status}")
    outside = set(flow.get_sink_side_min_cut())
    return [names[k] for k in range(1, n) if k not in outside]
