"""Pictures of tiles: one cell for each, its colour, and what the pointer tells."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from layoutopt.pictures import tiles
from layoutopt.pictures.colours import oklab
from layoutopt.pictures.tiles import EMPTY, OTHERS, OVER, TileShares, tile_grid

SVG = "{http://www.w3.org/2000/svg}"


def shares(*heaviest: int, names: int = 3) -> TileShares:
    """Return shares of tiles that each hold 7 bytes of one tensor; -1 for empty ones."""
    which = np.array([heaviest])
    return TileShares([f"tensor {i} <&>" for i in range(names)], which, 7 * (which >= 0))


def cells(picture: str) -> list[tuple[str, list[str]]]:
    """Return colour and lines of each cell, in order."""
    [group] = ElementTree.fromstring(picture).findall(f"{SVG}g[@class='tiles']")
    found = []
    for rect in group.findall(f"{SVG}rect"):
        [tip] = rect.findall(f"{SVG}title")
        found.append((str(rect.get("fill")), str(tip.text).split("\n")))
    return found


def words(picture: str) -> list[str]:
    """Return the entries of the key."""
    [group] = ElementTree.fromstring(picture).findall(f"{SVG}g[@class='key']")
    return [str(text.text) for text in group.findall(f"{SVG}text")]


def test_by_bytes() -> None:
    """More is darker; nothing, and more than fits, have colours of their own, which the key has."""
    amounts = np.array([0, 5, 20, 40, 41])
    picture = tile_grid(amounts, amounts + 1, 40, shares(-1, 0, 1, 1, 2))
    fills = [fill for fill, _ in cells(picture)]
    assert (fills[0], fills[4]) == (EMPTY, OVER)
    light = oklab(fills[1:4])[:, 0]
    assert light[0] > light[1] + 0.1 > light[2] + 0.2
    assert cells(picture)[2][1] == ["tile 2: 20 bytes, at most 21", "tensor 1 <&>: 7"]
    assert cells(picture)[0][1] == ["tile 0: 0 bytes, at most 1"]
    assert words(picture)[-3:] == ["40 bytes (100.00%)", "more than fits", "empty"]
    calm = tile_grid(amounts[1:4], amounts[1:4], 40, shares(0, 1, 1))
    assert words(calm)[-1] == "40 bytes (100.00%)"
    for by in tiles.WAYS:
        idle = tile_grid(np.zeros(3, int), np.zeros(3, int), 40, shares(-1, -1, -1), by)
        assert [fill for fill, _ in cells(idle)] == [EMPTY] * 3
        assert "empty" in words(idle)


def test_by_tensor() -> None:
    """Tiles of one colour have the same heaviest tensor, and the key counts them."""
    amounts = np.full(6, 7)
    picture = tile_grid(amounts, amounts, 40, shares(2, 0, 2, 1, 2, 0), "tensor")
    fills = [fill for fill, _ in cells(picture)]
    assert [fills.index(fill) for fill in fills] == [0, 1, 0, 3, 0, 1]
    assert words(picture) == ["tensor 2 <&> (3)", "tensor 0 <&> (2)", "tensor 1 <&> (1)"]


def test_many_tensors_share_a_colour() -> None:
    """Those with fewest tiles do, and the key says how many."""
    count = tiles.COLOURS + 3
    amounts = np.full(2 * count - 3, 7)
    first = [*range(count), *range(count - 3)]
    picture = tile_grid(amounts, amounts, 40, shares(*first, names=count), "tensor")
    fills = [fill for fill, _ in cells(picture)]
    assert fills[count - 3 : count] == [OTHERS] * 3
    assert len(set(fills)) == tiles.COLOURS + 1
    assert words(picture)[-1] == "3 others (3)"


def test_very_many_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell stands for several in a row, and shows the fullest, the last cell for fewer."""
    monkeypatch.setattr(tiles, "CELLS", 4)
    amounts = np.array([1, 3, 2, 0, 0, 5, 4, 9, 9, 8])
    picture = tile_grid(amounts, amounts, 40, shares(*range(10), names=10))
    assert [lines[0] for _, lines in cells(picture)] == [
        "tile 1, the fullest of 0 to 2: 3 bytes, at most 3",
        "tile 5, the fullest of 3 to 5: 5 bytes, at most 5",
        "tile 7, the fullest of 6 to 8: 9 bytes, at most 9",
        "tile 9: 8 bytes, at most 8",
    ]
    assert "a cell is the fullest of 3 tiles in a row" in picture


@pytest.mark.parametrize("count", [1, 2, 7, 64, 1472, 5000])
def test_cells_lie_side_by_side_inside(count: int) -> None:
    """No two cells overlap, and all are within the picture, rows of equal length."""
    amounts = np.arange(count)
    picture = ElementTree.fromstring(tile_grid(amounts, amounts, 40, shares(*[0] * count)))
    rects = picture.findall(f"{SVG}g[@class='tiles']/{SVG}rect")
    boxes = [[float(str(r.get(k))) for k in ("x", "y", "width", "height")] for r in rects]
    tops = sorted({y for _, y, _, _ in boxes})
    rows = [[(x, x + w) for x, y, w, _ in boxes if y == top] for top in tops]
    assert all(a[1] <= b[0] + 0.11 for row in rows for a, b in pairwise(row))
    assert all(a + boxes[0][3] <= b + 0.11 for a, b in pairwise(tops))
    assert len(set(map(len, rows[:-1]))) <= 1
    assert max(x + w for x, _, w, _ in boxes) <= float(str(picture.get("width")))
    assert max(y + h for _, y, _, h in boxes) <= float(str(picture.get("height")))
