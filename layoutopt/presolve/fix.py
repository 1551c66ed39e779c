"""Taking decided nodes out of a problem."""

from __future__ import annotations

import numpy as np

from layoutopt.presolve.reduction import Reduction, restored_names
from layoutopt.problem import IntArray, Labelling, exact_sum, merge_parallel


def fix(problem: Labelling, labels: IntArray) -> Reduction:
    """Give labels to some nodes; their edges become rewards of the others.

    Parameters
    ----------
    labels
        A label for each node, or -1 for nodes that stay.  It must be sound to take them;
        nothing here checks that.
    """
    stays = labels < 0
    place = np.cumsum(stays) - 1
    u, v = problem.edges.T
    node, label = problem.reward_at.T
    constant = exact_sum(problem.rewards[~stays[node] & (labels[node] == label)])
    constant += exact_sum(problem.weights[~stays[u] & ~stays[v] & (labels[u] == labels[v])])
    ends, weights = [problem.reward_at[stays[node]]], [problem.rewards[stays[node]]]
    for near, far in ((u, v), (v, u)):
        # A fresh label of a decided node earns its neighbours nothing by name.
        tied = stays[near] & ~stays[far] & (labels[far] < problem.labels)
        ends.append(np.column_stack([near[tied], labels[far[tied]]]))
        weights.append(problem.weights[tied])
    at, rewards = merge_parallel(np.concatenate(ends), np.concatenate(weights))
    inner = stays[u] & stays[v]
    bans = problem.banned[stays[problem.banned[:, 0]]]
    small = Labelling(
        int(stays.sum()),
        problem.labels,
        place[problem.edges[inner]],
        problem.weights[inner],
        np.column_stack([place[at[:, 0]], at[:, 1]]),
        rewards,
        np.column_stack([place[bans[:, 0]], bans[:, 1]]),
    )
    kept = np.flatnonzero(stays)

    def restore(own: IntArray) -> IntArray:
        full = labels.copy()
        full[kept] = restored_names(own, kept, problem.labels)
        return full

    return Reduction(problem, small, constant, kept, restore)
