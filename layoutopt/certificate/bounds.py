"""Evidence for bounds on pairwise problems: plain data from which a bound is computed.

:data:`KINDS` lists them.  Wrong evidence can make the computed bound weak, but not invalid.  A
bound below the value of every possible labelling proves infeasibility.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, lcm, prod
from typing import Any, TypeAlias

import numpy as np

from layoutopt.certificate.pairwise import LARGEST, MOST_ENTRIES, Pairwise, fixed, split
from layoutopt.certificate.reductions import NoLabelling, ReducedPairwise
from layoutopt.certificate.refused import Refused, listed, message, number, numbered
from layoutopt.certificate.rows import Array

Evidence: TypeAlias = dict[str, Any]
Bound: TypeAlias = tuple[int, bool]

MOST_LABELLINGS, DEEPEST = 10**6, 50


def bound(problem: Pairwise, evidence: object, depth: int = 0) -> Bound:
    """Return the upper bound that evidence proves, and whether it is unverified.

    A bound below ``-problem.total`` means that no labelling is allowed.
    """
    kind = evidence.get("kind") if isinstance(evidence, dict) else None
    if not isinstance(evidence, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"evidence must be of one of the kinds {', '.join(KINDS)}")
    if depth > DEEPEST:
        raise Refused(f"evidence is nested more than {DEEPEST} deep")
    found, unverified = KINDS[kind](problem, evidence, depth)
    return (found if found >= -problem.total else problem.never), unverified


def _unverified(_: Pairwise, evidence: Evidence, __: int) -> Bound:
    """Accept a solver's unverified bound."""
    return floor(number(evidence.get("bound"))), True


def _exhaustive(problem: Pairwise, _: Evidence, depth: int) -> Bound:
    """Enumerate all labellings that satisfy the rows."""
    free = [u for u, width in enumerate(problem.widths) if width > 1]
    sizes = [problem.widths[u] for u in free]
    if prod(sizes) > MOST_LABELLINGS or prod(sizes) * len(problem.rows) > MOST_ENTRIES:
        raise Refused(f"there are more than {MOST_LABELLINGS} labellings to enumerate")
    rows = [row for row in (problem.inside(own) for own in problem.rows) if row]
    if not rows:
        return _table(problem, {"order": [*range(len(problem.widths))]}, depth)

    def along(nodes: Sequence[int], array: Array) -> Array:
        """Broadcast an array over labels of some nodes to those of all."""
        return array.reshape([problem.widths[u] if u in nodes else 1 for u in free])

    sums = np.zeros(sizes, problem.dtype)
    for u, worth in enumerate(problem.unary):
        sums = problem.added(sums, along([u], worth))
    for i, j, table in problem.edges:
        sums = problem.added(sums, along([i, j], table if i < j else table.T))
    for i, j, weight in problem.equal:
        sums = problem.added(sums, along([i, j], problem.same(i, weight)))
    good = np.ones(sizes, bool)
    for row, constant in rows:
        used = np.full(sizes, constant, object)
        for u, amounts in row.terms.items():
            used = used + along([u], amounts)
        good &= (row.low is None or used >= row.low) & (row.high is None or used <= row.high)
    found = np.asarray(sums, problem.dtype)[good]
    return (int(found.max()) if found.size else problem.never), False


