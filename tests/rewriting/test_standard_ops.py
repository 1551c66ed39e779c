"""Ops of the standard between transposes: all are rewritten, and still compute the same."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, defs, helper, numpy_helper

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.onnx.running import largest_difference, run
from layoutopt.onnx.transposes import transposes
from tests.standard import every_example

LATEST = 22
EACH = 3
"""Examples of each type of op."""

Arrays = dict[str, np.ndarray[Any, Any]]


def turned(model: ModelProto, data: Arrays, draw: random.Random) -> tuple[ModelProto, Arrays]:
    """Return an example of one op whose data comes and goes with its axes in another order.

    Operands other than the first are initialisers, or come turned as well if they have its rank.
    """
    [node] = model.graph.node
    first = data[node.input[0]]
    order = tuple(draw.sample(range(first.ndim), first.ndim))
    back = tuple(np.argsort(order).tolist())
    new, feeds = ModelProto(), Arrays()
    new.CopyFrom(model)
    graph = new.graph
    new.ir_version = 10
    for entry in new.opset_import:
        if entry.domain == "":
            entry.version = min(entry.version, LATEST)
    for field in (graph.node, graph.input, graph.output):
        del field[:]
    for name in dict.fromkeys(filter(None, node.input)):
        array = data[name]
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        like = array.ndim == first.ndim and array.dtype == first.dtype
        if name == node.input[0] or (like and draw.random() < 0.7):
            feeds[f"{name}_in"] = came = array.transpose(back)
            graph.input.append(helper.make_tensor_value_info(f"{name}_in", kind, came.shape))
            graph.node.append(helper.make_node("Transpose", [f"{name}_in"], [name], perm=order))
        else:
            graph.initializer.append(numpy_helper.from_array(array, name))
    graph.node.append(node)
    for value in model.graph.output:
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and len(kind.shape.dim) == first.ndim:
            out = f"{value.name}_out"
            graph.node.append(helper.make_node("Transpose", [value.name], [out], perm=back))
            sizes = [None] * first.ndim
            graph.output.append(helper.make_tensor_value_info(out, kind.elem_type, sizes))
        else:
            graph.output.append(value)
    return new, feeds


def examples() -> list[tuple[ModelProto, Arrays]]:
    """Return examples of one op of numbers, with their data."""
    found = []
    counts: Counter[str] = Counter()
    for case in every_example():
        nodes, versions = case.model.graph.node, case.model.opset_import
        version = next((x.version for x in versions if x.domain == ""), 0)
        if len(nodes) != 1 or nodes[0].domain or version < 7 or not case.data_sets:
            continue
        names = [x.name for x in case.model.graph.input]
        data = dict(zip(names, case.data_sets[0][0], strict=True))
        new = defs.get_schema(nodes[0].op_type, version).since_version > LATEST
        if not new and _fits(nodes[0], data) and counts[nodes[0].op_type] < EACH:
            counts[nodes[0].op_type] += 1
            found.append((case.model, data))
    return found


def _fits(node: NodeProto, data: dict[str, Any]) -> bool:
    numbers = all(isinstance(a, np.ndarray) and a.dtype.kind in "fiub" for a in data.values())
    return numbers and bool(node.input) and 2 <= data.get(node.input[0], np.zeros(0)).ndim <= 5


@pytest.mark.slow
def test_examples_of_the_standard_between_transposes() -> None:
    """Hardly any type of op keeps both transposes, none has more, and outputs are the same."""
    draw = random.Random(0)
    types, fewer = set(), set()
    for model, data in examples():
        given, feeds = turned(model, data, draw)
        kind = model.graph.node[0].op_type
        try:
            onnx.checker.check_model(given)
            run(given, feeds)
        except (InputError, onnx.checker.ValidationError):
            continue  # what cannot be run in this version, whatever its layouts
        result = layoutopt.convert(given)
        onnx.checker.check_model(result.model)
        assert transposes(result.model) <= transposes(given)
        types.add(kind)
        if transposes(result.model) < transposes(given):
            fewer.add(kind)
        if kind not in ("Bernoulli", "RandomNormalLike", "RandomUniformLike", "Multinomial"):
            difference = largest_difference(given, result.model, inputs=feeds)
            assert difference <= 1e-5, model.graph.name
    assert len(types) > 100
    assert len(fewer) > 85
