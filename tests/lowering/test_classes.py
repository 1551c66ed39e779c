"""Elements, equations of views, and classes that are the same problem."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.numbers import distinct
from layoutopt.graphs.locations import FixedElements, flow
from layoutopt.graphs.ops import Array, Kind
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.classes import slots
from layoutopt.lowering.classes.families import (
    NOTHING,
    VIEW,
    Relation,
    System,
    cut_regions,
    system_of,
)
from layoutopt.lowering.classes.slots import find_slots, settle_digits
from layoutopt.lowering.elements import kinds as kinds_module
from layoutopt.lowering.elements.groups import (
    EdgeList,
    Edges,
    Numbering,
    find_groups,
    first_alike,
    free_tensors,
)
from layoutopt.lowering.elements.kinds import _numbered, find_classes, mix, refine
from tests.lowering.graphs import awkward

# The steps of lifting, each against what it says of single elements


SEEDS = range(120)


def systems(seeds: range = SEEDS) -> Iterator[tuple[Graph, System]]:
    """Yield the systems of the groups of random graphs."""
    for seed in seeds:
        graph = awkward(seed)
        given = FixedElements(graph)
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


# Groups, provenance, components and their classes, each by hand and at random


def made(agree: list[tuple[int, int, int]], earn: list[tuple[int, int, int]], free: int) -> Edges:
    """Return edges between free elements, and of free elements with locations."""
    locations = 1 + max((k for _, k, _ in earn), default=-1)
    starts = np.array([0, free, free + locations])
    numbers = Numbering((0,), (1,), starts, free, (), free + locations)

    def packed(rows: list[tuple[int, int, int]], shift: int) -> EdgeList:
        table = np.array(rows, np.int64).reshape(-1, 3)
        return EdgeList(table[:, 0], table[:, 1] + shift, table[:, 2])

    return Edges(numbers, (1, 2, 3), packed(agree, 0), packed(earn, free), 0)


def isomorphic(edges: Edges, one: list[int], two: list[int]) -> bool:
    """Return whether two components are isomorphic, by trying every map of nodes."""

    def facts(nodes: list[int]) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
        rows = zip(*(column.tolist() for column in vars(edges.agree).values()), strict=True)
        earns = zip(*(column.tolist() for column in vars(edges.earn).values()), strict=True)
        inside = set(nodes)
        return (
            {(*sorted((u, v)), k) for u, v, k in rows if u in inside},
            {row for row in earns if row[0] in inside},
        )

    agree_one, earn_one = facts(one)
    agree_two, earn_two = facts(two)
    places_one = sorted({k for _, k, _ in earn_one})
    places_two = sorted({k for _, k, _ in earn_two})
    if (len(one), len(places_one)) != (len(two), len(places_two)):
        return False
    for order in permutations(two):
        to = dict(zip(one, order, strict=True))
        if {(*sorted((to[u], to[v])), k) for u, v, k in agree_one} != agree_two:
            continue
        for places in permutations(places_two):
            at = dict(zip(places_one, places, strict=True))
            if {(to[u], at[k], v) for u, k, v in earn_one} == earn_two:
                return True
    return False


def random_edges(seed: int) -> Edges:
    """Return edges of a few small components, many of them alike."""
    draw = random.Random(seed)
    agree: set[tuple[int, int]] = set()
    earn: set[tuple[int, int]] = set()
    free = 0
    shapes = [[(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)], [(0, 1)], [], [(0, 1), (2, 3), (1, 2)]]
    for _ in range(6):
        bonds = draw.choice(shapes)
        nodes = 1 + max((v for _, v in bonds), default=0)
        name = draw.sample(range(nodes), nodes)
        agree |= {(free + name[u], free + name[v]) for u, v in bonds}
        earn |= {(free + draw.randrange(nodes), draw.randrange(4)) for _ in range(2)}
        free += nodes
    return made(
        [(*pair, draw.randrange(1 + seed % 2)) for pair in sorted(agree)],
        [(*pair, draw.randrange(1 + seed % 2)) for pair in sorted(earn)],
        free,
    )


@pytest.mark.parametrize("few", [0, 1000])
def test_classes_are_isomorphic(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Components of one class are isomorphic; most isomorphic ones are in one class.

    Merging may miss some symmetric ones, which costs time and never truth.
    """
    monkeypatch.setattr(kinds_module, "FEW", few)
    same = missed = 0
    for seed in range(200):
        edges = random_edges(seed)
        nothing = np.zeros(edges.numbers.free, np.int64)
        found = find_classes(edges, nothing, np.zeros(edges.numbers.total, np.int64))
        members = [
            np.flatnonzero(found.component == c).tolist() for c in range(len(found.class_of))
        ]
        assert found.copies.sum() == (found.class_of >= 0).sum()
        assert (found.class_of[found.representative] == np.arange(len(found.copies))).all()
        for c, one in enumerate(members):
            assert len(set(found.node_colour[one].tolist())) == len(one)
            for d, two in enumerate(members[:c]):
                alike = isomorphic(edges, one, two)
                if found.class_of[c] == found.class_of[d] >= 0:
                    assert alike, (seed, one, two)
                    same += 1
                elif found.class_of[c] >= 0 <= found.class_of[d]:
                    missed += alike
    assert same > 120, missed
    assert missed < same / 10, (missed, same)


