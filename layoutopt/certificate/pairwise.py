"""Pairwise problems: sums of values of labels and of pairs of labels.

Maximised over labels ``x`` is

``sum_i unary[i][x_i] + sum_e table_e[x_i, x_j] + sum_(i, j, w) w [x_i = x_j]``

in integers of any size, over labellings that use no forbidden entry and satisfy all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np

from layoutopt.certificate.refused import Refused, numbered
from layoutopt.certificate.rows import Array, RowGroup, RowLimits, row_groups

Edges: TypeAlias = Sequence[tuple[int, int, Array]]
Weights: TypeAlias = Sequence[tuple[int, int, int]]

MOST_ENTRIES, LARGEST = 10**7, 2**62

ALL = slice(None)


class Pairwise:
    """A pairwise problem: values of labels, tables of edges, equality edges, and limits of rows.

    ``unary`` has an array for each node, ``edges`` two nodes each and a table with the labels of
    the first node as rows; forbidden entries are masked.  ``equal`` has two nodes with as many
    labels each, and the value of equal labels.
    """

    def __init__(
        self,
        unary: Sequence[Array],
        edges: Edges,
        equal: Weights = (),
        rows: Sequence[RowLimits] = (),
    ) -> None:
        self.widths = [len(own) for own in unary]
        if 0 in self.widths:
            raise Refused(f"node {self.widths.index(0)} has no label")
        for i, j, table in edges:
            if not self._joined(i, j) or table.shape != (self.widths[i], self.widths[j]):
                raise Refused(f"the table of nodes {i} and {j} does not fit their labels")
        for i, j, _ in equal:
            if not self._joined(i, j) or self.widths[i] != self.widths[j]:
                raise Refused(f"nodes {i} and {j} do not have the same labels")
        every = [*unary, *(table for _, _, table in edges)]
        different = {id(array): array for array in every}  # edges may share a table
        largest = {key: _largest(array) for key, array in different.items()}
        # No allowed labelling has a larger absolute value.
        self.total = sum(largest[id(array)] for array in every) + sum(abs(w) for *_, w in equal)
        self.dtype = np.dtype(np.int64 if 8 * self.total < LARGEST else object)
        # Value of forbidden entries: sums that contain it, clipped to it, are below `-total`; two
        # of them are no less than -2^63.
        self.never = min(-LARGEST, -8 * self.total)
        self.shut = any(np.ma.is_masked(array) for array in different.values())
        exact = {key: self._exact(array) for key, array in different.items()}
        self.unary = [exact[id(own)] for own in unary]
        self.edges = [(i, j, exact[id(table)]) for i, j, table in edges]
        self.equal, self.rows = [*equal], rows
        # For each node its number in rows, and the labels of fixed nodes by these numbers.
        self.names, self.taken = [*range(len(unary))], dict[int, int]()

    def _exact(self, array: Array) -> Array:
        """Return an array of the problem's type, with ``never`` at forbidden entries."""
        if not np.ma.is_masked(array):
            return np.ma.getdata(array).astype(self.dtype, copy=False)
        found = np.ma.filled(array, 0).astype(self.dtype)
        found[np.ma.getmaskarray(array)] = self.never
        return found

    def _joined(self, i: int, j: int) -> bool:
        return min(i, j) >= 0 and max(i, j) < len(self.widths) and i != j

    def allowed(self, array: Array) -> Array:
        """Return a mask of the allowed entries."""
        return np.asarray(array >= -self.total, bool)

    def added(self, one: Array, two: Any) -> Array:
        """Return sums of entries, forbidden where either one is."""
        both = np.asarray(one + two, self.dtype)
        return np.maximum(both, self.never) if self.shut else both

    def same(self, node: int, weight: int) -> Array:
        """Return an equality edge of a node as a table: a value for equal labels, 0 for others."""
        table = np.zeros((self.widths[node],) * 2, self.dtype)
        np.fill_diagonal(table, weight)
        return table

    def inside(self, row: RowLimits) -> tuple[RowLimits, int] | None:
        """Return a row in this problem's numbering, and the amount of fixed nodes.

        ``None`` if the row contains nodes of another part.
        """
        place = {name: u for u, name in enumerate(self.names)}
        constant, terms = 0, dict[int, Array]()
        for name, amounts in row.terms.items():
            if name in self.taken:
                constant += int(amounts[self.taken[name]])
            elif name not in place:
                return None
            else:
                terms[place[name]] = amounts
        return RowLimits(terms, row.low, row.high), constant

    def groups_inside(self) -> list[RowGroup]:
        """Return all rows in this problem's numbering, less what fixed nodes use."""
        place, found = {name: u for u, name in enumerate(self.names)}, []
        for group in row_groups(self.rows):
            used = [int(own[self.taken[u]]) if u in self.taken else 0 for u, own in group.items]
            paid = group.sums(np.array(used, object)).tolist()
            left = [p for p, (u, _) in enumerate(group.items) if u not in self.taken]
            if not all(group.items[p][0] in place for p in left):
                raise Refused("rows have nodes outside the reduced part")
            limits = [
                (None if low is None else low - fixed, None if high is None else high - fixed)
                for (low, high), fixed in zip(group.limits, paid, strict=True)
            ]
            items = [(place[group.items[p][0]], group.items[p][1]) for p in left]
            found.append(RowGroup(items, group.begin[left], group.end[left], limits))
        return found

    def part(self, unary: list[Array], edges: Edges, equal: Weights, names: list[int]) -> Pairwise:
        """Return a part of the problem, of the same type."""
        own = copy(self)
        own.unary, own.edges, own.equal, own.names = unary, [*edges], [*equal], names
        own.widths = [len(one) for one in unary]
        return own


