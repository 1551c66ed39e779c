"""Local search: labels of some nodes change while all others keep theirs.

*Large neighbourhood search* (Shaw, *Using constraint programming and local search methods to solve
vehicle routing problems*, CP 1998): either the nodes that keep their labels are chosen so that all
others can be eliminated, or the others are a part around some node, small enough to be solved.

*Tabu search* (Glover, *Tabu search, part I*, ORSA J. Computing 1, 1989; for labellings Hertz and de
Werra, *Using tabu search techniques for graph coloring*, Computing 39, 1987): step by step one node
changes its label, even if all changes cost more.  The label that it has given up is forbidden to it
for some steps, unless it leads to less than all labellings so far.  Forbidden pairs cost a penalty,
which grows while labellings have some and falls while they have none (Gendreau, Hertz and Laporte,
*A tabu search heuristic for the vehicle routing problem*, Management Science 40, 1994).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import inf
from random import Random

import numpy as np

from layoutopt.base.limits import Limits, Unlimited
from layoutopt.network.costs.reductions import apply, eliminate
from layoutopt.network.costs.work import Cost, Table, Work
from layoutopt.network.elimination import shrink
from layoutopt.network.problem import Floats, IntArray

ROUNDS = 40  # most nodes are chosen anew so often
PATIENCE = 4  # rounds in a row without gain, after which it ends
TABLE = 2**15  # largest table when nodes are chosen anew, in entries
SAMPLE = 4  # of so many nodes the one of most neighbours is held
BATCH = 64  # of so many nodes one is held at a time


def polish(work: Work, labels: list[int], limits: Limits) -> list[int]:
    """Return an allowed labelling of what is left, made better if that is found to be possible.

    Nodes chosen at random keep their labels, so many that the others, most of all nodes, can
    be chosen exactly by elimination; then again with other nodes.
    """
    draw = Random(limits.seed)
    value, quiet = work.value(labels), 0
    for _ in range(ROUNDS):
        limits.report("local search", int(value))
        if limits.over or quiet == PATIENCE:
            break
        trial = work.copy()
        for u in _cutset(work, draw):
            trial.keep(u, labels[u])
        apply(trial, Unlimited(), trial.left())
        found = eliminate(trial, limits)
        quiet += 1
        if found is not None:
            trial.restore(found)
            labels, before, value = found, value, work.value(found)
            quiet = 0 if value < before else quiet
    return labels


def descend(work: Work, labels: list[int]) -> list[int]:
    """Change one node of what is left at a time as long as that costs less; return the labels."""
    labels, queue = list(labels), OrderedDict.fromkeys(work.left())
    while queue:
        u, _ = queue.popitem(last=False)
        reply = work.reply(u, labels)
        best = min(reply)
        if best < reply[labels[u]]:
            labels[u] = reply.index(best)
            queue.update(dict.fromkeys(work.near[u]))
    return labels


def _cutset(work: Work, draw: Random) -> list[int]:
    """Return nodes without which the others can be eliminated."""
    near = {u: set(work.near[u]) for u in work.left()}
    widths = {u: len(work.labels(u)) for u in near}
    held = []
    while near:
        shrink(near, widths, TABLE, 2**62, Unlimited())
        for _ in range(-(-len(near) // BATCH)):
            some = draw.sample(list(near), min(SAMPLE, len(near)))
            held.append(max(some, key=lambda u: len(near[u])))
            for v in near.pop(held[-1]):
                near[v].discard(held[-1])
    return held


UNTIMED = 8  # how much larger parts become where there is no deadline
STALE = 3.0  # how often parts cover all nodes without a better labelling until they are made larger


class Neighbourhoods:
    """Parts of a problem to be labelled anew one after the other, around nodes at random.

    They become twice as large once small ones gain nothing more; after the largest, small ones are
    next, unless none has gained anything, or there is no deadline.

    ``limits`` give the seed, and whether there is a deadline.  ``groups`` are sets of nodes that
    depend on each other although no table is over them, if any: most parts then are around a node
    of a set, or two.  A part has ``size`` labels at first, or a half or a quarter of them.
    """

    def __init__(
        self, work: Work, limits: Limits, groups: Sequence[Sequence[int]] = (), *, size: int
    ) -> None:
        self.work, self.groups, self.draw = work, groups, Random(limits.seed)
        self.nodes, self.grouped = work.left(), {u for group in groups for u in group}
        self.least = self.size = size
        self.covered = 0
        self.largest = sum(len(work.labels(u)) for u in self.nodes)
        self.timed, self.gained = limits.deadline < inf, False
        if not self.timed:
            self.largest = min(self.largest, UNTIMED * size)

    def next(self) -> list[int]:
        """Return the nodes of another part; none where parts gain nothing more."""
        if self.covered > STALE * len(self.nodes):
            self.covered, self.size = 0, 2 * self.size
            if self.size > self.largest:
                self.size = self.least
                if not (self.timed and self.gained):
                    return []
                self.gained = False
        around = _around(
            self.work, self._seeds(), self.size * self.draw.choice((1, 2, 4)), self.draw
        )
        self.covered += len(around)
        return around

    def better(self) -> None:
        """Note that the last part has better labels."""
        self.covered, self.gained = 0, True

    def _seeds(self) -> list[int]:
        draw, groups = self.draw, self.groups
        if not groups:
            return [draw.choice(self.nodes)]
        seeds = [draw.choice(draw.choice(groups) if draw.random() < 0.7 else self.nodes)]
        if seeds[0] in self.grouped and draw.random() < 0.5:
            seeds.append(draw.choice(draw.choice(groups)))
        return seeds


def _around(work: Work, seeds: list[int], size: int, draw: Random) -> list[int]:
    """Return nodes around some, at random, of about so many labels together."""
    found = dict.fromkeys(seeds)
    fringe = [v for u in found for v in work.near[u]]
    left = size
    while fringe and left > 0:
        k = draw.randrange(len(fringe))
        fringe[k], fringe[-1] = fringe[-1], fringe[k]
        v = fringe.pop()
        if v not in found:
            found[v] = None
            left -= len(work.labels(v))
            fringe += work.near[v]
    return sorted(found)


def part_of(work: Work, nodes: Sequence[int], labels: Sequence[int]) -> Work:
    """Return the problem of some nodes, numbered in order, while all others keep their labels."""
    place = {u: k for k, u in enumerate(nodes)}
    part = Work([list(work.costs[u]) for u in nodes])
    for k, u in enumerate(nodes):
        own = part.costs[k]
        for v, table in work.near[u].items():
            if v in place:
                part.near[k][place[v]] = table
            else:
                own = [x + row[labels[v]] for x, row in zip(own, table, strict=True)]
        part.costs[k] = own
    return part


TENURE, SPREAD = 10, 3
"""A label is forbidden for so many steps, and up to a ``SPREAD``-th of the nodes more."""

QUIET, SHAKEN = 20, 5
"""Steps without a better labelling, for each label, until the search ends or labels are shaken."""

SHARE = 10
"""Of so many nodes one takes a label at random where labels are shaken."""

STREAK, FACTOR = 10, 1.5
"""After so many labellings in a row, all allowed or none, the penalty changes by this factor."""

ENTRIES, LOOKED_AT = 2**22, 2**30
"""Most entries of tables, of 16 bytes each, and most labels that are compared in all steps."""

LAST = 2**62
"""A step that there never is."""

POLLED = 64
"""Steps after which limits are looked at."""


def tabu_search(work: Work, labels: list[int], limits: Limits) -> list[int]:
    """Return the best allowed labelling of what is left that is found from an allowed one.

    It ends when it has found nothing better for long.  What is so large that few nodes would change
    is left alone.
    """
    nodes, labels = work.left(), list(labels)
    width = max(len(work.costs[u]) for u in nodes)
    pairs = {id(table): table for u in nodes for table in work.near[u].values()}
    rounds = LOOKED_AT // (POLLED * width * len(nodes))
    if len(pairs) * width**2 > ENTRIES or rounds * POLLED < len(nodes):
        return labels
    search = _Search(_Tables(work, width, pairs), Random(limits.seed), [labels[u] for u in nodes])
    shaken, quiet = (n * sum(len(work.labels(u)) for u in nodes) for n in (SHAKEN, QUIET))
    since = 0
    for _ in range(rounds):
        for _ in range(POLLED):
            since += 1
            if search.step():
                since = 0
            elif since % shaken == 0:
                search.shake()
        if since < POLLED:
            found = list(labels)
            for u, label in zip(nodes, search.best_labels, strict=True):
                found[u] = int(label)
            if work.value(found) < work.value(labels):  # also if the search's sums are inexact
                labels = found
                limits.report("local search", int(work.value(labels)), work.bound())
        if since >= quiet or limits.over:
            break
    return labels


class _Tables:
    """The costs of a problem as arrays, with as many labels for all nodes, numbered anew.

    A row of ``pairs`` belongs to a label of a table's first node: what it costs with each label of
    the other one, 0 where that is forbidden, and then for each of them whether it is.
    """

    def __init__(self, work: Work, width: int, pairs: Mapping[int, Table]) -> None:
        nodes = work.left()
        place = {u: k for k, u in enumerate(nodes)}
        first = {key: k * width for k, key in enumerate(pairs)}
        self.own = _padded([work.costs[u] for u in nodes], width)
        # A node and its neighbours, and the first rows of the tables that it and these have: zeros
        # for itself.
        near, none = [work.near[u] for u in nodes], len(pairs) * width
        self.near = [np.array([k, *map(place.get, each)]) for k, each in enumerate(near)]
        self.first = [np.array([none, *(first[id(t)] for t in n.values())]) for n in near]
        costs = np.full((len(pairs) + 1, width, width), inf)
        for k, table in enumerate(pairs.values()):
            costs[k, : len(table)] = _padded(table, width)
        costs[-1] = 0
        forbidden = np.isinf(costs)
        costs[forbidden] = 0
        self.largest, self.any_forbidden = float(np.abs(costs).max()), bool(forbidden.any())
        self.pairs = np.concatenate([costs, forbidden], axis=2).reshape(-1, 2 * width)


def _padded(rows: Sequence[Sequence[Cost]], width: int) -> Floats:
    return np.array([(*row, *[inf] * (width - len(row))) for row in rows], np.float64)


class _Search:
    """A labelling that changes, and what each label of each node costs beside it."""

    def __init__(self, tables: _Tables, draw: Random, labels: Sequence[int]) -> None:
        self.tables, self.draw = tables, draw
        self.width = tables.own.shape[1]
        self.places = np.arange(len(labels)) * 2 * self.width  # where rows of costs begin
        self.penalty = max(1.0, tables.largest)
        self.number = 0
        self.streak = 0  # allowed labellings in a row, or, below 0, others
        self._take(np.array(labels))
        self.best, self.best_labels = self.cost, self.labels.copy()

    def _take(self, labels: IntArray) -> None:
        """Begin anew with a labelling."""
        tables, self.labels = self.tables, labels
        # What labels cost beside the others, and then with how many neighbours they are forbidden.
        self.beside = np.hstack([tables.own, np.zeros_like(tables.own)])
        for near, first, label in zip(tables.near, tables.first, labels.tolist(), strict=True):
            self.beside[near] += tables.pairs[first + label]
        every = np.arange(len(labels))
        self.cost = float((self.beside[every, labels] + tables.own[every, labels]).sum()) / 2
        self.clashing = int(self.beside[every, self.width + labels].sum()) // 2
        self.until = np.zeros(tables.own.shape, np.int64)  # the steps to which labels are forbidden
        self.until[every, labels] = LAST
        self.more = self._more(self.beside, labels)

    def _more(self, beside: Floats, labels: IntArray) -> Floats:
        """Return by how much each label costs more than its node's, penalties included."""
        at = self.places[: len(labels)] + labels
        costs, now = beside[:, : self.width], beside.take(at)
        if self.tables.any_forbidden:
            costs = costs + self.penalty * beside[:, self.width :]
            now += self.penalty * beside.take(at + self.width)
        return np.asarray(costs - now[:, None])

    def step(self) -> bool:
        """Change the label of one node; return whether no labelling was better."""
        u, label = divmod(int(self.more.argmin()), self.width)
        self.number += 1
        if self.until[u, label] >= self.number and not self._is_better(u, label):
            worth = np.where(self.until < self.number, self.more, inf)
            u, label = divmod(int(worth.argmin()), self.width)
            if worth[u, label] == inf:
                return False
        before = int(self.labels[u])
        spread = len(self.labels) // SPREAD + 1
        self.until[u, before] = self.number + TENURE + self.draw.randrange(spread)
        self.until[u, label] = LAST
        self.labels[u] = label
        own = self.beside[u]
        self.cost += float(own[label] - own[before])
        self.clashing += int(own[self.width + label] - own[self.width + before])
        tables = self.tables
        near, first, pairs = tables.near[u], tables.first[u], tables.pairs
        beside = self.beside.take(near, 0)
        beside += pairs.take(first + label, 0)
        beside -= pairs.take(first + before, 0)
        self.beside[near] = beside
        self.more[near] = self._more(beside, self.labels.take(near))
        if tables.any_forbidden:
            self._weigh()
        if self.clashing or self.cost >= self.best:
            return False
        self.best, self.best_labels = self.cost, self.labels.copy()
        return True

    def _is_better(self, u: int, label: int) -> bool:
        """Return whether a label leads to an allowed labelling that is better than all so far."""
        own, before = self.beside[u], self.labels[u]
        clashing = self.clashing + own[self.width + label] - own[self.width + before]
        return bool(clashing == 0 and self.cost + own[label] - own[before] < self.best)

    def _weigh(self) -> None:
        """Change the penalty where labellings were all allowed for long, or none was."""
        allowed = self.clashing == 0
        self.streak = (max(self.streak, 0) + 1) if allowed else (min(self.streak, 0) - 1)
        if abs(self.streak) == STREAK:
            self.penalty = max(1.0, self.penalty / FACTOR if allowed else self.penalty * FACTOR)
            self.streak = 0
            self.more = self._more(self.beside, self.labels)

    def shake(self) -> None:
        """Go back to the best labelling, and give some nodes labels at random."""
        labels = self.best_labels.copy()
        for u in self.draw.sample(range(len(labels)), -(-len(labels) // SHARE)):
            labels[u] = self.draw.choice(np.flatnonzero(self.tables.own[u] < inf))
        self._take(labels)
