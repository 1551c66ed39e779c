"""Nested stripes: sets of indices that repeat with a period.

A stripe ``(on, off, phase)`` keeps index ``i`` if ``(i - phase) mod (on + off) < on``; that
remainder is the index that the next, inner stripe sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Stripes: TypeAlias = Sequence[tuple[int, int, int]]
"""Stripes, outermost first."""


def kept(n: int, stripes: Stripes) -> NDArray[np.int64]:
    """Return which of the indices ``0 .. n-1`` all stripes keep."""
    indices = np.arange(n)
    inner = indices
    for on, off, phase in stripes:
        inner = (inner - phase) % (on + off)
        indices, inner = indices[inner < on], inner[inner < on]
    return indices


def count_kept(n: int, stripes: Stripes) -> int:
    """Return how many of the indices ``0 .. n-1`` all stripes keep, however large ``n`` is."""

    @cache
    def count(n: int, depth: int) -> int:
        if depth == len(stripes):
            return n
        on, off, phase = stripes[depth]
        ends = (divmod(end, on + off) for end in (n - phase, -phase))
        high, low = (
            runs * count(on, depth + 1) + count(min(rest, on), depth + 1) for runs, rest in ends
        )
        return high - low

    return count(n, 0)
