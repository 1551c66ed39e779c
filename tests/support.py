"""Shared by the tests: random problems, and optima by trying everything."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutopt.base.entries import ENTRIES, Entry, Takes, entries
from layoutopt.base.errors import InputError
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.graphs.ops import UnwindingOp
from layoutopt.graphs.unwinding import Graph
from layoutopt.network.problem import Labelling, Precedence, exact_integers
from layoutopt.unwinding import unwind

Edges = dict[tuple[int, int], int]

EXACT, HEURISTIC = (tuple(entries(Takes.LABELLING, proves=proves)) for proves in (True, False))
"""Names of solvers of labelling problems."""


def labelling(
    nodes: int,
    labels: int,
    edges: Edges | None = None,
    rewards: Edges | None = None,
    banned: Sequence[tuple[int, int]] = (),
    precedence: Precedence | None = None,
) -> Labelling:
    """Write a problem down as ``{(u, v): weight}`` and ``{(u, label): reward}``."""
    edges, rewards = edges or {}, rewards or {}
    return Labelling(
        nodes,
        labels,
        np.array(list(edges), np.int64).reshape(-1, 2),
        exact_integers(list(edges.values())),
        np.array(list(rewards), np.int64).reshape(-1, 2),
        exact_integers(list(rewards.values())),
        np.array(list(banned), np.int64).reshape(-1, 2),
        precedence,
    )


def random_problem(
    seed: int,
    nodes: int = 5,
    labels: int = 3,
    *,
    negative: bool = False,
    bans: bool = False,
    barriers: int = 0,
    wide: int = 1,
) -> Labelling:
    """Return a random problem; equal arguments give equal problems.

    Parameters
    ----------
    nodes, labels
        The largest number of either.
    negative
        Whether some weights and rewards are negative.
    barriers
        Number of barriers in an order rule; none if 0.
    wide
        A factor of all numbers, for those that do not fit 64 bits.
    """
    draw = random.Random(seed)
    n, k = draw.randint(1, nodes), draw.randint(0 if seed % 9 == 0 else 1, labels)
    dense = draw.choice([0.3, 0.6, 1.0])

    def number() -> int:
        size = draw.choice([1, 1, 2, 3, 5, 8, 13]) * wide + (draw.randint(0, 9) if wide > 1 else 0)
        return -size if negative and draw.random() < 0.3 else size

    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    turned = [pair if draw.random() < 0.5 else pair[::-1] for pair in pairs]
    edges = {pair: number() for pair in turned if draw.random() < dense}
    places = [(u, label) for u in range(n) for label in range(k)]
    rewards = {place: number() for place in places if draw.random() < 0.6}
    banned = [place for place in places if bans and draw.random() < 0.2]
    order = _random_order(draw, n, k, barriers) if barriers else None
    return labelling(n, k, edges, rewards, banned, order)


def _random_order(draw: random.Random, nodes: int, labels: int, barriers: int) -> Precedence:
    arcs = [(b, c) for b in range(barriers) for c in range(b + 1, barriers)]
    chosen = [arc for arc in arcs if draw.random() < 0.15]
    sets = [(), *(tuple(b for b in range(barriers) if draw.random() < 0.4) for _ in range(3))]
    distinct = tuple(dict.fromkeys(sets))
    return Precedence(
        barriers,
        np.array(chosen, np.int64).reshape(-1, 2),
        np.array([draw.randint(-1, barriers - 1) for _ in range(labels)], np.int64),
        distinct,
        np.array([draw.randrange(len(distinct)) for _ in range(nodes)], np.int64),
    )


def labellings(problem: Labelling) -> np.ndarray:
    """Return every allowed labelling that differs from all others by more than fresh names.

    A node takes a named label, its own fresh one, or the fresh one of an earlier node that
    took it, too.
    """
    banned = set(map(tuple, problem.banned.tolist()))
    every, named = np.zeros((1, 0), np.int64), problem.labels
    for u in range(problem.nodes):
        free = [label for label in range(named + u + 1) if (u, label) not in banned]
        every = np.concatenate([np.insert(every, u, label, 1) for label in free])
        owner = every[:, u] - named
        every = every[(owner < 0) | (every[range(len(every)), owner.clip(0)] == every[:, u])]
    return every[[_ordered(problem, x) for x in every.tolist()] if problem.precedence else ...]


def _ordered(problem: Labelling, labels: Sequence[int]) -> bool:
    order = problem.precedence
    if order is None:
        return True
    after: dict[int, set[int]] = {b: set() for b in range(order.barriers)}
    for b, c in order.arcs.tolist():
        after[b].add(c)
    for u, label in enumerate(labels):
        barrier = int(order.label_barrier[label]) if label < problem.labels else -1
        if barrier >= 0:
            after[barrier].update(order.reader_sets[order.node_readers[u]])
    while True:  # take away what nothing is before, as long as there is something
        before = {c for arcs in after.values() for c in arcs}
        rest = {b: arcs for b, arcs in after.items() if b in before}
        if len(rest) == len(after):
            return not rest
        after = rest


def worth(problem: Labelling, labels: Sequence[int]) -> int:
    """Return a labelling's value by the definition, in Python integers."""
    total = 0
    for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        total += w * (labels[u] == labels[v])
    for (u, label), r in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        total += r * (labels[u] == label)
    return total


def optimum(problem: Labelling) -> int:
    """Return the best value of any allowed labelling."""
    every = labellings(problem)
    most = sum(map(abs, problem.weights.tolist() + problem.rewards.tolist()))
    total = np.zeros(len(every), np.int64 if most < 2**62 else object)
    for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        total[every[:, u] == every[:, v]] += w
    for (u, label), r in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        total[every[:, u] == label] += r
    return int(total.max())


