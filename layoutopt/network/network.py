"""Cost networks: nodes choose labels, and labels, pairs of labels and rows cost or limit.

::

    minimise   sum_u c_u(x_u)  +  sum_{(u,v) equal} w_uv [x_u = x_v]  +  sum_{(u,v)} T_uv(x_u, x_v)
    subject to low_i <= sum_{u in row i} a_u(x_u) <= high_i

or maximise.  This is a weighted constraint satisfaction problem with functions of one and two
variables, known to compilers as partitioned Boolean quadratic programming (Scholz and Eckstein,
LCTES 2002) and to computer vision as the energy of a Markov random field, with linear rows.

All numbers are whole multiples of one unit, so that sums are exact whatever their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Rational
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError, check_word
from layoutopt.base.limits import Stopped
from layoutopt.base.numbers import least
from layoutopt.base.result import Answer
from layoutopt.network.problem import exact_integers, no_numbers, no_pairs

Array: TypeAlias = NDArray[Any]

Sense: TypeAlias = Literal["min", "max"]

DIGITS = 4300  # most digits of a number that Python writes
LARGEST = 10**DIGITS


@dataclass(frozen=True)
class Domain:
    """Labels that nodes choose from.

    Parameters
    ----------
    size
        Number of named labels, which are ``0 .. size-1``.
    names
        Their names, or nothing: then they are called by their numbers.
    open
        Whether every node owns one more label, ``size + u`` for node ``u``, that costs nothing
        and that any node of this domain may choose.  Closed domains have the named labels alone.
    """

    size: int
    names: tuple[str, ...] = ()
    open: bool = False

    def __post_init__(self) -> None:
        if least("the size of a domain", self.size, 0, 2**30) < (0 if self.open else 1):
            raise InputError("a closed domain needs one label or more")
        _set(self, names=_names("names of labels", self.names))
        if self.names and len(set(self.names)) != self.size:
            raise InputError(f"{self.size} labels need as many different names")

    def name(self, label: int) -> str | int:
        """Return a label's name; its number if it has none."""
        return self.names[label] if self.names and label < self.size else label


@dataclass(frozen=True, eq=False)
class CostTable:
    """Costs of pairs of labels.

    Parameters
    ----------
    costs
        Shape ``(labels of the first node, labels of the second)``, in units; 0 where forbidden.
    allowed
        The same shape, Boolean; ``None`` where every pair is.

    Raises
    ------
    InputError
        If an array has another type or shape.
    """

    costs: Array
    allowed: Array | None = None

    def __post_init__(self) -> None:
        _set(self, costs=_numbers("costs of a table", self.costs, 2))
        if self.allowed is None:
            return
        _set(self, allowed=_array("what a table allows", self.allowed))
        if (self.allowed.dtype, self.allowed.shape) != (np.dtype(bool), self.costs.shape):
            shape = self.costs.shape
            raise InputError(
                f"what a table of {shape[0]} x {shape[1]} costs allows must be Boolean"
            )


@dataclass(frozen=True, eq=False)
class Usage:
    """Rows that count the same amounts over different sets of nodes.

    An item is what a node uses.  Row ``i`` holds where ``low[i] <= sum of a_k(x_u) <= high[i]``
    over the items ``k`` that it counts, of nodes ``u = nodes[k]``.

    Parameters
    ----------
    nodes
        Shape ``(items,)``: the node of each item.
    at
        Shape ``(k, 2)``: item and named label of its node, each combination at most once.
    amounts
        Shape ``(k,)``: what the label uses, in the usage's own unit; others use 0.
    spans
        Shape ``(s, 3)``: an item, the first row that counts it, and the row after the last one.
        An item of several spans, which do not overlap, is counted in all of their rows.
    low, high
        For each row its limits in the usage's own unit; ``None`` for no limit.
    names
        Names of rows, or nothing.
    unit
        What one amount is.

    Raises
    ------
    InputError
        If an array or a limit is not of whole numbers.
    """

    nodes: Array
    at: Array
    amounts: Array
    spans: Array
    low: tuple[int | None, ...]
    high: tuple[int | None, ...]
    names: tuple[str, ...] = ()
    unit: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        _set(
            self,
            nodes=_indices("nodes of items", self.nodes),
            at=_indices("labels of items", self.at, 2),
            amounts=_numbers("amounts", self.amounts),
            spans=_indices("spans", self.spans, 3),
            low=_limits(self.low),
            high=_limits(self.high),
            names=_names("names of rows", self.names),
            unit=_unit(self.unit),
        )
        limits = max((abs(x) for x in (*self.low, *self.high) if x is not None), default=0)
        _check_digits("amounts", limits + int(np.abs(self.amounts).sum()), self.unit)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.low)

    def used(self, labels: Array) -> Array:
        """Return what a labelling uses in each row, in the usage's own unit."""
        own = np.zeros(len(self.nodes), self.amounts.dtype)
        chosen = labels[self.nodes[self.at[:, 0]]] == self.at[:, 1]
        own[self.at[chosen, 0]] = self.amounts[chosen]
        item, begin, end = self.spans.T
        return span_sums(begin, end, own[item], self.rows)

    @property
    def entries(self) -> int:
        """Number of items of all rows together."""
        return int((self.spans[:, 2] - self.spans[:, 1]).sum())

    def counted(self, row: int) -> Array:
        """Return the items that a row counts, ascending."""
        item, begin, end = self.spans.T
        return np.sort(item[(begin <= row) & (row < end)])

    def name(self, row: int) -> str:
        """Return a row's name; its number if it has none."""
        return self.names[row] if self.names else str(row)


