"""Layouts in all dialects: recognition, errors, round trips, conversions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutopt.base.errors import InputError
from layoutopt.layout.layout import DIALECTS, Block, Dialect, Dim, Layout, LayoutError
from tests.layout.notations import TEXTS, Written, misread, offsets
from tests.support import refused

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


def test_errors_without_a_dialect() -> None:
    """Wrong texts are explained in the dialect that they look most like."""
    misread("NCHWc", None, 5, "expected a factor before the block c, as in 16c")
    misread("NCHW4", None, 6, "after the factor 4, found the end")
    misread("NHW4c", None, 4, "an axis C that is missing")
    misread("NCHW4c2c", None, 7, "axis C has more than one block")
    misread("C4c[4c]", None, 5, "axis C has more than one block")
    misread("OI[]", None, 4, "two or more blocks")
    misread("OI[4o4i", None, 8, "close the packed axis")
    misread("N[b=3]", None, 3, "'a=bytes' or 'namespace:anything'")
    misread("nChw", None, 2, "no block such as 16c")
    misread("f32[2,3]{1,0:T(2,1)}", None, 1, "without element type and shape")
    misread("NHW-", None, 4, "found '-'")


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


def test_wrong_arguments() -> None:
    """What is no text, dialect, axis, block or logical order is refused with what is allowed."""
    wrong: Any
    for wrong in [None, 3, b"NCHW", ["N"]]:
        with refused(f"a layout must be a text, got {wrong!r}"):
            Layout.parse(wrong)
    for wrong in ["TVM", "", 3]:
        for call in [lambda d: Layout.parse("NCHW", d), Layout.parse("N").to, _with_dialect]:
            with refused(f"dialect must be one of glow, tvm, onednn, xla, got {wrong!r}"):
                call(wrong)
    for wrong in ["n", "NC", "", 3, "É"]:
        with refused(f"an axis must be an upper-case letter or '*', got {wrong!r}"):
            Block(wrong)
    for axis, size in [("N", 0), ("*", 4)]:
        with refused("a block must be 1 or more values of a letter's axis"):
            Block(axis, size)
    with refused("a dimension must have a block"):
        Dim(())
    for wrong, reason in [
        ("NHW", "must have the axes NCHW in some order"),
        ("NCHWW", "must have the axes NCHW in some order"),
        ("nchw", "must be upper-case letters"),
        (5, "must be upper-case letters"),
    ]:
        with refused("layout 'NHWC'", reason, repr(wrong)):
            Layout.parse("NHWC").to("xla", wrong)
    for wrong in ["NCH", "NCHWO", "NCCH", "BACD"]:
        with refused(f"logical must name 4 different axes, got {wrong!r}"):
            Layout.parse("acdb").to("tvm", wrong)


def _with_dialect(dialect: Any) -> Layout:
    """Return a scalar's layout of a dialect."""
    return Layout((), dialect)


CONVERTED: list[tuple[str, Dialect, str | None, str]] = [
    ("NCHW16c", "onednn", None, "nChw16c"),
    ("NCHW16c", "onednn", "NCHW", "aBcd16b"),
    ("NCHW16c", "xla", None, "{3,2,1,0:T(16,1,1)}"),
    ("NHWC", "xla", None, "{1,3,2,0}"),
    ("NHWC", "xla", "NHWC", "{3,2,1,0}"),
    ("nhwc", "tvm", None, "NHWC"),
    ("hwio", "onednn", "OIHW", "cdba"),
    ("acdb", "tvm", "NCHW", "NHWC"),
    ("acdb", "tvm", None, "ACDB"),
    ("acdb", "onednn", "NCHW", "nhwc"),
    ("acdb", "xla", "NCHW", "{1,3,2,0}"),
    ("{1,3,2,0}", "glow", "NCHW", "NHWC"),
    ("{1,0:T(8,128)(2,1)}", "onednn", None, "AB4a128b2a"),
    ("{1,0:T(8,128)(2,1)}", "xla", None, "{1,0:T(8,128)(2,1)}"),
    ("N[a=2]*[x:y]", "glow", None, "N[a=2]*[x:y]"),
    ("", "xla", None, "{}"),
    ("__undef__", "onednn", None, "undef"),
    ("undef", "tvm", None, "__undef__"),
]


@pytest.mark.parametrize(("text", "target", "logical", "expected"), CONVERTED)
def test_conversions(text: str, target: Dialect, logical: str | None, expected: str) -> None:
    """Letters become positions in logical order, and positions the letters that are given."""
    assert str(Layout.parse(text).to(target, logical)) == expected
