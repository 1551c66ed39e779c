"""Where the relaxation alone leaves a gap: branch and bound, on a part or on a piece of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.moves import worth
from layoutopt.network.solvers.relaxation import HOPS, Ascent

DEPTH = 200
"""Deepest branch."""


def branch(root: Ascent) -> int:
    """Search until nothing can exceed the goal of a climbed ascent by more than a gap.

    A node is branched at the place where the bound and the labelling differ most: a node
    takes its present label, or any other.  The root keeps the best labelling.

    Returns
    -------
    int
        A bound on all labellings of the root's field; it equals the root's value
        unless time ran out or a gap is allowed.
    """
    todo = [(root, 0)]
    worst = root.goal
    quiet = replace(root.limits, tell=None)
    while todo:
        open_bound = max([worst, *(a.bound for a, _ in todo)])
        root.limits.report("branching", root.goal, min(root.bound, open_bound))
        last, node = todo.pop()
        if last is not root:
            last.cutoff = root.goal
            if last.climb(last.around(np.array([node]), HOPS)):
                worst = max(worst, last.bound)
                _take(root, last.labels)
                continue
            _take(root, last.labels)
        if root.limits.over or len(todo) > DEPTH:
            root.stopped = root.limits.stopped or root.stopped
            worst = max([worst, last.bound, *(a.bound for a, _ in todo)])
            break
        if root.limits.close(root.goal, last.bound):
            worst = max(worst, last.bound)
            continue
        todo.extend(_children(last, quiet))
    return max(root.goal, min(worst, root.bound))


def _take(root: Ascent, labels: IntArray) -> None:
    value = worth(root.field.rewards, root.field.edges, root.field.weights, labels)
    if value > root.value:
        root.labels, root.value = labels, value


def _children(parent: Ascent, limits: Limits) -> list[tuple[Ascent, int]]:
    """Return the two halves of a field: one node takes its present label, or any other."""
    field, ledger = parent.field, parent.ledger
    slack = ledger.node_slack.astype(np.float64)
    for ends in field.edges.T:
        np.add.at(slack, ends, ledger.edge_slack.astype(np.float64))
    slack[field.allowed.sum(axis=1) < 2] = -1.0
    node = int(slack.argmax())
    label = int(parent.labels[node])
    others = np.arange(field.allowed.shape[1]) != label
    never = int(field.rewards.min()) - 1
    low = -2 * int(np.abs(np.where(field.allowed, field.rewards, 0)).sum())
    low = min(never, low - 2 * int(np.abs(field.weights).sum()) - 1)
    children = []
    for gone in (others, ~others):
        rewards, allowed = field.rewards.copy(), field.allowed.copy()
        rewards[node, gone], allowed[node, gone] = low, False
        half = replace(field, rewards=rewards, allowed=allowed)
        labels = parent.labels.copy()
        if gone[label]:
            labels[node] = rewards[node].argmax()
        messages = parent.to_first.copy(), parent.to_second.copy()
        children.append((Ascent(half, *messages, labels, parent.goal, limits), node))
    return children
