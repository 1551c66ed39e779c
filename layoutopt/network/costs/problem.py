"""The problem: nodes choose labels, and labels and pairs of labels cost something.

::

    minimise  sum_u c_u(x_u)  +  sum_e T_e(x_u, x_v),   e = (u, v)

This is the *partitioned Boolean quadratic problem* of compiler writers (Scholz and Eckstein,
LCTES 2002) and a weighted constraint problem with tables of two variables.  Costs are whole
numbers of either sign; what is forbidden costs :data:`FORBIDDEN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.base.result import Answer, Stopped
from layoutopt.network.problem import IntArray

FORBIDDEN = 2**62
"""The cost of what no labelling may do."""

LARGEST = 2**58
"""The absolute values of all costs add up to less than this."""

Given: TypeAlias = Sequence[Sequence["int | None"]]
"""Rows of costs as a user writes them; ``None`` is forbidden."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem as arrays; see the module's text, and :meth:`of` for a way to write one down.

    Parameters
    ----------
    costs
        Shape ``(sum of all numbers of labels,)``: the costs of labels, node after node.
    starts
        Shape ``(nodes + 1,)``: those of node ``u`` are ``costs[starts[u] : starts[u + 1]]``.
    edges
        Shape ``(m, 2)``: two different nodes each.  Parallel edges add up.
    table_of
        Shape ``(m,)``: for each edge its table's number.
    tables
        Tables of costs, ``(labels of the first node, labels of the second node)`` each.

    Raises
    ------
    InputError
        If arrays do not fit together, or numbers are too large.
    """

    costs: IntArray
    starts: IntArray
    edges: IntArray
    table_of: IntArray
    tables: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        widths = self.widths
        if self.starts[0] != 0 or self.starts[-1] != len(self.costs) or (widths < 1).any():
            raise InputError("every node needs one label or more, and every cost a node")
        if len(self.edges) != len(self.table_of):
            raise InputError(f"{len(self.edges)} edges have {len(self.table_of)} tables")
        if len(self.edges):
            self._check_edges(widths)
        if self.total() >= LARGEST:
            raise InputError(f"costs add up to {self.total()}, allowed is less than {LARGEST}")

    def _check_edges(self, widths: IntArray) -> None:
        outside = self.edges[(self.edges < 0) | (self.edges >= self.nodes)]
        if len(outside):
            raise InputError(f"edges join nodes 0 to {self.nodes - 1}, got {outside[0]}")
        if self.table_of.min() < 0 or self.table_of.max() >= len(self.tables):
            raise InputError(f"tables are 0 to {len(self.tables) - 1}")
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if len(loops):
            raise InputError(f"edge {loops[0]} joins node {self.edges[loops[0], 0]} to itself")
        shapes = np.array([table.shape for table in self.tables])
        wrong = np.flatnonzero((shapes[self.table_of] != widths[self.edges]).any(axis=1))
        if len(wrong):
            shape, labels = shapes[self.table_of[wrong[0]]], widths[self.edges[wrong[0]]]
            raise InputError(
                f"edge {wrong[0]} has a table of {shape[0]} x {shape[1]}, "
                f"its nodes have {labels[0]} and {labels[1]} labels"
            )

    @classmethod
    def of(cls, costs: Given, edges: Iterable[tuple[int, int, Given]] = ()) -> Problem:
        """Write a problem down; equal tables are kept once.

        Parameters
        ----------
        costs
            For each node the costs of its labels; ``None`` is forbidden.
        edges
            Two nodes and a table each: a row for each label of the first node.

        Raises
        ------
        InputError
            See the class.
        """
        number: dict[tuple[tuple[int | None, ...], ...], int] = {}
        ends, table_of = [], []
        for u, v, table in edges:
            key = tuple(map(tuple, table))
            ends.append((u, v))
            table_of.append(number.setdefault(key, len(number)))
        flat = integers([cost for own in costs for cost in own])
        return cls(
            flat,
            np.cumsum([0, *map(len, costs)]),
            np.array(ends, np.int64).reshape(-1, 2),
            np.array(table_of, np.int64),
            tuple(map(_table, number)),
        )

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @property
    def widths(self) -> IntArray:
        """Number of labels of each node."""
        return np.diff(self.starts)

    def total(self) -> int:
        """Return the sum of all absolute costs, with the largest of each edge's table."""
        most = [_largest(table) for table in self.tables]
        times: list[int] = np.bincount(self.table_of, minlength=len(most)).tolist()
        own: list[int] = self.costs[self.costs < FORBIDDEN].tolist()
        return sum(map(abs, own)) + sum(t * m for t, m in zip(times, most, strict=True))


