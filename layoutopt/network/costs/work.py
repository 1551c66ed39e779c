"""A problem while it is reduced: Python lists that reductions change in place.

Tables of two to ten labels are too small for arrays; tuples of Python integers are faster,
exact whatever their size, and shared between edges of one kind.

Reductions keep the problem *equivalent*: every labelling of the nodes that are left, completed
by :meth:`Work.restore`, costs what they say or less, and one optimum is always kept.  A node
leaves only when it can choose its *best reply* to its last neighbours once these are known.
So all that the way back needs is the order in which nodes left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from layoutopt.base.limits import Limits, require
from layoutopt.network.components import reached

if TYPE_CHECKING:
    from layoutopt.network.network import Network

Cost: TypeAlias = float
"""A Python integer, or ``inf`` where forbidden; sums of both are exact."""

Step: TypeAlias = tuple[Any, ...]
"""A reduction by name, with its node and what else it is about."""

Table: TypeAlias = tuple[tuple[Cost, ...], ...]
"""What pairs of labels cost: a row for each label of the node that holds it."""


class Infeasible(Exception):
    """Some node has no label left."""


class _Infinity(float):
    """Infinity whose sums with integers of any size are exact; Python's own fails from 2^1024."""

    def __add__(self, other: float) -> _Infinity:
        return self

    __radd__ = __sub__ = __mul__ = __add__


class Work:
    """A problem, or a part of one, to be changed in place."""

    def __init__(self, costs: list[list[Cost]], never: float = inf) -> None:
        # Labels keep their numbers; those that are out of the question cost `never`: `inf`, or an
        # infinity that is slower, but adds up with larger integers than doubles hold.
        self.costs, self.never = costs, never
        # For each node its neighbours' tables, seen from its own side.
        self.near: list[dict[int, Table]] = [{} for _ in costs]
        self.gone = [False] * len(costs)  # whether each node has left
        self.order: list[int] = []  # the nodes that have left, first ones first
        self.constant: int = 0  # what is paid whatever the other nodes choose
        self.below: int = 0  # sum of what tables hold below 0, if there was no time to move it
        self.shrunk: set[int] = set()  # nodes that lost a label since their edges were looked at
        # Nodes that may not choose freely: they leave only with their last label, and no label of
        # theirs stands in for another.
        self.held: set[int] = set()
        self.log: list[Step] | None = None  # what was done, in order, if somebody asked for it

    def copy(self) -> Work:
        """Return a copy without a log; tables are shared."""
        twin = Work([list(own) for own in self.costs], self.never)
        twin.near = [dict(tables) for tables in self.near]
        twin.gone = list(self.gone)
        twin.order = list(self.order)
        twin.constant, twin.below = self.constant, self.below
        twin.shrunk = set(self.shrunk)
        twin.held = self.held
        return twin

    def left(self) -> list[int]:
        """Return the nodes that have not left."""
        return [u for u, gone in enumerate(self.gone) if not gone]

    def labels(self, u: int) -> list[int]:
        """Return the labels that a node may still choose."""
        return [i for i, cost in enumerate(self.costs[u]) if cost < inf]

    def edges(self) -> Iterator[tuple[int, int, Table]]:
        """Yield every edge between nodes that are left once."""
        for u in self.left():
            for v, table in self.near[u].items():
                if u < v:
                    yield u, v, table

    def put(self, u: int, v: int, table: Table) -> None:
        """Give an edge a table, whatever it had."""
        self.near[u][v] = table
        self.near[v][u] = transposed(table)

    def add(self, u: int, v: int, table: Table) -> None:
        """Add a table to what an edge has, or make an edge."""
        before = self.near[u].get(v)
        if before is not None:
            rows = zip(before, table, strict=True)
            table = tuple(
                tuple([a + b for a, b in zip(one, two, strict=True)]) for one, two in rows
            )
        self.put(u, v, table)

    def connect(
        self, edges: Iterable[Sequence[int]], table_of: Iterable[int], tables: Sequence[Table]
    ) -> None:
        """Add a table, by its number, to each of some edges."""
        turned = [transposed(table) for table in tables]
        for (u, v), k in zip(edges, table_of, strict=True):
            if v in self.near[u]:
                self.add(u, v, tables[k])
            else:
                self.near[u][v], self.near[v][u] = tables[k], turned[k]

    def note(self, *step: Any) -> None:
        """Note a step where somebody asked for them."""
        if self.log is not None:
            self.log.append(step)

    def leave(self, u: int) -> None:
        """Let a node go; its own tables stay, for its reply to its neighbours."""
        for v in self.near[u]:
            del self.near[v][u]
        self.gone[u] = True
        self.order.append(u)

    def forbid(self, u: int, label: int) -> None:
        """Take a label away from a node; raise ``Infeasible`` if it was its last one."""
        self.costs[u][label] = self.never
        self.shrunk.add(u)
        if min(self.costs[u]) == inf:
            raise Infeasible

    def keep(self, u: int, label: int) -> None:
        """Take all labels but one from a node."""
        for i in self.labels(u):
            if i != label:
                self.forbid(u, i)

    def value(self, labels: Sequence[int]) -> Cost:
        """Return what a labelling of the nodes that are left costs; ``inf`` if it is forbidden."""
        total: Cost = self.constant
        for u in self.left():
            total += self.costs[u][labels[u]]
        for u, v, table in self.edges():
            total += table[labels[u]][labels[v]]
        return total

    def bound(self) -> int:
        """Return a lower bound, if no table holds a negative cost but those in ``below``."""
        return self.constant + self.below + sum(int(min(self.costs[u])) for u in self.left())

    def size(self) -> int:
        """Return the sum of the largest absolute costs of all nodes and edges."""
        known: dict[int, int] = {}
        total = sum([_largest(self.costs[u]) for u in self.left()])
        for _, _, table in self.edges():
            if id(table) not in known:
                known[id(table)] = max(map(_largest, table))
            total += known[id(table)]
        return total

    def cells(self) -> int:
        """Return the number of pairs of labels that tables are left for."""
        labels = {u: len(self.labels(u)) for u in self.left()}
        return sum(labels[u] * labels[v] for u in labels for v in self.near[u] if u < v)

    def reply(self, u: int, labels: Sequence[int]) -> list[Cost]:
        """Return what each label of a node costs beside its neighbours' labels."""
        reply = list(self.costs[u])
        for v, table in self.near[u].items():
            at = labels[v]
            reply = [cost + row[at] for cost, row in zip(reply, table, strict=True)]
        return reply

    def restore(self, labels: list[int]) -> None:
        """Fill in the labels of nodes that have left: the last first, each its best reply."""
        for u in reversed(self.order):
            reply = self.reply(u, labels)
            labels[u] = reply.index(min(reply))


