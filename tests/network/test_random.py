"""Random networks of costs against all their labellings."""

from __future__ import annotations

import pytest

from layoutopt.network import solve
from tests.network.oracle import best, draw


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_answers_are_the_best_of_all(first: int) -> None:
    """Status, cost and bound of random networks are those of all labellings."""
    for seed in range(first, first + 50):
        network = draw(seed)
        wanted, found = best(network), solve(network)
        if wanted is None:
            assert found.status == "infeasible", seed
        else:
            assert found.choice is not None
            assert not network.fault(found.choice), seed
            got = (network.cost(found.choice), found.cost, found.least)
            assert got == (wanted,) * 3, seed
