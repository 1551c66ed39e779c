"""Numbered locations of a graph's elements, for given layouts.

Elements of root tensors (sinks, sources, barrier outputs, fixed points) own locations, numbered
consecutively in the order of the roots.  The distinct values of ``mapping`` of sources have the
numbers after these.  Elements of views have the numbers of their inputs' elements.  Two elements
are at the same location if their numbers are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base import result
from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import unique
from layoutopt.base.result import Piece, UnwindingResult, outer_sum
from layoutopt.graphs.ops import Array, Barrier, Kind, Shape, Source, UnwindingOp, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.tiles.blocks import TileMap, tile_map_of

OriginArrays: TypeAlias = tuple[Array, Array]
"""Root tensor, or -1 where none is given, and flat element there that own each location, flat."""

Origins: TypeAlias = dict[int, OriginArrays]
"""The owners of the locations of each sink's elements, by the sink's number."""

Placed: TypeAlias = Mapping[int, Array | Sequence[Piece]]
"""Location numbers, flat, or pieces, of sinks by number."""

TILE = "tile"
"""The origin of pieces that give tiles by number."""


def first_numbers(graph: GraphStore) -> tuple[dict[int, int], int]:
    """Return the number of the first element of each root tensor, and how many they have."""
    first: dict[int, int] = {}
    count = 0
    for t in graph.roots():
        first[t] = count
        count += size(graph.shapes[t])
    return first, count


class Locations:
    """The numbers of a graph's locations.

    ``first`` has the number of the first element of each root tensor, ``pool`` that of each value
    of a mapping; ``count`` is the number of locations.
    """

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        self.first, count = first_numbers(graph)
        self.pool: dict[int | str, int] = {}
        for op in graph.ops:
            for where in (op.mapping or ()) if isinstance(op, Source) else ():
                self.pool.setdefault(where, count + len(self.pool))
        self.count = count + len(self.pool)
        self._mapped: dict[int, Array] = {}

    def own_at(self, t: int, elements: Array) -> Array:
        """Return the numbers of the own locations of flat elements of a root tensor."""
        op = self.graph.op_of(t)
        if not isinstance(op, Source) or op.mapping is None:
            return elements + self.first[t]
        if t not in self._mapped:
            self._mapped[t] = np.array([self.pool[where] for where in op.mapping], np.int64)
        return self._mapped[t][elements]

    def own(self, t: int) -> Array:
        """Return the numbers of a root tensor's own locations, flat."""
        return self.own_at(t, np.arange(size(self.graph.shapes[t])))

    def taken(self, t: int, layout: Iterable[Piece]) -> Array:
        """Return the numbers of the locations of a sink's elements in a layout, flat."""
        where = self.own(t)
        for piece in layout:
            where[result.written(piece)] = self.at(piece[0], result.read(piece))
        return where

    def at(self, origin: str, elements: Array) -> Array:
        """Return the numbers of the locations of elements of an origin of pieces."""
        return self.own_at(self.graph.number(origin), elements)

    def numbered(self, locations: Array) -> Array:
        """Return the numbers by which given locations are shown: their own."""
        return locations

    def find(self, given: Placed, wanted: Sequence[int], found: dict[int, Array]) -> None:
        """Add the numbers of tensors, in their shapes, and of all on the way, for given layouts."""
        for t in self.graph.view_order(wanted, found):
            if t in self.first:
                layout = given.get(t, ())
                if isinstance(layout, np.ndarray):
                    where = self.numbered(layout)
                else:
                    where = self.taken(t, layout)
                found[t] = where.reshape(self.graph.shapes[t])
        found.update(flow(self.graph, found, wanted))

    def origins(self, numbers: Array) -> tuple[Array, Array]:
        """Return the first root tensor with each location, and the flat element there.

        For negative numbers, the tensor is -1.
        """
        own = [self.own(t) for t in self.first]
        tensors = np.repeat(list(self.first), [len(x) for x in own])
        elements = np.concatenate([np.arange(len(x)) for x in own] or [np.zeros(0, np.int64)])
        where = np.concatenate(own or [np.zeros(0, np.int64)])
        place = np.zeros(self.count, np.int64)
        place[where[::-1]] = np.arange(len(where))[::-1]  # the first of equal ones remains
        at = place[np.maximum(numbers, 0)] if self.count else np.zeros_like(numbers)
        given = numbers >= 0
        return np.where(given, tensors[at], -1), np.where(given, elements[at], 0)


