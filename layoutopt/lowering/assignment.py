"""Layouts as users give them: whole or in part, as pieces or as arrays of locations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base import result
from layoutopt.base.errors import InputError
from layoutopt.base.limits import require
from layoutopt.base.numbers import unique
from layoutopt.base.result import Piece, UnwindingResult
from layoutopt.check import elements
from layoutopt.check.elements import Evaluation
from layoutopt.graphs.locations import (
    TILE,
    FixedElements,
    Locations,
    Origins,
    check_graph,
    check_layouts,
    checked_array,
    checked_pieces,
    layout_sink,
    plain_piece,
)
from layoutopt.graphs.ops import Array, Kind
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.lowering.elements.kinds import LayoutDict, pieces_of

Assignment: TypeAlias = Mapping[Any, Sequence[Piece] | Array] | UnwindingResult
"""For some sinks, by name or handle, where their elements lie: pieces that cover a part of the
sink or all of it, or an array of its shape with the number that
:meth:`layoutopt.Graph.locations` gives to each location, -1 where none is given.  A result
gives all its layouts."""

ELEMENT_BYTES = 64
"""What is kept of a sink's element while layouts are read."""


def read_origins(graph: GraphStore, given: Assignment | None, what: str) -> Origins:
    """Return where the given elements lie.

    Parameters
    ----------
    what
        Name of the argument, for errors.

    Returns
    -------
    dict
        For each sink that is given anything, by tensor number: root tensor and flat element of
        every location, a tensor of -1 for elements that are not given.

    Raises
    ------
    InputError
        If a sink, a piece or an array does not fit the graph.
    """
    if given is not None:
        check_layouts(given, what)
    if isinstance(given, UnwindingResult):
        given = given.layouts
    if given:
        _require_room(graph, what)
    found: Origins = {}
    numbers: Locations | None = None
    for key, layout in (given or {}).items():
        try:
            sink = layout_sink(graph, key)
            if isinstance(layout, np.ndarray):
                numbers = numbers or Locations(graph)
                found[sink.index] = numbers.origins(checked_array(numbers, sink, layout))
            else:
                _check_named(graph, layout)
                found[sink.index] = _of_pieces(graph, sink, layout)
        except InputError as error:
            raise InputError(f"{what}: {error.reason}") from None
    return found


def _check_named(graph: GraphStore, layout: Any) -> None:
    """Refuse pieces that name tiles themselves, of which no tensor is the origin."""
    pieces = layout if isinstance(layout, tuple | list) else ()
    named = [p[0] for p in pieces if isinstance(p, tuple | list) and p]
    if graph.tile_memory is not None and TILE in named:
        raise InputError(f"pieces of origin {TILE!r} are not read here; name a source on the tile")


def by_name(graph: GraphStore, given: Assignment | None, what: str) -> Assignment | None:
    """Return layouts by the names of their sinks, which fit copies of the graph, too.

    Raises
    ------
    InputError
        If they are no layouts, or a handle is of another graph.
    """
    if given is None:
        return None
    check_layouts(given, what)
    if isinstance(given, UnwindingResult):
        return given
    return {graph.tensor(k).name if isinstance(k, Tensor) else k: x for k, x in given.items()}


def whole_layouts(graph: GraphStore, given: Assignment) -> LayoutDict | None:
    """Return layouts that pieces give to all sinks; ``None`` where anything else is given."""
    layouts = given.layouts if isinstance(given, UnwindingResult) else given
    found: LayoutDict = {}
    for key, layout in (layouts or {}).items():
        if isinstance(layout, np.ndarray):
            return None
        try:
            found[layout_sink(graph, key).name] = tuple(plain_piece(piece) for piece in layout)
        except (InputError, TypeError, ValueError):
            return None  # reading it once more tells what is wrong
    return found if found.keys() == {sink.name for sink in graph.sinks()} else None


