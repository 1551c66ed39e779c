"""Networks with loops, scans and branches: fewest transposes, and the same results."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, checker, defs

import layoutopt
from layoutopt.base.result import Status
from layoutopt.onnx.protobuf import HOLDERS, graphs, is_standard
from layoutopt.onnx.running import run
from layoutopt.onnx.transposes import transposes
from tests.onnx.networks import cases, network, random_array

CASES = cases("loops")
ORDERS = {"HEAD": "Transpose<perm=[0,3,1,2]>", "TAIL": "Transpose<perm=[0,2,3,1]>"}
X = "float[1,2,3,4] x"


def given(row: dict[str, Any]) -> ModelProto:
    """Return the network of a case."""
    text = row["text"]
    for word, node in ORDERS.items():
        text = text.replace(f"{word}(", f"{node}(")
    inputs, outputs = row.get("inputs", X), row.get("outputs", "float[1,2,3,4] y")
    known = row.get("constants")
    text = f"g (bool c, int64 n, {inputs}) => ({outputs}) {{ {text} }}"
    return network(text, known, opset=row.get("opset", 17))


def feeds(model: ModelProto) -> list[dict[str, Any]]:
    """Return inputs, for both branches and for none, one and three rounds."""
    shape = [dim.dim_value for dim in model.graph.input[2].type.tensor_type.shape.dim]
    data = {model.graph.input[2].name: random_array(shape)}
    return [
        {"c": np.array(c), "n": np.array(n), **data} for c, n in product((True, False), (0, 1, 3))
    ]


@pytest.mark.parametrize("name", CASES)
def test_bodies(name: str) -> None:
    """So many transposes are left as were counted by hand, whatever is fed the results are equal.

    What no round collects has no sizes that runtimes agree upon.
    """
    row = CASES[name]
    model = given(row)
    result = layoutopt.convert(model)
    assert (result.status, result.notes) == (Status.OPTIMAL, ())
    checker.check_model(result.model, full_check=True)
    assert result.before.transforms == row["before"]
    assert result.after.transforms == row.get("after", 0)
    assert transposes(result.model) == row.get("after", 0) + row.get("unknown", 0)
    inside = [node for graph in list(graphs(result.model.graph))[1:] for node in graph.node]
    assert sum(node.op_type == "Transpose" for node in inside) == row.get("inside", 0)
    for inputs in feeds(model):
        if inputs["n"] or len(model.graph.output) == 1:
            before, after = run(model, inputs), run(result.model, inputs)
            for output, value in before.items():
                np.testing.assert_allclose(after[output], value, rtol=1e-5, atol=1e-6)
    again = layoutopt.convert(result.model)
    assert again.before.transforms == again.after.transforms == row.get("after", 0)


def test_all_types_that_hold_graphs_are_known() -> None:
    """They are those of all versions of ONNX's own ops that have an attribute of graphs."""
    kinds = (defs.OpSchema.AttrType.GRAPH, defs.OpSchema.AttrType.GRAPHS)
    found = {
        schema.name
        for schema in defs.get_all_schemas_with_history()
        if is_standard(schema.domain)
        and any(attribute.type in kinds for attribute in schema.attributes.values())
    }
    assert found == HOLDERS
