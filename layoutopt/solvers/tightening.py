"""Closing what is left of the gap place by place.

The relaxation's bound is a sum of maxima, one for each node and edge.  Cut a few *blocks* out
of the graph, disjoint and with the messages across their borders as they are: the maxima of
a block's nodes and inner edges may be replaced by the exact optimum of the block, which is a
labelling problem of its own with the messages among its rewards.  What the relaxation cannot
see is mostly local (a short odd cycle of equal claims, say), so small blocks are enough, and
the gaps of many blocks are closed one after the other instead of in all combinations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from layoutopt.problem import IntArray
from layoutopt.solvers.branching import branch
from layoutopt.solvers.messages import Field
from layoutopt.solvers.relaxation import Ascent

SIZES = (30, 100, 300, 1000)
"""Largest block, in nodes, try after try."""

COVERED = 0.95
"""Share of the gap whose places get a block."""

BITS = 10
"""Rewards of blocks are rounded up to multiples of ``2**-10``."""


def tighten(ascent: Ascent) -> int:
    """Return a better bound for the field of an ascent that has been climbed.

    The ascent's labelling may get better, too.
    """
    bound = ascent.bound
    near = _neighbours(ascent.field)
    for size in SIZES:
        saved = 0
        for block in _blocks(ascent, near, size):
            if ascent.limits.over or bound <= ascent.goal:
                break
            saved += _saved(ascent, block)
            scaled = ascent.ledger.scaled_bound - saved
            bound = min(bound, int(scaled // ascent.ledger.scale))
    return max(bound, ascent.goal)


def _neighbours(field: Field) -> tuple[IntArray, IntArray]:
    """Return where each node's neighbours begin, and all neighbours."""
    ends = np.concatenate([field.edges, field.edges[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    return np.searchsorted(ends[:, 0], np.arange(len(field.rewards) + 1)), ends[:, 1]


def _blocks(ascent: Ascent, near: tuple[IntArray, IntArray], size: int) -> Iterator[IntArray]:
    """Yield disjoint surroundings of the places where bound and labelling differ most."""
    ledger = ascent.ledger
    nodes = len(ascent.labels)
    slack = np.concatenate([ledger.node_slack, ledger.edge_slack])
    order = np.argsort(-slack)
    total = np.cumsum(slack[order] / ledger.scale)
    places = order[: int(np.searchsorted(total, COVERED * total[-1])) + 1]
    taken: set[int] = set()
    starts, others = near[0].tolist(), near[1]
    for place in places.tolist():
        seeds = [place] if place < nodes else ascent.field.edges[place - nodes].tolist()
        block = [u for u in seeds if u not in taken]
        if len(block) < len(seeds):
            continue
        taken.update(block)
        for u in block:
            for v in others[starts[u] : starts[u + 1]].tolist():
                if v not in taken and len(block) < size:
                    taken.add(v)
                    block.append(v)
        yield np.array(sorted(block))


def _saved(ascent: Ascent, block: IntArray) -> int:
    """Return by how much, scaled, a block's optimum is below the sum of its maxima."""
    field, ledger = ascent.field, ascent.ledger
    place = np.full(len(ascent.labels), -1)
    place[block] = np.arange(len(block))
    ends = place[field.edges]
    inner = np.flatnonzero((ends >= 0).all(axis=1))
    step = max(ledger.scale >> BITS, 1)
    allowed = field.allowed[block]
    held = -(-ledger.held(block, inner) // step)
    low = -4 * int(np.abs(np.where(allowed, held, 0)).max(axis=1).sum())
    weights = field.weights[inner] * (ledger.scale // step)
    low -= 4 * int(np.abs(weights).sum()) + 1
    part = Field(np.where(allowed, held, low), allowed, ends[inner], weights, field.colour[block])
    inside = Ascent(
        part,
        ascent.ahead[inner] * (ledger.scale // step),
        ascent.back[inner] * (ledger.scale // step),
        ascent.labels[block].copy(),
        -(2**62),
        replace(ascent.limits, tell=None),
        max(ledger.scale // step // 32, 1),
    )
    optimum = inside.bound
    if not inside.climb(np.arange(len(block))):
        optimum = branch(inside)
    optimum = min(optimum, inside.bound)
    ascent.adopt(block, inside.labels)
    tops = int(ledger.node_top[block].sum()) + int(ledger.edge_top[inner].sum())
    return int(max(tops - optimum * step, 0))
