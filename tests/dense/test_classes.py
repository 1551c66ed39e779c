"""Groups, provenance, components and their classes, each by hand and at random."""

from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest

from layoutopt.graphs.locations import Given, flow
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.elements import classes as classes_module
from layoutopt.lowering.elements import classes as refine_module
from layoutopt.lowering.elements.classes import _numbered, find_classes, mix, refine
from layoutopt.lowering.elements.groups import find_groups
from layoutopt.lowering.elements.numbering import (
    EdgeList,
    Edges,
    Numbering,
    edges_of,
    number_roots,
    root_arrays,
)


def test_provenance_by_hand() -> None:
    """Every element of a view of a view is traced to the root element it comes from."""
    graph = Graph()
    x = graph.sink((2, 3), name="x")
    s = graph.source((2,), [7, 5], name="s")
    view = graph.concat([graph.flatten(graph.dim_shuffle(x, (1, 0))), s], 0)
    graph.valued_pair(view, graph.source((8,), [5, 6, 5, 6, 5, 6, 5, 6]), 1)
    [group] = find_groups(graph, Given(graph))
    numbers = number_roots(graph, group)
    assert (numbers.free, numbers.pool, numbers.total) == (6, (7, 5, 6), 9)
    found = flow(graph, root_arrays(graph, group, numbers, Given(graph)), [view.index])[view.index]
    assert found.tolist() == [0, 3, 1, 4, 2, 5, 6, 7]
    edges = edges_of(graph, group, [1], Given(graph))
    assert edges.constant == 0
    assert list(zip(edges.earn.first.tolist(), edges.earn.second.tolist(), strict=True)) == [
        (0, 7),
        (3, 8),
        (1, 7),
        (4, 8),
        (2, 7),
        (5, 8),
    ]


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
    monkeypatch.setattr(classes_module, "FEW", few)
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

    monkeypatch.setattr(classes_module, "mix", poor)
    monkeypatch.setattr(classes_module, "FEW", 0)
    for more in ([], [(1, 3, 0)]):  # rows of equal length, and of different lengths
        edges = made([], [(0, 0, 0), (1, 1, 1), (2, 2, 0), *more], 3)
        found = find_classes(edges, np.zeros(3, np.int64), np.arange(4) // 3)
        one, two, three = found.class_of.tolist()
        assert one == three != two
        assert max(salts) == 2
        salts.clear()


def test_stubborn_components_count_as_unlike(monkeypatch: pytest.MonkeyPatch) -> None:
    """When rounds run out, what is left gets colours of its own: never merged, never wrong."""
    monkeypatch.setattr(refine_module, "ROUNDS", 0)
    ends = np.array([(0, 1), (2, 3)])
    colour = refine(np.array([0, 0, 1, 1]), np.zeros(4, np.int64), ends, np.zeros(2, np.int64))
    assert len(set(colour.tolist())) == 4
