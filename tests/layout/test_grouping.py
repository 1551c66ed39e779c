"""Grouped convolutions and windows: numbers of groups, channels, and shapes."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import onnx
import pytest

from layoutopt.layout.grouping import (
    FILTER_LAYOUTS,
    INPUT_LAYOUTS,
    AutoGroup,
    Grouping,
    GroupLayout,
    filter_shape,
    grouped_convolution,
    normalised_grouping,
    windows,
)
from tests.support import refused, rows

# Grouped convolutions: the number of groups, channels, and shapes


T1 = "autogroup ungrouped means groups 1, got"
T2 = "autogroup auto cannot tell groups with group_layout in_C"
T3 = "groups must be an integer of 1 or more, got"
T4 = "need a group_layout: separate, in_C or in_K"
T5 = "autogroup depthwise needs a group_layout: separate, in_C or in_K"

LAYOUTS = ("none", "separate", "in_C", "in_K")

# PlaidML leaves the layout of an ungrouped convolution as it is.  Here it is none, unless the
# filter has an axis for groups.
ONE = [("ungrouped", layout, 1) for layout in ("none", "separate", "none", "none")]

MATRIX: dict[tuple[str, tuple[int, ...]], list[Any]] = {
    ("ungrouped", (1,)): ONE,
    ("ungrouped", (-1, 0, 2, 4)): [T1, T1, T1, T1],
    ("auto", (-1, 0, 1, 4)): [
        ("ungrouped", "none", 1),
        ("auto", "separate", None),
        T2,
        ("auto", "in_K", None),
    ],
    ("explicit", (-1, 0)): [T3, T3, T3, T3],
    ("explicit", (1,)): ONE,
    ("explicit", (2,)): [
        T4,
        ("explicit", "separate", 2),
        ("explicit", "in_C", 2),
        ("explicit", "in_K", 2),
    ],
    ("explicit", (4,)): [
        T4,
        ("explicit", "separate", 4),
        ("explicit", "in_C", 4),
        ("explicit", "in_K", 4),
    ],
    ("depthwise", (-1, 0, 1, 4)): [
        T5,
        ("depthwise", "separate", None),
        ("depthwise", "in_C", None),
        ("depthwise", "in_K", None),
    ],
}
"""By mode and numbers of groups, what becomes of each layout."""

CELLS = [
    (mode, layout, groups, cell)
    for (mode, numbers), row in MATRIX.items()
    for groups in numbers
    for layout, cell in zip(LAYOUTS, row, strict=True)
]


def test_matrix_is_whole() -> None:
    """The table has every mode with every layout."""
    assert get_args(GroupLayout) == LAYOUTS
    assert {mode for mode, _ in MATRIX} == set(get_args(AutoGroup))


@pytest.mark.parametrize(("mode", "layout", "groups", "cell"), CELLS)
def test_matrix(mode: AutoGroup, layout: GroupLayout, groups: int, cell: Any) -> None:
    """PlaidML's table of modes, layouts and numbers, which no test of its own covers."""
    if isinstance(cell, str):
        with refused(cell):
            normalised_grouping(layout, mode, groups)
    else:
        assert normalised_grouping(layout, mode, groups) == cell


