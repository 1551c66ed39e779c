"""Connected components against SciPy's, strongly connected ones against networkx."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.network import components as module
from layoutopt.network.components import components, strong_components


@pytest.mark.parametrize("few", [0, 10**6])
def test_components(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Both ways number components as SciPy does, links repeated and to a node itself too."""
    monkeypatch.setattr(module, "FEW", few)
    random = np.random.default_rng(0)
    for n in [1, 2, 5, 30, 30, 100]:
        ends = random.integers(n, size=(2, n // 2))
        matrix = coo_array((np.ones(n // 2, bool), tuple(ends)), shape=(n, n))
        count, of = connected_components(matrix, directed=False)
        found, own = components(n, *ends)
        assert (found, own.tolist()) == (count, of.tolist())
        assert own.dtype == of.dtype


def test_of_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    assert components(0, nothing, nothing)[0] == 0
    assert strong_components([]) == []


def test_strong_components() -> None:
    random = np.random.default_rng(0)
    for n in [2, 3, 8, 30, 100]:
        arcs = random.integers(n, size=(int(1.3 * n), 2)).tolist()
        expected = networkx.strongly_connected_components(networkx.DiGraph(arcs))
        found = strong_components([(a, b) for a, b in arcs])
        assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
