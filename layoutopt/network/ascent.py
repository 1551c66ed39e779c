"""Prices of rows and messages of tables by dual ascent, for what is too large for an LP solver.

Sequential tree-reweighted message passing (TRW-S, Kolmogorov, IEEE PAMI 28, 2006) raises the bound
of the network without rows; in between a subgradient step with a moving average of solutions (the
volume algorithm, Barahona and Anbil, Math. Program. 87, 2000) changes the prices of rows.  Messages
stay as they are meanwhile.  All numbers are doubles; whoever takes messages and prices computes
the bound that they prove exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import Limits
from layoutopt.network.costs.work import Work

Floats: TypeAlias = NDArray[np.float64]

SWEEPS = 4
"""Passes forwards and backwards between two steps of prices."""

NEVER = 1e15
"""What a forbidden pair costs where a labelling is mended one node at a time."""

MENDED = 100
"""Most often what forbidden pairs cost is raised."""

AVERAGE = 0.15
"""Weight of the newest solution in the moving average."""

PATIENCE = 10
"""Steps without a better bound after which steps get smaller."""

SMALLEST, LARGEST = 0.01, 16.0
"""Factors of steps: the one at which the ascent ends, and the largest."""

GAIN = 1e-3
"""Share of the gap that :data:`LOOK` steps must close; else the ascent ends."""

LOOK = 40
"""Steps between two looks at what they gained."""


@dataclass(frozen=True)
class PricedRows:
    """Rows ``sum of amounts <= room``.

    Parameters
    ----------
    nodes, amounts
        For each item its node, and what the node's labels use, 0 or more where they are left.
    begin, end
        Item ``k`` is in rows ``begin[k] .. end[k] - 1``.
    room
        The most that may be used in each row, 0 or more.
    source
        For each row its number in the network, and 1 for its upper limit, -1 for its lower one.
    """

    nodes: list[int]
    amounts: list[list[int]]
    begin: list[int]
    end: list[int]
    room: list[int]
    source: list[tuple[int, int]]


@dataclass
class _Edge:
    """A table between two nodes, the messages to both, and the pair's settled ones."""

    first: int
    second: int
    table: Floats
    to_first: Floats
    to_second: Floats
    moved: Floats


