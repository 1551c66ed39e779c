"""Glow strings: the values and refusals of Glow's own tests, and where this reader is stricter."""

from __future__ import annotations

import pytest

from layoutopt.layout.layout import Block, Dim, Layout
from tests.layout.notations import misread
from tests.support import refused

ALIGNMENTS = {
    "NHWC": (1, 1, 1, 1),
    "N[a=32]HW[a=64]C": (32, 1, 64, 1),
    "N[a=32][after:align]C[mal:reynolds][answer:42]HW[before:alignment][a=64]": (32, 1, 1, 64),
    "N[a=32]*H*[a=64]": (32, 1, 1, 64),
    "****": (1, 1, 1, 1),
    "": (),
    # Glow looks for "a=" anywhere, and finds 7, 7 and 5 here.
    "N[ns:alpha=7]": (1,),
    "N[ns:a=7]": (1,),
    "N[a=5:x]": (1,),
    "N[ns:a=7][a=2]": (2,),
}


@pytest.mark.parametrize("text", ALIGNMENTS)
def test_alignments(text: str) -> None:
    """Each dimension has its alignment, 1 by default; namespaces are never looked into."""
    layout = Layout.parse(text, "glow")
    assert layout.alignments == ALIGNMENTS[text]
    assert str(layout) == text


def test_extensions_are_kept() -> None:
    """A layout prints with all it was read with; Glow's own loses extensions until one is set."""
    text = "N[a=32][x:[ ]*[:]H[y:a=1][y:{1}]w"
    layout = Layout.parse(text)
    assert layout.dialect == "glow"
    assert str(layout) == text
    assert [dim.extensions for dim in layout.dims] == [
        ("a=32", "x:[ "),
        (":",),
        ("y:a=1", "y:{1}"),
        (),
    ]
    assert layout != Layout.parse("N*Hw")


