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

*dominated labels* and *strong sets* look at whole classes of nodes (:mod:`.classes`).

The first two are the classic heavy-edge rules of multiway cut (Dahlhaus et al., 1994) with
rewards of one node counted as alternatives.  All arithmetic is on Python integers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from layoutopt.limits import Limits
from layoutopt.presolve.classes import dominated_labels, losses
from layoutopt.presolve.reduction import Reduction, restored_names
from layoutopt.presolve.strength import strong_sets
from layoutopt.problem import IntArray, Labelling, exact_integers

Undo = Callable[[list[int]], None]

Best = tuple[int | None, int, int, int]
"""A node's best label (``None`` for fresh), its reward, the next best reward, and the worst; the
last three are at least, at least, and at most 0."""

VISITS = 1000
"""After so many nodes the clock is looked at."""


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
