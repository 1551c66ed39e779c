"""Where elements lie: sizes, strides, offsets, indices, tiles and drawings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base.errors import InputError
from layoutopt.graphs.unwinding import Graph
from layoutopt.layout.drawing import draw, memory_lines
from layoutopt.layout.layout import Block, Dim, Layout, LayoutError
from layoutopt.layout.mapping import layout_rule, tile_mapping
from layoutopt.layout.offsets import (
    convert_index,
    convert_shape,
    indices,
    logical_index,
    offset_map,
    offsets,
    physical_index,
)
from layoutopt.layout.placement import (
    byte_strides,
    nbytes,
    padded_shape,
    padding,
    physical_shape,
    strides,
    zeros,
)
from layoutopt.layout.transform import apply
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import BUILT_IN, RULES, rule, tile_map
from tests.layout.drawn import Case, cases, cells
from tests.support import proved, refused

# Physical shapes, strides and bytes


STRIDES = [
    # Glow's Type.h: dims [3, 5, 10], alignments [3, 32, 1], elements of a byte.
    ("N[a=3]C[a=32]H", (3, 5, 10), 1, (162, 32, 1), 486),
    ("NCHW", (2, 3, 4, 5), 4, (60, 20, 5, 1), 480),
    # Rows of 3 floats take 12 bytes, 16 with alignment; 4 of these 64, and so on.
    ("NCH[a=16]W", (1, 2, 4, 3), 4, (32, 16, 4, 1), 128),
    ("N[a=64]CH[a=16]W", (3, 3, 1, 3), 4, (16, 4, 4, 1), 192),
    # 6 bytes are no whole floats: the next multiple of both is 12.
    ("NC[a=6]", (2, 2), 4, (6, 3), 48),
    ("N[a=6]C", (2, 2), 4, (3, 1), 24),
    ("N[a=6]C", (2, 4), 4, (6, 1), 48),
    ("NC[a=8]", (2, 3), 4, (6, 2), 48),
    ("N[a=8][after:x]C", (2, 3), 4, (4, 1), 32),
    ("N[a=64]C", (1, 3), 4, (16, 1), 64),
    ("", (), 8, (), 8),
    ("NCHW16c", (1, 20, 2, 2), 2, (128, 64, 32, 16, 1), 256),
    ("N[a=32]C", (0, 3), 4, (8, 1), 0),
    ("N[a=32]C", (3, 0), 4, (8, 1), 0),
]
"""Layout, shape, bytes of an element, strides in elements, bytes in all."""


@pytest.mark.parametrize(("layout", "shape", "width", "expected", "total"), STRIDES)
def test_strides_and_bytes(
    layout: str, shape: tuple[int, ...], width: int, expected: tuple[int, ...], total: int
) -> None:
    """A stride is what lies inside, rounded up to the alignment; the outermost one tells bytes."""
    given_layout = Layout.parse(layout)
    assert strides(given_layout, shape, width) == expected
    assert byte_strides(given_layout, shape, width) == tuple(width * step for step in expected)
    assert nbytes(given_layout, shape, width) == total
    assert padding(given_layout, shape, width) == total - width * int(np.prod(shape, dtype=int))


def test_padded_shapes_are_logical() -> None:
    """Rounded up to whole blocks, in the order of the tensor's shape."""
    layout = Layout.parse("OIhw4i16o4i")
    assert padded_shape(layout, (20, 40, 3, 3)) == (32, 48, 3, 3)
    assert padded_shape(layout, (3, 3, 40, 20), logical="HWIO") == (3, 3, 48, 32)


@given(cases())
def test_sizes_are_those_of_the_memory_written_down(case: Case) -> None:
    """Bytes and padding are counted in the memory of random layouts, cell by cell."""
    [layout] = case.layouts
    memory = cells(layout, case)
    how = {"logical": case.logical}
    assert nbytes(layout, case.shape, case.element_bytes, **how) == len(memory) * case.element_bytes
    gaps = memory.count(None) * case.element_bytes
    assert padding(layout, case.shape, case.element_bytes, **how) == gaps


@given(cases())
def test_zeros_have_the_layouts_strides(case: Case) -> None:
    """Setting the elements of zeros one by one fills just the memory at their offsets."""
    [layout] = case.layouts
    array = zeros(layout, case.shape, f"i{case.element_bytes}", logical=case.logical)
    array[...] = 1
    assert array.shape == physical_shape(layout, case.shape, logical=case.logical)
    memory = np.asarray(array.base)
    assert memory.nbytes == nbytes(layout, case.shape, case.element_bytes, logical=case.logical)
    at = offset_map(layout, case.shape, case.element_bytes, logical=case.logical)
    assert memory[at].all()
    assert memory.sum() == array.size