def flow(graph: GraphStore, roots: Mapping[int, Array], wanted: Iterable[int]) -> dict[int, Array]:
    """Pass values of root tensors' elements, in their shapes, on through views.

    The answer has an array for each wanted tensor, by number, and for all on the way.
    """
    arrays = dict(roots)
    for t in graph.view_order(wanted, arrays):
        producer = graph.producers[t]
        arrays[t] = graph.ops[producer].view([arrays[c] for c in graph.carriers(producer)])
    return arrays


@dataclass(frozen=True, eq=False)
class LocationMap:
    """The names of a tensor's locations: a number for each element, and the name of each number."""

    codes: TileMap
    names: Sequence[int | str]

    def used(self) -> list[int | str]:
        """Return the distinct names that occur."""
        if not self.codes.size:
            return []
        combined = outer_sum([steps.values for steps in self.codes.steps])
        _, first = np.unique(combined, return_index=True)
        return [self.names[code] for code in combined[np.sort(first)].tolist()]

    def firsts(self, start: int, size: int) -> Iterator[tuple[int | str, int]]:
        """Yield the distinct names in a run of elements, each with one of its elements."""
        if size:
            codes = self.codes.part(start, size)
            strides = zip(codes.steps, codes.strides, strict=True)
            elements = outer_sum([steps.starts * stride for steps, stride in strides])
            combined = outer_sum([steps.values for steps in codes.steps])
            for code, at in zip(*np.unique(combined, return_index=True), strict=True):
                yield self.names[int(code)], start + int(elements[at])

    def places(self, place: Mapping[int | str, int], flat: Array | None = None) -> Array:
        """Look up the names of elements, by default of all, in a table; -1 for missing names."""
        codes = self.codes.tiles() if flat is None else self.codes.at(flat)
        known, of = np.unique(codes, return_inverse=True)
        found = [place.get(self.names[code], -1) for code in known.tolist()]
        return np.array(found, np.int64)[of].reshape(codes.shape)


class Tiled(UnwindingOp, frozen=True, kw_only=True):
    """Tensors on given tiles; an op for internal use, not part of the file format.

    ``shapes`` and ``tiles`` are of each output, ``count`` is the number of tiles.
    """

    shapes: tuple[Shape, ...]
    tiles: tuple[TileMap, ...]
    count: int

    kind = Kind.SOURCE
    arity = 0

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shapes, which the maps must fit."""
        if [tiles.size for tiles in self.tiles] != [*map(size, self.shapes)]:
            raise InputError("a tile map must have one tile per element")
        return self.shapes


def hook_of(graph: GraphStore, i: int) -> str | None:
    """Return the hook that computes the tiles of an op's outputs, if any."""
    op = graph.ops[i]
    return op.hook if graph.tile_memory is not None and isinstance(op, Barrier) else None


def hooked(graph: GraphStore) -> list[int]:
    """Return the numbers of the barriers whose outputs' tiles are given by a hook."""
    return [i for i in range(len(graph.ops)) if hook_of(graph, i) is not None]


def mapping_of(graph: GraphStore, t: int) -> LocationMap | None:
    """Return the names of a root tensor's locations, if any."""
    producer = graph.producers[t]
    op = graph.ops[producer]
    if isinstance(op, Tiled):
        return LocationMap(op.tiles[t - graph.op_outputs[producer][0]], range(op.count))
    if isinstance(op, Source) and op.mapping is not None:
        return _coded(op.mapping)
    return None


@lru_cache(maxsize=256)
def _coded(values: tuple[int | str, ...]) -> LocationMap:
    names: dict[int | str, int] = {}
    codes = [names.setdefault(value, len(names)) for value in values]
    return LocationMap(tile_map_of(np.array(codes, np.int64)), tuple(names))


LayoutDict: TypeAlias = dict[str, tuple[Piece, ...]]


def check_graph(given: object) -> None:
    """Raise InputError unless the argument is a graph; the message says how to read one."""
    if not isinstance(given, GraphStore):
        raise InputError(f"expected a layoutopt.Graph, not {_kind(given, 'read')}")


def check_result(given: object) -> None:
    """Raise InputError unless the argument is a result; the message says how to read one."""
    if not isinstance(given, UnwindingResult):
        raise InputError(f"expected a result of unwind, not {_kind(given)}")


