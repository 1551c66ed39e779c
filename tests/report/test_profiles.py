from __future__ import annotations

import math
from decimal import Decimal

import pytest

from layoutopt.bench.row import Row
from layoutopt.report.batch import (
    PLOTS,
    gap_over_time,
    gap_profile,
    instances_with_traces,
    performance_profile,
    plot,
    runs,
    time_profile,
)
from tests.pictures.test_chart import number, paths, read, texts
from tests.report.samples import row
from tests.support import refused


def solve(instance: str, solver: str, seconds: float, gap: str = "0", **fields: object) -> Row:
    """Return a row of a score of 100 and a bound so much above it."""
    bound = 100 + 100 * Decimal(gap)
    status = "optimal" if bound == 100 else "feasible"
    known = {"score": Decimal(100), "bound": bound, "status": status}
    return row(**({"instance": instance, "solver": solver, "seconds": seconds} | known | fields))


@pytest.fixture
def four() -> list[Row]:
    """Return four instances: ``a`` is fastest on two, ``b`` on one, and nobody proves the last."""
    return [
        solve("1", "a", 1.0),
        solve("1", "b", 2.0),
        solve("2", "a", 1.0),
        solve("2", "b", 8.0),
        solve("3", "a", 9.0, "0.5"),
        solve("3", "b", 4.0, "0"),
        solve("4", "a", 9.0, "0.1"),
        solve("4", "b", 9.0, "0.01"),
    ]


