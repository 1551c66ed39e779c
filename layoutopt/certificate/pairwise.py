"""Bounds on sums of worths of labels and of pairs of labels, proved by evidence.

Maximised over labels ``x`` is ``sum_i unary[i][x_i] + sum_e table_e[x_i, x_j]``, in whole numbers
of any size.  Evidence is plain data that tells a way to a bound: :data:`KINDS` lists them.  The
bound is right whatever the evidence says, which can only make it weak.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, lcm, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.certificate.refused import Refused, listed, number, numbered

Array: TypeAlias = NDArray[Any]
Evidence: TypeAlias = dict[str, Any]
Bound: TypeAlias = tuple[int, bool]

MOST_LABELLINGS, MOST_ENTRIES, DEEPEST, LARGEST = 10**6, 10**7, 50, 2**62


class Pairwise:
    """A problem: an array per node, and per edge ``(i, j, table)`` an array of two dimensions."""

    def __init__(self, unary: Sequence[Array], edges: Sequence[tuple[int, int, Array]]) -> None:
        self.widths = [len(own) for own in unary]
        if 0 in self.widths:
            raise Refused(f"node {self.widths.index(0)} has no label")
        for i, j, table in edges:
            known = min(i, j) >= 0 and max(i, j) < len(unary) and i != j
            if not known or table.shape != (self.widths[i], self.widths[j]):
                raise Refused(f"the table of nodes {i} and {j} does not fit their labels")
        every = [*unary, *(table for _, _, table in edges)]
        different = {id(array): array for array in every}  # many edges share a table
        largest = {key: max(int(a.max()), -int(a.min())) for key, a in different.items()}
        self.total = sum(largest[id(array)] for array in every)
        self.dtype = np.dtype(np.int64 if self.total < LARGEST else object)  # no sum overflows
        exact = {key: array.astype(self.dtype, copy=False) for key, array in different.items()}
        self.unary = [exact[id(own)] for own in unary]
        self.edges = [(i, j, exact[id(table)]) for i, j, table in edges]


def value(problem: Pairwise, labels: object) -> int:
    """Return what a labelling is worth, a list of a label per node."""
    x = numbered(labels, problem.widths, "labels")
    own = sum(int(worth[label]) for worth, label in zip(problem.unary, x, strict=True))
    return own + sum(int(table[x[i], x[j]]) for i, j, table in problem.edges)


def bound(problem: Pairwise, evidence: object, depth: int = 0) -> Bound:
    """Return what no labelling exceeds by some evidence, and whether that is a solver's word."""
    kind = evidence.get("kind") if isinstance(evidence, dict) else None
    if not isinstance(evidence, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"evidence must be of one of the kinds {', '.join(KINDS)}")
    if depth > DEEPEST:
        raise Refused(f"evidence is nested more than {DEEPEST} deep")
    return KINDS[kind](problem, evidence, depth)


def _word(_: Pairwise, evidence: Evidence, __: int) -> Bound:
    """Take a solver's word."""
    return floor(number(evidence.get("bound"))), True


def _exhaustive(problem: Pairwise, _: Evidence, depth: int) -> Bound:
    """Try all labellings, of one node after the other."""
    if prod(problem.widths) > MOST_LABELLINGS:
        raise Refused(f"there are more than {MOST_LABELLINGS} labellings to try")
    return _table(problem, {"order": list(range(len(problem.widths)))}, depth)


def _table(problem: Pairwise, evidence: Evidence, _: int) -> Bound:
    """Let nodes leave in an order; the best that each can do is a table of its neighbours."""
    order = _each(evidence.get("order"), problem, "the order")
    rank = {u: place for place, u in enumerate(order)}
    waiting: list[list[tuple[list[int], Array]]] = [[] for _ in [*order, None]]

    def wait(scope: list[int], table: Array) -> None:
        waiting[rank[scope[0]] if scope else -1].append((scope, table))

    for u, own in enumerate(problem.unary):
        wait([u], own)
    for i, j, table in problem.edges:
        ends = sorted((i, j), key=rank.__getitem__)
        wait([u for u in ends if problem.widths[u] > 1], table if ends[0] == i else table.T)
    for place, u in enumerate(order):
        near = {v for scope, _ in waiting[place] for v in scope} - {u}
        scope = [u, *sorted(near, key=rank.__getitem__)]
        sizes = [problem.widths[v] for v in scope]
        if prod(sizes) > MOST_ENTRIES:
            raise Refused(f"node {u} leaves a table of more than {MOST_ENTRIES} entries")
        sums = np.zeros(sizes, problem.dtype)
        for nodes, table in waiting[place]:
            sums += table.reshape([problem.widths[v] if v in nodes else 1 for v in scope])
        waiting[place] = []
        wait(scope[1:], sums.max(axis=0))
    return sum(int(np.sum(rest)) for _, rest in waiting[-1]), False


