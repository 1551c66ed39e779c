"""Cost networks as NumPy's ``.npz`` files, with the keys of format ``layoutopt/network/1``."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from fractions import Fraction
from io import BytesIO
from itertools import chain, pairwise
from typing import Any

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.network.document import FORMAT, exact_number, integers, known_unit
from layoutopt.network.network import Array, CostTable, Domain, Network, Usage, spans_of
from layoutopt.network.problem import exact_integers

TEXT, WHOLE, TRUE = "U", "iu", "b"  # kinds of arrays, as NumPy has them

KINDS: dict[str, Any] = {"U": np.str_, "i": np.int64, "b": np.bool_}
"""Types of arrays in which nothing is."""


def npz_bytes(network: Network) -> bytes:
    """Return the bytes of the ``.npz`` file that describes a network.

    Refused are names that end in a zero character, which NumPy's texts cannot hold.
    """
    domains, tables = network.domains, network.tables
    found: dict[str, Any] = {
        "format": FORMAT,
        "name": network.name,
        "sense": network.sense,
        "unit": str(network.unit),
        "constant": str(network.constant),
        "nodes": _texts(network.nodes),
        "domains.size": np.array([domain.size for domain in domains], np.int64),
        "domains.named": np.array([bool(domain.names) for domain in domains], bool),
        "domains.open": np.array([domain.open for domain in domains], bool),
        "domains.names": _texts([*chain(*(domain.names for domain in domains))]),
        "domain_of": network.domain_of,
        "costs": _stacked(network.cost_at, network.costs),
        "banned": network.banned,
        "equal_edges": _stacked(network.equal_edges, network.equal_costs),
        "table_edges": _stacked(network.table_edges, network.table_of),
        "tables.shape": np.array([t.costs.shape for t in tables], np.int64).reshape(-1, 2),
        "tables.costs": _joined([_plain(table.costs.ravel()) for table in tables], np.int64),
        "tables.allowed": _joined(
            [
                np.ones(t.costs.size, bool) if t.allowed is None else t.allowed.ravel()
                for t in tables
            ],
            np.bool_,
        ),
        "ties": network.ties,
    }
    for k, usage in enumerate(network.usages):
        found |= {
            f"usages.{k}.nodes": usage.nodes,
            f"usages.{k}.amounts": _stacked(usage.at, usage.amounts),
            f"usages.{k}.spans": usage.spans,
            f"usages.{k}.low": _texts(["" if x is None else str(x) for x in usage.low]),
            f"usages.{k}.high": _texts(["" if x is None else str(x) for x in usage.high]),
            f"usages.{k}.names": _texts(usage.names),
            f"usages.{k}.unit": str(usage.unit),
        }
    made = BytesIO()
    try:
        np.savez_compressed(made, **found)
    except UnicodeEncodeError as error:
        raise InputError(f"the network cannot be written ({error})") from None
    return made.getvalue()


def _texts(given: Sequence[str]) -> Array:
    for text in given:
        if text.endswith("\0"):
            raise InputError(f"the name {text!r} ends in a zero character, which .npz cannot hold")
    return np.array([*given], np.str_)


def _plain(values: Array) -> Array:
    """Return numbers as NumPy stores them without pickling: beyond 64 bits as text."""
    return np.array([*map(str, values.tolist())], np.str_) if values.dtype == object else values


def _stacked(at: Array, values: Array) -> Array:
    numbers = _plain(values)
    return np.column_stack(
        [at.astype(numbers.dtype if numbers.dtype.kind == TEXT else at.dtype), numbers]
    )


def _joined(parts: Sequence[Array], kind: Any) -> Array:
    if any(part.dtype.kind == TEXT for part in parts):
        parts = [part.astype(np.str_) for part in parts]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


_UNREADABLE = (
    *(zipfile.BadZipFile, ValueError, EOFError, OSError, zlib.error, KeyError),
    *(NotImplementedError, RuntimeError, AttributeError),
)
"""Errors of NumPy and ``zipfile`` on what is no such file; their texts are for programmers."""


def parse_npz(raw: bytes) -> Network:
    """Return the network that the bytes of an ``.npz`` file describe."""
    try:
        with np.load(BytesIO(raw), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except TypeError:
        raise InputError("holds a single array, not those of an .npz file") from None
    except _UNREADABLE:
        raise InputError("is no whole .npz file of numbers and texts") from None
    return _NpzReader(arrays).network()


class _NpzReader:
    """Reader of arrays by their keys, each with a kind and a shape."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def network(self) -> Network:
        """Return the network."""
        if self._word("format", "") != FORMAT:
            raise InputError(f"must be {FORMAT}", "format")
        table_edges, table_of = self._triples("table_edges")
        cost_at, costs = self._triples("costs")
        equal_edges, equal_costs = self._triples("equal_edges")
        sense: Any = self._word("sense", "min")
        self.arrays.setdefault("domain_of", np.zeros(np.size(self.arrays.get("nodes", ())), int))
        found = Network(
            nodes=tuple(self._array("nodes", TEXT, 1).tolist()),
            domains=self._domains(),
            domain_of=self._integers("domain_of", 1),
            cost_at=cost_at,
            costs=costs,
            banned=self._integers("banned", 2),
            equal_edges=equal_edges,
            equal_costs=equal_costs,
            table_edges=table_edges,
            table_of=table_of,
            tables=self._tables(),
            ties=self._integers("ties", 2),
            usages=self._usages(),
            constant=_whole(self._word("constant", "0"), "constant"),
            name=self._word("name", ""),
            sense=sense,
            unit=self._unit("unit"),
        )
        if self.arrays:
            raise InputError("is no key of this format", min(self.arrays))
        return found

    def _array(self, key: str, kinds: str, dimensions: int, *, columns: int | None = None) -> Array:
        empty = KINDS[kinds[0]]
        if key not in self.arrays:
            return np.zeros([0] * (dimensions - 1) + [columns or 0], empty)
        array: Array = self.arrays.pop(key)
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(empty)
        if array.dtype.kind not in kinds or array.ndim != dimensions:
            raise InputError(f"holds {array.dtype} of shape {array.shape}", key)
        if columns is not None and array.shape[1] != columns:
            raise InputError(f"needs {columns} columns, has shape {array.shape}", key)
        return array

    def _word(self, key: str, default: str) -> str:
        return str(self._array(key, TEXT, 0)) if key in self.arrays else default

    def _unit(self, key: str) -> Fraction:
        unit = known_unit(self._word(key, "1"), key)
        assert unit is not None
        return unit

    def _integers(self, key: str, columns: int) -> Array:
        shape: dict[str, Any] = {"columns": 2} if columns == 2 else {}
        return _signed(self._array(key, WHOLE, columns, **shape), key)

    def _triples(self, key: str) -> tuple[Array, Array]:
        given = self._array(key, WHOLE + TEXT, 2, columns=3)
        ends = given[:, :2]
        if given.dtype.kind == TEXT:
            ends = integers([_whole(x, key) for x in ends.ravel()], key).reshape(-1, 2)
        return _signed(ends, key), _numbers(given[:, 2], key)

    def _domains(self) -> tuple[Domain, ...]:
        sizes = self._integers("domains.size", 1).tolist()
        named = self._array("domains.named", TRUE, 1).tolist()
        opened = self._array("domains.open", TRUE, 1).tolist()
        names = self._array("domains.names", TEXT, 1).tolist()
        if not len(sizes) == len(named) == len(opened):
            raise InputError("sizes, named and open have different lengths", "domains")
        found, begin = [], 0
        for size, own, is_open in zip(sizes, named, opened, strict=True):
            end = begin + size if own else begin
            found.append(Domain(size, tuple(names[begin:end]), is_open))
            begin = end
        if begin != len(names):
            raise InputError(f"has {len(names)} names for {begin} labels", "domains.names")
        return tuple(found)

    def _tables(self) -> tuple[CostTable, ...]:
        shapes = self._array("tables.shape", WHOLE, 2, columns=2).tolist()
        costs = self._array("tables.costs", WHOLE + TEXT, 1)
        allowed = self._array("tables.allowed", TRUE, 1)
        sizes = [max(rows, 0) * max(columns, 0) for rows, columns in shapes]
        if not sum(sizes) == len(costs) == len(allowed):
            raise InputError(f"shapes are of {sum(sizes)} costs, there are {len(costs)}", "tables")
        found, begin = [], 0
        for shape, size in zip(shapes, sizes, strict=True):
            here = slice(begin, begin + size)
            own = allowed[here].reshape(shape)
            numbers = _numbers(costs[here], "tables.costs").reshape(shape)
            found.append(CostTable(numbers, None if own.all() else own))
            begin += size
        return tuple(found)

    def _usages(self) -> tuple[Usage, ...]:
        found: list[Usage] = []
        while f"usages.{len(found)}.nodes" in self.arrays:
            key = f"usages.{len(found)}"
            at, amounts = self._triples(f"{key}.amounts")
            low, high = (
                tuple(
                    None if not x else _whole(x, f"{key}.{side}")
                    for x in self._array(f"{key}.{side}", TEXT, 1).tolist()
                )
                for side in ("low", "high")
            )
            found.append(
                Usage(
                    nodes=self._integers(f"{key}.nodes", 1),
                    at=at,
                    amounts=amounts,
                    spans=self._spans(key, len(low)),
                    low=low,
                    high=high,
                    names=tuple(self._array(f"{key}.names", TEXT, 1).tolist()),
                    unit=self._unit(f"{key}.unit"),
                )
            )
        return tuple(found)

    def _spans(self, key: str, rows: int) -> Array:
        """Return spans, which older archives have as lists of the items of each row."""
        if f"{key}.starts" not in self.arrays:
            return _signed(self._array(f"{key}.spans", WHOLE, 2, columns=3), f"{key}.spans")
        starts, members = (self._integers(f"{key}.{x}", 1) for x in ("starts", "members"))
        lengths = np.diff(starts, prepend=0, append=len(members))
        if len(starts) != rows + 1 or lengths[0] or lengths[-1] or (lengths < 0).any():
            raise InputError("the lists of nodes that rows count do not follow each other", key)
        return spans_of([members[a:b] for a, b in pairwise(starts.tolist())])


def _signed(values: Array, key: str) -> Array:
    if values.dtype.kind == "u" and values.size and values.max() >= 2**63:
        raise InputError("a number is too large", key)
    return values.astype(np.int64)


def _numbers(values: Array, key: str) -> Array:
    """Return numbers, those that are written as text as exact integers."""
    if values.dtype.kind == TEXT:
        return exact_integers([_whole(x, key) for x in values.tolist()])
    return values


def _whole(text: str, key: str) -> int:
    number = exact_number(str(text), key)
    if not isinstance(number, int) and number.denominator != 1:
        raise InputError(f"must be whole, got {text}", key)
    return int(number)
