"""A cost network written down node by node."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base.errors import InputError, check_word
from layoutopt.base.numbers import least
from layoutopt.network.network import (
    Array,
    CostTable,
    Domain,
    Network,
    Sense,
    Usage,
    span_windows,
    spans_of,
)
from layoutopt.network.problem import exact_integers

Number: TypeAlias = int | Fraction | Decimal | float | np.integer[Any] | np.floating[Any]
"""Exact numbers; floats only where a network rounds them to ``digits`` or to a ``unit``."""

Label: TypeAlias = int | str
"""A label's number or its name."""

DIGITS = 4000  # most digits of a number; sums may have more, see `Network`
LARGEST = 10**DIGITS

CostRows: TypeAlias = Sequence[Sequence[Number | None]] | Array
"""A table of costs: a row for each label of the first node; ``None`` is forbidden."""

ExactRows: TypeAlias = tuple[tuple[Fraction | int | None, ...], ...]
"""The same in exact numbers."""


class CostNetwork:
    """A cost network that grows by calls; :meth:`build` returns it as arrays.

    Nodes are named, and every call takes names.

    Parameters
    ----------
    name
        The network's name.
    sense
        ``"min"`` or ``"max"``.
    digits
        To how many digits after the point floats are rounded.
    unit
        To whole multiples of what floats are rounded; at most one of both.

    Raises
    ------
    InputError
        If an argument is not allowed, here and in all methods.

    Examples
    --------
    >>> net = CostNetwork("step")
    >>> layouts = net.domain(["NCHW", "NHWC"])
    >>> x, y = net.node("conv", layouts, [0, 3]), net.node("relu", layouts)
    >>> net.table(x, y, [[0, 2], [1, None]])
    >>> net.row({(x, "NHWC"): 40, (y, "NHWC"): 8}, high=64, name="t=17")
    >>> net.build()
    Network('step': 2 nodes, 1 edges, 1 rows)
    """

    def __init__(
        self,
        name: str = "",
        sense: Sense = "min",
        *,
        digits: int | None = None,
        unit: Number | None = None,
    ) -> None:
        check_word("sense", sense, Sense)
        if digits is not None and unit is not None:
            raise InputError("floats are rounded by digits or by unit, not by both")
        self.name = name
        self.sense: Sense = sense
        self._step: Fraction | None = None
        if digits is not None:
            self._step = Fraction(1, 10 ** least("digits", digits, 0, 2**10))
        if unit is not None:
            if (
                isinstance(unit, bool)
                or not isinstance(unit, Real | Decimal)
                or not _is_finite(unit)
                or unit <= 0
            ):
                raise InputError(f"unit must be a positive number, got {unit!r}")
            given = unit if isinstance(unit, Rational | Decimal) else Decimal(repr(float(unit)))
            try:
                self._step = Fraction(exact(given, None, ""))
            except InputError:
                raise InputError(f"unit has more than {DIGITS:,} digits") from None
        self._domains: dict[int, Domain] = {}
        self._nodes: dict[str, tuple[int, Domain]] = {}
        self._costs: dict[tuple[int, int], Fraction | int] = {}
        self._banned: set[tuple[int, int]] = set()
        self._equal: list[tuple[int, int, Fraction | int]] = []
        self._tables: dict[ExactRows, int] = {}
        self._table_edges: list[tuple[int, int, int]] = []
        self._ties: list[tuple[int, int]] = []
        self._usages: list[Usage] = []
        self._constant: Fraction | int = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a copy, or of a pickle, whose domains are new objects."""
        own = {key: copy(value) for key, value in state.items()}
        vars(self).update(own, _domains={id(x): x for x in own["_domains"].values()})

    def domain(self, labels: int | Iterable[str], *, open: bool = False) -> Domain:
        """Return labels for nodes to choose from.

        Parameters
        ----------
        labels
            Their names, or how many there are.
        open
            Whether each node owns one more label, without cost, that all may choose.
        """
        if isinstance(labels, str | bytes | set | frozenset):
            raise InputError(f"labels must be names or their number, got {labels!r}")
        if not isinstance(labels, Iterable):
            made = Domain(least("labels", labels, 0), (), open)
        else:
            names = tuple(listed(labels, "labels"))
            made = Domain(len(names), names, open)
        self._domains[id(made)] = made
        return made

    def node(
        self,
        name: str,
        domain: Domain,
        costs: Sequence[Number | None] | Mapping[Any, Number | None] | Array = (),
    ) -> str:
        """Add a node, and return its name.

        Parameters
        ----------
        costs
            A cost for each label, or for some labels by name or number, also as a Series of
            pandas, whose index they are; ``None`` and infinite costs are forbidden (``inf``, and
            ``-inf`` where costs are maximised).
        """
        if not isinstance(name, str) or name in self._nodes:
            why = "is there already" if isinstance(name, str) else "must be a string"
            raise InputError(f"node {name!r} {why}")
        if id(domain) not in self._domains:
            raise InputError(f"the domain of node {name!r} must come from this network's domain()")
        u = len(self._nodes)
        self._nodes[name] = (u, domain)
        try:
            for label, cost in self._labelled(name, costs, "costs"):
                self.cost(name, label, cost)
        except InputError:  # forget the node
            del self._nodes[name]
            self._costs = {at: cost for at, cost in self._costs.items() if at[0] != u}
            self._banned = {at for at in self._banned if at[0] != u}
            raise
        return name

    def cost(self, node: str, label: Label, cost: Number | None) -> None:
        """Add to what a label costs; ``None``, or an infinite cost, forbids it."""
        at, own = self._label(node, label), self._cost(cost, f"of node {node!r}")
        if own is None:
            self._banned.add(at)
        else:
            self._costs[at] = self._costs.get(at, 0) + own

    def constant(self, cost: Number) -> None:
        """Add to what is paid whatever is chosen."""
        self._constant += self._number(cost, "of the constant")

    def ban(self, node: str, label: Label) -> None:
        """Forbid a label."""
        self.cost(node, label, None)

    def equal(self, u: str, v: str, cost: Number) -> None:
        """Add to what two nodes of one domain pay where their labels are equal."""
        one, two = self._ends(u, v)
        self._equal.append((one, two, self._number(cost, f"of {u!r} and {v!r}")))

    def tie(self, u: str, v: str) -> None:
        """Let two nodes have equal labels."""
        self._ties.append(self._ends(u, v))

    def table(self, u: str, v: str, costs: CostRows) -> None:
        """Add to what pairs of labels cost.

        Parameters
        ----------
        costs
            A row for each label of ``u``, with an entry for each of ``v``; what is forbidden is
            as in :meth:`node`.
        """
        self._join(u, v, self._exact_table(u, v, costs))

    def _exact_table(self, u: str, v: str, costs: CostRows) -> ExactRows:
        """Return what pairs of labels of two nodes cost, in exact numbers."""
        what = f"of {u!r} and {v!r}"
        rows = _rows_of(costs, f"the table {what}")
        return tuple([tuple([self._cost(x, what) for x in row]) for row in rows])

    def _join(self, u: str, v: str, table: ExactRows, number: int | None = None) -> int:
        """Add a table to what pairs of labels of two nodes cost; return its number."""
        one, two = self._ends(u, v)
        what = f"of {u!r} and {v!r}"
        sizes = [self._nodes[w][1].size for w in (u, v)]
        if len(table) != sizes[0] or any(len(row) != sizes[1] for row in table):
            raise InputError(f"the table {what} must be of {sizes[0]} x {sizes[1]} costs")
        if number is None:
            number = self._tables.setdefault(table, len(self._tables))
        self._table_edges.append((one, two, number))
        return number

    def row(
        self,
        amounts: Mapping[Any, Number],
        *,
        low: Number | None = None,
        high: Number | None = None,
        name: str = "",
    ) -> None:
        """Limit a sum of amounts of chosen labels: ``low <= sum <= high``.

        Parameters
        ----------
        amounts
            What labels of nodes use; amounts of one label, by its name and its number, add up.
        """
        own: defaultdict[tuple[int, int], Fraction | int] = defaultdict(int)
        for key, amount in _mapped(amounts, "amounts").items():
            if not (isinstance(key, tuple) and len(key) == 2):
                raise InputError(f"an amount is of (node, label), got {key!r}")
            own[self._label(*key)] += self._number(amount, f"of node {key[0]!r}")
        spans = spans_of([sorted({u for u, _ in own})])
        self._usages.append(_usage(own, spans, [self._limits(low, high)], [name]))

    def windows(
        self,
        intervals: Mapping[str, Sequence[tuple[int, int]] | tuple[int, int]],
        usage: Mapping[str, Sequence[Number] | Mapping[Any, Number] | Array],
        limit: Number,
        *,
        name: str = "",
    ) -> None:
        """Limit what is used at every time by the nodes that are live then.

        Only times at which a largest set of nodes is live become rows, named ``name@time``.

        Parameters
        ----------
        intervals
            For each node when it is live: ``(begin, end)`` without the end, or several of these.
        usage
            What each label of each of these nodes uses; not negative.
        limit
            What may be used at a time.
        """
        intervals, usage = _mapped(intervals, "intervals"), _mapped(usage, "usage")
        live = {node: _intervals(node, spans) for node, spans in intervals.items()}
        for node in (*live, *usage):
            self._node(node)
            if node not in usage or node not in live:
                lacks = f"has no {'intervals' if node in usage else 'usage'}"
                raise InputError(f"node {node!r} {lacks}; each node of a window needs both")
        own: defaultdict[tuple[int, int], Fraction | int] = defaultdict(int)
        for node, amounts in usage.items():
            for label, amount in self._labelled(node, amounts, "usages"):
                found = self._number(amount, f"of node {node!r}")
                if found < 0:
                    raise InputError(f"node {node!r} uses {amount} of a window, less than nothing")
                own[self._label(node, label)] += found
        every = [(self._node(node), *span) for node, spans in live.items() for span in spans]
        times, spans = span_windows(*np.array(every, np.int64).reshape(-1, 3).T)
        if not len(times):
            return  # nothing is ever live
        limits = [self._limits(None, limit)] * len(times)
        names = [f"{name}@{time}" for time in times.tolist()]
        self._usages.append(_usage(own, spans, limits, names))

    def _limits(
        self, low: Number | None, high: Number | None
    ) -> tuple[Fraction | int | None, Fraction | int | None]:
        if low is None and high is None:
            raise InputError("a row needs low, high or both")
        bounds = [None if x is None else self._number(x, "of a row") for x in (low, high)]
        return bounds[0], bounds[1]

    def _node(self, name: str) -> int:
        try:
            return self._nodes[name][0]
        except (KeyError, TypeError):
            raise InputError(f"there is no node {name!r}") from None

    def _ends(self, u: str, v: str) -> tuple[int, int]:
        one, two = self._node(u), self._node(v)
        if one == two:
            raise InputError(f"node {u!r} cannot be joined to itself")
        return one, two

    def _label(self, node: str, label: Label) -> tuple[int, int]:
        u = self._node(node)
        domain = self._nodes[node][1]
        if isinstance(label, str):
            if label not in domain.names:
                known = ", ".join(domain.names[:10]) or "numbers only"
                raise InputError(f"node {node!r} has no label {label!r}, it has {known}")
            return u, domain.names.index(label)
        number = least(f"a label of node {node!r}", label, 0)
        if number >= domain.size:
            raise InputError(f"node {node!r} has no label {label}, it has {domain.size}")
        return u, number

    def _labelled(self, node: str, given: Any, what: str) -> list[tuple[Any, Any]]:
        """Return numbers with the labels of a node; a list must be empty or have one for each."""
        own, size = _by_label(given, f"the {what} of node {node!r}"), self._nodes[node][1].size
        if not _has_labels(given) and len(own) not in (0, size):
            raise InputError(f"node {node!r} has {size} labels, {len(own)} {what}")
        return own

    def _cost(self, cost: Number | None, what: str) -> Fraction | int | None:
        """Return an exact cost; ``None`` for one that is infinitely bad."""
        if cost is None:
            return None
        if type(cost) is not int and isinstance(cost, Decimal | float | np.floating):
            infinite = cost.is_infinite() if isinstance(cost, Decimal) else math.isinf(cost)
            if infinite and (cost > 0) == (self.sense == "min"):
                return None
        return self._number(cost, what)

    def _number(self, value: Number, what: str) -> Fraction | int:
        if type(value) is int and -(2**62) < value < 2**62:  # most are, and exact takes longer
            return value
        return exact(value, self._step, what)

    def build(self) -> Network:
        """Return the network as arrays, equal edges and costs of one label added up."""
        equal: dict[tuple[int, int], Fraction | int] = {}
        for u, v, cost in self._equal:
            ends = (min(u, v), max(u, v))
            equal[ends] = equal.get(ends, 0) + cost
        cells = [x for table in self._tables for row in table for x in row if x is not None]
        every = [*self._costs.values(), *equal.values(), *cells, self._constant]
        unit = common_unit(every)
        place = {key: k for k, key in enumerate(self._domains)}
        return Network(
            nodes=tuple(self._nodes),
            domains=tuple(self._domains.values()),
            domain_of=np.array([place[id(own)] for _, own in self._nodes.values()], np.int64),
            cost_at=_pairs(self._costs),
            costs=multiples([*self._costs.values()], unit),
            banned=_pairs(sorted(self._banned)),
            equal_edges=_pairs(equal),
            equal_costs=multiples([*equal.values()], unit),
            table_edges=_pairs((u, v) for u, v, _ in self._table_edges),
            table_of=np.array([k for *_, k in self._table_edges], np.int64),
            tables=tuple(_table(table, unit) for table in self._tables),
            ties=_pairs(self._ties),
            usages=tuple(self._usages),
            constant=int(self._constant / unit),
            name=self.name,
            sense=self.sense,
            unit=unit,
        )

    @classmethod
    def from_arrays(
        cls,
        costs: CostRows,
        edges: Sequence[Sequence[int]] | Array = (),
        tables: Sequence[CostRows] | Array = (),
        table_of: Sequence[int] | Array | None = None,
        *,
        nodes: Sequence[str] = (),
        labels: Sequence[str] = (),
        name: str = "",
        sense: Sense = "min",
        digits: int | None = None,
        unit: Number | None = None,
    ) -> CostNetwork:
        """Return a network from arrays, or lists.

        Parameters
        ----------
        costs
            Shape ``(nodes, labels)``, or a row for each node where they have different labels;
            ``None`` and infinite costs are forbidden (``inf``, and ``-inf`` where costs are
            maximised).
        edges
            Shape ``(edges, 2)``: numbers of nodes.
        tables
            Shape ``(edges, labels, labels)``, or a table for each edge or for several: a row for
            each label of the edge's first node.
        table_of
            Shape ``(edges,)``: the number of each edge's table; by default as edges are.
        nodes, labels
            Names of nodes, and of the labels of all nodes that have as many; numbers by default.
        digits, unit
            How floats are rounded.
        """
        net = cls(name, sense, digits=digits, unit=unit)
        own = _rows_of(costs, "costs")
        names = listed(nodes, "nodes") or [*map(str, range(len(own)))]
        labels, pairs = listed(labels, "labels"), _rows_of(edges, "edges")
        domain = cache(lambda size: net.domain(labels if len(labels) == size else size))
        if len(names) != len(own):
            raise InputError(f"{len(own)} rows of costs need as many nodes, got {len(names)}")
        for node, row in zip(names, own, strict=True):
            net.node(node, domain(len(row)), row)
        every = listed(tables, "tables")
        known: dict[int, tuple[ExactRows, int]] = {}
        numbers = [*range(len(pairs))] if table_of is None else listed(table_of, "table_of")
        if len(numbers) != len(pairs) or not all(
            isinstance(k, int | np.integer) and 0 <= k < len(every) for k in numbers
        ):
            raise InputError(f"{len(pairs)} edges need a table each, of {len(every)}")
        for ends, k in zip(pairs, numbers, strict=True):
            if len(ends) != 2 or not all(
                isinstance(u, int | np.integer) and 0 <= u < len(own) for u in ends
            ):
                raise InputError(f"an edge joins two of nodes 0 to {len(own) - 1}, got {[*ends]}")
            u, v = names[ends[0]], names[ends[1]]
            table, number = known.get(k) or (net._exact_table(u, v, every[k]), None)
            known[k] = table, net._join(u, v, table, number)
        return net

    @classmethod
    def from_frames(
        cls,
        nodes: Any,
        edges: Any = None,
        *,
        name: str = "",
        sense: Sense = "min",
        digits: int | None = None,
        unit: Number | None = None,
    ) -> CostNetwork:
        """Return a network from data frames of any kind, or dicts of columns.

        Parameters
        ----------
        nodes
            Columns ``node``, ``label`` and ``cost``, a row for each label of each node; a missing
            cost is forbidden.
        edges
            Columns ``u`` and ``v``, nodes, with ``equal`` (what equal labels cost), or with
            ``u_label``, ``v_label`` and ``cost``: a row for each pair of labels that costs
            something; a missing cost is forbidden.
        digits, unit
            How floats are rounded.
        """
        net = cls(name, sense, digits=digits, unit=unit)
        own: dict[str, dict[Label, Number | None]] = {}
        for node, label, cost in _columns(nodes, "node", "label", "cost"):
            costs = own.setdefault(str(node), {})
            if str(label) in costs:
                raise InputError(f"node {str(node)!r} has label {str(label)!r} twice")
            costs[str(label)] = None if _is_missing(cost) else cost
        domain = cache(net.domain)
        for node, costs in own.items():
            net.node(node, domain(tuple(costs)), costs)
        if edges is None:
            return net
        if _has(edges, "equal"):
            if extra := [x for x in ("u_label", "v_label", "cost") if _has(edges, x)]:
                raise InputError(f"edges have either column 'equal' or {extra[0]!r}, got both")
            for u, v, cost in _columns(edges, "u", "v", "equal"):
                net.equal(str(u), str(v), cost)
            return net
        tables: dict[tuple[str, str], dict[tuple[str, str], Number | None]] = {}
        for u, v, i, j, cost in _columns(edges, "u", "v", "u_label", "v_label", "cost"):
            cells = tables.setdefault((str(u), str(v)), {})
            net._label(str(u), str(i)), net._label(str(v), str(j))
            if (str(i), str(j)) in cells:
                raise InputError(f"nodes {str(u)!r}, {str(v)!r} have {i!r}, {j!r} twice")
            cells[str(i), str(j)] = None if _is_missing(cost) else cost
        for (u, v), cells in tables.items():
            net.table(u, v, [[cells.get((str(i), str(j)), 0) for j in own[v]] for i in own[u]])
        return net

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        name: str = "",
        sense: Sense = "min",
        digits: int | None = None,
        unit: Number | None = None,
    ) -> CostNetwork:
        """Return a network from a graph of NetworkX.

        Parameters
        ----------
        graph
            Nodes have an attribute ``costs`` (a cost for each label, or a dict by label), edges
            ``table`` (rows of costs, of the label of the edge's first node) or ``equal`` (what
            equal labels cost).  Nodes are named by ``str``.  Edges of an undirected graph have no
            first node, so their tables must be symmetric.
        digits, unit
            How floats are rounded.
        """
        from networkx import Graph

        if not isinstance(graph, Graph):
            raise InputError(f"expected a graph of NetworkX, not {type(graph).__name__}")
        net = cls(name or str(graph.name), sense, digits=digits, unit=unit)
        domain = cache(net.domain)
        for node, data in graph.nodes(data=True):
            costs = data.get("costs")
            if costs is None:
                raise InputError(f"node {str(node)!r} has no attribute 'costs'")
            pairs = _by_label(costs, f"costs of node {str(node)!r}")
            if _has_labels(costs):
                named: dict[Label, Number | None] = {str(label): cost for label, cost in pairs}
                if len(named) < len(pairs):
                    raise InputError(f"two labels of node {str(node)!r} are equal as text")
                net.node(str(node), domain(tuple(named)), named)
            else:
                net.node(str(node), domain(len(pairs)), [cost for _, cost in pairs])
        for u, v, data in graph.edges(data=True):
            if "table" in data:
                rows = _rows_of(data["table"], f"the table of {str(u)!r} and {str(v)!r}")
                if not graph.is_directed() and rows != [*map(list, zip(*rows, strict=False))]:
                    why = "has a table that is not symmetric, which needs a directed graph"
                    raise InputError(f"edge {str(u)!r}, {str(v)!r} {why}")
                net.table(str(u), str(v), rows)
            if "equal" in data:
                net.equal(str(u), str(v), data["equal"])
            if not {"table", "equal"} & set(data):
                raise InputError(f"edge {str(u)!r}, {str(v)!r} has neither 'table' nor 'equal'")
        return net


def _usage(
    amounts: dict[tuple[int, int], Fraction | int],
    spans: Array,
    limits: Sequence[tuple[Fraction | int | None, Fraction | int | None]],
    names: Sequence[str],
) -> Usage:
    unit = common_unit([*amounts.values(), *(x for own in limits for x in own if x)])
    low, high = (
        tuple(None if x is None else int(x / unit) for x in side)
        for side in zip(*limits, strict=True)
    )
    nodes = sorted({*(u for u, _ in amounts), *spans[:, 0].tolist()})
    place = {u: item for item, u in enumerate(nodes)}
    return Usage(
        nodes=np.array(nodes, np.int64),
        at=_pairs((place[u], i) for u, i in amounts),
        amounts=multiples([*amounts.values()], unit),
        spans=np.column_stack([np.searchsorted(nodes, spans[:, 0]), spans[:, 1:]]),
        low=low,
        high=high,
        names=tuple(names) if any(names) else (),
        unit=unit,
    )


def exact(value: Any, step: Fraction | None, what: str = "") -> Fraction | int:
    """Return a number as the exact one that it stands for.

    Floats are rounded to multiples of ``step``, or refused without it; so is what is not finite.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal) or not _is_finite(value):
        raise InputError(f"the cost {value!r} {what} is no finite number")
    if isinstance(value, Rational | Decimal):
        if isinstance(value, Decimal) and abs(value.adjusted()) > DIGITS:
            number: Fraction | int = LARGEST  # what it is as a fraction could fill the memory
        else:
            number = int(value) if isinstance(value, Integral) else Fraction(value)
        if abs(number.numerator) >= LARGEST or number.denominator > LARGEST:
            raise InputError(f"a cost {what} has more than {DIGITS:,} digits")
        return number
    if step is None:
        if not float(value).is_integer():
            raise InputError(f"the cost {value} {what} is a float: give digits= or unit=")
        return int(float(value))
    return round(Fraction(float(value)) / step) * step


