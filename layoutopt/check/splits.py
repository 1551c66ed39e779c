"""Splitting of an equation into smaller ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from layoutopt.check.terms import Term

UNROLLED = 8
"""How much harder the equations are that are left when one of many variables is fixed."""

SHARED = 4
"""How much harder it is to solve two equations for each variable more that both have."""


class Way(NamedTuple):
    """A way to split an equation into others, and about how many these are.

    Either by digits, coefficients from a boundary on into multiples of a modulus and rests; or
    by the ranges of one variable between cuts, those longer than a block as blocks of blocks.
    """

    cost: int
    boundary: int = 0
    modulus: int = 0
    which: int = -1
    cuts: Sequence[int] = ()
    block: int = 0


def best_way(active: Sequence[Term], total: int) -> Way | None:
    """Return the way that leaves fewest equations; ``None`` if there is certainly no solution.

    Parameters
    ----------
    active
        The variables by ascending coefficient, all positive and without a common divisor.
    total
        What they add up to.
    """
    by_digits = list(_carried(active, total))
    if any(way.cost == 0 for way in by_digits):  # no carry is possible
        return None
    smallest = min(range(len(active)), key=lambda k: active[k].extent)
    n = active[smallest].extent
    cost = n if len(active) <= 3 else UNROLLED * n
    unrolled = Way(cost, which=smallest, cuts=range(n + 1))
    every = [*by_digits, *_cuts(active, total), *_blocks(active, total), unrolled]
    return min(every, key=lambda way: way.cost)


def _carried(active: Sequence[Term], total: int) -> Iterator[Way]:
    """Yield ways to split by digits, each with its number of carries."""
    for boundary, modulus in _boundaries(active):
        pairs = [digits(term.coefficient, boundary, modulus) for term in active]
        shared = sum(high != 0 and rest != 0 for high, rest in pairs)
        first = min(sum(high != 0 for high, _ in pairs), sum(rest != 0 for _, rest in pairs))
        found = carries(active, total, boundary, modulus)
        cost = SHARED ** (first - 2) if shared and first > 2 else 1
        yield Way(cost * (found.stop - found.start), boundary, modulus)


def _boundaries(active: Sequence[Term]) -> Iterator[tuple[int, int]]:
    """Yield where high digits may begin, and what these are multiples of, exactly or nearly."""
    common, smallest = 0, active[0].coefficient
    for k in range(len(active) - 1, -1, -1):
        boundary = active[k].coefficient
        common = gcd(common, boundary)
        if k and active[k - 1].coefficient == boundary:
            continue
        if boundary > smallest:
            yield boundary, common
        if 1 < boundary != common:
            yield boundary, boundary


def digits(coefficient: int, boundary: int, modulus: int) -> tuple[int, int]:
    """Return the nearest multiple of the modulus, and a rest; small numbers are all rest."""
    multiple = (coefficient + modulus // 2) // modulus if coefficient >= boundary else 0
    return multiple, coefficient - multiple * modulus


def carries(active: Sequence[Term], total: int, boundary: int, modulus: int) -> range:
    """Return which multiples of the modulus the high digits may add up to."""
    low = high = most = 0
    for c, n, _ in active:
        multiple, rest = digits(c, boundary, modulus)
        low += min(0, rest * (n - 1))
        high += max(0, rest * (n - 1))
        most += multiple * (n - 1)
    first = max(0, -((high - total) // modulus))
    return range(first, max(first, min(most, (total - low) // modulus) + 1))


def _cuts(active: Sequence[Term], total: int) -> Iterator[Way]:
    """Yield ranges of a variable, in the middle one of which one other makes up for the rest."""
    spare = max((k for k, term in enumerate(active) if term.coefficient == 1), default=-1)
    if spare < 0:
        return
    span, room = sum(term.span for term in active), active[spare].span
    triangle = len(active) == 3 and all(term.coefficient == 1 for term in active)
    for k, term in enumerate(active):
        c, n, _ = term
        low = max(0, -((room - total) // c))
        high = min(n - 1, (total - span + room + term.span) // c)
        left = low + n - 1 - high
        if k == spare or low > high:
            continue
        if triangle and k == spare - 1:
            yield Way(3, which=k, cuts=(0, low, high + 1, n))
        elif 2 * left <= n:
            yield Way(1 + left, which=k, cuts=(0, low, high + 1, n))


def _blocks(active: Sequence[Term], total: int) -> Iterator[Way]:
    """Yield a variable's whole blocks and its ends, where its values run across digits."""
    for modulus in dict.fromkeys(m for _, m in _boundaries(active) if m > 1):
        low = [k for k, term in enumerate(active) if term.coefficient < modulus]
        across = [k for k in low if active[k].coefficient * active[k].extent > modulus]
        across = [k for k in across if modulus % active[k].coefficient == 0]
        if not across:
            continue
        which = across[0]
        c, n, _ = active[which]
        block = modulus // c
        rest = sum(active[k].span for k in low if k != which)
        high = [term.coefficient for term in active if term.coefficient >= modulus]
        if rest <= modulus - c and all(d % modulus == 0 for d in high):
            head = (total // c + 1) % block  # from here on blocks have no carry
            cuts: tuple[int, ...] = (0, head, n - (n - head) % block, n)
            cost = sum(a < b for a, b in pairwise(cuts))
        else:
            cuts = (0, n - n % block, n)
            cost = _blocks_cost(active, total, modulus, across)
        yield Way(cost, which=which, cuts=cuts, block=block)


def _blocks_cost(active: Sequence[Term], total: int, modulus: int, across: Sequence[int]) -> int:
    """Return about how many equations there are if all these variables become blocks."""
    cost, split = 1, list(active)
    for k in across:
        c, n, weight = active[k]
        block = modulus // c
        cost *= 2 if n % block else 1
        split[k] = Term(c, block, weight)
        split.append(Term(modulus, n // block, weight))
    found = carries(split, total, modulus, modulus)
    return cost * max(1, found.stop - found.start)
