"""Locations as numbers: which elements of a graph lie where, for given layouts.

Every element of every root tensor (sink, source, barrier output, fixed point) has a location
of its own with a number of its own, counted through the roots in order; elements of sources
with a ``mapping`` have the numbers of distinct values instead, which follow.  Views carry
numbers on.  Two elements lie at one location if their numbers are equal.
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
from layoutopt.base.errors import InputError
from layoutopt.base.memory import require
from layoutopt.base.numbers import unique
from layoutopt.base.result import Piece, UnwindingResult, outer_sum
from layoutopt.graphs.ops import Array, Kind, OpError, Shape, Source, UnwindingOp, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.tiles.blocks import TileMap, tile_map_of

Origins: TypeAlias = dict[int, tuple[Array, Array]]
"""Sinks by tensor number: for each element the root tensor whose location it takes, and the
flat element there."""


class Locations:
    """The numbers of a graph's locations.

    Parameters
    ----------
    graph
        The graph.

    Attributes
    ----------
    first
        The number of the first element of each root tensor.
    pool
        A number for each value of a mapping.
    count
        How many numbers there are.
    """

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        self.first: dict[int, int] = {}
        self.pool: dict[int | str, int] = {}
        count = 0
        for t, producer in enumerate(graph.producers):
            if graph.ops[producer].kind is not Kind.VIEW:
                self.first[t] = count
                count += size(graph.shapes[t])
        for op in graph.ops:
            for where in (op.mapping or ()) if isinstance(op, Source) else ():
                self.pool.setdefault(where, count + len(self.pool))
        self.count = count + len(self.pool)

    def own(self, t: int) -> Array:
        """Return the numbers of the locations that a root tensor has of its own, flat."""
        op = self.graph.ops[self.graph.producers[t]]
        if isinstance(op, Source) and op.mapping is not None:
            return np.array([self.pool[where] for where in op.mapping], np.int64)
        return np.arange(self.first[t], self.first[t] + size(self.graph.shapes[t]))

    def taken(self, t: int, layout: Iterable[Piece]) -> Array:
        """Return the numbers that a sink's elements take, flat."""
        where = self.own(t)
        for piece in layout:
            where[result.written(piece)] = self.own(self.graph.number(piece[0]))[result.read(piece)]
        return where

    def origins(self, numbers: Array) -> tuple[Array, Array]:
        """Return the first root tensor that has each location, and the flat element there.

        A tensor of -1 stands where the number is negative.
        """
        own = [self.own(t) for t in self.first]
        tensors = np.repeat(list(self.first), [len(x) for x in own])
        elements = np.concatenate([np.arange(len(x)) for x in own] or [np.zeros(0, np.int64)])
        where = np.concatenate(own or [np.zeros(0, np.int64)])
        place = np.zeros(self.count, np.int64)
        place[where[::-1]] = np.arange(len(where))[::-1]  # the first of equal ones stays
        at = place[np.maximum(numbers, 0)] if self.count else np.zeros_like(numbers)
        given = numbers >= 0
        return np.where(given, tensors[at], -1), np.where(given, elements[at], 0)


def flow(graph: GraphStore, roots: Mapping[int, Array], wanted: Iterable[int]) -> dict[int, Array]:
    """Return what stands for the elements of the wanted tensors, shaped.

    Parameters
    ----------
    roots
        What stands for the elements of each root tensor, shaped.
    wanted
        Tensor numbers.

    Returns
    -------
    dict
        Arrays by tensor number, also of all tensors on the way.
    """
    arrays = dict(roots)
    for target in wanted:
        todo = [target]
        while todo:
            t = todo[-1]
            producer = graph.producers[t]
            carriers = graph.carriers(producer)
            missing = [c for c in carriers if c not in arrays]
            if t in arrays or not missing:
                todo.pop()
                if t not in arrays:
                    view = graph.ops[producer].view([arrays[c] for c in carriers])
                    arrays[t] = np.asarray(view).reshape(graph.shapes[t])
            else:
                todo.extend(missing)
    return arrays


