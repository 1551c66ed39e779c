"""Hard cores: components with random weights, sparse or dense, from a seed."""

from __future__ import annotations

import numpy as np

from layoutopt.graphs.unwinding import Graph
from layoutopt.network.problem import IntArray, Labelling, merge_parallel

DEGREE = 4
"""Mean number of neighbours of a free element."""

WEIGHT, REWARD = 10, 20
"""Largest weight of an edge, and largest reward of a location."""


def sparse(nodes: int, labels: int, seed: int = 0) -> Labelling:
    """Return one connected component: a random tree, random edges on top, random rewards.

    Edges weigh 1 to 10 and there are twice as many as nodes; every node has on average two
    locations that earn it 1 to 20.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(nodes)
    parents = (rng.random(nodes - 1) * np.arange(1, nodes)).astype(int)
    tree = np.column_stack([order[1:], order[parents]])
    more = rng.integers(0, nodes, (nodes * DEGREE // 2 - nodes + 1, 2))
    return _problem(rng, nodes, labels, np.concatenate([tree, more]))


def grid(nodes: int, labels: int, seed: int = 0) -> Labelling:
    """Return a grid of about so many nodes, with weights and rewards as ``sparse`` has them."""
    rng = np.random.default_rng(seed)
    rows = int(nodes**0.5)
    columns = nodes // rows
    place = np.arange(rows * columns).reshape(rows, columns)
    across = np.column_stack([place[:, :-1].ravel(), place[:, 1:].ravel()])
    down = np.column_stack([place[:-1].ravel(), place[1:].ravel()])
    return _problem(rng, rows * columns, labels, np.concatenate([across, down]))


def dense(nodes: int, labels: int, seed: int = 0, *, signed: bool = False) -> Labelling:
    """Return one component in which all nodes meet, and every node is drawn to every location.

    Edges weigh 1 to 10, or with ``signed`` as often -1 to -10; rewards are 1 to five times the
    number of nodes, so that neither side outweighs the other.
    """
    rng = np.random.default_rng(seed)
    ends = np.column_stack(np.triu_indices(nodes, 1))
    weights = rng.integers(1, WEIGHT + 1, len(ends))
    if signed:
        weights *= rng.choice([-1, 1], len(ends))
    at = np.argwhere(np.ones((nodes, labels), bool))
    return Labelling(nodes, labels, ends, weights, at, rng.integers(1, 5 * nodes, len(at)))


def _problem(rng: np.random.Generator, nodes: int, labels: int, ends: IntArray) -> Labelling:
    ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    edges, weights = merge_parallel(ends, rng.integers(1, WEIGHT + 1, len(ends)))
    at = np.column_stack([rng.integers(0, nodes, 2 * nodes), rng.integers(0, labels, 2 * nodes)])
    at, rewards = merge_parallel(at, rng.integers(1, REWARD + 1, len(at)))
    return Labelling(nodes, labels, edges, weights, at, rewards)


def as_graph(problem: Labelling, copies: int = 1) -> Graph:
    """Return a graph that holds a problem so many times, side by side.

    Node ``u`` is column ``u`` of the sink, label ``l`` column ``l`` of the source; row ``i``
    of either belongs to copy ``i``.
    """
    graph = Graph(f"core-{copies}x{problem.nodes}x{problem.labels}")
    sink = graph.sink((copies, problem.nodes))
    source = graph.source((copies, problem.labels))
    free = [graph.slice(sink, (0, u), (copies, u + 1)) for u in range(problem.nodes)]
    fixed = [graph.slice(source, (0, k), (copies, k + 1)) for k in range(problem.labels)]
    for (u, v), weight in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        graph.valued_pair(free[u], free[v], weight)
    for (u, k), reward in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        graph.valued_pair(free[u], fixed[k], reward)
    return graph