class RowAscent:
    """Messages and prices on what is left of a problem.

    Parameters
    ----------
    work
        A problem in normal form.
    rows
        Its rows.

    Attributes
    ----------
    prices
        For each row what a unit of it costs.
    bound
        The best bound so far, in doubles, without the problem's constant.
    means
        For each node how often each label was chosen of late.
    """

    def __init__(self, work: Work, rows: PricedRows) -> None:
        self.work = work
        self.nodes = work.left()
        place = {u: k for k, u in enumerate(self.nodes)}
        self.labels = [work.labels(u) for u in self.nodes]
        self.own = [
            np.array([work.costs[u][i] for i in labels], np.float64)
            for u, labels in zip(self.nodes, self.labels, strict=True)
        ]
        self._connect(place)
        self.share = [
            1.0 / max(len(one), len(two), 1)
            for one, two in zip(self.later, self.earlier, strict=True)
        ]
        self.uses: list[list[tuple[int, int, Floats]]] = [[] for _ in self.nodes]
        for u, amounts, begin, end in zip(
            rows.nodes, rows.amounts, rows.begin, rows.end, strict=True
        ):
            k = place[u]
            used = np.array([amounts[i] for i in self.labels[k]], np.float64)
            self.uses[k].append((begin, end, used))
        self.room = np.array(rows.room, np.float64)
        self.unit = np.maximum(self.room, 1.0)
        self.prices = np.zeros(len(self.room))
        self.bound = -inf
        self.means = [np.zeros(len(labels)) for labels in self.labels]

    def _connect(self, place: dict[int, int]) -> None:
        """Write tables down; equal ones are shared."""
        self.edges: list[_Edge] = []
        self.later: list[list[_Edge]] = [[] for _ in self.nodes]
        self.earlier: list[list[_Edge]] = [[] for _ in self.nodes]
        known: dict[tuple[int, int, int], Floats] = {}
        for u, v, rows_of in self.work.edges():
            a, b = place[u], place[v]
            whole = len(self.labels[a]) == len(rows_of) and len(self.labels[b]) == len(rows_of[0])
            key = (id(rows_of), a if not whole else -1, b if not whole else -1)
            if key not in known:
                full = np.array(rows_of, np.float64)
                known[key] = full if whole else full[np.ix_(self.labels[a], self.labels[b])]
            table = known[key]
            edge = _Edge(a, b, table, *(np.zeros(n) for n in (*table.shape, table.shape[0])))
            self.edges.append(edge)
            self.later[a].append(edge)
            self.earlier[b].append(edge)

    def run(self, limits: Limits, offer: Callable[[list[int]], float], worth: float) -> None:
        """Ascend until steps gain too little.

        Parameters
        ----------
        offer
            Takes a labelling of what is left, and returns the cost of the best one known.
        worth
            The cost of the best labelling known, without the problem's constant.
        """
        factor, quiet, looked, step = 1.0, 0, -inf, 0
        average: Floats | None = None
        best = self._state()
        while not limits.over:
            priced = self._priced()
            for _ in range(SWEEPS - 1):
                if not limits.over:
                    self._forwards(priced)
                    self._backwards(priced)
            bound = self._forwards(priced) - float(self.prices @ self.room)
            chosen = self._decoded(priced, None)
            if step % 5 == 0:
                careful = self._decoded(priced, self.room.copy())
                if careful is not None:
                    worth = min(worth, offer(self._whole(self._improved(careful, limits))))
            self._backwards(priced)
            if bound > self.bound + 1e-9 * abs(bound):
                self.bound, best, quiet = bound, self._state(), 0
                factor = min(1.2 * factor, LARGEST)
            else:
                quiet += 1
                if quiet >= PATIENCE:
                    factor, quiet = factor / 2, 0
            if self.bound >= worth - 1 + 1e-6 or factor < SMALLEST:
                break
            step += 1
            if step % LOOK == 0:
                gap = min(worth, abs(self.bound) * 2 + 1) - self.bound
                if self.bound - looked < GAIN * gap:
                    break
                looked = self.bound
            if chosen is None:
                continue
            over = self._over(chosen)
            for mean, i in zip(self.means, chosen, strict=True):
                mean *= 1 - AVERAGE
                mean[i] += AVERAGE
            average = over if average is None else (1 - AVERAGE) * average + AVERAGE * over
            aim = min(worth, self.bound + max(0.1 * abs(self.bound), 1.0))
            size = factor * (aim - bound) / max(float(average @ average), 1e-12)
            step_of = max(size, 0.0) * average / self.unit
            self.prices = np.maximum(self.prices + step_of, 0.0)
            limits.report("prices of rows", None, self.bound + self.work.constant)
        self._restore(best)

    def _over(self, chosen: list[int]) -> Floats:
        """Return by how much a labelling exceeds each row, as a share of its limit."""
        change = np.zeros(len(self.room) + 1)
        for uses, i in zip(self.uses, chosen, strict=True):
            for begin, end, amounts in uses:
                change[begin] += amounts[i]
                change[end] -= amounts[i]
        return np.asarray((np.cumsum(change)[:-1] - self.room) / self.unit)

    def _state(self) -> Any:
        edges = [(e.to_first.copy(), e.to_second.copy(), e.moved.copy()) for e in self.edges]
        return self.prices.copy(), edges

    def _restore(self, state: Any) -> None:
        self.prices = state[0].copy()
        for edge, (one, two, moved) in zip(self.edges, state[1], strict=True):
            edge.to_first, edge.to_second, edge.moved = one.copy(), two.copy(), moved.copy()

    def _priced(self) -> list[Floats]:
        sums = np.concatenate([[0.0], np.cumsum(self.prices)])
        priced = []
        for own, uses in zip(self.own, self.uses, strict=True):
            for begin, end, amounts in uses:
                own = own + (sums[end] - sums[begin]) * amounts
            priced.append(own)
        return priced

    def _heard(self, priced: list[Floats], k: int) -> Floats:
        belief = priced[k].copy()
        for edge in self.later[k]:
            belief += edge.to_first
        for edge in self.earlier[k]:
            belief += edge.to_second
        return belief

    def _forwards(self, priced: list[Floats]) -> float:
        """Serve all nodes in order; return the bound that messages prove then."""
        total = 0.0
        for k, later in enumerate(self.later):
            belief = self._heard(priced, k)
            part = self.share[k] * belief
            total += float((belief - len(later) * part).min())
            for edge in later:
                moved = part - edge.to_first
                edge.moved = -moved
                new = (moved[:, None] + edge.table).min(axis=0)
                least = float(new.min())
                total += least
                edge.to_second = new - least
        return total

    def _backwards(self, priced: list[Floats]) -> None:
        for k in range(len(self.nodes) - 1, -1, -1):
            if self.earlier[k]:
                part = self.share[k] * self._heard(priced, k)
                for edge in self.earlier[k]:
                    new = (edge.table + (part - edge.to_second)).min(axis=1)
                    edge.to_first = new - new.min()

    def _decoded(self, priced: list[Floats], room: Floats | None) -> list[int] | None:
        """Return a labelling: nodes in order, each its best reply; ``None`` in a dead end.

        Parameters
        ----------
        room
            What rows have left, which is kept and changed; ``None`` where they do not matter.
        """
        chosen: list[int] = []
        for k, own in enumerate(priced):
            belief = own.copy()
            for edge in self.later[k]:
                belief += edge.to_first
            for edge in self.earlier[k]:
                belief += np.minimum(edge.table[chosen[edge.first]], NEVER)
            if room is not None:
                for begin, end, amounts in self.uses[k]:
                    belief[amounts > room[begin:end].min()] = inf
            best = int(belief.argmin())
            if belief[best] == inf:
                return None
            chosen.append(best)
            if room is not None:
                for begin, end, amounts in self.uses[k]:
                    room[begin:end] -= amounts[best]
        return chosen

    def _improved(self, chosen: list[int], limits: Limits) -> list[int]:
        """Change one node at a time as long as that costs less and rows hold.

        Where forbidden pairs are left then, they cost more and more, so that neighbours give way
        (the breakout method, Morris, AAAI 1993).
        """
        room = self.room.copy()
        for uses, i in zip(self.uses, chosen, strict=True):
            for begin, end, amounts in uses:
                room[begin:end] -= amounts[i]
        weights: dict[int, float] = {}
        queue = dict.fromkeys(range(len(chosen)))
        for _ in range(MENDED):
            while queue and not limits.over:
                k = next(iter(queue))
                del queue[k]
                if self._moved(k, chosen, room, weights):
                    queue.update(dict.fromkeys(e.second for e in self.later[k]))
                    queue.update(dict.fromkeys(e.first for e in self.earlier[k]))
            for edge in self.edges:
                if edge.table[chosen[edge.first], chosen[edge.second]] == inf:
                    weights[id(edge)] = 2 * weights.get(id(edge), NEVER)
                    queue.update({edge.first: None, edge.second: None})
            if not queue or limits.over:
                break
        return chosen

    def _moved(self, k: int, chosen: list[int], room: Floats, weights: dict[int, float]) -> bool:
        """Give a node its best label if that costs less; return whether it changed."""
        cost, i = self.own[k].copy(), chosen[k]
        for edge in self.later[k]:
            column = edge.table[:, chosen[edge.second]]
            cost += np.minimum(column, weights.get(id(edge), NEVER))
        for edge in self.earlier[k]:
            cost += np.minimum(edge.table[chosen[edge.first]], weights.get(id(edge), NEVER))
        for begin, end, amounts in self.uses[k]:
            cost[amounts > room[begin:end].min() + amounts[i]] = inf
        best = int(cost.argmin())
        if not cost[best] < cost[i] or cost[best] > cost[i] - 1e-6:
            return False
        for begin, end, amounts in self.uses[k]:
            room[begin:end] += amounts[i] - amounts[best]
        chosen[k] = best
        return True

    def _whole(self, chosen: list[int]) -> list[int]:
        """Return a labelling of all nodes of the problem, 0 where they have left."""
        labels = [0] * len(self.work.costs)
        for u, own, i in zip(self.nodes, self.labels, chosen, strict=True):
            labels[u] = own[i]
        return labels

    def messages(self) -> list[tuple[list[float], list[float]]]:
        """Return what each edge hands over to the labels of its first and second node."""
        return [(e.moved.tolist(), e.to_second.tolist()) for e in self.edges]