def spans_of(rows: Sequence[Sequence[int] | Array]) -> Array:
    """Return the spans of items in rows, shape ``(s, 3)``, from the items that each row counts."""
    item = np.concatenate([np.zeros(0, np.int64), *(np.array(own, np.int64) for own in rows)])
    row = np.repeat(np.arange(len(rows)), [*map(len, rows)])
    order = np.lexsort((row, item))
    item, row = item[order], row[order]
    first = np.ones(len(item), bool)
    first[1:] = (item[1:] != item[:-1]) | (row[1:] != row[:-1] + 1)
    begin = np.flatnonzero(first)
    last = np.append(begin[1:], len(item))[: len(begin)] - 1
    return np.column_stack([item[begin], row[begin], row[last] + 1])


def span_sums(begin: Array, end: Array, used: Array, rows: int) -> Array:
    """Return the sum of amounts in each of so many rows; each counts in ``begin .. end - 1``."""
    change = np.zeros(rows + 1, used.dtype)
    np.add.at(change, begin, used)
    np.subtract.at(change, end, used)
    return np.asarray(np.cumsum(change)[:-1])


def span_windows(item: Array, begin: Array, end: Array) -> tuple[Array, Array]:
    """Return a row for each time at which a set of items is live that no other time's contains.

    These are the beginnings after which something ends before anything else begins.  Items are live
    from ``begin`` to before ``end``; intervals of one item may overlap.  Return the time of each
    row, ascending, and the spans of items in rows.
    """
    item, begin, end = _united(np.column_stack([item, begin, end])).T
    starts, ends = np.unique(begin), np.sort(end)
    never = np.iinfo(np.int64).max
    following = np.append(starts[1:], never)[: len(starts)]
    next_end = np.append(ends, never)[np.searchsorted(ends, starts, side="right")]
    times = starts[next_end <= following]
    rows = (np.searchsorted(times, x) for x in (begin, end))
    return times, _united(np.column_stack([item, *rows]))


