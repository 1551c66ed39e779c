"""Transportation: supplies shipped to places of limited capacity, at most worth.

A minimum cost flow, exact and whole (Goldberg's cost scaling in OR-Tools, J. Algorithms 22, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.graph.python import min_cost_flow

from layoutopt.base.errors import SolverError
from layoutopt.network.problem import IntArray

LARGEST = 2**61
"""Costs times nodes stay below this."""


@dataclass(frozen=True, eq=False)
class Shipment:
    """A best shipment.

    Parameters
    ----------
    flows
        Shape ``(arcs,)``.
    prices
        Shape ``(places,)``: what one more unit of room is worth at each place, whole.
    """

    flows: IntArray
    prices: IntArray


def fits(worth: IntArray, supplies: int, places: int) -> bool:
    """Return whether numbers are small enough for :func:`ship`."""
    largest = max((abs(int(w)) for w in (worth.min(), worth.max())), default=0)
    return 4 * largest * (supplies + places + 2) < LARGEST


def ship(
    supply: IntArray, source: IntArray, place: IntArray, worth: IntArray, capacity: IntArray
) -> Shipment | None:
    """Ship everything at the most worth, or return ``None`` if there is not the room.

    Parameters
    ----------
    supply
        Shape ``(supplies,)``: units to ship.
    source, place, worth
        Shape ``(arcs,)``: from which supply, to which place, and what a unit earns there.
    capacity
        Shape ``(places,)``: units.
    """
    n, m = len(supply), len(capacity)
    flow = min_cost_flow.SimpleMinCostFlow()
    room = np.minimum(capacity, int(supply.sum()))
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        source, n + place, np.minimum(supply[source], room[place]), -worth
    )
    flow.add_arcs_with_capacity_and_unit_cost(
        n + np.arange(m), np.full(m, n + m), room, np.zeros(m, np.int64)
    )
    flow.set_nodes_supplies(np.arange(n), supply)
    flow.set_node_supply(n + m, -int(supply.sum()))
    status = flow.solve()
    if status == flow.INFEASIBLE:
        return None
    if status != flow.OPTIMAL:
        raise SolverError(f"minimum cost flow ended with status {status}")
    flows = flow.flows(arcs)
    return Shipment(flows, _prices(flows, source, place, worth, n, m))


def _prices(
    flows: IntArray, source: IntArray, place: IntArray, worth: IntArray, supplies: int, places: int
) -> IntArray:
    """Return the worth of one more unit of room at each place.

    It is the longest path in the residual graph: a unit moves in from another place, whose
    room is filled in the same way; or the room stays empty.  Bellman and Ford's
    algorithm, all arcs at once; at a best flow no cycle gains.
    """
    prices = np.zeros(places, np.int64)
    used = np.flatnonzero(flows)
    while True:
        gain = np.full(supplies, -LARGEST)
        np.maximum.at(gain, source[used], prices[place[used]] - worth[used])
        better = prices.copy()
        np.maximum.at(better, place, gain[source] + worth)
        if (better == prices).all():
            return prices
        prices = better
