"""Pairs in the order of what they lose, and those together that are alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from layoutopt.decimals import times
from layoutopt.result import PairScore


def by_loss(pairs: Iterable[PairScore]) -> list[PairScore]:
    """Return pairs, those first that lose most, and of these the most valuable ones."""
    return sorted(pairs, key=lambda p: (p.loss.copy_negate(), times(p.value, -p.elements)))


def by_class(pairs: Iterable[PairScore]) -> list[list[PairScore]]:
    """Return pairs that are alike together, in the order of what the first one loses.

    Pairs are alike if they have one value, as many positions, and match at as many.
    """
    classes: dict[tuple[Decimal, int, int], list[PairScore]] = defaultdict(list)
    for pair in by_loss(pairs):
        classes[pair.value, pair.elements, pair.matched].append(pair)
    return list(classes.values())