def layouts_in(
    graph: GraphStore, given: object, what: str, *, arrays: bool = True
) -> dict[str, Any]:
    """Return the layouts of a graph's sinks by name: pieces, or arrays where these may be given.

    Given is a result, or layouts by name or handle of sinks.  Each is read once, so that pieces
    and loops may be iterators.  Raises ``InputError``, which calls the argument ``what``.
    """
    if not isinstance(given, UnwindingResult | Mapping):
        needed = f"{what} must be pieces by sink name, or a result with layouts"
        raise InputError(f"{needed}, not {_kind(given)}")
    layouts: dict[str, Any] = {}
    with errors_at(what):
        found = given.layouts if isinstance(given, UnwindingResult) else given
        if found is None:
            raise InputError("the result has no layouts")
        for key, layout in found.items():
            name = layout_sink(graph, key).name
            if name in layouts:
                raise InputError(f"sink {name!r} is given twice")
            whole = arrays and isinstance(layout, np.ndarray)
            layouts[name] = layout if whole else _pieces(graph, name, layout, arrays)
    return layouts


def _pieces(graph: GraphStore, name: str, layout: Any, arrays: bool) -> tuple[Piece, ...]:
    """Return the pieces of a sink's layout with names and integers alone."""
    try:
        return tuple(_plain_piece(graph, piece) for piece in layout)
    except (TypeError, ValueError):
        needed = "an array of locations, or pieces" if arrays else "pieces"
        raise InputError(
            f"sink {name!r}: needs {needed} (origin, from, to, ((extent, from_stride, "
            "to_stride), ...))"
        ) from None


def _plain_piece(graph: GraphStore, piece: Any) -> Piece:
    """Return a piece with names and integers; a malformed one is a TypeError or ValueError."""
    origin, start, to, loops = piece
    name = graph.tensor(origin).name if isinstance(origin, Tensor) else origin
    if not isinstance(name, str):
        raise TypeError
    plain = tuple((index(n), index(a), index(b)) for n, a, b in loops)
    return name, index(start), index(to), plain


def _kind(given: object, reader: str = "read_result") -> str:
    """Describe a wrong argument's type; for a file name, add the function that reads it."""
    file = isinstance(given, str | Path)
    how = f"; use layoutopt.{reader}({str(given)!r}) to read a file" if file else ""
    return type(given).__name__ + how


def fresh_layouts(graph: GraphStore) -> LayoutDict:
    """Return layouts of a graph's sinks with all elements at locations of their own."""
    return {
        sink.name: ((sink.name, 0, 0, ((sink.size, 1, 1),)),) if sink.size else ()
        for sink in graph.sinks()
    }


def layout_sink(graph: GraphStore, key: Tensor | str) -> Tensor:
    """Return the handle of a sink; refuse other tensors."""
    tensor = graph.tensor(key)
    if tensor.kind is not Kind.SINK:
        raise InputError(f"{tensor.name!r} is not a sink; only sinks have layouts")
    return tensor


def checked_array(numbers: Locations, sink: Tensor, where: Array) -> Array:
    """Return an array of a sink's location numbers, -1 where none is given, flat."""
    if where.shape != sink.shape or not np.issubdtype(where.dtype, np.integer):
        raise InputError(
            f"sink {sink.name!r}: an array of locations must hold integers in shape "
            f"{list(sink.shape)}, got {where.dtype} in {list(where.shape)}"
        )
    if where.size and not (where.min() >= -1 and where.max() < numbers.count):
        raise InputError(
            f"sink {sink.name!r}: locations are numbered 0..{numbers.count - 1} (-1: not given), "
            f"got {where.min()}..{where.max()}"
        )
    return where.reshape(-1)