def shaped(layout: str, kernel: tuple[int, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of a layout, the kernel in place of X."""
    return tuple(n for a in layout for n in (kernel if a == "X" else (sizes[a],)))


FILTERS: dict[str, dict[str, int]] = {
    "none": {"C": 12, "K": 8},
    "separate": {"G": 4, "C": 3, "K": 2},
    "in_C": {"C": 12, "K": 2},
    "in_K": {"C": 3, "K": 8},
}
"""Filters from 12 to 8 channels: of 4 groups, if any."""

DEPTHWISE: dict[str, dict[str, int]] = {
    "separate": {"G": 12, "C": 1, "K": 2},
    "in_C": {"C": 12, "K": 2},
    "in_K": {"C": 1, "K": 24},
}
"""Filters from 12 to 24 channels, of 12 groups."""

SINGLE: dict[str, dict[str, int]] = {
    "none": {"C": 12, "K": 8},
    "separate": {"G": 1, "C": 12, "K": 8},
    "in_C": {"C": 12, "K": 8},
    "in_K": {"C": 12, "K": 8},
}
"""Filters from 12 to 8 channels, of one group."""

SHAPES = [
    ("ungrouped", 1, SINGLE, 1, 8),
    ("explicit", 1, SINGLE, 1, 8),
    ("explicit", 4, {k: v for k, v in FILTERS.items() if k != "none"}, 4, 8),
    ("auto", 1, {k: v for k, v in FILTERS.items() if k in ("separate", "in_K")}, 4, 8),
    ("auto", 7, {k: v for k, v in SINGLE.items() if k != "in_C"}, 1, 8),
    ("depthwise", 1, DEPTHWISE, 12, 24),
    ("depthwise", 5, DEPTHWISE, 12, 24),
]
"""Mode, groups that are given, filters by layout, groups that are found, output channels."""

ACCEPTED = [
    (mode, given, layout, weights, groups, co, data, filters, kernel)
    for mode, given, every, groups, co in SHAPES
    for layout, weights in every.items()
    for data in INPUT_LAYOUTS
    for filters in FILTER_LAYOUTS
    if ("G" in filters) == (layout == "separate")
    for kernel in [(3,), (3, 2), (3, 2, 1)]
]


@pytest.mark.parametrize(
    ("mode", "given", "layout", "weights", "groups", "co", "data", "filters", "kernel"), ACCEPTED
)
def test_shapes(mode, given, layout, weights, groups, co, data, filters, kernel) -> None:
    """Every cell of the table that is not refused, in all layouts and one to three dimensions."""
    extent = (5, 6, 7)[: len(kernel)]
    found = grouped_convolution(
        shaped(data, extent, {"N": 2, "C": 12}),
        shaped(filters, kernel, weights),
        input_layout=data,
        filter_layout=filters,
        group_layout=layout,
        autogroup=mode,
        groups=given,
        autopad="valid",
    )
    assert (found.groups, found.ci, found.co) == (groups, 12, co)
    assert (found.f_ci, found.f_co) == (weights["C"], weights["K"])
    assert found.group_layout == ("none" if groups == 1 and "G" not in weights else layout)
    assert found.kernel == kernel
    out = tuple(n - k + 1 for n, k in zip(extent, kernel, strict=True))
    assert found.output_shape == shaped(data, out, {"N": 2, "C": co})
    assert found.pads == ((0, 0),) * len(kernel)
    check_channels(found)
    again = filter_shape(12, co, kernel, filter_layout=filters, group_layout=layout, groups=groups)
    assert again == shaped(filters, kernel, weights)


def check_channels(found: Grouping) -> None:
    """Walk PlaidML's index formulas: all channels are used, and all of the filter, none beyond."""
    inputs, outputs, weights = [], [], []
    per_in, per_out = found.ci // found.groups, found.co // found.groups
    for g, i, o in itertools.product(range(found.groups), range(per_in), range(per_out)):
        inputs.append(per_in * g + i)
        outputs.append(per_out * g + o)
        f_i = inputs[-1] if found.group_layout == "in_C" else i
        f_o = outputs[-1] if found.group_layout == "in_K" else o
        weights.append((g if found.group_layout == "separate" else 0, f_i, f_o))
    assert set(inputs) == set(range(found.ci))
    assert set(outputs) == set(range(found.co))
    axis = range(found.groups if found.group_layout == "separate" else 1)
    every = itertools.product(axis, range(found.f_ci), range(found.f_co))
    assert sorted(weights) == sorted(every)


WRONG_SHAPES = rows("""
# PlaidML checks none of these divisions, and rounds.
9 | KCX | (2, 9, 3) | in_C | explicit | 4 | 4 groups do not divide 9 input channels
8 | KCX | (6, 2, 3) | in_K | explicit | 4 | 4 groups do not divide 6 output channels
8 | KCX | (9, 2, 3) | in_K | auto | 1 | 4 groups do not divide 9 output channels
8 | KCX | (9, 1, 3) | in_K | depthwise | 1 | 8 groups do not divide 9 output channels
8 | KCX | (6, 3, 3) | in_K | auto | 1 | the filter's 3 input channels do not divide
2 | KCX | (6, 4, 3) | in_K | auto | 1 | the filter's 4 input channels do not divide
9 | GKCX | (4, 2, 2, 3) | separate | auto | 1 | 4 groups do not divide 9 input channels
# Channels of the filter that are not those of the group.
8 | KCX | (6, 4, 3) | none | ungrouped | 1 | none has 8 input channels for 8 in 1 groups, got 4
8 | KCX | (6, 4, 3) | none | auto | 4 | none has 8 input channels for 8 in 1 groups, got 4
8 | KCX | (6, 4, 3) | in_K | ungrouped | 1 | has 8 input channels for 8 in 1 groups, got 4
8 | KCX | (2, 2, 3) | in_C | explicit | 4 | in_C has 8 input channels for 8 in 4 groups, got 2
8 | KCX | (2, 2, 3) | in_C | depthwise | 1 | in_C has 8 input channels for 8 in 8 groups, got 2
8 | KCX | (8, 8, 3) | in_K | explicit | 4 | in_K has 2 input channels for 8 in 4 groups, got 8
8 | KCX | (8, 2, 3) | in_K | depthwise | 1 | in_K has 1 input channels for 8 in 8 groups, got 2
8 | GKCX | (4, 2, 1, 3) | separate | auto | 1 | has 2 input channels for 8 in 4 groups, got 1
8 | GKCX | (8, 2, 2, 3) | separate | depthwise | 1 | has 1 input channels for 8 in 8 groups, got 2
# A filter's axis of other groups than were asked for.
8 | GKCX | (2, 2, 2, 3) | separate | explicit | 4 | the filter has 2 groups, not 4
8 | GKCX | (2, 2, 1, 3) | separate | depthwise | 1 | the filter has 2 groups, not 8
8 | GKCX | (2, 2, 8, 3) | separate | ungrouped | 1 | the filter has 2 groups, not 1
# Words that do not go together.
8 | GKCX | (4, 2, 2, 3) | none | auto | 1 | filter_layout GKCX has an axis G, group_layout is none
8 | XGCK | (3, 4, 2, 2) | in_K | auto | 1 | filter_layout XGCK has an axis G, group_layout is in_K
8 | KCX | (2, 2, 3) | separate | auto | 1 | KCX lacks an axis G, group_layout is separate
8 | KCX | (2, 8, 3) | in_C | auto | 4 | autogroup auto cannot tell groups with group_layout in_C
8 | KCX | (2, 8, 3) | none | explicit | 4 | need a group_layout: separate, in_C or in_K
8 | KCX | (2, 8, 3) | in_C | explicit | 0 | groups must be an integer of 1 or more, got
8 | KCX | (2, 8, 3) | in_C | ungrouped | 2 | autogroup ungrouped means groups 1, got
8 | KCX | (2, 8, 3) | none | depthwise | 1 | depthwise needs a group_layout: separate, in_C or in_K
8 | KCX | (2, 8, 3) | in_G | auto | 1 | must be one of none, separate, in_C, in_K; got 'in_G'
8 | KCX | (2, 8, 3) | none | max | 1 | must be one of ungrouped, explicit, auto, depthwise; got
8 | KCX | (2, 8, 3) | none | ungrouped | '1' | autogroup ungrouped means groups 1, got '1'
8 | NXC | (2, 8, 3) | none | auto | 1 | filter_layout must be one of XCK, KCX, XGCK, GKCX; got 'NXC'
8 | KC | (2, 8) | none | auto | 1 | filter_layout must be one of
8 | None | (2, 8, 3) | none | auto | 1 | filter_layout must be one of
# Ranks and sizes.
8 | KCX | (2, 8, 3, 3) | none | auto | 1 | the input has 1 spatial dimensions, the filter 2
8 | KCHW | (2, 8, 3) | none | auto | 1 | filter_shape (2, 8, 3) does not have the axes KCHW
8 | GKCX | (2, 8) | separate | auto | 1 | filter_shape (2, 8) does not have the axes GKCX
8 | KCX | (2, 0, 3) | in_K | auto | 1 | filter_shape (2, 0, 3): only the batch can be 0
0 | KCX | (2, 2, 3) | in_K | auto | 1 | input_shape (2, 0, 5): only the batch can be 0
8 | KCX | (2, -8, 3) | none | auto | 1 | filter_shape[1] must be an integer of 0 or more, got -8
""")


@pytest.mark.parametrize(
    ("ci", "filters", "shape", "layout", "mode", "groups", "told"), WRONG_SHAPES
)
def test_refused_shapes(ci, filters, shape, layout, mode, groups, told: str) -> None:
    """What is refused by the table, channels that do not divide or fit, and wrong words."""
    with refused(told):
        grouped_convolution(
            (2, ci, 5),
            shape,
            input_layout="NCX",
            filter_layout=filters,
            group_layout=layout,
            autogroup=mode,
            groups=groups,
        )


def test_letters_of_dimensions() -> None:
    """With D, H, W in place of X, and in lower case, layouts are the same."""
    for letters, extent in {"W": (5,), "HW": (5, 6), "DHW": (5, 6, 7)}.items():
        plain = grouped_convolution((2, *extent, 8), (*(3,) * len(extent), 8, 4))
        named = grouped_convolution(
            (2, *extent, 8),
            (*(3,) * len(extent), 8, 4),
            input_layout=f"N{letters}C",
            filter_layout=f"{letters}CK".lower(),
        )
        assert named == plain
        assert named.output_shape == (2, *extent, 4)


def test_little() -> None:
    """A batch may be empty, and there may be no spatial dimensions."""
    assert grouped_convolution((0, 5, 8), (3, 8, 4)).output_shape == (0, 5, 4)
    assert grouped_convolution((2, 8), (8, 4)).output_shape == (2, 4)
    with refused("the input has 0 spatial dimensions, the filter 1"):
        grouped_convolution((2, 8), (3, 8, 4))


WRONG_FILTERS = rows("""
(9, 8, (3,)) | {'group_layout': 'in_C', 'groups': 4} | 4 groups do not divide 9 input channels
(8, 9, (3,)) | {'group_layout': 'in_C', 'groups': 4} | 4 groups do not divide 9 output channels
(8, 8, (3,)) | {'groups': 4} | need a group_layout: separate, in_C or in_K
(8, 8, (3,)) | {'group_layout': 'in_K', 'groups': 0} | groups must be an integer of 1 or more, got
(8, 8, (3,)) | {'group_layout': 'separate', 'groups': 4} | filter_layout XCK lacks an axis G
(8, 8, (3,)) | {'filter_layout': 'XGCK'} | filter_layout XGCK has an axis G
(8, 8, (3,)) | {'filter_layout': 'NXC'} | filter_layout must be one of
(8, 8, (3,)) | {'filter_layout': 'HWCK'} | does not have the axes HWCK
(8, 8, (0,)) | {} | kernel[0] must be an integer of 1 or more, got 0
(0, 8, (3,)) | {} | ci must be an integer of 1 or more, got 0
(8, 2.0, (3,)) | {} | co must be an integer of 1 or more, got 2.0
""")


@pytest.mark.parametrize(("sizes", "given", "told"), WRONG_FILTERS)
def test_no_filter(sizes: Any, given: dict[str, Any], told: str) -> None:
    """Groups that divide nothing, and words that do not go together, give no filter."""
    with refused(told):
        filter_shape(*sizes, **given)


PADS = {"valid": "VALID", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER"}


@pytest.mark.parametrize("autopad", ["valid", "same_upper", "same_lower", "explicit"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_against_onnx(autopad: Any, groups: int) -> None:
    """ONNX's convolution has NCX, KCX and in_K; its shape inference finds the same output."""
    shape = filter_shape(8, 12, (3, 2), filter_layout="KCX", group_layout="in_K", groups=groups)
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], group=groups, strides=[2, 3])
    told = {"strides": (2, 3), "autopad": autopad}
    if autopad == "explicit":
        node.attribute.append(onnx.helper.make_attribute("pads", [1, 0, 2, 1]))
        told["padding"] = (1, 0, 2, 1)
    else:
        node.attribute.append(onnx.helper.make_attribute("auto_pad", PADS[autopad]))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "conv",
        [value("x", 1, (2, 8, 11, 13)), value("w", 1, shape)],
        [value("y", 1, None)],
    )
    inferred = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph), strict_mode=True)
    sizes = [d.dim_value for d in inferred.graph.output[0].type.tensor_type.shape.dim]
    found = grouped_convolution(
        (2, 8, 11, 13),
        np.array(shape),
        input_layout="NCX",
        filter_layout="KCX",
        group_layout="in_K",
        autogroup="explicit",
        groups=groups,
        **told,
    )
    assert list(found.output_shape) == sizes