def work_of(network: Network, limits: Limits) -> Work:
    """Return a network of closed domains, without its rows, as one to work on.

    Raises ``Infeasible`` if all labels of a node are forbidden, and ``TimeoutError`` if time is up.
    """
    ends = np.cumsum([0, *network.sizes.tolist()])
    never = inf if network.total() < 2**1000 else _Infinity(inf)
    flat = np.zeros(ends[-1], object)
    flat[ends[network.cost_at[:, 0]] + network.cost_at[:, 1]] = network.costs
    flat[ends[network.banned[:, 0]] + network.banned[:, 1]] = never
    listed = flat.tolist()
    costs: list[list[Cost]] = [listed[a:b] for a, b in pairwise(ends.tolist())]
    work = Work(costs, never)
    work.constant = network.constant
    if any(min(own) == inf for own in costs):
        raise Infeasible
    tables: list[Table] = []
    for table in network.tables:
        if limits.over:
            raise TimeoutError
        rows = table.costs.tolist()
        if table.allowed is not None:
            allowed = table.allowed.tolist()
            rows = [
                [x if ok else never for x, ok in zip(row, oks, strict=True)]
                for row, oks in zip(rows, allowed, strict=True)
            ]
        tables.append(tuple(map(tuple, rows)))
    work.connect(network.table_edges.tolist(), network.table_of.tolist(), tables)
    _add_equal(work, network, limits)
    return work


ENTRY = 8  # bytes of an entry of a table, beside numbers that entries share


def _add_equal(work: Work, network: Network, limits: Limits) -> None:
    """Add the tables of equality edges; edges of one cost share theirs, which is symmetric.

    Where labels are forbidden or the cost is negative, each edge later gets two of its own.
    """
    ends, costs = network.equal_edges, network.equal_costs
    sizes = network.sizes[ends[:, 0]]
    kinds = [*zip(sizes.tolist(), costs.tolist(), strict=True)]
    own = np.isin(ends, network.banned[:, 0]).any(axis=1) | (costs < 0).astype(bool)
    entries = sum(n**2 for n, _ in set(kinds)) + 2 * int((sizes[own] ** 2).sum())
    require(ENTRY * entries, "storing costs of equal labels as tables")
    known: dict[tuple[int, int], Table] = {}
    for (u, v), (n, cost) in zip(ends.tolist(), kinds, strict=True):
        if (n, cost) not in known:
            if limits.over:
                raise TimeoutError
            known[n, cost] = tuple([(0,) * i + (cost,) + (0,) * (n - 1 - i) for i in range(n)])
        table = known[n, cost]
        if v in work.near[u]:
            work.add(u, v, table)
        else:
            work.near[u][v] = work.near[v][u] = table


