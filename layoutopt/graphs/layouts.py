"""What functions of a graph and its layouts are given: a graph, and pieces by sink or a result."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any, TypeAlias

from layoutopt.errors import InputError
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.pieces import Piece
from layoutopt.result import UnwindingResult

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
