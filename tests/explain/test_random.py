"""Explanations of tiny random graphs say what trying everything says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from layoutopt import PairExplanation, explain_pair, unwind
from layoutopt.base.result import UnwindingResult
from tests.explain.trying import LARGE, NEAR, Trying
from tests.models.instances import FAMILIES

SEEDS = {
    "mixed": [*range(8), 9, 13, 38, 47],
    "tangle": [0, 4, 6, 8, 13, 14, 27, 54],
    "apart": [1, 4],
}
"""Those of larger numbers have pairs that stand in the way in other ways."""

CASES = [(family, seed) for family, seeds in SEEDS.items() for seed in seeds]


def explained(result: UnwindingResult, trying: Trying) -> list[PairExplanation]:
    """Return the explanations of all pairs."""
    names = map(trying.names, range(len(trying.values)))
    return [explain_pair(trying.graph, result, *both) for both in names]


@pytest.fixture(scope="module")
def cases() -> dict[tuple[str, int], tuple[Trying, UnwindingResult, list[PairExplanation]]]:
    """Return a graph, its result and the explanations of its pairs, for each case."""
    found = {}
    for family, seed in CASES:
        graph = FAMILIES[family](seed)
        trying, result = Trying(graph), unwind(graph)
        found[family, seed] = trying, result, explained(result, trying)
    return found


Cases = dict[tuple[str, int], tuple[Trying, UnwindingResult, list[PairExplanation]]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_alternatives(cases: Cases, case: tuple[str, int]) -> None:
    """Most matches, the alternative's score, its layouts and what every pair gains or loses."""
    trying, result, told = cases[case]
    first = trying.matched(result.layouts or {})
    for p, found in enumerate(told):
        most = trying.most(p)
        assert found.most == most
        assert found.most_proved
        assert found.alternative_proved
        assert sum(x.positions for x in found.obstacles) == found.elements - most
        then = trying.matched(found.layouts or result.layouts or {})
        assert then[p] == most
        assert found.alternative_score == trying.score(then) == trying.won(p, most)
        changes = {frozenset((x.a, x.b)): (x.before, x.after) for x in found.changes}
        for q, pair in enumerate(zip(first, then, strict=True)):
            if q != p and trying.values[q] and pair[0] != pair[1]:
                assert changes.pop(frozenset(trying.names(q))) == pair
        assert not changes
        earned = found.value * (most - first[p])
        assert found.cost == -earned - sum(x.difference for x in found.changes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_thresholds(cases: Cases, case: tuple[str, int]) -> None:
    """From the threshold on, and not a little below it, the optimum's slope is large enough."""
    trying, _, told = cases[case]
    for p, found in enumerate(told):
        most, own = found.most or 0, trying.values[p]
        assert found.threshold_proved
        if not most:
            assert found.threshold is None
            assert found.threshold_more is None
            continue
        least, floor = found.threshold, Fraction(-LARGE if own < 0 else 0)
        assert least is not None or own < 0
        _holds(trying, p, floor if least is None else least, most, floor)
        if most == found.matched:
            assert found.threshold_more is None
            continue
        more = found.threshold_more
        assert more is not None
        _holds(trying, p, more, found.matched + 1, own)


def _holds(trying: Trying, p: int, value: Fraction, count: int, floor: Fraction) -> None:
    """Check that some optimum matches a pair so often from a value on, or from the floor on."""
    assert value >= floor
    there = trying.at(p, value)
    assert trying.at(p, value + NEAR) - there >= count * NEAR
    if value > floor:
        assert there - trying.at(p, value - NEAR) < count * NEAR


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fewest_pairs(cases: Cases, case: tuple[str, int]) -> None:
    """No fewer pairs suffice, of all subsets, and those that are named do."""
    trying, _, told = cases[case]
    for p, found in enumerate(told):
        if not found.smallest_proved:
            assert trying.values[p] < 0  # where no set need suffice, ruling all out can be long
            continue
        most = found.most or 0
        number = trying.fewest(p, most)
        if found.smallest is None:
            assert number is None
            continue
        assert len(found.smallest) == number
        named = [frozenset((pair.a, pair.b)) for pair in found.smallest]
        others = [q for q in range(len(trying.values)) if frozenset(trying.names(q)) in named]
        assert trying.suffices(p, most, others)


def test_the_cases_are_various(cases: Cases) -> None:
    """All sizes of sets, both thresholds, and all obstacles occur, so that the tests tell."""
    seen: Counter[str] = Counter()
    for trying, _, told in cases.values():
        for p, found in enumerate(told):
            seen[f"set of {None if found.smallest is None else len(found.smallest)}"] += 1
            seen["two thresholds"] += found.threshold_more not in (None, found.threshold)
            seen["negative"] += trying.values[p] < 0
            for obstacle in found.obstacles:
                seen[obstacle.why.partition(":")[0].partition(",")[0]] += 1
    assert {name for name, count in seen.items() if count >= 2} >= {
        *(f"set of {size}" for size in (None, 0, 1, 2, 3)),
        "two thresholds",
        "negative",
        "barrier order",
        "both locations are fixed and differ",
        "no sink reaches either side",
        "one element stands at several positions",
    }


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_of_a_heuristic(seed: int) -> None:
    """A result that is not optimal is explained by what is best where the pair has influence."""
    trying = Trying(FAMILIES["tangle"](seed))
    result = unwind(trying.graph, "greedy0")
    first = trying.matched(result.layouts or {})
    best = trying.best(trying.values)
    for p, found in enumerate(explained(result, trying)):
        most = trying.most(p)
        assert found.most == most
        assert found.alternative_proved
        then = trying.matched(found.layouts or result.layouts or {})
        assert found.alternative_score == trying.score(then) <= trying.won(p, most)
        assert then[p] == most
        changed = {frozenset((x.a, x.b)) for x in found.changes}
        for q, value in enumerate(trying.values):
            if q != p and value and frozenset(trying.names(q)) not in changed:
                assert then[q] == first[q]
        if found.cost is not None and found.cost < 0 and found.matched < most:
            assert trying.score(first) < best
            assert "not optimal" in found.reason
