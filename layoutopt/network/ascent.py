"""Prices of rows and messages of tables by dual ascent, for what is too large for an LP solver.

Sequential tree-reweighted message passing (TRW-S, Kolmogorov, IEEE PAMI 28, 2006) raises the bound
of the network without rows; in between the prices of rows change by a subgradient step from the
best prices so far, along a moving average of solutions (the volume algorithm, Barahona and Anbil,
Math. Program. 87, 2000).  Messages stay as they are meanwhile.  Nodes are served colour by colour,
so that no two of a colour are neighbours and all of one shape are served at once.  All numbers are
doubles; whoever takes messages and prices computes the bound that they prove exactly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from math import floor, inf
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import ranges
from layoutopt.network.components import colouring
from layoutopt.network.costs.work import Work
from layoutopt.network.network import Array, span_sums
from layoutopt.network.problem import Floats, no_numbers
from layoutopt.network.solvers.pairwise import Message, Relaxed

Numbers: TypeAlias = NDArray[np.int64]

SWEEPS = 4  # passes forwards and backwards between two steps of prices
NEVER = 1e15  # what a forbidden pair costs where a labelling is mended one node at a time
MENDED = 100  # most often what forbidden pairs cost is raised
AVERAGE = 0.3  # weight of the newest solution in the moving average
PATIENCE = 5  # steps without a better bound after which steps get shorter

FIRST, SMALLEST, LARGEST = 0.5, 1e-3, 2.0
"""Factors of steps: the first one, the one at which the ascent ends, and the largest."""

LONGER, SHORTER = 1.1, 0.66
"""By what a factor changes after a step whose direction goes on to gain, and without gain."""

LOOK, GAIN = 40, 1e-3  # so many steps must close such a share of the gap; else the ascent ends

LOOK_FREE, GAIN_FREE = 4, 0.002
"""The same where there are no rows, for each step, as an LP solver and searches need time, too."""

UNBOUNDED = 1e20  # a bound that only networks have whose rows no labelling keeps
PADDED = 1e30  # what labels cost that fill up a node's array
AT_ONCE = 2**18  # entries of tables that are added to at once

LOOKED_FOR, LOOK_AT = 0.3, 1000
"""Labellings take such a share of the effort, in entries of tables that are served, and so much for
each node."""

FEW, FIRST_LOOK = 5000, 10
"""Of more nodes than so many there is no labelling before so many steps of prices."""


@dataclass(frozen=True)
class PricedRows:
    """Rows ``sum of amounts <= room``."""

    nodes: Array = field(default_factory=no_numbers)  # node of each item
    # what the labels of its node use, of one item after the other, 0 or more where they are left
    amounts: Array = field(default_factory=no_numbers)
    sizes: Array = field(default_factory=no_numbers)  # how many labels that are
    begin: Array = field(default_factory=no_numbers)  # item `k` is in rows `begin[k] .. end[k] - 1`
    end: Array = field(default_factory=no_numbers)
    room: list[int] = field(default_factory=list)  # most that may be used in each row, 0 or more
    # for each row its number in the network, and 1 for its upper limit, -1 for its lower one
    source: list[tuple[int, int]] = field(default_factory=list)

    def items(self) -> Iterator[tuple[int, list[int], int, int]]:
        """Yield for each item its node, what labels use, its first row, and that after its last."""
        amounts, ends = self.amounts.tolist(), accumulate(self.sizes.tolist(), initial=0)
        own = (amounts[a:b] for a, b in pairwise(ends))
        return zip(self.nodes.tolist(), own, self.begin.tolist(), self.end.tolist(), strict=True)


@dataclass
class _Edges:
    """Edges between nodes of two colours whose arrays have equal shapes."""

    number: Numbers  # number of each edge
    first: Numbers  # node of the earlier colour of each edge
    second: Numbers  # node of the later colour
    one: Numbers  # places of the labels of first nodes, shape (a, edges)
    two: Numbers  # places of the labels of second nodes, shape (b, edges)
    table: Floats  # shape (a, b, edges)
    to_first: Floats  # messages to first nodes, 0 where arrays are filled up
    to_second: Floats  # messages to second nodes
    moved: Floats  # what the first nodes got when the messages to the second ones were made
    real_one: Floats  # which labels of first nodes there are
    real_two: Floats  # which labels of second nodes there are

    def send(self, part: Floats, axis: int) -> tuple[Floats, Floats]:
        """Return new messages of the first nodes to the second ones (axis 0), or the other way.

        With them come their least entries, which have been subtracted.
        """
        ways = (self.to_first, self.real_two), (self.to_second, self.real_one)
        heard, real = ways[axis]
        new = self._least(part - heard, axis)
        least = np.where(real > 0, new, inf).min(axis=0)
        return (new - least) * real, least

    def _least(self, moved: Floats, axis: int) -> Floats:
        """Return the least sums of tables and what their nodes give, over labels of one side."""
        moved = np.asarray(moved, order="C" if self.table.flags.c_contiguous else "F")
        labels = self.table.shape[axis]
        step, found = max(1, AT_ONCE * labels // self.table.size), None
        for k in range(0, labels, step):
            at = slice(k, k + step)
            own = self.table[at] if axis == 0 else self.table[:, at]
            part = (own + (moved[at, None] if axis == 0 else moved[at])).min(axis=axis)
            found = part if found is None else np.minimum(found, part)
        return np.asarray(found)


class _Neighbour(NamedTuple):
    """A neighbour of a node."""

    node: int  # place of the neighbour
    table: Floats  # what labels cost, those of the node first
    group: _Edges  # where the edge is
    place: int
    first: bool  # whether the neighbour is a first node there

    def heard(self) -> Floats:
        """Return the messages to the neighbour."""
        return (self.group.to_first if self.first else self.group.to_second)[:, self.place]


def _add(to: Floats, at: Numbers, amounts: Floats) -> None:
    """Add amounts at places, some of them more than once; NumPy is slow in two dimensions."""
    np.add.at(to, at.ravel(), amounts.ravel())


class RowAscent:
    """Messages, and a price for a unit of each row, on what is left of a problem in normal form.

    ``bound`` is the best one so far, in doubles, without the problem's constant.  ``limits`` are
    for laying out arrays, which raises ``TimeoutError`` if they end first; :meth:`run` has its own.
    """

    def __init__(self, work: Work, rows: PricedRows, limits: Limits) -> None:
        self.work, self.limits = work, limits
        self.nodes = work.left()
        self.place = {u: k for k, u in enumerate(self.nodes)}
        self.labels = [work.labels(u) for u in self.nodes]
        self._lay_out()
        self._connect()
        self._count(rows)
        self.prices = np.zeros(len(self.room))
        self.bound = -inf
        self.mean = np.zeros(len(self.own))

    def _lay_out(self) -> None:
        """Put labels of all nodes into one array, as many for each node as a power of two."""
        sizes = np.array([*map(len, self.labels)])
        self.width = 1 << np.ceil(np.log2(np.maximum(sizes, 2))).astype(np.int64)
        self.begin = np.cumsum(self.width) - self.width
        self.own = np.full(int(self.width.sum()), PADDED)
        self.real = np.zeros(len(self.own), bool)  # where labels are
        for u, labels, begin in zip(self.nodes, self.labels, self.begin.tolist(), strict=True):
            self.own[begin : begin + len(labels)] = [self.work.costs[u][i] for i in labels]
            self.real[begin : begin + len(labels)] = True

    def _connect(self) -> None:
        """Colour nodes, and group edges by colours and shapes."""
        edges = [*self._tables()]
        ends = np.array([(a, b) for a, b, _ in edges], np.int64).reshape(-1, 2)
        self.colour = colouring(len(self.nodes), ends)
        colour, width = self.colour.tolist(), self.width.tolist()
        members: dict[tuple[int, int, int, int], list[tuple[int, int, int, Floats]]] = {}
        at = []
        for number, (a, b, table) in enumerate(edges):
            one, two, cells = (b, a, table.T) if colour[a] > colour[b] else (a, b, table)
            key = colour[one], colour[two], width[one], width[two]
            own = members.setdefault(key, [])
            at.append((key, len(own)))
            own.append((number, one, two, cells))
        groups = {key: self._grouped(key[2:], own) for key, own in sorted(members.items())}
        self.groups = [*groups.values()]
        self.near: list[list[_Neighbour]] = [[] for _ in self.nodes]
        # For each edge its second node as a neighbour of the first, and the other way.
        self.edges: list[tuple[_Neighbour, _Neighbour]] = []
        for (a, b, table), (key, place) in zip(edges, at, strict=True):
            first = bool(groups[key].first[place] == b)
            self.near[a].append(_Neighbour(b, table, groups[key], place, first))
            self.near[b].append(_Neighbour(a, table.T, groups[key], place, not first))
            self.edges.append((self.near[a][-1], self.near[b][-1]))
        count = int(self.colour.max(initial=0)) + 1
        later, earlier = np.zeros(len(self.nodes)), np.zeros(len(self.nodes))
        for group in self.groups:
            np.add.at(later, group.first, 1)
            np.add.at(earlier, group.second, 1)
        self.later = np.repeat(later, self.width)
        self.share = np.repeat(1.0 / np.maximum(np.maximum(later, earlier), 1), self.width)
        self.from_colour = [[g for key, g in groups.items() if key[0] == c] for c in range(count)]
        self.to_colour = [[g for key, g in groups.items() if key[1] == c] for c in range(count)]
        of = np.repeat(self.colour, self.width)
        self.of_colour = [np.flatnonzero(of == c) for c in range(count)]
        firsts = np.zeros(len(self.own), bool)
        firsts[self.begin] = True
        self.starts = [np.flatnonzero(firsts[at]) for at in self.of_colour]

    def _tables(self) -> Iterator[tuple[int, int, Floats]]:
        """Yield the nodes of each edge, by place, and its table of the labels that are left."""
        known: dict[tuple[int, int, int], Floats] = {}
        for u, v, rows in self.work.edges():
            self._check_time()
            a, b = self.place[u], self.place[v]
            whole = len(self.labels[a]) == len(rows) and len(self.labels[b]) == len(rows[0])
            key = (id(rows), a if not whole else -1, b if not whole else -1)
            if key not in known:
                full = np.array(rows, np.float64)
                known[key] = full if whole else full[np.ix_(self.labels[a], self.labels[b])]
            yield a, b, known[key]

    def _check_time(self) -> None:
        if self.limits.over:
            raise TimeoutError

    def _grouped(
        self, widths: tuple[int, int], edges: list[tuple[int, int, int, Floats]]
    ) -> _Edges:
        self._check_time()
        number, first, second = (np.array([edge[k] for edge in edges]) for k in range(3))
        table = np.zeros((*widths, len(edges)))
        if len(edges) < widths[1]:  # the longer of these axes lies along memory
            table = np.moveaxis(np.zeros((len(edges), *widths)), 0, -1)
        for k, (*_, own) in enumerate(edges):
            table[: own.shape[0], : own.shape[1], k] = own
        one = self.begin[first] + np.arange(widths[0])[:, None]
        two = self.begin[second] + np.arange(widths[1])[:, None]
        real_one, real_two = (self.real[at].astype(np.float64) for at in (one, two))
        return _Edges(
            number=number,
            first=first,
            second=second,
            one=one,
            two=two,
            table=table,
            to_first=np.zeros(one.shape),
            to_second=np.zeros(two.shape),
            moved=np.zeros(one.shape),
            real_one=real_one,
            real_two=real_two,
        )

    def _count(self, rows: PricedRows) -> None:
        """Write down what items use, for all of them and by node."""
        self.uses: list[list[tuple[int, int, Floats]]] = [[] for _ in self.nodes]
        self.item_of = np.array([self.place[u] for u in rows.nodes.tolist()], np.int64)
        self.item_begin, self.item_end = rows.begin, rows.end
        counts = np.array([*map(len, self.labels)], np.int64)
        sizes, starts = counts[self.item_of], (np.cumsum(counts) - counts)[self.item_of]
        self.first_amount = np.cumsum(sizes) - sizes
        self.item_at = ranges(self.begin[self.item_of], sizes)
        self.item = np.repeat(np.arange(len(sizes)), sizes)
        label = np.array([*chain(*self.labels)], np.int64)[ranges(starts, sizes)]
        offset = np.cumsum(rows.sizes) - rows.sizes
        self.amounts = rows.amounts[offset[self.item] + label].astype(np.float64)
        at, size = self.first_amount.tolist(), sizes.tolist()
        spans = (self.item_of.tolist(), rows.begin.tolist(), rows.end.tolist())
        for k, begin, end, a, n in zip(*spans, at, size, strict=True):
            self.uses[k].append((begin, end, self.amounts[a : a + n]))
        self.source = rows.source
        self.room = np.array(rows.room, np.float64)
        self.unit = np.maximum(self.room, 1.0)

    def begin_with(
        self,
        prices: Mapping[tuple[int, int], float],
        messages: Mapping[tuple[int, int], Mapping[int, float]],
    ) -> None:
        """Begin with prices by rows' sources, and with messages to labels of edges' second nodes.

        What is left of a table goes to its first node.
        """
        self.prices = np.array([prices.get(source, 0.0) for source in self.source])
        for second, first in self.edges:
            sent = messages.get((self.nodes[first.node], self.nodes[second.node]))
            if sent is not None:
                to = second.heard()[: second.table.shape[1]]
                to[:] = [sent.get(i, 0.0) for i in self.labels[second.node]]
                rest = (second.table - to).min(axis=1)
                first.heard()[: len(rest)] = rest - rest.min()

    def least_used(self, limits: Limits) -> list[int]:
        """Return a labelling: from labels that use least, each row divided by its limit, improved.

        It keeps rows if the labels that use least do.
        """
        least = self._decoded(self._priced(NEVER / self.unit)).tolist()
        return self._whole(self._improved(least, limits))

    def run(
        self,
        limits: Limits,
        offer: Callable[[list[int]], float] | None,
        worth: float,
        most: int | None = None,
    ) -> None:
        """Ascend until steps gain too little, or ``most`` steps were made.

        ``offer`` takes a labelling of what is left, and returns the cost of the best one known,
        which ``worth`` is at first; both are without the problem's constant.  Without it, none is
        looked for.
        """
        factor, worse, step = FIRST, 0, 0
        self.looked = -inf, worth
        average = at_best = np.zeros(len(self.room))
        best = self._state()
        turn = float(sum(group.table.size for group in self.groups)) * SWEEPS
        serving = looking = 0.0
        order, draw = self._least_first(), Random(limits.seed)
        while not limits.over:
            priced = self._priced(self.prices)
            bound = self._passed(priced, limits)
            state = self._state()
            chosen = self._decoded(priced)
            serving += turn
            due = not self.groups or looking <= LOOKED_FOR * serving
            if offer is not None and due and (step >= FIRST_LOOK or len(chosen) <= FEW):
                careful = self._careful(priced, order, limits)
                draw.shuffle(order)
                if careful is not None:
                    worth = min(worth, offer(self._whole(self._improved(careful, limits))))
                looking += LOOK_AT * len(chosen)
            self._backwards(priced)
            excess = self._excess(chosen)
            if bound > self.bound + 1e-9 * abs(bound):
                self.bound, best, worse, at_best = bound, state, 0, excess
                if average @ excess > 0:
                    factor = min(LONGER * factor, LARGEST)
            else:
                worse += 1
                if worse >= PATIENCE:  # begin again from what the best prices led to
                    factor, worse, average = SHORTER * factor, 0, at_best
            if self.bound >= min(worth - 1 + 1e-6, UNBOUNDED) or factor < SMALLEST:
                break
            step += 1
            if step == most or self._closed_little(step, worth):
                break
            self.mean *= 1 - AVERAGE
            self.mean[self.begin + chosen] += AVERAGE
            average = (1 - AVERAGE) * average + AVERAGE * excess if step > 1 else excess
            self._step(best[0], average, factor, worth)
            known = None if worth == inf else int(worth) + self.work.constant
            limits.report("dual ascent", known, floor(self.bound) + self.work.constant)
        self._restore(best)

    def _closed_little(self, step: int, worth: float) -> bool:
        """Look at the gap now and then; return whether too little of it was closed since."""
        look, gain = LOOK, GAIN
        if not len(self.room):
            look = LOOK_FREE if len(self.nodes) <= FEW else FIRST_LOOK
            gain = look * GAIN_FREE
        if step > 1 and step % look:
            return False
        bound, least = self.looked
        self.looked = self.bound, worth
        closed = self.bound - bound + (least - worth if least < inf else 0.0)
        return closed < gain * (min(worth, abs(self.bound) * 2 + 1) - self.bound)

    def _step(self, prices: Floats, average: Floats, factor: float, worth: float) -> None:
        """Move prices of rows towards what exceeds them on average."""
        aim = min(worth, self.bound + max(0.1 * abs(self.bound), 1.0))
        direction = np.where((prices > 0) | (average > 0), average, 0.0)
        size = factor * (aim - self.bound) / max(float(direction @ direction), 1e-12)
        self.prices = np.maximum(prices + size * direction / self.unit, 0.0)

    def _excess(self, chosen: Numbers) -> Floats:
        """Return by how much a labelling exceeds each row, as a share of its limit."""
        used = self.amounts[self.first_amount + chosen[self.item_of]]
        sums = span_sums(self.item_begin, self.item_end, used, len(self.room))
        return np.asarray((sums - self.room) / self.unit)

    def _state(self) -> Any:
        groups = self.groups
        return self.prices.copy(), [(g.moved.copy(), g.to_second.copy()) for g in groups]

    def _restore(self, state: Any) -> None:
        self.prices = state[0].copy()
        for group, (moved, two) in zip(self.groups, state[1], strict=True):
            group.moved, group.to_second = moved, two

    def _priced(self, prices: Floats) -> Floats:
        """Return what labels cost with what they use, by prices of rows."""
        sums = np.concatenate([[0.0], np.cumsum(prices)])
        each = sums[self.item_end] - sums[self.item_begin]
        priced = self.own.copy()
        np.add.at(priced, self.item_at, each[self.item] * self.amounts)
        return priced

    def _heard(self, priced: Floats) -> Floats:
        """Return what labels cost with all messages."""
        belief = priced.copy()
        for group in self.groups:
            _add(belief, group.one, group.to_first)
            _add(belief, group.two, group.to_second)
        return belief

    def _passed(self, priced: Floats, limits: Limits) -> float:
        """Pass messages back and forth; return the bound that they prove with the prices."""
        for _ in range(SWEEPS - 1):
            if not limits.over:
                self._forwards(priced)
                self._backwards(priced)
        return self._forwards(priced) - float(self.prices @ self.room)

    def _forwards(self, priced: Floats) -> float:
        """Serve all colours in order; return the bound that messages prove then."""
        belief, total = self._heard(priced), 0.0
        for at, starts, groups in zip(self.of_colour, self.starts, self.from_colour, strict=True):
            part = self.share[at] * belief[at]
            rest = np.where(self.real[at], belief[at] - self.later[at] * part, inf)
            total += float(np.minimum.reduceat(rest, starts).sum()) if len(at) else 0.0
            belief[at] = part  # nobody needs these any more but the edges from them
            for group in groups:
                given = belief[group.one]
                new, least = group.send(given, 0)
                group.moved = (group.to_first - given) * group.real_one
                total += float(least.sum())
                _add(belief, group.two, new - group.to_second)
                group.to_second = new
        return total

    def _backwards(self, priced: Floats) -> None:
        belief = self._heard(priced)
        for at, groups in zip(self.of_colour[::-1], self.to_colour[::-1], strict=True):
            belief[at] *= self.share[at]
            for group in groups:
                new, _ = group.send(belief[group.two], 1)
                _add(belief, group.one, new - group.to_first)
                group.to_first = new

    def _decoded(self, priced: Floats) -> Numbers:
        """Return a labelling: colours in order, each node its best reply; rows do not matter."""
        belief = priced.copy()
        for group in self.groups:
            _add(belief, group.one, group.to_first)
        chosen = np.zeros(len(self.nodes), np.int64)
        for c, groups in enumerate(self.from_colour):
            for width in np.unique(self.width[self.colour == c]).tolist():
                nodes = np.flatnonzero((self.colour == c) & (self.width == width))
                at = self.begin[nodes][:, None] + np.arange(width)
                chosen[nodes] = np.where(self.real[at], belief[at], inf).argmin(axis=1)
            for group in groups:
                rows = group.table[chosen[group.first], :, np.arange(len(group.first))].T
                _add(belief, group.two, np.minimum(rows, NEVER))
        return chosen

    def _least_first(self) -> list[int]:
        """Return nodes in an order of what they may use, over all rows together."""
        most = np.zeros(len(self.nodes))
        each = np.maximum.reduceat(self.amounts, self.first_amount)
        np.add.at(most, self.item_of, (self.item_end - self.item_begin) * each)
        return sorted(range(len(most)), key=most.tolist().__getitem__)

    def _careful(self, priced: Floats, order: list[int], limits: Limits) -> list[int] | None:
        """Return a labelling that keeps rows: nodes one by one; ``None`` in a dead end.

        A node takes the best label for the labels that neighbours have, and for the messages of
        those that have none yet.
        """
        room, belief = self.room.copy(), self._heard(priced)
        chosen = [-1] * len(self.nodes)
        begins = self.begin.tolist()
        for k in order:
            if limits.over:
                return None
            own = belief[begins[k] : begins[k] + len(self.labels[k])]
            for begin, end, amounts in self.uses[k]:
                own[amounts > room[begin:end].min()] = inf
            best = int(own.argmin())
            if own[best] == inf:
                return None
            chosen[k] = best
            for begin, end, amounts in self.uses[k]:
                room[begin:end] -= amounts[best]
            for other in self.near[k]:
                if chosen[other.node] < 0:
                    cost, begin = np.minimum(other.table[best], NEVER), begins[other.node]
                    belief[begin : begin + len(cost)] += cost - other.heard()[: len(cost)]
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
        weights: dict[tuple[int, int], float] = {}
        queue = OrderedDict.fromkeys(range(len(chosen)))
        for _ in range(MENDED):
            while queue and not limits.over:
                k, _ = queue.popitem(last=False)
                if self._moved(k, chosen, room, weights):
                    queue.update(dict.fromkeys([other.node for other in self.near[k]]))
            for a, b in self._forbidden(chosen):
                weights[a, b] = weights[b, a] = 2 * weights.get((a, b), NEVER)
                queue.update({a: None, b: None})
            if not queue or limits.over:
                break
        return chosen

    def _forbidden(self, chosen: list[int]) -> list[tuple[int, int]]:
        """Return the edges whose labels a labelling may not have together."""
        now, found = np.array(chosen, np.int64), [np.zeros(0, np.int64)]
        for group in self.groups:
            costs = group.table[now[group.first], now[group.second], np.arange(len(group.first))]
            found.append(group.number[costs == inf])
        edges = [self.edges[number] for number in np.sort(np.concatenate(found)).tolist()]
        return [(first.node, second.node) for second, first in edges]

    def _moved(
        self, k: int, chosen: list[int], room: Floats, weights: dict[tuple[int, int], float]
    ) -> bool:
        """Give a node its best label if that costs less; return whether it changed."""
        begin, i = self.begin[k], chosen[k]
        cost = self.own[begin : begin + len(self.labels[k])].copy()
        for b, table, *_ in self.near[k]:
            cost += np.minimum(table[:, chosen[b]], weights.get((k, b), NEVER))
        for first, last, amounts in self.uses[k]:
            cost[amounts > room[first:last].min() + amounts[i]] = inf
        best = int(cost.argmin())
        if not cost[best] < cost[i] or cost[best] > cost[i] - 1e-6:
            return False
        for first, last, amounts in self.uses[k]:
            room[first:last] += amounts[i] - amounts[best]
        chosen[k] = best
        return True

    def _whole(self, chosen: list[int]) -> list[int]:
        """Return a labelling of all nodes of the problem, 0 where they have left."""
        labels = [0] * len(self.work.costs)
        for u, own, i in zip(self.nodes, self.labels, chosen, strict=True):
            labels[u] = own[i]
        return labels

    def relaxed(self) -> Relaxed:
        """Return how often labels were chosen of late, messages to second nodes, and prices."""
        ends = zip(self.begin.tolist(), map(len, self.labels), strict=True)
        point = [self.mean[a : a + n].tolist() for a, n in ends]
        messages: list[Message] = []
        for second, _ in self.edges:
            sent = second.group.moved[:, second.place] if second.first else second.heard()
            rows, columns = second.table.shape
            messages.append(([0.0] * rows, sent[:columns].tolist()))
        return Relaxed(point, messages, self.prices.tolist(), self.bound)