def test_rows_of_large_numbers() -> None:
    """Equal rows get equal numbers, and different rows different ones, whatever their size."""
    draw = random.Random(0)
    rows = [[draw.choice([0, 1, 2**40, 2**50 + 1]) for _ in range(4)] for _ in range(200)]
    numbers = _numbered([np.array(column) for column in zip(*rows, strict=True)]).tolist()
    for one, row in zip(numbers, rows, strict=True):
        for two, other in zip(numbers, rows, strict=True):
            assert (one == two) == (row == other)


def test_hash_collisions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hashes of unlike components collide, they are hashed again, not merged."""
    salts: list[int] = []

    def poor(values: np.ndarray, salt: int = 0) -> np.ndarray:
        salts.append(salt)
        return np.zeros(len(values), np.uint64) if salt < 2 else mix(values, salt)

    monkeypatch.setattr(kinds_module, "mix", poor)
    monkeypatch.setattr(kinds_module, "FEW", 0)
    for more in ([], [(1, 3, 0)]):  # rows of equal length, and of different lengths
        edges = made([], [(0, 0, 0), (1, 1, 1), (2, 2, 0), *more], 3)
        found = find_classes(edges, np.zeros(3, np.int64), np.arange(4) // 3)
        one, two, three = found.class_of.tolist()
        assert one == three != two
        assert max(salts) == 2
        salts.clear()


def test_stubborn_components_count_as_unlike(monkeypatch: pytest.MonkeyPatch) -> None:
    """When rounds run out, what is left gets colours of its own: never merged, never wrong."""
    monkeypatch.setattr(kinds_module, "ROUNDS", 0)
    ends = np.array([(0, 1), (2, 3)])
    colour = refine(np.array([0, 0, 1, 1]), np.zeros(4, np.int64), ends, np.zeros(2, np.int64))
    assert len(set(colour.tolist())) == 4


# Distinct rows of tables, against NumPy's own


@pytest.mark.parametrize("wide", [1, 2**20, 2**40, 2**55, 2**61])
@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_distinct_rows_of_any_numbers(columns: int, wide: int) -> None:
    """Rows and index are those of a comparison column by column, too wide for one key or not."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        table = draw.integers(-2, 2, (30, columns)) * wide + draw.integers(0, 2, (30, columns))
        rows, index = distinct(list(table.T))
        expected, back = np.unique(table, axis=0, return_inverse=True)
        assert rows.T.tolist() == expected.tolist()
        assert index.tolist() == back.reshape(-1).tolist()
