"""Parts of very many labels: labels that are far from each other share a column.

If several labels count as one, no labelling earns less, as long as no edge is negative.  So
the relaxation of the smaller problem bounds the larger one.  A labelling of it comes
back by giving each connected piece of one column the best label of that column; nothing is
lost where no piece earns several.  That is likely if labels share a column only
where the nodes that they reward are several edges apart: first two, then more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from layoutopt.limits import Limits
from layoutopt.problem import IntArray, Labelling, merge_parallel
from layoutopt.result import Result, Stopped
from layoutopt.solvers.relaxation import begin, field_of, fits

MANY = 64
"""From so many labels on columns are shared."""

DISTANCES = (2, 3, 4, 6)
"""How many edges apart labels of one column are, in turn."""

CONFLICTS_LIMIT = 3 * 10**7
"""Largest number of pairs of labels that must not share, counted once for each way they meet."""

SHARE = 0.25
"""Share of the time left that one distance may take."""

EFFORT = 15.0
"""Effort of one distance, see ``Limits.turn``."""


def share_columns(part: Labelling, limits: Limits, start: IntArray) -> Result | None:
    """Bound a part by sharing columns, or return ``None`` if that is not for it.

    Parameters
    ----------
    start
        A labelling to begin with.

    Returns
    -------
    Result
        The best labelling that came back, or ``start``, and the least bound.
    """
    signed = (part.weights < 0).any() or (part.rewards < 0).any() or len(part.banned)
    if part.labels < MANY or signed or not fits(part):
        return None
    best, bound = start, part.total()
    quiet = replace(limits, tell=None)
    for distance in DISTANCES:
        conflicts = _conflicts(part, distance)
        column = None if conflicts is None else _columns(conflicts)
        if column is None or 2 * int(column.max()) > part.labels:
            break
        small = _merged(part, column)
        short = quiet.within(SHARE * limits.left).turn(EFFORT)
        field = field_of(small, min(short.left, EFFORT))
        if field is None or limits.over:
            break
        ascent = begin(field, short, _columns_of(best, column, small.nodes))
        ascent.climb(np.arange(small.nodes))
        bound = min(bound, ascent.bound)
        best = max(best, _restored(part, column, ascent.labels), key=part.value)
        limits.report("sharing columns", part.value(best), bound)
        if limits.close(part.value(best), bound):
            break
    value = part.value(best)
    stopped = Stopped.FINISHED if bound == value else limits.stopped or Stopped.GAP_LIMIT
    return Result(objective=value, bound=bound, labelling=best, stopped=stopped)


def _conflicts(part: Labelling, distance: int) -> csr_array | None:
    """Return which labels reward nodes within a distance of each other; ``None`` if too many."""
    n = part.nodes
    owns = csr_array(
        (np.ones(len(part.reward_at), bool), tuple(part.reward_at.T)), shape=(n, part.labels)
    )
    ends = coo_array((np.ones(len(part.edges), bool), tuple(part.edges.T)), shape=(n, n)).tocsr()
    step = csr_array(ends + ends.T + eye_array(n, dtype=bool, format="csr"))
    reach = owns
    for matrix in [step] * distance + [csr_array(owns.T)]:
        if int(np.diff(reach.indptr)[matrix.indices].sum()) > CONFLICTS_LIMIT:
            return None
        reach = csr_array(matrix @ reach)
    return reach


def _columns(conflicts: csr_array) -> IntArray:
    """Give each label a column that no label has that it conflicts with."""
    starts, others = conflicts.indptr.tolist(), conflicts.indices.tolist()
    column = [-1] * (len(starts) - 1)
    for label in np.argsort(-np.diff(conflicts.indptr), kind="stable").tolist():
        taken = {column[other] for other in others[starts[label] : starts[label + 1]]}
        c = 0
        while c in taken:
            c += 1
        column[label] = c
    return np.array(column, np.int64)


def _merged(part: Labelling, column: IntArray) -> Labelling:
    """Return a part in which labels of one column, no two of which meet at a node, are one."""
    at = np.column_stack([part.reward_at[:, 0], column[part.reward_at[:, 1]]])
    return replace(part, labels=int(column.max()) + 1, reward_at=at)


def _columns_of(labels: IntArray, column: IntArray, nodes: int) -> IntArray:
    """Return a labelling's columns; fresh labels have none, and become unknown ones."""
    known = labels < len(column)
    return np.where(known, column[np.where(known, labels, 0)], len(column) + nodes)


def _restored(part: Labelling, column: IntArray, columns: IntArray) -> IntArray:
    """Return labels: each connected piece of one column takes the best label of it."""
    same = part.edges[columns[part.edges[:, 0]] == columns[part.edges[:, 1]]]
    matrix = coo_array((np.ones(len(same), bool), tuple(same.T)), shape=(part.nodes,) * 2)
    _, piece = connected_components(matrix, directed=False)
    node, label = part.reward_at.T
    own = column[label] == columns[node]
    ends, earned = merge_parallel(
        np.column_stack([piece[node[own]], label[own]]), part.rewards[own]
    )
    best = part.labels + np.unique(piece, return_index=True)[1]
    order = np.argsort(earned, kind="stable")
    best[ends[order, 0]] = ends[order, 1]  # of several the last one stays, which earns most
    return np.asarray(best[piece])
