"""Pictures of memory."""

from __future__ import annotations

import re

import pytest

from layoutopt.layout.drawing import draw, memory_lines
from layoutopt.layout.layout import LayoutError


def test_lines_are_runs_of_the_last_dimension() -> None:
    """Each line begins with its offset; gaps of alignment are between lines.

    Two rows of three elements of 4 bytes, rows aligned to 16 bytes.
    """
    assert memory_lines("H[a=16]W", (2, 3)) == ["     0: 0 1 2", "     4: 3 4 5"]
    assert memory_lines("WH", (2, 3), logical="HW") == ["     0: 0 3", "     2: 1 4", "     4: 2 5"]


def test_much_is_cut_short() -> None:
    """Long lines and long lists end in an ellipsis."""
    lines = memory_lines("NC", (20, 20))
    assert len(lines) == 17
    assert lines[0].endswith(" …")
    assert lines[-1].split() == ["…", "20", "lines,", "1,600", "bytes"]
    assert memory_lines("NC", (0, 3)) == []
    assert memory_lines("", ()) == ["     0: 0"]


def test_cells_follow_one_axis() -> None:
    """Elements of one channel have one colour, padding is white, and tips tell the index."""
    picture = draw("NCHW2c", (1, 3, 1, 2)).svg
    fills = re.findall(r'<rect[^>]*fill="(#\w+)"[^>]*><title>(.*?)</title>', picture)
    by_channel: dict[str, set[str]] = {}
    for fill, tip in fills:
        key = "padding" if "padding" in tip else tip.split()[3]
        by_channel.setdefault(key, set()).add(fill)
    assert sorted(by_channel) == ["c=0", "c=1", "c=2", "padding"]
    assert all(len(found) == 1 for found in by_channel.values())
    assert len(set.union(*by_channel.values())) == 4
    assert "offset 6: n=0 c=2 h=0 w=1" in picture


def test_colours_can_follow_another_axis() -> None:
    """With the colours of W, two pixels of one row differ in every channel."""
    picture = draw("NHWC", (1, 2, 1, 2), colour="W").svg
    fills = dict(re.findall(r'fill="(#\w+)"[^>]*><title>offset (\d)', picture))
    assert len(fills) == 2


@pytest.mark.parametrize(
    ("layout", "shape", "colour", "reason"),
    [
        ("NHWC", (1, 64, 64, 64), None, "too many"),
        ("NHWC", (1, 0, 2, 2), None, "too few"),
        ("N[a=64]C", (2, 3), None, "gaps of alignment"),
        ("NC", (2, 3), "H", "one of the axes N, C"),
    ],
)
def test_what_is_not_drawn(
    layout: str, shape: tuple[int, ...], colour: str | None, reason: str
) -> None:
    """What does not fit a picture is refused with the reason."""
    with pytest.raises(LayoutError, match=reason):
        draw(layout, shape, colour=colour)
