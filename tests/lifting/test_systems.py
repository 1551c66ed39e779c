"""The steps of lifting, each against what it says of single elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.graphs.locations import Given, flow
from layoutopt.graphs.ops import Array, Kind
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.classes import slots
from layoutopt.lowering.classes.families import (
    NOTHING,
    VIEW,
    Relation,
    System,
    canonical_relation,
    system_of,
)
from layoutopt.lowering.classes.slots import find_slots, settle_digits
from layoutopt.lowering.classes.systems import cut_regions
from layoutopt.lowering.elements.groups import find_groups, first_alike, free_tensors
from tests.lifting.graphs import awkward

SEEDS = range(120)


def systems(seeds: range = SEEDS) -> Iterator[tuple[Graph, System]]:
    """Yield the systems of the groups of random graphs."""
    for seed in seeds:
        graph = awkward(seed)
        given = Given(graph)
        free = free_tensors(graph, given)
        for group in find_groups(graph, given):
            yield graph, system_of(graph, group, free)


def elements(system: System, family: Relation) -> list[tuple[int, int, int, int]]:
    """Return tensor and flat element of both sides of every pair of a family, sorted."""
    out, inp = system.parts[family.out], system.parts[family.inp]
    found = []
    for steps in product(*(range(extent) for extent, _, _ in family.loops)):
        o = family.out_start + sum(x * loop[1] for x, loop in zip(steps, family.loops, strict=True))
        i = family.in_start + sum(x * loop[2] for x, loop in zip(steps, family.loops, strict=True))
        assert 0 <= o < out.size
        if family.inp == NOTHING:
            found.append((out.tensor, out.start + o, NOTHING, 0))
        else:
            assert 0 <= i < inp.size
            found.append((out.tensor, out.start + o, inp.tensor, inp.start + i))
    return found


def relations(system: System) -> dict[int, list[tuple[int, int, int, int]]]:
    """Return the element pairs of all views, and of each ValuedPair, sorted."""
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    for family in system.families:
        found.setdefault(family.pair, []).extend(elements(system, family))
    return {pair: sorted(rows) for pair, rows in found.items()}


def _with_alike(graph: Graph, roots: dict[int, Array]) -> dict[int, Array]:
    """Return arrays of tensors, and of all that are always alike."""
    firsts = first_alike(graph)
    carriers = {c for i in range(len(graph.ops)) for c in graph.carriers(i)}
    return roots | {t: roots[firsts[t]] for t in carriers if firsts[t] in roots}


def test_families_are_the_views() -> None:
    """Each output element is in one family, with the input element that NumPy's view shows."""
    seen = set()
    for graph, system in systems():
        rows = {(t, o): (s, i) for t, o, s, i in relations(system).get(VIEW, [])}
        firsts = first_alike(graph)
        for part in system.parts:
            op = graph.ops[graph.producers[part.tensor]]
            if op.kind is not Kind.VIEW:
                assert all(rows[part.tensor, e] == (NOTHING, 0) for e in range(part.size))
                continue
            seen.add(type(op).__name__)
            carriers = dict.fromkeys(
                firsts[c] for c in graph.carriers(graph.producers[part.tensor])
            )
            number = {t: n * 10**6 for n, t in enumerate(carriers)}
            roots = {
                t: (number[t] + np.arange(np.prod(graph.shapes[t], dtype=int))).reshape(
                    graph.shapes[t]
                )
                for t in carriers
            }
            shown = flow(graph, _with_alike(graph, roots), [part.tensor])[part.tensor].reshape(-1)
            for e, where in enumerate(shown.tolist()):
                t, i = rows[part.tensor, e]
                assert number[t] + i == where
    assert {"Reshape", "DimShuffle", "Reverse", "Slice", "SubSample", "SettSample"} <= seen
    assert {"Concat", "Expand"} <= seen


def test_no_step_changes_what_families_say() -> None:
    """Regions and digits cut families to pieces that relate the same elements."""
    cut = split = 0
    for graph, system in systems():
        regions = cut_regions(system)
        assert relations(regions) == relations(system)
        shapes = [graph.shapes[part.tensor] for part in regions.parts]
        settled, chains = settle_digits(regions, shapes)
        assert relations(settled) == relations(system)
        cut += len(regions.parts) > len(system.parts)
        split += len(settled.families) > len(regions.families)
        for chain, part in zip(chains, settled.parts, strict=True):
            assert all(b % a == 0 and a < b for a, b in pairwise([1, *chain]))
            assert all(b < part.size for b in chain)
    assert min(cut, split) > 10


def test_slots_make_families_products() -> None:
    """The element pairs of a family are all combinations of its blocks, and nothing else."""
    for graph, system in systems(range(60)):
        regions = cut_regions(system)
        shapes = [graph.shapes[part.tensor] for part in regions.parts]
        slotted = find_slots(*settle_digits(regions, shapes))
        for f, family in enumerate(slotted.system.families):
            sides = [family.out] if family.inp == NOTHING else [family.out, family.inp]
            rows = []
            for steps in product(*(range(extent) for extent, _, _ in family.loops)):
                row = []
                for side, part in enumerate(sides):
                    start = family.in_start if side else family.out_start
                    flat = start + sum(
                        x * loop[1 + side] for x, loop in zip(steps, family.loops, strict=True)
                    )
                    of = slotted.of[part]
                    values = [int(slotted.slots[s].value(np.array(flat))) for s in of]
                    assert (
                        sum(slotted.slots[s].flat(v) for s, v in zip(of, values, strict=True))
                        == flat
                    )
                    row += list(zip(of, values, strict=True))
                rows.append(dict(row))
            options = []
            for block in slotted.blocks[f]:
                own = [s for s in (block.out, block.inp) if s != NOTHING]
                options.append({tuple((s, row[s]) for s in own) for row in rows})
            for still in slotted.constants[f]:
                options += [{((s, row[s]),) for row in rows} for s in still]
            combined = {tuple(sorted(sum(chosen, ()))) for chosen in product(*options)}
            assert combined == {tuple(sorted(row.items())) for row in rows}


NORMAL = {
    "ones go": (((1, 7, 7), (4, 1, 1)), ((4, 1, 1),), 0, 0),
    "rows join": (((3, 4, 4), (4, 1, 1)), ((12, 1, 1),), 0, 0),
    "rows of slices stay": (((3, 4, 6), (4, 1, 1)), ((3, 4, 6), (4, 1, 1)), 0, 0),
    "backwards is turned": (((5, -1, 1),), ((5, 1, -1),), -4, 4),
    "both backwards": (((5, -1, -1),), ((5, 1, 1),), -4, -4),
}


@pytest.mark.parametrize("case", NORMAL)
def test_normal_form(case: str) -> None:
    """Families are written with few loops whose outputs go up."""
    loops, expected, out, inp = NORMAL[case]
    family = canonical_relation(Relation(0, 1, 0, 0, loops))
    assert family == Relation(0, 1, out, inp, expected)
    assert canonical_relation(Relation(0, 1, 0, 0, (*loops, (0, 1, 1)))) is None


def test_too_many_boxes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would need more families than the limit says so, instead of going on for ever."""
    monkeypatch.setattr(slots, "FAMILIES_LIMIT", 3)
    refusals = 0
    for graph, system in systems(range(40)):
        try:
            settle_digits(system, [graph.shapes[part.tensor] for part in system.parts])
        except SizeError as error:
            refusals += 1
            assert "irregular views give more than 3 strided boxes" in str(error)
    assert refusals > 5
