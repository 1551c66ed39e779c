from __future__ import annotations

import math
from decimal import Decimal

import pytest

from layoutopt.bench.analysis import best_scores, loss, shifted_mean, summaries
from layoutopt.bench.row import select, side
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


def test_versions_and_machines_are_apart() -> None:
    """Another version's better score is no loss of this one."""
    rows = [row(), row(version="2.0", score=Decimal(20)), row(machine="other")]
    assert [(s.version, s.machine, s.behind) for s in summaries(rows)] == [
        *(("1.0", "box", 0), ("1.0", "other", 0), ("2.0", "box", 0))
    ]


def test_a_loss_is_against_the_best() -> None:
    """The loss is relative to the best score; without a score there is none."""
    rows = [row(score=Decimal(-8)), row(solver="mip", score=Decimal(-10)), failed(solver="cpsat")]
    best = best_scores(rows)
    assert [loss(one, best) for one in rows] == [0, 0.25, None]


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