def _table(problem: Pairwise, evidence: Evidence, __: int) -> Bound:
    """Eliminate nodes in an order; each elimination makes a table over the node's neighbours."""
    order = _each(evidence.get("order"), problem, "the order")
    rank = {u: place for place, u in enumerate(order)}
    waiting: list[list[tuple[list[int], Array | int]]] = [[] for _ in [*order, None]]

    def wait(scope: list[int], table: Array | int) -> None:
        waiting[rank[scope[0]] if scope else -1].append((scope, table))

    for u, own in enumerate(problem.unary):
        wait([u], own)
    for i, j, table in problem.edges:
        ends = sorted((i, j), key=rank.__getitem__)
        wait([u for u in ends if problem.widths[u] > 1], table if ends[0] == i else table.T)
    for i, j, w in problem.equal:
        wait(sorted((i, j), key=rank.__getitem__), w)  # an integer: value of equal labels
    for place, u in enumerate(order):
        near = {v for scope, _ in waiting[place] for v in scope} - {u}
        scope = [u, *sorted(near, key=rank.__getitem__)]
        sizes = [problem.widths[v] for v in scope]
        alike = [(nodes, w) for nodes, w in waiting[place] if isinstance(w, int)]
        arrays = [(nodes, w) for nodes, w in waiting[place] if not isinstance(w, int)]
        waiting[place] = []
        if len(scope) == 2 and alike and all(len(nodes) == 1 for nodes, _ in arrays):
            own = np.zeros(sizes[0], problem.dtype)
            for array in [w for _, w in arrays]:
                own = problem.added(own, array.reshape(-1))
            same = problem.added(own, sum(w for _, w in alike))
            wait(scope[1:], np.maximum(_others(own, problem.never), same))
            continue
        if prod(sizes) > MOST_ENTRIES:
            raise Refused(f"eliminating node {u} makes a table of more than {MOST_ENTRIES} entries")
        sums = np.zeros(sizes, problem.dtype)
        arrays += [(ends, problem.same(u, w)) for ends, w in alike]
        for nodes, array in arrays:
            sums += array.reshape([problem.widths[v] if v in nodes else 1 for v in scope])
            if problem.shut:
                np.maximum(sums, problem.never, out=sums)
        wait(scope[1:], sums.max(axis=0))
    return sum(int(np.sum(rest)) for _, rest in waiting[-1]), False


def _others(own: Array, never: int) -> Array:
    """Return for each entry the maximum of all others, ``never`` if there are none."""
    best = int(own.argmax())
    rest = np.delete(own, best)
    found = np.full(len(own), own[best], own.dtype)
    found[best] = rest.max() if len(rest) else never
    return found


def _dual(problem: Pairwise, evidence: Evidence, _: int) -> Bound:
    """Add up the maxima of nodes and edges after moving values from edges to nodes by messages.

    One of an edge's two messages may be omitted; it is the one that makes the edge's maxima 0.
    """
    parts = evidence.get("parts", 1)
    if type(parts) is not int or not 0 < parts < LARGEST:
        raise Refused("the denominator of messages must be a positive integer")
    ends = [(i, j) for i, j, _ in (*problem.edges, *problem.equal)]
    moved, unit = _messages(problem, ends, evidence)
    whole = {e: [None if x is None else _whole(x, unit) for x in pair] for e, pair in moved.items()}
    unit *= parts
    sides = [side for pair in whole.values() for side in pair if side is not None]
    most = sum(max(map(abs, side)) for side in sides)
    small = 4 * most + 2 * unit * (problem.total + 1) < LARGEST
    own = _Moved(problem, unit, np.dtype(np.int64 if small else object))
    total = 0
    for e, pair in enumerate(ends):
        best = own.edge(e, pair, *whole.get(e, (None, None)))
        if best is None:
            return problem.never, False
        total += best
    for worth, bad in zip(own.nodes, own.bad, strict=True):
        if bad.all():
            return problem.never, False
        total += int(worth[~bad].max())
    return total // unit, False


Message: TypeAlias = list[Fraction | int]


def _whole(message: Message, unit: int) -> list[int]:
    return [int(x * unit) for x in message]


def _messages(
    problem: Pairwise, ends: list[tuple[int, int]], evidence: Evidence
) -> tuple[dict[int, list[Message | None]], int]:
    """Return the messages of edges, and their common denominator."""
    given = listed(evidence.get("messages", [None] * len(ends)), len(ends), "messages")
    moved: dict[int, list[Message | None]] = {}
    for e, (nodes, pair) in enumerate(zip(ends, given, strict=True)):
        if pair is not None:
            two = listed(pair, 2, "messages of an edge")
            if two == [None, None]:
                raise Refused("at most one message of an edge can be omitted")
            moved[e] = [
                None if x is None else message(x, problem.widths[u], u, number)
                for x, u in zip(two, nodes, strict=True)
            ]
    sides = [side for pair in moved.values() for side in pair if side is not None]
    unit = 1
    for denominator in {x.denominator for side in sides for x in side}:
        unit = lcm(unit, denominator)
        if unit > LARGEST**2:
            raise Refused("denominators of messages have no small common multiple")
    return moved, unit


