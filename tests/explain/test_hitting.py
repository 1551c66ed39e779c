"""The fewest things that meet demands, against all subsets."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from layoutopt.base.limits import Limits, limited
from layoutopt.explain import pair
from layoutopt.explain.pair import Demand, fewest


def meets(demands: list[Demand], chosen: tuple[int, ...]) -> bool:
    """Return whether things meet all demands."""
    return all(sum(d.amounts[i] for i in chosen) >= d.target for d in demands)


def random_demands(seed: int) -> tuple[list[Demand], int]:
    """Return a few demands on up to seven things; some can be met by nothing."""
    draw = random.Random(seed)
    things = draw.randint(0, 7)
    low = draw.choice([0, 0, -4])
    demands = []
    for _ in range(draw.randint(0, 4)):
        amounts = [draw.choice([0, draw.randint(low, 9)]) for _ in range(things)]
        demands.append(Demand(amounts, draw.randint(-3, 12)))
    return demands, things


def test_against_all_subsets() -> None:
    """What is found meets all demands, nothing smaller does, and ``None`` means nothing does."""
    sizes = set()
    for seed in range(600):
        demands, things = random_demands(seed)
        found = fewest(demands, things, Limits())
        smaller = things + 1 if found is None else len(found)
        assert found is None or meets(demands, found)
        assert not any(
            meets(demands, chosen)
            for number in range(smaller)
            for chosen in combinations(range(things), number)
        )
        sizes.add(None if found is None else len(found))
    assert sizes >= {None, 0, 1, 2, 3, 4}


def test_many_alike() -> None:
    """A thousand of equal amounts, of which 600 are needed: the first are taken, at once."""
    found = fewest([Demand([1] * 1000, 600)], 1000, Limits())
    assert found == tuple(range(600))


def test_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up when time is over, and after so many steps."""
    demands = [Demand([3, 2, 2], 4)]
    with pytest.raises(TimeoutError):
        fewest(demands, 3, limited(time_limit=0))
    monkeypatch.setattr(pair, "STEPS", 2)
    with pytest.raises(TimeoutError):
        fewest(demands, 3, Limits())
