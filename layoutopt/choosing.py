"""Layouts that a heuristic chooses: on elements, or on a few of them that stand for all."""

from __future__ import annotations

from typing import Protocol

from layoutopt.check.elements import evaluate
from layoutopt.dense.layouts import Layouts, pieces_of
from layoutopt.errors import SizeError
from layoutopt.graphs.given import Given
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.op import size
from layoutopt.graphs.store import Store
from layoutopt.heuristics.greedy0 import greedy0
from layoutopt.heuristics.places import Elements, Places
from layoutopt.lifting.places import CellPlaces
from layoutopt.limits import Limits
from layoutopt.memory import require


class Heuristic(Protocol):
    """From a graph and what is given to the origin of each place of each sink."""

    def __call__(self, graph: Store, limits: Limits, given: Given, places: Places) -> Origins:
        """Choose layouts."""


HEURISTICS: dict[str, Heuristic] = {"greedy0": greedy0}
"""Heuristics by name."""

BYTES = 12
"""What a heuristic keeps of an element: a location, and the piece that gave it."""

LIFT_FROM = 10**7
"""Graphs of so many elements are not looked at element by element."""


def choose(
    graph: Store,
    name: str,
    limits: Limits,
    given: Given,
    lift_from: int = LIFT_FROM,
    own: Heuristic | None = None,
) -> Layouts | None:
    """Return the layouts that a heuristic chooses; ``None`` if a tile memory is too small for them.

    They earn the same whether elements are looked at or what stands for them.

    Parameters
    ----------
    name
        A key of :data:`HEURISTICS`, or the name of ``own``.
    given
        Sink elements whose locations are given; with any, every element is looked at.
    lift_from
        Graphs of so many elements are not looked at element by element.
    own
        A user's heuristic, which always looks at every element.

    Raises
    ------
    SizeError
        If the graph's elements, or what stands for them, do not fit this machine's memory.
    TimeoutError
        If time runs out.
    """
    heuristic, elements = own or HEURISTICS[name], sum(map(size, graph.shapes))
    if own is None and elements >= lift_from and not given.count:
        try:
            cells = CellPlaces(graph, limits)
            return _kept(graph, cells.layouts(heuristic(graph, limits, given, cells)))
        except SizeError:
            limits.report("views are too irregular to be lifted")
    require(BYTES * elements, f"{name}, which looks at every element here,")
    chosen = heuristic(graph, limits, given, Elements(graph))
    named = {graph.tensor_name(sink): pieces_of(graph, *o) for sink, o in chosen.items()}
    return _kept(graph, named)


def _kept(graph: Store, layouts: Layouts) -> Layouts | None:
    """Return layouts if a tile memory's capacity and grain permit: heuristics know neither."""
    if graph.tile_memory is not None and evaluate(graph, layouts).violations:
        return None
    return layouts
