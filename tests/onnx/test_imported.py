"""Networks as unwinding graphs, or refused, by rows of ``imported.toml`` and ``views.toml``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import defs
from onnx.reference import ReferenceEvaluator

from layoutopt.base.errors import InputError
from layoutopt.graphs.ops import Array
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.read import UnwindingModel, read_network, read_onnx
from tests.onnx.networks import (
    added,
    cases,
    model,
    network,
    node,
    pairs,
    passed_on,
    save,
    trained,
    types,
)
from tests.support import fits

ROWS = cases("imported")
GIVEN = {"text", "constants", "opset", "domains", "dims", "training", "refused", "warnings"}


def numbers(graph: Graph) -> dict[str, Array]:
    """Return the elements of all sinks, numbered through."""
    sinks, start = {}, 0
    for sink in graph.sinks():
        sinks[sink.name] = np.arange(start, start + sink.size).reshape(sink.shape)
        start += sink.size
    return sinks


def told(found: UnwindingModel) -> dict[str, Any]:
    """Return all that a row may tell of a network that was read."""
    graph = found.graph
    roots = numbers(graph)
    carried = passed_on(
        graph, roots | {x.name: np.arange(x.size) for x in graph.tensors() if x.name == "y.loss"}
    )
    return {
        "ops": [f"{name} {kind}" for name, kind in types(graph).items()],
        "types": types(graph),
        "sinks": list(roots),
        "barriers": [barrier.name for barrier in graph.barriers()],
        "shapes": {tensor.name: list(tensor.shape) for tensor in graph.tensors()},
        "inputs": {op.id: list(op.inputs) for op in graph.ops},
        "carried": {name: array.tolist() for name, array in carried.items()},
        "pairs": _lines(pairs(graph)),
        "added": _lines(added(graph)),
        "trained": sorted(trained(graph)),
    }


def _lines(rows: Iterable[tuple[object, ...]]) -> list[str]:
    return [" ".join(map(str, row)) for row in rows]


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A network becomes what its row tells, or is refused in this line; all warnings are known."""
    row = ROWS[name]
    form = {key: row[key] for key in ("opset", "domains") if key in row}
    path = save(network(row["text"], row.get("constants"), **form), tmp_path)
    options = {key: row[key] for key in ("dims", "training") if key in row}
    if "refused" in row:
        assert row.keys() <= GIVEN
        with pytest.raises(InputError) as caught:
            read_network(path, **options)
        assert fits(str(caught.value), f"{path}: {row['refused']}")
        assert "\n" not in str(caught.value)
        return
    found = read_network(path, **options)
    lines, expected = found.warnings(), row.get("warnings", [])
    assert len(lines) == len(expected), lines
    assert all(map(fits, lines, expected))
    if lines:
        assert not caplog.records
        read_onnx(path, **options)
        assert [r.getMessage() for r in caplog.records] == [f"{path}: {line}" for line in lines]
    known = told(found)
    assert {key.removeprefix("some_") for key in row} <= GIVEN | known.keys()
    for key, every in known.items():
        part = every if isinstance(every, list) else {k: every[k] for k in row.get(key, ())}
        assert part == row.get(key, part)
        assert set(row.get(f"some_{key}", ())) <= set(every)


VIEWS = cases("views")


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, tmp_path: Path) -> None:
    """Every input element is a different number, so equal numbers are the same element."""
    opset, text = VIEWS[name]
    if opset > defs.onnx_opset_version():
        pytest.skip("the installed onnx is older than the operator set")
    given = network(text, opset=opset)
    graph = read_onnx(save(given, tmp_path))
    data = {sink: array.astype(np.float32) for sink, array in numbers(graph).items()}
    assert data.keys() == {x.name for x in given.graph.input}  # structure makes no tensors
    moved = passed_on(graph, data)
    for output, truth in zip(
        given.graph.output, ReferenceEvaluator(given).run(None, data), strict=True
    ):
        assert graph.tensor(output.name).shape == truth.shape
        np.testing.assert_array_equal(moved[output.name], truth.reshape(-1))


def test_helper_names_avoid_those_of_the_network(tmp_path: Path) -> None:
    """``y.slice`` is a tensor of the network here, so the helper is numbered."""
    nodes = [node("Relu", "x", "y.slice"), node("Slice", "y.slice s e a t")]
    constants = {"s": [5], "e": [0], "a": [0], "t": [-1]}
    graph = read_onnx(save(model(nodes, {"x": (6,)}, constants=constants), tmp_path))
    assert [op.id for op in graph.ops] == ["x", "x.linear", "y.slice", "y.slice2", "y"]
