"""Notations of layouts: Glow, oneDNN, TVM and XLA, and what they have in common."""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutopt.base.errors import InputError
from layoutopt.layout.layout import DIALECTS, Block, Dialect, Dim, Layout, LayoutError
from tests.layout.notations import TEXTS, Written, misread, offsets
from tests.support import refused

# Layouts in all dialects: recognition, errors, round trips, conversions


WRITTEN = st.sampled_from(DIALECTS).flatmap(lambda d: st.tuples(st.just(d), TEXTS[d]()))

SIGNS = st.text(alphabet="NCHWnchwabAB0123456789[]{}(),:T*=_ \0\n-", max_size=16)


@given(WRITTEN)
def test_round_trips(written: tuple[Dialect, Written]) -> None:
    """Texts have the dimensions that they were made from, and these print as the same texts."""
    dialect, (text, dims) = written
    layout = Layout.parse(text, dialect)
    assert layout.dims == dims
    assert str(layout) == str(Layout(dims, dialect)) == text
    assert Layout.parse(str(layout), dialect) == layout


@given(WRITTEN)
def test_recognition_never_changes_a_meaning(written: tuple[Dialect, Written]) -> None:
    """A text that is read in another dialect than its own means and prints the same.

    Only Glow's letters of small case and its boxes can be taken for something else.
    """
    dialect, (text, dims) = written
    assume(dialect != "glow")
    layout = Layout.parse(text)
    assert layout.dims == dims
    assert str(layout) == text


@given(st.one_of(st.text(), SIGNS), st.sampled_from([None, *DIALECTS]))
def test_garbage(text: str, dialect: Dialect | None) -> None:
    """Any text is a layout that prints as it is read, or an error that points into the text."""
    try:
        layout = Layout.parse(text, dialect)
    except LayoutError as error:
        assert error.text == text
        assert error.at in range(len(text) + 1)
        assert len(error.picture.split("\n")) == 2
        assert len(str(error).splitlines()) == 1
        return
    again = str(layout)
    assert Layout.parse(again, layout.dialect) == layout
    if layout.dialect in ("tvm", "onednn"):
        assert again == text
    elif "[" not in text:
        assert again == text.replace(" ", "").replace("\0", "").replace("\t", "")


@given(WRITTEN, st.sampled_from(DIALECTS), st.data())
def test_there_and_back(
    written: tuple[Dialect, Written], target: Dialect, data: st.DataObject
) -> None:
    """Where a layout can be said in another dialect, it comes back as it was, text and all."""
    dialect, (text, _) = written
    layout = Layout.parse(text, dialect)
    positional = sorted(layout.axes) == list("ABCDEFGHIJKL"[: len(layout.axes)])
    logical: str | None = None
    if not positional and target in ("xla", "onednn"):
        if (
            target == "xla"
            or not set(layout.axes) <= set("NCDHWOIGTLX")
            or data.draw(st.booleans())
        ):
            logical = "".join(data.draw(st.permutations(layout.logical)))
    elif positional and dialect == "onednn" and target != "xla":
        # Only oneDNN gives positions back for letters.
        logical = "ZYXWVUTSRQPO"[: len(layout.axes)]
    try:
        there = layout.to(target, logical)
    except LayoutError:
        assume(False)
    assert there.dialect == target
    assert str(Layout.parse(str(there), target)) == str(there)
    back = there.to(dialect, logical)
    assert back == layout
    assert str(back) == text


@st.composite
def small(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...]]:
    """Return a blocked layout of three axes, with a shape."""
    dialect = draw(st.sampled_from(["tvm", "onednn", "xla"]))
    axes = draw(st.permutations("ABC"))
    sizes = st.sampled_from([1, 2, 3, 4])
    inner = draw(st.lists(st.tuples(st.sampled_from("ABC"), sizes), max_size=4))
    blocks = [*map(Block, axes), *(Block(axis, size) for axis, size in inner)]
    shape = draw(st.tuples(*[st.integers(1, 7)] * 3))
    try:
        return Layout(tuple(Dim((b,)) for b in blocks), "onednn").to(dialect), shape
    except LayoutError:
        assume(False)
        raise


