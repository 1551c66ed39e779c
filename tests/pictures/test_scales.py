from __future__ import annotations

import math
from itertools import pairwise

import pytest

from layoutopt.pictures.chart import ZERO, ChartAxis, scale


def told(axis: ChartAxis, *values: float) -> list[str]:
    """Return what the ticks say."""
    return [words for _, words in scale(axis, values).ticks]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0, 1), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0, 9.3), ["0", "2", "4", "6", "8", "10"]),
        ((3, 3), ["1", "2", "3", "4", "5"]),  # 1.5 to 4.5
        ((-250, 40), ["-300", "-200", "-100", "0", "100"]),
        ((0, 123456), ["0", "50,000", "100,000", "150,000"]),
        ((2e8, 2.0004e8), [f"2.000{i}·10⁸" for i in range(5)]),
        ((0, 3e7), ["0", "1·10⁷", "2·10⁷", "3·10⁷"]),
    ],
)
def test_linear_ticks_are_round(values: tuple[float, ...], expected: list[str]) -> None:
    """Steps are 1, 2 or 5 times a power of ten, and ticks span the values."""
    found = scale(ChartAxis("x"), values)
    assert [words for _, words in found.ticks] == expected
    steps = {round(b - a, 9) for (a, _), (b, _) in pairwise(found.ticks)}
    [step] = steps
    head = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert round(head, 6) in (1, 2, 5)
    assert found.low <= min(values) <= max(values) <= found.high


def test_percent_and_given_ends() -> None:
    """Shares from 0 to 1 are told in percent, and given ends stay."""
    axis = ChartAxis("share", percent=True, low=0.0, high=1.0)
    assert told(axis, 0.3, 0.4) == ["0%", "20%", "40%", "60%", "80%", "100%"]
    found = scale(ChartAxis("x", low=0.0), [0.2, 7.0])
    assert (found.low, found.high) == (0, 8)


def test_a_linear_axis_places_values_by_difference() -> None:
    """Both ends are 0 and 1, and the middle is halfway."""
    found = scale(ChartAxis("x", low=2.0, high=6.0), [])
    assert [found.at(x) for x in (2, 3, 4, 6)] == [0, 0.25, 0.5, 1]


def test_a_logarithmic_axis_places_values_by_ratio() -> None:
    """From 1 to 10,000 the place of 100 is the middle; powers of ten have ticks."""
    found = scale(ChartAxis("x", log=True), [1, 10_000])
    assert found.at(100) == pytest.approx(0.5)
    assert [words for _, words in found.ticks] == ["1", "10", "100", "1,000", "10,000"]


def test_narrow_and_wide_logarithmic_axes() -> None:
    """Within two powers of ten 2 and 5 have ticks, too; over many powers some are left out."""
    assert told(ChartAxis("x", log=True), 0.9, 30) == ["1", "2", "5", "10", "20"]
    wide = scale(ChartAxis("x", log=True), [1e-12, 1e3]).ticks
    assert 3 <= len(wide) <= 7
    assert {round(math.log10(b / a)) for (a, _), (b, _) in pairwise(wide)} == {3}


def test_zero_has_a_place_on_a_logarithmic_axis() -> None:
    """It stands at the low end, the least other value some way from it, and a tick says so."""
    found = scale(ChartAxis("gap", log=True, percent=True), [0.0, 1e-3, 10.0])
    assert found.at(0.0) == 0
    assert found.at(1e-3) == pytest.approx(ZERO)
    assert found.at(10.0) == pytest.approx(1)
    assert found.ticks[0] == (0.0, "0")
    assert [words for _, words in found.ticks[1:]] == ["0.1%", "1%", "10%", "100%", "1,000%"]
    assert scale(ChartAxis("gap", log=True), [1e-3, 10.0]).at(1e-3) == 0


@pytest.mark.parametrize("log", [False, True])
def test_no_values_and_one_value_are_no_error(log: bool) -> None:
    """There are ticks, and a single value stands inside."""
    assert scale(ChartAxis("x", log=log), []).ticks
    assert 0 < scale(ChartAxis("x", log=log), [7.0]).at(7.0) < 1


def test_a_given_low_end_stays() -> None:
    """Also where all values are near it, as those of a solver that is always fastest."""
    found = scale(ChartAxis("factor", log=True, low=1.0), [1.0, 1.1])
    assert (found.low, found.high, found.at(1.0)) == (1, 2, 0)
