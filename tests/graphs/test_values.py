"""Exact decimals in, exact integers of one unit out."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base.numbers import exact_decimal, to_decimal, to_integers
from tests.support import refused

decimals = st.builds(
    lambda digits, places: Decimal(digits).scaleb(-places),
    st.integers(-(10**25), 10**25),
    st.integers(-30, 60),
)


@given(st.lists(decimals))
def test_scaling_is_exact(values: list[Decimal]) -> None:
    """Integers times the unit are the values again, and the unit is the largest possible."""
    whole, unit = to_integers(values)
    assert all(isinstance(w, int) for w in whole)
    assert [w * unit for w in whole] == [Fraction(v) for v in values]
    assert unit > 0
    common = 0
    for w in whole:
        while w:
            common, w = w, common % w
    assert abs(common) in (0, 1)


@given(st.lists(decimals, min_size=1, max_size=6), st.integers(-(10**9), 10**9))
def test_sums_come_back_as_decimals(values: list[Decimal], times: int) -> None:
    """Any multiple of the unit is written exactly, with a digit after the point."""
    whole, unit = to_integers(values)
    total = times * sum(whole)
    written = to_decimal(total, unit)
    assert Fraction(written) == total * unit
    assert int(written.as_tuple().exponent) <= -1
    assert "." in f"{written:f}"


@given(decimals)
def test_decimals_are_kept(value: Decimal) -> None:
    """Decimals, their text and their fraction are all the same exact value."""
    assert exact_decimal(value) == value
    assert exact_decimal(str(value)) == value
    assert exact_decimal(Fraction(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_their_shortest_decimal(value: float) -> None:
    """A float is the decimal that prints as it, and reads back as the same float."""
    kept = exact_decimal(value)
    assert kept == Decimal(repr(value))
    assert float(kept) == value


def test_fractions_keep_all_digits() -> None:
    """A fraction of more than 28 digits is not rounded, as Python's decimals would be."""
    many = Fraction(10**40 + 1, 10**20)
    assert Fraction(exact_decimal(many)) == many
    assert Fraction(exact_decimal(-many)) == -many


def test_no_numbers() -> None:
    """Booleans, texts, infinities and endless fractions are refused in one line."""
    for value, reason in [
        (True, "not a decimal number"),
        ("", "not a decimal number"),
        ("1,5", "not a decimal number"),
        ("a\nb", "not a decimal number"),
        (None, "not a decimal number"),
        (Fraction(1, 3), "not a decimal number"),
        ([1], "not a decimal number"),
        (1j, "not a decimal number"),
        (float("nan"), "not finite"),
        ("-inf", "not finite"),
        (Decimal("sNaN"), "not finite"),
    ]:
        with refused(reason):
            exact_decimal(value)


def test_tenths_add_up() -> None:
    """0.1 + 0.2 is 0.3, and 1e-30 beside 1 is not lost."""
    whole, unit = to_integers([Decimal("0.1"), Decimal("0.2"), Decimal("0.3")])
    assert whole == [1, 2, 3]
    assert to_decimal(whole[0] + whole[1], unit) == Decimal("0.3")
    whole, unit = to_integers([Decimal(1), Decimal("1e-30")])
    assert whole == [10**30, 1]
    assert str(to_decimal(sum(whole), unit)) == "1.000000000000000000000000000001"
