"""Evidence for what a class can earn, from the cheapest kind that proves enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx
import numpy as np

from layoutopt.certificate.classes import Class
from layoutopt.certificate.pairwise import Pairwise
from layoutopt.certificate.refused import Refused
from layoutopt.limits import Limits
from layoutopt.proving.pairwise import SEARCH, proof, table
from layoutopt.solvers.messages import Field, colouring
from layoutopt.solvers.relaxation import LARGEST, begin

Evidence = dict[str, Any]
Banned = frozenset[tuple[int, int]]


CELLS = 10**6
"""Edges times labels that messages are passed for."""

EARNED: Evidence = {"kind": "earned"}
"""All rewards together."""


def evidence_of(
    own: Class, wanted: int, limits: Limits, banned: Banned = frozenset()
) -> tuple[Evidence, bool]:
    """Return evidence for what a class can earn, and whether it proves enough.

    Parameters
    ----------
    own
        The class.
    wanted
        The bound that is to be proved.
    limits
        When to stop looking.
    banned
        Nodes and terminals that nobody chooses together.

    Returns
    -------
    tuple
        Where nothing proves the bound that is wanted, what proves the lowest one.
    """
    best, least = EARNED, own.bound(EARNED, banned)[0]
    others = _candidates(own, wanted, limits, banned)
    while least > wanted and (found := next(others, None)) is not None:
        try:
            bound = own.bound(found, banned)[0]
        except Refused:
            continue
        if bound < least:
            best, least = found, bound
    return best, least <= wanted


def _candidates(own: Class, wanted: int, limits: Limits, banned: Banned) -> Iterator[Evidence]:
    """Yield evidence that may prove less than all that there is to earn, the cheapest first."""
    yield from _flow(own, banned)
    try:
        problem = own.pairwise(banned)
    except Refused:  # too large
        return
    exact = table(problem)
    if exact is not None:
        yield exact
        return
    yield from _messages(own, problem, wanted, limits)
    searched = proof(problem, wanted, limits.turn(SEARCH))
    if searched is not None:
        yield searched


def _flow(own: Class, banned: Banned) -> Iterator[Evidence]:
    """Yield a maximum flow from terminal 0 to terminal 1, if these are all."""
    if len(own.terminals) != 2:
        return
    network = networkx.Graph()
    network.add_nodes_from((-1, -2))
    for i, j, w in own.edges:
        if w > 0:
            _widen(network, i, j, w)
    rewards = [(i, m, w) for i, m, w in own.rewards if (i, m) not in banned]
    for i, m, w in rewards:
        if w > 0:
            _widen(network, i, -1 - m, w)
    _, flow = networkx.maximum_flow(network, -1, -2)

    def through(i: int, j: int) -> int:
        return int(flow.get(i, {}).get(j, 0) - flow.get(j, {}).get(i, 0))

    yield {
        "kind": "flow",
        "edges": [through(i, j) if w > 0 else 0 for i, j, w in own.edges],
        "rewards": [
            (through(i, -2) if m else through(-1, i)) if w > 0 else 0 for i, m, w in rewards
        ],
    }


def _widen(network: networkx.Graph, i: int, j: int, w: int) -> None:
    """Add to the capacity of an edge, in both directions."""
    before = network[i][j]["capacity"] if network.has_edge(i, j) else 0
    network.add_edge(i, j, capacity=before + w)


def _messages(own: Class, problem: Pairwise, wanted: int, limits: Limits) -> Iterator[Evidence]:
    """Yield messages of the relaxation, which are right whether they prove enough or not."""
    worth = np.array(problem.unary)
    weights = np.array([w for _, _, w in own.edges])
    edges = np.array([(i, j) for i, j, _ in own.edges]).reshape(-1, 2)
    cells = max(worth.shape[0], len(edges)) * worth.shape[1]
    if not len(edges) or cells > CELLS or problem.total * 8 * worth.shape[1] >= LARGEST:
        return
    colour = colouring(len(worth), edges)
    field = Field(worth.astype(np.int64), np.ones(worth.shape, bool), edges, weights, colour)
    ascent = begin(field, limits)
    ascent.cutoff = wanted
    ascent.climb(np.arange(len(worth)))
    scale, sides = ascent.ledger.scale, (ascent.to_first, ascent.to_second)
    one, two = (np.rint(side * scale).astype(np.int64).tolist() for side in sides)
    messages = [[*pair] for pair in zip(one, two, strict=True)]
    yield {"kind": "dual", "parts": int(scale), "messages": messages}
