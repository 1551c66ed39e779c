"""Whole networks from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from tests.fuzzing.any_network.fused import optimised
from tests.fuzzing.any_network.pieces import PIECES, grow, piece_of
from tests.fuzzing.any_network.scope import Names, Scope, Value, declared, info
from tests.fuzzing.any_network.turned import TURNED

OPSETS = range(7, 29)


@dataclass(frozen=True)
class Case:
    """A network, with values for its inputs.

    Parameters
    ----------
    model
        The network.
    feeds
        Its inputs' values.
    runs
        Whether onnxruntime can be asked to run it: not where it has ops of unknown domains.
    random
        Whether it draws random numbers itself.
    """

    model: ModelProto
    feeds: dict[str, Value]
    runs: bool = True
    random: bool = False


def draw_case(seed: int, bodies: bool = False) -> Case:
    """Return the network of a seed; it need not run yet.

    Parameters
    ----------
    bodies
        Whether it begins with a loop, scan or branches between transposes.
    """
    draw = random.Random(seed)
    scope = Scope(draw, draw.choice(OPSETS), Names(draw))
    for n in range(draw.choice((1, 1, 2, 3))):
        _input(scope, first=n == 0)
    runs = True
    for _ in range(20 if bodies else 0):
        if piece_of(scope, TURNED):
            break
    for _ in range(draw.choice((1, 2, 3, 4, 5, 6, 8, 12))):
        if draw.random() < 0.015 and _unknown(scope):
            runs = False
        grow(scope, 1)
    if not scope.nodes:
        piece_of(scope, PIECES)
    model = _model(scope)
    if runs and draw.random() < 0.08:  # as a file that has been through onnxruntime
        model = optimised(model, draw.choice(("ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"))) or model
    return Case(model, scope.feeds, runs, scope.random)


def _input(scope: Scope, *, first: bool) -> None:
    draw = scope.draw
    rank = draw.choice((4, 4, 4, 3, 3, 2, 2, 5, 1, 0) if not first else (4, 4, 4, 3, 2, 5))
    shape = [draw.choice((1, 2, 2, 3, 4)) for _ in range(rank)]
    if draw.random() < 0.01 and shape:
        shape[draw.randrange(rank)] = 0
    kinds = ("float32",) * 12 + ("float16", "float64", "int64", "int32", "uint8", "int8", "bool")
    kind = draw.choice((*kinds, "str"))
    name = draw.choice(("x", "data", "y")) if first else scope.names.new("x")
    scope.inputs[name] = scope.feeds[name] = scope.values[name] = scope.number(shape, kind)


def _unknown(scope: Scope) -> bool:
    """Add an op that nobody knows, which is given the values of what it reads."""
    name = scope.pick("f")
    if name is None:
        return False
    domain = scope.draw.choice(("my.ops", "ai.other"))
    scope.domains.add(domain)
    made = scope.names.new("t")
    scope.nodes.append(helper.make_node("Twist", [name], [made], domain=domain, axis=1))
    scope.values[made] = scope[name]
    return True


def _model(scope: Scope) -> ModelProto:
    draw = scope.draw
    read = {name for node in scope.nodes for name in node.input}
    made = [name for node in scope.nodes for name in node.output if name in scope.values]
    made = [n for n in made if n not in scope.constants or draw.random() < 0.1]
    outputs = [n for n in made if n not in read and draw.random() < 0.9]
    outputs += [n for n in made if n in read and draw.random() < 0.12]
    outputs += [n for n in scope.inputs if draw.random() < 0.03]
    outputs += [x.name for x in scope.initialisers if draw.random() < 0.01]
    outputs = list(dict.fromkeys(outputs or made[-1:]))
    draw.shuffle(outputs)
    outputs += [n for n in outputs if draw.random() < 0.005]  # an output twice
    inputs = [_input_info(draw, name, value) for name, value in scope.inputs.items()]
    ends = [declared(draw, name, scope.values[name], wrong=0.02) for name in outputs]
    nodes = list(scope.nodes)
    if draw.random() < 0.06:
        draw.shuffle(nodes)
    version = draw.choice((8, 9, 10, 10, 11, 12))
    if draw.random() < 0.04 and not scope.functions and not scope.sparse:
        version = 3
        initial = [x for x in scope.initialisers if x.name not in scope.inputs]
        inputs += [helper.make_tensor_value_info(x.name, x.data_type, x.dims) for x in initial]
    graph = helper.make_graph(nodes, draw.choice(("g", "main graph")), inputs, ends)
    graph.initializer.extend(scope.initialisers)
    graph.sparse_initializer.extend(scope.sparse)
    for name in made:
        if name not in outputs and draw.random() < 0.2:
            graph.value_info.append(declared(draw, name, scope.values[name], wrong=0.02))
    held = [x.name for x in scope.initialisers]
    if held and made and draw.random() < 0.04:
        annotation = graph.quantization_annotation.add(tensor_name=draw.choice(made))
        scale = annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR")
        scale.value = draw.choice(held)
    model = helper.make_model(graph, opset_imports=scope.imports(), ir_version=version)
    model.functions.extend(scope.functions)
    if draw.random() < 0.1:
        helper.set_model_props(model, {"author": "nobody", "layoutopt.status": "optimal"})
    if draw.random() < 0.1:
        graph.doc_string = "a graph"
    return model


def _input_info(draw: random.Random, name: str, value: Any) -> ValueInfoProto:
    choice = draw.random()
    if choice < 0.6 or isinstance(value, list):
        return info(name, value)
    if choice < 0.62:
        return info(name, value, None)
    return declared(draw, name, np.asarray(value), wrong=0)
