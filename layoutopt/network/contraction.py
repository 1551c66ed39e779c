"""Reductions that look at one node and its neighbours, applied until none fits.

Write ``T`` for the sum of ``|w|`` over a node's edges, and ``r(l)`` for its reward for label
``l``, which is 0 for fresh labels and for labels without a reward.

*heavy label*: if ``r(l) >= T + r(m)`` for every other allowed label ``m``, the node may take
``l`` whatever its neighbours do.

*heavy edge*: if ``w >= (T - w) + max r - min r`` for one of its edges, the node may take the
label of that neighbour: it gains ``w`` and loses at most the right-hand side.  Taking many
such steps at once is sound because each holds for every labelling of the other nodes.

*leaf*: the best reply of a node with a single edge is a function of the neighbour's label
only, and becomes part of the neighbour's rewards.  This is the step of dynamic programming
on trees; a forest disappears altogether.

*dominated labels* and *strong sets* look at whole components (:func:`dominated_labels`,
:func:`strong_sets`).

The first two are the classic heavy-edge rules of multiway cut (Dahlhaus et al., 1994) with
rewards of one node counted as alternatives.  All arithmetic is on Python integers.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.components import reached
from layoutopt.network.flow import best_set
from layoutopt.network.problem import IntArray, Labelling, Reduction, exact_integers, restored_names

LARGEST = 2**61  # sums of weights stay below this, so that flows fit 64 bits
WORK = 3 * 10**5  # nodes in all minimum cuts together; a few seconds at most

Graph = dict[int, dict[int, int]]


def strong_sets(
    near: Sequence[Mapping[int, int]], nodes: Sequence[int], loss: int, limits: Limits
) -> list[list[int]]:
    """Return disjoint strong sets of two nodes or more; when time is up, those found so far.

    A set is strong for a loss ``c >= 0`` if, however it is split into ``k`` parts, the cut edges
    weigh at least ``c (k - 1)``.  ``near`` holds the neighbours of each node and the weights of the
    edges to them, none negative.
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

    def near(u: int) -> list[int]:
        return [v for v in graph[u] if v in allowed or v == start]

    return {u: {v: graph[u][v] for v in near(u)} for u in reached([start], near)}


def _best(part: Graph, core: Collection[int], pinned: int, loss: int) -> list[int]:
    """Return the largest set ``T`` that maximises ``w(T and pinned) - loss |T|``, within a core.

    Twice that is a sum over the nodes of their edges' weights, less ``2 loss`` each, less the
    weight of the edges that leave.
    """
    names = [pinned, *(u for u in core if u != pinned)]
    place = {u: k for k, u in enumerate(names)}
    edges = [(place[u], place[v], w) for u in names for v, w in part[u].items() if v in place]
    tails, heads, weights = np.array(edges, np.int64).T
    gain = np.zeros(len(names), np.int64)
    np.add.at(gain, tails, weights)
    gain[1:] -= 2 * loss
    gain[0] = weights.sum() + 1  # more than all edges: it stays
    once = tails < heads
    inside = best_set(np.column_stack([tails, heads])[once], weights[once], gain)
    return [names[k] for k in np.flatnonzero(inside[1:]) + 1]


Numbers = Mapping[int, int]


