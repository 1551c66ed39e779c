"""Unwinding on a tile memory whose capacity may bind."""

from __future__ import annotations

from dataclasses import dataclass

from layoutopt.capacity.answer import Reason
from layoutopt.capacity.solve import solve_capacity
from layoutopt.check.occupancy import occupied
from layoutopt.dense.layouts import Layouts
from layoutopt.graphs.grains import grained
from layoutopt.graphs.op import size
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import memory_of, tiled
from layoutopt.graphs.values import to_decimal
from layoutopt.limits import Limits
from layoutopt.lowering import LIFT_FROM, lower
from layoutopt.memory import available
from layoutopt.placing import capacity_problem
from layoutopt.result import Result

HEAVIEST = 3
"""How many sinks are named where not all fit."""

NEVER = 2**62
"""Groups of so many positions there are not: every element is traced."""

TRACED_BYTES = 200
"""What tracing takes of a free element, roughly."""


@dataclass(frozen=True, eq=False)
class Placed:
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


def overfull(graph: Store) -> str:
    """Return why sinks cannot fit a graph's tile memory all together; empty if they can."""
    memory = memory_of(graph)
    need = {s.name: s.size * memory.bytes_of(s.name) for s in graph.sinks()}
    total = sum(need.values())
    if total <= memory.total:
        return ""
    heaviest = sorted(need, key=lambda name: -need[name])[:HEAVIEST]
    told = ", ".join(f"{name!r} {need[name]:,}" for name in heaviest)
    return (
        f"sinks need {total:,} bytes, {total - memory.total:,} more than all {memory.tiles:,} "
        f"tiles hold; the heaviest: {told}"
    )


def fits(graph: Store, layouts: Layouts) -> bool:
    """Return whether layouts keep to the capacity of a graph's tile memory."""
    memory = memory_of(graph)
    return bool((occupied(graph, layouts) <= memory.bytes_per_tile).all())


def place(graph: Store, limits: Limits) -> Placed:
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
    fine, memory = grained(tiled(graph)), memory_of(graph)
    layouts: Layouts | None = None
    sizes: dict[str, int] = {}
    for lift_from in (LIFT_FROM, NEVER):
        lowered = lower(fine.graph, limits, lift_from=lift_from, tiles=memory.tiles)
        sizes = sizes or lowered.size
        placing = capacity_problem(lowered)
        answer = solve_capacity(placing.problem, limits)
        if answer.infeasible is not None:
            return Placed(Result(infeasible=_explained(graph, answer.infeasible)), sizes)
        layouts = placing.layouts(answer, linear=memory.grain == 1)
        if layouts is not None or answer.placement is None or not _traceable(fine.graph):
            break
    bound = None
    if answer.bound is not None:
        bound = to_decimal(lowered.constant + answer.bound, lowered.unit)
    restored = None if layouts is None else fine.restored(layouts)
    return Placed(Result(bound=bound, labelling=restored, stopped=answer.stopped), sizes)


def _explained(graph: Store, reason: Reason) -> str:
    if reason is Reason.BYTES:
        return overfull(graph) or "grains need more bytes than all tiles hold"
    return "sinks fit all tiles together, but no way to share them out fits each tile"


def _traceable(graph: Store) -> bool:
    """Return whether a graph's elements fit this machine's memory."""
    limit = available()
    return limit is None or TRACED_BYTES * sum(map(size, graph.shapes)) <= limit
