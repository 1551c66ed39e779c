"""Layouts as XLA writes them: ``{3,2,1,0}``, ``{1,0:T(8,128)(2,1)}``.

The numbers are logical axes, the innermost first.  The first tile cuts the innermost dimensions
into blocks, each further tile cuts those blocks again.  Blanks mean nothing.

Tiles become blocks, and blocks of one axis nest.  What cannot be said so is refused: further tiles
that reach over the tile before or do not divide it, and tiles that combine dimensions (``*``).
"""

from __future__ import annotations

from collections.abc import Iterable

from layoutopt.layout.parts import (
    Block,
    Dim,
    LayoutError,
    Scanner,
    is_positional,
    outer_and_inner,
    positions,
)

MOST_AXES = 26
BLANKS = " \t"

Tile = list[tuple[int, int]]
"""Sizes, outermost first, each with its offset in the text."""


def read(text: str) -> tuple[Dim, ...]:
    """Return the dimensions of an XLA layout."""
    scan = Scanner(text, BLANKS)
    if not scan.take("{"):
        raise scan.expected("'{' (the layout alone, without element type and shape)")
    axes = "" if scan.char == "}" else _axes(scan)
    tiles = _tiles(scan) if scan.take(":") else []
    if not scan.take("}"):
        raise scan.expected("'}' (of what may come before it, only tiles T(...) are read)")
    if scan.char:
        raise scan.expected("the end")
    _check_tiles(scan, tiles, len(axes))
    sizes = [[size for size, _ in tile] for tile in tiles]
    inner: list[Block] = []
    for tile, finer in zip(sizes, [*sizes, []][1:], strict=True):
        cuts = [1] * (len(tile) - len(finer)) + finer
        counts = [size // cut for size, cut in zip(tile, cuts, strict=True)]
        inner += map(Block, axes[-len(tile) :], counts)
    return tuple(Dim((block,)) for block in [*map(Block, axes), *inner])


def write(dims: tuple[Dim, ...]) -> str:
    """Return the text of a layout, if XLA can say it."""
    axes, inner = outer_and_inner(dims, "XLA")
    if not is_positional(axes):
        raise LayoutError(f"XLA numbers the axes, so they must be A to the last, not {axes}")
    order = ",".join(str(positions(len(axes)).index(axis)) for axis in reversed(axes))
    texts: list[str] = []
    sizes = dict.fromkeys(axes, 1)
    runs = _runs(axes, inner)
    if runs != _filled(axes, runs):
        raise LayoutError(f"XLA's tiles need blocks of all the innermost axes, here of {axes}")
    for run in reversed(runs):
        for block in run:
            sizes[block.axis] *= block.size or 1
        texts.append(f"({','.join(str(sizes[block.axis]) for block in run)})")
    return "{" + order + (f":T{''.join(reversed(texts))}" if texts else "") + "}"


def with_units(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return dimensions with those blocks of 1 added that XLA's tiles need.

    A tile names the innermost axes with no gap, so a block of C in NCHW is a tile of C, H and W.
    """
    axes, inner = outer_and_inner(dims, "XLA")
    runs = _filled(axes, _runs(axes, inner))
    return (*dims[: len(axes)], *(Dim((block,)) for run in runs for block in run))


def without_units(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return dimensions without the blocks of 1 that :func:`with_units` adds, if it would."""
    bare = tuple(dim for dim in dims if all(block.size != 1 for block in dim.blocks))
    return bare if with_units(bare) == dims else dims


def _runs(axes: str, inner: Iterable[Block]) -> list[list[Block]]:
    """Return blocks by the tile that they come from: within a tile, axes have their order."""
    runs: list[list[Block]] = []
    for block in inner:
        if runs and axes.index(runs[-1][-1].axis) < axes.index(block.axis):
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def _filled(axes: str, runs: list[list[Block]]) -> list[list[Block]]:
    """Return each tile with blocks of 1 for axes that it, or a later one, does not skip."""
    found = []
    first = len(axes)
    for run in reversed(runs):
        first = min(first, axes.index(run[0].axis))
        given = {block.axis: block for block in run}
        found.append([given.get(axis, Block(axis, 1)) for axis in axes[first:]])
    return found[::-1]


def _axes(scan: Scanner) -> str:
    """Return the axes that the numbers before tiles mean, outermost first, and pass them."""
    numbers = _numbers(scan, "the number of an axis", 0)
    for n, (axis, at) in enumerate(numbers):
        if n == MOST_AXES:
            raise scan.error(f"expected at most {MOST_AXES} axes", at)
        if axis >= len(numbers):
            raise scan.error(f"expected an axis from 0 to {len(numbers) - 1}", at)
        if axis in [other for other, _ in numbers[:n]]:
            raise scan.error(f"axis {axis} is there twice", at)
    letters = positions(len(numbers))
    return "".join(letters[axis] for axis, _ in reversed(numbers))


def _tiles(scan: Scanner) -> list[Tile]:
    """Return the tiles that come next, and pass them."""
    if not scan.take("T"):
        raise scan.expected("'T' (only tiles T(...) are read here)")
    if scan.char != "(":
        raise scan.expected("'('")
    tiles = []
    while scan.take("("):
        tiles.append(_numbers(scan, "a tile's size"))
        if not scan.take(")"):
            raise scan.expected("',' or ')'")
    return tiles


def _check_tiles(scan: Scanner, tiles: list[Tile], rank: int) -> None:
    """Refuse tiles that are not blocks within blocks."""
    for n, tile in enumerate(tiles):
        most = len(tiles[n - 1]) if n else rank
        if len(tile) > most:
            whole = "the tile before: blocks would not nest" if n else "the layout"
            raise scan.error(f"expected at most {most} sizes, as many as {whole}", tile[most][1])
        if n:
            for (size, at), (coarse, _) in zip(tile, tiles[n - 1][-len(tile) :], strict=True):
                if coarse % size:
                    raise scan.error(f"expected a divisor of {coarse}, the size before", at)


def _numbers(scan: Scanner, what: str, least: int = 1) -> Tile:
    """Return the numbers with commas that come next, with their offsets, and pass them."""
    numbers = []
    while True:
        if scan.char == "*":
            raise scan.error("tiles that combine dimensions (*) are no blocks of axes")
        at = scan.at
        numbers.append((scan.number(what, least), at))
        if not scan.take(","):
            return numbers
