"""Boxes, and probabilistic comparison of the multisets of their members.

A box is ``(tag, start, loops)``: its members are the vectors ``start + sum_l i_l * steps_l`` for
``0 <= i_l < extent_l``, with one integer per quantity of its list (such as an element and its
location).  With a variable ``X_q`` for each quantity and a factor for each tag, a list of boxes is
the polynomial ``sum tag * prod_q X_q^{member_q}``; two lists have the same members with equal
multiplicity exactly if their polynomials are equal.  A loop is a geometric series, so evaluating a
polynomial takes no time per member.  Points are drawn at random from a prime field of size ``p``
after the certificate is known; different polynomials of degree ``d`` are equal there with
probability at most ``d / p`` (Schwartz, J. ACM 27, 1980).  Members are below ``2^56``, so that this
is less than ``2^-60``.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from math import gcd, prod
from typing import NamedTuple

from layoutopt.certificate.refused import Refused, listed

MOST = 2**56  # upper limit of numbers of elements and of members
EXPONENTS = (127, 521, 2203, 9689)  # exponents of Mersenne primes


class CertifiedBox(NamedTuple):
    """Members ``start + sum_l i_l * steps_l``; a loop is ``(extent, steps)``."""

    tag: tuple[int, ...]
    start: tuple[int, ...]
    loops: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def members(self) -> int:
        """Number of members."""
        return prod([n for n, _ in self.loops])

    def ends(self, q: int) -> tuple[int, int]:
        """Return the smallest and the largest value of a quantity."""
        spans = [steps[q] * (n - 1) for n, steps in self.loops]
        return self.start[q] + sum(min(0, s) for s in spans), self.start[q] + sum(
            max(0, s) for s in spans
        )

    def of(self, *which: int, tag: tuple[int, ...] | None = None) -> CertifiedBox:
        """Return the box of some quantities, optionally with another tag."""
        loops = tuple([(n, tuple([steps[q] for q in which])) for n, steps in self.loops])
        return CertifiedBox(
            self.tag if tag is None else tag, tuple([self.start[q] for q in which]), loops
        )


def read_boxes(given: object, tags: int, width: int | None, what: str) -> list[CertifiedBox]:
    """Parse boxes of a certificate, each ``[[tag...], [start...], [[extent, [step...]]...]]``."""
    found = []
    for box in listed(given, None, what):
        tag, start, loops = listed(box, 3, f"a box of {what}")
        first = whole(start, width, f"the start of a box of {what}")
        steps: list[tuple[int, tuple[int, ...]]] = []
        for loop in listed(loops, None, f"the loops of a box of {what}"):
            n, step = listed(loop, 2, f"a loop of {what}")
            [extent] = whole([n], 1, what)
            steps.append((extent, whole(step, len(first), f"a step of {what}")))
        if any(n < 1 for n, _ in steps) or prod([n for n, _ in steps]) > MOST:
            raise Refused(f"a loop of {what} has the extents {[n for n, _ in steps]}")
        found.append(
            CertifiedBox(whole(tag, tags, f"the tag of a box of {what}"), first, tuple(steps))
        )
        if any(max(map(abs, found[-1].ends(q))) >= MOST for q in range(len(first))):
            raise Refused(f"a box of {what} exceeds 2^56")
    return found


def whole(given: object, length: int | None, what: str) -> tuple[int, ...]:
    """Return a list of integers."""
    for x in listed(given, length, what):
        if type(x) is not int or not -MOST < x < MOST:
            raise Refused(f"{what}: {str(x)[:20]} is not an integer below 2^56")
    return tuple(listed(given, None, what))


class Sums:
    """Values of polynomials at random points of a sufficiently large field.

    ``largest`` is the largest coefficient of polynomials that are compared.
    """

    def __init__(self, largest: int) -> None:
        fit = [e for e in EXPONENTS if largest < 2 ** (e - 2)]
        if not fit:
            raise Refused("the values are too large to compare")
        self.prime = 2 ** fit[0] - 1
        self._points: dict[Hashable, int] = {}
        self._series: dict[Hashable, int] = {}

    def point(self, name: Hashable) -> int:
        """Return the value of a variable, which is a quantity or a tag."""
        if name not in self._points:
            self._points[name] = 2 + secrets.randbelow(self.prime - 3)
        return self._points[name]

    def total(self, boxes: Iterable[CertifiedBox], times: int = 1) -> int:
        """Return the value of the polynomial of a list of boxes."""
        p, found = self.prime, 0
        for tag, start, loops in boxes:
            value = self._power(start) * (self.point(tag) if tag else 1) % p
            for n, steps in loops:
                if (n, steps) not in self._series:
                    self._series[n, steps] = self._geometric(n, steps)
                value = value * self._series[n, steps] % p
            found += value
        return int(times * found % p)

    def _power(self, exponents: Sequence[int]) -> int:
        found = 1
        for q, exponent in enumerate(exponents):
            found = found * pow(self.point(q), exponent, self.prime) % self.prime
        return found

    def _geometric(self, n: int, steps: Sequence[int]) -> int:
        ratio = self._power(steps)
        if ratio == 1:
            return n
        return int((pow(ratio, n, self.prime) - 1) * pow(ratio - 1, -1, self.prime) % self.prime)


def disjoint(a: CertifiedBox, b: CertifiedBox) -> bool:
    """Return whether two boxes of two quantities are proved to have no common member."""
    for q in range(2):
        (low, high), (start, end) = a.ends(q), b.ends(q)
        common = gcd(*[steps[q] for box in (a, b) for _, steps in box.loops])
        if high < start or end < low or (common > 1 and (a.start[q] - b.start[q]) % common):
            return True
    same = [(n, steps[0]) for n, steps in a.loops] == [(n, steps[0]) for n, steps in b.loops]
    strides = sorted((abs(steps[0]), n) for n, steps in a.loops if n > 1)
    simple = all(0 < s * n <= t for (s, n), (t, _) in pairwise([*strides, (MOST, 1)]))
    return same and simple and a.start[0] == b.start[0] and differ(a, b, 1, 1)


def differ(a: CertifiedBox, b: CertifiedBox, q: int, r: int) -> bool:
    """Return whether quantities of two boxes are proved to differ at each index of equal loops."""
    loops = [(n, (s[q] - t[r],)) for (n, s), (_, t) in zip(a.loops, b.loops, strict=True)]
    gap = CertifiedBox((), (a.start[q] - b.start[r],), tuple(loops))
    low, high = gap.ends(0)
    common = gcd(*[steps[0] for _, steps in loops])
    return low > 0 or high < 0 or (common > 0 and gap.start[0] % common != 0)
