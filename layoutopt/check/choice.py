"""Element by element or piece by piece: which way a graph is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from layoutopt.base.errors import SizeError
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore

T = TypeVar("T")

SMALL = 2 * 10**6
"""Graphs of up to so many elements are checked element by element."""

LARGE = 10**9
"""Graphs of up to so many elements are, where pieces turn out to be too many."""

STEPS = 2 * 10**6
"""How many steps piece by piece may take: about a minute."""

ELEMENTS_PER_STEP = 1000
"""How many elements are checked in the time of a step."""


def either(graph: GraphStore, by_elements: Callable[[], T], by_pieces: Callable[[int], T]) -> T:
    """Return what the quicker of two ways says; both say the same.

    Parameters
    ----------
    graph
        The graph; the number of its elements decides.
    by_elements
        Takes time and memory for every element.
    by_pieces
        Takes up to so many steps, or raises :class:`~layoutopt.base.errors.SizeError`.

    Raises
    ------
    SizeError
        If the graph is too large for the one way, and its layouts too irregular for the other.
    """
    count = sum(map(size, graph.shapes))
    if count > LARGE:
        return by_pieces(STEPS)
    if count > SMALL:
        try:
            return by_pieces(min(STEPS, count // ELEMENTS_PER_STEP))
        except SizeError:
            pass
    return by_elements()
