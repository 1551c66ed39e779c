from __future__ import annotations

import random
from itertools import chain, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from layoutopt.pictures.figure import levels

GAP = 5.0


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overlaps_and_order_stays(seed: int) -> None:
    """In each column every box ends at least the gap above the next one."""
    draw = random.Random(seed)
    layers = [[4 * c + i for i in range(draw.randint(0, 4))] for c in range(4)]
    boxes = list(chain(*layers))
    heights = {u: (draw.uniform(1, 40), draw.uniform(1, 40)) for u in boxes}
    links = [(draw.choice(boxes), draw.choice(boxes)) for _ in range(10)] if boxes else []
    found = levels(layers, heights, links, GAP, 12)
    assert set(found) == set(boxes)
    for layer in layers:
        for u, v in pairwise(layer):
            assert found[v] - heights[v][0] - (found[u] + heights[u][1]) >= GAP - 1e-6


def test_a_chain_is_level() -> None:
    """Boxes of any heights that follow each other stand with their points at one height."""
    heights = {u: (10.0 + 7 * u, 30.0 - 5 * u) for u in range(4)}
    found = levels([[u] for u in range(4)], heights, [(0, 1), (1, 2), (2, 3)], GAP, 4)
    assert max(found.values()) - min(found.values()) < 1e-6


def test_a_box_stands_between_its_partners() -> None:
    """One box with two partners in the next column is level with their middle."""
    heights = dict.fromkeys(range(3), (10.0, 10.0))
    found = levels([[0], [1, 2]], heights, [(0, 1), (0, 2)], GAP, 3)
    assert found[0] == pytest.approx((found[1] + found[2]) / 2)
    assert found[2] - found[1] == pytest.approx(20 + GAP)


def test_places_are_the_nearest_ones_by_least_squares() -> None:
    """Three boxes that all want to be level with one stand where a general solver puts them."""
    heights = {0: (9.0, 4.0), 1: (6.0, 6.0), 2: (3.0, 8.0), 3: (1.0, 1.0)}
    found = levels([[0, 1, 2], [3]], heights, [(3, 0), (3, 1), (3, 2)], GAP, 4)
    apart = [heights[0][1] + GAP + heights[1][0], heights[1][1] + GAP + heights[2][0]]
    wanted = found[3]
    solved = minimize(
        lambda y: float(((y - wanted) ** 2).sum()),
        np.array([wanted - 40, wanted, wanted + 40]),
        constraints=[
            {"type": "ineq", "fun": lambda y, i=i: y[i + 1] - y[i] - apart[i]} for i in (0, 1)
        ],
    )
    assert np.allclose([found[u] for u in (0, 1, 2)], solved.x, atol=1e-3)


def test_without_lines_columns_begin_at_one_height() -> None:
    """Boxes that nothing connects stand in rows from the top."""
    heights = {0: (10.0, 5.0), 1: (20.0, 5.0), 2: (3.0, 5.0)}
    found = levels([[0, 1], [], [2]], heights, [], GAP, 3)
    assert found[0] - 10 == found[2] - 3 == 0