def allowed(problem: Labelling, labels: Sequence[int]) -> bool:
    """Return whether a labelling keeps to all bans and order rules."""
    banned = set(map(tuple, problem.banned.tolist()))
    inside = all(0 <= label < problem.labels + problem.nodes for label in labels)
    return inside and _ordered(problem, labels) and not banned & set(enumerate(labels))


def random_labels(problem: Labelling, seed: int) -> np.ndarray:
    """Return an arbitrary labelling, fresh labels of other nodes included, bans respected."""
    draw = random.Random(seed)
    banned = set(map(tuple, problem.banned.tolist()))
    found = []
    for u in range(problem.nodes):
        every = range(problem.labels + problem.nodes)
        found.append(draw.choice([label for label in every if (u, label) not in banned]))
    return np.array(found, np.int64)


def beside(one: Labelling, two: Labelling) -> Labelling:
    """Return two problems side by side, the second without order rules."""
    order = one.precedence
    if order is not None:
        free = np.full(two.nodes, order.reader_sets.index(()))
        order = Precedence(
            order.barriers,
            order.arcs,
            np.concatenate([order.label_barrier, np.full(two.labels, -1)]),
            order.reader_sets,
            np.concatenate([order.node_readers, free]),
        )
    return Labelling(
        one.nodes + two.nodes,
        one.labels + two.labels,
        np.concatenate([one.edges, two.edges + one.nodes]),
        np.concatenate([one.weights, two.weights]),
        np.concatenate([one.reward_at, two.reward_at + (one.nodes, one.labels)]),
        np.concatenate([one.rewards, two.rewards]),
        precedence=order,
    )


def install(folder: Path, name: str, points: str, source: str) -> None:
    """Put a package of one module into a folder, as if it were installed with entry points."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


def swap_solver(patch: pytest.MonkeyPatch, name: str, solve: Callable[..., Any]) -> None:
    """Put a function in place of an exact solver of labelling problems."""
    entry = Entry(name, Takes.LABELLING, proves=True, place=solve)
    patch.setitem(ENTRIES, (name, Takes.LABELLING), entry)


@contextmanager
def refused(*parts: str) -> Iterator[None]:
    """Expect an :class:`InputError` of one line that contains all the given parts."""
    with pytest.raises(InputError) as error:
        yield
    text = str(error.value)
    for part in parts:
        assert part in text
    assert text
    assert len(text.splitlines()) == 1


def fits(found: str, words: str) -> bool:
    """Return whether something is said in these words, of which ``...`` stands for any."""
    pattern = ".*".join(map(re.escape, words.split("...")))
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def hard_problem(seed: int, nodes: int, labels: int, *, negative: bool = False) -> Labelling:
    """Return a random problem with three edges and two rewards for each node."""
    draw = random.Random(seed)
    edges: Edges = {}
    for u in range(nodes):
        for v in draw.sample(range(nodes), 3):
            if u != v:
                sign = -1 if negative and draw.random() < 0.3 else 1
                edges[min(u, v), max(u, v)] = sign * draw.randint(1, 20)
    wanted = {(u, draw.randrange(labels)): draw.randint(1, 30) for u in range(nodes) for _ in "ab"}
    return labelling(nodes, labels, edges, wanted)


def aliases() -> Graph:
    """Return a graph on which greedy0 earns 8 of 15, and default layouts nothing."""
    graph = Graph("aliases")
    x = graph.sink((1,), name="x")
    a, b = graph.source((1,), name="a"), graph.source((1,), name="b")
    for _ in range(5):
        graph.valued_pair(graph.identity(x), b, 3)
    graph.valued_pair(x, a, 8)
    return graph


def sinks(**shapes: tuple[int, ...]) -> Graph:
    """Return a graph with sinks of the given names and shapes."""
    graph = Graph()
    for name, shape in shapes.items():
        graph.sink(shape, name=name)
    return graph


def hard_graph(seed: int, side: int) -> Graph:
    """Return a graph of one sink whose elements like and dislike each other every which way.

    Its ``side * (side + 1)`` elements are one component, of which nothing is decided by a
    reduction; from ``side`` 10 on, no method proves its optimum within seconds.
    """
    draw = random.Random(seed)
    size = side * (side + 1)
    graph = Graph(f"hard-{seed}", "one large component of signed values")
    x = graph.sink((size,), name="x")
    turned = graph.dim_shuffle(graph.reshape(x, (side, side + 1)), (1, 0))
    shuffled = graph.reshape(turned, (size,))
    rotated = graph.concat([graph.slice(x, (7,), (size,)), graph.slice(x, (0,), (7,))], 0)
    for name, value in [("s", "2.5"), ("t", "3")]:
        mapping = [draw.randrange(6) for _ in range(size)]
        graph.valued_pair(x, graph.source((size,), mapping, name=name), value)
    graph.valued_pair(x, shuffled, -5)
    graph.valued_pair(x, rotated, 3)
    graph.valued_pair(shuffled, rotated, -2)
    return graph


def with_ops(graph: Graph, ops: Iterable[UnwindingOp]) -> Graph:
    """Return a graph of other ops, whose tensors have the old names, with the same pairs."""
    found = Graph(graph.name, graph.description)
    for op in ops:
        found.add(op)
    for pair in graph.valued_pairs():
        found.valued_pair(pair.a.name, pair.b.name, pair.value)
    return found


def named_pairs(graph: Graph) -> list[tuple[str, str, Decimal]]:
    """Return names and value of each ValuedPair, in order."""
    return [(p.a.name, p.b.name, p.value) for p in graph.valued_pairs()]


def proved(graph: Graph) -> UnwindingResult:
    """Return the result for a graph, whose score must be proved to be the best."""
    result = unwind(graph)
    assert result.status is Status.OPTIMAL
    return result
