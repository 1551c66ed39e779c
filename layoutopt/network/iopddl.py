"""Cost networks of the IOPDDL contest (ASPLOS 2025), read as a stream.

One strategy per node; nodes and pairs of nodes have costs; at every time the usages of the nodes
that are live then add up to a limit at most.  The JSON holds ::

    {"problem": {"name": ..., "nodes": {"intervals": [[begin, end], ...], "costs": [[...], ...],
     "usages": [[...], ...]}, "edges": {"nodes": [[u, v], ...], "costs": [[...], ...]},
     "usage_limit": ...}}

with costs of edges row by row; 10^18 is forbidden.  Files of a gigabyte are read list by list, so
that memory holds arrays of numbers and every table once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from layoutopt.base import files
from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import ranges
from layoutopt.network.network import Array, CostTable, Domain, Network, Usage, span_windows

FORBIDDEN = 10**18
"""The cost of what is forbidden, or more."""

CHUNK = 2**20  # bytes that are read at a time

MARGIN = 64
"""Bytes after a list that must be known before it is taken: the outer list may end there."""

_LAST = re.compile(rb"\]\s*\]")


class _Stream:
    """The text of a file, from a place on."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        begin = file.read(len(files.BOM))
        self.text, self.at = begin.removeprefix(files.BOM), 0
        self.before = len(begin) - len(self.text)  # bytes before the text

    def fault(self, what: str) -> InputError:
        """Return the error that says what is wrong at this place."""
        return InputError(f"{what} at byte {self.before + self.at}")

    def _more(self) -> bool:
        new = self.file.read(CHUNK)
        self.before += self.at
        self.text, self.at = self.text[self.at :] + new, 0
        return bool(new)

    def peek(self) -> bytes:
        """Return the next character that is no space; nothing at the end."""
        while True:
            while self.at < len(self.text):
                found = self.text[self.at : self.at + 1]
                if not found.isspace():
                    return found
                self.at += 1
            if not self._more():
                return b""

    def take(self, wanted: bytes) -> None:
        """Go past a character that must come next."""
        if self.peek() != wanted:
            raise self.fault(f"{wanted.decode()!r} is missing")
        self.at += 1

    def until(self, ends: bytes) -> bytes:
        """Return the text up to the first of some characters, and go there."""
        begin = self.at
        while True:
            places = [x for end in ends if (x := self.text.find(bytes([end]), begin)) >= 0]
            if places:
                found = self.text[self.at : min(places)]
                self.at = min(places)
                return found
            begin = len(self.text) - self.at
            if not self._more():
                raise self.fault("the text ends too early")

    def entries(self, *known: str) -> Iterator[str]:
        """Yield the keys of an object, which must be known; whoever asks reads each value."""
        self.take(b"{")
        while self.peek() != b"}":
            self.take(b'"')
            name = self.until(b'"').decode("utf-8", "replace")
            self.take(b'"')
            self.take(b":")
            if name not in known:
                raise self.fault(f"unknown key {name!r}, allowed: {', '.join(known)}")
            yield name
            if self.peek() != b"}":
                self.take(b",")
        self.take(b"}")

    def lists(self, what: str) -> Iterator[Array]:
        """Yield the lists of a list, whole numbers each; a chunk of them is decoded at a time."""
        self.take(b"[")
        place = 0
        while self.peek() != b"]":
            last = _LAST.search(self.text, self.at)
            cut = last.start() + 1 if last else self.text.rfind(b"]", self.at) + 1
            if cut <= self.at or (not last and len(self.text) - cut < MARGIN):
                if self._more():
                    continue
                raise self.fault("the text ends too early")
            text = b"[" + self.text[self.at : cut] + b"]"
            try:
                found = msgspec.json.decode(text, type=list[list[int]])
            except msgspec.MsgspecError as error:
                raise self.fault(f"{what}, lists after {place}: {error}") from None
            for own in found:
                try:
                    yield np.array(own, np.int64)
                except OverflowError:
                    raise self.fault(f"{what}[{place}] holds too large a number") from None
                place += 1
            self.at = cut
            if self.peek() != b"]":
                self.take(b",")
        self.take(b"]")

    def value(self, what: str) -> Any:
        """Return a number or a string."""
        self.peek()
        if self.text[self.at : self.at + 1] == b'"':
            self.take(b'"')
            text = b'"' + self.until(b'"')
            while (len(text) - len(text.rstrip(b"\\"))) % 2:  # the quote is escaped
                self.take(b'"')
                text += b'"' + self.until(b'"')
            text += b'"'
            self.take(b'"')
        else:
            text = self.until(b",}")
        try:
            return msgspec.json.decode(text)
        except msgspec.MsgspecError:
            raise self.fault(f"{what} is neither a number nor a string") from None


def read(path: str | Path) -> Network:
    """Return the network of a file, ``.json`` or ``.json.gz``."""
    with errors_at(file=str(path)):
        try:
            with files.opened(Path(path)) as file:
                return _read(_Stream(file))
        except (OSError, *files.DAMAGED) as error:
            raise InputError(str(error)) from None


class _Parts:
    """What has been read of a problem."""

    def __init__(self) -> None:
        self.name = ""
        self.intervals: list[Array] = []
        self.costs: list[Array] = []
        self.usages: list[Array] = []
        self.edges: list[Array] = []
        self.table_of: list[int] = []
        self.tables: list[Array] = []
        self.limit: int | None = None


