"""Views by hand: every part of the package that reads them moves elements as NumPy does.

``views.txt`` has calls of a graph, whose sinks are named by their shapes and, below each call, what
NumPy makes of arrays of the same names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from layoutopt.check.affine import carried
from layoutopt.graphs.ops import AnyOp, Array, Kind
from layoutopt.program.lower import viewed
from layoutopt.program.target import NumpyTarget
from tests.examples.test_calls import operands

PAGE = Path(__file__).with_name("views.txt").read_text().splitlines()
LINES = [line for line in PAGE if not line.startswith("#")]
ROWS = list(zip(LINES[::2], LINES[1::2], strict=True))


@pytest.mark.parametrize(("call", "numpys"), ROWS)
def test_views(call: str, numpys: str) -> None:
    """Locations, the op, the check's boxes and a target's views say what NumPy says."""
    graph = operands()
    graph.sink((2, 3), name="y2_3")
    sinks = graph.sinks()
    out = eval(call, {"g": graph})  # of the page beside this file

    def by_numpy(arrays: dict[str, Any]) -> Array:
        return eval(numpys.strip(), {"np": np, **arrays})  # of the page beside this file

    locations = graph.locations()
    assert np.array_equal(locations[out.name], by_numpy(locations))
    arrays = {x.index: 100 * x.index + np.arange(x.size).reshape(x.shape) for x in sinks}
    wanted = by_numpy({x.name: arrays[x.index] for x in sinks})
    assert out.shape == wanted.shape
    op = graph.op(out)
    given = [arrays[t] for t in graph.carriers(graph.op_number(out))]
    assert np.array_equal(op.view(given), wanted)
    checked = carried(op, [x.reshape(-1) for x in given], [x.shape for x in given], out.shape)
    assert np.array_equal(checked.reshape(out.shape), wanted)
    [seen] = viewed(graph, NumpyTarget(graph), [out.index], arrays.__getitem__)
    assert np.array_equal(seen, wanted)


def test_all_views_are_on_the_page() -> None:
    """The page leaves no view out."""
    views = {cls.__struct_config__.tag for cls in get_args(AnyOp) if cls.kind is Kind.VIEW}
    assert {call.partition("(")[0] for call, _ in ROWS} == {f"g.{view}" for view in views}
