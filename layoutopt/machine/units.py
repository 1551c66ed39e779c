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


@dataclass(frozen=True, eq=False)
class Shares:
    """What all units take.

    Parameters
    ----------
    chosen
        For each kind and group what its units take.
    room
        The bytes left on each tile.
    exact
        Whether all counts are kept.
    """

    chosen: list[list[Chosen]]
    room: IntArray
    exact: bool


def share_out(
    problem: CapacityProblem, placement: Placement, kinds: Sequence[Units]
) -> Shares | None:
    """Give every unit a configuration, so that counts are kept as well as units permit.

    Parameters
    ----------
    problem, placement
        The capacity problem, and how many copies of which class take which labels.
    kinds
        The units; classes that no unit is of are left out.

    Returns
    -------
    Shares or None
        ``None`` if some unit fits nowhere.
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
        ends = np.searchsorted(placement.classes, np.arange(len(problem.copies) + 1))
        self.first, self.last = ends[self.of], ends[self.of + 1]
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

    def run(self) -> Shares | None:
        """Share out, put what is left where there is room, and split by group."""
        left = self._shared()
        sure = np.ones(len(self.of), bool)
        sure[left] = False
        self._take(np.flatnonzero(sure))
        if (self.room < 0).any():
            raise InternalError("units take more than what they stand for")
        room = self.room.tolist()
        for unit in left[np.argsort(-self.copies[left], kind="stable")].tolist():
            if not self._fitted(unit, room):
                return None
        self.room = np.array(room, np.int64)
        labels = np.concatenate(self.labels)
        found, at = [], 0
        for kind in self.kinds:
            own = []
            for _ in range(kind.groups):
                own.append(Chosen(self.starts[at : at + len(kind.of)], labels))
                at += len(kind.of)
            found.append(own)
        return Shares(found, self.room, exact=not len(left))

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
        """Subtract what units that have one of their class's configurations take."""
        placement = self.placement
        taken = np.zeros(len(placement.labels) + 1, np.int64)  # by where a configuration begins
        np.add.at(taken, self.starts[units], self.copies[units])
        each = np.repeat(taken[placement.starts[:-1]], np.diff(placement.starts))
        np.subtract.at(self.room, placement.labels, self.problem.bytes[placement.nodes] * each)

    def _fitted(self, unit: int, room: list[int]) -> bool:
        """Give a unit the first of its class's configurations that fits, or any tiles with room.

        Parameters
        ----------
        room
            The bytes left on each tile, which shrink.
        """
        begin, end = self.begin[self.of[unit] : self.of[unit] + 2].tolist()
        own, copies = self.order[begin:end], int(self.copies[unit])
        need = [width * copies for width in self.problem.bytes[own].tolist()]
        for k in range(int(self.first[unit]), int(self.last[unit])):
            first = int(self.placement.starts[k])
            if _taken(self.placement.labels[first : first + len(need)].tolist(), need, room):
                self.starts[unit] = first
                return True
        best = max(range(len(room)), key=room.__getitem__)
        labels = [best] * len(need)
        if not _taken(labels, need, room):
            labels = _apart(need, room)
            if not labels or not _taken(labels, need, room):
                return False
        self.starts[unit] = self.end
        self.labels.append(np.array(labels, np.int64))
        self.end += len(labels)
        return True


def _taken(labels: list[int], need: list[int], room: list[int]) -> bool:
    """Take room on tiles, if there is enough on all of them."""
    for n, label in enumerate(labels):
        room[label] -= need[n]
        if room[label] < 0:
            for m in range(n + 1):
                room[labels[m]] += need[m]
            return False
    return True


def _apart(need: list[int], room: list[int]) -> list[int]:
    """Return tiles for nodes one by one, the largest first; nothing if one fits nowhere."""
    left, labels = list(room), [0] * len(need)
    for n in sorted(range(len(need)), key=lambda n: -need[n]):
        labels[n] = max(range(len(left)), key=left.__getitem__)
        left[labels[n]] -= need[n]
        if left[labels[n]] < 0:
            return []
    return labels
