"""Roof duality: the table of a pair taken apart, and many equal edges."""

from __future__ import annotations

import itertools

import numpy as np

from layoutopt.network.cuts import roof

NEVER = 1000

ENTRIES = (0, 3, 8, NEVER)


def test_every_table_of_a_pair() -> None:
    """Two nodes with costs of their own and any table: decided right, or infeasible."""
    costs = np.array([[0, 2], [1, 0]])
    for table in itertools.product(ENTRIES, repeat=4):
        square = np.array(table).reshape(2, 2)
        total = costs[0][:, None] + costs[1] + square
        found = roof(costs, np.array([[0, 1]]), np.zeros(1, np.int64), square[None], NEVER)
        assert found.infeasible == (total.min() >= NEVER), table
        if not found.infeasible:
            first, second = found.labels
            assert total[first, second] == total.min() == found.bound, table


def test_many_equal_edges() -> None:
    """A rule that 256 edges state is as valid as one that a single edge states."""
    equal = np.array([[[0, NEVER], [NEVER, 0]]])
    edges = np.tile([[0, 1]], (256, 1))
    table_of = np.zeros(256, np.int64)
    found = roof(np.array([[NEVER, 0], [0, 5]]), edges, table_of, equal, NEVER)
    assert (found.labels.tolist(), found.bound) == ([1, 1], 5)
    contrary = np.array([[NEVER, 0], [0, NEVER]])
    assert roof(contrary, edges, table_of, equal, NEVER).infeasible
