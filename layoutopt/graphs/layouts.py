"""Layouts as arguments: pieces by sink or a result, and elements that are fixed beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import unique
from layoutopt.base.result import Piece, UnwindingResult
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor

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