def _united(spans: Array) -> Array:
    """Return spans sorted, without empty ones, those of an item united that overlap or touch."""
    found: list[list[int]] = []
    for item, begin, end in spans[np.lexsort((spans[:, 1], spans[:, 0]))].tolist():
        if begin >= end:
            continue
        if found and found[-1][0] == item and begin <= found[-1][2]:
            found[-1][2] = max(found[-1][2], end)
        else:
            found.append([item, begin, end])
    return np.array(found, np.int64).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class Network:
    """A cost network as flat arrays; :class:`CostNetwork` is a way to write one down.

    Lists stand for arrays, whose integers may be of any type and size.  Arrays are not copied, and
    must not be changed afterwards.

    Parameters
    ----------
    nodes
        Names of nodes, all different.
    domains, domain_of
        The domains, and for each node the number of its own.
    cost_at, costs
        Shapes ``(k, 2)`` and ``(k,)``: node and named label, each combination at most once, and
        what it costs in units; others cost 0.
    banned
        Shape ``(b, 2)``: node and named label that it must not choose.
    equal_edges, equal_costs
        Shapes ``(m, 2)`` and ``(m,)``: two nodes of one domain, and what equal labels cost.
    table_edges, table_of, tables
        Shapes ``(t, 2)`` and ``(t,)``: two nodes of closed domains, and the number of the table
        of what their labels cost.
    ties
        Shape ``(s, 2)``: nodes of domains of one size that must choose equal labels.
    usages
        Rows.
    constant
        What is paid whatever is chosen, in units.
    name
        The network's name.
    sense
        Whether costs are minimised or maximised.
    unit
        What one unit of costs is.

    Raises
    ------
    InputError
        If arrays are not of whole numbers, or do not fit together; the node or edge is named.
    """

    nodes: tuple[str, ...]
    domains: tuple[Domain, ...]
    domain_of: Array
    cost_at: Array = field(default_factory=no_pairs)
    costs: Array = field(default_factory=no_numbers)
    banned: Array = field(default_factory=no_pairs)
    equal_edges: Array = field(default_factory=no_pairs)
    equal_costs: Array = field(default_factory=no_numbers)
    table_edges: Array = field(default_factory=no_pairs)
    table_of: Array = field(default_factory=no_numbers)
    tables: tuple[CostTable, ...] = ()
    ties: Array = field(default_factory=no_pairs)
    usages: tuple[Usage, ...] = ()
    constant: int = 0
    name: str = ""
    sense: Sense = "min"
    unit: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        check_word("sense", self.sense, Sense)
        _set(
            self,
            nodes=_names("names of nodes", self.nodes),
            domain_of=_indices("domains of nodes", self.domain_of),
            cost_at=_indices("labels of costs", self.cost_at, 2),
            costs=_numbers("costs", self.costs),
            banned=_indices("bans", self.banned, 2),
            equal_edges=_indices("equality edges", self.equal_edges, 2),
            equal_costs=_numbers("costs of equality edges", self.equal_costs),
            table_edges=_indices("table edges", self.table_edges, 2),
            table_of=_indices("numbers of tables", self.table_of),
            ties=_indices("ties", self.ties, 2),
            constant=_whole("the constant", self.constant),
            unit=_unit(self.unit),
        )
        if not isinstance(self.name, str):
            raise InputError(f"the name of a network must be a string, got {self.name!r}")
        for what, kind in (("domains", Domain), ("tables", CostTable), ("usages", Usage)):
            for given in getattr(self, what):
                if not isinstance(given, kind):
                    raise InputError(f"{what} must be of class {kind.__name__}, got {given!r}")
        if len(set(self.nodes)) != len(self.nodes):
            raise InputError("two nodes have the same name")
        if len(self.domain_of) != len(self.nodes):
            raise InputError(f"{len(self.nodes)} nodes have {len(self.domain_of)} domains")
        wrong = (self.domain_of < 0) | (self.domain_of >= len(self.domains))
        for u in np.flatnonzero(wrong)[:1]:
            raise InputError(f"domain {self.domain_of[u]} of node {self.nodes[u]!r} is not known")
        for what, at, numbers in (
            ("costs", self.cost_at, self.costs),
            ("equality edges", self.equal_edges, self.equal_costs),
            ("table edges", self.table_edges, self.table_of),
        ):
            if at.shape != (len(numbers), 2):
                raise InputError(f"{what} have shapes {at.shape} and {numbers.shape}")
        for what, at in (("a cost", self.cost_at), ("a ban", self.banned)):
            self._check_labels(what, at)
        for usage in self.usages:
            self._check_usage(usage)
        for what, ends in (
            ("equality edge", self.equal_edges),
            ("table edge", self.table_edges),
            ("tie", self.ties),
        ):
            self._check_ends(what, ends)
        same = self.domain_of[self.equal_edges]
        for i in np.flatnonzero(same[:, 0] != same[:, 1])[:1]:
            raise InputError(f"{self._edge(self.equal_edges, i)} have different domains")
        sizes, one, two = self.sizes[self.ties], *self.domain_of[self.ties].T
        wrong = (sizes[:, 0] != sizes[:, 1]) | self.opened[self.ties].any(axis=1)
        for i in np.flatnonzero(wrong & (one != two))[:1]:
            raise InputError(f"{self._edge(self.ties, i)} are tied but have different labels")
        self._check_tables()
        _check_digits("costs", abs(self.constant) + self.total(), self.unit)

    def _check_labels(self, what: str, at: Array) -> None:
        node, label = at.T
        for u in node[(node < 0) | (node >= len(self.nodes))][:1]:
            raise InputError(f"{what} is of node number {u}, which does not exist")
        for u, i in at[(label < 0) | (label >= self.sizes[node])][:1].tolist():
            raise InputError(f"{what} is of label {i} that node {self.nodes[u]!r} lacks")
        for u, i in _repeated(at)[:1].tolist():
            raise InputError(f"{what} of label {i} of node {self.nodes[u]!r} is given twice")

    def _check_ends(self, what: str, ends: Array) -> None:
        for u in ends[(ends < 0) | (ends >= len(self.nodes))][:1]:
            raise InputError(f"{what}: node number {u} does not exist")
        for k in np.flatnonzero(ends[:, 0] == ends[:, 1])[:1]:
            raise InputError(f"{what} {k} joins node {self.nodes[ends[k, 0]]!r} to itself")

    def _check_usage(self, usage: Usage) -> None:
        if len(usage.nodes) and not 0 <= usage.nodes.min() <= usage.nodes.max() < len(self):
            raise InputError("a row counts a node that does not exist")
        if len(usage.amounts) != len(usage.at):
            raise InputError(f"{len(usage.at)} labels have {len(usage.amounts)} amounts")
        if len(usage.at):
            item, label = usage.at.T
            if item.min() < 0 or item.max() >= len(usage.nodes):
                raise InputError(f"amounts are of items 0 to {len(usage.nodes) - 1}")
            node = usage.nodes[item]
            for i in np.flatnonzero((label < 0) | (label >= self.sizes[node]))[:1].tolist():
                name = self.nodes[node[i]]
                raise InputError(f"an amount is of label {label[i]} that node {name!r} lacks")
            if len(_repeated(usage.at)):
                raise InputError("an amount of one label is given twice")
        if not len(usage.high) == (len(usage.names) or usage.rows) == usage.rows:
            raise InputError("rows need as many names, lower and upper limits")
        item, begin, end = usage.spans.T
        if len(item) and not 0 <= item.min() <= item.max() < len(usage.nodes):
            raise InputError(f"rows count items 0 to {len(usage.nodes) - 1}")
        if len(item) and (begin.min() < 0 or end.max() > usage.rows or (begin >= end).any()):
            raise InputError(f"spans are of rows 0 to {usage.rows - 1}, one at least")
        order = np.lexsort((begin, item))
        again = item[order[1:]] == item[order[:-1]]
        if (again & (begin[order[1:]] < end[order[:-1]])).any():
            raise InputError("a row counts one node twice")

    def _check_tables(self) -> None:
        if not len(self.table_of):
            return
        if self.table_of.min() < 0 or self.table_of.max() >= len(self.tables):
            raise InputError(f"tables are 0 to {len(self.tables) - 1}")
        for k in np.flatnonzero(self.opened[self.table_edges].any(axis=1))[:1]:
            edge = self._edge(self.table_edges, k)
            raise InputError(f"{edge} have a table, which needs closed domains")
        shapes = np.array([table.costs.shape for table in self.tables])[self.table_of]
        needed = self.sizes[self.table_edges]
        for k in np.flatnonzero((shapes != needed).any(axis=1))[:1]:
            (a, b), (c, d) = shapes[k], needed[k]
            edge = self._edge(self.table_edges, k)
            raise InputError(f"{edge} have a table of {a} x {b}, their labels are {c} x {d}")

    @property
    def opened(self) -> Array:
        """Whether each node's domain is open, shape ``(nodes,)``."""
        opened = np.array([domain.open for domain in self.domains], bool)
        return np.asarray(opened[self.domain_of])

    def _edge(self, ends: Array, place: Any) -> str:
        u, v = ends[int(place)]
        return f"nodes {self.nodes[u]!r} and {self.nodes[v]!r}"

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of nodes, of edges (of equal labels, tables and ties) and of rows."""
        edges = len(self.equal_edges) + len(self.table_edges) + len(self.ties)
        return {"nodes": len(self), "edges": edges, "rows": self.rows}

    @property
    def sizes(self) -> Array:
        """Number of named labels of each node, shape ``(nodes,)``."""
        return np.array([domain.size for domain in self.domains], np.int64)[self.domain_of]

    @property
    def rows(self) -> int:
        """Number of rows of all usages."""
        return sum(usage.rows for usage in self.usages)

    def domain(self, node: int) -> Domain:
        """Return the domain of a node."""
        return self.domains[int(self.domain_of[node])]

    def _labels(self, labels: Array) -> Array:
        labels = _array("labels", labels)
        if labels.shape != (len(self),) or (labels.size and labels.dtype.kind not in "iu"):
            raise InputError(f"{len(self)} nodes need as many whole numbers, got {labels.shape}")
        return labels.astype(np.int64, copy=False)

    def fault(self, labels: Array) -> str:
        """Return why a labelling is not allowed; nothing if it is.

        Parameters
        ----------
        labels
            Shape ``(nodes,)``: the label of each node; of an open domain ``size + u`` is the
            fresh label of node ``u``.

        Raises
        ------
        InputError
            If there are not as many labels as nodes.
        """
        labels = self._labels(labels)
        sizes = self.sizes
        opened = self.opened
        owner = np.clip(labels - sizes, 0, max(len(self) - 1, 0))
        fresh = opened & (labels >= sizes) & (labels < sizes + len(self))
        if len(self):
            fresh &= self.domain_of[owner] == self.domain_of
        for u in np.flatnonzero(((labels < 0) | (labels >= sizes)) & ~fresh).tolist():
            return f"node {self.nodes[u]!r} has no label {labels[u]}"
        for u in self.banned[labels[self.banned[:, 0]] == self.banned[:, 1], 0].tolist():
            return f"node {self.nodes[u]!r} must not have label {self.label_name(u, labels[u])!r}"
        for u, v in self.ties[labels[self.ties[:, 0]] != labels[self.ties[:, 1]]].tolist():
            return f"nodes {self.nodes[u]!r} and {self.nodes[v]!r} are tied and differ"
        for k, edges in self._edges_by_table:
            allowed, (one, two) = self.tables[k].allowed, self.table_edges[edges].T
            if allowed is not None and not allowed[labels[one], labels[two]].all():
                bad = np.flatnonzero(~allowed[labels[one], labels[two]])[0]
                u, v = int(one[bad]), int(two[bad])
                first, second = self.label_name(u, labels[u]), self.label_name(v, labels[v])
                pair = f"{self.nodes[u]!r} = {first!r} and {self.nodes[v]!r} = {second!r}"
                return f"{pair} is forbidden"
        for usage in self.usages:
            limits = zip(usage.used(labels).tolist(), usage.low, usage.high, strict=True)
            for row, (used, low, high) in enumerate(limits):
                if (low is not None and used < low) or (high is not None and used > high):
                    scaled = [None if x is None else x * usage.unit for x in (low, used, high)]
                    return f"row {usage.name(row)!r} uses {scaled[1]}, allowed is {_range(scaled)}"
        return ""

    def cost(self, labels: Array) -> int:
        """Return what a labelling costs in units, forbidden or not.

        Parameters
        ----------
        labels
            Shape ``(nodes,)``.
        """
        labels = self._labels(labels)
        total = self.constant + _sum(self.costs[labels[self.cost_at[:, 0]] == self.cost_at[:, 1]])
        same = labels[self.equal_edges[:, 0]] == labels[self.equal_edges[:, 1]]
        total += _sum(self.equal_costs[same])
        for k, edges in self._edges_by_table:
            one, two = self.table_edges[edges].T
            total += _sum(self.tables[k].costs[labels[one], labels[two]])
        return total

    def total(self) -> int:
        """Return the sum of all absolute costs in units, with the largest of each edge's table."""
        most = [int(np.abs(table.costs).max(initial=0)) for table in self.tables]
        times: list[int] = np.bincount(self.table_of, minlength=len(most)).tolist()
        own = int(np.abs(self.costs).sum()) + int(np.abs(self.equal_costs).sum())
        return own + sum(t * m for t, m in zip(times, most, strict=True))

    @cached_property
    def _edges_by_table(self) -> list[tuple[int, Array]]:
        """The number of each table that edges have, and the numbers of these edges."""
        order = np.argsort(self.table_of, kind="stable")
        used, first = np.unique(self.table_of[order], return_index=True)
        return [*zip(used.tolist(), np.split(order, first[1:]), strict=True)] if len(used) else []

    def label_name(self, node: int, label: int) -> str | int:
        """Return what a node's label is called."""
        return self.domain(node).name(int(label))

    def __repr__(self) -> str:
        size = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"Network({self.name!r}: {size})"


