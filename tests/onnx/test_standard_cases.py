"""Examples with data that come with the ONNX standard: views, and ops between transposes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, defs, helper, numpy_helper

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.conversion.rules import gradients
from layoutopt.conversion.rules.registry import OPERATORS, type_facts
from layoutopt.onnx.protobuf import bodies, copied, set_items
from layoutopt.onnx.read import read_onnx
from layoutopt.onnx.running import Outputs, run
from layoutopt.onnx.source import read_model
from layoutopt.onnx.transposes import transposes
from layoutopt.onnx.write import write_model
from tests.onnx.networks import conversion, every_example, passed_on, save

NUMBERS_CHANGE = ("Cast", "CastLike")
IN_TRAINING = "test_training_dropout"

VIEWS = [
    name
    for name, (facts, *_) in OPERATORS.items()
    if facts.gradient in (gradients.view, gradients.split)
]
"""Op types that only move elements."""


def with_constants(model: ModelProto, data: dict) -> ModelProto:
    """Return the model with the operands that carry structure as initialisers."""
    fixed = ModelProto()
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


def ordered(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Return nodes, those of their bodies by their results: constants come first where written."""
    found = list(map(copied, nodes))
    for body in (body for node in found for body in bodies(node)):
        set_items(body.node, sorted(ordered(body.node), key=lambda node: list(node.output)))
    return found


def steps(model: ModelProto) -> set[object]:
    """Return the ops of an example, each with what gives its operands and takes its results."""
    graph = model.graph
    ends: dict[str, object] = {x.name: described(x.type) for x in (*graph.input, *graph.output)}
    versions = {x.domain: x.version for x in model.opset_import}
    found = set[object]()
    for node in graph.node:
        within = tuple(n.op_type for body in bodies(node) for n in body.node)
        names = tuple(sorted(x.name for x in node.attribute))
        around = tuple(ends.get(name, bool(name)) for name in (*node.input, *node.output))
        version = versions[node.domain]
        if defs.has(node.op_type, node.domain):
            version = defs.get_schema(node.op_type, version, node.domain).since_version
        found.add((version, node.domain, node.op_type, names, within, around))
        ends.update((name, node.op_type) for name in node.output if name)
    return found


def described(kind: TypeProto) -> tuple[object, ...]:
    """Return what a type is, of what numbers, and of how many axes."""
    tensor = kind.tensor_type
    return kind.WhichOneof("value"), tensor.elem_type, len(tensor.shape.dim)


def test_every_example_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Only sequences and shapes that depend on data are refused; ops are written as they were.

    An example is left out where others have all its steps.
    """
    seen, refused = set[object](), Counter[str]()
    read = written = 0
    for case in every_example():
        own = steps(case.model)
        if own <= seen:
            continue
        seen |= own
        [version, *_] = [x.version for x in case.model.opset_import if x.domain == ""] or [0]
        if len(case.model.graph.node) == 1 and 7 <= version <= LATEST:
            source = read_model(case.model)
            new = write_model(source, conversion(source.graph))
            assert ordered(new.graph.node) == ordered(case.model.graph.node), case.name
            written += 1
        try:
            read_onnx(save(case.model, tmp_path))
            read += 1
        except InputError as error:
            reasons = ("is no tensor", "cannot be inferred", "operator set is of version 1;")
            [reason] = [reason for reason in reasons if reason in str(error)]
            refused[reason] += 1
            assert "\n" not in str(error)
    assert len(refused) == 3
    assert read > 0.9 * (read + refused.total())
    assert written > 500


# Ops between transposes: all are rewritten, and still compute the same


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
            difference = Outputs(given, inputs=feeds).difference(result.model)
            assert difference <= 1e-5, model.graph.name
    assert len(types) > 100
    assert len(fewer) > 85