class _Moved:
    """A problem scaled by a denominator, while values move from edges to nodes."""

    def __init__(self, problem: Pairwise, unit: int, dtype: np.dtype[Any]) -> None:
        self.problem, self.unit, self.dtype = problem, unit, dtype
        self.known: dict[int, tuple[Array, Array | None]] = {}
        self.nodes = [self.scaled(own)[0].copy() for own in problem.unary]
        self.bad = [~problem.allowed(own) for own in problem.unary]

    def scaled(self, array: Array) -> tuple[Array, Array | None]:
        """Return a scaled array, and a mask of allowed entries unless all are."""
        if id(array) not in self.known:
            good = self.problem.allowed(array) if self.problem.shut else None
            kept = array if good is None or good.all() else np.where(good, array, 0)
            found = None if kept is array else good
            self.known[id(array)] = kept.astype(self.dtype) * self.unit, found
        return self.known[id(array)]

    def edge(
        self, e: int, ends: tuple[int, int], one: list[int] | None, two: list[int] | None
    ) -> int | None:
        """Move an edge's values, and return the remaining maximum; None if nothing is allowed."""
        sides = [None if x is None else np.array(x, self.dtype) for x in (one, two)]
        edges = self.problem.edges
        if e < len(edges):
            left = self._table(edges[e][2], ends, sides)
        else:
            left = self._alike(self.problem.equal[e - len(edges)][2] * self.unit, ends[0], sides)
        for u, side in zip(ends, sides, strict=True):
            if side is not None:
                self.nodes[u] += side
        return left

    def _table(self, table: Array, ends: tuple[int, int], sides: list[Array | None]) -> int | None:
        left, good = self.scaled(table)
        if sides[0] is not None:
            left = left - sides[0][:, None]
        if sides[1] is not None:
            left = left - sides[1]
        if good is not None and not good.any():
            return None
        if (sides[0] is None) == (sides[1] is None):
            return int((left if good is None else left[good]).max())
        axis = 1 if sides[0] is None else 0
        if good is not None:
            self.bad[ends[1 - axis]] |= ~good.any(axis=axis)
            left = np.where(good, left, int(left.min()))
        sides[1 - axis] = left.max(axis=axis)
        return 0

    def _alike(self, weight: int, node: int, sides: list[Array | None]) -> int:
        if sides[0] is None and sides[1] is None:
            return weight if len(self.nodes[node]) == 1 else max(weight, 0)
        if sides[0] is not None and sides[1] is not None:
            return _agreed(weight, -sides[0], -sides[1])
        here = 0 if sides[0] is not None else 1
        given = -np.asarray(sides[here])
        sides[1 - here] = np.maximum(given + weight, _others(given, int(given.min() + weight)))
        return 0


def _agreed(weight: int, one: Array, two: Array) -> int:
    """Return the maximum of ``one[x] + two[y] + weight [x = y]``."""
    same = int((one + two).max()) + weight
    i, j = int(one.argmax()), int(two.argmax())
    if i != j:
        return max(same, int(one[i] + two[j]))
    if len(one) == 1:
        return same
    second = max(int(np.delete(one, i).max() + two[j]), int(one[i] + np.delete(two, j).max()))
    return max(same, second)


def _branch(problem: Pairwise, evidence: Evidence, depth: int) -> Bound:
    """Branch on the labels of a node; forbidden ones need no evidence."""
    [node] = numbered([evidence.get("node")], [len(problem.widths)], "the node of a branch")
    leaves = listed(evidence.get("leaves"), problem.widths[node], f"leaves of node {node}")
    good = problem.allowed(problem.unary[node]).tolist()
    found = [
        bound(fixed(problem, node, x), leaf, depth + 1)
        for x, leaf in enumerate(leaves)
        if leaf is not None or good[x]
    ]
    most = max((best for best, _ in found), default=problem.never)
    return most, any(unverified for _, unverified in found)


def _components(problem: Pairwise, evidence: Evidence, depth: int) -> Bound:
    """Add up bounds of independent parts, whose nodes are numbered in the listed order.

    Edges between parts are allowed only if one of their nodes has a single label.
    """
    parts = listed(evidence.get("parts"), None, "parts")
    lists = [part.get("nodes") if isinstance(part, dict) else None for part in parts]
    every = [listed(nodes, None, "nodes of a part") for nodes in lists]
    _each([u for nodes in every for u in nodes], problem, "the parts together")
    problems = zip(split(problem, every), parts, strict=True)
    found = [bound(own, part.get("evidence"), depth + 1) for own, part in problems]
    unverified = any(unverified for _, unverified in found)
    if any(best < -problem.total for best, _ in found):
        return problem.never, unverified
    return sum(best for best, _ in found), unverified


