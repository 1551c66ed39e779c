"""Layouts of whole sinks from the labels of representative cells, as boxes.

The runs of a root's slots cut it into *blocks*.  All elements of a block have orbits of the same
types; which representative cell stands for one of them depends only on which of its positions
are equal and in which order they come.  Mostly the answer is the same straight formula for the
whole block, and the block becomes one box; otherwise it is cut along its diagonal.  Neighbouring
blocks that continue each other become one box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import NamedTuple, TypeAlias

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.numbers import unique
from layoutopt.boxes.box import Box
from layoutopt.boxes.merge import folded
from layoutopt.lowering.classes.families import NOTHING
from layoutopt.lowering.classes.reduced import Reduced
from layoutopt.lowering.classes.runs import Runs
from layoutopt.network.problem import IntArray

Interval: TypeAlias = tuple[int, int, int]
"""A run, and positions ``first .. end - 1`` of it."""


@dataclass(frozen=True)
class RunBlock:
    """Elements of a part whose slots run through intervals."""

    slots: tuple[Interval, ...]  # an interval for each slot of the part
    # `(count, step, one, two)`: slots `one` and `two` move together, `count` times by `step`
    # positions
    joints: tuple[tuple[int, int, int, int], ...] = ()

    def moved(self, intervals: dict[int, Interval], *joints: tuple[int, int, int, int]) -> RunBlock:
        """Return a block with other intervals of some slots, and more joints."""
        slots = tuple(intervals.get(a, own) for a, own in enumerate(self.slots))
        return RunBlock(slots, (*self.joints, *(joint for joint in joints if joint[0] > 1)))


def untangled(runs: Runs, block: RunBlock) -> Iterator[RunBlock]:
    """Cut a block where two of its slots run through the same positions of a strand."""
    a, b = next(_tangled(runs, block))
    (one, low, high), (two, start, end) = block.slots[a], block.slots[b]
    if (low, high) != (start, end) or len(list(_tangled(runs, block, a, b))) > 1:
        yield from _enumerated(block, a, b)
        return
    yield block.moved({a: (one, low, low + 1), b: (two, low, low + 1)}, (high - low, 1, a, b))
    for first, half, rest, count in halves(high - low):
        near, far = low + first, low + first + half
        joint = count, 2 * half, a, b
        yield block.moved({a: (one, near, far), b: (two, far, far + rest)}, joint)
        yield block.moved({a: (one, far, far + rest), b: (two, near, far)}, joint)


def _enumerated(block: RunBlock, a: int, b: int) -> Iterator[RunBlock]:
    """Cut a block into single positions of one slot, and intervals of another around them."""
    (one, low, high), (two, start, end) = block.slots[a], block.slots[b]
    for place in range(low, high):
        for left, right in ((start, place), (place, place + 1), (place + 1, end)):
            left, right = max(left, start), min(right, end)
            if left < right:
                yield block.moved({a: (one, place, place + 1), b: (two, left, right)})


def _tangled(runs: Runs, block: RunBlock, *of: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of slots whose positions on one strand overlap, and are not one only.

    One of the slots is of those given, if any are.
    """
    strand = runs.strand
    for a, (one, low, high) in enumerate(block.slots):
        for b in range(a + 1, len(block.slots)):
            other, start, end = block.slots[b]
            overlap = strand[one] == strand[other] and max(low, start) < min(high, end)
            wanted = not of or a in of or b in of
            if wanted and overlap and max(high - low, end - start) > 1:
                yield a, b


