"""Orbits of a group: the first half of lifting, step by step."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from layoutopt.graphs.locations import mapping_of
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.families import (
    NOTHING,
    Relation,
    System,
    TensorRun,
    canonical_relation,
    system_of,
)
from layoutopt.lowering.classes.orbits import Orbits, find_orbits
from layoutopt.lowering.classes.runs import marked_digits, marked_strides
from layoutopt.lowering.classes.slots import find_slots, settle_digits
from layoutopt.lowering.elements.groups import Group
from layoutopt.tiles.blocks import TileMap

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
