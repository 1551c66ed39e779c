"""Ways to spoil a network of ONNX: one thing in it, or more, that no exporter would write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

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


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message of protobuf and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if hasattr(value, "add") else (value,):
                yield from _messages(inner)


def field(model: ModelProto, draw: random.Random) -> None:
    """Another value in a field of a message: of edges, nodes, attributes, types, shapes, data."""
    every: dict[str, list[Any]] = {}
    for message in _messages(model):
        every.setdefault(message.DESCRIPTOR.full_name, []).append(message)
    message = draw.choice(every[draw.choice(sorted(every))])
    which = draw.choice(message.DESCRIPTOR.fields)
    name, value = which.name, getattr(message, which.name)
    like = every.get(which.message_type.full_name, ()) if which.message_type else ()
    if not hasattr(value, "extend"):  # one value, or none
        if draw.random() < 0.2:
            message.ClearField(name)
        elif which.message_type:
            value.CopyFrom(type(value).FromString(draw.choice(like).SerializeToString()))
        else:
            setattr(message, name, _scalar(model, which, value, draw))
        return
    values, choice = list(value), draw.randrange(5)
    if choice == 0:
        values.clear()
    elif choice == 1:
        values.pop(draw.randrange(len(values)))
    elif choice == 2:
        draw.shuffle(values)
    else:
        new = draw.choice(like) if which.message_type else _scalar(model, which, b"", draw)
        at = draw.randrange(len(values) + 1)
        values[at : at + (choice == 3)] = [new]
    if which.message_type:
        values = [type(x).FromString(x.SerializeToString()) for x in values]
    del value[:]
    value.extend(values)


CHOICES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("dim_value", "dims"), SIZES),
    **dict.fromkeys(("elem_type", "data_type"), (*range(27), 99, -1)),
    **dict.fromkeys(("version", "ir_version"), VERSIONS),
    **{"op_type": OP_TYPES, "domain": DOMAINS, "dim_param": ("N", "", "a\nb", "-1")},
}
"""What some fields may hold."""


def _scalar(model: ModelProto, which: Any, value: Any, draw: random.Random) -> Any:
    """Return a number, text, or data for a field."""
    if which.name in CHOICES:
        return draw.choice(CHOICES[which.name])
    if which.enum_type is not None:
        return draw.choice(which.enum_type.values).number
    if which.type == which.TYPE_STRING:
        return _name(model, draw)
    if which.type == which.TYPE_BYTES:
        numbers = np.array([draw.choice(NUMBERS) for _ in value[::8]], np.int64).tobytes()
        return draw.choice((value[: draw.choice((0, 1, -1, 7))], value + b"more", numbers))
    return draw.choice(NUMBERS)


def attribute(model: ModelProto, draw: random.Random) -> None:
    """An attribute more, of any kind."""
    names = ("axis", "axes", "perm", "value", "to", "pads", "group", "to_multiple", "body")
    name = draw.choice(names)
    numbers = [draw.choice(NUMBERS) for _ in range(draw.randrange(1, 5))]
    tensor = numpy_helper.from_array(np.array(numbers, np.int64))
    others = (1.5, [0.5], "text", b"\xff", ["a", "b"], tensor, [tensor], GraphProto())
    value = draw.choice((numbers, numbers[0], *others, [GraphProto()]))
    _node(model, draw).attribute.append(helper.make_attribute(name, value))


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
        *(("EyeLike", "sizes"), ("HannWindow", "step"), ("Concat", "sizes sizes")),
        *(("Trilu", "sizes"), ("Mod", "step step"), ("BitShift", "step step")),
        *(("Pow", "step step"), ("Div", "sizes step")),
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
    *(field, field, field, field, field, attribute),
    *(elsewhere, sparse, nested, function, computed),
)
