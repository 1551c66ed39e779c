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

*dominated label*: if a component has no negative edge and ``r_u(l) <= r_u(m)`` at every node
``u``, nothing is lost by taking ``m`` wherever ``l`` was taken (moving a whole label class
keeps its agreements), so ``l`` need not be earned.

The first two are the classic heavy-edge rules of multiway cut (Dahlhaus et al., 1994) with
rewards of one node counted as alternatives.  All arithmetic is on Python integers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from layoutopt.limits import Limits
from layoutopt.presolve.reduction import Reduction, restored_names
from layoutopt.problem import IntArray, Labelling, exact_integers

Undo = Callable[[list[int]], None]

VISITS = 1000
"""After so many nodes the clock is looked at."""


def contract(problem: Labelling, limits: Limits | None = None) -> Reduction:
    """Apply all four rules until none fits, or time is up."""
    return _Contraction(problem).run(limits or Limits())


class _Contraction:
    """A problem as dictionaries, shrinking.

    ``near[u]`` maps neighbours to weights, ``earns[u]`` labels to rewards, ``bans[u]`` is
    the set of labels that ``u`` must not take.
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
            if limits.over or not self._drop_dominated():
                return self._outcome()

    def _touch(self, u: int) -> None:
        if not self.queued[u]:
            self.queued[u] = True
            self.queue.append(u)

    def _visit(self, u: int) -> None:
        near, earns = self.near[u], self.earns[u]
        total = sum(map(abs, near.values()))
        best, first, second = self._two_best(u)
        if best is not None and first - second >= total:
            self._fix(u, best)
        elif not near:
            self._fix(u, self.problem.labels + u)
        else:
            spread = first - min(0, min(earns.values(), default=0))
            for v, w in near.items():
                if 2 * w - total >= spread and self.bans[u] <= self.bans[v]:
                    self._merge(u, v)
                    return
            if len(near) == 1:
                self._prune(u, best, first, second)

    def _two_best(self, u: int) -> tuple[int | None, int, int]:
        """Return the best label (``None`` for fresh), its reward, and that of the next best."""
        best, first, second = None, 0, 0
        for label, r in self.earns[u].items():
            if r > first:
                best, first, second = label, r, first
            elif r > second:
                second = r
        return best, first, second

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

    def _remove(self, u: int) -> None:
        self.alive[u] = False
        self.near[u], self.earns[u] = {}, {}

    def _merge(self, u: int, v: int) -> None:
        """Let ``u`` take the label of ``v``; whichever has fewer edges disappears."""
        joint_bans = self.bans[v]
        if len(self.near[u]) > len(self.near[v]):
            u, v = v, u
        self.bans[v] = joint_bans
        self.constant += self.near[v].pop(u)
        del self.near[u][v]
        for x, w in self.near[u].items():
            del self.near[x][u]
            total = self.near[v].get(x, 0) + w
            if total:
                self.near[v][x] = self.near[x][v] = total
            else:
                del self.near[v][x], self.near[x][v]
            self._touch(x)
        for label, r in self.earns[u].items():
            self._reward(v, label, r)
        for label in joint_bans & self.earns[v].keys():
            del self.earns[v][label]
        self._touch(v)
        self._remove(u)

        def undo(labels: list[int]) -> None:
            labels[u] = labels[v]

        self.undo.append(undo)

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
        columns: dict[int, dict[int, int]] = {}
        for u, earns in enumerate(self.earns):
            for label, r in earns.items():
                columns.setdefault(label, {})[u] = r
        banned: dict[int, set[int]] = {}
        for u, bans in enumerate(self.bans):
            for label in bans if self.alive[u] else ():
                banned.setdefault(label, set()).add(u)
        signed = self._with_negative_edges()
        dropped = []
        for label, column in list(columns.items()):
            if not signed.isdisjoint(column):
                continue
            rivals = min((self.earns[u] for u in column), key=len)
            if max(column.values()) <= 0 or any(
                _behind(column, columns[rival])
                and banned.get(rival, set()) <= banned.get(label, set())
                for rival in rivals
                if rival != label
            ):
                for u in column:
                    del self.earns[u][label]
                    self._touch(u)
                del columns[label]
                dropped.append(label)
        if dropped:
            self._retire(frozenset(dropped))
        return bool(dropped)

    def _retire(self, retired: frozenset[int]) -> None:
        """Let labels without rewards count as what they are now: fresh ones."""
        alive = [u for u, is_alive in enumerate(self.alive) if is_alive]

        def undo(labels: list[int]) -> None:
            taken = {labels[u] for u in alive}
            names = (self.problem.labels + u for u in alive)
            unused = (name for name in names if name not in taken)
            renamed = {label: next(unused, label) for label in sorted(taken & retired)}
            for u in alive:
                labels[u] = renamed.get(labels[u], labels[u])

        self.undo.append(undo)

    def _with_negative_edges(self) -> set[int]:
        """Return the nodes of all components that have a negative edge."""
        todo = [u for u, near in enumerate(self.near) if any(w < 0 for w in near.values())]
        found = set(todo)
        while todo:
            for v in self.near[todo.pop()]:
                if v not in found:
                    found.add(v)
                    todo.append(v)
        return found

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


def _behind(column: dict[int, int], rival: dict[int, int]) -> bool:
    """Return whether a label's rewards are nowhere above a rival's; absent ones are 0."""
    return all(rival.get(u, 0) >= r for u, r in column.items()) and all(
        r >= 0 or u in column for u, r in rival.items()
    )