def locations_of(
    graph: GraphStore, layouts: Mapping[str, Sequence[Piece]] | None = None
) -> dict[str, Array]:
    """Return the location number of every element of every tensor.

    Parameters
    ----------
    layouts
        Pieces by sink name.  Elements that they leave out, and all without them, lie at
        locations of their own.

    Returns
    -------
    dict
        For each tensor, by name, an array of its shape.  Equal numbers are one location;
        the numbers of elements of roots do not depend on the layouts.

    Raises
    ------
    SizeError
        If the arrays do not fit the memory.
    """
    require(8 * sum(map(size, graph.shapes)), "a number for every element")
    numbers, given = Locations(graph), layouts or {}
    roots = {}
    for t in numbers.first:
        sink = graph.ops[graph.producers[t]].kind is Kind.SINK
        where = numbers.taken(t, given.get(graph.tensor_name(t), ())) if sink else numbers.own(t)
        roots[t] = where.reshape(graph.shapes[t])
    every = flow(graph, roots, range(len(graph.shapes)))
    return {graph.tensor_name(t): every[t] for t in range(len(graph.shapes))}


@dataclass(frozen=True, eq=False)
class LocationMap:
    """The names of a tensor's locations.

    Parameters
    ----------
    codes
        A number for each element.
    names
        The name that each number stands for.
    """

    codes: TileMap
    names: Sequence[int | str]

    def used(self) -> list[int | str]:
        """Return the names that occur, each once."""
        if not self.codes.size:
            return []
        combined = outer_sum([steps.values for steps in self.codes.steps])
        _, first = np.unique(combined, return_index=True)
        return [self.names[code] for code in combined[np.sort(first)].tolist()]

    def firsts(self, start: int, size: int) -> Iterator[tuple[int | str, int]]:
        """Yield the names of a run of elements, each with an element that has it.

        Parameters
        ----------
        start, size
            First flat element, and how many.
        """
        if size:
            codes = self.codes.part(start, size)
            strides = zip(codes.steps, codes.strides, strict=True)
            elements = outer_sum([steps.starts * stride for steps, stride in strides])
            combined = outer_sum([steps.values for steps in codes.steps])
            for code, at in zip(*np.unique(combined, return_index=True), strict=True):
                yield self.names[int(code)], start + int(elements[at])

    def places(self, place: Mapping[int | str, int], flat: Array | None = None) -> Array:
        """Return what a table has for the names of elements, -1 for names it does not have.

        Parameters
        ----------
        place
            A number for some names.
        flat
            Flat elements; all by default.
        """
        codes = self.codes.tiles() if flat is None else self.codes.at(flat)
        known, of = np.unique(codes, return_inverse=True)
        found = [place.get(self.names[code], -1) for code in known.tolist()]
        return np.array(found, np.int64)[of].reshape(codes.shape)


class Tiled(UnwindingOp, frozen=True, kw_only=True):
    """Tensors that lie on tiles; made from graphs, never read from files.

    Parameters
    ----------
    shapes
        The shape of each output.
    tiles
        The tile of each element, by output.
    count
        How many tiles there are.
    """

    shapes: tuple[Shape, ...]
    tiles: tuple[TileMap, ...]
    count: int

    kind = Kind.SOURCE
    arity = 0

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shapes, if the maps fit them."""
        if [tiles.size for tiles in self.tiles] != [*map(size, self.shapes)]:
            raise OpError("a tile map is of another size")
        return self.shapes


def mapping_of(graph: GraphStore, t: int) -> LocationMap | None:
    """Return the names of a root tensor's locations, if it has any."""
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


Layouts: TypeAlias = dict[str, tuple[Piece, ...]]


def check_graph(given: object) -> None:
    """Refuse what is no graph, and tell how to read one.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(given, GraphStore):
        raise InputError(f"a Graph is needed, not {_kind(given, 'read')}")


def check_result(given: object) -> None:
    """Refuse what is no result, and tell how to read one.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(given, UnwindingResult):
        raise InputError(f"a result of unwind is needed, not {_kind(given)}")


def check_layouts(given: object, what: str) -> None:
    """Refuse what can hold no layouts, and tell how to read a result.

    Raises
    ------
    InputError
        That begins with the name of the argument.
    """
    if not isinstance(given, UnwindingResult | Mapping):
        needed = f"{what} must be pieces by sink name, or a result with layouts"
        raise InputError(f"{needed}, not {_kind(given)}")


def _kind(given: object, reader: str = "read_result") -> str:
    """Return what is given instead; of the name of a file, also which function reads it."""
    file = isinstance(given, str | Path)
    how = f"; layoutopt.{reader}({str(given)!r}) reads one" if file else ""
    return type(given).__name__ + how


