"""Large neighbourhood search: label some nodes anew while all others keep their labels.

Shaw, Using constraint programming and local search methods to solve vehicle routing problems, CP
1998.  Either the nodes that keep their labels are chosen so that all others can be eliminated, or
the others are a part around some node, small enough to be solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random

from layoutopt.base.limits import Limits, Unlimited
from layoutopt.network.costs.reductions import apply, eliminate
from layoutopt.network.costs.work import Work
from layoutopt.network.elimination import shrink

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
        trial = work.trial()
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


def _cutset(work: Work, draw: Random) -> list[int]:
    """Return nodes without which the others can be eliminated."""
    near = {u: set(work.near[u]) for u in work.left()}
    widths = {u: len(work.labels(u)) for u in near}
    held = []
    while near:
        shrink(near, widths, TABLE, 2**62)
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

    Parameters
    ----------
    work
        The problem.
    limits
        Give the seed, and whether there is a deadline.
    groups
        Sets of nodes that depend on each other although no table is over them, if any.  Most parts
        then are around a node of a set, or two.
    size
        Labels of a part at first, or a half or a quarter of them.
    """

    def __init__(
        self,
        work: Work,
        limits: Limits,
        groups: Sequence[Sequence[int]] = (),
        *,
        size: int,
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