def _dual(problem: Pairwise, evidence: Evidence, _: int) -> Bound:
    """Move worth from edges to their nodes, then let each node and each edge take its best."""
    parts = evidence.get("parts", 1)
    if type(parts) is not int or not 0 < parts < LARGEST:
        raise Refused("messages must count parts of one, of which there is a whole number")
    messages = listed(evidence.get("messages"), len(problem.edges), "messages")
    sides: list[list[Fraction | int]] = []
    for (i, j, _table), pair in zip(problem.edges, messages, strict=True):
        for u, side in zip((i, j), listed(pair, 2, "messages of an edge"), strict=True):
            sides.append([*map(number, listed(side, problem.widths[u], f"one to node {u}"))])
    unit = 1
    for denominator in {x.denominator for side in sides for x in side}:
        unit = lcm(unit, denominator)
        if unit > LARGEST**2:
            raise Refused("denominators of messages have no small common multiple")
    whole = [[int(x * unit) for x in side] for side in sides]
    unit *= parts
    most = unit * (problem.total + 1) + 2 * sum(max(map(abs, side)) for side in whole)
    dtype = np.dtype(np.int64 if most < LARGEST else object)
    nodes, total = [own.astype(dtype) * unit for own in problem.unary], 0
    arrays = iter([np.array(side, dtype) for side in whole])
    for i, j, table in problem.edges:
        one, two = next(arrays), next(arrays)
        total += int((table.astype(dtype) * unit - one[:, None] - two).max())
        nodes[i] += one
        nodes[j] += two
    return (total + sum(int(own.max()) for own in nodes)) // unit, False


def _branch(problem: Pairwise, evidence: Evidence, depth: int) -> Bound:
    """Fix one node to each of its labels in turn."""
    [node] = numbered([evidence.get("node")], [len(problem.widths)], "the node of a branch")
    leaves = listed(evidence.get("leaves"), problem.widths[node], f"leaves of node {node}")
    found = [bound(fixed(problem, node, x), leaf, depth + 1) for x, leaf in enumerate(leaves)]
    return max(best for best, _ in found), any(word for _, word in found)


def fixed(problem: Pairwise, node: int, label: int) -> Pairwise:
    """Return a problem in which a node has one of its labels only."""
    cut = {node: slice(label, label + 1)}
    unary = [own[cut.get(u, ALL)] for u, own in enumerate(problem.unary)]
    edges = [
        (i, j, table[cut.get(i, ALL), cut.get(j, ALL)] if node in (i, j) else table)
        for i, j, table in problem.edges
    ]
    return Pairwise(unary, edges)


def _components(problem: Pairwise, evidence: Evidence, depth: int) -> Bound:
    """Add up parts; evidence numbers a part's nodes as it lists them.

    No edge may join parts, unless one of its nodes has a single label.
    """
    parts = listed(evidence.get("parts"), None, "parts")
    lists = [part.get("nodes") if isinstance(part, dict) else None for part in parts]
    every = [listed(nodes, None, "nodes of a part") for nodes in lists]
    _each([u for nodes in every for u in nodes], problem, "the parts together")
    problems = zip(split(problem, every), parts, strict=True)
    found = [bound(own, part.get("evidence"), depth + 1) for own, part in problems]
    return sum(best for best, _ in found), any(word for _, word in found)


def split(problem: Pairwise, parts: Sequence[Sequence[int]]) -> list[Pairwise]:
    """Return parts of a problem, each with its nodes in the order in which they are listed."""
    place = {u: (part, k) for part, nodes in enumerate(parts) for k, u in enumerate(nodes)}
    unary = list(problem.unary)
    edges: list[list[tuple[int, int, Array]]] = [[] for _ in parts]
    for i, j, table in problem.edges:
        if place[i][0] == place[j][0]:
            edges[place[i][0]].append((place[i][1], place[j][1], table))
        elif problem.widths[i] == 1:
            unary[j] = unary[j] + table[0]
        elif problem.widths[j] == 1:
            unary[i] = unary[i] + table[:, 0]
        else:
            raise Refused(f"an edge joins nodes {i} and {j} of different parts")
    pairs = zip(parts, edges, strict=True)
    return [Pairwise([unary[u] for u in nodes], own) for nodes, own in pairs]


def _each(given: object, problem: Pairwise, what: str) -> list[int]:
    """Return a list that has each node once."""
    nodes = len(problem.widths)
    found = numbered(given, [nodes] * nodes, what)
    if len(set(found)) < nodes:
        raise Refused(f"{what} must name each of the {nodes} nodes once")
    return found


ALL = slice(None)

KINDS = {
    "exhaustive": _exhaustive,  # nothing else
    "table": _table,  # "order": all nodes
    "dual": _dual,  # "messages": for each edge two lists of numbers, to labels of either node
    "branch": _branch,  # "node", and "leaves": evidence for each of its labels
    "components": _components,  # "parts": "nodes" and "evidence" each
    "word": _word,  # "bound": a number
}
"""Kinds of evidence, and what it holds besides its ``"kind"``."""