def given_layouts(graph: GraphStore, given: object) -> Layouts:
    """Return layouts as pieces by sink name.

    Parameters
    ----------
    graph
        What they are of.
    given
        A result, or pieces by the name or handle of sinks, in whatever sequences.

    Raises
    ------
    InputError
        If it is neither, or the result has no layouts.
    """
    check_layouts(given, "layouts")
    found: Any = given.layouts if isinstance(given, UnwindingResult) else given
    if found is None:
        raise InputError("the result has no layouts")
    layouts: Layouts = {}
    for key, pieces in found.items():
        name = graph.tensor(key).name if isinstance(key, Tensor) else key
        try:
            layouts[name] = tuple(map(plain_piece, pieces))
        except (TypeError, ValueError):
            raise InputError(
                f"sink {name!r}: needs pieces (origin, from, to, ((extent, from_stride, "
                "to_stride), ...))"
            ) from None
    return layouts


def plain_piece(piece: Any) -> Piece:
    """Return a piece with names and integers only, whatever sequences it was written in.

    Raises
    ------
    TypeError, ValueError
        If it is no piece.
    """
    origin, start, to, loops = piece
    name = origin.name if isinstance(origin, Tensor) else origin
    if not isinstance(name, str):
        raise TypeError
    plain = tuple((index(n), index(a), index(b)) for n, a, b in loops)
    return name, index(start), index(to), plain


class Given:
    """The given elements of a graph.

    Parameters
    ----------
    graph
        The graph.
    origins
        For sinks, by tensor number: root tensor and flat element of each location; a tensor
        of -1 where nothing is given.

    Attributes
    ----------
    count
        The number of given elements.
    """

    def __init__(self, graph: GraphStore, origins: Origins | None = None) -> None:
        self.graph = graph
        self.origins = {t: o for t, o in (origins or {}).items() if (o[0] >= 0).any()}
        self.count = sum(int(np.count_nonzero(o[0] >= 0)) for o in self.origins.values())
        self._stand_ins = self._find_stand_ins()

    def whole(self, t: int) -> bool:
        """Return whether all elements of a sink are given."""
        return t in self.origins and bool((self.origins[t][0] >= 0).all())

    def touches(self, t: int) -> bool:
        """Return whether a sink differs from one of which nothing is given."""
        return t in self.origins or t in self._stand_ins

    def tensors(self, t: int) -> set[int]:
        """Return the root tensors whose locations elements of a sink are given or own."""
        found: set[int] = set()
        for table in (self.origins, self._stand_ins):
            if t in table:
                found.update(unique(table[t][0]).tolist())
        return found - {-1}

    def own(self, t: int) -> tuple[Array, Array]:
        """Return root tensor and flat element of the fresh locations that a sink's elements own."""
        if t in self._stand_ins:
            return self._stand_ins[t]
        elements = np.arange(size(self.graph.shapes[t]))
        return np.full(len(elements), t), elements

    def placed(self, t: int, own: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return origins of a sink's elements, the given ones in place of others.

        Parameters
        ----------
        own
            Origins of those that are not given.
        """
        if t not in self.origins:
            return own
        tensors, elements = self.origins[t]
        return np.where(tensors >= 0, tensors, own[0]), np.where(tensors >= 0, elements, own[1])

    def _find_stand_ins(self) -> Origins:
        """Pair free owners of given locations with given elements that own none."""
        self._named: dict[int, Array] = {}
        for tensors, elements in self.origins.values():
            for t in unique(tensors[tensors >= 0]).tolist():
                if self.graph.ops[self.graph.producers[t]].kind is Kind.SINK:
                    named = self._named.setdefault(t, np.zeros(size(self.graph.shapes[t]), bool))
                    named[elements[tensors == t]] = True
        spare = self._spare()
        found: Origins = {}
        for t, named in self._named.items():
            free = self.origins[t][0] < 0 if t in self.origins else np.ones(len(named), bool)
            owners = np.flatnonzero(named & free)
            if len(owners):
                tensors, elements = np.full(len(named), t), np.arange(len(named))
                tensors[owners], elements[owners] = spare[:, : len(owners)]
                spare = spare[:, len(owners) :]
                found[t] = tensors, elements
        return found

    def _spare(self) -> Array:
        """Return the given elements, tensor and element, whose own location is not given."""
        parts = [np.zeros((2, 0), np.int64)]
        for t, (tensors, _) in self.origins.items():
            spare = tensors >= 0
            if t in self._named:
                spare &= ~self._named[t]
            elements = np.flatnonzero(spare)
            parts.append(np.stack([np.full(len(elements), t), elements]))
        return np.concatenate(parts, axis=1)
