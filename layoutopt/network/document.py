"""Cost networks as JSON files: format ``layoutopt/network/1``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from layoutopt.base import files
from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import MAX_EXPONENT, exact_decimal
from layoutopt.network.builder import common_unit, multiples
from layoutopt.network.network import Array, CostTable, Domain, Network, Usage, spans_of

FORMAT = "layoutopt/network/1"

_NUMBER: dict[str, Any] = {"type": ["number", "string"], "pattern": "^-?[0-9]+(/[0-9]+)?$"}

Number = Annotated[Any, Meta(extra_json_schema=_NUMBER)]
"""A whole number of any size, a decimal, or a string ``"p/q"`` or ``"p"``."""

Known = Annotated[Any, Meta(extra_json_schema=_NUMBER | {"type": ["number", "string", "null"]})]

Reference: TypeAlias = int | str
"""A node or a label, by number or by name."""

ENTRIES = 10**7
"""Most members that all rows of a usage may have; spans are written where there are more."""

RATIO = re.compile(r"-?[0-9]+(/[0-9]+)?")


class DomainEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Labels by their names, or how many there are."""

    labels: int | list[str]
    open: bool = False


class RowEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits of what some items use together; all that have amounts where none are given."""

    low: Known = None
    high: Known = None
    name: str = ""
    members: list[Reference] | None = None


class UsageEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rows that count the same amounts; items are nodes, or the numbers of entries of ``nodes``."""

    amounts: list[tuple[Reference, Reference, Number]]
    rows: list[RowEntry]
    nodes: list[Reference] | None = None
    unit: Known = None
    spans: list[tuple[Reference, int, int]] | None = None


