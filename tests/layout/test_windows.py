"""Places of windows that slide, and padding."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from layoutopt.layout.grouping import windows
from tests.support import refused

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
    ({"strides": (1,)}, "strides has 1 entries, 2 are needed"),
    ({"strides": (1, 0)}, "strides[1] must be an integer of 1 or more, got 0"),
    ({"dilations": 2}, "dilations must be a list of integers, got 2"),
    ({"data_dilations": (1, 1, 1)}, "data_dilations has 3 entries, 2 are needed"),
    # PlaidML finds (5 - 9 + 1) / 1 = -3 places.
    ({"autopad": "valid", "dilations": (4, 1)}, "a window over 9 elements does not fit into 5"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_refused(given: dict[str, Any], told: str) -> None:
    """Wrong words, numbers and padding, and windows that are too long, are refused in a line."""
    with refused(told):
        windows((5, 5), (3, 3), **given)
