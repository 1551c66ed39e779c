"""TVM strings: the values and refusals of TVM's own tests, and where this reader is stricter."""

from __future__ import annotations

import pytest

from layoutopt.layout.layout import Block, Dim, Layout
from tests.layout.notations import misread
from tests.support import refused

REFUSED = {
    "N4C": (3, "expected a lower-case letter after the factor 4, found 'C'"),
    "NCHWc": (5, "expected a factor before the block c, as in 16c"),
    "NCHW0c": (5, "expected a factor from 1"),
    "NCHW04c": (5, "without leading zeros"),
    "NCHW" + "9" * 20 + "c": (5, "from 1 to 2^63 - 1"),
    "NCHW-": (5, "found '-'"),
    "N CHW": (2, "found ' '"),
    "*CHW": (1, "found '*'"),
    "NHW4c": (4, "4c is a block of an axis C that is missing"),
    "C4o": (2, "4o is a block of an axis O that is missing"),
    "C4c[4c]": (5, "axis C has more than one block"),
    "[4o[4i]]": (4, "cannot be packed again"),
    "OI4o]": (5, "no '[' before this ']'"),
    "[O4o]": (2, "only blocks with factors can be packed"),
    "[4o]": (4, "two or more blocks"),
    "O[4o]": (5, "two or more blocks"),
    "OI[]": (4, "two or more blocks"),
    "OI[4o4i": (8, "expected ']' to close the packed axis, found the end"),
    "OI[4o4]": (7, "expected a lower-case letter after the factor 4, found ']'"),
    "OI[4o4o]": (6, "axis O has more than one block"),
    "I[4o4i]": (3, "4o is a block of an axis O that is missing"),
    "C__undef__": (2, "found '_'"),
    # Old versions of TVM take this.
    "NCHW4c2c": (7, "axis C has more than one block"),
    # All versions of TVM take these.
    "NCHWC": (5, "axis C is there twice"),
    "NCHW4": (6, "expected a lower-case letter after the factor 4, found the end"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    """What is no TVM layout is refused, with a caret under the first wrong character."""
    misread(text, "tvm", *REFUSED[text])


def test_index_and_factor() -> None:
    """Axes, blocks and packed dimensions have positions; axes have factors."""
    layout = Layout.parse("NCHW16c")
    assert [layout.index_of(name) for name in ["N", "C", "W", "16c", "c"]] == [0, 1, 3, 4, 4]
    assert layout.factor_of("C") == layout.factor_of("c") == 16
    assert layout.factor_of("N") == 1  # TVM says -1
    assert Layout.parse("OIHW[4o4i]").index_of("4o4i") == 4
    assert Layout.parse("OIHW[4o3i]").factor_of("I") == 3
    several = Layout.parse("OIhw4i16o2i")
    assert several.factor_of("I") == 8
    assert [several.index_of(name) for name in ["4i", "2i", "i", "16o"]] == [4, 6, 4, 5]


def test_index_and_factor_of_nothing() -> None:
    """What a layout does not have, has no position or factor; TVM says -1 for these."""
    layout = Layout.parse("NCHW16c")
    for name in ["O", "8c", "n", "16C", "", "CH"]:
        with refused(f"layout NCHW16c has no dimension {name!r}"):
            layout.index_of(name)
    for axis in ["O", "", "NC"]:
        with refused(f"layout NCHW16c has no axis {axis!r}"):
            layout.factor_of(axis)


UNWRITTEN = {
    "only Glow has dimensions that may be anything (*)": "N*HW",
    "TVM has no place for the alignment [a=32]": "N[a=32]HW",
    "TVM has no place for the extension [x:y]": "NH[x:y]",
    "TVM has at most one block of an axis, 2i is another": "OIhw4i16o2i",
}


@pytest.mark.parametrize("reason", UNWRITTEN)
def test_what_tvm_cannot_say(reason: str) -> None:
    """What only others can say is refused with the reason."""
    with refused(f"layout {UNWRITTEN[reason]!r} cannot be written as tvm: {reason}"):
        Layout.parse(UNWRITTEN[reason]).to("tvm")


def test_layouts_by_hand() -> None:
    """Dimensions that are no TVM layout are not written as one."""
    c, four = Block("C"), Block("C", 4)
    for dims, reason in [
        ((Dim((four,)),), "axis C has no outermost block"),
        ((Dim((c,)), Dim((c,))), "axis C is there twice"),
        ((Dim((Block("N"), c)),), "packs only blocks with sizes, unlike [NC]"),
    ]:
        with refused("cannot be written as tvm", reason):
            Layout(dims, "tvm").to("tvm")
