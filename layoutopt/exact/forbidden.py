"""What barrier order forbids: which labels which nodes must not take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from layoutopt.integers import unique
from layoutopt.memory import require
from layoutopt.presolve.components import Parts
from layoutopt.problem import IntArray, Labelling, Precedence
from layoutopt.solvers.formulation import reachable

BAN_BYTES = 100
"""What one forbidden choice takes while it is sorted in."""


def with_hopeless(problem: Labelling, order: Precedence, parts: Parts) -> Labelling:
    """Return a problem without rules that has no use for what no order allows."""
    hopeless = pairs_of(hopeless_choices(order))
    whole = replace(problem, precedence=None)
    pieces = [
        without(part, hopeless, order.label_barrier[labels], order.node_readers[nodes])
        for part, nodes, labels in zip(parts.parts, parts.nodes, parts.labels, strict=True)
    ]
    at, bans = [problem.reward_at[:0]], [problem.banned[:0]]
    for piece, nodes, labels in zip(pieces, parts.nodes, parts.labels, strict=True):
        for found, own in ((at, piece.reward_at), (bans, piece.banned)):
            found.append(np.column_stack([nodes[own[:, 0]], labels[own[:, 1]]]))
    rewards = [problem.rewards[:0], *(piece.rewards for piece in pieces)]
    return replace(
        whole,
        reward_at=np.concatenate(at),
        rewards=np.concatenate(rewards),
        banned=np.concatenate(bans),
    )


def without(
    part: Labelling, shut: Sequence[tuple[int, int]], barrier: IntArray, readers: IntArray
) -> Labelling:
    """Return a part in which some nodes must not take some labels.

    A label that is forbidden to all nodes is not banned, but earns nothing any more: nothing
    takes it then, and there may be far too many such nodes and labels for a list of pairs.

    Parameters
    ----------
    shut
        Reader sets, and barriers whose labels the nodes with that reader set must not take.
    barrier, readers
        Barrier of each label, reader set of each node.
    """
    sets = frozenset(unique(readers).tolist())
    present = frozenset(unique(barrier).tolist())
    at: dict[int, set[int]] = {}
    for s, b in shut:
        if s in sets and b in present:
            at.setdefault(b, set()).add(s)
    useless = np.isin(barrier, [b for b, all_sets in at.items() if all_sets == sets])
    some = {b: own for b, own in at.items() if own != sets}
    count = {b: int(np.count_nonzero(barrier == b)) for b in some}
    nodes = {s: np.flatnonzero(readers == s) for own in some.values() for s in own}
    pairs = sum(count[b] * len(nodes[s]) for b, own in some.items() for s in own)
    require(BAN_BYTES * pairs, "a list of what barrier order forbids")
    bans = [part.banned]
    for b, own in some.items():
        what = np.flatnonzero(barrier == b)
        bans += [np.stack(np.meshgrid(nodes[s], what), axis=-1).reshape(-1, 2) for s in own]
    earns = ~useless[part.reward_at[:, 1]]
    return replace(
        part,
        reward_at=part.reward_at[earns],
        rewards=part.rewards[earns],
        banned=np.unique(np.concatenate(bans), axis=0),
    )


def pairs_of(table: IntArray) -> list[tuple[int, int]]:
    """Return reader sets and barriers of the entries of a table of barriers by reader sets."""
    return [(s, b) for b, s in np.argwhere(table).tolist()]


def hopeless_choices(order: Precedence) -> IntArray:
    """Return which barriers' labels no node with a given reader set can ever take.

    Shape ``(barriers + 1, sets)``; the last row is for labels of no barrier.
    """
    before = reachable(order.barriers, order.arcs)
    table = np.zeros((order.barriers + 1, len(order.reader_sets)), bool)
    for s, readers in enumerate(order.reader_sets):
        for c in readers:
            table[:-1, s] |= before[c]
    return table
