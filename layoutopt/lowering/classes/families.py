"""Families: ops and ValuedPairs as strided boxes of index pairs.

A family says that elements ``out_start + sum_k x_k * out_stride_k`` of one part and
``in_start + sum_k x_k * in_stride_k`` of another are the same (a view) or are drawn together (a
ValuedPair), for all ``0 <= x_k < extent_k``.  Every part of a graph, not only its roots, is a
node here, so that no index maps are ever composed.  Parts are whole tensors at first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from layoutopt.boxes.box import Box, canonical, strides
from layoutopt.boxes.merge import boxes_of
from layoutopt.graphs.ops import Concat, Kind, SettSample, Shape, UnwindingOp, kept, size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.groups import Group

Loop: TypeAlias = tuple[int, int, int]
"""``(extent, out_stride, in_stride)``."""

VIEW = -1  # what a family carries that is no ValuedPair
NOTHING = -1  # the input of a family that only tells which elements a root has


@dataclass(frozen=True)
class Relation:
    """Pairs of elements of two parts."""

    out: int  # number of one part
    inp: int  # that of the other, or `NOTHING`
    out_start: int  # flat element of `out` at which all loops begin
    in_start: int  # that of `inp`
    loops: tuple[Loop, ...]  # `(extent, out_stride, in_stride)` in flat elements
    pair: int = VIEW  # number of the ValuedPair, or `VIEW`

    def part(self, side: int) -> int:
        """Return the part of one side: 0 is ``out``, 1 is ``inp``."""
        return self.inp if side else self.out

    def low(self, side: int) -> int:
        """Return the smallest flat element of one side."""
        start = self.in_start if side else self.out_start
        return start + sum(min(0, (loop[0] - 1) * loop[1 + side]) for loop in self.loops)

    def high(self, side: int) -> int:
        """Return the largest flat element of one side."""
        start = self.in_start if side else self.out_start
        return start + sum(max(0, (loop[0] - 1) * loop[1 + side]) for loop in self.loops)

    def contiguous(self) -> bool:
        """Return whether both sides, if there are two, are runs of neighbours."""
        if len(self.loops) != 1:
            return not self.loops
        [(_, out, inp)] = self.loops
        return abs(out) == 1 and (self.inp == NOTHING or abs(inp) == 1)


@dataclass(frozen=True)
class TensorRun:
    """A run of elements of one tensor."""

    tensor: int  # number of the tensor
    start: int  # the first flat element
    size: int  # number of elements
    root: bool  # whether the elements have locations of their own, or are free
    free: bool  # whether some of them come from a sink


@dataclass(frozen=True, eq=False)
class System:
    """All parts and families of a group, parts in an order of evaluation."""

    parts: tuple[TensorRun, ...]
    families: tuple[Relation, ...]


def canonical_relation(family: Relation) -> Relation | None:
    """Return a family as its canonical box has it, large loops first; ``None`` if it is empty."""
    if any(extent == 0 for extent, _, _ in family.loops):
        return None
    both = [(extent, inp, out) for extent, out, inp in family.loops]
    _, start, to, loops = canonical(family.inp, family.in_start, family.out_start, both)
    largest_first = tuple([(extent, out, inp) for extent, inp, out in reversed(loops)])
    return replace(family, out_start=to, in_start=start, loops=largest_first)


def system_of(graph: GraphStore, group: Group, free: Sequence[bool]) -> System:
    """Return the parts and families of a group, some of whose tensors have elements of sinks."""
    place = {t: p for p, t in enumerate(group.tensors)}
    parts, families = [], []
    for t in group.tensors:
        producer, count = graph.producers[t], size(graph.shapes[t])
        op = graph.ops[producer]
        root = op.kind is not Kind.VIEW
        parts.append(TensorRun(t, 0, count, root, free[t]))
        if root:
            families.append(Relation(place[t], NOTHING, 0, 0, ((count, 1, 0),)))
            continue
        carriers = graph.carriers(producer)
        shapes = [graph.shapes[c] for c in carriers]
        for k, start, to, loops in moves(op, shapes, graph.shapes[t]):
            carrier = place[group.firsts[carriers[k]]]
            both = tuple([(n, here, there) for n, there, here in loops])
            families.append(Relation(place[t], carrier, to, start, both))
    for p in group.pairs:
        a, b = (group.firsts[t] for t in graph.pairs[p][:2])
        if a != b:
            whole = ((size(graph.shapes[a]), 1, 1),)
            families.append(Relation(place[a], place[b], 0, 0, whole, p))
    found = (canonical_relation(family) for family in families)
    return System(tuple(parts), tuple(family for family in found if family is not None))


CUTS_LIMIT = 10**5  # systems that would be cut more often are left whole

Cut = tuple[int, int]
"""A part, and the first flat element after the cut."""


def cut_regions(system: System) -> System:
    """Return a system of which every part is one region."""
    contiguous: dict[int, list[tuple[Relation, int]]] = defaultdict(list)
    wanted: set[Cut] = set()
    rough: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for family in system.families:
        for side in (0, 1):
            part = family.part(side)
            if part == NOTHING:
                continue
            low, high = family.low(side), family.high(side) + 1
            wanted.update((part, c) for c in (low, high) if 0 < c < system.parts[part].size)
            if not family.contiguous():
                rough[part].append((low, high))
            elif family.inp != NOTHING:
                contiguous[part].append((family, side))
    cuts = _spread(wanted, contiguous)
    if not cuts or len(cuts) > CUTS_LIMIT:
        return system
    dead = {cut for cut in cuts if any(low < cut[1] < high for low, high in rough[cut[0]])}
    return _cut(system, cuts - _spread(dead, contiguous))


def _spread(cuts: Iterable[Cut], contiguous: dict[int, list[tuple[Relation, int]]]) -> set[Cut]:
    """Return cuts with all that follow from them through contiguous families."""
    found, todo = set(cuts), list(cuts)
    while todo and len(found) <= CUTS_LIMIT:
        part, cut = todo.pop()
        for family, side in contiguous[part]:
            if family.low(side) < cut <= family.high(side):
                other = family.part(1 - side), _across(family, side, cut)
                if other not in found:
                    found.add(other)
                    todo.append(other)
    return found


def _across(family: Relation, side: int, cut: int) -> int:
    """Return where a cut of one side lies on the other."""
    steps = cut - family.low(side)
    same = all(out * inp > 0 for _, out, inp in family.loops)
    return family.low(1 - side) + steps if same else family.high(1 - side) + 1 - steps


def _cut(system: System, cuts: set[Cut]) -> System:
    """Cut parts, and contiguous families with them."""
    inner: dict[int, list[int]] = defaultdict(list)
    for p, cut in sorted(cuts):
        inner[p].append(cut)
    parts: list[TensorRun] = []
    starts: list[list[int]] = []
    first: list[int] = []
    for p, part in enumerate(system.parts):
        bounds = [0, *inner[p], part.size]
        first.append(len(parts))
        starts.append(bounds[:-1])
        parts += [
            TensorRun(part.tensor, part.start + a, b - a, part.root, part.free)
            for a, b in pairwise(bounds)
        ]

    def moved(family: Relation) -> Relation:
        """Return a family that lies within one region of each part, in terms of these."""
        out = bisect_right(starts[family.out], family.low(0)) - 1
        out_part = first[family.out] + out
        out_start = family.out_start - starts[family.out][out]
        if family.inp == NOTHING:
            return Relation(out_part, NOTHING, out_start, 0, family.loops, family.pair)
        inp = bisect_right(starts[family.inp], family.low(1)) - 1
        in_start = family.in_start - starts[family.inp][inp]
        return Relation(
            out_part, first[family.inp] + inp, out_start, in_start, family.loops, family.pair
        )

    families = []
    for family in system.families:
        pieces = _pieces(family, inner[family.out]) if family.contiguous() else [family]
        families += [moved(piece) for piece in pieces]
    return System(tuple(parts), tuple(families))


def _pieces(family: Relation, cuts: list[int]) -> list[Relation]:
    """Cut a contiguous family at cuts of its output."""
    low, high = family.low(0), family.high(0)
    inside = cuts[bisect_right(cuts, low) : bisect_right(cuts, high)]
    if not inside:
        return [family]
    [(_, _, step)] = family.loops
    found = []
    for a, b in pairwise([low, *inside, high + 1]):
        loops = ((b - a, 1, step),)
        start = family.in_start + (a - low) * step
        piece = canonical_relation(Relation(family.out, family.inp, a, start, loops, family.pair))
        if piece is not None:
            found.append(piece)
    return found


def moves(op: UnwindingOp, shapes: Sequence[Shape], out: Shape) -> Iterator[Box]:
    """Yield where the output elements of a view come from, by carrier, as NumPy's views have it.

    Boxes are labelled by carriers' numbers; each output element is in one of them.
    """
    if isinstance(op, Concat):
        steps, start = strides(out), 0
        for k, shape in enumerate(shapes):
            yield Box(k, 0, start, tuple(zip(shape, strides(shape), steps, strict=True)))
            start += shape[op.axis] * steps[op.axis]
    elif isinstance(op, SettSample):
        yield from _sampled(op, shapes[0], out)
    else:
        start, there = _strided(op, shapes[0])
        yield Box(0, start, 0, tuple(zip(out, there, strides(out), strict=True)))


def _strided(op: UnwindingOp, shape: Shape) -> tuple[int, Sequence[int]]:
    """Return first element and strides of a view, as NumPy has them.

    The view is taken of an array of one byte that claims to have the shape; only its strides
    are ever looked at.
    """
    byte = np.zeros(1, np.int8)
    array = np.lib.stride_tricks.as_strided(byte, shape, strides(shape), writeable=False)
    view = op.view([array])
    offset = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    return offset, view.strides


def _sampled(op: SettSample, shape: Shape, out: Shape) -> Iterator[Box]:
    """Yield the products of the strided runs that stripes keep of each dimension."""
    axes = []
    for n, stripes, there, here in zip(shape, op.setts, strides(shape), strides(out), strict=True):
        indices = kept(n, stripes)
        runs = boxes_of(np.zeros(len(indices), np.int8), indices)
        axes.append([_scaled(run, there, here) for run in runs])
    for chosen in product(*axes):
        start, to = sum(run.start for run in chosen), sum(run.to for run in chosen)
        yield Box(0, start, to, tuple([loop for run in chosen for loop in run.loops]))


def _scaled(run: Box, there: int, here: int) -> Box:
    """Return a box of indices of an axis as one of flat elements."""
    loops = tuple([(n, step * there, to_step * here) for n, step, to_step in run.loops])
    return Box(run.label, run.start * there, run.to * here, loops)
