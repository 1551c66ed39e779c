"""Nodes of up to two labels: a minimum cut instead of search."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from layoutopt.network.costs.problem import FORBIDDEN, LARGEST, Problem
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.roof import roof


@dataclass(frozen=True, eq=False)
class BinaryCut:
    """What a minimum cut decides of a problem of two labels each.

    Parameters
    ----------
    labels
        Shape ``(nodes,)``: labels that some optimum has all together, -1 for open nodes.
    bound
        What no labelling costs less than.
    rest
        The problem of the open nodes: two labels each.
    constant
        What the others cost.
    """

    labels: IntArray
    bound: int
    rest: Problem
    constant: int


def two_labels(problem: Problem) -> BinaryCut | None:
    """Return what a minimum cut decides, ``None`` if some node has more than two labels.

    Raises
    ------
    Infeasible
        If it finds that there is no allowed labelling.
    """
    widths = problem.widths
    if not len(widths) or widths.max() > 2:
        return None
    costs = np.full((problem.nodes, 2), FORBIDDEN)
    node = np.repeat(np.arange(problem.nodes), widths)
    costs[node, np.arange(len(node)) - problem.starts[node]] = problem.costs
    tables = np.zeros((len(problem.tables), 2, 2), np.int64)
    for table, given in zip(tables, problem.tables, strict=True):
        table[: given.shape[0], : given.shape[1]] = given
    decided = roof(costs, problem.edges, problem.table_of, tables, FORBIDDEN)
    if decided.infeasible:
        raise Infeasible
    rest, constant = _open(problem, costs, tables, decided.labels)
    return BinaryCut(decided.labels, decided.bound, rest, constant)


def _open(
    problem: Problem, costs: IntArray, tables: IntArray, labels: IntArray
) -> tuple[Problem, int]:
    """Return the problem of the open nodes, and what the others cost."""
    known = labels >= 0
    ends = known[problem.edges]
    both = ends.all(axis=1)
    first, second = labels[problem.edges[both]].T
    constant = int(costs[known, labels[known]].sum())
    constant += int(tables[problem.table_of[both], first, second].sum())
    costs = costs.copy()
    for near, turned in ((0, tables), (1, tables.transpose(0, 2, 1))):
        half = ~ends[:, near] & ends[:, 1 - near]
        u, v = problem.edges[half, near], problem.edges[half, 1 - near]
        # What a decided label forbids is decided, too: no cost that is added is forbidden.
        np.add.at(costs, u, turned[problem.table_of[half], :, labels[v]])
    place = np.cumsum(~known) - 1
    inner = ~ends.any(axis=1)
    rest = Problem(
        costs[~known].reshape(-1),
        2 * np.arange(np.count_nonzero(~known) + 1),
        place[problem.edges[inner]],
        problem.table_of[inner],
        tuple(tables),
    )
    return rest, constant


def cut_part(work: Work) -> list[int] | None:
    """Return an optimal labelling of what is left, if a minimum cut decides all of it.

    Raises
    ------
    Infeasible
        If it finds that there is no allowed labelling.
    """
    labels = {u: work.labels(u) for u in work.left()}
    if max(map(len, labels.values()), default=0) > 2 or 2 * work.size() >= LARGEST:
        return None
    place = {u: k for k, u in enumerate(labels)}
    costs = [[int(work.costs[u][i]) for i in own] for u, own in labels.items()]
    edges = [
        (place[u], place[v], [[_given(table[i][j]) for j in labels[v]] for i in labels[u]])
        for u, v, table in work.edges()
    ]
    cut = two_labels(Problem.of(costs, edges))
    if cut is None or (cut.labels < 0).any():
        return None
    whole = [0] * len(work.costs)
    for u, k in zip(labels, cut.labels.tolist(), strict=True):
        whole[u] = labels[u][k]
    return whole


def _given(cost: float) -> int | None:
    return None if cost == inf else int(cost)