# Places of windows that slide, and padding


BY_HAND = [
    ((5,), (3,), {}, (5,), ((1, 1),)),
    ((5,), (2,), {}, (5,), ((0, 1),)),
    ((5,), (2,), {"autopad": "same_lower"}, (5,), ((1, 0),)),
    ((5,), (3,), {"strides": (2,)}, (3,), ((1, 1),)),
    ((6,), (3,), {"strides": (2,)}, (3,), ((0, 1),)),
    ((6,), (3,), {"strides": (2,), "autopad": "same_lower"}, (3,), ((1, 0),)),
    ((6,), (1,), {"strides": (4,)}, (2,), ((0, 0),)),
    ((5,), (3,), {"autopad": "valid"}, (3,), ((0, 0),)),
    ((7,), (3,), {"autopad": "valid", "dilations": (3,)}, (1,), ((0, 0),)),
    ((3,), (3,), {"autopad": "valid", "data_dilations": (2,)}, (3,), ((0, 0),)),
    ((5,), (3,), {"autopad": "explicit"}, (3,), ((0, 0),)),
    ((5,), (3,), {"autopad": "none", "padding": (2,)}, (7,), ((2, 2),)),
    ((5,), (3,), {"autopad": "explicit", "padding": (2, 0)}, (5,), ((2, 0),)),
    (
        (5, 8),
        (3, 4),
        {"autopad": "explicit", "padding": (0, 1, 1, 3), "strides": (1, 2)},
        (4, 5),
        ((0, 1), (1, 3)),
    ),
    ((5, 8), (3, 4), {"autopad": "explicit", "padding": (0, 1)}, (3, 7), ((0, 0), (1, 1))),
    ((), (), {}, (), ()),
]