def _read(text: _Stream) -> Network:
    parts, known = _Parts(), dict[bytes, int]()
    for _ in text.entries("problem"):
        for key in text.entries("name", "nodes", "edges", "usage_limit"):
            if key == "name":
                parts.name = str(text.value(key))
            elif key == "usage_limit":
                limit = text.value(key)
                if not isinstance(limit, int):
                    raise text.fault(f"usage_limit must be a whole number, got {limit!r}")
                parts.limit = limit
            elif key == "nodes":
                for inner in text.entries("intervals", "costs", "usages"):
                    getattr(parts, inner).extend(text.lists(f"nodes.{inner}"))
            else:
                for inner in text.entries("nodes", "costs"):
                    if inner == "nodes":
                        parts.edges = list(text.lists("edges.nodes"))
                        continue
                    for table in text.lists("edges.costs"):
                        digest = blake2b(table.tobytes(), digest_size=16).digest()
                        number = known.setdefault(digest, len(parts.tables))
                        if number == len(parts.tables):
                            parts.tables.append(table)
                        parts.table_of.append(number)
    if text.peek():
        raise text.fault("the text goes on after the last }")
    return _network(parts)


def _network(parts: _Parts) -> Network:
    n = len(parts.costs)
    if not len(parts.usages) == len(parts.intervals) == n:
        raise InputError(f"{n} nodes need as many intervals, costs and usages")
    if len(parts.edges) != len(parts.table_of):
        raise InputError(f"{len(parts.edges)} edges need as many lists of costs")
    for what, given in (("interval", parts.intervals), ("edge", parts.edges)):
        wrong = next((k for k, own in enumerate(given) if len(own) != 2), None)
        if wrong is not None:
            raise InputError(f"{what} {wrong} needs two numbers")
    sizes = np.array([*map(len, parts.costs)], np.int64)
    wrong = next((u for u, own in enumerate(parts.usages) if len(own) != sizes[u]), None)
    if wrong is not None or not sizes.all():
        u = int(np.flatnonzero(sizes == 0)[0]) if wrong is None else wrong
        raise InputError(f"node {u} needs as many usages as costs, and one at least")
    edges = np.array(parts.edges, np.int64).reshape(-1, 2)
    if len(edges) and not 0 <= edges.min() <= edges.max() < n:
        raise InputError(f"edges join nodes 0 to {n - 1}")
    own = np.concatenate([np.zeros(0, np.int64), *parts.costs])
    at = _label_numbers(sizes)
    banned = own >= FORBIDDEN
    paid = (own != 0) & ~banned
    kept, domain_of = np.unique(sizes, return_inverse=True)
    tables, table_of = _shaped(parts, sizes, edges)
    return Network(
        nodes=tuple(map(str, range(n))),
        domains=tuple(Domain(size) for size in kept.tolist()),
        domain_of=domain_of.reshape(-1),
        cost_at=at[paid],
        costs=own[paid],
        banned=at[banned],
        table_edges=edges,
        table_of=table_of,
        tables=tables,
        usages=() if parts.limit is None else _usages(parts, parts.limit),
        name=parts.name,
    )


def _label_numbers(sizes: Array) -> Array:
    """Return node and label of all labels, shape ``(labels, 2)``."""
    return np.column_stack([np.repeat(np.arange(len(sizes)), sizes), ranges(0, sizes)])


def _shaped(parts: _Parts, sizes: Array, edges: Array) -> tuple[tuple[CostTable, ...], Array]:
    """Return tables in the shapes that edges need, and each edge's table."""
    number: dict[tuple[int, int], int] = {}
    made: list[CostTable] = []
    table_of = []
    for k, ((u, v), place) in enumerate(zip(edges.tolist(), parts.table_of, strict=True)):
        key, flat = (place, int(sizes[u])), parts.tables[place]
        if len(flat) != sizes[u] * sizes[v]:
            need = f"{sizes[u]} x {sizes[v]}"
            raise InputError(f"edge {k} needs {need} costs, got {len(flat)}")
        if key not in number:
            allowed = (flat < FORBIDDEN).reshape(sizes[u], sizes[v])
            costs = np.where(allowed, flat.reshape(allowed.shape), 0)
            number[key] = len(made)
            made.append(CostTable(costs, None if allowed.all() else allowed))
        table_of.append(number[key])
    return tuple(made), np.array(table_of, np.int64)


def _usages(parts: _Parts, limit: int) -> tuple[Usage, ...]:
    """Return a row for each time at which a largest set of nodes is live."""
    spans = np.array(parts.intervals, np.int64).reshape(-1, 2)
    if any((own < 0).any() for own in parts.usages):
        raise InputError("usages must not be negative")
    live = np.array([own.any() for own in parts.usages], bool) & (spans[:, 0] < spans[:, 1])
    nodes = np.flatnonzero(live)
    times, rows = span_windows(np.arange(len(nodes)), *spans[nodes].T)
    amounts = [parts.usages[u] for u in nodes.tolist()]
    at = _label_numbers(np.array([*map(len, amounts)], np.int64))
    flat = np.concatenate([np.zeros(0, np.int64), *amounts])
    return (
        Usage(
            nodes=nodes,
            at=at[flat != 0],
            amounts=flat[flat != 0],
            spans=rows,
            low=(None,) * len(times),
            high=(limit,) * len(times),
            names=tuple(f"t={t}" for t in times.tolist()),
        ),
    )
