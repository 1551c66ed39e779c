"""oneDNN's tags: positions, aliases, blocks; refusals."""

from __future__ import annotations

import pytest

from layoutopt.layout.layout import Layout
from layoutopt.layout.onednn import write
from tests.layout.notations import misread
from tests.support import refused

ALIASES = """
    x=a nc=ab cn=ba tn=ab nt=ba ncw=abc nwc=acb nchw=abcd nhwc=acdb chwn=bcda ncdhw=abcde
    ndhwc=acdeb oi=ab io=ba oiw=abc owi=acb wio=cba woi=cab iwo=bca oihw=abcd hwio=cdba hwoi=cdab
    ohwi=acdb ihwo=bcda iohw=bacd oidhw=abcde iodhw=bacde dhwio=cdeba dhwoi=cdeab odhwi=acdeb
    idhwo=bcdea goiw=abcd gowi=abdc wigo=dcab goihw=abcde gohwi=abdec hwigo=decab giohw=acbde
    goidhw=abcdef godhwi=abdefc giodhw=acbdef dhwigo=defcab tnc=abc ntc=bac ldnc=abcd ldigo=abcde
    ldgoi=abdec ldio=abcd ldoi=abdc ldgo=abcd ldOi16o=abDc16d ldOI32o4i=abDC32d4c ldIo32i=abCd32c
    ldgOi16o=abdEc16e ldgOI64o2i=abdEC64e2c ldgIO32i2o=abdCE32c2e nCdhw16c=aBcde16b
    nChw16c=aBcd16b nCw8c=aBc8b NCw16n16c=ABc16a16b NChw16n32c=ABcd16a32b OI16i64o=AB16b64a
    OI4i8o4i=AB4b8a4b OI8i16o2i=AB8b16a2b IOw16o16i=BAc16a16b OIw16i16o=ABc16b16a
    OwI16i16o=AcB16b16a Oiw16o=Abc16a OIhw16i16o=ABcd16b16a IOhw16i16o=BAcd16b16a
    OhwI16o4i=AcdB16a4b Ihwo8i=Bcda8b
"""
"""Some of the aliases that ``dnnl_types.h`` defines."""


@pytest.mark.parametrize("line", ALIASES.split())
def test_aliases(line: str) -> None:
    """Aliases are recognised, print as they are, and mean the positions that oneDNN says."""
    alias, tag = line.split("=")
    named, numbered = Layout.parse(alias), Layout.parse(tag)
    assert (str(named), str(numbered)) == (alias, tag)
    assert str(Layout.parse(alias, "onednn").to("onednn", logical=named.logical)) == tag
    assert str(numbered.to("onednn", logical=named.logical)) == alias
    assert numbered.logical == "ABCDEF"[: len(numbered.logical)]


REFUSED = {
    "": (1, "expected a letter, found the end"),
    "16a": (1, "expected a letter, found '1'"),
    "any": (1, "leaves the layout to oneDNN"),
    "ab ": (3, "expected a letter or a number, found ' '"),
    "a[b]": (2, "expected a letter or a number, found '['"),
    "aba": (3, "axis a is there twice"),
    "abA": (3, "axis A is there twice"),
    "aBcd16b16b-": (11, "expected the size of a block, found '-'"),
    "aBcd16": (7, "expected a lower-case letter after the size 16, found the end"),
    "aBcd16B": (7, "expected a lower-case letter after the size 16, found 'B'"),
    "aBcd0b": (5, "the size of a block from 1"),
    "aBcd016b": (5, "without leading zeros"),
    "aBcd16e": (7, "axis e that is missing"),
    "aBcd": (2, "B is upper-case, but no block such as 16b"),
    "nChw": (2, "C is upper-case, but no block such as 16c"),
    "abcd16b": (2, "expected B, since the axis is blocked"),
    "aBCd16b": (3, "C is upper-case, but no block such as 16c"),
    "abd": (3, "expected a, b, c for 3 axes, but c is missing"),
    "anch": (2, "expected a, b, c, d for 4 axes, but b is missing"),
    "bcd": (1, "expected positions from a on, or names (n, c, d, h, w, o, i, g, t, l, x)"),
    "nchk": (4, "expected positions from a on, or names"),
    "abcdefghijklm": (13, "at most 12 axes"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    """What is no tag is refused, with a caret under the first wrong character."""
    misread(text, "onednn", *REFUSED[text])


UNWRITTEN = {
    "only Glow has dimensions that may be anything (*)": "N*HW",
    "oneDNN has no place for the alignment [a=32]": "N[a=32]HW",
    "oneDNN has no packed axes such as [4o4i]": "OIHW[4o4i]",
    "oneDNN has all blocks after the axes, here 16c is not": "NC16cHW",
    "oneDNN has no tag for a scalar": "",
    "oneDNN has at most 12 axes, not 13": "ABCDEFGHIJKLM",
}


@pytest.mark.parametrize("reason", UNWRITTEN)
def test_what_onednn_cannot_say(reason: str) -> None:
    """What only others can say is refused with the reason."""
    with refused(f"layout {UNWRITTEN[reason]!r} cannot be written as onednn: {reason}"):
        Layout.parse(UNWRITTEN[reason]).to("onednn")
    with refused(reason):
        Layout.parse(UNWRITTEN[reason]).to(
            "onednn", logical=Layout.parse(UNWRITTEN[reason]).logical
        )


def test_letters_that_onednn_has_not() -> None:
    """Other letters become positions, in logical order; by hand they have no tag."""
    assert str(Layout.parse("MK16k").to("onednn")) == "bA16a"
    assert str(Layout.parse("MK16k").to("onednn", logical="MK")) == "aB16b"
    with refused("oneDNN names axes by position or by n, c, d, h, w, o, i, g, t, l, x, not MK"):
        write(Layout.parse("MK").dims)