def _prices(problem: Pairwise, evidence: Evidence, depth: int) -> Bound:
    """Relax rows by prices (Lagrange multipliers): add ``price * (limit - amount)``.

    For a price above 0 of an upper limit, or below 0 of a lower one, the added term is not
    negative for labellings that satisfy the row, so that the bound remains valid.
    """
    listing = listed(evidence.get("rows"), None, "rows")
    pairs = [listed(pair, 2, "a row and its price") for pair in listing]
    numbers = numbered([k for k, _ in pairs], [len(problem.rows)] * len(pairs), "rows")
    prices = [number(price) for _, price in pairs]
    unit = lcm(*(price.denominator for price in prices))
    if unit > LARGEST**2:
        raise Refused("denominators of prices have no small common multiple")
    unary = [own.astype(object) * unit for own in problem.unary]
    constant = 0
    for k, price in zip(numbers, prices, strict=True):
        row, limit = problem.rows[k], problem.rows[k].high if price > 0 else problem.rows[k].low
        found = problem.inside(row)
        if limit is None or found is None:
            lacks = "has nodes in other parts" if limit is not None else "has no limit on that side"
            raise Refused(f"row {k} has a price but {lacks}")
        whole = int(price * unit)
        constant += whole * (limit - found[1])
        for u, amounts in found[0].terms.items():
            unary[u] = unary[u] - whole * amounts.astype(object)
    masked: dict[int, Array] = {}
    for _, _, table in problem.edges:
        if id(table) not in masked:
            masked[id(table)] = _masked(problem, table, table.astype(object) * unit)
    inner = Pairwise(
        [_masked(problem, own, new) for own, new in zip(problem.unary, unary, strict=True)],
        [(i, j, masked[id(table)]) for i, j, table in problem.edges],
        [(i, j, w * unit) for i, j, w in problem.equal],
        problem.rows,
    )
    inner.names, inner.taken = problem.names, problem.taken
    best, unverified = bound(inner, evidence.get("evidence"), depth + 1)
    if best < -inner.total:
        return problem.never, unverified
    return (best + constant) // unit, unverified


def _masked(problem: Pairwise, before: Array, after: Array) -> Array:
    """Return an array with the forbidden entries of another one."""
    if not problem.shut:
        return after
    return np.asanyarray(np.ma.array(after, mask=~problem.allowed(before)))


def _reductions(problem: Pairwise, evidence: Evidence, depth: int) -> Bound:
    """Apply reduction steps, and bound the rest by their prices or by evidence."""
    found, unverified, work = problem.never, False, None
    try:
        work = ReducedPairwise(problem)
        for step in listed(evidence.get("steps"), None, "steps"):
            work.take(step)
        found = work.best()
        if evidence.get("evidence") is not None:
            rest = work.rest()
            best, unverified = bound(rest, evidence["evidence"], depth + 1)
            found = min(found, best + work.constant) if best >= -rest.total else problem.never
    except NoLabelling:
        found = problem.never
    above = None if work is None else work.above
    return (found if above is None else max(found, above)), unverified


def _each(given: object, problem: Pairwise, what: str) -> list[int]:
    """Return a list that must contain each node exactly once."""
    nodes = len(problem.widths)
    found = numbered(given, [nodes] * nodes, what)
    if len(set(found)) < nodes:
        raise Refused(f"{what} must contain each of the {nodes} nodes once")
    return found


KINDS = {
    "exhaustive": _exhaustive,  # nothing else
    "table": _table,  # "order": all nodes
    "dual": _dual,  # "messages": for each edge two, one or none, each to one of its nodes
    "branch": _branch,  # "node", and "leaves": evidence for each of its labels
    "prices": _prices,  # "rows": numbers and prices, and "evidence" for the relaxed problem
    "reductions": _reductions,  # "steps", and optionally "evidence" for the rest
    "components": _components,  # "parts": "nodes" and "evidence" each
    "word": _unverified,  # "bound": a number
}
"""Kinds of evidence, and their members besides ``"kind"``."""
