"""Unwinding on a tile memory whose capacity may bind."""

from __future__ import annotations

from dataclasses import dataclass

from layoutopt.base.errors import InputError
from layoutopt.base.limits import Limits
from layoutopt.base.memory import available
from layoutopt.base.numbers import nearest, to_decimal
from layoutopt.base.result import Result
from layoutopt.check.occupancy import occupied, overfull
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import coarsen, hooked, memory_of, tiled, viewed
from layoutopt.lowering.elements.kinds import LayoutDict
from layoutopt.lowering.lower import LIFT_FROM, Lowered, lower
from layoutopt.machine.placing import capacity_problem
from layoutopt.network.capacity.answer import Reason
from layoutopt.network.capacity.problem import CapacityProblem
from layoutopt.network.capacity.solve import solve_capacity

NO_WAY = "total capacity suffices, but no assignment respects every tile"
"""Why there may be no layouts although there is room enough."""

NEVER = 2**62
"""Groups of so many positions there are not: every element is traced."""

FEW = 10**6
"""Graphs of so many elements are looked at one by one where cells are too coarse."""

TRACED_BYTES = 200
"""What tracing takes of a free element, roughly."""


@dataclass(frozen=True, eq=False)
class TileAnswer:
    """An answer on a tile memory.

    Parameters
    ----------
    result
        Score and bound in the graph's values; layouts by sink.
    size
        Counts of what was solved.
    """

    result: Result
    size: dict[str, int]


def fits(graph: GraphStore, layouts: LayoutDict) -> bool:
    """Return whether layouts keep to the capacity of a graph's tile memory."""
    memory = memory_of(graph)
    return bool((occupied(graph, layouts) <= memory.bytes_per_tile).all())


def place(graph: GraphStore, limits: Limits) -> TileAnswer:
    """Choose layouts that keep to the capacity of a graph's tile memory, and to its grain.

    Raises
    ------
    InputError
        If a rule or mapping does not fit.
    SizeError
        If the graph is too irregular to be lifted, and too large for the memory.
    TimeoutError
        If time runs out before the problem is written down.
    """
    fine, memory = coarsen(tiled(graph)), memory_of(graph)
    layouts: LayoutDict | None = None
    sizes: dict[str, int] = {}
    for lift_from in (LIFT_FROM, NEVER):
        lowered = lower(fine.graph, limits, lift_from=lift_from, tiles=memory.tiles)
        sizes = sizes or lowered.size
        placing = capacity_problem(lowered)
        answer = solve_capacity(placing.problem, _told(limits, lowered))
        if answer.infeasible is not None:
            return TileAnswer(Result(infeasible=_explained(graph, answer.infeasible)), sizes)
        found = placing.layouts(answer, linear=memory.grain == 1)
        layouts, exact = found or (layouts, False)
        if exact or answer.placement is None or not _traceable(fine.graph, layouts is None):
            break
    bound = None
    if answer.bound is not None:
        bound = to_decimal(lowered.constant + answer.bound, lowered.unit)
    restored = None if layouts is None else fine.restored(layouts)
    return TileAnswer(Result(bound=bound, labelling=restored, stopped=answer.stopped), sizes)


def counted(graph: GraphStore, limits: Limits) -> tuple[Lowered, CapacityProblem, Limits]:
    """Return a graph as a problem of how many copies of which class go where.

    Returns
    -------
    lowered, problem
        The graph with an element for each grain, and its problem.
    limits
        The same, with messages in the graph's values.

    Raises
    ------
    InputError
        If a barrier has a hook that is no view, or a rule or mapping does not fit.
    """
    memory, plain = memory_of(graph), viewed(graph)
    for i in hooked(plain):
        name = plain.ops[i].id
        raise InputError(f"barrier {name!r}: its hook is no view; capacity has no price then")
    lowered = lower(coarsen(tiled(plain)).graph, limits, tiles=memory.tiles)

    return lowered, capacity_problem(lowered).problem, _told(limits, lowered)


def _told(limits: Limits, lowered: Lowered) -> Limits:
    """Return limits whose messages are in the graph's values."""

    def score(x: float) -> float:
        return nearest(lowered.unit * (lowered.constant + int(x)))

    return limits.restated(score, score)


def _explained(graph: GraphStore, reason: Reason) -> str:
    if reason is Reason.BYTES:
        return overfull(graph)
    return NO_WAY


def _traceable(graph: GraphStore, needed: bool) -> bool:
    """Return whether it pays to look at a graph's elements.

    Parameters
    ----------
    needed
        Whether there are no layouts yet; then all that counts is that they fit the memory.
    """
    limit, elements = available(), sum(map(size, graph.shapes))
    if not needed and elements > FEW:
        return False
    return limit is None or TRACED_BYTES * elements <= limit
