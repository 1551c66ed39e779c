"""Layouts as oneDNN's format tags: ``acdb``, ``aBcd16b``, ``ABcd16b16a``, ``nChw16c``.

First all axes, outermost first, each in upper case if and only if it is blocked; then the blocks,
a number and a letter each, from the outer inwards.  Letters are positions in the tensor's shape
(``a`` is axis 0), or the names of the aliases: n, c, d, h, w, o, i, g, t, l and x.  Every alias is
read and written, whether or not oneDNN has a constant for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters, ascii_lowercase, digits

from layoutopt.layout.parts import (
    Block,
    Dim,
    LayoutError,
    Scanner,
    is_positional,
    outer_and_inner,
    positions,
)

UNDEFINED = "undef"
NAMES = "NCDHWOIGTLX"
MOST_AXES = 12


def read(text: str) -> tuple[Dim, ...]:
    """Return the dimensions of a tag."""
    scan = Scanner(text)
    if text == "any":
        raise scan.error("'any' leaves the layout to oneDNN, and is none itself")
    outer = ""
    while letter := scan.take(ascii_letters):
        if letter.upper() in outer.upper():
            raise scan.error(f"axis {letter} is there twice", scan.at - 1)
        outer += letter
    if not outer or (scan.char and scan.char not in digits):
        raise scan.expected("a letter" if not outer else "a letter or a number")
    _check_names(scan, outer)
    inner = []
    while scan.char:
        inner.append(_inner(scan, outer))
    blocked = {block.axis for block in inner}
    for at, letter in enumerate(outer):
        if letter.isupper() and letter not in blocked:
            raise scan.error(f"{letter} is upper-case, but no block such as 16{letter.lower()}", at)
        if letter.islower() and letter.upper() in blocked:
            raise scan.error(f"expected {letter.upper()}, since the axis is blocked", at)
    return tuple(Dim((block,)) for block in [*map(Block, outer.upper()), *inner])


def write(dims: tuple[Dim, ...]) -> str:
    """Return the tag of a layout, if oneDNN has one."""
    if not dims:
        raise LayoutError("oneDNN has no tag for a scalar")
    axes, inner = outer_and_inner(dims, "oneDNN")
    if len(axes) > MOST_AXES:
        raise LayoutError(f"oneDNN has at most {MOST_AXES} axes, not {len(axes)}")
    if not has_letters(axes):
        raise LayoutError(f"oneDNN names axes by position or by {_listed(NAMES)}, not {axes}")
    blocked = {block.axis for block in inner}
    outer = "".join(axis if axis in blocked else axis.lower() for axis in axes)
    return outer + "".join(map(str, inner))


def has_letters(axes: str) -> bool:
    """Return whether oneDNN can write axes by these letters."""
    return is_positional(axes) or set(axes) <= set(NAMES)


def _check_names(scan: Scanner, outer: str) -> None:
    """Refuse letters that are neither positions with no gap nor names."""
    axes = outer.upper()
    if len(axes) > MOST_AXES:
        raise scan.error(f"expected at most {MOST_AXES} axes", MOST_AXES)
    if has_letters(axes):
        return
    if "A" not in axes:
        at = next(i for i, axis in enumerate(axes) if axis not in NAMES)
        raise scan.error(f"expected positions from a on, or names ({_listed(NAMES)})", at)
    allowed = positions(len(axes))
    missing = next(axis for axis in allowed if axis not in axes)
    at = next(i for i, axis in enumerate(axes) if axis not in allowed)
    raise scan.error(
        f"expected {_listed(allowed)} for {len(axes)} axes, but {missing.lower()} is missing", at
    )


def _inner(scan: Scanner, outer: str) -> Block:
    """Return the block that comes next, and pass it."""
    size = scan.number("the size of a block")
    if not (letter := scan.take(ascii_lowercase)):
        raise scan.expected(f"a lower-case letter after the size {size}")
    if letter.upper() not in outer.upper():
        raise scan.error(f"this is a block of an axis {letter} that is missing", scan.at - 1)
    return Block(letter.upper(), size)


def _listed(axes: Sequence[str]) -> str:
    """Return letters as tags have them, with commas."""
    return ", ".join(axes).lower()