# Offsets of elements in memory, and back


@given(cases())
def test_offsets_are_a_bijection_onto_the_unpadded_part(case: Case) -> None:
    """In memory written down cell by cell, elements are where offsets say, and nothing else is."""
    [layout] = case.layouts
    how = {"element_bytes": case.element_bytes, "logical": case.logical}
    memory = cells(layout, case)
    found = offset_map(layout, case.shape, **how)
    assert found.shape == case.shape
    assert found.dtype == np.int64
    where = {index: at for at, index in enumerate(memory) if index is not None}
    assert {index: int(found[index]) for index in np.ndindex(case.shape)} == where
    index, inside = indices(layout, np.arange(len(memory)), case.shape, **how)
    assert inside.tolist() == [element is not None for element in memory]
    nowhere = (-1,) * len(case.shape)
    listed = [tuple(int(along[at]) for along in index) for at in range(len(memory))]
    assert listed == [nowhere if element is None else element for element in memory]


@given(cases())
def test_offsets_of_some_elements(case: Case) -> None:
    """Index arrays of any shapes that broadcast give the same offsets as the map of all."""
    [layout] = case.layouts
    how = {"element_bytes": case.element_bytes, "logical": case.logical}
    every = offset_map(layout, case.shape, **how)
    dense = np.indices(case.shape)
    assert np.array_equal(offsets(layout, dense, case.shape, **how), every)
    open_mesh = np.ix_(*(np.arange(n)[::-1] for n in case.shape))
    turned = every[tuple(slice(None, None, -1) for _ in case.shape)]
    assert np.array_equal(offsets(layout, open_mesh, case.shape, **how), turned)
    for index in list(np.ndindex(case.shape))[:3]:
        found = offsets(layout, index, case.shape, **how)
        assert found.shape == ()
        assert found == every[index]


