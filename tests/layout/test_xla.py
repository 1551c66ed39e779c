"""XLA's layouts: orders, tiles as nested blocks, refusals."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.layout.layout import Layout
from layoutopt.layout.xla import write
from tests.layout.notations import misread, offsets
from tests.support import refused


def place(element: tuple[int, ...], bounds: tuple[int, ...], tiles: list[tuple[int, ...]]) -> int:
    """Return an element's offset by XLA's formula: divide by the tile, put remainders behind."""
    for tile in tiles:
        n = len(element) - len(tile)
        over = [(e // t, e % t, -(-b // t), t) for e, b, t in zip(element[n:], bounds[n:], tile)]  # noqa: B905
        element = (*element[:n], *(o[0] for o in over), *(o[1] for o in over))
        bounds = (*bounds[:n], *(o[2] for o in over), *(o[3] for o in over))
    offset = 0
    for e, b in zip(element, bounds, strict=True):
        offset = offset * b + e
    return offset


def test_the_formula_itself() -> None:
    """XLA's documentation puts element (2, 3) of a 3 x 5 array in tiles of 2 x 2 at 17."""
    assert place((2, 3), (3, 5), [(2, 2)]) == 17


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from(
        [[(2, 2)], [(2, 4), (2, 1)], [(6,), (3,)], [(1, 2, 6), (2, 3)], [(4, 6), (2, 6), (1, 2)]]
    ),
)
def test_tiles_mean_what_xla_says(
    shape: tuple[int, int, int], tiles: list[tuple[int, ...]]
) -> None:
    """Elements lie where XLA's formula puts them, padding of incomplete tiles included."""
    written = "".join(f"({','.join(map(str, tile))})" for tile in tiles)
    layout = Layout.parse("{2,1,0:T" + written + "}")
    found = offsets(layout, "ABC", shape)
    assert found == {e: place(e, shape, tiles) for e in product(*map(range, shape))}


REFUSED = {
    "": (1, "expected '{'"),
    "1,0": (1, "expected '{'"),
    "f32[2,3]{1,0}": (1, "the layout alone, without element type and shape"),
    "{": (2, "expected the number of an axis, found the end"),
    "{1,0": (5, "expected '}'"),
    "{1,0}x": (6, "expected the end, found 'x'"),
    "{1,,0}": (4, "expected the number of an axis, found ','"),
    "{-1}": (2, "expected the number of an axis, found '-'"),
    "{01}": (2, "without leading zeros"),
    "{2,0}": (2, "expected an axis from 0 to 1"),
    "{0,1,0}": (6, "axis 0 is there twice"),
    "{" + ",".join(map(str, range(27))) + "}": (70, "at most 26 axes"),
    "{:T(2)}": (2, "expected the number of an axis"),
    "{1,0:}": (6, "expected 'T'"),
    "{1,0:S(1)}": (6, "only tiles T(...) are read"),
    "{1,0:T}": (7, "expected '('"),
    "{1,0:T()}": (8, "expected a tile's size, found ')'"),
    "{1,0:T(8": (9, "expected ',' or ')'"),
    "{1,0:T(8,0)}": (10, "expected a tile's size from 1"),
    "{1,0:T(8,128)S(1)}": (14, "only tiles T(...) are read"),
    "{1,0:T(2,8,128)}": (12, "at most 2 sizes, as many as the layout"),
    "{1,0:T(8,128)(2,1,1,1)}": (19, "as many as the tile before: blocks would not nest"),
    "{1,0:T(8,128)(3,1)}": (15, "expected a divisor of 8, the size before"),
    "{1,0:T(8,128)(2,256)}": (17, "expected a divisor of 128, the size before"),
    "{1,0:T(8,128)(6)}": (15, "expected a divisor of 128, the size before"),
    "{1,0:T(*,128)}": (8, "tiles that combine dimensions"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    """What is no XLA layout, or has tiles that are no nested blocks, is refused with a caret."""
    if len(text) < 60:
        misread(text, "xla", *REFUSED[text])
    else:
        with refused(f"column {REFUSED[text][0]} of", REFUSED[text][1]):
            Layout.parse(text, "xla")


UNWRITTEN = {
    "only Glow has dimensions that may be anything (*)": "N*HW",
    "XLA has no place for the alignment [a=32]": "N[a=32]HW",
    "XLA has no packed axes such as [4o4i]": "OIHW[4o4i]",
    "XLA has all blocks after the axes, here 16c is not": "NC16cHW",
    "blocks of 1 could not be told from those that fill XLA's tiles": "NCHW1c",
    "it is undefined": "__undef__",
}


@pytest.mark.parametrize("reason", UNWRITTEN)
def test_what_xla_cannot_say(reason: str) -> None:
    """What only others can say is refused with the reason."""
    with refused(UNWRITTEN[reason], "cannot be written as xla", reason):
        Layout.parse(UNWRITTEN[reason]).to("xla")


def test_what_is_not_written_as_it_is() -> None:
    """Letters have no numbers, and tiles no gaps."""
    with refused("must be A to the last, not NC"):
        write(Layout.parse("NC").dims)
    with refused("need blocks of all the innermost axes"):
        write(Layout.parse("ABCD16b").dims)