@pytest.mark.parametrize(("size", "window", "given", "places", "pads"), BY_HAND)
def test_by_hand(size, window, given: dict[str, Any], places, pads) -> None:
    """Places and padding of small windows."""
    assert windows(size, window, **given) == (places, pads)


def test_places_are_all_that_fit() -> None:
    """For all small numbers there are as many places as starts in the padded data, one by one."""
    numbers = itertools.product(range(1, 8), range(1, 4), range(1, 4), (1, 2), (1, 2))
    for size, window, stride, dilation, apart in numbers:
        given = ((size,), (window,), (stride,), (dilation,), (apart,))
        data, reach = [*range(0, size * apart, apart)][-1] + 1, dilation * (window - 1) + 1
        for padding in [(0, 0), (1, 0), (2, 3)]:
            room = sum(padding) + data
            starts = [at for at in range(0, room, stride) if at + reach <= room]
            if starts:
                found = windows(*given, autopad="explicit", padding=padding)
                assert found == ((len(starts),), (padding,))
            else:
                with refused(f"a window over {reach} elements does not fit into {room}"):
                    windows(*given, autopad="explicit", padding=padding)
        for autopad in ("same_upper", "same_lower"):
            (places,), ((before, after),) = windows(*given, autopad=autopad)
            assert places == len(range(0, data, stride))
            # No less padding has room for the last place, and no side has much more.
            need = (places - 1) * stride + reach - data
            assert before + after == max(0, need)
            assert (after if autopad == "same_upper" else before) - (before + after) // 2 in (0, 1)
            assert abs(after - before) <= 1
            assert before <= after or autopad == "same_lower"
            assert after <= before or autopad == "same_upper"


