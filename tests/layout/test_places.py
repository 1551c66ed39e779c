"""Where elements lie: sizes, strides, offsets, indices, tiles and drawings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base.errors import InputError
from layoutopt.graphs.unwinding import Graph
from layoutopt.layout.drawing import draw, memory_lines
from layoutopt.layout.layout import LayoutError
from layoutopt.layout.mapping import layout_rule, tile_mapping
from layoutopt.layout.placement import convert_shape, placement
from layoutopt.layout.transform import apply, transform
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import rule, tile_map
from tests.layout.drawn import Case, cases, cells
from tests.support import proved, refused

# Physical shapes, strides and bytes


@given(cases())
def test_sizes_are_those_of_the_memory_written_down(case: Case) -> None:
    """Bytes and padding are counted in the memory of random layouts, cell by cell."""
    place, memory = case.place(), cells(case.layouts[0], case)
    assert place.nbytes == len(memory) * case.element_bytes
    assert place.padding == memory.count(None) * case.element_bytes


@given(cases())
def test_zeros_have_the_layouts_strides(case: Case) -> None:
    """Setting the elements of zeros one by one fills just the memory at their offsets."""
    place = case.place()
    array = place.zeros(f"i{case.element_bytes}")
    array[...] = 1
    assert array.shape == place.physical_shape
    memory = np.asarray(array.base)
    assert memory.nbytes == place.nbytes
    assert memory[place.offset_map()].all()
    assert memory.sum() == array.size


# Offsets of elements in memory, and back


@given(cases())
def test_offsets_are_a_bijection_onto_the_unpadded_part(case: Case) -> None:
    """In memory written down cell by cell, elements are where offsets say, and nothing else is."""
    place, memory = case.place(), cells(case.layouts[0], case)
    found = place.offset_map()
    assert found.shape == case.shape
    assert found.dtype == np.int64
    where = {index: at for at, index in enumerate(memory) if index is not None}
    assert {index: int(found[index]) for index in np.ndindex(case.shape)} == where
    index, inside = place.indices(np.arange(len(memory)))
    assert inside.tolist() == [element is not None for element in memory]
    nowhere = (-1,) * len(case.shape)
    listed = [tuple(int(along[at]) for along in index) for at in range(len(memory))]
    assert listed == [nowhere if element is None else element for element in memory]


@given(cases())
def test_offsets_of_some_elements(case: Case) -> None:
    """Index arrays of any shapes that broadcast give the same offsets as the map of all."""
    place = case.place()
    every = place.offset_map()
    assert np.array_equal(place.offsets(np.indices(case.shape)), every)
    open_mesh = np.ix_(*(np.arange(n)[::-1] for n in case.shape))
    turned = every[tuple(slice(None, None, -1) for _ in case.shape)]
    assert np.array_equal(place.offsets(open_mesh), turned)
    for index in list(np.ndindex(case.shape))[:3]:
        found = place.offsets(index)
        assert found.shape == ()
        assert found == every[index]


def test_padding_is_marked() -> None:
    """Offsets in blocks that are not full, and in gaps of alignment, hold no element."""
    index, inside = placement("N4n", (6,)).indices([[0, 4], [5, 6]])
    assert index[0].tolist() == [[0, 4], [5, -1]]
    assert inside.tolist() == [[True, True], [True, False]]
    index, inside = placement("N[a=4]C", (2, 3), None, 1).indices(range(8))
    assert inside.tolist() == [True, True, True, False, True, True, True, False]
    assert index[1].tolist() == [0, 1, 2, -1, 0, 1, 2, -1]
    index, inside = placement("", ()).indices([0, 0])
    assert index == ()
    assert inside.tolist() == [True, True]


def test_offsets_of_huge_tensors() -> None:
    """Sums come out right where one of their terms is beyond 64 bits."""
    n = 2**60
    place = placement("4cC", (n,), None, 1)
    assert place.nbytes == n
    assert place.indices(n // 2 - 1)[0][0] == n - 3
    assert place.offsets([[n - 4, n - 3]]).tolist() == [n // 4 - 1, n // 2 - 1]
    assert place.offsets((n - 1,)) == n - 1
    assert placement("N4cC", (1, n), None, 1).offsets(([0], n - 1)).tolist() == [n - 1]


# Logical and physical indices, and both in two layouts: the values of TVM's bijective layouts


@given(cases(2))
def test_indices_lead_to_the_same_values(case: Case) -> None:
    """At converted indices, the physical arrays of one tensor in two layouts have one value."""
    a, b = case.place(0), case.place(1)
    source, target = (apply(layout, case.tensor, logical=case.logical) for layout in case.layouts)
    index = a.physical_index(np.indices(case.shape))
    assert np.array_equal(source[index], case.tensor)
    again = a.logical_index(index)
    assert all(map(np.array_equal, again, np.indices(case.shape)))
    way = transform(*case.layouts, case.shape, case.element_bytes, logical=case.logical)
    other = way.index(index)
    assert np.array_equal(target[other], case.tensor)
    at = sum(np.multiply(i, step) for i, step in zip(other, b.strides, strict=True))
    assert np.array_equal(np.broadcast_to(at, case.shape), b.offset_map())


@given(cases(2, least=1))
def test_shapes_convert_for_whole_blocks(case: Case) -> None:
    """The physical shape of a tensor that fills its blocks leads to that of any other layout."""
    source, target = case.layouts
    if any(sum(block.size is None for block in dim.blocks) > 1 for dim in source.dims):
        return  # several axes packed with their outermost blocks: no shape tells their sizes
    whole = case.place().padded_shape
    found = convert_shape(source, target, placement(source, whole, case.logical).physical_shape)
    assert found == placement(target, whole, case.logical).physical_shape


# Layouts as targets on a tile memory


MEMORY = TileMemory(4, 1024)


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


# Pictures of memory


def lines_of(layout: str, shape: tuple[int, ...]) -> list[str]:
    return memory_lines(placement(layout, shape))


def test_lines_are_runs_of_the_last_dimension() -> None:
    """Each line begins with its offset; gaps of alignment are between lines.

    Two rows of three elements of 4 bytes, rows aligned to 16 bytes.
    """
    assert lines_of("H[a=16]W", (2, 3)) == ["     0: 0 1 2", "     4: 3 4 5"]
    assert lines_of("WH", (2, 3)) == ["     0: 0 3", "     2: 1 4", "     4: 2 5"]


def test_much_is_cut_short() -> None:
    """Long lines and long lists end in an ellipsis."""
    lines = lines_of("NC", (20, 20))
    assert len(lines) == 17
    assert lines[0].endswith(" …")
    assert lines[-1].split() == ["…", "20", "lines,", "1,600", "bytes"]
    assert lines_of("NC", (0, 3)) == []
    assert lines_of("", ()) == ["     0: 0"]


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
