"""Maximum flows, the sets that minimum cuts choose, and shipments.

OR-Tools computes them where it is installed, else SciPy: its maximum flow knows 32 bits only,
so larger capacities are augmented from coarse units to fine ones; its linear programmes ship in
doubles, and are looked at exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutopt.base.errors import SolverError
from layoutopt.base.limits import Unlimited
from layoutopt.network.problem import IntArray, WeightArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST = 2**61  # sums of capacities, and costs times nodes, stay below this
NARROW = 29  # flows below two to this many units are left to SciPy


def minimum_cut(
    nodes: int, tails: IntArray, heads: IntArray, capacities: WeightArray, *, largest: bool = False
) -> tuple[int, IntArray]:
    """Return the maximum flow, and whether each node is on the source's side of a minimum cut.

    The source is number ``nodes``, the sink the next one.  That side is the smallest possible, or
    the largest.  Raises ``SolverError`` if the flow's numbers do not fit 64 bits.
    """
    try:
        from ortools.graph.python import max_flow
    except ImportError:
        return _augmented(nodes, tails, heads, capacities, largest)
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(tails, heads, capacities)
    flow.add_arc_with_capacity(nodes, nodes + 1, 0)  # so that it knows both
    status = flow.solve(nodes, nodes + 1)
    if status != flow.OPTIMAL:
        raise SolverError(f"maximum flow ended with status {status}")
    inside = np.full(nodes + 2, largest)
    inside[flow.get_sink_side_min_cut() if largest else flow.get_source_side_min_cut()] ^= True
    return int(flow.optimal_flow()), inside[:nodes]


def _augmented(
    nodes: int, tails: IntArray, heads: IntArray, capacities: WeightArray, largest: bool
) -> tuple[int, IntArray]:
    """Return what :func:`minimum_cut` does, by SciPy."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    source, sink, shape = nodes, nodes + 1, (nodes + 2, nodes + 2)
    ends = ((tails, source), (heads, sink))
    missing = min(sum(capacities[end == node].tolist()) for end, node in ends)
    parallel = np.unique(tails * np.int64(sink + 1) + heads, return_counts=True)[1]
    if (missing + 1) * int(parallel.max(initial=1)) >= LARGEST:
        raise SolverError("the capacities of a maximum flow are too large for 64 bits")
    capacities = np.minimum(capacities, missing + 1)  # more than that never flows
    left: csr_array = csr_array((capacities.astype(np.int64), (tails, heads)), shape=shape)
    value, unit = 0, 1
    while True:
        unit = max(1, missing >> NARROW)
        narrow = left.copy()
        narrow.data = np.minimum(narrow.data // unit, 2 ** (NARROW + 1)).astype(np.int32)
        found = maximum_flow(narrow, source, sink)
        value += unit * int(found.flow_value)
        left = csr_array(left - found.flow.astype(np.int64) * unit)
        if unit == 1:
            break
        missing = unit * (len(tails) + 1)  # less than one unit for each arc of a cut
    left.eliminate_zeros()
    begin, graph = (sink, left.T) if largest else (source, left)
    reached = breadth_first_order(csr_array(graph), begin, return_predecessors=False)
    inside = np.full(nodes + 2, largest)
    inside[reached] ^= True
    return value, inside[:nodes]


def best_set(
    edges: IntArray, weights: WeightArray, gain: WeightArray, *, largest: bool = True
) -> IntArray:
    """Return a set of nodes that maximises its gains less the weight of edges that leave it.

    Weights, shape ``(m,)``, are not negative; gains and the result have shape ``(nodes,)``.  Of
    several best sets it is the smallest or the largest; where some nodes lose and none gains, it is
    empty. Raises ``SolverError`` if the flow's numbers do not fit 64 bits.
    """
    n = len(gain)
    around = np.zeros(n, np.int64)
    for ends in edges.T:  # ufunc.at misreads values that it has to broadcast
        np.add.at(around, ends, weights)
    gain = np.clip(gain, -around - 1, around + 1)  # more than all its edges decides a node
    likes, dislikes = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
    if largest and not len(dislikes):
        return np.ones(n, bool)
    if not len(likes):
        return np.zeros(n, bool)
    u, v = edges.T
    tails = np.concatenate([u, v, np.full(len(likes), n), dislikes])
    heads = np.concatenate([v, u, likes, np.full(len(dislikes), n + 1)])
    capacities = np.concatenate([weights, weights, gain[likes], -gain[dislikes]])
    return minimum_cut(n, tails, heads, capacities, largest=largest)[1]


def expanded(
    edges: IntArray, weights: WeightArray, labels: IntArray, to: int, may: IntArray, gain: IntArray
) -> IntArray:
    """Return the best labelling in which nodes that may change to a label; one as good at least.

    With ``s_u = 1`` where node ``u`` changes, an edge between two nodes that may change earns ``w
    (1 - |s_u - s_v|)`` if they agree now, else ``w s_u s_v``.  For ``w >= 0`` the latter is ``w
    (s_u + s_v - |s_u - s_v|) / 2``; all is doubled to stay whole (Boykov, Veksler, Zabih, IEEE PAMI
    23, 2001).  For ``w < 0``, and ``u`` the node that has more to gain, ``-w (s_u - s_v)`` and ``w
    s_v`` are bounds from below.  By changing, a node's own reward grows by its ``gain``.
    """
    gain = 2 * gain
    u, v = edges.T
    agree, both = labels[u] == labels[v], may[u] & may[v]
    for near, far in ((u, v), (v, u)):
        alone = may[near] & ~may[far]
        change = (labels[far] == to).astype(np.int64) - agree
        np.add.at(gain, near[alone], 2 * (change * weights)[alone])
    tied = both & (weights > 0)
    for ends in (u, v):
        np.add.at(gain, ends[tied & ~agree], weights[tied & ~agree])
    hard = both & (weights < 0)
    if hard.any():
        first = np.where(gain[u] >= gain[v], u, v)
        second = u + v - first
        np.add.at(gain, first[hard & agree], -2 * weights[hard & agree])
        np.add.at(gain, second[hard], 2 * weights[hard])
    place = np.cumsum(may) - 1
    doubled = np.where(agree, 2, 1) * weights
    changes = best_set(place[edges[tied]], doubled[tied], gain[may], largest=False)
    moved = labels.copy()
    moved[np.flatnonzero(may)[changes]] = to
    return moved


def shippable(worth: IntArray, supplies: int, places: int) -> bool:
    """Return whether numbers are small enough for :func:`ship`."""
    largest = max((abs(int(w)) for w in (worth.min(), worth.max())), default=0)
    return 4 * largest * (supplies + places + 2) < LARGEST


def ship(
    supply: IntArray, source: IntArray, place: IntArray, worth: IntArray, capacity: IntArray
) -> tuple[IntArray, IntArray] | None:
    """Ship everything at the most worth, or return ``None`` if there is not the room.

    ``supply`` and ``capacity`` are units at each source and place.  For each arc, ``source`` and
    ``place`` are its ends, and ``worth`` is what a unit earns on it.  Return the flow on each arc,
    and what one more unit of room is worth at each place, in whole numbers.
    """
    room = np.minimum(capacity, int(supply.sum()))
    flows = _shipped(supply, source, place, worth, room)
    if flows is None:
        return None
    prices = _prices(flows, source, place, worth, len(supply), len(room))
    return None if prices is None else (flows, prices)


def _shipped(
    supply: IntArray, source: IntArray, place: IntArray, worth: IntArray, room: IntArray
) -> IntArray | None:
    n, m = len(supply), len(room)
    try:
        from ortools.graph.python import min_cost_flow
    except ImportError:
        return _shipped_in_doubles(supply, source, place, worth, room)
    flow, most = min_cost_flow.SimpleMinCostFlow(), np.minimum(supply[source], room[place])
    arcs = flow.add_arcs_with_capacity_and_unit_cost(source, n + place, most, -worth)
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
    return np.asarray(flow.flows(arcs))


def _shipped_in_doubles(
    supply: IntArray, source: IntArray, place: IntArray, worth: IntArray, room: IntArray
) -> IntArray | None:
    """Ship by the simplex method, whose vertices are whole; ``None`` where rounding fails."""
    from layoutopt.network.solvers import highs
    from layoutopt.network.solvers.programme import OPEN, ProgrammeWriter

    to = ProgrammeWriter()
    arcs, zero = to.block(worth), np.zeros(len(source), np.int64)
    to.sparse(place, arcs, zero + 1, np.full(len(room), -OPEN), room)
    to.sparse(source, arcs, zero + 1, supply, supply)
    found = highs.relax(to.finished(), Unlimited())
    if found is None:
        return None
    flows = np.rint(found.values).astype(np.int64)
    sent, used = np.zeros_like(supply), np.zeros_like(room)
    np.add.at(sent, source, flows)
    np.add.at(used, place, flows)
    good = (sent == supply).all() and (used <= room).all() and (flows >= 0).all()
    return flows if good else None


def _prices(
    flows: IntArray, source: IntArray, place: IntArray, worth: IntArray, supplies: int, places: int
) -> IntArray | None:
    """Return the worth of one more unit of room at each place; ``None`` if flows are not best.

    It is the longest path in the residual graph: a unit moves in from another place, whose
    room is filled in the same way; or the room stays empty.  Bellman and Ford's
    algorithm, all arcs at once; at a best flow no cycle gains.
    """
    prices = np.zeros(places, np.int64)
    used = np.flatnonzero(flows)
    for _ in range(places + 2):
        gain = np.full(supplies, -LARGEST)
        np.maximum.at(gain, source[used], prices[place[used]] - worth[used])
        better = prices.copy()
        np.maximum.at(better, place, gain[source] + worth)
        if (better == prices).all():
            return prices
        prices = better
    return None