def _is_finite(value: Real | Decimal) -> bool:
    """Return whether a number is finite, though no float may hold it."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, Rational) or math.isfinite(value)


def common_unit(values: Iterable[Fraction | int]) -> Fraction:
    """Return the largest number of which all values are whole multiples; 1 for zeros."""
    top, bottom = 0, 1
    for value in values:
        if isinstance(value, int):
            top, bottom = math.gcd(top, value * bottom), bottom
        else:
            both = math.lcm(bottom, value.denominator)
            top = math.gcd(top * (both // bottom), int(value * both))
            bottom = both
    return Fraction(top or 1, bottom)


def multiples(values: Sequence[Fraction | int], unit: Fraction, place: str = "") -> Array:
    """Return values as whole multiples of a unit: ``int64`` where all sums of them fit.

    Raises ``InputError``, with the place, if one is no multiple.
    """
    if unit == 1 and set(map(type, values)) <= {int}:
        return exact_integers([int(value) for value in values])
    parts = [divmod(value * unit.denominator, unit.numerator) for value in values]
    for i, (_, rest) in enumerate(parts):
        if rest:
            raise InputError(f"{values[i]} is no multiple of the unit {unit}", f"{place}[{i}]")
    return exact_integers([int(count) for count, _ in parts])


def _table(rows: ExactRows, unit: Fraction) -> CostTable:
    allowed = np.array([[x is not None for x in row] for row in rows], bool)
    costs = multiples([0 if x is None else x for row in rows for x in row], unit)
    return CostTable(costs.reshape(allowed.shape), None if allowed.all() else allowed)


def _pairs(pairs: Iterable[tuple[int, int]]) -> Array:
    return np.array([*pairs], np.int64).reshape(-1, 2)


def _has(frame: Any, name: str) -> bool:
    try:
        frame[name]
    except Exception:  # whatever a kind of frame raises
        return False
    return True


def _columns(frame: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of some columns of a data frame."""
    columns = []
    for name in names:
        try:
            column = frame[name]
            values = column.to_pylist() if hasattr(column, "to_pylist") else [*column]
        except Exception as error:  # whatever a kind of frame raises
            raise InputError(f"there is no column {name!r} ({type(error).__name__})") from None
        if name not in ("cost", "equal") and any(map(_is_missing, values)):
            row = [*map(_is_missing, values)].index(True)
            raise InputError(f"column {name!r} has no value in row {row}")
        columns.append(values)
    if len(set(map(len, columns))) > 1:
        raise InputError(f"columns {', '.join(names)} have different lengths")
    return zip(*columns, strict=True)


