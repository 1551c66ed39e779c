"""Problems with capacity: what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layoutopt.network.problem import Labelling
from tests.capacity.cases import case
from tests.support import labelling, refused

GIVEN = case([0, 0, 1], [2, 3], [1, 1, 4], [9, 9], {(0, 1): 1})

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "bans": ({"problem": labelling(3, 2, banned=[(0, 1)])}, "neither banned labels"),
    "no tiles": ({"problem": Labelling(3, 0), "capacity": np.zeros(0, int)}, "no tiles"),
    "length": ({"bytes": np.array([1, 2])}, "bytes: has 2 entries where 3 are needed"),
    "shape": ({"capacity": np.array([[9, 9]])}, "capacity: must be an array of one dimension"),
    "kind": ({"bytes": np.array([1.0, 2.0, 3.0])}, "bytes: must hold integers"),
    "negative": ({"capacity": np.array([-1, 9])}, "capacity: -1 is negative"),
    "class": ({"copies": np.array([2])}, "class_of: 1 is not below 1 classes"),
    "edge": ({"class_of": np.array([0, 1, 1])}, "an edge joins two classes"),
    "bytes": ({"copies": np.array([2**61, 1])}, "bytes: "),
    "capacity": ({"capacity": np.array([2**60, 2**60])}, "capacity: "),
    "copies": ({"copies": np.array([2**61, 1]), "bytes": np.array([0, 0, 1])}, "copies: "),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_are_refused(wrong: str) -> None:
    """Each wrong argument gives one line that names it."""
    change, text = WRONG[wrong]
    with refused(text):
        replace(GIVEN, **change)


def test_bytes_are_counted_by_class() -> None:
    """Class 0 has 2 copies of 2 bytes, class 1 has 3 of 4."""
    assert GIVEN.class_bytes.tolist() == [4, 12]
    assert (GIVEN.total_bytes, GIVEN.total_capacity) == (16, 18)