REFUSED = [
    (
        {"autopad": "same"},
        "autopad must be one of explicit, none, valid, same_lower, same_upper; got 'same'",
    ),
    ({"autopad": None}, "autopad must be one of"),
    ({"padding": (1, 1)}, "autopad same_upper takes no padding, got (1, 1)"),
    ({"autopad": "valid", "padding": (0, 0)}, "autopad valid takes no padding"),
    # PlaidML fills up one entry with zeros, and three with the first.
    ({"autopad": "none", "padding": (1,)}, "padding must have 2 entries, 4 or none; got 1: (1,)"),
    ({"autopad": "none", "padding": (1, 1, 1)}, "padding must have 2 entries, 4 or none"),
    ({"autopad": "none", "padding": (1, -1)}, "padding[1] must be an integer of 0 or more, got -1"),
    ({"strides": (1,)}, "strides must have 2 entries, got 1"),
    ({"strides": (1, 0)}, "strides[1] must be an integer of 1 or more, got 0"),
    ({"dilations": 2}, "dilations must be a list of integers, got 2"),
    ({"data_dilations": (1, 1, 1)}, "data_dilations must have 2 entries, got 3"),
    # PlaidML finds (5 - 9 + 1) / 1 = -3 places.
    ({"autopad": "valid", "dilations": (4, 1)}, "a window over 9 elements does not fit into 5"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_refused(given: dict[str, Any], told: str) -> None:
    """Wrong words, numbers and padding, and windows that are too long, are refused in a line."""
    with refused(told):
        windows((5, 5), (3, 3), **given)
