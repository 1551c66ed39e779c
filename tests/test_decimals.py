"""Arithmetic of decimals that rounds nothing."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base import numbers

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
