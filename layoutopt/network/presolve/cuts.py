"""Minimum cuts: problems of two labels solved, and labels of others fixed.

*Two labels*: with no negative edge and two alternatives in all, the optimum is a minimum cut
between the two (Greig, Porteous, Seheult, J. R. Stat. Soc. B 51, 1989).

*Isolating cuts*: let ``d_u = r_u(l) - max_{m != l} r_u(m)`` and let ``A`` maximise
``sum_{u in A} d_u`` less the weight of edges that leave ``A``.  Then some optimal labelling
has label ``l`` on all of ``A``: for any ``B`` within ``A``, giving ``l`` to ``B`` gains at least
what moving ``B`` out of ``A`` would cost the cut.  With several terminals this is the
isolating cut of multiway cut (Dahlhaus et al., 1994), with rewards of one node counted as
alternatives it is Kovtun's partial optimality (2003).
"""

from __future__ import annotations

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.result import Result
from layoutopt.network.flow import best_set
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    Reduction,
    exact_sum,
    fresh_needed,
    merge_parallel,
    restored_names,
    reward_table,
)


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


LARGEST = 2**60
"""Sums of capacities stay below this, so that flows fit 64 bits."""

WORK = 4 * 10**7
"""Labels times nodes and edges that isolating cuts may take, about half a minute."""


def cuttable(problem: Labelling) -> bool:
    """Return whether minimum cuts apply: no negative edges, and numbers that fit."""
    return not (problem.weights < 0).any() and 8 * problem.total() < LARGEST


def two_labels(problem: Labelling) -> Result | None:
    """Solve a problem of at most two alternatives, or return ``None`` if it has more."""
    if not cuttable(problem):
        return None
    fresh = fresh_needed(problem)
    if problem.labels + fresh > 2:
        return None
    table = reward_table(problem, fresh)
    if table.shape[1] < 2:
        labels = np.zeros(problem.nodes, np.int64)
    else:
        first = best_set(problem.edges, problem.weights, table[:, 0] - table[:, 1])
        labels = np.where(first, 0, 1)
    value = problem.value(labels)
    return Result(objective=value, bound=value, labelling=labels)


def isolating_cuts(problem: Labelling, limits: Limits | None = None) -> Reduction:
    """Fix what the isolating cuts of labels decide: of those first that earn most.

    Where there are very many labels, or time is up, not all are tried.
    """
    chosen = np.full(problem.nodes, -1, np.int64)
    if not cuttable(problem):
        return fix(problem, chosen)
    limits = limits or Limits()
    nodes, named = problem.reward_at.T
    earned = np.bincount(named, problem.rewards.astype(float), problem.labels)
    order = np.argsort(-earned, kind="stable")
    most = WORK // (problem.nodes + len(problem.edges) + 1)
    first, second = _two_best(problem)
    never = -1 - problem.total()
    by_label = np.argsort(named, kind="stable")
    ends = np.searchsorted(named[by_label], np.arange(problem.labels + 1))
    for label in order[:most].tolist():
        if limits.over:
            break
        own = by_label[ends[label] : ends[label + 1]]
        reward = problem.rewards[own]
        gain = -first
        leads = reward == first[nodes[own]]
        gain[nodes[own]] = reward - np.where(leads, second[nodes[own]], first[nodes[own]])
        gain[problem.banned[problem.banned[:, 1] == label, 0]] = never
        inside = best_set(problem.edges, problem.weights, gain)
        # Less what another set took already, a best set is still a best set.
        chosen[inside & (chosen < 0)] = label
    return fix(problem, chosen)


def _two_best(problem: Labelling) -> tuple[IntArray, IntArray]:
    """Return the two largest rewards of each node, fresh labels earning 0."""
    first, second = np.zeros((2, problem.nodes), np.int64)
    order = np.lexsort((-problem.rewards, problem.reward_at[:, 0]))
    node, reward = problem.reward_at[order, 0], problem.rewards[order]
    begins = np.r_[True, node[1:] != node[:-1]][: len(node)]
    follows = np.r_[False, begins[:-1]][: len(node)] & ~begins
    first[node[begins]] = np.maximum(reward[begins], 0)
    second[node[follows]] = np.maximum(reward[follows], 0)
    return first, second