class NetworkDocument(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole network file."""

    format: Literal["layoutopt/network/1"]
    domains: list[DomainEntry]
    nodes: list[str]
    name: str = ""
    sense: Literal["min", "max"] = "min"
    unit: Known = None
    constant: Number = 0
    domain_of: list[int] | None = None
    costs: list[tuple[Reference, Reference, Number]] = []
    banned: list[tuple[Reference, Reference]] = []
    equal_edges: list[tuple[Reference, Reference, Number]] = []
    table_edges: list[tuple[Reference, Reference, int]] = []
    tables: list[list[list[Known]]] = []
    ties: list[tuple[Reference, Reference]] = []
    usages: list[UsageEntry] = []


def parse_json(raw: bytes) -> Network:
    """Return the network that the bytes of a JSON file describe."""
    decoder = msgspec.json.Decoder(NetworkDocument, float_hook=exact_decimal)
    document = files.decode(decoder, raw, "", {".format": [FORMAT], ".sense": ["min", "max"]})
    return _JsonReader(document).network()


class _JsonReader:
    """Resolver of a document's names and numbers."""

    def __init__(self, document: NetworkDocument) -> None:
        self.document = document
        self.node_of = {name: u for u, name in enumerate(document.nodes)}
        self.domains = tuple(
            _domain(entry, f"$.domains[{k}]") for k, entry in enumerate(document.domains)
        )
        self.label_of = [
            {name: i for i, name in enumerate(domain.names)} for domain in self.domains
        ]
        of = [0] * len(document.nodes) if document.domain_of is None else document.domain_of
        self.domain_of = integers(of, "$.domain_of")

    def network(self) -> Network:
        """Return the network."""
        given = self.document
        costs = exact([x for *_, x in given.costs], "$.costs")
        equal = exact([x for *_, x in given.equal_edges], "$.equal_edges")
        cells = [_cells(table, f"$.tables[{k}]") for k, table in enumerate(given.tables)]
        [constant] = exact([given.constant], "$.constant")
        every = chain(costs, equal, [constant], *(own for own, _ in cells))
        unit = known_unit(given.unit, "$.unit") or common_unit(every)
        return Network(
            nodes=tuple(given.nodes),
            domains=self.domains,
            domain_of=self.domain_of,
            cost_at=self._labels([(u, i) for u, i, _ in given.costs], "$.costs"),
            costs=multiples(costs, unit, "$.costs"),
            banned=self._labels(given.banned, "$.banned"),
            equal_edges=self._ends(given.equal_edges, "$.equal_edges"),
            equal_costs=multiples(equal, unit, "$.equal_edges"),
            table_edges=self._ends(given.table_edges, "$.table_edges"),
            table_of=integers([k for *_, k in given.table_edges], "$.table_edges"),
            tables=tuple(
                _table(own, allowed, unit, f"$.tables[{k}]")
                for k, (own, allowed) in enumerate(cells)
            ),
            ties=self._ends(given.ties, "$.ties"),
            usages=tuple(
                self._usage(entry, f"$.usages[{k}]") for k, entry in enumerate(given.usages)
            ),
            constant=int(multiples([constant], unit, "$.constant")[0]),
            name=given.name,
            sense=given.sense,
            unit=unit,
        )

    def _nodes(self, given: Sequence[Reference], place: str) -> list[int]:
        if set(map(type, given)) <= {int}:
            return [*given]  # type: ignore[list-item]
        found = []
        for i, node in enumerate(given):
            if isinstance(node, str) and node not in self.node_of:
                raise InputError(f"there is no node {node!r}", f"{place}[{i}]")
            found.append(self.node_of[node] if isinstance(node, str) else node)
        return found

    def _ends(self, given: Sequence[tuple[Any, ...]], place: str) -> Array:
        sides = [self._nodes([entry[side] for entry in given], place) for side in (0, 1)]
        return np.column_stack([integers(side, place) for side in sides])

    def _labels(self, given: Sequence[tuple[Reference, Reference]], place: str) -> Array:
        nodes = self._nodes([u for u, _ in given], place)
        labels = self._named(nodes, [label for _, label in given], place)
        return np.column_stack([integers(nodes, place), integers(labels, place)])

    def _named(self, nodes: list[int], labels: Sequence[Reference], place: str) -> list[int]:
        """Return labels of nodes as numbers."""
        if set(map(type, labels)) <= {int}:
            return [*labels]  # type: ignore[list-item]
        found = []
        for i, (u, label) in enumerate(zip(nodes, labels, strict=True)):
            if isinstance(label, str):
                if not 0 <= u < len(self.domain_of):
                    raise InputError(f"there is no node {u}", f"{place}[{i}]")
                known = (
                    self.label_of[k] if 0 <= (k := self.domain_of[u]) < len(self.domains) else {}
                )
                if label not in known:
                    name = self.document.nodes[u]
                    raise InputError(f"node {name!r} has no label {label!r}", f"{place}[{i}]")
                label = known[label]
            found.append(label)
        return found

    def _usage(self, given: UsageEntry, place: str) -> Usage:
        at, amount_place = [item for item, *_ in given.amounts], f"{place}.amounts"
        rows = [f"{place}.rows[{i}]" for i in range(len(given.rows))]
        lists: list[tuple[Sequence[Reference] | None, str]] = [
            (row.members, where) for row, where in zip(given.rows, rows, strict=True)
        ]
        if given.spans is not None:
            lists = [([item for item, *_ in given.spans], f"{place}.spans")]
        if given.nodes is None:  # items are nodes
            counted = self._nodes(at, amount_place)
            members = [None if own is None else self._nodes(own, where) for own, where in lists]
            nodes = sorted({*counted, *(u for own in members if own for u in own)})
            item = {u: k for k, u in enumerate(nodes)}
            items = [item[u] for u in counted]
            chosen = [None if own is None else [item[u] for u in own] for own in members]
        else:
            nodes = self._nodes(given.nodes, f"{place}.nodes")
            items = _items(at, len(nodes), amount_place)
            counted = [nodes[k] for k in items]
            chosen = [
                None if own is None else _items(own, len(nodes), where) for own, where in lists
            ]
        labels = self._named(counted, [label for _, label, _ in given.amounts], amount_place)
        every = sorted(set(items))
        whole = [every if own is None else own for own in chosen]
        spans = spans_of(whole) if given.spans is None else _spans(given, whole[0], place)
        amounts = exact([x for *_, x in given.amounts], amount_place)
        limits = [
            [None if x is None else exact([x], where)[0] for x in (row.low, row.high)]
            for row, where in zip(given.rows, rows, strict=True)
        ]
        known = (x for own in limits for x in own if x)
        unit = known_unit(given.unit, f"{place}.unit") or common_unit(chain(amounts, known))
        low, high = (
            tuple(
                None if (x := own[side]) is None else int(multiples([x], unit, where)[0])
                for own, where in zip(limits, rows, strict=True)
            )
            for side in (0, 1)
        )
        return Usage(
            nodes=integers(nodes, place),
            at=np.column_stack([integers(items, place), integers(labels, amount_place)]),
            amounts=multiples(amounts, unit, amount_place),
            spans=spans,
            low=low,
            high=high,
            names=tuple(row.name for row in given.rows) if any(r.name for r in given.rows) else (),
            unit=unit,
        )


def _domain(given: DomainEntry, place: str) -> Domain:
    with errors_at(place):
        if isinstance(given.labels, int):
            return Domain(given.labels, (), given.open)
        return Domain(len(given.labels), tuple(given.labels), given.open)


def _spans(given: UsageEntry, items: Sequence[int], place: str) -> Array:
    if any(row.members is not None for row in given.rows):
        raise InputError("has both spans and rows with members", place)
    given_spans = given.spans or []
    begin, end = [begin for _, begin, _ in given_spans], [end for *_, end in given_spans]
    return np.column_stack([integers(x, f"{place}.spans") for x in (items, begin, end)])


def _items(given: Sequence[Reference], count: int, place: str) -> list[int]:
    for i, item in enumerate(given):
        if isinstance(item, str) or not 0 <= item < count:
            raise InputError(f"items are 0 to {count - 1}, got {item!r}", f"{place}[{i}]")
    return [*given]  # type: ignore[list-item]


def _cells(rows: list[list[Any]], place: str) -> tuple[list[Fraction | int], Array]:
    """Return a table's costs row by row, 0 where forbidden, and where they are allowed."""
    if len({len(row) for row in rows}) > 1:
        raise InputError("rows have different lengths", place)
    allowed = np.array([[x is not None for x in row] for row in rows], bool)
    cells = [*chain(*rows)]
    if not allowed.all():
        cells = [0 if x is None else x for x in cells]
    return exact(cells, place), allowed.reshape(len(rows), -1 if rows else 0)


def _table(cells: list[Fraction | int], allowed: Array, unit: Fraction, place: str) -> CostTable:
    costs = multiples(cells, unit, place).reshape(allowed.shape)
    return CostTable(costs, None if allowed.all() else allowed)


def exact(values: Sequence[Any], place: str) -> list[Fraction | int]:
    """Return numbers of a document as exact ones."""
    if set(map(type, values)) <= {int}:
        return [*values]
    return [exact_number(value, f"{place}[{i}]") for i, value in enumerate(values)]


def exact_number(value: Any, place: str) -> Fraction | int:
    """Return a number of a document as an exact one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return Fraction(value)
    try:
        if isinstance(value, str) and RATIO.fullmatch(value):
            return Fraction(value)
    except (ValueError, ZeroDivisionError):  # of more digits than Python reads
        pass
    raise InputError(f'must be a number or a string "p/q", got {str(value)[:40]!r}', place)


def known_unit(given: Any, place: str) -> Fraction | None:
    """Return a unit that a document gives; ``None`` if it gives none."""
    if given is None:
        return None
    unit = Fraction(exact([given], place)[0])
    if unit <= 0:
        raise InputError(f"must be positive, got {unit}", place)
    return unit


def integers(values: Sequence[int], place: str) -> Array:
    """Return whole numbers as an array."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise InputError("a number is too large", place) from None


def json_bytes(network: Network) -> bytes:
    """Return the bytes of the JSON file that describes a network.

    Refused are numbers of more digits than Python writes, and names that are no text.
    """
    unit = network.unit
    document = {
        "format": FORMAT,
        "name": network.name,
        "sense": network.sense,
        "unit": written([1], unit)[0],
        "constant": written([network.constant], unit)[0],
        "domains": [
            DomainEntry([*domain.names] if domain.names else domain.size, domain.open)
            for domain in network.domains
        ],
        "nodes": network.nodes,
        "domain_of": msgspec.Raw(files.encode(network.domain_of.tolist())),
        "costs": _triples(network.cost_at, network.costs, unit),
        "banned": network.banned.tolist(),
        "equal_edges": _triples(network.equal_edges, network.equal_costs, unit),
        "table_edges": _triples(network.table_edges, network.table_of, Fraction(1)),
        "tables": [_rows(table, unit) for table in network.tables],
        "ties": network.ties.tolist(),
        "usages": [_usage_entry(usage) for usage in network.usages],
    }
    kept = ("domains", "nodes", *(key for key, x in document.items() if x))
    try:
        return files.encode_lines({key: x for key, x in document.items() if key in kept})
    except (ValueError, UnicodeEncodeError) as error:
        raise InputError(f"the network cannot be written as JSON ({error})") from None


def _usage_entry(usage: Usage) -> UsageEntry:
    items = np.unique(usage.at[:, 0])
    used = np.unique(usage.nodes[np.concatenate([items, usage.spans[:, 0]])])
    by_node = np.array_equal(usage.nodes, used)
    name = usage.nodes if by_node else np.arange(len(usage.nodes))
    rows, spans = [], None
    if usage.entries > ENTRIES:
        spans = np.column_stack([name[usage.spans[:, 0]], usage.spans[:, 1:]]).tolist()
    limits = zip(usage.low, usage.high, strict=True)
    for i, bounds in enumerate(limits):
        low, high = (None if x is None else written([x], usage.unit)[0] for x in bounds)
        members = items if spans else usage.counted(i)
        own = None if np.array_equal(members, items) else name[members].tolist()
        rows.append(RowEntry(low, high, usage.names[i] if usage.names else "", own))
    at = np.column_stack([name[usage.at[:, 0]], usage.at[:, 1]])
    amounts: Any = _triples(at, usage.amounts, usage.unit)
    unit = written([1], usage.unit)[0]
    return UsageEntry(amounts, rows, None if by_node else usage.nodes.tolist(), unit, spans)


def _triples(at: Array, values: Array, unit: Fraction) -> list[list[Any]]:
    numbers = written(values.tolist(), unit)
    return [[*ends, x] for ends, x in zip(at.tolist(), numbers, strict=True)]


def _rows(table: CostTable, unit: Fraction) -> list[list[Any]]:
    rows = [written(row, unit) for row in table.costs.tolist()]
    if table.allowed is None:
        return rows
    return [
        [x if ok else None for x, ok in zip(row, own, strict=True)]
        for row, own in zip(rows, table.allowed.tolist(), strict=True)
    ]


def written(values: list[int], unit: Fraction) -> list[Any]:
    """Return multiples of a unit as JSON has them: whole, decimal, or as ``"p/q"``."""
    if unit.denominator == 1:
        return [value * unit.numerator for value in values]
    places, rest = 0, unit.denominator
    for factor in (10, 5, 2):
        while rest % factor == 0:
            rest //= factor
            places += 1
    numbers = [value * unit for value in values]
    if rest == 1 and places < MAX_EXPONENT and max(map(abs, numbers), default=0) < 10**MAX_EXPONENT:
        return [x.numerator if x.denominator == 1 else exact_decimal(x) for x in numbers]
    return [x.numerator if x.denominator == 1 else str(x) for x in numbers]
