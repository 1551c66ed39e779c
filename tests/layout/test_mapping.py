"""Layouts as targets on a tile memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base.errors import InputError
from layoutopt.graphs.unwinding import Graph
from layoutopt.layout.layout import LayoutError
from layoutopt.layout.mapping import layout_rule, tile_mapping
from layoutopt.layout.transform import apply
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import BUILT_IN, RULES, rule, tile_map
from tests.layout.drawn import Case, cases
from tests.support import proved, refused

MEMORY = TileMemory(4, 1024)


@pytest.fixture(autouse=True)
def own_rules() -> Iterator[None]:
    """Take away the rules that a test adds."""
    yield
    for name in RULES.keys() - BUILT_IN:
        del RULES[name]


BY_HAND: list[tuple[str, tuple[int, ...], dict[str, Any], list[int]]] = [
    # Four rows of two on four tiles, as they lie and across.
    ("HW", (4, 2), {}, [0, 0, 1, 1, 2, 2, 3, 3]),
    ("WH", (4, 2), {}, [0, 2, 0, 2, 1, 3, 1, 3]),
    ("HW2h", (4, 2), {}, [0, 1, 0, 1, 2, 3, 2, 3]),
    # Six places for five elements, two to a tile.
    ("C3c", (5,), {}, [0, 0, 1, 1, 2]),
    ("2cC", (5,), {}, [0, 1, 0, 2, 1]),
    # Runs of at least three places; rows of padding fill the fourth tile.
    ("WH", (4, 2), {"min_elements_per_tile": 3}, [0, 1, 0, 1, 0, 2, 1, 2]),
    ("HW4h", (2, 2), {}, [0, 2, 0, 2]),
    ("WH", (4, 2), {"grain": 8}, [0] * 8),
    ("WH", (4, 2), {"logical": "WH"}, [0, 0, 1, 1, 2, 2, 3, 3]),
    # Gaps of alignment are on no tile.
    ("W[a=64]H", (4, 2), {}, [0, 2, 0, 2, 1, 3, 1, 3]),
    # Columns of three places on four tiles: runs of two cross them, boxes do not.
    ("WH", (3, 2), {}, [0, 1, 0, 2, 1, 2]),
    ("WH", (3, 2), {"boxes": True}, [0, 2, 0, 2, 1, 3]),
    ("", (), {}, [0]),
    ("NC", (0, 3), {}, []),
    ("CN4n", (0, 3), {"boxes": True}, []),
]


@pytest.mark.parametrize(("layout", "shape", "options", "tiles"), BY_HAND)
def test_tiles_by_hand(
    layout: str, shape: tuple[int, ...], options: dict[str, Any], tiles: list[int]
) -> None:
    """Tiles get equal runs of the physical array, or boxes of it, padding included."""
    found = tile_mapping(layout, shape, MEMORY, **options)
    assert found.dtype == np.int64
    assert found.tolist() == tiles


@given(cases(), st.integers(1, 9), st.sampled_from((None, 1, 3)), st.integers(1, 4))
def test_runs_of_the_physical_array(case: Case, tiles: int, grain: int | None, least: int) -> None:
    """The element at place p of the physical array is where the linear rule has element p."""
    [layout] = case.layouts
    memory = TileMemory(tiles, 1024)
    spread = {"min_elements_per_tile": least, "grain": grain or 1}
    found = tile_mapping(
        layout, case.shape, memory, logical=case.logical, min_elements_per_tile=least, grain=grain
    )
    size = math.prod(case.shape)
    named = apply(layout, np.arange(1, 1 + size).reshape(case.shape), logical=case.logical)
    where = tile_map((named.size,), memory, {"kind": "linear", **spread}).tiles()
    expected = dict(zip(named.reshape(-1).tolist(), where.tolist(), strict=True))
    assert found.tolist() == [expected[1 + element] for element in range(size)]


@given(cases(), st.integers(1, 9))
def test_boxes_are_boxes_of_blocks(case: Case, tiles: int) -> None:
    """With boxes, a map has steps along axes, and is the linear one of the blocks' values."""
    [layout] = case.layouts
    memory = TileMemory(tiles, 1024)
    found = layout_rule(case.shape, memory, layout=layout, logical=case.logical, boxes=True)
    assert len(found.steps) == len(found.shape)
    size = math.prod(case.shape)
    named = apply(layout, np.arange(1, 1 + size).reshape(case.shape), logical=case.logical)
    blocks = [block.size for dim in layout.dims for block in dim.blocks]
    rests = dict(zip(case.logical, case.shape, strict=True))
    for axis in case.logical:
        inner = [b.size or 1 for d in layout.dims for b in d.blocks if b.axis == axis]
        rests[axis] = -(-rests[axis] // math.prod(inner))
    axes = [block.axis for dim in layout.dims for block in dim.blocks]
    extents = [n or rests[axis] for n, axis in zip(blocks, axes, strict=True)]
    where = tile_map(extents, memory, {"kind": "linear", "boxes": True}).tiles()
    expected = dict(zip(named.reshape(-1).tolist(), where.tolist(), strict=True))
    assert found.tiles().tolist() == [expected[1 + element] for element in range(size)]


def two_targets(channels_last: Callable[[Graph], Any]) -> Graph:
    """Return a graph of a tensor that is drawn to rows by 2 and to channels last by 3."""
    graph = Graph("two targets")
    graph.tile_memory = MEMORY
    x = graph.sink((1, 4, 2, 2), name="x")
    rows = graph.source(x.shape, name="rows", rule={"kind": "linear"})
    graph.valued_pair(x, rows, 2)
    graph.valued_pair(x, channels_last(graph), 3)
    return graph


def test_a_layout_as_the_mapping_of_a_source() -> None:
    """A tensor of 4 channels and 4 pixels lies by channel or by pixel; one in four places agree."""
    graph = two_targets(
        lambda g: g.source((1, 4, 2, 2), tile_mapping("NHWC", (1, 4, 2, 2), MEMORY))
    )
    # Element (channel c, pixel p) is on tile c in rows, on tile p with channels last.
    assert proved(graph).score == 3 * 16 + 2 * 4


def test_a_layout_as_the_rule_of_a_source() -> None:
    """Made known by the hook for rules of users, any layout is a rule, with the same optimum."""
    rule("layout")(layout_rule)
    wanted = {"kind": "layout", "layout": "NHWC"}
    graph = two_targets(lambda g: g.source((1, 4, 2, 2), rule=wanted))
    assert proved(graph).score == 3 * 16 + 2 * 4
    blocked = {"kind": "layout", "layout": "NCHW2c", "boxes": True}
    graph = two_targets(lambda g: g.source((1, 4, 2, 2), rule=blocked))
    # Tile 2 * (c // 2) + (row of p): rows 0 and 1 of channels 0 and 2, 1 and 3 agree on one each.
    assert proved(graph).score == 3 * 16 + 2 * 8


def test_a_large_tensor_is_solved_without_its_elements() -> None:
    """With boxes a blocked layout has few steps, and a graph of 10^9 elements is proved."""
    rule("layout")(layout_rule)
    graph = Graph("large")
    graph.tile_memory = TileMemory(256, 2**40)
    shape = (64, 1024, 128, 128)
    x = graph.sink(shape, name="x")
    for layout, value in (("NCHW16c", 3), ("NHWC", 2)):
        wanted = {"kind": "layout", "layout": layout, "boxes": True}
        graph.valued_pair(x, graph.source(shape, rule=wanted), value)
    # Tile 4 * n + c // 256 and tile 4 * n + h // 32 are one in one of four places.
    assert proved(graph).score == 3 * math.prod(shape) + 2 * math.prod(shape) // 4


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: tile_mapping("N*", (2, 3), MEMORY), "layout N* leaves a dimension open"),
    (lambda: tile_mapping("NC", (2,), MEMORY), "shape (2,) has 1 entries for the 2 axes 'NC'"),
    (lambda: tile_mapping("NC", (2, 3), MEMORY, grain=0), "grain must be an integer of 1 or more"),
    (lambda: tile_mapping("NC", (2, 3), MEMORY, boxes=3), "boxes must be true or false, got 3"),
    (lambda: tile_mapping("__undef__", (), MEMORY), "an undefined layout says nothing"),
    (lambda: tile_mapping("CN", (2**20, 2**30), MEMORY), "the tiles of all elements in layout CN"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_is_refused(call: Callable[[], Any], reason: str) -> None:
    """Layouts that say too little, and numbers that make no sense, are refused in one line."""
    with refused(reason):
        call()


def test_refusals_of_a_rule_name_it() -> None:
    """As a rule, a layout that cannot be read or does not fit is an error of that rule."""
    rule("layout")(layout_rule)
    for layout, reason in (("NCHWc", "expected a factor before"), ("NC", "shape (2,) has 1 entr")):
        with refused("rule 'layout': ", reason):
            tile_map((2,), MEMORY, {"kind": "layout", "layout": layout})
    with refused("rule 'layout': parameter 'layout' is missing"):
        tile_map((2,), MEMORY, {"kind": "layout"})
    with pytest.raises(InputError) as error:
        layout_rule((2,), MEMORY, layout="NCHWc")
    assert isinstance(error.value, LayoutError)


def test_tiles_of_more_elements_than_fit() -> None:
    """The map itself is of any size; its elements are not listed if they do not fit."""
    assert layout_rule((2**50,), TileMemory(16, 1024), layout="N").size == 2**50
    with refused("the tiles of all elements"):
        tile_mapping("N", (2**50,), TileMemory(16, 1024))
