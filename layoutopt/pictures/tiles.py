"""Grids of tiles, coloured by bytes or by the heaviest tensor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import ratio
from layoutopt.pictures import svg
from layoutopt.pictures.colours import palette
from layoutopt.pictures.grids import OTHERS
from layoutopt.pictures.svg import KeyEntry, distinct

Integers = NDArray[np.int64]

BYTES, TENSOR = "bytes", "tensor"
WAYS = (BYTES, TENSOR)  # criteria for colours of tiles
CELLS = 2048  # largest number of cells; with more tiles, each cell represents several
WIDE, LARGEST = 660.0, 26.0  # width of the grid, and of a cell, at most, in pixels

MARGIN, HEAD = 18.0, 34.0

LIGHT, DARK, OVER, EMPTY = (222, 235, 247), (8, 64, 129), "#c2362b", "#f3f4f6"
"""Colours of few and many bytes, of overfull tiles, and of empty ones."""

COLOURS = 10  # number of tensors with their own colour; the others share one


@dataclass(frozen=True, eq=False)
class TileShares:
    """The tensors that weigh most on each tile.

    ``which`` has their numbers, shape ``(k, tiles)``, heaviest first, -1 where there are no more;
    ``bytes``, of the same shape, their bytes.
    """

    names: Sequence[str]
    which: Integers
    bytes: Integers

    def of(self, tile: int) -> list[tuple[str, int]]:
        """Return names and bytes of the heaviest tensors of a tile."""
        both = zip(self.which[:, tile].tolist(), self.bytes[:, tile].tolist(), strict=True)
        return [(self.names[i], amount) for i, amount in both if i >= 0]


def tile_grid(
    amounts: Integers, peaks: Integers, capacity: int, shares: TileShares, by: str = BYTES
) -> str:
    """Return a picture of tiles in rows, tile 0 at the top left, coloured by one of :data:`WAYS`.

    ``amounts`` and ``peaks`` are bytes on each tile, always and at most; ``capacity`` bytes that it
    holds.
    """
    step = -(-len(amounts) // CELLS)
    firsts = range(0, len(amounts), step)
    shown = [first + int(amounts[first : first + step].argmax()) for first in firsts]
    columns = min(len(shown), max(8, math.ceil(math.sqrt(1.8 * len(shown)))))
    edge = min(LARGEST, WIDE / columns)
    by_bytes = by == BYTES
    fills, entries = _by_bytes(amounts[shown], capacity) if by_bytes else _by_tensor(shares, shown)
    cells = []
    for k, (tile, fill) in enumerate(zip(shown, fills, strict=True)):
        x, y = MARGIN + k % columns * edge, MARGIN + HEAD + k // columns * edge
        words = svg.tip("\n".join(_told(tile, k * step, step, amounts, peaks, shares)))
        gap = min(1.0, edge / 8)
        cells.append(svg.rect(x, y, edge - gap, edge - gap, words, fill=fill))
    title = f"{len(amounts):,} tiles of {capacity:,} bytes"
    note = "" if step == 1 else f"a cell is the fullest of {step:,} tiles in a row"
    right = MARGIN + max(columns * edge, 380.0)
    bottom = MARGIN + HEAD + math.ceil(len(shown) / columns) * edge
    key, end = svg.key(map(_entry, entries), MARGIN, bottom + 14, right)
    inside = [
        svg.text(title, MARGIN, MARGIN + 12, 13, font_weight=600),
        svg.text(note, MARGIN, MARGIN + 27, 9.5, fill=svg.SOFT) if note else "",
        svg.group(cells, class_="tiles"),
        key,
    ]
    return svg.document(inside, right + MARGIN, end + MARGIN, title)


def _told(
    tile: int, first: int, step: int, amounts: Integers, peaks: Integers, shares: TileShares
) -> Iterator[str]:
    last = min(first + step, len(amounts)) - 1
    more = "" if last == first else f", the fullest of {first} to {last}"
    yield f"tile {tile}{more}: {amounts[tile]:,} bytes, at most {peaks[tile]:,}"
    for name, amount in shares.of(tile):
        yield f"{name}: {amount:,}"


def _by_bytes(amounts: Integers, capacity: int) -> tuple[list[str], list[tuple[str, str]]]:
    top = int(min(amounts.max(), capacity)) or 1
    fills = [_shade(amount, top, capacity) for amount in amounts.tolist()]
    steps = sorted({1, top // 4, top // 2, 3 * top // 4, top} - {0})
    entries = [(_shade(n, top, capacity), f"{n:,} bytes ({ratio(n / capacity)})") for n in steps]
    return fills, _with_rest(entries, fills)


def _shade(amount: int, top: int, capacity: int) -> str:
    if amount > capacity:
        return OVER
    if not amount:
        return EMPTY
    share = amount / top
    mixed = [round(a + (b - a) * share) for a, b in zip(LIGHT, DARK, strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _by_tensor(shares: TileShares, shown: Sequence[int]) -> tuple[list[str], list[tuple[str, str]]]:
    first = shares.which[0, list(shown)].tolist()
    often = Counter(i for i in first if i >= 0).most_common()
    own, rest = often[:COLOURS], often[COLOURS:]
    colour = {i: c for (i, _), [c] in zip(own, palette([1] * len(own)), strict=True)}
    fills = [EMPTY if i < 0 else colour.get(i, OTHERS) for i in first]
    names = distinct(shares.names)
    entries = [(colour[i], f"{names[shares.names[i]]} ({n:,})") for i, n in own]
    if rest:
        told = f"{len(rest):,} others ({sum(n for _, n in rest):,})"
        entries.append((OTHERS, told))
    return fills, _with_rest(entries, fills)


def _with_rest(entries: list[tuple[str, str]], fills: Sequence[str]) -> list[tuple[str, str]]:
    """Return a key with what stands for too much and for nothing, where they occur."""
    rest = [(OVER, "more than fits"), (EMPTY, "empty")]
    return entries + [(fill, words) for fill, words in rest if fill in fills]


def _entry(entry: tuple[str, str]) -> KeyEntry:
    fill, words = entry
    return KeyEntry(words, lambda x, y, w, _: svg.rect(x, y, w, w, fill=fill, stroke=svg.LINE), 11)
