"""``layoutopt layout``: layouts read, converted, and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_parse_tells_all_dialects(run: Run) -> None:
    """Dimensions are told one by one, and how others write the layout, or why they cannot."""
    ran = run("layout", "parse", "NCHW16c")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["logical", "axes", "NCHW"] in lines
    assert ["4:", "16", "of", "C"] in lines
    assert ["onednn", "nChw16c"] in lines
    assert ["xla", "{3,2,1,0:T(16,1,1)}"] in lines
    assert "Glow has no blocks such as 16c" in ran.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("N[a=32]*", "0: N [a=32]"),
        ("****", "any layout of 4 dimensions"),
        ("__undef__", "undefined"),
        ("", "none: a scalar"),
    ],
)
def test_parse_tells_what_is_open(run: Run, text: str, told: str) -> None:
    """Alignment, wildcards, nothing at all and scalars are told in words."""
    ran = run("layout", "parse", text)
    assert ran.code == 0
    assert told in ran.out


def test_a_mistake_has_a_caret(run: Run) -> None:
    """The place of a mistake is pointed at, before the one line that tells it."""
    ran = run("layout", "parse", "NCHW4")
    assert (ran.code, ran.out) == (2, "")
    text, caret, line = ran.err.splitlines()
    assert (text, caret) == ("NCHW4", "     ^")
    assert line.startswith("layoutopt: column 6 of layout 'NCHW4': expected")


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (("nChw16c", "--to", "tvm"), "NCHW16c"),
        (("NHWC", "--to", "xla"), "{1,3,2,0}"),
        (("HWIO", "--to", "xla", "--logical", "HWIO"), "{3,2,1,0}"),
    ],
)
def test_convert_writes_another_dialect(run: Run, words: tuple[str, ...], written: str) -> None:
    """The answer is one line that other programs can take."""
    assert run("layout", "convert", *words) == (0, f"{written}\n", "")


def test_offsets_show_memory(run: Run) -> None:
    """Memory is shown run by run, then elements one by one.

    Two pixels of three channels in blocks of two: the last block is half padding.
    """
    ran = run("layout", "offsets", "NCHW2c", "1,3,1,2")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["in", "memory", "1", "x", "2", "x", "1", "x", "2", "x", "2"] in lines
    assert "32, of which 8 hold no element" in ran.out
    for line in (["0:", "0", "2"], ["2:", "1", "3"], ["4:", "4", "."], ["6:", "5", "."]):
        assert line in lines
    assert ["0", "2", "0", "1", "6"] in lines  # n, c, h, w, offset


def test_offsets_are_drawn(run: Run, tmp_path: Path) -> None:
    """A picture has a cell for each element of memory; a file is not replaced unasked."""
    target = tmp_path / "memory.svg"
    assert run("layout", "offsets", "NHWC", "1,3,2,2", "--svg", target).code == 0
    assert target.read_text().count("offset ") == 12
    again = run("layout", "offsets", "NHWC", "1,3,2,2", "--svg", target)
    assert again.code == 2
    assert "exists already" in again.err


@pytest.mark.parametrize(
    ("source", "target", "shape", "told"),
    [
        ("NCHW", "NHWC", "1,3,2,2", "48 bytes read, 48 written"),
        ("NCHW", "NHWC", "1,3,1,1", "nothing: it is free"),
        ("NCHW", "NCHW16c", "1,20,1,1", "80 bytes read, 128 written"),
    ],
)
def test_transform_tells_what_moves(
    run: Run, source: str, target: str, shape: str, told: str
) -> None:
    """Bytes of both sides are told, padding included, and where nothing moves."""
    ran = run("layout", "transform", source, target, shape)
    assert ran.code == 0
    assert told in ran.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("offsets", "NHWC", "1,x"), "invalid size 'x'"),
        (("offsets", "NHWC", "1,2"), "2 entries for the 4 axes"),
        (("offsets", "N*HW", "1,2,3,4"), "*"),
        (("convert", "NHWC", "--to", "mkl"), "dialect must be one of"),
        (("parse", "NHWC", "--dialect", "mkl"), "dialect must be one of"),
        (("transform", "NHWC", "OIHW", "1,2,3,4"), "OIHW"),
    ],
)
def test_mistakes_are_one_line(run: Run, words: tuple[str, ...], reason: str) -> None:
    """What cannot be read or used is told in one line, with exit code 2."""
    ran = run("layout", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert reason in ran.err


def test_without_a_command_help_is_shown(run: Run) -> None:
    """The group lists its commands."""
    ran = run("layout")
    assert ran.code == 0
    assert all(name in ran.out for name in ("parse", "convert", "offsets", "transform"))
