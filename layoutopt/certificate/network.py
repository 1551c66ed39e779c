"""Certificates of cost networks in format ``layoutopt/network/1``.

A claim is a labelling with its cost, a bound on the cost of all labellings, or infeasibility.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from layoutopt.certificate.bounds import Bound, bound
from layoutopt.certificate.pairwise import MOST_ENTRIES, Pairwise
from layoutopt.certificate.refused import Refused, entry, listed, number, numbered
from layoutopt.certificate.rows import Array, GroupedRows, RowGroup

FORMAT = "layoutopt/network/1"


class NetworkVerdict(NamedTuple):
    """Claims that a certificate proves for a network."""

    # `"optimal"`, `"feasible"` (the bound leaves a gap), `"bounded"` (no labelling), or
    # `"infeasible"`
    status: str
    objective: Fraction | None  # cost of the labelling
    bound: Fraction | None  # claimed bound on the cost of all allowed labellings
    unverified: bool  # whether the proof contains a solver's unverified bound


class ConflictParts(NamedTuple):
    """An infeasible part of a network: nodes, table edges, ties and rows."""

    nodes: list[int]
    tables: list[int]
    ties: list[int]
    rows: list[int]


class NetworkProblem(NamedTuple):
    """A network as a pairwise problem, with denominator, constant, and each node's number."""

    pairwise: Pairwise
    constant: int
    of: dict[int, int]


