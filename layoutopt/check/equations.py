"""One linear equation over a box of whole numbers: all its solutions, as few boxes.

The solutions of ``sum_k c_k x_k = total`` with ``0 <= x_k < n_k`` are where two lists of strided
loops name the same element.  They are found digit by digit: where some coefficients are multiples
of a number that the rest of the sum hardly exceeds, the equation falls apart into one of the high
digits and one of the low ones, for each of the few carries between them.  What is no number in
digits is cut into ranges that are; in the worst case these are single values, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from layoutopt.base.errors import SizeError
from layoutopt.check.splits import Way, best_way, carries, digits
from layoutopt.check.terms import SolutionBox, Term, Vector, absorbed, plus, tidied, times

REMEMBERED = 10**5
"""How many answers are kept; equal layers of a graph ask for the same ones."""


class Equations:
    """Solves equations, remembers the answers, and counts the steps.

    Parameters
    ----------
    limit
        How many steps may be taken in all; a step is one equation, or one box of an answer.
    """

    def __init__(self, limit: int) -> None:
        self.left = limit
        self._known: dict[tuple[tuple[Term, ...], int, int], list[SolutionBox]] = {}

    def solve(self, terms: tuple[Term, ...], total: int, width: int) -> list[SolutionBox]:
        """Return all solutions, each in one box.

        Parameters
        ----------
        terms
            The variables; their coefficients may have any sign, or be 0.
        total
            What they must add up to.
        width
            The length of all weights.

        Raises
        ------
        SizeError
            If the steps are used up.
        """
        key = (terms, total, width)
        found = self._known.get(key)
        if found is None:
            found = self._solve(terms, total, width)
            if len(self._known) == REMEMBERED:
                self._known.clear()
            self._known[key] = found
        self.spend(len(found))
        return found

    def count(self, terms: tuple[Term, ...], total: int) -> int:
        """Return the number of solutions; weights do not matter."""
        return sum(part.solutions for part in self.solve(terms, total, 0))

    def spend(self, steps: int = 1) -> None:
        """Count steps, and stop where there are too many."""
        self.left -= steps
        if self.left < 0:
            raise SizeError(
                "the layouts are too irregular to be checked piece by piece, "
                "and the graph is too large to be checked element by element"
            )

    def _solve(self, terms: Iterable[Term], total: int, width: int) -> list[SolutionBox]:
        self.spend()
        tidy = tidied(terms, total, width)
        if tidy is None:
            return []
        if not tidy.terms:
            return [SolutionBox(tidy.start, tidy.free)]
        parts = absorbed(tidy.terms, tidy.total)
        parts = parts or self._split(sorted(tidy.terms), tidy.total, width)
        return [SolutionBox(plus(tidy.start, part.start), tidy.free + part.loops) for part in parts]

    def _split(self, active: list[Term], total: int, width: int) -> list[SolutionBox]:
        """Solve an equation by solving others."""
        if len(active) == 3 and all(c == 1 and n == total + 1 for c, n, _ in active):
            least, middle, most = sorted(term.weight for term in active)
            return _simplex(total, least, most, middle)
        way = best_way(active, total)
        if way is None:
            return []
        if way.modulus:
            return self._by_digits(active, total, way, width)
        return self._by_ranges(active, total, way, width)

    def _by_digits(self, active: list[Term], total: int, way: Way, width: int) -> list[SolutionBox]:
        """Split the sum into multiples of a modulus and rests, for each carry.

        One of the two equations is solved first, and what is free then goes into the other.
        """
        boundary, modulus = way.boundary, way.modulus
        pairs = [digits(term.coefficient, boundary, modulus) for term in active]
        rests_first = sum(rest != 0 for _, rest in pairs) < sum(high != 0 for high, _ in pairs)
        first, then = [], []
        for (high, rest), (_, n, weight) in zip(pairs, active, strict=True):
            now, later = (rest, high) if rests_first else (high, rest)
            if now:
                first.append(Term(now, n, (later, *weight)))
            else:
                then.append(Term(later, n, weight))
        found = []
        for carry in carries(active, total, boundary, modulus):
            left = total - modulus * carry
            now, later = (left, carry) if rests_first else (carry, left)
            for outer in self._solve(first, now, width + 1):
                more = [Term(step[0], n, step[1:]) for n, step in outer.loops]
                for inner in self._solve(more + then, later - outer.start[0], width):
                    found.append(SolutionBox(plus(outer.start[1:], inner.start), inner.loops))
        return found

    def _by_ranges(self, active: list[Term], total: int, way: Way, width: int) -> list[SolutionBox]:
        """Solve with one variable in each range between cuts; long ranges as blocks of blocks."""
        c, _, weight = active[way.which]
        rest = active[: way.which] + active[way.which + 1 :]
        found = []
        for low, high in pairwise(way.cuts):
            n = high - low
            terms = [Term(c, n, weight)]
            if way.block and n > way.block:
                blocks = Term(c * way.block, n // way.block, times(weight, way.block))
                terms = [Term(c, way.block, weight), blocks]
            parts = self._solve([*rest, *terms], total - c * low, width) if n > 0 else ()
            for part in parts:
                found.append(SolutionBox(plus(part.start, weight, low), part.loops))
        return found


def _simplex(total: int, x: Vector, y: Vector, z: Vector) -> list[SolutionBox]:
    """Return all solutions of ``x + y + z = total``, for the weights of the three.

    With ``u = total - x`` these are all ``y <= u``.  Either both are equal, or there is a highest
    bit that ``u`` has and ``y`` has not: all bits above it are equal, all below it are free.
    So there are squares of all sizes along the side from x to y, which should be the longest.
    """
    one, other, both = plus(z, x, -1), plus(y, z, -1), plus(y, x, -1)  # steps of u, y, and both
    start = times(x, total)
    found = [SolutionBox(start, ((total + 1, both),))]
    bit = 1
    while bit <= total:
        first = plus(start, one, bit)
        whole, left = divmod(total + 1, 2 * bit)
        if whole:
            square = ((bit, one), (bit, other))
            found.append(SolutionBox(first, (*square, (whole, times(both, 2 * bit)))))
        if left > bit:
            first = plus(first, both, 2 * bit * whole)
            found.append(SolutionBox(first, ((left - bit, one), (bit, other))))
        bit *= 2
    return found
