"""Layouts that a heuristic chooses: on elements, or on boxes of them."""

from __future__ import annotations

from typing import Protocol

from layoutopt.base.limits import Limits
from layoutopt.base.memory import fits, require
from layoutopt.check.elements import evaluate
from layoutopt.graphs.layouts import Given
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.representatives import LayoutDict, pieces_of
from layoutopt.lowering.greedy0 import greedy0
from layoutopt.lowering.greedy0_boxes import greedy0_by_boxes
from layoutopt.lowering.ways import Elements, Places


class Heuristic(Protocol):
    """From a graph and what is given to the origin of each place of each sink."""

    def __call__(self, graph: GraphStore, limits: Limits, given: Given, places: Places) -> Origins:
        """Choose layouts."""


HEURISTICS: dict[str, Heuristic] = {"greedy0": greedy0}
"""Heuristics by name."""

BYTES = 12
"""What a heuristic keeps of an element: a location, and the piece that gave it."""

LARGE = 10**7
"""Graphs of so many elements are not looked at element by element."""

TOO_LARGE = 10**9
"""Graphs of so many elements are not even where boxes are too many."""

SHARE = 0.5
"""Share of the time that is left for boxes: their layouts are to be checked, too."""


def choose(
    graph: GraphStore,
    name: str,
    limits: Limits,
    given: Given,
    large: int = LARGE,
    own: Heuristic | None = None,
) -> LayoutDict | None:
    """Return the layouts that a heuristic chooses; ``None`` if a tile memory is too small for them.

    Greedy0 chooses the same whether it looks at elements or at boxes of them.  Where irregular
    views make too many boxes, and the graph is too large for its elements, it covers what it can
    in time; the rest gets fresh locations.

    Parameters
    ----------
    name
        A key of :data:`HEURISTICS`, or the name of ``own``.
    given
        Sink elements whose locations are given; with any, every element is looked at.
    large
        Graphs of so many elements are not looked at element by element.
    own
        A user's heuristic, which always looks at every element.

    Raises
    ------
    SizeError
        If the graph's elements do not fit this machine's memory, and must be looked at.
    TimeoutError
        If time runs out.
    """
    heuristic, elements = own or HEURISTICS[name], sum(map(size, graph.shapes))
    if heuristic is greedy0 and elements >= large and not given.count:
        found = greedy0_by_boxes(graph, limits.within(SHARE * limits.left))
        if found.complete or elements >= TOO_LARGE or limits.over or not fits(BYTES * elements):
            return _kept(graph, found.layouts)
    require(BYTES * elements, f"{name}, which looks at every element here,")
    chosen = heuristic(graph, limits, given, Elements(graph))
    named = {graph.tensor_name(sink): pieces_of(graph, *o) for sink, o in chosen.items()}
    return _kept(graph, named)


def _kept(graph: GraphStore, layouts: LayoutDict) -> LayoutDict | None:
    """Return layouts if a tile memory's capacity and grain permit: heuristics know neither."""
    if graph.tile_memory is not None and evaluate(graph, layouts).violations:
        return None
    return layouts