def _largest(table: IntArray) -> int:
    allowed = table[table < FORBIDDEN]
    return max(abs(int(allowed.min())), abs(int(allowed.max()))) if len(allowed) else 0


def _table(rows: tuple[tuple[int | None, ...], ...]) -> IntArray:
    widths = set(map(len, rows))
    if len(widths) != 1:
        raise InputError("the rows of a table must be equally long, and there must be one")
    return integers([cost for row in rows for cost in row]).reshape(len(rows), -1)


def integers(costs: Sequence[int | None]) -> IntArray:
    """Pack costs, forbidden ones included; too large ones are refused."""
    filled = [FORBIDDEN if cost is None else cost for cost in costs]
    try:
        packed = np.array(filled, np.int64)
    except OverflowError:
        raise InputError(f"costs must lie within {-LARGEST} and {LARGEST}") from None
    except (TypeError, ValueError):
        raise InputError("costs must be whole numbers, or None for forbidden") from None
    if packed.tolist() != filled:
        raise InputError("costs must be whole numbers, or None for forbidden")
    return packed


def cost(problem: Problem, labelling: IntArray) -> int | None:
    """Return the exact cost of a labelling, ``None`` if it does what is forbidden.

    Parameters
    ----------
    labelling
        Shape ``(nodes,)``: the label of each node.

    Raises
    ------
    InputError
        If there are not as many labels as nodes, or some are out of range.
    """
    labels = np.asarray(labelling)
    if labels.shape != (problem.nodes,):
        raise InputError(f"{problem.nodes} nodes need as many labels, got shape {labels.shape}")
    if ((labels < 0) | (labels >= problem.widths)).any():
        raise InputError("a label is negative, or larger than its node has labels")
    own = problem.costs[problem.starts[:-1] + labels]
    flat = np.concatenate([table.reshape(-1) for table in (*problem.tables, _NOTHING)])
    begin = np.cumsum([0, *(table.size for table in problem.tables)])
    width = np.array([*(table.shape[1] for table in problem.tables), 0])
    first, second = labels[problem.edges.T]
    shared = flat[begin[problem.table_of] + first * width[problem.table_of] + second]
    if (own >= FORBIDDEN).any() or (shared >= FORBIDDEN).any():
        return None
    return int(own.sum()) + int(shared.sum())


_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Proof:
    """Why a bound holds: reductions, and prices of rows with messages of tables.

    Parameters
    ----------
    steps
        Steps by name, with nodes and labels; ``"price"`` with a :class:`PriceStep`.
    nodes
        Nodes that steps name by their places.
    """

    steps: Sequence[tuple[Any, ...]]
    nodes: IntArray


@dataclass(frozen=True, eq=False)
class PriceStep:
    """Prices of rows and messages of tables in whole parts of a unit of cost.

    Parameters
    ----------
    parts
        How many make a unit.
    rows
        Numbers of rows and what one unit of their amounts costs: above their upper limit if
        positive, below their lower one if negative.
    messages
        For each edge of those left, by its nodes, what it hands to labels of the second one.
    worth
        What cost so much or more was forbidden then; ``None`` if nothing was.
    """

    parts: int
    rows: list[tuple[int, int]]
    messages: list[list[int]]
    worth: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CostAnswer(Answer):
    """A labelling, a bound, or both; here small is good and bounds lie below.

    Parameters
    ----------
    objective
        The labelling's exact cost, ``None`` without a labelling.
    bound
        What no labelling can cost less than, proved; ``None`` where nothing is known.
    labelling
        Shape ``(nodes,)``: the label of each node, or ``None``.
    stopped
        Why the computation ended.
    infeasible
        Whether it is proved that every labelling does something forbidden.
    proof
        Why the bound holds, where that is known.
    """

    objective: int | None = None
    bound: int | None = None
    labelling: IntArray | None = None
    stopped: Stopped = Stopped.FINISHED
    infeasible: bool = False
    proof: Proof | None = None