def checked_pieces(graph: GraphStore, sink: Tensor, pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Return the pieces of a sink, each inside it and an origin with locations of its own."""
    for n, piece in enumerate(pieces):
        origin = piece[0]
        fault: str | None = f"{origin!r} has no locations of its own"
        if graph.tile_memory is not None and origin == TILE:
            fault = result.fault(piece, sink.size, graph.tile_memory.tiles)
        elif graph.kind(origin) is not Kind.VIEW:
            fault = result.fault(piece, sink.size, graph.tensor(origin).size)
        if fault is not None:
            raise InputError(f"sink {sink.name!r}: piece {n}: {fault}")
    return pieces


def checked_layouts(numbers: Locations, layouts: Mapping[str, Any]) -> Placed:
    """Return what :func:`layouts_in` finds, checked: location numbers, flat, or pieces.

    Elements for which an array gives no location are at their own.
    """
    found: dict[int, Array | Sequence[Piece]] = {}
    for name, layout in layouts.items():
        sink = numbers.graph.tensor(name)
        with errors_at("layouts"):
            if isinstance(layout, np.ndarray):
                flat = checked_array(numbers, sink, layout)
                found[sink.index] = np.where(flat < 0, numbers.own(sink.index), flat)
            else:
                found[sink.index] = checked_pieces(numbers.graph, sink, layout)
    return found


def own_origins(graph: GraphStore, t: int) -> OriginArrays:
    """Return the origins of a root tensor's elements at their own locations."""
    elements = np.arange(size(graph.shapes[t]))
    return np.full(len(elements), t), elements


def nowhere(graph: GraphStore, t: int) -> OriginArrays:
    """Return origins of a sink's elements that tell nothing."""
    count = size(graph.shapes[t])
    return np.full(count, -1), np.zeros(count, np.int64)


def given_or_own(given: OriginArrays | None, own: OriginArrays) -> OriginArrays:
    """Return the given origins of a sink's elements, and the own ones of those without."""
    if given is None:
        return own
    return np.where(given[0] >= 0, given[0], own[0]), np.where(given[0] >= 0, given[1], own[1])


class FixedElements:
    """Elements of sinks whose locations are fixed beforehand, and their number ``count``.

    ``origins`` has for sinks, by tensor number, root tensor and flat element of each location; the
    tensor is -1 for elements that are not fixed.
    """

    def __init__(self, graph: GraphStore, origins: Origins | None = None) -> None:
        self.graph = graph
        self.origins = {t: o for t, o in (origins or {}).items() if (o[0] >= 0).any()}
        self.count = sum(int(np.count_nonzero(o[0] >= 0)) for o in self.origins.values())
        self._stand_ins = self._find_stand_ins()

    def whole(self, t: int) -> bool:
        """Return whether all elements of a sink are fixed."""
        return t in self.origins and bool((self.origins[t][0] >= 0).all())

    def touches(self, t: int) -> bool:
        """Return whether elements of a sink are fixed, or own fixed locations."""
        return t in self.origins or t in self._stand_ins

    def tensors(self, t: int) -> set[int]:
        """Return the root tensors whose locations elements of a sink take or own."""
        found: set[int] = set()
        for table in (self.origins, self._stand_ins):
            if t in table:
                found.update(unique(table[t][0]).tolist())
        return found - {-1}

    def own(self, t: int) -> OriginArrays:
        """Return root tensor and flat element of the fresh locations of a sink's elements."""
        return self._stand_ins.get(t) or own_origins(self.graph, t)

    def placed(self, t: int, own: OriginArrays) -> OriginArrays:
        """Return the origins of a sink's elements: fixed ones, and ``own`` ones of the others."""
        return given_or_own(self.origins.get(t), own)

    def _find_stand_ins(self) -> Origins:
        """Match free owners of taken locations with fixed elements whose own location is unused."""
        self._named: dict[int, Array] = {}
        for tensors, elements in self.origins.values():
            for t in unique(tensors[tensors >= 0]).tolist():
                if self.graph.op_of(t).kind is Kind.SINK:
                    named = self._named.setdefault(t, np.zeros(size(self.graph.shapes[t]), bool))
                    named[elements[tensors == t]] = True
        spare = self._spare()
        found: Origins = {}
        for t, named in self._named.items():
            free = self.origins[t][0] < 0 if t in self.origins else np.ones(len(named), bool)
            owners = np.flatnonzero(named & free)
            if len(owners):
                tensors, elements = own_origins(self.graph, t)
                tensors[owners], elements[owners] = spare[:, : len(owners)]
                spare = spare[:, len(owners) :]
                found[t] = tensors, elements
        return found

    def _spare(self) -> Array:
        """Return the fixed elements, tensor and element, whose own location is not taken."""
        parts = [np.zeros((2, 0), np.int64)]
        for t, (tensors, _) in self.origins.items():
            spare = tensors >= 0
            if t in self._named:
                spare &= ~self._named[t]
            elements = np.flatnonzero(spare)
            parts.append(np.stack([np.full(len(elements), t), elements]))
        return np.concatenate(parts, axis=1)
