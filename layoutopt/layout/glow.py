"""Layouts as Glow writes them: ``N[a=32]HW[mine:anything]C``, ``****``.

Each dimension is a letter or ``*`` (anything), followed by extensions in brackets: ``a=bytes``
aligns the dimension's stride, ``namespace:anything`` is kept and never looked into.  A letter
names the same axis in either case; the case is kept for printing.  Blanks and NULs mean nothing.
The empty text is a scalar's layout.

Stricter than Glow, where these make no sense: an axis twice, an alignment of 0 or with leading
zeros, and two alignments of one dimension.
"""

from __future__ import annotations

from string import ascii_letters

from layoutopt.layout.parts import (
    ANY,
    Block,
    Dim,
    LayoutError,
    Scanner,
    axes_of,
    check_axes,
    is_alignment,
)

MOST_DIMS = 6
BLANKS = " \t\0"


def read(text: str) -> tuple[Dim, ...]:
    """Return the dimensions of a Glow layout."""
    scan = Scanner(text)
    dims: list[Dim] = []
    while scan.char:
        start = scan.at
        if scan.take(BLANKS):
            continue
        if scan.take("["):
            if not dims:
                raise scan.error("expected a dimension (a letter or '*') before '['", start)
            last = dims.pop()
            extensions = (*last.extensions, _extension(scan, last))
            dims.append(Dim(last.blocks, extensions, last.lower))
        elif letter := scan.take(ascii_letters + ANY):
            axis = letter.upper()
            if axis in axes_of(dims).replace(ANY, ""):
                raise scan.error(f"axis {axis} is there twice", start)
            if len(dims) == MOST_DIMS:
                raise scan.error(f"expected at most {MOST_DIMS} dimensions", start)
            dims.append(Dim((Block(axis),), lower=letter.islower()))
        else:
            raise scan.expected("a letter, '*' or '['")
    return tuple(dims)


def write(dims: tuple[Dim, ...]) -> str:
    """Return the text of a layout, if Glow can say it."""
    check_axes(dims)
    if len(dims) > MOST_DIMS:
        raise LayoutError(f"Glow has at most {MOST_DIMS} dimensions, not {len(dims)}")
    for dim in dims:
        if any(block.size is not None for block in dim.blocks):
            raise LayoutError(f"Glow has no blocks such as {dim}")
        if len(dim.blocks) > 1:
            raise LayoutError(f"Glow has no packed axes such as {dim}")
        for extension in dim.extensions:
            check_extension(extension)
        if len([e for e in dim.extensions if is_alignment(e)]) > 1:
            raise LayoutError(f"{dim} has more than one alignment")
    return "".join(map(str, dims))


def check_extension(extension: str) -> None:
    """Refuse an extension that could not be read back."""
    scan = Scanner(f"[{extension}]")
    scan.take("[")
    _extension(scan, Dim((Block(ANY),)))
    if scan.char:
        raise scan.error("an extension cannot contain ']'", scan.at - 1)


def _extension(scan: Scanner, dim: Dim) -> str:
    """Return the extension that comes next, after its opening bracket, and pass it."""
    start = scan.at
    end = scan.text.find("]", start)
    if end < 0:
        raise scan.error("expected ']' to close the extension", len(scan.text))
    if ":" in scan.text[start:end]:
        scan.at = end + 1
        return scan.text[start:end]
    if not scan.text.startswith("a=", start):
        raise scan.error("expected an extension 'a=bytes' or 'namespace:anything'")
    scan.at += len("a=")
    alignment = scan.number("an alignment in bytes")
    if not scan.take("]"):
        raise scan.expected("']'")
    if any(is_alignment(extension) for extension in dim.extensions):
        raise scan.error("expected one alignment for a dimension", start)
    return f"a={alignment}"
