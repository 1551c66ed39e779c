"""Rounding of the relaxation: fractions of labels for every node, and thresholds that decide.

The relaxation is the linear one of :mod:`layoutopt.solvers.formulation`.  Written with fractions
``x[u,l]`` of labels, which are 0 or more and add up to 1 for each node, it is::

    maximise  sum r[u,l] x[u,l]  +  sum over edges of  w (sum_l min(x[u,l], x[v,l]))         w > 0
                                                       w (sum_l max(x[u,l] + x[v,l] - 1, 0))  w < 0

A primal-dual method comes near its optimum (Chambolle and Pock, *A first-order primal-dual
algorithm for convex problems with applications to imaging*, J. Math. Imaging Vis. 40, 2011, with
the steps of Pock and Chambolle, *Diagonal preconditioning for first order primal-dual algorithms in
convex optimization*, ICCV 2011).

Rounding: with labels in random order and a random threshold, a node takes the first label of which
it has more than the threshold, else the last one (Calinescu, Karloff, Rabani, *An improved
approximation algorithm for multiway cut*, J. Comput. Syst. Sci. 60, 2000).  Order and threshold are
common to all nodes, so that like fractions become like labels.  If no number is negative and
nothing is banned, what is cut at the relaxation's optimum is expected to be at most ``3/2 - 1/k``
times the least possible, in a component of ``k`` labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from layoutopt.approximate.components import Best
from layoutopt.errors import SizeError
from layoutopt.limits import Limits
from layoutopt.presolve.components import split
from layoutopt.problem import IntArray, Labelling, fresh_needed
from layoutopt.solvers.formulation import Programme, programme

Floats = NDArray[np.float64]

PASSES = 500
"""Most passes of the primal-dual method."""

STILL = 1e-3
"""Passes end when no fraction, and no dual variable as a share of its edge's weight, moves more."""

THRESHOLDS = 64
"""How often thresholds and an order of labels are drawn."""

PACE = 1.0
"""How fast dual variables move, as a share of their edge's weight."""

CELLS_LIMIT = 5 * 10**6
"""Largest number of nodes and edges, counted once for each label that they may have."""


def round_off(problem: Labelling, limits: Limits, _start: IntArray) -> IntArray:
    """Return the best of several roundings of the relaxation, component by component.

    A component that earns less than nothing gets fresh labels throughout.

    Raises
    ------
    SizeError
        If the relaxation is too large.
    """
    cells = sum(
        (part.nodes + len(part.edges)) * (part.labels + fresh_needed(part))
        for part in split(problem).parts
    )
    if cells > CELLS_LIMIT:
        raise SizeError(f"a relaxation of {cells:,} labels of nodes and edges is too large")
    given = programme(problem)
    fractions = relax(given, limits)
    size = problem.labels + problem.nodes
    largest = given.labelling(_least(given.node, -fractions))
    best = Best(problem, problem.labels + np.arange(problem.nodes))
    best.offer(largest)
    random = np.random.default_rng(limits.seed % 2**31)
    open_ = np.flatnonzero(np.isin(given.node, given.node[(fractions > 0) & (fractions < 1)]))
    node, label, fractions = given.node[open_], given.label[open_], fractions[open_]
    for _ in range(THRESHOLDS if len(open_) else 0):
        if limits.over:
            break
        limits.report("rounding", best.value)
        order = random.permutation(size)[label]
        over = fractions > random.random()
        # Of labels that are not over the threshold the last one comes first.
        first = _least(node, np.where(over, order, 2 * size - order))
        labels = largest.copy()
        labels[node[first]] = label[first]
        best.offer(labels)
    return best.labels


def relax(given: Programme, limits: Limits) -> Floats:
    """Return fractions of labels, one for each indicator, near the relaxation's optimum.

    Edges have a dual variable for each label, between ``-w / 2`` and ``w / 2`` or, for ``w < 0``,
    between 0 and ``-w``; half of what a positive edge earns is a reward of either end.
    """
    starts = np.searchsorted(given.node, np.arange(given.nodes))
    weight = given.weights.astype(float)
    drawn = weight > 0
    rows, size = np.arange(len(weight)), (len(weight), len(given.node))
    first, second = given.match.T
    pull = np.concatenate([np.ones(len(weight)), np.where(drawn, -1.0, 1.0)])
    matrix = csr_array((pull, (np.tile(rows, 2), np.concatenate([first, second]))), shape=size)
    back = matrix.T.tocsr()
    half = np.where(drawn, weight / 2, 0)
    reward = given.rewards.astype(float) + abs(back) @ half
    low, high, offset = -half, half + np.where(drawn, 0, -weight), np.where(drawn, 0.0, 1.0)
    slope = PACE * abs(weight) / 2
    around = np.maximum.reduceat(abs(back) @ (2 * slope), starts)
    step = (1 / np.where(around > 0, around, 1))[given.node]
    x = on_simplex(np.zeros(len(given.node)), given.node, starts)
    ahead, dual = x, np.zeros(len(weight))
    for _ in range(PASSES):
        if limits.over:
            break
        answer = np.clip(dual + slope * (matrix @ ahead - offset), low, high)
        moved = on_simplex(x + step * (reward - back @ answer), given.node, starts)
        rest = max(abs(moved - x).max(), (abs(answer - dual) / slope).max(initial=0))
        ahead, x, dual = 2 * moved - x, moved, answer
        if rest < STILL:
            break
    return x


def on_simplex(values: Floats, node: IntArray, starts: IntArray) -> Floats:
    """Return the nearest numbers of 0 or more that add up to 1 for each node.

    Numbers that come out below 0 are left out until none does (Michelot, J. Optim. Theory Appl. 50,
    1986).

    Parameters
    ----------
    node, starts
        The node of each number, ascending, and where each node's numbers begin.
    """
    values = values - np.maximum.reduceat(values, starts)[node]
    kept = values > -1  # what is that much less than the largest comes out below 0
    while True:
        total = np.add.reduceat(np.where(kept, values, 0), starts)
        excess = (total - 1) / np.add.reduceat(kept, starts, dtype=np.int64)
        moved = np.where(kept, values - excess[node], 0)
        stays = moved > 0
        if np.array_equal(stays, kept):
            return moved
        kept = stays


def _least(node: IntArray, key: NDArray[Any]) -> IntArray:
    """Return for each node, which come in order, the place of its least key."""
    order = np.lexsort((key, node))
    return order[np.flatnonzero(np.diff(node, prepend=-1))]