def _is_missing(value: Any) -> bool:
    """Return whether a data frame has no value there: None, or a NaN, NaT or NA of any library."""
    return value is None or (
        not isinstance(value, str) and str(value) in ("nan", "NaN", "NaT", "<NA>")
    )


def _has_labels(costs: Any) -> bool:
    """Return whether costs are given by label: a mapping, or a Series of pandas."""
    return hasattr(costs, "items") and not hasattr(costs, "columns")


def _by_label(costs: Any, what: str) -> list[tuple[Any, Any]]:
    """Return costs with their labels, of a list by number."""
    return [*costs.items()] if _has_labels(costs) else [*enumerate(listed(costs, what))]


def listed(given: Any, what: str) -> list[Any]:
    """Return a user's list of something; refuse what cannot be gone through.

    Arrays and tensors of any library become Python's numbers.  A data frame is refused: some
    libraries go through its columns, some through their names.
    """
    if hasattr(given, "columns"):
        raise InputError(f"{what} must be listed, not in a data frame; give its to_numpy()")
    try:
        return list(given.tolist() if hasattr(given, "tolist") else given)
    except TypeError:
        raise InputError(f"{what} must be listed, got {given!r}") from None


def _rows_of(table: Any, what: str) -> list[list[Any]]:
    return [listed(row, what) for row in listed(table, what)]


def _mapped(given: Any, what: str) -> dict[Any, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{what} must be a mapping, got {given!r}")
    return dict(given)


def _intervals(node: str, spans: Any) -> list[tuple[int, int]]:
    """Return the live intervals of a node as a list of pairs."""
    every = listed(spans, f"intervals of {node!r}")
    if every and isinstance(every[0], Integral):
        every = [every]
    for span in every:
        if (
            not isinstance(span, Sequence)
            or len(span) != 2
            or not all(isinstance(x, Integral) for x in span)
        ):
            raise InputError(f"node {node!r} is live from a whole number to another, got {span!r}")
        if max(map(abs, span)) >= 2**62:
            raise InputError(f"node {node!r} is live from {span[0]} to {span[1]}, not within 2^62")
        if span[1] < span[0]:
            raise InputError(f"node {node!r} is live from {span[0]} to {span[1]}, which is earlier")
    return [(int(a), int(b)) for a, b in every]
