"""Distinct rows of tables, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.lowering.elements.numbering import distinct


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
