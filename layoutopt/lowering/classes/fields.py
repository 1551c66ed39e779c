"""Layouts of all rooms of a part at once, and boxes that span as many of them as possible.

A *field* is the grid of a part's rooms, one axis for each slot.  For every room it says where
its first element lies and how that place moves along each slot.  Where neighbouring rooms continue
each other, they are one box.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.base.numbers import unique
from layoutopt.boxes.box import Box
from layoutopt.lowering.classes.reduced import Reduced
from layoutopt.network.problem import IntArray

OPEN = -1
"""The origin of a room that has no formula of its own."""

NAMED = -2
"""The origin of a room that lies at one mapped location, whose number is where it starts."""


@dataclass(frozen=True, eq=False)
class BoxGrid:
    """Positions of the rooms of a part.

    Parameters
    ----------
    to
        For each axis what the first value of each of its runs adds to the flat element.
    unit
        For each axis what one step within a run adds.
    length
        For each axis the lengths of its runs.
    origin
        One entry per room: the part whose locations it takes, :data:`NAMED`, or :data:`OPEN`.
    start
        One entry per room: the flat element of that part where its first element lies.
    steps
        For each axis, one entry per room: what one step within a run adds to that.
    """

    to: tuple[IntArray, ...]
    unit: tuple[int, ...]
    length: tuple[IntArray, ...]
    origin: IntArray
    start: IntArray
    steps: tuple[IntArray, ...]


@dataclass(frozen=True, eq=False)
class _Spans:
    """Boxes of rooms: ranges of indices along each axis, one column per box.

    Parameters
    ----------
    first, end
        For each axis the first index, and the one after the last.
    origin, start
        As in a field, for the first room.
    rate
        For each axis what one step within it adds; 0 where there is only one.
    """

    first: IntArray
    end: IntArray
    origin: IntArray
    start: IntArray
    rate: IntArray

    def __getitem__(self, which: IntArray) -> _Spans:
        return _Spans(
            self.first[:, which],
            self.end[:, which],
            self.origin[which],
            self.start[which],
            self.rate[:, which],
        )


def spanned(field: BoxGrid) -> Iterator[Box | tuple[int, ...]]:
    """Yield boxes that hold all rooms but the open ones, and the index of each open room."""
    for index in np.argwhere(field.origin == OPEN).tolist():
        yield tuple(index)
    rooms = np.nonzero(field.origin != OPEN)
    first = np.array(rooms, np.int64).reshape(len(rooms), -1)
    long = [length[i] > 1 for length, i in zip(field.length, rooms, strict=True)]
    rates = [np.where(m, r[rooms], 0) for m, r in zip(long, field.steps, strict=True)]
    rate = np.array(rates, np.int64).reshape(first.shape)
    origin, start = field.origin[rooms].reshape(-1), field.start[rooms].reshape(-1)
    spans, count = _Spans(first, first + 1, origin, start, rate), -1
    while len(spans.origin) != count:
        count = len(spans.origin)
        for axis in range(len(rooms) - 1, -1, -1):
            spans = _joined_along(field, spans, axis)
    for n in range(len(spans.origin)):
        yield _box(field, spans, n)


def _joined_along(field: BoxGrid, spans: _Spans, axis: int) -> _Spans:
    """Join boxes that continue each other along one axis, as many in a row as there are."""
    same = [row for a in range(len(spans.first)) if a != axis for row in _sides(spans, a)]
    order = np.lexsort([spans.first[axis], spans.origin, *same])
    spans = spans[order]
    if len(order) < 2:
        return spans
    before = np.r_[0, np.cumsum(field.length[axis])]
    steps = before[spans.end[axis]] - before[spans.first[axis]]
    follows = (spans.origin[1:] == spans.origin[:-1]) & _close(field, spans, axis)
    for row in same:
        follows &= row[order][1:] == row[order][:-1]
    ahead, rate = np.diff(spans.start), spans.rate[axis]
    each = ahead // steps[:-1]
    follows &= ahead == each * steps[:-1]
    follows &= (steps[:-1] == 1) | (rate[:-1] == each)
    follows &= (steps[1:] == 1) | (rate[1:] == each)
    follows[1:] &= ~(follows[:-1] & (each[1:] != each[:-1]))
    heads = np.r_[True, ~follows]
    tails = np.r_[~follows, True]
    found = spans[np.flatnonzero(heads)]
    many = np.flatnonzero(heads[:-1] & follows)
    found.end[axis] = spans.end[axis][tails]
    found.rate[axis][(np.cumsum(heads) - 1)[many]] = each[many]
    return found


def _sides(spans: _Spans, axis: int) -> tuple[IntArray, IntArray, IntArray]:
    return spans.first[axis], spans.end[axis], spans.rate[axis]


def _close(field: BoxGrid, spans: _Spans, axis: int) -> IntArray:
    """Return whether each box ends, along an axis, where the next one begins."""
    to, last = field.to[axis], spans.end[axis][:-1] - 1
    after = to[last] + field.unit[axis] * field.length[axis][last]
    found: IntArray = (to[spans.first[axis][1:]] == after) & (spans.first[axis][1:] == last + 1)
    return found


def _box(field: BoxGrid, spans: _Spans, n: int) -> Box:
    """Return a box as loops."""
    to, loops = 0, []
    ranges = zip(spans.first[:, n].tolist(), spans.end[:, n].tolist(), strict=True)
    for a, (i, j) in enumerate(ranges):
        to += int(field.to[a][i])
        extent = int(field.length[a][i:j].sum())
        if extent > 1:
            loops.append((extent, int(spans.rate[a, n]), field.unit[a]))
    return Box(int(spans.origin[n]), int(spans.start[n]), to, tuple(loops) or ((1, 1, 1),))


def field_of(
    reduced: Reduced,
    models: Mapping[tuple[int, int], tuple[int, int]],
    part: int,
    choices: Sequence[IntArray],
    where: IntArray,
) -> BoxGrid:
    """Return where all rooms of a free part lie.

    Rooms are open where two of their slots have positions of one type, so that the answer may
    depend on these.

    Parameters
    ----------
    models
        Strand and position of each representative, by type and number.
    choices
        For each slot of the part the runs that it goes through, ascending.
    where
        For each free cell the number of a location, or of the free cell that owns the fresh
        location that it takes.
    """
    cells = reduced.cells
    orbits = cells.orbits
    runs, slots = orbits.runs, orbits.slotted.slots
    own = orbits.slotted.of[part]
    types = [orbits.type[runs.strand[choice]] for choice in choices]
    first = [np.array([models[t, 0] for t in of.tolist()]).reshape(-1, 2).T for of in types]
    index = [
        cells.base[orbits.twin(strand, orbits.colour[choice])] + place
        for (strand, place), choice in zip(first, choices, strict=True)
    ]
    number = where[reduced.tensors[part][np.ix_(*index)]]
    field = BoxGrid(
        tuple(slots[s].flats(runs.start[c]) for s, c in zip(own, choices, strict=True)),
        tuple(slots[s].unit for s in own),
        tuple(runs.length[choice] for choice in choices),
        np.full(number.shape, OPEN),
        np.zeros(number.shape, np.int64),
        tuple(np.zeros(number.shape, np.int64) for _ in own),
    )
    starts = reduced.edges.numbers.starts
    named = number >= starts[-1]
    field.origin[named] = NAMED
    field.start[named] = number[named] - starts[-1]
    root = np.searchsorted(starts, number, side="right") - 1
    field.origin[_ambiguous(types)] = OPEN
    root[_ambiguous(types)] = len(reduced.roots)
    for r in unique(root).tolist():
        if r < len(reduced.roots):
            here = np.nonzero(root == r)
            _follow(
                reduced, field, reduced.roots[r], choices, first, here, number[here] - starts[r]
            )
    return field


def _ambiguous(types: Sequence[IntArray]) -> IntArray:
    """Return which rooms have positions of one type in two slots."""
    found = np.zeros([len(of) for of in types], bool)
    grids = np.ix_(*types)
    for a, one in enumerate(grids):
        for other in grids[a + 1 :]:
            found |= one == other
    return found


def _follow(
    reduced: Reduced,
    field: BoxGrid,
    origin: int,
    choices: Sequence[IntArray],
    first: Sequence[IntArray],
    here: tuple[IntArray, ...],
    cell: IntArray,
) -> None:
    """Fill in the rooms that follow one part.

    Parameters
    ----------
    first
        For each axis strand and position of the representative of each of its runs.
    here, cell
        The rooms, and the flat cell of ``origin`` that each one's representative lies at.
    """
    cells = reduced.cells
    orbits = cells.orbits
    runs, slots = orbits.runs, orbits.slotted.slots
    field.origin[here] = origin
    targets = orbits.slotted.of[origin]
    for s, i in zip(targets, np.unravel_index(cell, cells.shape(origin)), strict=True):
        run, place = cells.run[s][i], cells.place[s][i]
        down = runs.reversed[run]
        value = runs.start[run] + np.where(down, runs.length[run] - 1 - place, place)
        for a, choice in enumerate(choices):
            strand, at = first[a][:, here[a]]
            same = np.flatnonzero((runs.strand[run] == strand) & (place == at))
            mine = choice[here[a][same]]
            twin = orbits.twin(runs.strand[mine], orbits.colour[run[same]])
            turned = runs.reversed[mine] != runs.reversed[twin]
            value[same] = runs.start[twin] + np.where(turned, runs.length[twin] - 1, 0)
            step = np.where(turned, -slots[s].unit, slots[s].unit)
            field.steps[a][tuple(x[same] for x in here)] += step
        field.start[here] += slots[s].flats(value)