def test_values_by_hand() -> None:
    """TVM's index (0, 18, 6, 6) of NCHW is (0, 1, 6, 6, 2) of NCHW16c; the others are drawn."""
    layout = Layout.parse("NCHW16c")
    assert offsets(layout, (0, 18, 6, 6), (1, 32, 7, 7)) == 16 * (49 + 6 * 7 + 6) + 2
    assert offset_map("HW", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert offset_map("WH", (2, 3)).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert offset_map("HW", (3, 2), logical="WH").tolist() == [[0, 3], [1, 4], [2, 5]]
    assert offset_map("HW2h", (3, 2)).tolist() == [[0, 2], [1, 3], [4, 6]]
    assert offset_map("4cC", (6,)).tolist() == [0, 2, 4, 6, 1, 3]
    # Two floats of a row in 16 bytes.
    assert offset_map("N[a=16]C", (2, 2)).tolist() == [[0, 1], [4, 5]]
    assert offset_map("N[a=16]C", (2, 2), 8).tolist() == [[0, 1], [2, 3]]
    # Tiles (2, 4), and in them (2, 1) of XLA: neighbours along the outer axis lie side by side.
    tiled = offset_map("{1,0:T(2,4)(2,1)}", (2, 8))
    assert tiled.tolist() == [[0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]]


def test_padding_is_marked() -> None:
    """Offsets in blocks that are not full, and in gaps of alignment, hold no element."""
    index, inside = indices("N4n", [[0, 4], [5, 6]], (6,))
    assert index[0].tolist() == [[0, 4], [5, -1]]
    assert inside.tolist() == [[True, True], [True, False]]
    index, inside = indices("N[a=4]C", range(8), (2, 3), 1)
    assert inside.tolist() == [True, True, True, False, True, True, True, False]
    assert index[1].tolist() == [0, 1, 2, -1, 0, 1, 2, -1]
    index, inside = indices("", [0, 0], ())
    assert index == ()
    assert inside.tolist() == [True, True]


def test_offsets_of_huge_tensors() -> None:
    """Sums come out right where one of their terms is beyond 64 bits."""
    n = 2**60
    assert offsets("4cC", (n - 1,), (n,), 1) == n - 1
    assert offsets("4cC", [[n - 4, n - 3]], (n,), 1).tolist() == [n // 4 - 1, n // 2 - 1]
    assert offsets("N4cC", ([0], n - 1), (1, n), 1).tolist() == [n - 1]
    index, _ = indices("4cC", n // 2 - 1, (n,), 1)
    assert index[0] == n - 3
    assert nbytes("4cC", (n,), 1) == n


# Logical and physical indices, and both in two layouts: the values of TVM's bijective layouts


@given(cases(2))
def test_indices_lead_to_the_same_values(case: Case) -> None:
    """At converted indices, the physical arrays of one tensor in two layouts have one value."""
    source, target = case.layouts
    how = {"logical": case.logical}
    tensor = np.arange(1, 1 + np.prod(case.shape, dtype=int)).reshape(case.shape)
    index = physical_index(source, np.indices(case.shape), case.shape, **how)
    assert np.array_equal(apply(source, tensor, **how)[index], tensor)
    again = logical_index(source, index, case.shape, **how)
    assert all(np.array_equal(a, b) for a, b in zip(again, np.indices(case.shape), strict=True))
    other = convert_index(source, target, index, case.shape, **how)
    assert np.array_equal(apply(target, tensor, **how)[other], tensor)
    steps = strides(target, case.shape, 8, **how)
    at = sum(np.multiply(a, b) for a, b in zip(other, steps, strict=True))
    assert np.array_equal(np.broadcast_to(at, case.shape), offset_map(target, case.shape, 8, **how))


@given(cases(2, least=1))
def test_shapes_convert_for_whole_blocks(case: Case) -> None:
    """The physical shape of a tensor that fills its blocks leads to that of any other layout."""
    source, target = case.layouts
    order = source.logical
    sizes = dict(zip(case.logical, case.shape, strict=True))
    whole = padded_shape(source, [sizes[axis] for axis in order])
    if any(sum(block.size is None for block in dim.blocks) > 1 for dim in source.dims):
        return  # several axes packed with their outermost blocks: no shape tells their sizes
    found = convert_shape(source, target, physical_shape(source, whole))
    assert found == physical_shape(target, whole, logical=order)


# Layouts as targets on a tile memory


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


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: physical_shape("NC", (2,)),
        "shape (2,) has 1 entries for the 2 axes 'NC' of layout NC",
    ),
    (lambda: physical_shape("NC", (2, -1)), "shape[1] must be an integer of 0 or more, got -1"),
    (lambda: physical_shape("NC", (2, 1.5)), "shape[1] must be an integer of 0 or more, got 1.5"),
    (lambda: physical_shape("NC", "23"), "shape must be a list of integers, got '23'"),
    (lambda: physical_shape("N*C", (1, 1, 1)), "layout N*C leaves a dimension open (*)"),
    (lambda: physical_shape("*", (1,)), "layout * leaves a dimension open (*); name its axis"),
    (lambda: strides("__undef__", ()), "an undefined layout says nothing about where elements lie"),
    (lambda: physical_shape("NC", (1, 1), logical="NN"), "logical order 'NN' must name each axis"),
    (lambda: physical_shape("NC", (1, 1), logical="N"), "of layout NC once, as 'NC' does"),
    (lambda: physical_shape("NC", (1, 1), logical=["N", "C"]), "['N', 'C'] must name each axis"),
    (lambda: physical_shape(3, (1, 1)), "a layout must be a text, got 3"),
    (lambda: strides("NC", (2, 2), 0), "element_bytes must be an integer of 1 or more, got 0"),
    (lambda: nbytes("N", (2**63,), 1), "layout N of shape (9223372036854775808,) takes more bytes"),
    (lambda: nbytes("N", (2**62,), 2), "takes more bytes than 64 bits count"),
    (lambda: nbytes("N[a=4611686018427387904]C", (2, 1)), "takes more bytes than 64 bits count"),
    (lambda: physical_shape("NCHW16c", (0, 2**62, 2, 2)), "takes more bytes than 64 bits count"),
    (
        lambda: physical_shape(Layout((Dim((Block("C", 4),)),)), (1,)),
        "layout 4c: axis C has no outermost block",
    ),
    (
        lambda: physical_shape(Layout((Dim((Block("C"), Block("C"))),)), (1,)),
        "axis C is there twice",
    ),
    (
        lambda: physical_shape(Layout((Dim((Block("C"),), ("a=0",)),)), (1,)),
        "layout C[a=0]: an alignment must be 1 or more",
    ),
    (lambda: zeros("N", (2**50,), "f4"), "a tensor of layout N needs about"),
    (lambda: offsets("NC", (0, 3), (2, 3)), "C: 3 is out of range; there are 3, from 0"),
    (lambda: offsets("NC", (-1, 0), (2, 3)), "N: -1 is out of range; there are 2, from 0"),
    (
        lambda: offsets("NC", (0, np.uint64(2**63)), (2, 3)),
        "C: 9223372036854775808 is out of range",
    ),
    (lambda: offsets("NC", (0, 2**70), (2, 3)), "C: indices must be integers, not object"),
    (lambda: offsets("NC", (0.0, 0), (2, 3)), "N: indices must be integers, not float64"),
    (lambda: offsets("NC", (True, 0), (2, 3)), "N: indices must be integers, not bool"),
    (lambda: offsets("NC", (0,), (2, 3)), "an index has 2 entries here, got 1"),
    (lambda: offsets("NC", 0, (2, 3)), "an index has 2 arrays of integers, not 0"),
    (lambda: offsets("NC", ([[1], [1, 0]], 0), (2, 3)), "an index has 2 arrays of integers, not"),
    (lambda: offsets("NC", ([0, 1], [0, 1, 2]), (2, 3)), "shapes (2,), (3,) do not broadcast"),
    (lambda: offsets("NC", (0, 0), (2, 0)), "C: 0 is out of range; there are 0, from 0"),
    (lambda: indices("NC", 6, (2, 3)), "offset: 6 is out of range; there are 6, from 0"),
    (lambda: indices("N4n", [-1], (3,)), "offset: -1 is out of range; there are 4, from 0"),
    (lambda: offset_map("NC", (2**20, 2**30)), "the offsets of all elements of shape"),
    (lambda: offset_map("*", (2,)), "layout * leaves a dimension open"),
    (lambda: indices("NC", 0, (1,)), "shape (1,) has 1 entries for the 2 axes 'NC' of layout NC"),
    (lambda: physical_index("NC", (0, 3), (2, 3)), "C: 3 is out of range; there are 3, from 0"),
    (
        lambda: logical_index("NC4c", (0, 0, 4), (2, 3)),
        "dimension 2: 4 is out of range; there are 4",
    ),
    (
        lambda: logical_index("NC4c", (0, 0, [1, 3]), (2, 3)),
        "index 3 along axis C of size 3 is padding of layout NC4c",
    ),
    (lambda: convert_index("NC4c", "NC", (0, 0, 3), (2, 3)), "is padding of layout NC4c"),
    (lambda: convert_index("NC", "NCH", (0, 0), (2, 3)), "logical order 'NC' must name each axis"),
    (lambda: convert_index("NC", "NC", 3, (2, 3)), "an index has 2 arrays of integers, not 3"),
    (lambda: convert_shape("NC", "NH", (2, 3)), "logical order 'NC' must name each axis of layout"),
    (lambda: convert_shape("NC4c", "NC", (2, 3)), "has 2 entries for the 3 dimensions of layout"),
    (lambda: convert_shape("NC4c", "NC", (2, 3, 5)), "(2, 3, 5) does not tell one size of each"),
    (lambda: convert_shape("[4n4c]NC", "NC", (15, 1, 1)), "(15, 1, 1) does not tell one size"),
    (
        lambda: convert_shape(Layout((Dim((Block("N"), Block("C"))),)), "NC", (6,)),
        "physical shape (6,) does not tell one size of each axis of layout [NC]",
    ),
    (lambda: convert_shape("*", "NC", (6,)), "layout * leaves a dimension open"),
    (lambda: tile_mapping("N*", (2, 3), MEMORY), "layout N* leaves a dimension open"),
    (lambda: tile_mapping("NC", (2,), MEMORY), "shape (2,) has 1 entries for the 2 axes 'NC'"),
    (lambda: tile_mapping("NC", (2, 3), MEMORY, grain=0), "grain must be an integer of 1 or more"),
    (lambda: tile_mapping("NC", (2, 3), MEMORY, boxes=3), "boxes must be true or false, got 3"),
    (lambda: tile_mapping("__undef__", (), MEMORY), "an undefined layout says nothing"),
    (lambda: tile_mapping("CN", (2**20, 2**30), MEMORY), "the tiles of all elements in layout CN"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_is_refused(call: Callable[[], Any], reason: str) -> None:
    """Sizes, indices, offsets and tiles without a meaning are refused in one line that says why."""
    with refused(reason):
        call()