@given(small(), st.sampled_from(DIALECTS), st.permutations("NHW"))
def test_conversions_move_nothing(
    given: tuple[Layout, tuple[int, ...]], target: Dialect, names: list[str]
) -> None:
    """A layout in another dialect puts every element at the same offset."""
    layout, shape = given
    order = "".join(names)
    try:
        there = layout.to(target, order)
    except LayoutError:
        assume(False)
    found = offsets(there, "ABC" if target == "xla" else order, shape)
    assert found == offsets(layout, "ABC", shape)
    if target != "xla":
        numbered = there.to("onednn", order)
        assert offsets(numbered, "ABC", shape) == found


def test_errors_keep_their_picture() -> None:
    """An error that is given a place, or quotes odd characters, still points at the text."""
    with pytest.raises(LayoutError) as caught:
        Layout.parse("N\0\nH", "glow")
    assert str(caught.value).startswith("column 3 of layout 'N\\x00\\nH': expected a letter")
    assert caught.value.picture == "N··H\n  ^"
    moved = caught.value.located("$.ops[3].layout", "file.json")
    assert isinstance(moved, LayoutError)
    assert str(moved).startswith("file.json: $.ops[3].layout: column 3 of")
    assert moved.picture == caught.value.picture
    assert moved.located("$.other").place == "$.ops[3].layout"
    assert LayoutError("no text").picture == ""
    assert issubclass(LayoutError, InputError)


CASES = tomllib.loads((Path(__file__).parents[1] / "cases/layouts.toml").read_text())
REFUSED = [
    (d, text, *told) for d, texts in CASES["refused"].items() for text, told in texts.items()
]
UNWRITTEN = [
    (d, text, why) for d, texts in CASES["unwritten"].items() for why, text in texts.items()
]


@pytest.mark.parametrize(("dialect", "text", "column", "reason"), REFUSED)
def test_refusals(dialect: Dialect, text: str, column: int, reason: str) -> None:
    """What is no layout of a dialect is refused, with a caret under the first wrong character."""
    misread(text, dialect, column, reason)


@pytest.mark.parametrize(("dialect", "text", "reason"), UNWRITTEN)
def test_what_dialects_cannot_say(dialect: Dialect, text: str, reason: str) -> None:
    """What only others can say is refused with the reason, in any logical order."""
    layout = Layout.parse(text)
    with refused(repr(text), f"cannot be written as {dialect}", reason):
        layout.to(dialect)
    if dialect == "onednn":
        with refused(reason):
            layout.to(dialect, logical=layout.logical)


# Glow strings: the values and refusals of Glow's own tests, and where this reader is stricter


def test_blanks() -> None:
    """Blanks and NULs outside brackets mean nothing, inside they are kept."""
    layout = Layout.parse(" N\0 [a=32]\tH [x: y]", "glow")
    assert layout == Layout.parse("N[a=32]H[x: y]")
    assert str(layout) == "N[a=32]H[x: y]"
    assert Layout.parse(" \0", "glow") == Layout.parse("", "glow")


# oneDNN's tags: positions, aliases, blocks; refusals


@pytest.mark.parametrize("line", CASES["aliases"].split())
def test_aliases(line: str) -> None:
    """Aliases are recognised, print as they are, and mean the positions that oneDNN says."""
    alias, tag = line.split("=")
    named, numbered = Layout.parse(alias), Layout.parse(tag)
    assert (str(named), str(numbered)) == (alias, tag)
    assert str(Layout.parse(alias, "onednn").to("onednn", logical=named.logical)) == tag
    assert str(numbered.to("onednn", logical=named.logical)) == alias
    assert numbered.logical == "ABCDEF"[: len(numbered.logical)]


# TVM strings: the values and refusals of TVM's own tests, and where this reader is stricter


# XLA's layouts: orders, tiles as nested blocks, refusals


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


def as_tiles(text: str) -> str:
    """Write blocks of oneDNN as tiles, whose sizes of 1 for axes that are not cut go away again."""
    layout = Layout.parse(text)
    tiled = layout.to("xla")
    assert str(tiled.to("onednn")) == text
    shape = (20, 20, 2, 3)[: len(layout.axes)]
    order = "ABCD"[: len(shape)]
    assert offsets(tiled, order, shape) == offsets(layout, order, shape)
    return str(tiled)