@dataclass(frozen=True, eq=False)
class Proof:
    """Why a bound holds: reductions, and prices of rows with messages of tables."""

    # steps by name, with nodes and labels; `"price"` with a `PriceStep`
    steps: Sequence[tuple[Any, ...]]
    nodes: Array  # nodes that steps name by their places


@dataclass(frozen=True, eq=False)
class PriceStep:
    """Prices of rows and messages of tables in whole parts of a unit of cost."""

    parts: int  # how many make a unit
    # numbers of rows and what one unit of their amounts costs: above their upper limit if positive,
    # below their lower one if negative
    rows: list[tuple[int, int]]
    # for each edge of those left, by its nodes, what it hands to labels of the second one
    messages: list[list[int]]
    worth: int | None = None  # what cost so much or more was forbidden then; `None` if nothing was


@dataclass(frozen=True, eq=False, kw_only=True)
class CostAnswer(Answer):
    """A labelling, a bound, or both; here small is good and bounds lie below."""

    objective: int | None = None  # the labelling's exact cost, `None` without a labelling
    # what no labelling can cost less than, proved; `None` where nothing is known
    bound: int | None = None
    labelling: Array | None = None  # shape (nodes,): the label of each node, or `None`
    stopped: Stopped = Stopped.FINISHED  # why the computation ended
    infeasible: bool = False  # whether it is proved that every labelling does something forbidden
    proof: Proof | None = None  # why the bound holds, where that is known


