"""Views against the examples with data that come with the ONNX standard."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import defs, numpy_helper

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules import gradients
from layoutopt.conversion.rules.registry import OPERATORS, type_facts
from layoutopt.onnx.read import read_onnx
from tests.onnx.networks import passed_on, save
from tests.standard import every_example

NUMBERS_CHANGE = ("Cast", "CastLike")
IN_TRAINING = "test_training_dropout"

VIEWS = [
    name
    for name, (facts, *_) in OPERATORS.items()
    if facts.gradient is not None and facts.gradient.build in (gradients.view, gradients.split)
]
"""Op types that only move elements."""


def with_constants(model: onnx.ModelProto, data: dict) -> onnx.ModelProto:
    """Return the model with the operands that carry structure as initialisers."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    structure = {
        node.input[i]
        for node in model.graph.node
        for i in type_facts(node.op_type).structural
        if i < len(node.input)
    } - {""}
    for name in structure & set(data):
        fixed.graph.initializer.append(numpy_helper.from_array(np.asarray(data[name]), name))
    return fixed


@pytest.mark.slow
def test_views_move_elements_as_the_standard_says(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for case in every_example():
        types = {node.op_type for node in case.model.graph.node}
        tensors = all(x.type.HasField("tensor_type") for x in case.model.graph.input)
        changed = not types.isdisjoint(NUMBERS_CHANGE) or case.name.startswith(IN_TRAINING)
        if not types <= set(VIEWS) or not tensors or changed:
            continue
        for inputs, outputs in case.data_sets:
            data = {x.name: v for x, v in zip(case.model.graph.input, inputs, strict=True)}
            graph = read_onnx(save(with_constants(case.model, data), tmp_path))
            said = passed_on(graph, data)
            for value, truth in zip(case.model.graph.output, outputs, strict=True):
                if types == {"Dropout"} and value.name == "z":
                    continue  # the mask
                assert said[value.name].tobytes() == np.asarray(truth).tobytes(), case.name
                seen.update(types)
    known = {name for name in VIEWS if defs.has(name)}
    assert set(seen) == known - set(NUMBERS_CHANGE)


@pytest.mark.slow
def test_every_example_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """What is refused has sequences in it, or shapes that depend on the data."""
    read = 0
    for case in every_example():
        try:
            read_onnx(save(case.model, tmp_path))
            read += 1
        except InputError as error:
            reasons = ("is no tensor", "cannot be inferred", "operator set is of version 1;")
            assert any(reason in str(error) for reason in reasons), case.name
            assert "\n" not in str(error)
    assert read > 0.9 * len(every_example())