def steps(drawn: str, solver: int) -> list[tuple[float, float]]:
    """Return the corners of a line: shares of the width, and values of a share axis."""
    root = read(drawn)
    at = {text.text: text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    bottom, top = number(at["0%"], "y") - 3.5, number(at["100%"], "y") - 3.5
    words = str(paths(root)[solver].get("d")).replace("M", "").replace("V", " ")
    corners = [tuple(map(float, part.split())) for part in words.split("H")]
    return [(x, round((bottom - y) / (bottom - top), 2)) for x, y in corners]


def heights(drawn: str, solver: int) -> list[float]:
    """Return the values of a line, without those that repeat."""
    return list(dict.fromkeys(y for _, y in steps(drawn, solver)))


def test_a_profile_counts_ratios(four: list[Row]) -> None:
    """Ratios of a are 1, 1, never, never; those of b are 2, 8, 1, never.

    So a begins at a half and stays there, and b climbs from a quarter to a half to three.
    """
    drawn = performance_profile(runs(four))
    assert heights(drawn, 0) == [0.5]
    assert heights(drawn, 1) == [0.25, 0.5, 0.75]
    (x0, _), (x2, _), (x8, _), *_ = steps(drawn, 1)
    assert (x8 - x0) / (x2 - x0) == pytest.approx(3, abs=0.02)  # log 8 = 3 log 2
    assert "Dolan and Moré 2002" in drawn


def test_a_profile_over_time(four: list[Row]) -> None:
    """From the least time on: a proves two at 1 s, b one each at 2, 4 and 8 s."""
    drawn = time_profile(runs(four))
    assert heights(drawn, 0) == [0.5]
    assert heights(drawn, 1) == [0, 0.25, 0.5, 0.75]


def test_a_profile_of_gaps_knows_the_best_bound(four: list[Row]) -> None:
    """On the third instance b proves that a's score is optimal; on the last 1 of 101 is missing."""
    assert [runs(four).missing((i, i), "a") for i in "1234"] == [0, 0, 0, 1 / 101]
    drawn = gap_profile(runs(four))
    assert heights(drawn, 0) == [0.75, 1]
    assert heights(drawn, 1) == [0.75, 1]
    silent = [*four, row(instance="5", solver="b", status="unknown")]
    assert heights(gap_profile(runs(silent)), 1) == [0.6, 0.8]


@pytest.mark.parametrize(
    ("score", "bound", "missing"),
    [
        ("0", "5", 1),
        ("-2", "0", 1),
        ("-2", "3", 1),
        ("-4", "-2", 0.5),
        ("0", "0", 0),
        ("3", "4", 0.25),
    ],
)
def test_what_is_missing_is_at_most_all(score: str, bound: str, missing: float) -> None:
    """Also for scores of 0 and below, of which a gap would be a huge multiple."""
    found = runs([row(score=Decimal(score), bound=Decimal(bound), status="feasible")])
    assert found.missing(found.instances[0], "auto") == missing


def test_short_times_are_alike() -> None:
    """Nobody is ten times as fast by a millisecond."""
    rows = [solve("1", "a", 0.0001), solve("1", "b", 0.009)]
    assert heights(performance_profile(runs(rows)), 1) == [1]


def test_repetitions_count_by_their_median() -> None:
    """Two of three solves have no proof: the median has none; with two of three it has one."""
    times = [1.0, 5.0, 3.0]
    rows = [solve("1", "a", t, seed=i) for i, t in enumerate(times)]
    instance = ("1", "1")
    assert runs(rows).seconds(instance, "a") == 3
    open_rows = [solve("1", "a", t, "0.5" if i else "0", seed=i) for i, t in enumerate(times)]
    assert runs(open_rows).seconds(instance, "a") == math.inf
    assert runs(open_rows).missing(instance, "a") == 0  # the best bound is 100
    assert runs(rows).seconds(instance, "nobody") == math.inf


def test_what_differs_is_in_the_name() -> None:
    """Parameters, versions and machines are told only where rows differ in them."""
    same = {"time_limit": 60.0, "gap": 0.0}
    rows = [
        solve("1", "a", 1, parameters=same | {"workers": 1}),
        solve("1", "a", 1, parameters=same | {"workers": 2}),
        solve("1", "a", 1, parameters=same | {"workers": 2}, version="2.0"),
    ]
    assert runs(rows).solvers == (
        "a, version 1.0, workers 1",
        "a, version 1.0, workers 2",
        "a, version 2.0, workers 2",
    )
    assert runs(rows[:1]).solvers == ("a",)


def test_equal_names_of_different_graphs_are_two_instances() -> None:
    """The hash tells them apart."""
    rows = [solve("1", "a", 1), solve("1", "a", 1, instance_hash="other")]
    assert len(runs(rows).instances) == 2


def test_gap_over_time_shows_what_stayed_open_longest() -> None:
    """By default that instance, which the title names; solvers without a gap are not in the key."""
    trace = ((1.0, 50.0, 100.0), (3.0, 80.0, 100.0))
    rows = [
        solve("quick", "a", 4, trace=trace),
        solve("slow", "a", 40, trace=trace),
        solve("slow", "b", 90, trace=((1.0, 50.0, None), (2.0, 60.0, None))),
    ]
    found = runs(rows)
    assert [name for name, _ in instances_with_traces(found)] == ["slow", "quick"]
    told = texts(read(gap_over_time(found)))
    assert "Gap over time: slow" in told
    assert "a" in told
    assert "b" not in told
    assert "Gap over time: quick" in texts(read(gap_over_time(found, ("quick", "quick"))))


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_is_drawn(name: str) -> None:
    """By its name, as SVG."""
    trace = ((1.0, 50.0, 100.0), (3.0, 80.0, 100.0))
    drawn = plot([solve("1", "a", 4, trace=trace)], name)
    assert len(paths(read(drawn))) == 1


@pytest.mark.parametrize("name", ["profile", "time", "gap"])
def test_nothing_proved_is_no_error(name: str) -> None:
    """The line stays at the bottom."""
    drawn = plot([row(status="failed"), row(instance="j", status="unknown")], name)
    assert heights(drawn, 0) == [0]


def test_wrong_plots_are_refused(four: list[Row]) -> None:
    """One line names what there is."""
    with refused("'profiles'", "profile, time, gap, trace"):
        plot(four, "profiles")
    with refused("no results"):
        plot([], "profile")
    with refused("no solve has a gap over time"):
        plot(four, "trace")