def split(work: Work) -> list[tuple[Work, list[int]]]:
    """Return the parts of a problem, each with the numbers of its nodes in the whole.

    Labels keep their numbers.  What the whole pays anyway is in no part.
    """
    place = [-1] * len(work.costs)
    parts = []
    for root in work.left():
        if place[root] < 0:
            nodes = reached([root], work.near.__getitem__)
            part = Work([list(work.costs[u]) for u in nodes], work.never)
            for k, u in enumerate(nodes):
                place[u] = k
            for k, u in enumerate(nodes):
                part.near[k] = {place[v]: table for v, table in work.near[u].items()}
            parts.append((part, nodes))
    return parts


def transposed(table: Sequence[tuple[Cost, ...]]) -> Table:
    """Return a table seen from the other side."""
    return tuple(zip(*table, strict=True))


def _largest(costs: Iterable[Cost]) -> int:
    return max([abs(int(cost)) for cost in costs if cost < inf], default=0)


def normalise(work: Work, u: int, v: int) -> None:
    """Bring an edge to normal form; one that costs nothing then vanishes.

    Afterwards no cost is negative, each row and column has a 0, and those of labels that are out of
    the question hold nothing else.  Raises ``Infeasible`` if a node has no label left.
    """
    table = work.near[u][v]
    rows = _rows_moved(work, u, table, work.costs[v])
    columns = tuple(_rows_moved(work, v, transposed(rows), work.costs[u]))
    if not any(map(any, columns)):
        work.note("move", u, v)
        del work.near[u][v], work.near[v][u]
    elif (normal := transposed(columns)) != table:
        work.note("move", u, v)
        work.near[u][v], work.near[v][u] = normal, columns


def _rows_moved(work: Work, u: int, table: Table, other: Sequence[Cost]) -> list[tuple[Cost, ...]]:
    """Move each row's least cost to its label; return what remains."""
    own = work.costs[u]
    partial = inf in other
    rows: list[tuple[Cost, ...]] = []
    for i, row in enumerate(table):
        if own[i] == inf:
            rows.append((0,) * len(row))
            continue
        if partial:
            row = tuple([0 if c == inf else x for x, c in zip(row, other, strict=True)])
            least = min([x for x, c in zip(row, other, strict=True) if c < inf])
        else:
            least = min(row)
        if least == inf:
            work.forbid(u, i)
            row = (0,) * len(row)
        elif least:
            own[i] += least
            if partial:
                row = tuple([x - least if c < inf else 0 for x, c in zip(row, other, strict=True)])
            else:
                row = tuple([x - least for x in row])
        rows.append(row)
    return rows


OVERTIME = 1.0
"""Seconds that normal form, in processor time, or a labelling may take when time is up."""

POLLED = 64
"""Edges after which limits are looked at."""


def overtime(limits: Limits) -> Callable[[], bool]:
    """Return a function that tells whether time has been up for longer than ``OVERTIME``."""
    late, waiting = time.process_time() + OVERTIME, 0

    def stop() -> bool:
        nonlocal waiting
        waiting = waiting - 1 if waiting else POLLED
        return waiting == POLLED and limits.over and time.process_time() > late

    return stop


def normalise_all(work: Work, stop: Callable[[], bool] | None = None) -> None:
    """Bring all edges to normal form; tables that many edges share are looked at once.

    Raises ``Infeasible`` if a node has no label left, and ``TimeoutError`` if ``stop`` tells to
    give up.
    """
    whole = [inf not in own for own in work.costs]
    known: dict[int, tuple[Table, bool]] = {}  # that it holds the tables keeps their ids
    for u, v, table in list(work.edges()):
        if stop is not None and stop():
            raise TimeoutError
        if id(table) not in known:
            lines = (*table, *work.near[v][u])
            known[id(table)] = (table, not any(map(min, lines)) and any(map(any, table)))
        if not (known[id(table)][1] and whole[u] and whole[v]):
            normalise(work, u, v)


def level(work: Work) -> None:
    """Move each node's least cost to the constant."""
    for u in work.left():
        least = min(work.costs[u])
        if least:
            work.costs[u] = [cost - least for cost in work.costs[u]]
            work.constant += int(least)