def _set(given: object, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(given, name, value)


def _array(what: str, values: Any, kind: Any = None) -> Array:
    """Return lists as an array; refuse those of different lengths."""
    try:
        return np.asarray(values, kind)
    except ValueError:
        raise InputError(f"{what}: lists have different lengths") from None


def _indices(what: str, values: Any, columns: int | None = None) -> Array:
    """Return indices as an array, or in as many columns; refuse others than whole numbers."""
    found = _array(what, values)
    if not found.size:
        return np.zeros(0 if columns is None else (0, columns), np.int64)
    shape = found.shape[1:] if found.ndim else None
    if (
        found.dtype.kind not in "iu"
        or found.max() >= 2**63
        or shape != (() if columns is None else (columns,))
    ):
        need = "" if columns is None else f" in {columns} columns"
        raise InputError(f"{what} must be whole numbers{need}, got {found.dtype} {found.shape}")
    return found.astype(np.int64, copy=False)


def _numbers(what: str, values: Any, axes: int = 1) -> Array:
    """Return whole numbers as ``int64``, or as Python integers where sums may not fit."""
    # NumPy makes doubles of lists of small and large integers.
    found = _array(what, values, None if isinstance(values, np.ndarray) else object)
    if not found.size and found.ndim == axes:
        return found.astype(np.int64)
    if found.dtype.kind not in "iu":
        found = np.array([_whole(what, x) for x in found.ravel()], object).reshape(found.shape)
    if found.ndim != axes:
        raise InputError(f"{what} must be an array of rank {axes}, got shape {found.shape}")
    if found.dtype == np.int64 and max(int(found.max()), -int(found.min())) * found.size < 2**60:
        return found
    return exact_integers(found.ravel().tolist()).reshape(found.shape)


def _whole(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{what}: {value!r} is no whole number")
    return int(value)


def _names(what: str, given: Any) -> tuple[str, ...]:
    names = (None,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be strings, got {given!r}")
    return names


def _limits(values: Any) -> tuple[int | None, ...]:
    if not isinstance(values, Sequence | np.ndarray):
        raise InputError(f"limits of rows must be listed, got {values!r}")
    return tuple(None if x is None else _whole("a limit", x) for x in values)


def _unit(unit: Any) -> Fraction:
    if not isinstance(unit, Rational) or unit <= 0:
        raise InputError(f"a unit must be a positive fraction, got {unit!r}")
    return Fraction(unit)


def _repeated(pairs: Array) -> Array:
    """Return the pairs of numbers that are there again."""
    ordered = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return np.asarray(ordered[1:][(ordered[1:] == ordered[:-1]).all(axis=1)])


def _check_digits(what: str, total: int, unit: Fraction) -> None:
    """Refuse numbers whose sums have more digits than Python writes."""
    if max(total * unit.numerator, unit.denominator) >= LARGEST:
        raise InputError(f"{what} of more than {DIGITS:,} digits, when added up, are not allowed")


def _range(scaled: Sequence[Any]) -> str:
    low, _, high = scaled
    if low is None:
        return f"{high} at most"
    return f"{low} at least" if high is None else f"{low} to {high}"


def _sum(values: Array) -> int:
    return sum(values.tolist()) if len(values) else 0