class StatedNetwork:
    """A parsed document, given as plain data; decimal numbers are ``Decimal``."""

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise Refused(f"the network must be a document of format {FORMAT}")
        self.sign = {"min": -1, "max": 1}.get(document.get("sense", "min"), 0)
        if not self.sign:
            raise Refused("the sense must be 'min' or 'max'")
        self._nodes = _list(document, "nodes")
        self.count = len(self._nodes)
        self._node_of = {name: u for u, name in enumerate(self._nodes) if isinstance(name, str)}
        self._read_domains(document)
        costs = [(*self.label(x[:2]), _exact(x[2])) for x in _list(document, "costs", 3)]
        self.banned = [self.label(x) for x in _list(document, "banned", 2)]
        equal = [(*self.ends(x[:2]), _exact(x[2])) for x in _list(document, "equal_edges", 3)]
        self.table_edges = [(*self.ends(x[:2]), x[2]) for x in _list(document, "table_edges", 3)]
        tables = [_cells(x) for x in _list(document, "tables")]
        constant = _exact(document.get("constant", 0))
        cells = (x for table in tables for row in table for x in row if x is not None)
        self.parts = _common([constant], (x for *_, x in costs), (x for *_, x in equal), cells)
        whole = self.sign * self.parts
        self.constant = int(constant * whole)
        self.costs = [(u, i, int(x * whole)) for u, i, x in costs]
        self.equal = [(u, v, int(x * whole)) for u, v, x in equal]
        self.tables = [_array(table, whole) for table in tables]
        self.ties = [self.ends(x) for x in _list(document, "ties", 2)]
        self.usages = [_Usage(self, x) for x in _list(document, "usages")]
        self.rows = sum(len(usage.limits) for usage in self.usages)
        self._check_edges()

    def _read_domains(self, document: dict[str, Any]) -> None:
        self.sizes, self.opened = list[int](), list[bool]()
        self._label_of: list[dict[str, int]] = []
        for given in _list(document, "domains"):
            labels = entry(given, "labels")
            names = labels if isinstance(labels, list) else []
            size = len(names) if isinstance(labels, list) else labels
            if type(size) is not int or size < 0:
                raise Refused("labels of a domain must be a list of names, or their number")
            self.sizes.append(size)
            self.opened.append(given.get("open", False) is True)
            self._label_of.append({x: i for i, x in enumerate(names) if isinstance(x, str)})
        of = document.get("domain_of")
        of = [0] * self.count if of is None else of
        self.domain_of = numbered(of, [len(self.sizes)] * self.count, "domains of nodes")

    def node(self, given: object) -> int:
        """Return the number of a node given by number or name."""
        found = self._node_of.get(given) if isinstance(given, str) else given
        return numbered([found], [self.count], "nodes")[0]

    def label(self, given: Sequence[object]) -> tuple[int, int]:
        """Return the numbers of a node and one of its labels."""
        node = self.node(given[0])
        domain, label = self.domain_of[node], given[1]
        found = self._label_of[domain].get(label) if isinstance(label, str) else label
        return node, numbered([found], [self.sizes[domain]], "labels")[0]

    def ends(self, given: Sequence[object]) -> tuple[int, int]:
        """Return the numbers of the two nodes of an edge."""
        one, two = self.node(given[0]), self.node(given[1])
        if one == two:
            raise Refused(f"an edge joins node {one} to itself")
        return one, two

    def _check_edges(self) -> None:
        domain = self.domain_of
        for u, v, _ in self.equal:
            if domain[u] != domain[v]:
                raise Refused(f"an equality edge joins nodes {u} and {v} of different domains")
        for u, v in self.ties:
            if self.sizes[domain[u]] != self.sizes[domain[v]] or (
                domain[u] != domain[v] and (self.opened[domain[u]] or self.opened[domain[v]])
            ):
                raise Refused(f"nodes {u} and {v} are tied but have different labels")
        for u, v, k in self.table_edges:
            [own] = numbered([k], [len(self.tables)], "tables of edges")
            if self.opened[domain[u]] or self.opened[domain[v]]:
                raise Refused(f"nodes {u} and {v} have a table, which requires closed domains")
            if self.tables[own].shape != (self.sizes[domain[u]], self.sizes[domain[v]]):
                raise Refused(f"the table of nodes {u} and {v} does not fit their labels")

    def labels(self, given: object) -> list[int]:
        """Return a labelling; raise Refused if it is not allowed."""
        chosen = listed(given, self.count, "labels")
        for u, label in enumerate(chosen):
            domain = self.domain_of[u]
            size = self.sizes[domain]
            fresh = type(label) is int and self.opened[domain] and size <= label < size + self.count
            if fresh and self.domain_of[label - size] == domain:
                continue
            numbered([label], [size], f"the label of node {u}")
        for u, i in self.banned:
            if chosen[u] == i:
                raise Refused(f"node {u} must not have label {i}")
        for u, v in self.ties:
            if chosen[u] != chosen[v]:
                raise Refused(f"nodes {u} and {v} are tied and have different labels")
        for u, v, k in self.table_edges:
            if np.ma.getmaskarray(self.tables[k])[chosen[u], chosen[v]]:
                raise Refused(f"labels {chosen[u]} and {chosen[v]} of {u} and {v} are forbidden")
        used_of = (used for usage in self.usages for used in usage.used(chosen))
        limits = (pair for usage in self.usages for pair in usage.limits)
        for k, (used, (low, high)) in enumerate(zip(used_of, limits, strict=True)):
            if (low is not None and used < low) or (high is not None and used > high):
                raise Refused(f"row {k} is violated")
        return chosen

    def cost(self, chosen: Sequence[int]) -> Fraction:
        """Return the cost of a labelling."""
        total = self.constant + sum(x for u, i, x in self.costs if chosen[u] == i)
        total += sum(x for u, v, x in self.equal if chosen[u] == chosen[v])
        total += sum(int(self.tables[k][chosen[u], chosen[v]]) for u, v, k in self.table_edges)
        return self.worth(total)

    def problem(self, conflict: ConflictParts | None = None) -> NetworkProblem:
        """Return the network as a pairwise problem with integer values, all 0 for a conflict.

        Tied nodes are merged into the first one.  Fresh labels follow the named ones: one for all
        nodes of a component if equal labels never cost more; otherwise one per node, where each
        node may have its own or that of an earlier node.
        """
        ties = self.ties if conflict is None else [self.ties[k] for k in conflict.ties]
        tied = _roots(self.count, ties)
        kept = range(self.count) if conflict is None else sorted(set(conflict.nodes))
        place: dict[int, int] = {}
        for u in kept:
            place.setdefault(tied[u], len(place))
        of = {u: place[tied[u]] for u in kept}
        constant, equal = self.constant if conflict is None else 0, list[tuple[int, int, int]]()
        for u, v, x in self.equal if conflict is None else ():
            if of[u] == of[v]:
                constant += x
            else:
                equal.append((of[u], of[v], x))
        tables = range(len(self.table_edges)) if conflict is None else conflict.tables
        worth, shut = self._unary(place, equal)
        for u, i, x in self.costs if conflict is None else ():
            worth[of[u]][i] += x
        for u, i in self.banned:
            if u in of:
                shut[of[u]][i] = True
        edges = list[tuple[int, int, Array]]()
        nothing = {k: table * 0 for k, table in enumerate(self.tables)} if conflict else {}
        for u, v, k in (self.table_edges[e] for e in tables):
            if u not in of or v not in of:
                raise Refused(f"a conflict has the table of nodes {u} and {v} but not both nodes")
            table = nothing.get(k, self.tables[k])
            if of[u] == of[v]:
                size = len(table)
                worth[of[u]][:size] += np.ma.getdata(table).diagonal()
                shut[of[u]][:size] |= np.ma.getmaskarray(table).diagonal()
            else:
                edges.append((of[u], of[v], table))
        unary = [
            np.asanyarray(np.ma.array(own, mask=bad) if bad.any() else own)
            for own, bad in zip(worth, shut, strict=True)
        ]
        groups, first = list[RowGroup](), 0
        for usage in self.usages:
            count, rows = len(usage.limits), None
            if conflict is not None:
                rows = [k - first for k in conflict.rows if first <= k < first + count]
            groups.append(usage.group(of, [*map(len, unary)], rows))
            first += count
        return NetworkProblem(Pairwise(unary, edges, equal, GroupedRows(groups)), constant, of)

    def worth(self, parts: int) -> Fraction:
        """Convert a value of the pairwise problem to a cost."""
        return Fraction(parts, self.sign * self.parts)

    def conflict(self, given: object) -> ConflictParts:
        """Parse the conflict of a certificate."""
        ends = (self.count, len(self.table_edges), len(self.ties), self.rows)
        lists = []
        for key, end in zip(ConflictParts._fields, ends, strict=True):
            own = listed(entry(given, key), None, f"{key} of a conflict")
            lists.append(sorted(set(numbered(own, [end] * len(own), f"{key} of a conflict"))))
        found, nodes = ConflictParts(*lists), set(lists[0])
        if not all(nodes.issuperset(self.ties[k]) for k in found.ties):
            raise Refused("a conflict has a tie but not both of its nodes")
        return found

    def _unary(
        self, place: dict[int, int], equal: list[tuple[int, int, int]]
    ) -> tuple[list[Array], list[Array]]:
        """Return zeros for the labels of each node, and masks of forbidden ones."""
        groups = [*place]
        near = _roots(len(groups), [(u, v) for u, v, _ in equal])
        signed = {near[u] for u, _, x in equal if x < 0}
        ranks, found = dict[int, int](), list[tuple[int, int, int]]()
        for u, node in enumerate(groups):
            domain = self.domain_of[node]
            rank = ranks[near[u]] = ranks.get(near[u], -1) + 1
            found.append((self.sizes[domain], int(self.opened[domain]), rank))
        worth, shut = list[Array](), list[Array]()
        entries = 0
        for u, (size, opened, rank) in enumerate(found):
            extra = opened * (ranks[near[u]] + 1 if near[u] in signed else 1)
            entries += extra
            if entries > MOST_ENTRIES:
                raise Refused(f"there are more than {MOST_ENTRIES} fresh labels")
            worth.append(np.zeros(size + extra, object))
            shut.append(np.arange(size + extra) > size + rank if extra > 1 else worth[-1] > 0)
        return worth, [np.asarray(own, bool) for own in shut]