def dominated_labels(
    near: Sequence[Numbers], earns: Sequence[Numbers], bans: Sequence[Collection[int]]
) -> dict[int, list[int]]:
    """Return labels whose rewards can be dropped, and the nodes where they have some.

    For each node, ``near`` holds its neighbours with weights, ``earns`` its labels with rewards,
    and ``bans`` the labels that it must not take.
    """
    columns: dict[int, dict[int, int]] = {}
    for u, rewards in enumerate(earns):
        for label, r in rewards.items():
            columns.setdefault(label, {})[u] = r
    banned: dict[int, set[int]] = {}
    for u, labels in enumerate(bans):
        for label in labels:
            banned.setdefault(label, set()).add(u)
    negative = (u for u, around in enumerate(near) if any(w < 0 for w in around.values()))
    signed = set(reached(negative, near.__getitem__))
    punished = {label for label, column in columns.items() if min(column.values()) < 0}
    ranked: dict[int, list[int]] = {}
    dropped = {}
    for label, column in list(columns.items()):
        if not signed.isdisjoint(column):
            continue
        place = min(column, key=lambda u: len(earns[u]))
        if place not in ranked:
            ranked[place] = _ranked(earns[place])
        rivals = _at_least(ranked[place], earns[place], column[place])
        if max(column.values()) <= 0 or any(
            _behind(column, columns[rival], rival in punished)
            and banned.get(rival, set()) <= banned.get(label, set())
            for rival in rivals
            if rival != label and rival in columns
        ):
            del columns[label]
            dropped[label] = list(column)
    return dropped


def _ranked(rewards: Numbers) -> list[int]:
    """Return labels, the best first, and of equal ones those first that are looked at last."""
    last_first = list(rewards)[::-1]
    return sorted(last_first, key=lambda label: -rewards[label])


def _at_least(ranked: Sequence[int], rewards: Numbers, r: int) -> Iterator[int]:
    return takewhile(lambda label: rewards[label] >= r, ranked)


def _behind(column: Numbers, rival: Numbers, punished: bool) -> bool:
    """Return whether a label's rewards are nowhere above a rival's; absent ones are 0."""
    return all(rival.get(u, 0) >= r for u, r in column.items()) and (
        not punished or all(r >= 0 or u in column for u, r in rival.items())
    )


def losses(
    near: Sequence[Numbers], earns: Sequence[Numbers], bans: Sequence[Collection[int]]
) -> Iterator[tuple[list[int], int]]:
    """Yield each component of several nodes with what a class that becomes one of another loses.

    Only components without negative numbers and bans.
    """
    seen = [False] * len(near)
    for start in range(len(near)):
        if seen[start] or not near[start]:
            continue
        component = reached([start], near.__getitem__)
        sums: dict[int, int] = {}
        for u in component:
            seen[u] = True
            for label, r in earns[u].items():
                sums[label] = sums.get(label, 0) + r
        if not any(
            bans[u] or min(near[u].values()) < 0 or min(earns[u].values(), default=0) < 0
            for u in component
        ):
            yield component, sorted([0, 0, *sums.values()])[-2]


Undo = Callable[[list[int]], None]

Best = tuple[int | None, int, int, int]
"""A node's best label (``None`` for fresh), its reward, the next best reward, and the worst; the
last three are at least, at least, and at most 0."""

VISITS = 1000  # after so many nodes the clock is looked at


def contract(problem: Labelling, limits: Limits | None = None) -> Reduction:
    """Apply all five rules until none fits, or time is up."""
    return _Contraction(problem).run(limits or Limits())


