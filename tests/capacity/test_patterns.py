"""Patterns of kinds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from layoutopt.network.capacity.pool import pattern_count, patterns, values
from layoutopt.network.problem import IntArray

SHAPES = [(1, 0, 1), (1, 3, 0), (2, 2, 2), (3, 1, 3), (3, 2, 1), (4, 0, 2), (4, 2, 3)]


@pytest.mark.parametrize(("nodes", "own", "slots"), SHAPES)
def test_patterns_are_labellings_up_to_names_of_slots(nodes: int, own: int, slots: int) -> None:
    """All labellings with so many tiles, slots renumbered as they come, are the patterns."""
    expected = set()
    for labels in itertools.product(range(own + slots), repeat=nodes):
        names: dict[int, int] = {}
        for label in labels:
            if label >= own:
                names.setdefault(label, own + len(names))
        expected.add(tuple(names.get(label, label) for label in labels))
    rows = patterns(nodes, own, slots)
    assert set(map(tuple, rows.tolist())) == expected
    assert len(rows) == len(expected) == pattern_count(nodes, own, slots)


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_values_are_sums_of_rewards_and_weights(dtype: type) -> None:
    """Each pattern is worth the rewards of its own tiles and the weights of what is together."""
    draw = np.random.default_rng(0)
    rewards: IntArray = draw.integers(-9, 9, (4, 3, 2)).astype(dtype)
    weights: IntArray = np.triu(draw.integers(-9, 9, (4, 3, 3)), 1).astype(dtype)
    rows = patterns(3, 2, 3)
    found = values(rewards, weights, rows, 3)
    for kind, (r, w) in enumerate(zip(rewards.tolist(), weights.tolist(), strict=True)):
        for at, row in enumerate(rows.tolist()):
            total = sum(r[u][t] for u, t in enumerate(row) if t < 2)
            pairs = itertools.combinations(range(3), 2)
            total += sum(w[u][v] for u, v in pairs if row[u] == row[v])
            assert found[kind, at] == total