def _largest(array: Array) -> int:
    own = np.ma.compressed(array)
    return max(int(own.max()), -int(own.min()), 0) if own.size else 0


def value(problem: Pairwise, labels: object) -> int:
    """Return the value of a labelling, a label per node."""
    x = numbered(labels, problem.widths, "labels")
    own = sum(int(worth[label]) for worth, label in zip(problem.unary, x, strict=True))
    own += sum(int(table[x[i], x[j]]) for i, j, table in problem.edges)
    return own + sum(w for i, j, w in problem.equal if x[i] == x[j])


def fixed(problem: Pairwise, node: int, label: int) -> Pairwise:
    """Return a problem with a node fixed to a label."""
    cut = {node: slice(label, label + 1)}
    unary = [own[cut.get(u, ALL)] for u, own in enumerate(problem.unary)]
    edges = [
        (i, j, table[cut.get(i, ALL), cut.get(j, ALL)] if node in (i, j) else table)
        for i, j, table in problem.edges
    ]
    equal = []
    for i, j, w in problem.equal:
        if node in (i, j):
            u, worth = i + j - node, np.zeros(problem.widths[i], problem.dtype)
            worth[label] = w
            unary[u] = problem.added(unary[u], worth)
        else:
            equal.append((i, j, w))
    own = problem.part(unary, edges, equal, problem.names)
    own.taken = {problem.names[node]: label} | problem.taken  # the remaining label gets number 0
    return own


def split(problem: Pairwise, parts: Sequence[Sequence[int]]) -> list[Pairwise]:
    """Return parts of a problem, with nodes in the listed order."""
    place = {u: (part, k) for part, nodes in enumerate(parts) for k, u in enumerate(nodes)}
    unary = list(problem.unary)
    edges: list[list[tuple[int, int, Array]]] = [[] for _ in parts]
    equal: list[list[tuple[int, int, int]]] = [[] for _ in parts]
    for i, j, table in problem.edges:
        if place[i][0] == place[j][0]:
            edges[place[i][0]].append((place[i][1], place[j][1], table))
        elif problem.widths[i] == 1:
            unary[j] = problem.added(unary[j], table[0])
        elif problem.widths[j] == 1:
            unary[i] = problem.added(unary[i], table[:, 0])
        else:
            raise Refused(f"an edge joins nodes {i} and {j} of different parts")
    for i, j, w in problem.equal:
        if place[i][0] == place[j][0]:
            equal[place[i][0]].append((place[i][1], place[j][1], w))
        elif problem.widths[i] == 1:  # of one label each
            unary[i] = problem.added(unary[i], w)
        else:
            raise Refused(f"an edge joins nodes {i} and {j} of different parts")
    groups = zip(parts, edges, equal, strict=True)
    return [
        problem.part([unary[u] for u in nodes], own, same, [problem.names[u] for u in nodes])
        for nodes, own, same in groups
    ]
