"""What explanations must say, found by trying every choice of tiny graphs with changed values.

All of this rests on :mod:`models.exhaustive` and on the specification; nothing of ``explain`` is
used.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

from layoutopt import Graph, evaluate
from layoutopt.base.result import Piece
from models.exhaustive import maximum
from tests.models.instances import stated

LARGE = 10**6
"""More than all other pairs of a tiny graph can earn."""

NEAR = Fraction(1, 10**5)
"""Less than the distance of any two values of a pair at which choices change."""


class Trying:
    """A graph, its pairs merged by their tensors, and the optima of all that it could be."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        merged: dict[frozenset[int], tuple[int, int, Fraction]] = {}
        for a, b, value in graph.pairs:
            before = merged.get(frozenset((a, b)), (a, b, Fraction(0)))
            merged[frozenset((a, b))] = (*before[:2], before[2] + Fraction(value))
        self.ends = [(a, b) for a, b, _ in merged.values()]
        self.values = [value for *_, value in merged.values()]

    def names(self, p: int) -> tuple[str, str]:
        """Return the names of a pair's tensors."""
        a, b = self.ends[p]
        return self.graph.tensor_name(a), self.graph.tensor_name(b)

    def best(self, values: Sequence[Fraction]) -> Fraction:
        """Return the optimum with other values."""
        scale = math.lcm(*(value.denominator for value in values))
        return maximum(stated(self._with([int(value * scale) for value in values]))) / scale

    def at(self, p: int, value: Fraction) -> Fraction:
        """Return the optimum with another value of one pair."""
        return self.best([value if n == p else v for n, v in enumerate(self.values)])

    def without(self, pairs: Collection[int]) -> list[Fraction]:
        """Return all values, those of some pairs 0."""
        return [Fraction(0) if n in pairs else v for n, v in enumerate(self.values)]

    def most(self, p: int) -> int:
        """Return at how many positions a pair can match."""
        alone = [Fraction(n == p) for n in range(len(self.values))]
        return int(self.best(alone))

    def won(self, p: int, most: int, pairs: Collection[int] = ()) -> Fraction:
        """Return the best score with a pair won, some others being worth nothing."""
        values = self.without(pairs)
        own, values[p] = values[p], Fraction(LARGE)
        return self.best(values) - (LARGE - own) * most

    def fewest(self, p: int, most: int) -> int | None:
        """Return how many others must be worth nothing for a pair's being won to be optimal."""
        others = [n for n in range(len(self.values)) if n != p]
        for number in range(len(others) + 1):
            for pairs in combinations(others, number):
                if self.suffices(p, most, pairs):
                    return number
        return None

    def suffices(self, p: int, most: int, pairs: Collection[int]) -> bool:
        """Return whether winning a pair is optimal if some others are worth nothing."""
        return self.won(p, most, pairs) == self.best(self.without(pairs))

    def matched(self, layouts: dict[str, tuple[Piece, ...]]) -> list[int]:
        """Return at how many positions each pair matches; the layouts must be legal."""
        found = evaluate(self._with([1] * len(self.values)), layouts)
        assert not found.violations
        return [pair.matched for pair in found.pairs]

    def score(self, matched: Sequence[int]) -> Fraction:
        """Return what so many matches earn."""
        return sum((v * m for v, m in zip(self.values, matched, strict=True)), Fraction(0))

    def _with(self, values: Sequence[int]) -> Graph:
        other = self.graph.copy()
        ends = zip(self.ends, values, strict=True)
        other.pairs = [(a, b, Decimal(value)) for (a, b), value in ends]
        return other
