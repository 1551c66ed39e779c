"""Branch and bound under mini-buckets against all labellings."""

from __future__ import annotations

import random

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.network import elimination
from layoutopt.network.elimination import Factor, branch_and_bound

COSTS = (0, 0, 1, 2, 5, 9, 10**6)


def draw(r: random.Random) -> tuple[dict[int, int], list[Factor]]:
    """Return nodes with numbers of labels, and tables over one to three of them."""
    widths = {u: r.randint(1, 4) for u in r.sample(range(20), r.randint(1, 6))}
    factors: list[Factor] = []
    for _ in range(r.randint(0, 12)):
        nodes = tuple(r.sample([*widths], r.randint(1, min(3, len(widths)))))
        shape = [widths[u] for u in nodes]
        costs = np.array([r.choice(COSTS) for _ in range(int(np.prod(shape)))], np.int64)
        factors.append((nodes, costs.reshape(shape)))
    return widths, factors


def cost(factors: list[Factor], chosen: dict[int, int]) -> int:
    """Return what a labelling costs."""
    return sum(int(costs[tuple(chosen[u] for u in nodes)]) for nodes, costs in factors)


def least(widths: dict[int, int], factors: list[Factor]) -> int:
    """Return the least cost of all labellings."""
    every = dict(zip(widths, np.indices([*widths.values()]), strict=True))
    total = np.zeros([*widths.values()], np.int64)
    for nodes, costs in factors:
        total += costs[tuple(every[u] for u in nodes)]
    return int(total.min())


@pytest.mark.parametrize("table", [1, 8, 2**20])
@pytest.mark.parametrize("block", [1, 2**12])
@pytest.mark.parametrize("left", [20, 2**25])
def test_the_search_finds_the_least_cost(
    monkeypatch: pytest.MonkeyPatch, table: int, block: int, left: int
) -> None:
    """A search that ends has the best labelling, or proves that none costs less than asked for."""
    monkeypatch.setattr(elimination, "BUCKET", table)
    monkeypatch.setattr(elimination, "BLOCK", block)
    monkeypatch.setattr(elimination, "LEFT", left)
    better = ended = 0
    for seed in range(55):
        r = random.Random(seed)
        widths, factors = draw(r)
        best = least(widths, factors)
        for worth in (best + r.randint(1, 20), best, best - 1 if best else 0):
            found = branch_and_bound(widths, factors, worth, Limits(), 10**9)
            assert found.complete
            assert found.bound == min(best, worth)
            assert (found.chosen is not None) == (best < worth)
            if found.chosen is not None:
                assert cost(factors, found.chosen) == best
                better += 1
        early = branch_and_bound(widths, factors, best + 5, Limits(), r.randint(0, 30))
        assert early.bound <= best
        assert early.chosen is None or cost(factors, early.chosen) < best + 5
        ended += early.complete
    assert better > 50
    assert 5 < ended < 51


def test_what_is_too_large_is_refused() -> None:
    """Sums must fit 64 bits, and a search of very many nodes is hopeless."""
    one: Factor = ((0,), np.array([0, 1]))
    with pytest.raises(SizeError):
        branch_and_bound({0: 2}, [one], 2**61, Limits(), 1)
    with pytest.raises(SizeError):
        branch_and_bound(dict.fromkeys(range(elimination.NODES + 1), 2), [one], 2, Limits(), 1)
