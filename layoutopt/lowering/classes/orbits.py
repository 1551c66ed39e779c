"""Orbits: which positions of which strands can be exchanged, and a few that stand for all.

A position of a strand, with all slot values that belong to it, is a one-dimensional *orbit*.
Strands of one *type* are isomorphic as coloured graphs of runs; permuting their positions in
all slots of an axis alike maps every family onto itself.  If at most ``d`` slots of one part
lie on an axis, any element has at most ``d`` orbits of a type, so ``d`` representatives of each
type are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.numbers import distinct
from layoutopt.graphs.locations import mapping_of
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.families import NOTHING, TensorRun, cut_regions, system_of
from layoutopt.lowering.classes.runs import (
    Joins,
    Runs,
    Segments,
    Tie,
    check_count,
    cut_runs,
    marked_digits,
    marked_strides,
    marks_of,
    segments_of,
)
from layoutopt.lowering.classes.slots import Slotted, find_slots, settle_digits
from layoutopt.lowering.elements.groups import EdgeList, Edges, Group, Numbering
from layoutopt.lowering.elements.kinds import find_classes
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray
from layoutopt.tiles.blocks import TileMap

FEW_RUNS = 10**4  # so many runs are always classified
GAIN = 20  # more runs than these only if there are so many times as many elements


@dataclass(frozen=True, eq=False)
class Orbits:
    """The orbits of a slotted system, and their representatives."""

    slotted: Slotted  # the system
    runs: Runs  # the runs of its slots
    joins: tuple[tuple[Joins, ...], ...]  # for each family and block the runs that it relates
    # for each family and side `{slot: run}` where slots stay at one value
    still: tuple[tuple[dict[int, int], dict[int, int]], ...]
    type: IntArray  # the type of each strand
    copies: IntArray  # number of orbits of each type
    kept: IntArray  # number of its representatives
    first: IntArray  # number of each strand's first representative among those of its type
    count: IntArray  # how many representatives it gives, which are its first positions
    # for each slot whether its axis reaches a root. Where it does not, positions are copies of
    # edges, not of elements
    rooted: IntArray
    # a colour of each run: runs of one colour, of two strands of a type, are images of each other;
    # no two runs of a strand share one
    colour: IntArray

    def twin(self, strand: IntArray, colour: IntArray) -> IntArray:
        """Return the runs of some colours on some strands, all of which exist."""
        wide, order, keys = self._places
        found: IntArray = order[np.searchsorted(keys, strand * wide + colour)]
        return found

    @cached_property
    def _places(self) -> tuple[int, IntArray, IntArray]:
        """A factor, and all runs by strand times that factor plus colour."""
        wide = int(self.colour.max(initial=0)) + 1
        keys = self.runs.strand * wide + self.colour
        order = np.argsort(keys)
        return wide, order, keys[order]


def find_orbits(slotted: Slotted, codes: Sequence[TileMap | None]) -> Orbits:
    """Cut slots into runs, classify strands, and choose representatives.

    ``codes`` are for each part the names of its locations, if it has any: only locations of one
    name can be exchanged.  Raises ``SizeError`` if views are so irregular that too many values
    would have to be told apart.
    """
    blocks, where = _block_segments(slotted)
    axis = _axes(slotted)
    rooted = _rooted(slotted, axis)
    ties = _stars(slotted, blocks, where, rooted)
    constants, homes = _constants(slotted)
    named = [
        marks
        for part, own in enumerate(codes)
        for marks in (() if own is None else marks_of(own, slotted.slots, slotted.of[part]))
    ]
    runs, joins = cut_runs(slotted.slots, [*blocks, *constants, *named], ties)
    _check_gain(slotted, runs)
    told = np.zeros(len(runs.slot), bool)
    for s, values in ties:
        told[runs.at(s, values)] = True
    type_, colour = _types(runs, joins, ties, told)
    by_family: list[list[Joins]] = [[] for _ in slotted.blocks]
    for (f, _), join in zip(where, joins, strict=False):
        by_family[f].append(join)
    still: list[tuple[dict[int, int], dict[int, int]]] = [({}, {}) for _ in slotted.blocks]
    for (f, side, s), join in zip(homes, joins[len(blocks) :], strict=False):
        still[f][side][s] = int(join.out[0])
    copies, kept, first, count = _chosen(slotted, runs, type_, axis)
    families = tuple(map(tuple, by_family))
    return Orbits(
        slotted, runs, families, tuple(still), type_, copies, kept, first, count, rooted, colour
    )


def _block_segments(slotted: Slotted) -> tuple[list[Segments], list[tuple[int, int]]]:
    """Return the segments of all blocks, and family and number of each."""
    found: list[Segments] = []
    where, written = [], 0
    for f, (family, blocks) in enumerate(zip(slotted.system.families, slotted.blocks, strict=True)):
        for b, block in enumerate(blocks):
            found.append(segments_of(family, block, slotted.slots))
            written += len(found[-1].length)
            check_count(written)
            where.append((f, b))
    return found, where


def _constants(slotted: Slotted) -> tuple[list[Segments], list[tuple[int, int, int]]]:
    """Return slots that stay at one value as sets of that value; family, side and slot of each."""
    found, homes = [], []
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    for f, (family, sides) in enumerate(
        zip(slotted.system.families, slotted.constants, strict=True)
    ):
        for side, still in enumerate(sides):
            for s in still:
                value = slotted.slots[s].value(np.array([family.low(side)]))
                found.append(Segments(s, NOTHING, value, none, one, one))
                homes.append((f, side, s))
    return found, homes


def _axes(slotted: Slotted) -> IntArray:
    """Return for each slot its axis: slots that blocks relate share one."""
    links = [(b.out, b.inp) for blocks in slotted.blocks for b in blocks if b.inp != NOTHING]
    ends = np.array(links, np.int64).reshape(-1, 2)
    return components(len(slotted.slots), *ends.T)[1]


def _rooted(slotted: Slotted, axis: IntArray) -> IntArray:
    """Return for each slot whether its axis has a slot of a root part."""
    parts = slotted.system.parts
    rooted = [s for s, slot in enumerate(slotted.slots) if parts[slot.part].root]
    return np.isin(axis, axis[rooted])


def _stars(
    slotted: Slotted, blocks: Sequence[Segments], where: Sequence[tuple[int, int]], rooted: IntArray
) -> list[Tie]:
    """Return the values that belong together because one free element is spread over them.

    Where the spread axis reaches no root, its copies are parallel edges and need no care.
    """
    found = []
    for one, (f, _) in zip(blocks, where, strict=True):
        inp = slotted.system.families[f].inp
        spread = one.inp == NOTHING and inp != NOTHING and slotted.system.parts[inp].free
        if spread and rooted[one.out]:
            check_count(int(one.length.sum()))
            values = [
                np.arange(a, a + n)
                for a, n in zip(one.out_start.tolist(), one.length.tolist(), strict=True)
            ]
            found.append((one.out, np.concatenate(values)))
    return found


def _types(
    runs: Runs, joins: Sequence[Joins], ties: Sequence[Tie], told: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the type of each strand, and a colour of each run."""
    count = len(runs.slot)
    first, second, label = [], [], []
    for n, join in enumerate(joins):
        if not len(join.inp) or join.inp[0] >= 0:
            first.append(join.out)
            second.append(join.inp)
            label.append(np.full(len(join.out), n))
    for n, (s, values) in enumerate(ties):
        tied = runs.at(s, values)
        first.append(tied[:-1])
        second.append(tied[1:])
        label.append(np.full(len(tied) - 1, len(joins) + n))
    colours, colour_count = _first_colours(runs, joins, told)
    none = [np.zeros(0, np.int64)]
    agree = EdgeList(*(np.concatenate(none + x) for x in (first, second, label)))
    # Each run's first colour is compared once more as the value of an edge of its own, since
    # refined colours are hashes.
    earn = EdgeList(np.arange(count), count + colours, colours)
    total = count + colour_count
    numbers = Numbering((), (), np.array([count, total]), count, (), total)
    edges = Edges(numbers, (), agree, earn, 0)
    classes = find_classes(edges, colours, np.arange(colour_count))
    strands = int(runs.strand.max(initial=-1)) + 1
    type_ = np.zeros(strands, np.int64)
    type_[runs.strand] = classes.class_of[classes.component]
    return type_, classes.node_colour


