from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from layoutopt.pictures.grids import OWN, TALL, WIDE, CellGrid, draw, plan

SHAPES = [(), (1,), (5,), (32,), (33,), (256,), (1, 1), (3, 2), (2, 3), (16, 16), (40, 1), (1, 40)]
SHAPES += [(2, 3, 4), (1, 1, 1), (2, 2, 3, 4), (64, 2, 2), (4, 4, 4, 4), (10, 10, 2)]


def rects(shape: tuple[int, ...], fill: str = "#112233") -> list[dict[str, str]]:
    """Return the attributes of the cells of a tensor, drawn at (100, 50)."""
    found = plan(shape)
    assert found is not None
    many = math.prod(shape)
    words = tuple(str(i) for i in range(many))
    svg = draw(found, CellGrid((fill,) * many, words, words), 100, 50)
    groups = ElementTree.fromstring(f"<svg>{svg}</svg>").findall("g[@class='cells']")
    return [dict(rect.attrib) for group in groups for rect in group]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_cell_for_each_element(shape: tuple[int, ...]) -> None:
    """There are as many cells as elements, none on another, all within the grid."""
    found = plan(shape)
    assert found is not None
    assert found.width <= WIDE
    assert found.height <= TALL
    corners = {(float(r["x"]), float(r["y"])) for r in rects(shape)}
    assert len(corners) == math.prod(shape)
    side = found.cell
    for x, y in corners:
        assert 100 <= x <= 100 + found.width - side + 0.1
        assert 50 <= y <= 50 + found.height - side + 0.1
        for other_x, other_y in corners - {(x, y)}:
            assert abs(x - other_x) >= side - 0.1 or abs(y - other_y) >= side - 0.1


def test_rank_2_stands_as_it_is_written() -> None:
    """Element [1, 0] of a (2, 3) tensor is below [0, 0], and [0, 1] right of it."""
    corners = [(float(r["x"]), float(r["y"])) for r in rects((2, 3))]
    side = 26.0
    assert corners[:3] == [(100, 50), (100 + side, 50), (100 + 2 * side, 50)]
    assert corners[3] == (100, 50 + side)


def test_rank_0_and_1_are_a_row() -> None:
    """All cells of a vector have one height; a scalar is one cell."""
    assert len({r["y"] for r in rects((7,))}) == 1
    assert len(rects(())) == 1


def test_slices_of_rank_3_are_labelled() -> None:
    """A (2, 2, 3) tensor is two blocks, side by side, labelled by their index."""
    found = plan((2, 2, 3))
    assert found is not None
    assert [s.label for s in found.slices] == ["[0]", "[1]"]
    assert found.slices[0].y == found.slices[1].y
    assert found.slices[1].x >= 3 * found.cell
    assert [(s.first, s.count) for s in found.slices] == [(0, 6), (6, 6)]
    deeper = plan((2, 2, 1, 1))
    assert deeper is not None
    assert [s.label for s in deeper.slices] == ["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (1, 200), (200, 1), (1000, 1000)], ids=str)
def test_no_plan_for_nothing_and_for_too_much(shape: tuple[int, ...]) -> None:
    """Tensors without elements, and such that would be too wide or too tall, have no cells."""
    assert plan(shape) is None


def test_elements_on_their_own_are_struck_through() -> None:
    """Pale cells have a diagonal each, so that they differ from blank ones in print."""
    found = plan((2,))
    assert found is not None
    svg = draw(found, CellGrid((OWN, "#112233"), ("", "a"), ("one", "two")), 0, 0)
    assert svg.count("l26 -26") == 1