def halves(length: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield blocks that hold every two different positions once, in different halves.

    In ``(first, half, rest, count)``, ``count`` blocks begin at ``first``, at distances of ``2 *
    half``: the lower half of each has ``half`` positions, the upper one ``rest``.  Two positions
    are in the two halves of a block of the highest binary digit in which they differ.
    """
    half = 1
    while half < length:
        full, rest = divmod(length, 2 * half)
        if full:
            yield 0, half, half, full
        if rest > half:
            yield full * 2 * half, half, rest - half, 1
        half *= 2


def orders(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return positions in given intervals, one tuple for each order in which they can stand.

    Between two ends of intervals as many positions as there are slots are enough.  Tuples with
    most different positions come first.
    """
    ends = sorted({end for interval in intervals for end in interval})
    points = [
        p for low, high in pairwise(ends) for p in range(low, min(high, low + len(intervals)))
    ]
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for chosen in product(*([p for p in points if low <= p < high] for low, high in intervals)):
        rank = {p: r for r, p in enumerate(sorted(set(chosen)))}
        found.setdefault(tuple(rank[p] for p in chosen), chosen)
    return sorted(found.values(), key=lambda chosen: -len(set(chosen)))


BOXES_LIMIT = 10**6

Follow: TypeAlias = tuple[int, int]
"""Which of a block's slots a slot of the origin follows, and on which run; ``(-1, value)`` where
it stays at one value."""

Formula: TypeAlias = tuple[int, tuple[Follow, ...]]
"""The root part that a block's locations are of, and how its slots follow the block's; for
:data:`~layoutopt.lowering.classes.expand.NAMED` the number of a mapped location instead."""


class Expansion:
    """The way from labels of cells to boxes of sinks.

    ``firsts`` has for each mapped location, by number, a tensor and a flat element of it.
    """

    def __init__(self, reduced: Reduced, firsts: IntArray) -> None:
        self.reduced, self.firsts = reduced, firsts
        self.orbits = reduced.cells.orbits
        self.slotted = self.orbits.slotted
        self.runs = self.orbits.runs
        self.models: dict[tuple[int, int], tuple[int, int]] = {}
        for strand in np.flatnonzero(self.orbits.count).tolist():
            type_ = int(self.orbits.type[strand])
            for place in range(int(self.orbits.count[strand])):
                self.models[type_, int(self.orbits.first[strand]) + place] = strand, place

    @cached_property
    def twin(self) -> dict[tuple[int, int], int]:
        """The run of each strand and colour."""
        keys = zip(self.runs.strand.tolist(), self.orbits.colour.tolist(), strict=True)
        return {key: run for run, key in enumerate(keys)}

    def boxes(self, where: IntArray) -> dict[int, list[Box]]:
        """Return the boxes of each free tensor; their origins are tensors as well.

        ``where`` has for each free cell the number of a location, or of the free cell that owns the
        fresh location that it takes.
        """
        parts = self.slotted.system.parts
        found: dict[int, list[Box]] = defaultdict(list)
        for f, family in enumerate(self.slotted.system.families):
            if family.inp == NOTHING and parts[family.out].free:
                to = found[parts[family.out].tensor]
                choices = self._choices(f)
                for box in spanned(field_of(self.reduced, self.models, family.out, choices, where)):
                    if isinstance(box, Box):
                        to.append(self._named(box, family.out))
                    else:
                        runs = [int(choice[i]) for choice, i in zip(choices, box, strict=True)]
                        block = RunBlock(
                            tuple((run, 0, int(self.runs.length[run])) for run in runs)
                        )
                        to += self._filled(family.out, block, where)
                    if len(to) > BOXES_LIMIT:
                        raise SizeError(f"the layouts need more than {BOXES_LIMIT:,} pieces")
        return {t: folded(boxes) for t, boxes in found.items()}

    def _choices(self, f: int) -> list[IntArray]:
        """Return for each slot of a family of root elements the runs that it goes through."""
        found = {s: np.array([run]) for s, run in self.orbits.still[f][0].items()}
        for block, join in zip(self.slotted.blocks[f], self.orbits.joins[f], strict=True):
            found[block.out] = np.sort(join.out)
        return [found[s] for s in self.slotted.of[self.slotted.system.families[f].out]]

    def _named(self, box: Box, part: int) -> Box:
        """Return a box of a part, its origin one too, in terms of tensors."""
        parts = self.slotted.system.parts
        to = box.to + parts[part].start
        if box.label == NAMED:
            tensor, element = self.firsts[box.start].tolist()
            return Box(tensor, element, to, box.loops)
        return Box(parts[box.label].tensor, box.start + parts[box.label].start, to, box.loops)

    def _filled(self, part: int, block: RunBlock, where: IntArray) -> Iterator[Box]:
        """Yield boxes for a block, cut until one formula fits all of a box."""
        formula = self._formula(part, block, where)
        if formula is not None:
            yield self._box(part, block, formula)
            return
        for smaller in untangled(self.runs, block):
            yield from self._filled(part, smaller, where)

    def _formula(self, part: int, block: RunBlock, where: IntArray) -> Formula | None:
        """Return the formula that all elements of a block share; ``None`` if there is none."""
        cases = list(self._cases(block))
        found = self._of_case(part, block, cases[0], where)
        for case in cases[1:]:
            other = self._of_case(part, block, case, where)
            if other[0] != found[0]:
                return None
            for one, two in zip(found[1], other[1], strict=True):
                if one != two and not (
                    min(one[0], two[0]) >= 0 and one[1] == two[1] and case[one[0]] == case[two[0]]
                ):
                    return None
        return found

    def _cases(self, block: RunBlock) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield an orbit for each slot, for every order that the block's positions can have.

        An orbit is a strand and a position; positions are made up where only their order
        matters.  The first case has as many different ones as there can be.
        """
        strands = self.runs.strand
        groups: dict[int, list[int]] = defaultdict(list)
        for a, (run, _, _) in enumerate(block.slots):
            groups[int(strands[run])].append(a)
        options = []
        for strand, slots in groups.items():
            intervals = [block.slots[a][1:] for a in slots]
            options.append(
                [
                    dict(zip(slots, ((strand, p) for p in chosen), strict=True))
                    for chosen in orders(intervals)
                ]
            )
        for chosen in product(*options):
            orbits = {a: orbit for one in chosen for a, orbit in one.items()}
            yield tuple(orbits[a] for a in range(len(block.slots)))

    def _of_case(
        self, part: int, block: RunBlock, case: Sequence[tuple[int, int]], where: IntArray
    ) -> Formula:
        """Return the formula of one case."""
        model: dict[tuple[int, int], tuple[int, int]] = {}
        back: dict[tuple[int, int], int] = {}
        seen: dict[int, int] = defaultdict(int)
        for strand, place in sorted(set(case)):
            type_ = int(self.orbits.type[strand])
            model[strand, place] = self.models[type_, seen[type_]]
            back[self.models[type_, seen[type_]]] = case.index((strand, place))
            seen[type_] += 1
        cells = self.reduced.cells
        index = []
        for (run, _, _), orbit in zip(block.slots, case, strict=True):
            strand, place = model[orbit]
            index.append(int(cells.base[self.twin[strand, int(self.orbits.colour[run])]]) + place)
        cell = int(self.reduced.tensors[part][tuple(index)])
        return self._decoded(int(where[cell]), back, block)

    def _decoded(self, number: int, back: dict[tuple[int, int], int], block: RunBlock) -> Formula:
        """Return the formula of a location, given whose place each representative takes."""
        numbers, cells = self.reduced.numbers, self.reduced.cells
        pooled = number - int(numbers.starts[-1])
        if pooled >= 0:
            return NAMED, ((-1, pooled),)
        root = int(np.searchsorted(numbers.starts, number, side="right")) - 1
        part = self.reduced.roots[root]
        index = np.unravel_index(number - int(numbers.starts[root]), cells.shape(part))
        follows: list[Follow] = []
        for s, i in zip(self.slotted.of[part], index, strict=True):
            run, place = int(cells.run[s][i]), int(cells.place[s][i])
            a = back.get((int(self.runs.strand[run]), place))
            if a is None:
                follows.append((-1, self._value(run, place)))
            else:
                strand = int(self.runs.strand[block.slots[a][0]])
                follows.append((a, self.twin[strand, int(self.orbits.colour[run])]))
        return part, tuple(follows)

    def _value(self, run: int, place: int) -> int:
        """Return the slot value at a position of a run."""
        if self.runs.reversed[run]:
            place = int(self.runs.length[run]) - 1 - place
        return int(self.runs.start[run]) + place

    def _box(self, part: int, block: RunBlock, formula: Formula) -> Box:
        """Write a block down as loops."""
        parts, slots = self.slotted.system.parts, self.slotted.slots
        to, strides = parts[part].start, []
        for s, (run, low, _) in zip(self.slotted.of[part], block.slots, strict=True):
            to += slots[s].flat(self._value(run, low))
            strides.append(self._step(s, run))
        origin, follows = formula
        steps = [0] * len(block.slots)
        if origin == NAMED:
            tensor, start = self.firsts[follows[0][1]].tolist()
            own: tuple[int, ...] = ()
        else:
            tensor, start = parts[origin].tensor, parts[origin].start
            own = self.slotted.of[origin]
        for s, (a, what) in zip(own, follows, strict=False):
            if a < 0:
                start += slots[s].flat(what)
            else:
                start += slots[s].flat(self._value(what, block.slots[a][1]))
                steps[a] += self._step(s, what)
        loops = [
            (high - low, step, stride)
            for (_, low, high), step, stride in zip(block.slots, steps, strides, strict=True)
            if high - low > 1
        ]
        loops += [
            (count, move * (steps[a] + steps[b]), move * (strides[a] + strides[b]))
            for count, move, a, b in block.joints
        ]
        return Box(tensor, start, to, tuple(loops) or ((1, 1, 1),))

    def _step(self, slot: int, run: int) -> int:
        """Return what one position of a run means in flat elements."""
        unit = self.slotted.slots[slot].unit
        return -unit if self.runs.reversed[run] else unit


OPEN = -1  # the origin of a block that has no formula of its own

NAMED = -2
"""The origin of a block that lies at one mapped location, whose number is where it starts."""


@dataclass(frozen=True, eq=False)
class BoxGrid:
    """Positions of the blocks of a part."""

    # for each axis what the first value of each of its runs adds to the flat element
    to: tuple[IntArray, ...]
    unit: tuple[int, ...]  # for each axis what one step within a run adds
    length: tuple[IntArray, ...]  # for each axis the lengths of its runs
    origin: IntArray  # one entry per block: the part whose locations it takes, `NAMED`, or `OPEN`
    # one entry per block: the flat element of that part where its first element lies
    start: IntArray
    # for each axis, one entry per block: what one step within a run adds to that
    steps: tuple[IntArray, ...]


class _Spans(NamedTuple):
    """Boxes of blocks: ranges of indices along each axis, one column per box."""

    first: IntArray  # for each axis the first index
    end: IntArray  # the one after the last index
    origin: IntArray  # as in a grid, for the first block
    start: IntArray  # as in a grid, for the first block
    rate: IntArray  # for each axis what one step within it adds; 0 where there is only one

    def at(self, which: IntArray) -> _Spans:
        """Return some of the boxes."""
        return _Spans(*(part[..., which] for part in self))


def spanned(field: BoxGrid) -> Iterator[Box | tuple[int, ...]]:
    """Yield boxes that hold all blocks but the open ones, and the index of each open block."""
    for index in np.argwhere(field.origin == OPEN).tolist():
        yield tuple(index)
    blocks = np.nonzero(field.origin != OPEN)
    first = np.array(blocks, np.int64).reshape(len(blocks), -1)
    long = [length[i] > 1 for length, i in zip(field.length, blocks, strict=True)]
    rates = [np.where(m, r[blocks], 0) for m, r in zip(long, field.steps, strict=True)]
    rate = np.array(rates, np.int64).reshape(first.shape)
    origin, start = field.origin[blocks].reshape(-1), field.start[blocks].reshape(-1)
    spans, count = _Spans(first, first + 1, origin, start, rate), -1
    while len(spans.origin) != count:
        count = len(spans.origin)
        for axis in range(len(blocks) - 1, -1, -1):
            spans = _joined_along(field, spans, axis)
    for n in range(len(spans.origin)):
        yield _box(field, spans, n)


def _joined_along(field: BoxGrid, spans: _Spans, axis: int) -> _Spans:
    """Join boxes that continue each other along one axis, as many in a row as there are."""
    same = [row for a in range(len(spans.first)) if a != axis for row in _sides(spans, a)]
    order = np.lexsort([spans.first[axis], spans.origin, *same])
    spans = spans.at(order)
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
    found = spans.at(np.flatnonzero(heads))
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
    """Return where all blocks of a free part lie.

    Rooms are open where two of their slots have positions of one type, so that the answer may
    depend on these.  ``models`` are strand and position of each representative, by type and number;
    ``choices`` for each slot of the part the runs that it goes through, ascending; ``where`` is
    that of :meth:`Expansion.boxes`.
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
        tuple(slots[s].flat(runs.start[c]) for s, c in zip(own, choices, strict=True)),
        tuple(slots[s].unit for s in own),
        tuple(runs.length[choice] for choice in choices),
        np.full(number.shape, OPEN),
        np.zeros(number.shape, np.int64),
        tuple(np.zeros(number.shape, np.int64) for _ in own),
    )
    starts = reduced.numbers.starts
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
    """Return which blocks have positions of one type in two slots."""
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
    """Fill in the blocks, ``here``, that follow one part.

    ``first`` has for each axis strand and position of the representative of each of its runs;
    ``cell`` is the flat cell of ``origin`` that each block's representative lies at.
    """
    cells = reduced.cells
    orbits = cells.orbits
    runs, slots = orbits.runs, orbits.slotted.slots
    field.origin[here] = origin
    targets = orbits.slotted.of[origin]
    for s, i in zip(targets, np.unravel_index(cell, cells.shape(origin)), strict=True):
        run, place = cells.run[s][i], cells.place[s][i]
        value = runs.values(run, place)
        for a, choice in enumerate(choices):
            strand, at = first[a][:, here[a]]
            same = np.flatnonzero((runs.strand[run] == strand) & (place == at))
            mine = choice[here[a][same]]
            twin = orbits.twin(runs.strand[mine], orbits.colour[run[same]])
            turned = runs.reversed[mine] != runs.reversed[twin]
            value[same] = runs.start[twin] + np.where(turned, runs.length[twin] - 1, 0)
            step = np.where(turned, -slots[s].unit, slots[s].unit)
            field.steps[a][tuple(x[same] for x in here)] += step
        field.start[here] += slots[s].flat(value)