def _check_gain(slotted: Slotted, runs: Runs) -> None:
    """Refuse where runs are hardly fewer than elements: those are looked at faster."""
    elements = sum(part.size for part in slotted.system.parts)
    if len(runs.slot) > max(FEW_RUNS, elements // GAIN):
        raise SizeError(
            f"irregular views: {len(runs.slot):,} runs of {elements:,} elements have to be told "
            "apart"
        )


def _first_colours(runs: Runs, joins: Sequence[Joins], told: IntArray) -> tuple[IntArray, int]:
    """Return equal numbers for runs of one slot with the same marks, and how many there are.

    Runs that are ``told`` apart are like no other.
    """
    alone = np.where(told, np.arange(len(told)), -1)
    colours = distinct([runs.slot, alone])[1]
    end = len(told)
    for join in joins:
        if len(join.inp) and join.inp[0] < 0:
            rows, of = distinct([colours[join.out], join.mark])
            colours[join.out] = end + of
            end += rows.shape[1]
    found, colours = np.unique(colours, return_inverse=True)
    return colours, len(found)


def _chosen(
    slotted: Slotted, runs: Runs, type_: IntArray, axis: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Choose the first positions of the first strands of each type."""
    crowd = np.zeros(int(axis.max(initial=-1)) + 1, np.int64)
    for slots in slotted.of:
        on, count = np.unique(axis[list(slots)], return_counts=True)
        crowd[on] = np.maximum(crowd[on], count)
    length, room = np.zeros_like(type_), np.zeros_like(type_)
    length[runs.strand] = runs.length
    room[runs.strand] = crowd[axis[runs.slot]]
    types = int(type_.max(initial=-1)) + 1
    copies = np.zeros(types, np.int64)
    np.add.at(copies, type_, length)
    kept = np.zeros(types, np.int64)
    kept[type_] = room
    kept = np.minimum(kept, copies)
    order = np.argsort(type_, kind="stable")
    before = np.cumsum(length[order]) - length[order]
    start = before[np.searchsorted(type_[order], np.arange(types))] if types else before
    first = np.empty_like(type_)
    first[order] = before - start[type_[order]]
    count = np.clip(kept[type_] - first, 0, length)
    return copies, kept, first, count


def orbits_of(graph: GraphStore, group: Group, free: Sequence[bool]) -> Orbits:
    """Return the one-dimensional orbits of a group's tensors.

    Raises ``SizeError`` if views are too irregular.
    """
    system = cut_regions(system_of(graph, group, free))
    shapes = [graph.shapes[part.tensor] for part in system.parts]
    codes = [_codes(graph, part) for part in system.parts]
    marked = [() if own is None else marked_strides(own) for own in codes]
    system, chains = settle_digits(system, shapes, marked)
    together = [
        () if own is None else marked_digits(own, [1, *chain])
        for own, chain in zip(codes, chains, strict=True)
    ]
    return find_orbits(find_slots(system, chains, together), codes)


def _codes(graph: GraphStore, part: TensorRun) -> TileMap | None:
    """Return the names of a part's locations, if it has any, by number."""
    mapping = mapping_of(graph, part.tensor) if part.root else None
    return None if mapping is None else mapping.codes.part(part.start, part.size)
