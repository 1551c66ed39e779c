"""The notations by name: which one a text is in, and from one to another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

from layoutopt.layout import glow, onednn, tvm, xla
from layoutopt.layout.parts import (
    ANY,
    Dialect,
    Dim,
    LayoutError,
    axes_of,
    is_positional,
    logical_order,
    outer_and_inner,
    positions,
    renamed,
)

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)

READERS: dict[Dialect, Callable[[str], tuple[Dim, ...]]] = {
    "glow": glow.read,
    "tvm": tvm.read,
    "onednn": onednn.read,
    "xla": xla.read,
}

WRITERS: dict[Dialect, Callable[[tuple[Dim, ...]], str]] = {
    "glow": glow.write,
    "tvm": tvm.write,
    "onednn": onednn.write,
    "xla": xla.write,
}

UNDEFINED: dict[Dialect, str] = {"tvm": tvm.UNDEFINED, "onednn": onednn.UNDEFINED}
"""How an undefined layout is written; Glow and XLA have none."""

_XLA = re.compile(r"\s*(\w+\[[\d,\s]*\])?\{")
_GLOW = re.compile(r"[*=:\s\0]")
_TOKEN = re.compile(r"\d+[A-Za-z]?|[A-Za-z]")


def check_dialect(dialect: Dialect) -> Dialect:
    """Return a dialect if it is one.

    Raises
    ------
    LayoutError
        If it is not.
    """
    if dialect not in DIALECTS:
        raise LayoutError(f"dialect must be one of {', '.join(DIALECTS)}, got {dialect!r}")
    return dialect


def recognised(text: str) -> Dialect:
    """Return the dialect of a text that does not come with a dialect.

    The first rule that fits decides, so each text has one answer:

    1. a brace first (a shape before it or not): XLA;
    2. ``__undef__``: TVM, and ``undef``: oneDNN;
    3. ``*``, ``=``, ``:`` or blanks, as only Glow has them: Glow;
    4. an axis in lower case only, or all axes in blocks and one in several: oneDNN (``nchw``,
       ``aBcd16b``, ``OI8i16o2i``);
    5. a digit, a bracket, a lower-case letter, or more than six axes: TVM (``NCHW16c``);
    6. up to six upper-case letters, which Glow and TVM write and mean alike: Glow.

    ``OI16i16o`` is TVM's by rule 5; oneDNN writes and means it alike.
    """
    if _XLA.match(text):
        return "xla"
    for dialect, undefined in UNDEFINED.items():
        if text == undefined:
            return dialect
    if _GLOW.search(text):
        return "glow"
    tokens = _TOKEN.findall(text)
    axes = {token for token in tokens if token.isalpha()}
    blocks = [token[-1].upper() for token in tokens if not token.isalpha()]
    several = set(blocks) == axes and len(blocks) > len(axes) and "[" not in text
    if several or any(axis.islower() and axis.upper() not in axes for axis in axes):
        return "onednn"
    plain = len(text) <= glow.MOST_DIMS and not re.search(r"[\d\[\]a-z]", text)
    return "glow" if plain else "tvm"


def converted(
    dims: tuple[Dim, ...], source: Dialect, target: Dialect, logical: str | None
) -> tuple[Dim, ...]:
    """Return dimensions as another dialect writes them.

    Parameters
    ----------
    dims
        Dimensions of the dialect ``source``.
    logical
        As for :meth:`~layoutopt.layout.layout.Layout.to`.

    Raises
    ------
    LayoutError
        If the dialect ``target`` cannot say exactly this.
    """
    if source == "xla":
        dims = xla.without_units(dims)
    axes = axes_of(dims)
    if ANY in axes and target != "glow":
        raise LayoutError("only Glow has dimensions that may be anything (*)")
    if target == "onednn":
        outer_and_inner(dims, "oneDNN")
    if target == "xla":
        bare, dims = dims, xla.with_units(dims)
        if xla.without_units(dims) != bare:
            raise LayoutError("blocks of 1 could not be told from those that fill XLA's tiles")
    if ANY not in axes:
        dims = renamed(dims, _letters(axes, target, logical))
    WRITERS[target](dims)
    return dims


def _letters(axes: str, target: Dialect, logical: str | None) -> dict[str, str]:
    """Return the letter of each axis in another dialect."""
    own = logical_order(axes)
    given = own if logical is None else logical
    if not isinstance(given, str) or not re.fullmatch("[A-Z]*", given):
        raise LayoutError(f"logical must be upper-case letters, got {given!r}")
    if is_positional(axes):
        if given != own and (is_positional(given) or not len(own) == len(set(given)) == len(given)):
            raise LayoutError(f"logical must name {len(own)} different axes, got {given!r}")
        return dict(zip(own, own if target == "xla" else given, strict=True))
    if sorted(given) != sorted(own):
        raise LayoutError(f"logical must have the axes {own} in some order, got {given!r}")
    if target == "onednn":
        numbered = logical is not None or not onednn.has_letters(axes)
    else:
        numbered = target == "xla"
    return dict(zip(given, positions(len(own)) if numbered else given, strict=True))
