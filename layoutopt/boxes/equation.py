"""One linear equation over a box of whole numbers: all its solutions, as few boxes.

The solutions of ``sum_k c_k x_k = total`` with ``0 <= x_k < n_k`` are where two lists of strided
loops name the same element.  They are found digit by digit: where some coefficients are multiples
of a number that the rest of the sum hardly exceeds, the equation falls apart into one of the high
digits and one of the low ones, for each of the few carries between them.  What is no number in
digits is cut into ranges that are; in the worst case these are single values, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from layoutopt.base.errors import SizeError
from layoutopt.boxes.box import Vector, VectorBox, plus, times


class Term(NamedTuple):
    """A variable ``0 <= x < extent`` of the sum, which is multiplied with its coefficient.

    One step of it adds ``weight`` to the quantities that the caller wants to know.
    """

    coefficient: int
    extent: int
    weight: Vector

    @property
    def span(self) -> int:
        """The coefficient times the largest value."""
        return self.coefficient * (self.extent - 1)


ROUNDS = 3
"""How often the ranges of three or more variables are narrowed."""

UNROLLED = 8
"""How much harder the equations are that are left when one of many variables is fixed."""

SHARED = 4
"""How much harder it is to solve two equations for each variable more that both have."""

REMEMBERED = 10**5
"""How many answers are kept; equal layers of a graph ask for the same ones."""


class Equations:
    """Solves equations, remembers the answers, and counts the steps, up to a limit.

    A step is one equation, or one box of an answer.
    """

    def __init__(self, limit: int) -> None:
        self.left = self.limit = limit
        self._known: dict[tuple[tuple[Term, ...], int, int], list[VectorBox]] = {}

    def solve(self, terms: tuple[Term, ...], total: int, width: int) -> list[VectorBox]:
        """Return all solutions, each in one box; all weights have length ``width``.

        The variables, whose coefficients may have any sign, or be 0, must add up to ``total``.
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
        return sum(part.members for part in self.solve(terms, total, 0))

    def spend(self, steps: int = 1) -> None:
        """Count steps, and stop where there are too many."""
        self.left -= steps
        if self.left < 0:
            raise SizeError(
                f"layouts or views are too irregular to compare their boxes in {self.limit:,} steps"
            )

    def _solve(self, terms: Iterable[Term], total: int, width: int) -> list[VectorBox]:
        self.spend()
        form = _canonical(terms, total, width)
        if form is None:
            return []
        if not form.terms:
            return [VectorBox(form.start, form.free)]
        parts = _absorbed(form.terms, form.total)
        parts = parts or self._split(sorted(form.terms), form.total, width)
        return [VectorBox(plus(form.start, part.start), form.free + part.loops) for part in parts]

    def _split(self, active: list[Term], total: int, width: int) -> list[VectorBox]:
        """Solve an equation by solving others."""
        if len(active) == 3 and all(c == 1 and n == total + 1 for c, n, _ in active):
            least, middle, most = sorted(term.weight for term in active)
            return _simplex(total, least, most, middle)
        split = _best_split(active, total)
        if split is None:
            return []
        if split.modulus:
            return self._by_digits(active, total, split, width)
        return self._by_ranges(active, total, split, width)

    def _by_digits(
        self, active: list[Term], total: int, split: _Split, width: int
    ) -> list[VectorBox]:
        """Split the sum into multiples of a modulus and rests, for each carry.

        One of the two equations is solved first, and what is free then goes into the other.
        """
        boundary, modulus = split.boundary, split.modulus
        pairs = [_digits(term.coefficient, boundary, modulus) for term in active]
        rests_first = sum(rest != 0 for _, rest in pairs) < sum(high != 0 for high, _ in pairs)
        first, then = [], []
        for (high, rest), (_, n, weight) in zip(pairs, active, strict=True):
            now, later = (rest, high) if rests_first else (high, rest)
            if now:
                first.append(Term(now, n, (later, *weight)))
            else:
                then.append(Term(later, n, weight))
        found = []
        for carry in _carries(active, total, boundary, modulus):
            left = total - modulus * carry
            now, later = (left, carry) if rests_first else (carry, left)
            for outer in self._solve(first, now, width + 1):
                more = [Term(step[0], n, step[1:]) for n, step in outer.loops]
                for inner in self._solve(more + then, later - outer.start[0], width):
                    found.append(VectorBox(plus(outer.start[1:], inner.start), inner.loops))
        return found

    def _by_ranges(
        self, active: list[Term], total: int, split: _Split, width: int
    ) -> list[VectorBox]:
        """Solve with one variable in each range between cuts; long ranges as blocks of blocks."""
        c, _, weight = active[split.which]
        rest = active[: split.which] + active[split.which + 1 :]
        found = []
        for low, high in pairwise(split.cuts):
            n = high - low
            terms = [Term(c, n, weight)]
            if split.block and n > split.block:
                blocks = Term(c * split.block, n // split.block, times(weight, split.block))
                terms = [Term(c, split.block, weight), blocks]
            parts = self._solve([*rest, *terms], total - c * low, width) if n > 0 else ()
            for part in parts:
                found.append(VectorBox(plus(part.start, weight, low), part.loops))
        return found


def _simplex(total: int, x: Vector, y: Vector, z: Vector) -> list[VectorBox]:
    """Return all solutions of ``x + y + z = total``, for the weights of the three.

    With ``u = total - x`` these are all ``y <= u``.  Either both are equal, or there is a highest
    bit that ``u`` has and ``y`` has not: all bits above it are equal, all below it are free.
    So there are squares of all sizes along the side from x to y, which should be the longest.
    """
    one, other, both = plus(z, x, -1), plus(y, z, -1), plus(y, x, -1)  # steps of u, y, and both
    start = times(x, total)
    found = [VectorBox(start, ((total + 1, both),))]
    bit = 1
    while bit <= total:
        first = plus(start, one, bit)
        whole, left = divmod(total + 1, 2 * bit)
        if whole:
            square = ((bit, one), (bit, other))
            found.append(VectorBox(first, (*square, (whole, times(both, 2 * bit)))))
        if left > bit:
            first = plus(first, both, 2 * bit * whole)
            found.append(VectorBox(first, ((left - bit, one), (bit, other))))
        bit *= 2
    return found


class _CanonicalEquation(NamedTuple):
    """An equation in normal form.

    ``start`` has the wanted quantities where all variables are 0, ``free`` the ``(extent, step)``
    of each variable that the sum does not hold.  The other terms' coefficients are positive and
    have no common divisor; ``total``, what they add up to, is at most half of what they can.
    """

    start: Vector
    free: tuple[tuple[int, Vector], ...]
    terms: list[Term]
    total: int


def _canonical(terms: Iterable[Term], total: int, width: int) -> _CanonicalEquation | None:
    """Return an equation in normal form, its ranges narrowed; ``None`` if it has no solution."""
    start: Vector = (0,) * width
    free: list[tuple[int, Vector]] = []
    active: list[Term] = []
    for term in terms:
        if term.extent == 1:
            continue
        if term.coefficient == 0:
            free.append((term.extent, term.weight))
        elif term.coefficient > 0:
            active.append(term)
        else:
            total -= term.span
            start = plus(start, term.weight, term.extent - 1)
            active.append(_reversed(term))
    found = _divided(active, total)
    rounds, before = 0, None
    while found and found[0] != before and (rounds < ROUNDS or len(found[0]) < 3):
        active, total = found
        before, rounds = list(active), rounds + 1
        for narrowed in (_bounded, _congruent):
            for k, (c, _, weight) in enumerate(active):
                low, step, n = narrowed(active, k, total)
                if n < 1:
                    return None
                if (low, step, n) != (0, 1, active[k].extent):
                    total -= c * low
                    start = plus(start, weight, low)
                    active[k] = Term(c * step, n, times(weight, step))
        found = _divided([term for term in active if term.extent > 1], total)
    return found and _halved(start, tuple(free), *found)


def _halved(
    start: Vector, free: tuple[tuple[int, Vector], ...], terms: list[Term], total: int
) -> _CanonicalEquation:
    """Return an equation, all its values counted from the other end if that makes it smaller."""
    span = sum(term.span for term in terms)
    if 2 * total <= span:
        return _CanonicalEquation(start, free, terms, total)
    for term in terms:
        start = plus(start, term.weight, term.extent - 1)
    return _CanonicalEquation(start, free, [_reversed(term) for term in terms], span - total)


def _divided(active: list[Term], total: int) -> tuple[list[Term], int] | None:
    """Return an equation without its common divisor; ``None`` if it has no solution."""
    common = gcd(*[c for c, _, _ in active])
    if common == 0:
        return None if total else (active, total)
    if total % common:
        return None
    if common > 1:
        active = [Term(c // common, n, weight) for c, n, weight in active]
    return active, total // common


def _reversed(term: Term) -> Term:
    """Return a variable that counts its values from the other end, with positive coefficient."""
    return Term(abs(term.coefficient), term.extent, times(term.weight, -1))


def _bounded(active: Sequence[Term], k: int, total: int) -> tuple[int, int, int]:
    """Return first value, step and number of values for which the others can make up."""
    c, n, _ = active[k]
    others = sum([d * (m - 1) for d, m, _ in active]) - c * (n - 1)
    low, high = max(0, -((others - total) // c)), min(n - 1, total // c)
    return low, 1, high - low + 1


def _congruent(active: Sequence[Term], k: int, total: int) -> tuple[int, int, int]:
    """Return first value, step and number of values that leave what the others can divide."""
    c, n, _ = active[k]
    common = gcd(*[d for j, (d, _, _) in enumerate(active) if j != k])
    if common <= 1:  # 0 without others: the bounds have left the one value there is
        return 0, 1, n
    shared = gcd(c, common)
    if total % shared:
        return 0, 1, 0
    step = common // shared
    low = total // shared * pow(c // shared, -1, step) % step
    return low, step, (n - 1 - low) // step + 1


def _absorbed(active: Sequence[Term], total: int) -> list[VectorBox]:
    """Return all solutions as one box, if one variable makes up for any values of the others.

    If none does, the list is empty.  The equation is in normal form: a variable that need not be
    negative then need not be too large either, as the total is at most half of the span.
    """
    span = sum(term.span for term in active)
    for k, (c, n, weight) in enumerate(active):
        if c == 1 and span - (n - 1) <= total:
            others = [*active[:k], *active[k + 1 :]]
            loops = tuple([(m, plus(w, weight, -d)) for d, m, w in others])
            return [VectorBox(times(weight, total), loops)]
    return []


class _Split(NamedTuple):
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


def _best_split(active: Sequence[Term], total: int) -> _Split | None:
    """Return the way that leaves fewest equations; ``None`` if there is certainly no solution.

    The variables have ascending coefficients, all positive and without a common divisor.
    """
    by_digits = list(_carried(active, total))
    if any(split.cost == 0 for split in by_digits):  # no carry is possible
        return None
    smallest = min(range(len(active)), key=lambda k: active[k].extent)
    n = active[smallest].extent
    cost = n if len(active) <= 3 else UNROLLED * n
    unrolled = _Split(cost, which=smallest, cuts=range(n + 1))
    every = [*by_digits, *_cuts(active, total), *_blocks(active, total), unrolled]
    return min(every, key=lambda split: split.cost)


def _carried(active: Sequence[Term], total: int) -> Iterator[_Split]:
    """Yield ways to split by digits, each with its number of carries."""
    for boundary, modulus in _boundaries(active):
        pairs = [_digits(term.coefficient, boundary, modulus) for term in active]
        shared = sum(high != 0 and rest != 0 for high, rest in pairs)
        first = min(sum(high != 0 for high, _ in pairs), sum(rest != 0 for _, rest in pairs))
        found = _carries(active, total, boundary, modulus)
        cost = SHARED ** (first - 2) if shared and first > 2 else 1
        yield _Split(cost * (found.stop - found.start), boundary, modulus)


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


def _digits(coefficient: int, boundary: int, modulus: int) -> tuple[int, int]:
    """Return the nearest multiple of the modulus, and a rest; small numbers are all rest."""
    multiple = (coefficient + modulus // 2) // modulus if coefficient >= boundary else 0
    return multiple, coefficient - multiple * modulus


def _carries(active: Sequence[Term], total: int, boundary: int, modulus: int) -> range:
    """Return which multiples of the modulus the high digits may add up to."""
    low = high = most = 0
    for c, n, _ in active:
        multiple, rest = _digits(c, boundary, modulus)
        low += min(0, rest * (n - 1))
        high += max(0, rest * (n - 1))
        most += multiple * (n - 1)
    first = max(0, -((high - total) // modulus))
    return range(first, max(first, min(most, (total - low) // modulus) + 1))


def _cuts(active: Sequence[Term], total: int) -> Iterator[_Split]:
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
            yield _Split(3, which=k, cuts=(0, low, high + 1, n))
        elif 2 * left <= n:
            yield _Split(1 + left, which=k, cuts=(0, low, high + 1, n))


def _blocks(active: Sequence[Term], total: int) -> Iterator[_Split]:
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
        yield _Split(cost, which=which, cuts=cuts, block=block)


def _blocks_cost(active: Sequence[Term], total: int, modulus: int, across: Sequence[int]) -> int:
    """Return about how many equations there are if all these variables become blocks."""
    cost, split = 1, list(active)
    for k in across:
        c, n, weight = active[k]
        block = modulus // c
        cost *= 2 if n % block else 1
        split[k] = Term(c, block, weight)
        split.append(Term(modulus, n // block, weight))
    found = _carries(split, total, modulus, modulus)
    return cost * max(1, found.stop - found.start)
