"""Boxes: an array of origins written as few strided loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.result import Loop
from layoutopt.network.problem import IntArray


@dataclass(frozen=True)
class OriginBox:
    """Element ``to + sum(i * to_stride)`` comes from element ``start + sum(i * from_stride)``.

    Parameters
    ----------
    origin
        The tensor that elements come from, by number.
    start, to
        First flat element there, and here.
    loops
        ``(extent, from_stride, to_stride)``, outermost first.
    """

    origin: int
    start: int
    to: int
    loops: tuple[Loop, ...]


@dataclass(eq=False)
class _Items:
    """Boxes of one depth, as columns: loops have shape ``(items, depth, 3)``."""

    origin: IntArray
    start: IntArray
    to: IntArray
    loops: IntArray


def boxes(origin: IntArray, start: IntArray) -> list[OriginBox]:
    """Write an array of origins as boxes that cover each position once.

    Positions that follow each other with constant strides become a loop; equal loops that
    follow each other with constant strides become a loop of loops; and so on while that
    makes fewer boxes.

    Parameters
    ----------
    origin, start
        For each flat position the tensor that it comes from, and the flat element there.
    """
    to = np.arange(len(origin), dtype=start.dtype)
    if (origin[1:] < origin[:-1]).any():
        to = np.argsort(origin, kind="stable")
        origin, start = origin[to], start[to]
    items = _Items(origin, start, to, np.zeros((len(to), 0, 3), np.int64))
    return sorted(_folded(items), key=lambda box: box.to)


def fold(boxes: Sequence[OriginBox]) -> list[OriginBox]:
    """Write boxes of one depth that follow each other with constant strides as fewer, deeper ones.

    Parameters
    ----------
    boxes
        Boxes with equally many loops.
    """
    origin, start, to = np.array([(b.origin, b.start, b.to) for b in boxes], np.int64).T
    loops = np.array([box.loops for box in boxes], np.int64).reshape(len(boxes), -1, 3)
    order = np.lexsort((to, *loops.reshape(len(boxes), -1).T, origin))
    return _folded(_Items(origin[order], start[order], to[order], loops[order]))


def _folded(items: _Items) -> list[OriginBox]:
    while len(items.to) > 1:
        joined = _joined(items)
        if len(joined.to) == len(items.to):
            break
        items = joined
    return [
        OriginBox(int(o), int(s), int(t), _plain(loops))
        for o, s, t, loops in zip(
            items.origin, items.start, items.to, items.loops.tolist(), strict=True
        )
    ]


def _plain(loops: list[list[int]]) -> tuple[Loop, ...]:
    kept = tuple((n, f, t) for n, f, t in loops if n > 1)
    return kept or ((1, 1, 1),)


def _joined(items: _Items) -> _Items:
    """Join runs of neighbouring boxes into one box with one more loop each."""
    first, length = _runs(items)
    many = length > 1
    after = np.where(many, first + 1, first)
    outer = np.stack(
        [
            length,
            items.start[after] - items.start[first],
            items.to[after] - items.to[first],
        ],
        axis=1,
    )
    loops = np.concatenate([outer[:, None, :], items.loops[first]], axis=1)
    return _Items(items.origin[first], items.start[first], items.to[first], loops)


def _runs(items: _Items) -> tuple[IntArray, IntArray]:
    """Return first member and length of runs with one origin, equal loops and equal steps.

    Taken greedily from the left.  A *link* joins two neighbours; equal links next to each
    other form a *block*, which becomes a run.  Where one run ends, the link to the next box
    is lost.  So a block of one link is lost exactly if a run ends at its left.
    """
    fits = items.origin[1:] == items.origin[:-1]
    fits &= (items.loops[1:] == items.loops[:-1]).all(axis=(1, 2))
    turn = ~fits[1:] | ~fits[:-1]
    for place in (items.start, items.to):
        step = np.diff(place)
        turn |= step[1:] != step[:-1]
    opens = np.flatnonzero(np.r_[True, turn])
    links = np.diff(np.r_[opens, len(fits)])
    makes = _makes_run(links, fits[opens])
    late = np.r_[False, makes[:-1]] & makes  # the run before took the first link's left end
    first = opens[makes] + late[makes]
    length = links[makes] + 1 - late[makes]
    edge = np.zeros(len(items.to) + 1, np.int8)
    edge[first] += 1
    edge[first + length] -= 1
    alone = np.flatnonzero(np.cumsum(edge[:-1], dtype=np.int8) == 0)
    firsts = np.concatenate([first, alone])
    order = np.argsort(firsts)
    return firsts[order], np.concatenate([length, np.ones(len(alone), np.int64)])[order]


def _makes_run(links: IntArray, fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks become runs: long ones do, every other one of short ones does."""
    sure = fits & (links > 1)
    settled = sure | ~fits
    number = np.arange(len(links))
    last = np.maximum.accumulate(np.where(settled, number, -1))
    odd = (number - last) % 2 == 1
    after_run = np.where(last >= 0, sure[last], False)
    return np.asarray(sure | (~settled & (odd != after_run)))