class _Usage:
    """Rows with the same amounts, scaled to integers."""

    def __init__(self, stated: StatedNetwork, given: object) -> None:
        if not isinstance(given, dict):
            raise Refused("a usage must be an object")
        items = given.get("nodes")
        if items is None:
            nodes = [*range(stated.count)]
        else:
            nodes = [stated.node(u) for u in listed(items, None, "nodes of a usage")]
        item_of: Callable[[Any], Any] = stated.node if items is None else lambda x: x
        own: dict[int, dict[int, Fraction | int]] = {}
        for x in _list(given, "amounts", 3):
            [item] = numbered([item_of(x[0])], [len(nodes)], "items")
            _, label = stated.label((nodes[item], x[1]))
            if label in own.setdefault(item, {}):
                raise Refused("an amount is given twice")
            own[item][label] = _exact(x[2])
        rows = _list(given, "rows")
        if not all(isinstance(row, dict) for row in rows):
            raise Refused("a row must be an object")
        limits = [(row.get("low"), row.get("high")) for row in rows]
        sides = [[None if x is None else _exact(x) for x in pair] for pair in limits]
        every = [x for amounts in own.values() for x in amounts.values()]
        parts = _common(every, (x for side in sides for x in side if x is not None))
        self.nodes, self.parts = nodes, parts
        self.amounts = {
            item: {i: int(x * parts) for i, x in amounts.items()} for item, amounts in own.items()
        }
        whole = [[None if x is None else int(x * parts) for x in side] for side in sides]
        self.limits = [(low, high) for low, high in whole]
        item, begin, end = self._spans(item_of, given, rows).T
        kept = np.isin(item, [*own]) & (begin < end)
        self.item, self.begin, self.end = item[kept], begin[kept], end[kept]

    def _spans(
        self, item_of: Callable[[Any], Any], given: dict[str, Any], rows: list[Any]
    ) -> Array:
        """Return items, the first rows that count them, and the rows after the last ones."""
        if given.get("spans") is not None:
            if any(row.get("members") is not None for row in rows):
                raise Refused("a usage has both spans and rows with members")
            spans = [(item_of(item), *ends) for item, *ends in _list(given, "spans", 3)]
            ends = [len(self.nodes), len(rows) + 1, len(rows) + 1]
            flat = numbered([x for span in spans for x in span], ends * len(spans), "spans")
            return np.array(flat, np.int64).reshape(-1, 3)
        items, numbers = list[int](), list[int]()
        for k, row in enumerate(rows):
            members: list[Any] = sorted(self.amounts)
            if row.get("members") is not None:
                members = [*map(item_of, listed(row["members"], None, "members of a row"))]
            items += numbered(members, [len(self.nodes)] * len(members), "members of a row")
            numbers += [k] * len(members)
        order = np.lexsort((numbers, items))
        item, row = np.array(items, np.int64)[order], np.array(numbers, np.int64)[order]
        first = np.ones(len(item), bool)
        first[1:] = (np.diff(item) != 0) | (np.diff(row) != 1)
        last = np.append(first[1:], True)[: len(item)]
        return np.column_stack([item[first], row[first], row[last] + 1])

    def used(self, chosen: Sequence[int]) -> list[int]:
        """Return what a labelling uses in each row."""
        items = self.item.tolist()
        amounts = [self.amounts[item].get(chosen[self.nodes[item]], 0) for item in items]
        rows = RowGroup([], self.begin, self.end, self.limits)
        found: list[int] = rows.sums(np.array(amounts, object)).tolist()
        return found

    def group(self, of: dict[int, int], widths: list[int], rows: list[int] | None) -> RowGroup:
        """Return the rows, or some of them, in a problem's numbering of some of the nodes.

        ``of`` and ``widths`` are numbers of nodes in the problem, and how many labels those have;
        ``rows`` are ascending.
        """
        known: dict[int, tuple[int, Array]] = {}
        for item in set(self.item.tolist()):
            if self.nodes[item] in of:
                u = of[self.nodes[item]]
                used = np.zeros(widths[u], object)
                used[[*self.amounts[item]]] = [*self.amounts[item].values()]
                known[item] = u, used
        begin, end, limits = self.begin, self.end, self.limits
        if rows is not None:
            self._check(of, rows)
            begin, end = np.searchsorted(rows, begin), np.searchsorted(rows, end)
            limits = [limits[k] for k in rows]
        kept = np.isin(self.item, [*known]) & (begin < end)
        items = [known[item] for item in self.item[kept].tolist()]
        return RowGroup(items, begin[kept], end[kept], limits)

    def _check(self, of: dict[int, int], rows: list[int]) -> None:
        """Refuse conflicts that omit nodes whose omission could make a row harder to satisfy."""
        spans = zip(self.item.tolist(), self.begin.tolist(), self.end.tolist(), strict=True)
        for item, begin, end in spans:
            node, amounts = self.nodes[item], [0, *self.amounts[item].values()]
            for k in rows[bisect_left(rows, begin) : bisect_left(rows, end)]:
                low, high = self.limits[k]
                less, more = min(amounts) < 0, max(amounts) > 0
                if node not in of and ((high is not None and less) or (low is not None and more)):
                    raise Refused(f"a conflict has a row without node {node}")


