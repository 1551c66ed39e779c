"""Reshapes with sizes left open, and groups of dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.layout.layout import LayoutError
from layoutopt.layout.reshape import reshape_dims

DIMS = [
    ((2, 3, 4), (6, 4), (6, 4)),
    ((2, 3, 4), (0, 12), (2, 12)),
    ((2, 3, 4), ("match", "fill"), (2, 12)),
    # PlaidML writes through a pointer that the next dimension may have made stale.
    ((2, 3, 4), (-1, 0, 2), (4, 3, 2)),
    ((2, 3, 4), (0, 0, 0), (2, 3, 4)),
    ((2, 3, 4), (-1,), (24,)),
    ((2, 3, 4), ("match", 1, -1, 1), (2, 1, 12, 1)),
    ((2, 3, 4), (24, "fill"), (24, 1)),
    ((), (), ()),
    ((), (-1,), (1,)),
    ((1, 1), (), ()),
    ((0, 3), (3, -1), (3, 0)),
    ((0, 3), (0, 5), (0, 5)),
    ((5, 0), (-1, 0, 3), None),
    (np.array([2, 6]), [np.int64(3), -1], (3, 4)),
]


@pytest.mark.parametrize(("shape", "wanted", "found"), DIMS)
def test_open_sizes(shape, wanted, found) -> None:
    """Sizes that match are the input's, and one is what the others leave."""
    if found is None:
        with pytest.raises(LayoutError, match="without elements"):
            reshape_dims(shape, wanted)
    else:
        assert reshape_dims(shape, wanted) == found


REFUSED = [
    ((2, 3), (-1, "fill"), "reshape: only one size can be filled"),
    # PlaidML rounds 6 / 4 down to 1, and reshapes 6 elements to 4.
    ((2, 3), (4, -1), "reshape of (2, 3) to (4, -1): 6 elements do not fit"),
    ((2, 3), (7,), "reshape of (2, 3) to (7): 6 elements do not fit"),
    ((2, 3), (1, 6, 0), "wanted[2] has nothing to match: the input is (2, 3)"),
    ((2, 3), (1, 6, "match"), "wanted[2] has nothing to match: the input is (2, 3)"),
    # PlaidML divides by zero.
    ((0, 3), (0, -1), "reshape: any size would fill a tensor without elements"),
    ((2, 3), (6, -2), "wanted[1] must be an integer of -1 or more, got -2;"),
    ((2, 3), ("same", 3), "wanted[0] must be an integer of -1 or more, got 'same';"),
    ((2, 3), (2.0, 3), "wanted[0] must be an integer of -1 or more, got 2.0;"),
    ((2, 3), (None, 3), "wanted[0] must be an integer of -1 or more, got None;"),
    ((1, 3), (True, 3), "wanted[0] must be an integer of -1 or more, got True;"),
    ((2, 3), ([6], 1), "wanted[0] must be an integer of -1 or more, got [6];"),
    ((2, 3), "fill", "wanted must be a list of integers, got 'fill';"),
    ((2, 3), 6, "wanted must be a list of integers, got 6;"),
    ((2, -3), (6,), "shape[1] must be an integer of 0 or more, got -3"),
]


@pytest.mark.parametrize(("shape", "wanted", "told"), REFUSED)
def test_refused_sizes(shape, wanted, told: str) -> None:
    """Two sizes to fill, one that does not divide, one out of range and other things: a line."""
    with pytest.raises(LayoutError) as caught:
        reshape_dims(shape, wanted)
    assert str(caught.value).startswith(told)
    assert told.endswith(";") or str(caught.value) == told