def complete(graph: GraphStore, given: Assignment, what: str) -> tuple[LayoutDict, int]:
    """Return layouts of all sinks, and how many elements the given ones leave out.

    Elements that are left out get locations of their own.  Sinks that pieces cover keep these
    pieces as they are.
    """
    _require_room(graph, what)
    origins = read_origins(graph, given, what)
    missing = sum(t.size for t in graph.sinks()) - FixedElements(graph, origins).count
    layouts = _layouts(graph, origins)
    whole = given.layouts if isinstance(given, UnwindingResult) else given
    for key, layout in (whole or {}).items():
        sink = graph.tensor(key)
        if not isinstance(layout, np.ndarray) and (origins[sink.index][0] >= 0).all():
            layouts[sink.name] = tuple(plain_piece(piece) for piece in layout)
    return layouts, missing


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Layouts that a computation begins with.

    Parameters
    ----------
    given
        The elements that are kept.
    start
        Where all elements lie at first, by sink; ``None`` without a start.
    layouts, evaluation
        The same as pieces, or what is kept with the rest at locations of its own, and its
        worth; ``None`` if nothing was given.
    """

    given: FixedElements
    start: Origins | None = None
    layouts: LayoutDict | None = None
    evaluation: Evaluation | None = None


def begin(graph: GraphStore, fixed: Assignment | None, start: Assignment | None) -> WarmStart:
    """Read what is kept, and what to begin with.

    Raises
    ------
    InputError
        If it does not fit the graph, or breaks barrier order.
    """
    if fixed is None and start is None:
        return WarmStart(FixedElements(graph))
    _require_room(graph, "fixed" if start is None else "start")
    given = FixedElements(graph, read_origins(graph, fixed, "fixed"))
    if graph.tile_memory is not None:
        _check_on_tiles(graph, given)
    origins = read_origins(graph, start, "start")
    origins = {
        sink.index: given.placed(sink.index, _placed(sink, origins.get(sink.index)))
        for sink in graph.sinks()
    }
    layouts = _layouts(graph, origins)
    found = elements.evaluate(graph, layouts)
    if found.violations:
        what = "fixed" if start is None else "start"
        raise InputError(f"{what}: {found.violations[0]}")
    return WarmStart(given, None if start is None else origins, layouts, found)


def _check_on_tiles(graph: GraphStore, given: FixedElements) -> None:
    """Refuse what is kept at fresh locations: on a tile memory these are tiles of others, too."""
    for t in given.origins:
        for origin in sorted(given.tensors(t)):
            if graph.ops[graph.producers[origin]].kind is Kind.SINK:
                raise InputError(
                    f"fixed: elements of sink {graph.tensor_name(t)!r} are given locations of sink "
                    f"{graph.tensor_name(origin)!r}; on a tile memory only those of sources, fixed "
                    "points and barriers are kept"
                )


def _placed(sink: Tensor, origin: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Return the origins of all elements of a sink, its own where none is given."""
    own = np.full(sink.size, sink.index), np.arange(sink.size)
    if origin is None:
        return own
    tensors, elements = origin
    return np.where(tensors < 0, own[0], tensors), np.where(tensors < 0, own[1], elements)


def _layouts(graph: GraphStore, origins: Origins) -> LayoutDict:
    return {
        sink.name: pieces_of(graph, *_placed(sink, origins.get(sink.index)))
        for sink in graph.sinks()
    }


def _require_room(graph: GraphStore, what: str) -> None:
    """Refuse graphs whose sinks do not fit the memory element by element."""
    elements = sum(sink.size for sink in graph.sinks())
    require(ELEMENT_BYTES * elements, f"{what}: an array of all elements of all sinks")


def _of_pieces(graph: GraphStore, sink: Tensor, layout: Any) -> tuple[Array, Array]:
    tensors, elements = np.full(sink.size, -1), np.zeros(sink.size, np.int64)
    for n, piece in enumerate(checked_pieces(graph, sink, layout)):
        written = result.written(piece)
        if (tensors[written] >= 0).any() or _repeats(written):
            told = "sets an element that is set already"
            raise InputError(f"sink {sink.name!r}: piece {n}: {told}")
        tensors[written], elements[written] = graph.number(piece[0]), result.read(piece)
    return tensors, elements


def _repeats(elements: Array) -> bool:
    return len(unique(elements)) < len(elements)


def evaluate(graph: GraphStore, layouts: Assignment) -> Evaluation:
    """Score layouts by the specification, with no solver, and check every rule.

    Parameters
    ----------
    graph
        The graph.
    layouts
        Where sinks lie, whole or in part; see :data:`layoutopt.lowering.assignment.Assignment`.
        Elements that are left out count as lying at locations of their own, and are counted.

    Raises
    ------
    InputError
        If a sink, a piece or an array does not fit the graph.
    SizeError
        If layouts that leave elements out, or arrays, are of sinks that do not fit the memory.
    """
    check_graph(graph)
    check_layouts(layouts, "layouts")
    whole = whole_layouts(graph, layouts)
    if whole is not None:  # no array of elements is needed
        found = elements.evaluate(graph, whole)
        if found.score is not None:
            return found
    full, missing = complete(graph, layouts, "layouts")
    return replace(elements.evaluate(graph, full), missing=missing)