class _Contraction:
    """A problem as dictionaries, shrinking.

    ``near[u]`` maps neighbours to weights, ``earns[u]`` labels to rewards, ``bans[u]`` is
    the set of labels that ``u`` must not take.  ``best[u]`` remembers what :meth:`_two_best`
    found, while it holds.
    """

    def __init__(self, problem: Labelling) -> None:
        self.problem = problem
        n = problem.nodes
        self.near: list[dict[int, int]] = [{} for _ in range(n)]
        self.earns: list[dict[int, int]] = [{} for _ in range(n)]
        self.bans: list[set[int]] = [set() for _ in range(n)]
        for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
            self.near[u][v] = self.near[v][u] = w
        for u, label in problem.banned.tolist():
            self.bans[u].add(label)
        at, rewards = problem.reward_at.tolist(), problem.rewards.tolist()
        for (u, label), r in zip(at, rewards, strict=True):
            if label not in self.bans[u]:
                self.earns[u][label] = r
        self.best: list[Best | None] = [None] * n
        self.alive = [True] * n
        self.constant = 0
        self.undo: list[Undo] = []
        self.queue = deque(range(n))
        self.queued = [True] * n

    def run(self, limits: Limits) -> Reduction:
        """Apply the rules until none fits, or time is up."""
        visits = 0
        while True:
            while self.queue:
                visits += 1
                if visits % VISITS == 0 and limits.over:
                    return self._outcome()
                u = self.queue.popleft()
                self.queued[u] = False
                if self.alive[u]:
                    self._visit(u)
            if limits.over or not (self._drop_dominated() or self._tie_strong(limits)):
                return self._outcome()

    def _touch(self, u: int) -> None:
        if not self.queued[u]:
            self.queued[u] = True
            self.queue.append(u)

    def _visit(self, u: int) -> None:
        near = self.near[u]
        total = sum(map(abs, near.values()))
        best, first, second, least = self._two_best(u)
        if best is not None and first - second >= total:
            self._fix(u, best)
        elif not near:
            self._fix(u, self.problem.labels + u)
        else:
            spread = first - least
            for v, w in near.items():
                if 2 * w - total >= spread and self.bans[u] <= self.bans[v]:
                    self._merge(u, v)
                    return
            if len(near) == 1:
                self._prune(u, best, first, second)

    def _two_best(self, u: int) -> Best:
        """Return the best label, its reward, that of the next best, and of the worst, at most 0."""
        known = self.best[u]
        if known is None:
            best, first, second = None, 0, 0
            for label, r in self.earns[u].items():
                if r > first:
                    best, first, second = label, r, first
                elif r > second:
                    second = r
            known = self.best[u] = best, first, second, min(0, *self.earns[u].values(), 0)
        return known

    def _fix(self, u: int, label: int) -> None:
        """Let ``u`` take a label; its edges become rewards of its neighbours."""
        self.constant += self.earns[u].get(label, 0)
        for v, w in self.near[u].items():
            del self.near[v][u]
            self._reward(v, label, w)
            self._touch(v)
        self._remove(u)

        def undo(labels: list[int]) -> None:
            labels[u] = label

        self.undo.append(undo)

    def _reward(self, u: int, label: int, r: int) -> None:
        if r and label not in self.bans[u]:
            total = self.earns[u].get(label, 0) + r
            if total:
                self.earns[u][label] = total
            else:
                del self.earns[u][label]
            self.best[u] = _raised(self.best[u], label, total, r)

    def _remove(self, u: int) -> None:
        self.alive[u], self.best[u] = False, None
        self.near[u], self.earns[u], self.bans[u] = {}, {}, set()

    def _merge(self, u: int, v: int) -> int:
        """Let ``u`` take the label of ``v``; return the one that stays, which has more edges."""
        joint_bans = self.bans[v]
        if len(self.near[u]) > len(self.near[v]):
            u, v = v, u
        self.bans[v] = joint_bans
        self.constant += self.near[v].pop(u, 0)
        self.near[u].pop(v, None)
        for x, w in self.near[u].items():
            del self.near[x][u]
            total = self.near[v].get(x, 0) + w
            if total:
                self.near[v][x] = self.near[x][v] = total
            else:
                del self.near[v][x], self.near[x][v]
            self._touch(x)
        if len(self.earns[u]) > len(self.earns[v]):  # the longer list stays
            self.earns[u], self.earns[v] = self.earns[v], self.earns[u]
            self.best[u], self.best[v] = self.best[v], self.best[u]
        for label, r in self.earns[u].items():
            self._reward(v, label, r)
        for label in joint_bans & self.earns[v].keys():
            del self.earns[v][label]
            self.best[v] = None
        self._touch(v)
        self._remove(u)

        def undo(labels: list[int]) -> None:
            labels[u] = labels[v]

        self.undo.append(undo)
        return v

    def _prune(self, u: int, best: int | None, first: int, second: int) -> None:
        """Put a leaf's best reply into its neighbour's rewards.

        With ``M = max r``, the reply to label ``l`` earns ``max(r(l) + w, M)`` for ``w > 0``;
        for ``w < 0`` it earns ``M``, or ``max(M + w, next best)`` where ``l`` is the best.
        """
        [(v, w)] = self.near[u].items()
        earns, bans = self.earns[u], self.bans[u]
        base = max(w, first)
        self.constant += base
        del self.near[v][u]
        if w > 0:
            for label, r in earns.items():
                self._reward(v, label, max(r + w, first) - base)
            for label in bans:
                self._reward(v, label, first - base)
        elif best is not None:
            self._reward(v, best, max(first + w, second) - base)
        self._touch(v)
        self._remove(u)
        fresh = self.problem.labels + u

        def undo(labels: list[int]) -> None:
            other = labels[v]
            agree = w + earns.get(other, 0) if other not in bans else None
            choices = {label: r for label, r in earns.items() if label != other}
            choice = max(choices, key=lambda label: choices[label], default=fresh)
            if choices.get(choice, 0) < 0:
                choice = fresh
            apart = choices.get(choice, 0)
            labels[u] = other if agree is not None and agree > apart else choice

        self.undo.append(undo)

    def _drop_dominated(self) -> bool:
        """Drop the rewards of labels that another label does not fall behind anywhere."""
        dropped = dominated_labels(self.near, self.earns, self.bans)
        for label, nodes in dropped.items():
            for u in nodes:
                del self.earns[u][label]
                self.best[u] = None
                self._touch(u)
        if dropped:
            self._retire(frozenset(dropped))
        return bool(dropped)

    def _tie_strong(self, limits: Limits) -> bool:
        """Give one label to each set whose edges outweigh all labels that could be lost."""
        found = False
        for component, loss in losses(self.near, self.earns, self.bans):
            for first, *others in strong_sets(self.near, component, loss, limits):
                for u in others:
                    first = self._merge(first, u)
                found = True
        return found

    def _retire(self, retired: frozenset[int]) -> None:
        """Let labels without rewards count as what they are now: fresh ones."""
        alive = [u for u, is_alive in enumerate(self.alive) if is_alive]

        def undo(labels: list[int]) -> None:
            taken = {labels[u] for u in alive}
            names = (self.problem.labels + u for u in alive)
            unused = (name for name in names if name not in taken)  # classes have a node each
            renamed = {label: next(unused) for label in sorted(taken & retired)}
            for u in alive:
                labels[u] = renamed.get(labels[u], labels[u])

        self.undo.append(undo)

    def _outcome(self) -> Reduction:
        kept = [u for u, alive in enumerate(self.alive) if alive]
        place = {u: k for k, u in enumerate(kept)}
        edges = [(place[u], place[v], w) for u in kept for v, w in self.near[u].items() if u < v]
        earns = [(place[u], label, r) for u in kept for label, r in self.earns[u].items()]
        bans = [(place[u], label) for u in kept for label in sorted(self.bans[u])]
        named = self.problem.labels
        small = Labelling(
            len(kept),
            named,
            np.array([e[:2] for e in edges], np.int64).reshape(-1, 2),
            exact_integers([e[2] for e in edges]),
            np.array([e[:2] for e in earns], np.int64).reshape(-1, 2),
            exact_integers([e[2] for e in earns]),
            np.array(bans, np.int64).reshape(-1, 2),
        )
        steps, whole, origin = self.undo, self.problem, np.array(kept, np.int64)

        def restore(labels: IntArray) -> IntArray:
            full = np.zeros(whole.nodes, np.int64)
            full[origin] = restored_names(labels, origin, named)
            listed = full.tolist()
            for step in reversed(steps):
                step(listed)
            return np.array(listed, np.int64)

        return Reduction(whole, small, self.constant, origin, restore)


def _raised(known: Best | None, label: int, total: int, r: int) -> Best | None:
    """Return what is best after a reward grew by ``r``; ``None`` where one would have to look."""
    if known is None or r < 0:
        return None
    best, first, second, least = known
    if total - r < 0 and total - r == least:
        return None
    if label == best:
        return best, total, second, least
    if total > first:
        return label, total, first, least
    return best, first, max(second, total), least
