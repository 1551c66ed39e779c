"""Random problems of pairwise costs, and optima by trying everything."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from math import inf

from benchmarks import pbqp
from benchmarks.pbqp import Network, dressed
from layoutopt.base.limits import Limits
from layoutopt.network import Network as Problem
from layoutopt.network.builder import CostRows
from layoutopt.network.costs.work import Infeasible, Work, work_of
from layoutopt.network.network import Array
from tests.network.oracle import best

Edge = tuple[int, int, CostRows]
"""Two nodes and a table."""


def stated(costs: CostRows, edges: Sequence[Edge] = ()) -> Problem:
    """Return a problem of costs of labels, ``None`` forbidden, and of tables."""
    ends, tables = [(u, v) for u, v, _ in edges], [table for *_, table in edges]
    return pbqp.stated(costs, ends, tables)


def cost(problem: Problem, labels: Array) -> int | None:
    """Return what a labelling costs, ``None`` if it does what is forbidden."""
    return None if problem.fault(labels) else problem.cost(labels)


def work_on(problem: Problem) -> Work:
    """Return a problem to work on."""
    return work_of(problem, Limits())


def registers(seed: int, values: int) -> Problem:
    """Return values that get registers or are spilled; some must differ, some should agree."""
    draw, nodes = random.Random(seed), range(values)
    own = range(draw.randint(3, 5))
    costs = [[*(draw.randint(0, 3) for _ in own), draw.randint(5, 60)] for _ in nodes]
    edges: list[Edge] = []
    for u, v in itertools.combinations(nodes, 2):
        same = draw.choice([None, None, -6, *[0] * 9])
        table = [[same if i == j else 0 for j in (*own, -1)] for i in (*own, -2)]
        edges += [(u, v, table)] if same != 0 else []
    return stated(costs, edges)


def random_problem(seed: int, nodes: int = 7, labels: int = 4, wide: int = 1) -> Problem:
    """Return a random problem; equal arguments give equal problems.

    Sparse or dense, with parallel edges, costs of both signs, many of them 0, and between none
    and a third of all costs forbidden; some tables leave the second node no choice.

    Parameters
    ----------
    nodes, labels
        The largest number of either.
    wide
        A factor of all costs, on which there is noise if it is not 1.
    """
    draw = random.Random(seed)
    n = draw.randint(1, nodes)
    forbidden = draw.choice([0.0, 0.1, 0.3])
    density = draw.choice([0.1, 0.3, 0.6])

    def number() -> int | None:
        if draw.random() < forbidden:
            return None
        return draw.choice([0, 1, 1]) * (draw.randint(-9, 9) * wide + draw.randrange(wide))

    def table(rows: int, columns: int) -> list[list[int | None]]:
        given = [[number() for _ in range(columns)] for _ in range(rows)]
        if forbidden and draw.random() < 0.2:
            only = [draw.randrange(columns) for _ in range(rows)]
            given = [
                [x if j == k else None for j, x in enumerate(row)]
                for k, row in zip(only, given, strict=True)
            ]
        return given

    costs = [[number() for _ in range(draw.randint(1, labels))] for _ in range(n)]
    edges = [
        (u, v, table(len(costs[u]), len(costs[v])))
        for u in range(n)
        for v in range(n)
        if u != v and draw.random() < density
    ]
    return stated(costs, edges)


def random_network(seed: int) -> Network:
    """Return two to seven ops that read one or two tensors each, in two to four layouts."""
    draw = random.Random(seed)
    inputs: list[tuple[int, ...]] = [()]
    for t in range(1, draw.randint(2, 7)):
        inputs.append(tuple({draw.randrange(t) for _ in range(draw.choice([1, 2]))}))
    return dressed(inputs, draw.randint(2, 4), draw)


def written(work: Work) -> Problem:
    """Return what is left, without its constant, as a problem."""
    left = [u for u, gone in enumerate(work.gone) if not gone]
    place = {u: k for k, u in enumerate(left)}

    def given(costs: list[float] | tuple[float, ...]) -> list[int | None]:
        return [None if cost == inf else int(cost) for cost in costs]

    return stated(
        [given(work.costs[u]) for u in left],
        [
            (place[u], place[v], [given(row) for row in table])
            for u in left
            for v, table in work.near[u].items()
            if u < v
        ],
    )


def left_optimum(work: Work) -> int | None:
    """Return the optimum of what is left with its constant, by trying everything."""
    least = best(written(work))
    return None if least is None else work.constant + least


def opened(problem: Problem) -> Work | None:
    """Return a problem to work on, ``None`` if a node has no label to begin with."""
    try:
        return work_on(problem)
    except Infeasible:
        return None
