"""Counts of configurations carried out on units, each of which takes one configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.capacity.answer import Placement
from layoutopt.capacity.problem import CapacityProblem
from layoutopt.errors import InternalError
from layoutopt.problem import IntArray


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a kind of group.

    Parameters
    ----------
    of
        The class of each unit of a group.
    copies
        How many copies each one stands for.
    groups
        How many groups of this kind there are, with as many units each.
    """

    of: IntArray
    copies: IntArray
    groups: int


@dataclass(frozen=True, eq=False)
class Chosen:
    """What units take.

    Parameters
    ----------
    starts
        For each unit where its labels begin in ``labels``.
    labels
        Tiles of the nodes of configurations, each in the order of its class's nodes.
    """

    starts: IntArray
    labels: IntArray


def share_out(
    problem: CapacityProblem, placement: Placement, kinds: Sequence[Units]
) -> tuple[list[list[Chosen]], IntArray] | None:
    """Give every unit a configuration, so that counts are kept as well as units permit.

    Parameters
    ----------
    problem, placement
        The capacity problem, and how many copies of which class take which labels.
    kinds
        The units; classes that no unit is of are left out.

    Returns
    -------
    chosen, room
        For each kind and group what its units take, and the bytes left on each tile; ``None``
        if some unit fits nowhere.
    """
    return _Sharing(problem, placement, kinds).run()


class _Sharing:
    """The state of one call of :func:`share_out`: all units of all groups, one after another."""

    def __init__(
        self, problem: CapacityProblem, placement: Placement, kinds: Sequence[Units]
    ) -> None:
        self.problem, self.placement, self.kinds = problem, placement, kinds
        none = [np.zeros(0, np.int64)]
        self.of = np.concatenate(none + [np.tile(k.of, k.groups) for k in kinds])
        self.copies = np.concatenate(none + [np.tile(k.copies, k.groups) for k in kinds])
        self.first = np.searchsorted(placement.classes, self.of)
        self.last = np.searchsorted(placement.classes, self.of, side="right")
        if (self.first == self.last).any():
            raise InternalError("a class of units has no configuration")
        self.starts = placement.starts[self.first]
        self.labels = [placement.labels]
        self.end = len(placement.labels)
        self.order = np.argsort(problem.class_of, kind="stable")
        self.begin = np.searchsorted(
            problem.class_of[self.order], np.arange(len(problem.copies) + 1)
        )
        self.room = problem.capacity.copy()

    def run(self) -> tuple[list[list[Chosen]], IntArray] | None:
        """Share out, put what is left where there is room, and split by group."""
        left = self._shared()
        sure = np.ones(len(self.of), bool)
        sure[left] = False
        self._take(np.flatnonzero(sure))
        if (self.room < 0).any():
            raise InternalError("units take more than what they stand for")
        for unit in left[np.argsort(-self.copies[left], kind="stable")].tolist():
            if not self._fitted(unit):
                return None
        labels = np.concatenate(self.labels)
        found, at = [], 0
        for kind in self.kinds:
            own = []
            for _ in range(kind.groups):
                own.append(Chosen(self.starts[at : at + len(kind.of)], labels))
                at += len(kind.of)
            found.append(own)
        return found, self.room

    def _shared(self) -> IntArray:
        """Give units of classes with several configurations one each; return those left over."""
        several = np.flatnonzero(self.last - self.first > 1)
        several = several[np.lexsort([-self.copies[several], self.of[several]])]
        heads = np.flatnonzero(np.r_[True, np.diff(self.of[several]) != 0][: len(several)])
        left: list[IntArray] = [np.zeros(0, np.int64)]
        for units in np.split(several, heads[1:]):
            if len(units):
                left.append(self._of_class(units))
        return np.concatenate(left)

    def _of_class(self, units: IntArray) -> IntArray:
        """Share the units of one class, large ones first, and return those left over."""
        first, last = int(self.first[units[0]]), int(self.last[units[0]])
        counts = self.placement.counts[first:last].copy()
        for k in np.argsort(-counts, kind="stable").tolist():
            before = np.cumsum(self.copies[units])
            fits = before <= counts[k]
            if not fits.all():  # smaller ones may still fit beside them
                total = 0
                for n, size in enumerate(self.copies[units].tolist()):
                    fits[n] = total + size <= counts[k]
                    total += size if fits[n] else 0
            self.starts[units[fits]] = self.placement.starts[first + k]
            units = units[~fits]
            if not len(units):
                break
        return units

    def _take(self, units: IntArray) -> None:
        """Subtract what units take from the room."""
        problem = self.problem
        size = np.diff(self.begin)[self.of[units]]
        step = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        node = self.order[np.repeat(self.begin[self.of[units]], size) + step]
        label = np.concatenate(self.labels)[np.repeat(self.starts[units], size) + step]
        np.subtract.at(self.room, label, problem.bytes[node] * np.repeat(self.copies[units], size))

    def _fitted(self, unit: int) -> bool:
        """Give a unit the best of its class's configurations that fits, or any tiles with room."""
        own = self.order[self.begin[self.of[unit]] : self.begin[self.of[unit] + 1]]
        need = self.problem.bytes[own] * self.copies[unit]
        options = [
            self.placement.labels[self.placement.starts[k] : self.placement.starts[k + 1]]
            for k in range(int(self.first[unit]), int(self.last[unit]))
        ]
        options.append(np.full(len(own), int(np.argmax(self.room))))
        best = None
        for labels in options:
            if (np.bincount(labels, need, len(self.room)) <= self.room).all():
                best = labels
                break
        if best is None:
            best = self._apart(need)
            if best is None:
                return False
        np.subtract.at(self.room, best, need)
        self.starts[unit] = self.end
        self.labels.append(best)
        self.end += len(best)
        return True

    def _apart(self, need: IntArray) -> IntArray | None:
        """Return tiles for nodes one by one, the largest first; ``None`` if one fits nowhere."""
        room, labels = self.room.copy(), np.zeros(len(need), np.int64)
        for n in np.argsort(-need, kind="stable").tolist():
            labels[n] = int(np.argmax(room))
            room[labels[n]] -= need[n]
            if room[labels[n]] < 0:
                return None
        return labels
