"""Depth-first branch and bound under bounds of mini-buckets.

Elimination of a node sums its tables and takes the least over its labels.  Where that sum would be
too large, the tables are divided into mini-buckets, each of which is summed and minimised alone,
which can only lower the result (Dechter and Rish, J. ACM 50, 2003).  The search chooses labels
from the node that leaves last to the one that leaves first, for many partial labellings at a time.
What the tables of chosen nodes cost, and what earlier eliminations left to them, bounds each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.network.elimination import Factor, shrink
from layoutopt.network.problem import IntArray

TABLE, TABLES = 2**20, 2**26
"""Most entries of a mini-bucket, and of one of each node together."""

NODES = 500
"""Most nodes for which there is a search."""

BLOCK, ENTRIES = 2**12, 2**19
"""Most partial labellings that get another label at once, and most labels of them together."""

LARGEST = 2**61
"""Sums of costs stay below it."""


class SearchResult(NamedTuple):
    """What a search found.

    Parameters
    ----------
    chosen
        A label of each node, of less cost than asked for; ``None`` if there is none so far.
    bound
        The least that such a labelling can cost; that cost where the search has ended.
    complete
        Whether the search has ended.
    """

    chosen: dict[int, int] | None
    bound: int
    complete: bool


class _Bucket(NamedTuple):
    """A node, tables over it and nodes that leave later, and what its elimination leaves.

    Tables have the node's labels first.  Entries over other nodes are numbered by sums of labels
    times strides.
    """

    node: int
    tables: list[tuple[list[int], list[int], IntArray]]
    left: list[tuple[list[int], list[int], IntArray]]


def search(
    widths: Mapping[int, int],
    factors: Iterable[Factor],
    worth: int,
    limits: Limits,
    most: int,
) -> SearchResult:
    """Look for a labelling that costs less than ``worth``.

    Parameters
    ----------
    widths
        For each node its number of labels.
    factors
        Tables of costs, 0 or more.
    worth
        What a labelling must cost less than.
    most
        Partial labellings after which the search ends.

    Raises
    ------
    SizeError
        If there are too many nodes, or costs are too large.
    """
    given = [(nodes, np.minimum(costs, worth)) for nodes, costs in factors]
    if len(widths) > NODES or (len(given) + len(widths)) * worth >= LARGEST:
        raise SizeError("the problem is too large for branch and bound by mini-buckets")
    near: dict[int, set[int]] = {u: set() for u in widths}
    for nodes, _ in given:
        for u in nodes:
            near[u].update(v for v in nodes if v != u)
    largest = prod(widths.values())
    order = [u for u, _ in shrink(near, widths, largest, largest * len(widths))]
    table = min(TABLE, TABLES // max(1, len(order)))
    buckets, least = _buckets(order, widths, given, worth, table)
    block = max(1, min(BLOCK, ENTRIES // max(1, len(order) * max(widths.values(), default=1))))
    best: IntArray | None = None
    place = {u: k for k, u in enumerate(order)}
    none = np.zeros((len(order), 1), np.int16)
    stack = [(len(order), none, np.array([least], np.int64))]
    while stack and most > 0 and not limits.over:
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
    chosen = None
    if best is not None:
        chosen = {u: int(best[k]) for k, u in enumerate(order)}
    open_bounds = [int(bounds.min()) for _, _, bounds in stack if len(bounds)]
    return SearchResult(chosen, min([worth, *open_bounds]), not stack)


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


def _buckets(
    order: Sequence[int],
    widths: Mapping[int, int],
    factors: Sequence[Factor],
    worth: int,
    table: int,
) -> tuple[list[_Bucket], int]:
    """Eliminate all nodes, no cost counting more than ``worth``; return buckets and a bound."""
    rank = {u: k for k, u in enumerate(order)}
    waiting: list[list[Factor]] = [[((u,), np.zeros(widths[u], np.int64))] for u in order]
    for nodes, costs in factors:
        scope = tuple(sorted(nodes, key=rank.__getitem__))
        turned = costs.transpose([nodes.index(u) for u in scope])
        waiting[rank[scope[0]]].append((scope, turned))
    found, least = list[_Bucket](), 0
    for k, u in enumerate(order):
        groups = _groups(waiting[k], widths, table)
        left = [_eliminated(group, rank, widths, worth) for group in groups]
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
