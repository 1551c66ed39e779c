"""Exact decimals and integers, and errors in one line."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base import numbers
from layoutopt.base.errors import LONGEST, InputError, LayoutoptError, SizeError
from layoutopt.base.numbers import lookup, unique, without

# Arithmetic of decimals that rounds nothing


decimals = st.builds(
    lambda digits, places: Decimal(f"{digits}E{places}"),
    st.integers(-(10**40), 10**40),
    st.integers(-400, 300),
)


@given(st.lists(decimals, max_size=5), decimals, st.integers(-(2**70), 2**70))
def test_nothing_is_rounded(values: list[Decimal], other: Decimal, count: int) -> None:
    """Sums, differences and products are those of fractions, in any context of the user's."""
    with localcontext() as context:
        context.prec = 3
        total = numbers.total(values)
        less = numbers.difference(total, other)
        many = numbers.times(other, count)
    assert Fraction(total) == sum(map(Fraction, values))
    assert Fraction(less) == Fraction(total) - Fraction(other)
    assert Fraction(many) == Fraction(other) * count


def test_python_s_own_operators_round() -> None:
    """Without this module scores of 29 digits would be told wrong."""
    one, tiny = Decimal("1e28"), Decimal("1")
    assert one + tiny + tiny + tiny - one != 3
    assert numbers.difference(numbers.total([one, tiny, tiny, tiny]), one) == 3


def test_shares() -> None:
    """Ratios are the nearest floats, even of numbers beyond all floats; 0 has relatives."""
    large = Decimal("1e399")
    assert numbers.share(large, numbers.times(large, 4)) == 0.25
    assert numbers.share(large, Decimal("1e-399")) == inf
    assert numbers.share(large.copy_negate(), 1) == -inf
    assert numbers.relative(1, 0) == 1e9
    assert numbers.relative(1, -4) == 0.25
    assert numbers.relative(Fraction(1, 3), Decimal(3)) == 1 / 9


# Sets of integers as sorted arrays


VALUES = st.lists(st.integers(-5, 5), max_size=12)


@given(VALUES, VALUES)
def test_sets_of_integers(one: list[int], two: list[int]) -> None:
    """Results are those of Python's sets, in ascending order."""
    a, b = np.array(one, np.int64), np.array(two, np.int64)
    assert unique(a).tolist() == sorted(set(one))
    assert without(a, np.sort(b)).tolist() == sorted(set(one) - set(two))
    at, there = lookup(unique(b), a)
    assert there.tolist() == [x in two for x in one]
    assert unique(b)[at[there]].tolist() == [x for x in one if x in two]


# What errors say is one line that any terminal can show


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("wrong", "f: $.a: wrong"),
        ("a\nb\r\nc", "f: $.a: a b c"),
        ("'\x1b[2J'", "f: $.a: '\\x1b[2J'"),
        ("'\ud800'", "f: $.a: '\\ud800'"),
        ("'\u202e'", "f: $.a: '\\u202e'"),
        ("größer", "f: $.a: größer"),
    ],
)
def test_the_line(reason: str, shown: str) -> None:
    """Line breaks become blanks, and what cannot be printed is written with a backslash."""
    error = InputError(reason, "$.a", "f")
    assert str(error) == shown
    assert str(error).encode()
    assert error.reason == reason


def test_errors() -> None:
    """They name file, place and reason, the outer ones only where these are unknown."""
    error = InputError("is wrong", "$.ops[3]", "a.json")
    assert str(error.located("$", "b.json")) == "a.json: $.ops[3]: is wrong"
    assert str(InputError("is wrong").located("$.x", "b.json")) == "b.json: $.x: is wrong"
    assert str(InputError("is wrong")) == "is wrong"
    assert isinstance(SizeError("x"), InputError)
    assert isinstance(error, LayoutoptError)
    assert isinstance(error, ValueError)


def test_long_lines_lose_what_is_in_the_middle() -> None:
    """Of a thousand characters and more, the beginning and the end are told."""
    text = str(InputError(f"unknown op {'n' * 10**6}; allowed: sink", file="f.json"))
    assert len(text) == LONGEST + len(" ... ")
    assert text.startswith("f.json: unknown op nnn")
    assert text.endswith("nnn; allowed: sink")
    assert str(InputError("n" * LONGEST)) == "n" * LONGEST


def test_doubles_are_exact_however_they_are_printed() -> None:
    """Options of NumPy for printing do not change values."""
    with np.printoptions(legacy="1.13"):
        assert numbers.exact_decimal(np.float64(0.1234567890123456)) == Decimal(
            "0.1234567890123456"
        )