def check_network(document: object, certificate: object) -> NetworkVerdict:
    """Verify a certificate of a network; raise ``Refused`` if it claims more than it proves.

    The document is of format ``layoutopt/network/1`` as plain data, decimals as ``Decimal``.  A
    certificate has ``"labels"`` and ``"objective"``, and ``"bound"`` and ``"evidence"`` for it; or
    ``"conflict"``, with ``"evidence"`` that it is infeasible.
    """
    return check_claim(StatedNetwork(document), certificate)


def check_claim(
    stated: StatedNetwork, certificate: object, known: Bound | None = None
) -> NetworkVerdict:
    """Verify a certificate of a parsed network; ``known`` is what its evidence proves, if known."""
    claim = certificate if isinstance(certificate, dict) else {}
    if claim.get("conflict") is not None:
        if claim.get("labels") is not None or claim.get("bound") is not None:
            raise Refused("a claim of infeasibility excludes labels and a bound")
        problem = stated.problem(stated.conflict(claim["conflict"])).pairwise
        most, unverified = bound(problem, entry(claim, "evidence"))
        if most >= -problem.total:
            raise Refused("infeasibility is claimed, but not proved")
        return NetworkVerdict("infeasible", None, None, unverified)
    least = Fraction(number(entry(claim, "bound")))
    objective = None
    if claim.get("labels") is not None:
        objective = stated.cost(stated.labels(claim["labels"]))
        if objective != number(entry(claim, "objective")):
            raise Refused(f"the labels cost {objective}, but {claim['objective']} is claimed"[:200])
    elif claim.get("objective") is not None:
        raise Refused("an objective requires labels")
    given = stated.problem()
    most, unverified = known or bound(given.pairwise, entry(claim, "evidence"))
    proved = stated.worth(most + given.constant)
    if stated.sign * (least - proved) < 0:
        raise Refused(f"the bound {least} is claimed, but {proved} is proved"[:200])
    if objective is None:
        return NetworkVerdict("bounded", None, least, unverified)
    status = "optimal" if objective == least else "feasible"
    return NetworkVerdict(status, objective, least, unverified)


