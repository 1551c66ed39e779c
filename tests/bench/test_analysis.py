"""Summaries by solver, and differences between two runs."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest

from layoutopt.bench.analysis import BatchChange, difference, shifted_mean, summaries
from layoutopt.bench.row import Row, select, side
from tests.bench.support import failed, row
from tests.support import refused


def test_the_mean_is_geometric_and_shifted() -> None:
    """Of 0, 0 and 7 s, shifted by one, the mean is the cube root of 1 * 1 * 8, less one."""
    assert shifted_mean([0, 0, 7]) == pytest.approx(1)
    assert shifted_mean([2, 8], shift=0) == pytest.approx(4)


def test_a_summary_counts_and_averages() -> None:
    """Statuses are counted; gaps, losses and times are averaged as their descriptions say.

    On graph aa ``auto`` finds 12 and ``greedy0`` 9: it loses a quarter.  On bb ``greedy0`` fails,
    on cc it loses more than everything, which counts as everything: the mean of 1/4 and 1.
    """
    rows = [
        row(),
        row(instance_hash="bb", status="feasible", bound=Decimal(18), seconds=1.0),
        row(instance_hash="cc", score=Decimal(0), bound=Decimal(0), seconds=1.0),
        row(solver="greedy0", status="feasible", score=Decimal(9), bound=None, seconds=0.0),
        failed(solver="greedy0", instance_hash="bb", seconds=3.0),
        row(solver="greedy0", instance_hash="cc", score=Decimal(-5), bound=None, seconds=0.0),
    ]
    auto, greedy = summaries(rows)
    assert (auto.solver, auto.solves, auto.optimal, auto.feasible) == ("auto", 3, 2, 1)
    assert (auto.failed, auto.behind, auto.loss) == (0, 0, 0)
    assert auto.gap == pytest.approx(0.5 / 3)  # (18 - 12) / 12 on one of three
    assert auto.seconds == pytest.approx((1.25 * 2 * 2) ** (1 / 3) - 1)
    assert (greedy.solver, greedy.failed, greedy.behind, greedy.gap) == ("greedy0", 1, 3, None)
    assert greedy.loss == pytest.approx((0.25 + 1) / 2)
    assert greedy.seconds == pytest.approx(math.exp(math.log(11) / 3) - 1)  # a failure: its limit


def test_rows_are_selected_by_patterns() -> None:
    """Patterns are those of a shell; several of one field are alternatives."""
    rows = [row(), row(instance="greedy/hub"), row(solver="mip"), failed(solver="greedy0")]
    assert select(rows) == rows
    assert select(rows, instance=["figures/*"], solver=["auto", "m?p"]) == [rows[0], rows[2]]
    assert select(rows, status=["failed"]) == [rows[3]]
    with refused("no solver fits 'cpsat'", "'auto', 'mip', 'greedy0'"):
        select(rows, solver=["auto", "cpsat"])


def test_a_side_is_one_version_on_one_machine() -> None:
    """Where there are several, one must be chosen."""
    rows = [row(), row(version="2.0"), row(version="2.0", machine="other")]
    assert side(rows, "1.0", None) == rows[:1]
    assert side(rows, "2.0", "other") == rows[2:]
    with refused("more than one version", "'1.0', '2.0'", "--version"):
        side(rows, None, None)
    with refused("more than one machine", "--machine"):
        side(rows, "2.0", None)


def repeated(*seconds: float, **changes: object) -> list[Row]:
    return [row(repeat=i, seconds=s, **changes) for i, s in enumerate(seconds)]


def changes(before: list[Row], after: list[Row], noise: float = 1.2) -> list[BatchChange]:
    return list(difference(before, after, noise).changes)


def test_what_is_on_one_side_only_is_counted() -> None:
    """Tasks differ by instance, solver, parameters and seed, not by version and machine."""
    before = [row(), row(seed=1), row(solver="mip")]
    after = [row(version="2", machine="m"), row(parameters={}), row(instance_hash="bb")]
    found = difference(before, after)
    assert (found.compared, found.only_before, found.only_after) == (1, 2, 2)


def from_status(before: str, after: str) -> list[bool | None]:
    """Return whether a status became better; the worst repetition speaks for all."""
    blank = {"score": None, "bound": None}
    old = [row(status="optimal", **blank), row(status=before, repeat=1, **blank)]
    found = changes(old, [row(status=after, **blank)])
    return [c.better for c in found if c.what == "status"]


def times(before: list[float], after: list[float]) -> list[tuple[str, bool | None]]:
    """Return what changed between repetitions that took some seconds."""
    return [(c.what, c.better) for c in changes(repeated(*before), repeated(*after))]


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
