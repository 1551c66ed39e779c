"""Tensors of conversion graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, Literal

from layoutopt.errors import InputError
from layoutopt.layout.layout import Layout
from layoutopt.layout.parts import is_positional
from layoutopt.operators.op import Shape, Size
from layoutopt.operators.operands import any_layout

Kind = Literal["input", "constant", "activation"]


@dataclass(frozen=True)
class ConversionTensor:
    """A tensor of a conversion graph.

    Parameters
    ----------
    name
        Its name.
    shape
        The size of each dimension as it is written: a number, a name for a symbolic size, None
        for an unknown one.  None if not even the rank is known.
    element_bytes
        Bytes of an element.
    kind
        ``input`` (of the graph), ``constant`` or ``activation`` (the result of an op).
    layout
        The layout that it comes in, a dimension for each of the shape; ``*`` for any axis.  That
        of a result follows from its op, see :func:`~layoutopt.conversion.carried.carried`.
    """

    name: str
    shape: Shape | None
    element_bytes: int
    kind: Kind
    layout: Layout


def checked_tensor(
    name: str, shape: Iterable[Size] | None, kind: Kind, layout: str | Layout, element_bytes: Any
) -> ConversionTensor:
    """Return a tensor; the arguments are its fields, and ``"*"`` is any layout of its rank.

    Raises
    ------
    InputError
        If one of them is wrong; the text names the tensor.
    """
    try:
        known = checked_shape(shape)
        rank = None if known is None else len(known)
        laid = any_layout(rank) if layout == "*" else _layout(layout, rank)
        if not isinstance(element_bytes, int) or element_bytes < 1:
            raise InputError(f"element_bytes must be 1 or more, not {element_bytes!r}")
    except InputError as error:
        raise InputError(f"tensor {name!r}: {error.reason}") from None
    return ConversionTensor(name, known, element_bytes, kind, laid)


def _layout(given: str | Layout, rank: int | None) -> Layout:
    layout = given if isinstance(given, Layout) else Layout.parse(given)
    if layout.axes and is_positional(layout.axes):
        raise InputError(f"layout {layout} names axes by their place; give letters, as in NHWC")
    if not layout.undefined and len(layout.dims) != rank:
        has = "of unknown rank" if rank is None else f"of {rank} dimensions"
        raise InputError(f"layout {layout} has {len(layout.dims)} dimensions, for a tensor {has}")
    return layout


def checked_shape(given: Iterable[Size] | None) -> Shape | None:
    """Return a shape of Python integers, names and None.

    Raises
    ------
    InputError
        If a size is something else, or negative.
    """
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"shape must be a list of sizes, not {given!r}")
    return tuple(map(_size, given))


def _size(given: Any) -> Size:
    if given is None or isinstance(given, str):
        return given
    try:
        size = index(given)
    except TypeError:
        raise InputError(f"size {given!r} must be a number, a name or None") from None
    if size < 0:
        raise InputError(f"size {size} must be 0 or more")
    return size