REFUSED = {
    "[a=32]N": (1, "expected a dimension"),
    "3N": (1, "expected a letter, '*' or '[', found '3'"),
    "NHW-": (4, "expected a letter, '*' or '[', found '-'"),
    "N\n": (2, "found '\\n'"),
    "Né": (2, "found 'é'"),
    "N]": (2, "found ']'"),
    "N[b=3]": (3, "'a=bytes' or 'namespace:anything'"),
    "N[b=3]H[x:y]": (3, "'a=bytes' or 'namespace:anything'"),
    "N[]": (3, "'a=bytes' or 'namespace:anything'"),
    "N[a=x]": (5, "expected an alignment in bytes, found 'x'"),
    "N[a= 3]": (5, "expected an alignment in bytes, found ' '"),
    "N[a=-3]": (5, "expected an alignment in bytes, found '-'"),
    "N[a=3x]": (6, "expected ']', found 'x'"),
    "N[a=32": (7, "expected ']'"),
    "N[ns:32": (8, "expected ']'"),
    "NHW[a=1": (8, "expected ']'"),
    "NHWCDEF": (7, "at most 6 dimensions"),
    "*******": (7, "at most 6 dimensions"),
    # Glow takes these, but they make no sense.
    "NHN": (3, "axis N is there twice"),
    "NHn": (3, "axis N is there twice"),
    "N[a=0]": (5, "from 1 to 2^63 - 1"),
    "N[a=9223372036854775808]": (5, "from 1 to 2^63 - 1"),
    "N[a=" + "9" * 5000 + "]": (5, "from 1 to 2^63 - 1"),
    "N[a=032]": (5, "without leading zeros"),
    "N[a=16][x:y][a=16]": (14, "one alignment"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    """What is no Glow layout is refused, with a caret under the first wrong character."""
    if len(text) < 60:
        misread(text, "glow", *REFUSED[text])
    else:
        with refused("column 5 of layout", REFUSED[text][1], "..."):
            Layout.parse(text, "glow")


def test_blanks() -> None:
    """Blanks and NULs outside brackets mean nothing, inside they are kept."""
    layout = Layout.parse(" N\0 [a=32]\tH [x: y]", "glow")
    assert layout == Layout.parse("N[a=32]H[x: y]")
    assert str(layout) == "N[a=32]H[x: y]"
    assert Layout.parse(" \0", "glow") == Layout.parse("", "glow")


def test_any() -> None:
    """A layout is ANY only if every dimension is ``*`` and no more is said."""
    anys = ["", "*", "****"]
    others = ["N", "N[a=32]*H*[a=64]", "***C", "**[a=64]", "*[x:y]"]
    assert all(Layout.parse(text).is_any for text in anys)
    assert not any(Layout.parse(text).is_any for text in others)
    assert not Layout.parse("__undef__").is_any


def test_attributes() -> None:
    """Attributes are found, set and replaced by the name that they begin with."""
    layout = Layout.parse("N[a=16][answer:q=42]HW[x:1][answer:42][x:2]C")
    assert layout.attribute(0, "question") == ""
    assert layout.attribute(0, "a=") == "16"
    assert layout.attribute(0, "answer:q=") == "42"
    assert layout.attribute(0, "answer:") == "q=42"
    assert layout.attribute(2, "answer:") == "42"
    assert layout.attribute(2, "x:") == "1"
    assert layout.attribute(2, "answer") == ""
    assert layout.attribute(3, "answer:") == ""
    assert Layout.parse("N[ns:a=7]").attribute(0, "a=") == ""
    assert Layout.parse("N[ns:answer:42]").attribute(0, "answer:") == ""
    changed = layout.with_attribute(0, "answer:q=", "h2g2")
    assert str(changed) == "N[a=16][answer:q=h2g2]HW[x:1][answer:42][x:2]C"
    assert str(changed.with_attribute(2, "x:", "3")) == (
        "N[a=16][answer:q=h2g2]HW[answer:42][x:3]C"
    )
    assert str(layout.with_attribute(1, "a=", "4")).startswith("N[a=16][answer:q=42]H[a=4]W")


def test_changes_that_are_refused() -> None:
    """What could not be read back cannot be set, nor anything of a dimension that is not there."""
    layout = Layout.parse("NHWC")
    with refused("dim must be one of the 4 dimensions of NHWC, from 0, got 4"):
        layout.with_alignment(4, 8)
    with refused("from 0, got -1"):
        layout.attribute(-1, "a=")
    with refused("from 0, got 1.0"):
        layout.attribute(1.0, "a=")  # type: ignore[arg-type]
    with refused("bytes must be a number from 1 to 2^63 - 1, got 0"):
        layout.with_alignment(0, 0)
    with refused("bytes must be a number from 1 to 2^63 - 1, got 1.5"):
        layout.with_alignment(0, 1.5)  # type: ignore[arg-type]
    with refused("name must be 'a=' or a namespace with its colon, got 'answer'"):
        layout.with_attribute(0, "answer", "42")
    with refused("cannot contain ']'"):
        layout.with_attribute(0, "answer:", "4]2")
    with refused("expected an alignment in bytes, found 'x'"):
        layout.with_attribute(0, "a=", "x")


UNWRITTEN = {
    "Glow has no blocks such as 16c": "NCHW16c",
    "Glow has no blocks such as [4o4i]": "OIHW[4o4i]",
    "Glow has at most 6 dimensions, not 7": "ABCDEFG",
}


@pytest.mark.parametrize("reason", UNWRITTEN)
def test_what_glow_cannot_say(reason: str) -> None:
    """Blocks and more than six dimensions have no Glow text; the error names the reason."""
    with refused(f"layout {UNWRITTEN[reason]!r} cannot be written as glow: {reason}"):
        Layout.parse(UNWRITTEN[reason]).to("glow")


def test_layouts_by_hand() -> None:
    """A layout that no dialect can say prints as TVM's blocks with Glow's extensions."""
    layout = Layout.parse("NCHW16c").with_alignment(1, 64)
    assert str(layout) == "NC[a=64]HW16c"
    assert layout.alignments == (1, 64, 1, 1, 1)
    assert layout.dialect == "glow"
    for dims in [
        (Dim((Block("N"),), ("b=3",)),),
        (Dim((Block("N"),), ("a=1", "a=2")),),
        (Dim((Block("N"),), ("x:]",)),),
        (Dim((Block("N"), Block("C"))),),
        (Dim((Block("N"),)), Dim((Block("N"),))),
    ]:
        with refused("cannot be written as glow"):
            Layout(dims).to("glow")
