"""Ways to spoil a network of ONNX: one thing in it, or more, that no exporter would write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from layoutopt.conversion.rules.registry import OPERATORS
from layoutopt.onnx.protobuf import graphs
from tests.fuzzing.mutations import spoil_bytes

Spoil: TypeAlias = Callable[[ModelProto, random.Random], None]

SIZES = (0, 1, 2, 3, 7, 1025, 10**6, 2**31, 2**40, 2**62, 2**63 - 1, -1, -2, -(2**63))
NUMBERS = (*SIZES, 4, -3, 64)
VERSIONS = (-1, 0, 1, 5, 6, 7, 9, 11, 13, 18, 21, 22, 23, 25, 26, 99, 2**31, 2**62)
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "layoutopt", "layoutopt.nhwc", "\n")
PLACES = (
    *("weights.bin", "../outside/secret.bin", "link.bin", "linked/secret.bin", "/etc/passwd"),
    *("/dev/zero", "/dev/stdin", ".", "", "a\0b", "none.bin", "model.onnx", "x" * 300),
)
"""Where external data may claim to be; ``link.bin`` and ``linked`` lead outside of the folder."""

OP_TYPES = (*(name for name in OPERATORS if "::" not in name), "Nothing")


def spoil_network(data: bytes, draw: random.Random) -> bytes:
    """Spoil one to four things in a network; what is none, byte by byte."""
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except Exception:  # protobuf's own error class has no types
        return spoil_bytes(data, draw)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        spoil = draw.choice(SPOILS)
        try:
            spoil(model, draw)
        except (IndexError, ValueError, TypeError):  # nothing of this kind in it, or out of range
            continue
    return bytes(model.SerializeToString())


def _graph(model: ModelProto, draw: random.Random) -> GraphProto:
    return draw.choice(list(graphs(model.graph)))


def _node(model: ModelProto, draw: random.Random) -> NodeProto:
    return draw.choice(_graph(model, draw).node)


def _value(model: ModelProto, draw: random.Random) -> ValueInfoProto:
    graph = _graph(model, draw)
    return draw.choice([*graph.input, *graph.output, *graph.value_info])


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    for graph in graphs(model.graph):
        yield from graph.initializer
        yield from (a.t for node in graph.node for a in node.attribute if a.HasField("t"))


def _name(model: ModelProto, draw: random.Random) -> str:
    """Return the name of any tensor, or of none."""
    graph = _graph(model, draw)
    names = [name for node in graph.node for name in (*node.input, *node.output)]
    names += [x.name for x in (*graph.input, *graph.initializer)]
    return draw.choice([*names, "", "missing", "\n"])


def size(model: ModelProto, draw: random.Random) -> None:
    """A dimension of another size, or a symbolic one."""
    dim = draw.choice(_value(model, draw).type.tensor_type.shape.dim)
    if draw.random() < 0.3:
        dim.dim_param = draw.choice(("N", "", "a\nb", "-1"))
    else:
        dim.dim_value = draw.choice(SIZES)


def rank(model: ModelProto, draw: random.Random) -> None:
    """A shape with a dimension more, or none at all."""
    shape = _value(model, draw).type.tensor_type.shape
    kind = draw.randrange(3)
    if kind == 0:
        shape.dim.add(dim_value=draw.choice(SIZES))
    elif kind == 1:
        shape.Clear()
    else:
        del shape.dim[draw.randrange(len(shape.dim)) :]


def kind(model: ModelProto, draw: random.Random) -> None:
    """A value of another type: of other elements, a sequence, or none."""
    value = _value(model, draw)
    choice = draw.randrange(4)
    if choice == 0:
        value.type.tensor_type.elem_type = draw.choice((*range(27), 99, -1))
    elif choice == 1:
        inner = TypeProto()
        inner.CopyFrom(value.type)
        value.type.CopyFrom(helper.make_sequence_type_proto(inner))
    elif choice == 2:
        value.type.Clear()
    else:
        value.type.sparse_tensor_type.elem_type = 1


def wires(model: ModelProto, draw: random.Random) -> None:
    """A node that reads or makes something else: what is below it, itself, or nothing."""
    node = _node(model, draw)
    names = draw.choice((node.input, node.output))
    choice = draw.randrange(4)
    if choice == 0:
        names.append(_name(model, draw))
    elif choice == 1:
        del names[draw.randrange(len(names))]
    elif choice == 2:
        del names[:]
    else:
        names[draw.randrange(len(names))] = _name(model, draw)


def order(model: ModelProto, draw: random.Random) -> None:
    """Nodes in another order, one twice, or one away."""
    graph = _graph(model, draw)
    nodes = list(graph.node)
    choice = draw.randrange(4)
    if choice == 0:
        draw.shuffle(nodes)
    elif choice == 1:
        nodes.insert(draw.randrange(len(nodes)), draw.choice(nodes))
    elif choice == 2:
        nodes.pop(draw.randrange(len(nodes)))
    else:
        nodes.clear()
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def ends(model: ModelProto, draw: random.Random) -> None:
    """Inputs, outputs or initialisers away, twice, or of other names."""
    graph = _graph(model, draw)
    values = draw.choice((graph.input, graph.output, graph.initializer, graph.value_info))
    choice = draw.randrange(4)
    if choice == 0:
        del values[:]
    elif choice == 1:
        values.add().CopyFrom(draw.choice(values))
    elif choice == 2:
        values[draw.randrange(len(values))].name = _name(model, draw)
    else:
        graph.input.add(name=_name(model, draw))


def op_type(model: ModelProto, draw: random.Random) -> None:
    """Another op with the same operands."""
    node = _node(model, draw)
    node.op_type = draw.choice(OP_TYPES)
    if draw.random() < 0.3:
        node.domain = draw.choice(DOMAINS)


def versions(model: ModelProto, draw: random.Random) -> None:
    """Other operator sets, or another version of the file."""
    choice = draw.randrange(4)
    if choice == 0:
        model.ir_version = draw.choice(VERSIONS)
    elif choice == 1:
        model.opset_import.add(domain=draw.choice(DOMAINS), version=draw.choice(VERSIONS))
    elif choice == 2:
        del model.opset_import[draw.randrange(len(model.opset_import))]
    else:
        draw.choice(model.opset_import).version = draw.choice(VERSIONS)


def attribute(model: ModelProto, draw: random.Random) -> None:
    """An attribute that is missing, twice there, or of another kind or value."""
    node = _node(model, draw)
    choice = draw.randrange(6)
    if choice == 0:
        names = ("axis", "axes", "perm", "value", "to", "pads", "group", "to_multiple", "body")
        node.attribute.append(helper.make_attribute(draw.choice(names), _attribute_value(draw)))
        return
    given = draw.choice(node.attribute)
    if choice == 1:
        node.attribute.remove(given)
    elif choice == 2:
        node.attribute.add().CopyFrom(given)
    elif choice == 3:
        given.CopyFrom(helper.make_attribute(given.name, _attribute_value(draw)))
    elif choice == 4:
        given.type = draw.choice(list(AttributeProto.AttributeType.values()))
    elif given.ints:
        given.ints[draw.randrange(len(given.ints))] = draw.choice(NUMBERS)
    else:
        given.i = draw.choice(NUMBERS)


def _attribute_value(draw: random.Random) -> Any:
    numbers = [draw.choice(NUMBERS) for _ in range(draw.randrange(1, 5))]
    tensor = numpy_helper.from_array(np.array(numbers, np.int64))
    others = (
        1.5,
        [0.5],
        "text",
        b"\xff",
        ["a", "b"],
        tensor,
        [tensor],
        GraphProto(),
        [GraphProto()],
    )
    return draw.choice((numbers, numbers[0], *others))


def constant(model: ModelProto, draw: random.Random) -> None:
    """A tensor whose shape, type or data is another."""
    tensor = draw.choice(list(_tensors(model)))
    choice = draw.randrange(6)
    if choice == 0:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(SIZES)
    elif choice == 1:
        tensor.dims.append(draw.choice(SIZES))
    elif choice == 2:
        tensor.data_type = draw.choice((*range(27), 99, -1))
    elif choice == 3:
        tensor.raw_data = tensor.raw_data[: draw.choice((0, 1, -1, 7))]
    elif choice == 4:
        tensor.raw_data += draw.randbytes(draw.choice((1, 4, 8)))
    else:
        numbers = np.array([draw.choice(NUMBERS) for _ in tensor.raw_data[::8]], np.int64)
        tensor.raw_data = numbers.tobytes()


def elsewhere(model: ModelProto, draw: random.Random) -> None:
    """A tensor whose data is in another file, which may not be there, or not be ours."""
    tensor = draw.choice(list(_tensors(model)))
    tensor.data_location = TensorProto.EXTERNAL
    if draw.random() < 0.7:
        tensor.ClearField("raw_data")
    keys = [("location", draw.choice(PLACES)), ("offset", draw.choice(NUMBERS))]
    keys += [("length", draw.choice((*NUMBERS, "x", ""))), ("checksum", "0"), ("?", "?")]
    for key, value in keys[: draw.randrange(len(keys) + 1)]:
        tensor.external_data.add(key=key, value=str(value))


def sparse(model: ModelProto, draw: random.Random) -> None:
    """A sparse initialiser, well-formed or not."""
    graph = _graph(model, draw)
    found = graph.sparse_initializer.add()
    found.dims.extend(draw.choice(SIZES) for _ in range(draw.randrange(3)))
    if graph.initializer and draw.random() < 0.8:
        found.values.CopyFrom(draw.choice(graph.initializer))
    if draw.random() < 0.5:
        indices = [draw.choice(NUMBERS) for _ in range(draw.randrange(4))]
        found.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64)))


def nested(model: ModelProto, draw: random.Random) -> None:
    """A graph inside a graph inside a graph."""
    name = draw.choice(model.graph.output).name
    for _ in range(draw.choice((1, 2, 10, 30, 90))):
        body = GraphProto()
        body.CopyFrom(model.graph)
        branches = {"then_branch": body, "else_branch": body}
        if draw.random() < 0.8:
            del branches["else_branch"]
        node = helper.make_node("If", [_name(model, draw)], [name], **branches)
        del model.graph.node[:]
        model.graph.node.append(node)
        if model.ByteSize() > 50_000:
            return


def function(model: ModelProto, draw: random.Random) -> None:
    """A node that calls a function, which may call itself or another one, or be spoilt."""
    node = _node(model, draw)
    domain, name = draw.choice(("own", "layoutopt.nhwc")), node.op_type
    inner = NodeProto()
    inner.CopyFrom(node)
    if draw.random() < 0.3:
        inner.domain = domain
    node.domain = domain
    inputs, outputs = list(node.input), list(node.output)
    made = model.functions.add(name=name, domain=domain, input=inputs, output=outputs, node=[inner])
    made.opset_import.extend(model.opset_import)
    made.doc_string = draw.choice(("", f"{name} of NHWC", f"{name} of NHWC,HWIO->NHWC", "x of ,"))
    if draw.random() < 0.5:
        model.opset_import.add(domain=domain, version=1)
    if draw.random() < 0.2:
        model.functions.add().CopyFrom(made)


def computed(model: ModelProto, draw: random.Random) -> None:
    """A shape that is computed, from numbers that may be large."""
    values = np.array([draw.choice(NUMBERS) for _ in range(draw.randrange(4))], np.int64)
    step = np.array(draw.choice(NUMBERS), np.int64)
    tensors = [numpy_helper.from_array(values, "sizes"), numpy_helper.from_array(step, "step")]
    model.graph.initializer.extend(tensors)
    kinds = (
        *(("ConstantOfShape", "sizes"), ("Expand", "step sizes"), ("Tile", "sizes sizes")),
        *(("Range", "step step step"), ("Pad", "sizes sizes"), ("OneHot", "sizes step sizes")),
        *(
            ("EyeLike", "sizes"),
            ("HannWindow", "step"),
            ("Concat", "sizes sizes"),
            ("Trilu", "sizes"),
            ("Mod", "step step"),
        ),
        *(("BitShift", "step step"), ("Pow", "step step"), ("Div", "sizes step")),
    )
    which, inputs = draw.choice(kinds)
    nodes = [helper.make_node(which, inputs.split(), ["made"])]
    nodes.append(helper.make_node("Shape", ["made"], ["shape"]))
    step_of = draw.choice(("Cast", "Squeeze", "Mul"))
    more = {"to": TensorProto.INT64} if step_of == "Cast" else {}
    reads = ["made", "step"] if step_of == "Mul" else ["made"]
    nodes.append(helper.make_node(step_of, reads, ["again"], **more))
    last = model.graph.node[-1].output[0] if model.graph.node else "sizes"
    to = draw.choice(("shape", "made", "again"))
    nodes.append(helper.make_node(draw.choice(("Reshape", "Expand", "Tile")), [last, to], ["end"]))
    model.graph.node.extend(nodes)
    model.graph.output.add(name="end")


SPOILS: tuple[Spoil, ...] = (
    *(size, rank, kind, wires, order, ends, op_type, versions, attribute, attribute, constant),
    *(elsewhere, sparse, nested, function, computed),
)
