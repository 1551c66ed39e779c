from __future__ import annotations

import random

import pytest

from layoutopt.pictures.figure import columns, lanes, settle


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