def _list(given: dict[str, Any], key: str, length: int | None = None) -> list[Any]:
    found = listed(given.get(key, []), None, key)
    if length is not None:
        for x in found:
            if not isinstance(x, list | tuple) or len(x) != length:
                raise Refused(f"entries of {key} must be lists of {length}")
    return found


def _exact(given: object) -> Fraction | int:
    if isinstance(given, Decimal) and given.is_finite():
        return Fraction(given)
    return number(given)


def _cells(given: object) -> list[list[Fraction | int | None]]:
    rows = [listed(row, None, "rows of a table") for row in listed(given, None, "a table")]
    if len({len(row) for row in rows}) > 1:
        raise Refused("rows of a table must have equal lengths")
    return [[None if x is None else _exact(x) for x in row] for row in rows]


def _array(cells: list[list[Fraction | int | None]], whole: int) -> Array:
    flat = [0 if x is None else int(x * whole) for row in cells for x in row]
    small = max(map(abs, flat), default=0) < 2**62
    worth = np.array(flat, np.int64 if small else object)
    worth = worth.reshape(len(cells), len(cells[0]) if cells else 0)
    mask = np.array([[x is None for x in row] for row in cells], bool)
    return np.asanyarray(np.ma.array(worth, mask=mask)) if mask.any() else worth


def _common(*values: Iterable[Fraction | int]) -> int:
    return lcm(*{x.denominator for own in values for x in own})


def _roots(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each number the smallest of its connected component."""
    of = [*range(count)]

    def root(u: int) -> int:
        while of[u] != u:
            of[u] = of[of[u]]
            u = of[u]
        return u

    for u, v in pairs:
        one, two = sorted((root(u), root(v)))
        of[two] = one
    return [root(u) for u in range(count)]
