"""The examples with data that come with the ONNX standard."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np


@cache
def every_example() -> tuple[Any, ...]:
    """Return the examples, models with inputs and outputs; they are made anew, in seconds.

    Whoever changes a model copies it before.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return tuple(collect_testcases(None))
