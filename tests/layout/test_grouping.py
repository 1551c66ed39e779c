"""Grouped convolutions and windows: numbers of groups, channels, and shapes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest

from layoutopt.layout.grouping import (
    FILTER_LAYOUTS,
    INPUT_LAYOUTS,
    Grouping,
    filter_shape,
    grouped_convolution,
    windows,
)
from tests.support import refused

# Grouped convolutions: the number of groups, channels, and shapes


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
        [node], "conv", [value("x", 1, (2, 8, 11, 13)), value("w", 1, shape)], [value("y", 1, None)]
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
