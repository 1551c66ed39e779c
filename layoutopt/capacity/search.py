"""The search over whole placements: configurations of some kinds, single nodes of others."""

from __future__ import annotations

import numpy as np

from layoutopt.capacity.columns import Columns
from layoutopt.capacity.fill import Filling
from layoutopt.capacity.nodes import (
    NodeProgramme,
    node_filling,
    node_programme,
    node_start,
    variables,
)
from layoutopt.capacity.programme import Programme, filling, programme
from layoutopt.capacity.state import State
from layoutopt.capacity.table import tabulable, tabulate
from layoutopt.limits import Limits
from layoutopt.problem import IntArray
from layoutopt.solvers import integer

NODE_VARIABLES = 20_000
"""Variables that the programme over single nodes may have.

Measured on trees with 5% of room to spare, 15 seconds: 500 are proved in 4 seconds, 1,400 to 4,000
are left with gaps of 0.5 to 3%, 20,000 with half of the objective.
"""


GLANCE = 2.0
"""Effort of a first search, before the table of all rooms; see ``Limits.turn``."""


def tabulated(state: State) -> None:
    """Look through a table of all rooms, if it is small; a short search comes first."""
    if state.priced is None or not tabulable(state.pool, state.room, state.priced):
        return
    limits = state.limits
    _search(state, limits.within(limits.left / 3).turn(GLANCE))
    if state.done:
        return
    limits = limits.within(limits.left / 2)
    done, best = tabulate(state.pool, state.room, state.priced, state.value, limits)
    if best is not None:
        state.offer(best)
    if done:
        state.proved()


def search(state: State) -> None:
    """Search among all placements that may be better than the best one known."""
    _search(state, state.limits)


def _search(state: State, limits: Limits) -> None:
    """Search among all placements that may be better than the best one known.

    A kind takes part with the configurations that prices do not rule out, or node by node,
    whichever has fewer variables; large kinds always node by node.
    """
    if state.priced is None or state.dual is None or not state.pool.kinds:
        return
    core = state.pool.core(state.priced, state.dual, state.value)
    alone = _node_by_node(state, core)
    if alone is None:
        return
    listed = None
    if core is not None and not alone.all():
        kept = core.chosen(np.flatnonzero(~alone[core.kind]))
        copies = np.where(alone, 0, state.pool.copies)
        listed = programme(kept, copies, state.room, state.pool.own)
        if listed is None:
            return
    nodes = None
    if alone.any():
        nodes = node_programme(state.pool, np.flatnonzero(alone).tolist(), state.room)
    _solve(state, listed, nodes, limits)


def _node_by_node(state: State, core: Columns | None) -> IntArray | None:
    """Return which kinds are searched node by node; ``None`` where that is too large.

    Parameters
    ----------
    core
        ``None`` if the configurations are too many.
    """
    pool = state.pool
    size = variables(pool)
    large = np.arange(pool.kinds) >= pool.first[-1]
    choices = [large]
    if core is None:
        choices = [np.ones(pool.kinds, bool)]
    elif len(core.kind):
        slots = np.maximum.reduceat(core.labels, core.starts[:-1]) - pool.tiles + 1
        listed = np.zeros(pool.kinds, np.int64)
        np.add.at(listed, core.kind, 1 + np.maximum(slots, 0) * pool.tiles)
        choices = [large | (size < listed), large]
    for alone in choices:
        if size[alone].sum() <= NODE_VARIABLES:
            return alone
    return None


def _solve(
    state: State, listed: Programme | None, nodes: NodeProgramme | None, limits: Limits
) -> None:
    """Solve both programmes as one, and note what that finds and proves."""
    parts = [part.integer for part in (listed, nodes) if part is not None]
    asked = parts[0]
    if len(parts) == 2:
        asked = integer.side_by_side(parts[0], parts[1], state.pool.tiles)
    small, unit = integer.coarse(asked)
    if not integer.fits(small):
        return
    exact = not (asked.objective % unit).any()
    most = state.bound // unit if exact and state.bound is not None else None
    if most is not None and abs(most) >= integer.LARGEST:
        most = None  # more than a programme that fits can be worth
    split = 0 if listed is None else len(listed.integer.upper)
    start = None
    if nodes is not None and state.filling is not None:
        start = np.concatenate([np.full(split, -1), node_start(nodes, state.filling)])
    found = integer.cpsat(small, limits, start, most)
    if found.values is not None:
        whole = [] if listed is None else [filling(listed, found.values[:split])]
        whole += [] if nodes is None else [node_filling(nodes, found.values[split:])]
        state.offer(Filling.joined(whole))
    if found.infeasible:
        state.proved()
    elif found.bound is not None and state.value is not None and state.bound is not None:
        state.bound = min(state.bound, max(state.value, found.bound * unit))
