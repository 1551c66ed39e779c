from __future__ import annotations

import random
from decimal import Decimal

import pytest

from layoutopt.bench.analysis import BatchChange, difference, noise_factor
from layoutopt.bench.row import Row
from tests.bench.support import failed, row


def repeated(*seconds: float, **changes: object) -> list[Row]:
    return [row(repeat=i, seconds=s, **changes) for i, s in enumerate(seconds)]


def changes(before: list[Row], after: list[Row], noise: float = 1.2) -> list[BatchChange]:
    return list(difference(before, after, noise).changes)


def test_equal_runs_do_not_differ() -> None:
    """What is the same on both sides is no change."""
    found = difference([row(), failed(solver="mip")], [row(), failed(solver="mip")])
    assert (found.compared, found.only_before, found.only_after) == (2, 0, 0)
    assert found.changes == ()


def test_what_is_on_one_side_only_is_counted() -> None:
    """Tasks differ by instance, solver, parameters and seed, not by version and machine."""
    before = [row(), row(seed=1), row(solver="mip")]
    after = [row(version="2", machine="m"), row(parameters={}), row(instance_hash="bb")]
    found = difference(before, after)
    assert (found.compared, found.only_before, found.only_after) == (1, 2, 2)


STATUSES = {
    ("failed", "unknown"): True,
    ("unknown", "feasible"): True,
    ("feasible", "optimal"): True,
    ("optimal", "feasible"): False,
    ("optimal", "failed"): False,
    ("feasible", "infeasible"): True,
    ("optimal", "infeasible"): None,
    ("feasible", "feasible"): None,
}


@pytest.mark.parametrize(("before", "after"), STATUSES)
def test_statuses(before: str, after: str) -> None:
    """A better proof is better; the worst repetition speaks for all."""
    blank = {"score": None, "bound": None}
    old = [row(status="optimal", **blank), row(status=before, repeat=1, **blank)]
    found = [c for c in changes(old, [row(status=after, **blank)]) if c.what == "status"]
    expected = STATUSES[before, after]
    assert [c.better for c in found] == ([] if expected is None else [expected])


def test_scores_and_bounds_must_lie_apart() -> None:
    """Groups of repetitions that overlap have not changed; groups apart have."""

    def feasible(*scores: int, bound: int = 100) -> list[Row]:
        bounds = {"status": "feasible", "bound": Decimal(bound)}
        return [row(repeat=i, score=Decimal(s), **bounds) for i, s in enumerate(scores)]

    assert changes(feasible(10, 12), feasible(12, 14)) == []
    [change] = changes(feasible(10, 12), feasible(15, 18))
    assert (change.what, change.before, change.after, change.better) == ("score", "12", "15", True)
    assert change.size == pytest.approx(0.25)
    [change] = changes(feasible(10), feasible(9))
    assert (change.what, change.better) == ("score", False)
    [change] = changes(feasible(10, bound=90), feasible(10, bound=99))
    assert (change.what, change.before, change.after, change.better) == ("bound", "90", "99", False)
    assert [c.better for c in changes(feasible(10, bound=90), feasible(10, bound=80))] == [True]


TIMES = {
    "steady, clearly slower": ([1.0, 1.01, 1.02], [1.3, 1.31, 1.32], False),
    "steady, clearly faster": ([1.3, 1.31, 1.32], [1.0, 1.01, 1.02], True),
    "less than the least factor": ([1.0, 1.01, 1.02], [1.15, 1.16, 1.17], None),
    "within the spread": ([1.0, 1.2, 1.6], [1.5, 1.7, 1.9], None),
    "beyond the spread": ([1.0, 1.2, 1.6], [2.5, 2.6, 2.7], False),
    "once each, a little": ([1.0], [1.4], None),
    "once each, a lot": ([1.0], [1.6], False),
    "once on one side": ([1.0], [1.4, 1.4, 1.4], None),
    "too short to tell": ([0.001] * 3, [0.045] * 3, None),
}


@pytest.mark.parametrize("case", TIMES)
def test_times_change_beyond_noise_only(case: str) -> None:
    """Medians must differ by more than the least factor, the spreads, and 50 ms."""
    before, after, expected = TIMES[case]
    found = changes(repeated(*before), repeated(*after))
    assert [c.what for c in found] == ([] if expected is None else ["seconds"])
    assert [c.better for c in found] == ([] if expected is None else [expected])


def test_the_least_factor_can_be_chosen() -> None:
    """A larger one lets less through."""
    before, after = repeated(1.0, 1.0), repeated(1.3, 1.3)
    assert len(changes(before, after, 1.2)) == 1
    assert changes(before, after, 1.4) == []
    assert noise_factor([1, 1], [1, 2], 1.4) == 2


def test_times_of_unequal_answers_are_not_compared() -> None:
    """A solver that now proves what it did not may take its time; failures have no times."""
    [change] = changes([row(status="feasible", bound=Decimal(20))], [row(seconds=9.0)])[:1]
    assert change.what == "status"
    assert [c.what for c in changes([failed(seconds=1.0)], [failed(seconds=9.0)])] == []


def test_contradictions_come_first() -> None:
    """A bound below the score of another solver or side is reported, before all else."""
    before = [row(solver="mip", score=Decimal(10), bound=Decimal(11)), row(seed=1)]
    after = [row(solver="mip", score=Decimal(10), bound=Decimal(11)), failed(seed=1)]
    first, second = changes(before, after)
    assert (first.what, first.before, first.after) == ("contradiction", "11", "12")
    assert first.solver == "mip / auto"
    assert (second.what, second.better) == ("status", False)


def test_what_is_worse_comes_before_what_is_better() -> None:
    """The order is: worse, then better, and large before small."""
    before = repeated(1, 1) + repeated(1, 1, seed=1) + repeated(9, 9, seed=2)
    after = repeated(2, 2) + repeated(5, 5, seed=1) + repeated(1, 1, seed=2)
    assert [c.seed for c in changes(before, after)] == [1, 0, 2]


def test_times_on_the_whole_show_what_single_ones_hide() -> None:
    """A tenth more on each of many noisy instances is no single change, but one on the whole."""
    draw = random.Random(0)
    before, after = [], []
    for i in range(200):
        before.append(row(instance_hash=str(i), seconds=draw.uniform(0.9, 1.1)))
        after.append(row(instance_hash=str(i), seconds=1.1 * draw.uniform(0.9, 1.1)))
    found = difference(before, after)
    [overall] = found.overall
    assert found.changes == ()
    assert 1.08 < overall.low < overall.ratio < overall.high < 1.12
    assert not overall.noise
    assert difference(before, before).overall[0].noise
    assert difference(before[:3], after[:3]).overall[0].noise  # too few to tell
