"""Non-serial dynamic programming over parts of small treewidth.

Nodes leave one after the other (Bertelè and Brioschi, 1972): what a node's best reply costs, as
a table over the labels of its neighbours, replaces the node and its tables.  With ``k`` labels
and ``d`` neighbours that takes ``k^(d+1)`` entries; the node whose table is smallest goes first.
Trees, cycles, narrow grids and everything tiny is solved exactly, whatever the signs of costs.

Where tables would be too large, a node's tables are divided into mini-buckets, each of which is
summed and minimised alone.  That can only lower the result (Dechter and Rish, J. ACM 50, 2003),
which bounds a search: it chooses labels from the node that leaves last to the one that leaves
first, for many partial labellings at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, Unlimited
from layoutopt.base.result import Result
from layoutopt.network.problem import IntArray, Labelling, WeightArray, fresh_needed, reward_table

TABLE_LIMIT = 2**18  # largest table, in entries
WORK_LIMIT = 2**26  # largest sum of the sizes of all tables

BUCKET, LEFT = 2**20, 2**25
"""Most entries of a mini-bucket, and of what all eliminations leave together."""

NODES = 500
"""Most nodes for which there is a search."""

TOLD = 2**22  # partial labellings between two messages

BLOCK, ENTRIES = 2**12, 2**19
"""Most partial labellings that get another label at once, and most labels of them together."""

LARGEST = 2**61  # sums of costs stay below it

Factor: TypeAlias = tuple[tuple[int, ...], WeightArray]
"""Nodes, and a table of costs with an axis for each."""

Scope: TypeAlias = tuple[int, ...]
"""A node that leaves, and its neighbours then in the order in which they leave."""


def eliminate(problem: Labelling) -> Result | None:
    """Solve a part without order rules, or return ``None`` if its tables would be too large."""
    fresh = fresh_needed(problem)
    near: dict[int, set[int]] = {u: set() for u in range(problem.nodes)}
    for u, v in problem.edges.tolist():
        near[u].add(v)
        near[v].add(u)
    widths = dict.fromkeys(near, problem.labels + fresh)
    scopes = narrow_order(near, widths, TABLE_LIMIT, WORK_LIMIT)
    if scopes is None:
        return None
    wide = object if problem.weights.dtype == object else np.int64
    same = np.eye(problem.labels + fresh, dtype=wide)
    pairs = zip(problem.edges.tolist(), problem.weights.tolist(), strict=True)
    factors: list[Factor] = [((u, v), same * -w) for (u, v), w in pairs]
    factors += [((u,), -row) for u, row in enumerate(reward_table(problem, fresh))]
    found = minimise(scopes, widths, factors, Unlimited())
    if found is None:
        return None
    chosen, cost = found
    labels = np.array([chosen[u] for u in range(problem.nodes)], np.int64)
    return Result(objective=problem.value(labels), bound=-cost, labelling=labels)


def narrow_order(
    near: dict[int, set[int]], widths: Mapping[int, int], table: int, total: int
) -> list[Scope] | None:
    """Return an order in which all nodes leave, or ``None`` if tables would be too large.

    Arguments are those of :func:`shrink`.
    """
    steps = shrink(near, widths, table, total, Unlimited())
    if near:
        return None
    rank = {u: k for k, (u, _) in enumerate(steps)}
    return [(u, *sorted(around, key=rank.__getitem__)) for u, around in steps]


def minimise(
    scopes: Sequence[Scope],
    widths: Mapping[int, int],
    factors: Iterable[Factor],
    limits: Limits,
    ceiling: int | None = None,
) -> tuple[dict[int, int], int] | None:
    """Return the labelling of least cost, and that cost; ``None`` if time is up.

    ``scopes`` are those of :func:`narrow_order`; factors are costs of nodes that leave a common
    neighbourhood.  Sums are cut back to the ceiling, which, where it is more than all costs, stands
    for forbidden.
    """
    rank = {scope[0]: k for k, scope in enumerate(scopes)}
    waiting: dict[int, list[Factor]] = {u: [] for u in rank}
    for names, costs in factors:
        order = sorted(range(len(names)), key=lambda k: rank[names[k]])
        waiting[names[order[0]]].append((tuple([names[k] for k in order]), costs.transpose(order)))
    replies = []
    cost = 0
    for scope in scopes:
        if limits.over:
            return None
        sizes = [widths[u] for u in scope]
        here = waiting.pop(scope[0])
        kinds = [costs.dtype for _, costs in here]
        sums: WeightArray = np.zeros(sizes, np.result_type(np.int64, *kinds))
        for names, costs in here:
            shape = [n if u in names else 1 for u, n in zip(scope, sizes, strict=True)]
            sums += costs.reshape(shape)
            if ceiling is not None:
                np.minimum(sums, ceiling, out=sums)
        reply = sums.argmin(axis=0)
        least = np.take_along_axis(sums, reply[None], 0)[0]
        replies.append(reply.astype(np.min_scalar_type(sizes[0])))
        if len(scope) > 1:
            waiting[scope[1]].append((scope[1:], least))
        else:
            cost += int(least)
    labels: dict[int, int] = {}
    for scope, reply in zip(reversed(scopes), reversed(replies), strict=True):
        labels[scope[0]] = int(reply[tuple([labels[u] for u in scope[1:]])])
    return labels, cost


def shrink(
    near: dict[int, set[int]], widths: Mapping[int, int], table: int, total: int, limits: Limits
) -> list[tuple[int, set[int]]]:
    """Let nodes leave a graph, the one of the smallest table first, as long as limits allow.

    ``near`` holds each node's neighbours: who leaves makes neighbours of its own, and what remains
    could not leave.  ``widths`` are numbers of labels; ``table`` and ``total`` are the largest
    table and sum of tables, in entries.  Return those that left, in order, with their neighbours
    then.
    """

    def size(u: int) -> int:
        entries = widths[u]
        for v in near[u]:
            entries *= widths[v]
            if entries > table:
                break
        return min(entries, table + 1)

    heap = [(size(u), u) for u in near]
    heapq.heapify(heap)
    left = []
    while heap and not limits.over:
        entries, u = heapq.heappop(heap)
        if u not in near or entries != size(u):
            continue
        total -= entries
        if entries > table or total < 0:
            break
        around = near.pop(u)
        left.append((u, around))
        for v in around:
            near[v] |= around
            near[v] -= {u, v}
        for v in around:
            heapq.heappush(heap, (size(v), v))
    return left


class SearchResult(NamedTuple):
    """What a search found."""

    # a label of each node, of less cost than asked for; `None` if there is none so far
    chosen: dict[int, int] | None
    bound: int  # the least that such a labelling can cost; that cost where the search has ended
    complete: bool  # whether the search has ended


class _Bucket(NamedTuple):
    """A node, tables over it and nodes that leave later, and what its elimination leaves.

    Tables have the node's labels first.  Entries over other nodes are numbered by sums of labels
    times strides.
    """

    node: int
    tables: list[tuple[list[int], list[int], IntArray]]
    left: list[tuple[list[int], list[int], IntArray]]


def branch_and_bound(
    widths: Mapping[int, int], factors: Iterable[Factor], worth: int, limits: Limits, most: int
) -> SearchResult:
    """Look for a labelling that costs less than ``worth``.

    Tables of costs are 0 or more.  The search ends after ``most`` partial labellings.  Raises
    ``SizeError`` if there are too many nodes, or costs are too large.
    """
    given = [(nodes, np.minimum(costs, worth)) for nodes, costs in factors]
    if len(widths) > NODES or (len(given) + len(widths)) * worth >= LARGEST:
        raise SizeError("the problem is too large for branch and bound by mini-buckets")
    near: dict[int, set[int]] = {u: set() for u in widths}
    for nodes, _ in given:
        for u in nodes:
            near[u].update(v for v in nodes if v != u)
    largest = prod(widths.values())
    order = [u for u, _ in shrink(near, widths, largest, largest * len(widths), limits)]
    table, made = BUCKET, None
    while made is None:
        if limits.over:
            return SearchResult(None, 0, complete=False)
        made = _eliminated_by(table, order, widths, given, worth, limits)
        table //= 8
    buckets, least = made
    block = max(1, min(BLOCK, ENTRIES // max(1, len(order) * max(widths.values(), default=1))))
    best: IntArray | None = None
    place = {u: k for k, u in enumerate(order)}
    none = np.zeros((len(order), 1), np.int32)
    stack = [(len(order), none, np.array([least], np.int64))]
    told = most
    while stack and most > 0 and not limits.over:
        if most <= told:
            limits.report("branching", None if best is None else worth, _least(stack, worth))
            told = most - TOLD
        level, labels, bounds = stack.pop()
        open_ = np.flatnonzero(bounds < worth)
        if not len(open_):
            continue
        if not level:
            first = int(bounds.argmin())
            best, worth = labels[:, first], int(bounds[first])
            continue
        open_ = open_[np.argsort(bounds[open_], kind="stable")]
        now, later = open_[:block], open_[block:]
        if len(later):
            stack.append((level, labels[:, later], bounds[later]))
        level, labels = level - 1, labels[:, now]
        sums = _extended(buckets[level], place, labels, bounds[now])
        most -= sums.size
        label, parent = np.nonzero(sums < worth)
        longer = labels[:, parent]
        longer[level] = label
        stack.append((level, longer, sums[label, parent]))
    chosen = None if best is None else dict(zip(order, best.tolist(), strict=True))
    return SearchResult(chosen, _least(stack, worth), not stack)


def _least(stack: Iterable[tuple[int, IntArray, IntArray]], worth: int) -> int:
    """Return the least bound of partial labellings, at most ``worth``."""
    return min([worth, *(int(bounds.min()) for _, _, bounds in stack if len(bounds))])


def _extended(
    bucket: _Bucket, place: Mapping[int, int], labels: IntArray, bounds: IntArray
) -> IntArray:
    """Return bounds of partial labellings with each label of one more node first."""

    def entries(nodes: list[int], strides: list[int]) -> IntArray:
        at = np.zeros(labels.shape[1], np.int64)
        for u, stride in zip(nodes, strides, strict=True):
            at += labels[place[u]].astype(np.int64) * stride
        return at

    base = bounds.copy()
    for nodes, strides, costs in bucket.left:
        base -= costs[entries(nodes, strides)]
    sums = np.repeat(base[None], len(bucket.tables[0][2]), axis=0)
    for nodes, strides, costs in bucket.tables:
        sums += costs[:, entries(nodes, strides)]
    return sums


def _eliminated_by(
    table: int,
    order: Sequence[int],
    widths: Mapping[int, int],
    factors: Sequence[Factor],
    worth: int,
    limits: Limits,
) -> tuple[list[_Bucket], int] | None:
    """Eliminate all nodes, no cost counting more than ``worth``; return buckets and a bound.

    ``None`` if time is up, or if mini-buckets of so many entries would leave too much; where there
    are none, each table is eliminated alone, which leaves less than was given.
    """
    rank = {u: k for k, u in enumerate(order)}
    waiting: list[list[Factor]] = [[((u,), np.zeros(widths[u], np.int64))] for u in order]
    for nodes, costs in factors:
        scope = tuple(sorted(nodes, key=rank.__getitem__))
        turned = costs.transpose([nodes.index(u) for u in scope])
        waiting[rank[scope[0]]].append((scope, turned))
    found, least, entries = list[_Bucket](), 0, 0
    for k, u in enumerate(order):
        left: list[Factor] = []
        for group in _groups(waiting[k], widths, table):
            left.append(_eliminated(group, rank, widths, worth))
            entries += left[-1][1].size
            if limits.over or (table and entries > LEFT):
                return None
        for scope, costs in left:
            if scope:
                waiting[rank[scope[0]]].append((scope, costs))
            else:
                least += int(costs)
        tables = [
            (*_strides(scope[1:], widths), c.reshape(widths[u], -1)) for scope, c in waiting[k]
        ]
        sent = [(*_strides(scope, widths), c.reshape(-1)) for scope, c in left]
        found.append(_Bucket(u, tables, sent))
    return found, least


def _groups(factors: list[Factor], widths: Mapping[int, int], table: int) -> list[list[Factor]]:
    """Divide tables into mini-buckets of at most so many entries, those of most nodes first."""
    groups: list[tuple[set[int], list[Factor]]] = []
    for factor in sorted(factors, key=lambda factor: -len(factor[0])):
        for nodes, own in groups:
            both = nodes.union(factor[0])
            if np.prod([float(widths[u]) for u in both]) <= table:
                nodes |= both
                own.append(factor)
                break
        else:
            groups.append((set(factor[0]), [factor]))
    return [own for _, own in groups]


def _eliminated(
    group: list[Factor], rank: Mapping[int, int], widths: Mapping[int, int], worth: int
) -> Factor:
    """Return the least sums of tables over the labels of their first node."""
    scope = sorted({u for nodes, _ in group for u in nodes}, key=rank.__getitem__)
    sums = np.zeros([widths[u] for u in scope], np.int64)
    for nodes, costs in group:
        sums += costs.reshape([widths[u] if u in nodes else 1 for u in scope])
    return tuple(scope[1:]), np.minimum(sums.min(axis=0), worth)


def _strides(nodes: Sequence[int], widths: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return nodes, and what a label of each counts in the number of an entry."""
    strides, step = list[int](), 1
    for u in reversed(nodes):
        strides.append(step)
        step *= widths[u]
    return list(nodes), strides[::-1]
