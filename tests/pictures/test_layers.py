from __future__ import annotations

import random

import pytest

from layoutopt.pictures.arrange import Link, columns, groups, lanes, settle


@pytest.mark.parametrize(
    ("count", "arrows", "ties", "expected"),
    [
        (3, [(0, 1), (1, 2)], [], [0, 1, 2]),
        (3, [(0, 2), (1, 2)], [], [0, 0, 1]),
        # The longest path counts: 0 -> 1 -> 2 and 0 -> 2.
        (3, [(0, 1), (1, 2), (0, 2)], [], [0, 1, 2]),
        # Box 3 is read by the last one only, and stands just before it.
        (4, [(0, 1), (1, 2), (3, 2)], [], [0, 1, 2, 1]),
        # A tie puts an input right of what is computed ...
        (3, [(0, 1)], [(1, 2)], [0, 1, 2]),
        (3, [(0, 1)], [(2, 1)], [0, 1, 2]),
        # ... and two inputs in the order given,
        (2, [], [(0, 1)], [0, 1]),
        (2, [], [(1, 0)], [1, 0]),
        # but not if one op reads both, nor if an arrow would have to go back.
        (3, [(0, 2), (1, 2)], [(0, 1)], [0, 0, 1]),
        (2, [(0, 1)], [(1, 0)], [0, 1]),
        (2, [], [(0, 1), (1, 0)], [0, 1]),
        # Ties between computed boxes, and of a box with itself, move nothing.
        (4, [(0, 1), (0, 2), (2, 3)], [(1, 3), (1, 1)], [0, 1, 1, 2]),
        (0, [], [], []),
    ],
)
def test_columns(count: int, arrows: list[Link], ties: list[Link], expected: list[int]) -> None:
    """Longest paths give columns; ties pull inputs beside their partners."""
    assert columns(count, arrows, ties) == expected


@pytest.mark.parametrize("seed", range(20))
def test_arrows_go_right_and_no_column_is_empty(seed: int) -> None:
    """Whatever the ties, every arrow leads to a later column, and columns are used in a row."""
    draw = random.Random(seed)
    count = draw.randint(1, 15)
    arrows = [(u, v) for v in range(count) for u in range(v) if draw.random() < 0.2]
    ties = [(draw.randrange(count), draw.randrange(count)) for _ in range(draw.randint(0, 12))]
    found = columns(count, arrows, ties)
    assert all(found[u] < found[v] for u, v in arrows)
    assert set(found) == set(range(max(found) + 1))


def test_boxes_without_lines_are_spread() -> None:
    """Forty boxes that nothing connects do not pile up in one column."""
    found = columns(40, [], [])
    assert max(found.count(c) for c in found) <= 5


def test_long_lines_get_a_lane_in_each_column_between() -> None:
    """A line over two columns has two lanes; one back over them has them in its own order."""
    layers, ways = lanes([0, 3, 1, 2], [(0, 1), (1, 0), (2, 3)])
    assert ways == [[0, 4, 5, 1], [1, 6, 7, 0], [2, 3]]
    assert layers == [[0], [2, 4, 7], [3, 5, 6], [1]]


def test_crossings_are_taken_out() -> None:
    """Two crossing lines uncross."""
    layers = settle([[0, 1], [2, 3]], [(0, 3), (1, 2)])
    place = {u: i for layer in layers for i, u in enumerate(layer)}
    assert (place[0] < place[1]) == (place[3] < place[2])


def test_what_is_tied_within_a_column_stands_together() -> None:
    """Of three boxes in one column, the two that a line joins become neighbours."""
    (layer,) = settle([[0, 1, 2]], [(0, 2)])
    assert abs(layer.index(0) - layer.index(2)) == 1


@pytest.mark.parametrize("seed", range(10))
def test_sorting_keeps_all_boxes_in_their_columns(seed: int) -> None:
    """Each column holds the same boxes before and after."""
    draw = random.Random(seed)
    column = [draw.randrange(4) for _ in range(12)]
    links = [(draw.randrange(12), draw.randrange(12)) for _ in range(14)]
    layers, ways = lanes(column, links)
    found = settle(layers, ways)
    assert list(map(sorted, found)) == list(map(sorted, layers))


def test_groups_are_what_lines_connect() -> None:
    """Connected boxes are one group each, and those without lines the last one, together."""
    assert groups(range(7), [(0, 5), (5, 2), (3, 4)]) == [{0, 2, 5}, {3, 4}, {1, 6}]
    assert groups(range(2), []) == [{0, 1}]
    assert groups([], []) == []
