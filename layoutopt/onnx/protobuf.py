"""ONNX files: protobuf messages without the weights' data, and files of networks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from layoutopt.base.errors import InputError, SizeError, errors_at, needed
from layoutopt.base.files import named, read_bytes, written
from layoutopt.base.limits import require
from layoutopt.conversion.shapes import onnx as onnx
from layoutopt.graphs.ops import Array

Message = TypeVar("Message")

SMALL = 1024
"""Tensors of up to so many elements keep their data, which may be shapes or axes."""

PARSED = 2
"""A file that cannot be parsed may be whole if fewer bytes of memory are free than so many times
its own."""

DATA_FIELDS = (
    *("raw_data", "float_data", "int32_data", "int64_data"),
    *("uint64_data", "double_data", "string_data"),
)


def load_model(path: str | Path) -> onnx.ModelProto:
    """Read a model as :func:`parse_model` does, with its large tensors' data dropped."""
    model = parse_model(path)
    for graph in graphs(model.graph):
        drop_data(graph)
    sparse_as_inputs(model.graph)
    return model


def parse_model(path: str | Path) -> onnx.ModelProto:
    """Read a model as it is; data in other files is not looked at.

    Raises ``InputError`` if the ``onnx`` package is missing, or the file holds no model.
    """
    needed("onnx", "reading a network", str(path))
    raw = read_bytes(Path(path))
    model: onnx.ModelProto = onnx.ModelProto()
    try:
        model.ParseFromString(raw)
    except Exception:  # protobuf's own error class has no types, nor another one for memory
        del model
        with errors_at(file=str(path)):
            require(PARSED * len(raw), "reading the model")
        raise InputError("is no ONNX model, or only part of one", file=str(path)) from None
    if not _has_texts(model):
        raise InputError("is no ONNX model: a text in it is not UTF-8", file=str(path))
    if not model.graph.node and not model.graph.output:
        raise InputError("is no ONNX model: it has no graph with nodes", file=str(path))
    if not model.graph.output:
        raise InputError("the network has no outputs", file=str(path))
    return model


def _has_texts(message: Any) -> bool:
    """Return whether all texts are UTF-8; protobuf hands out the bytes of others as they are."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else (value,)
        if field.message_type is not None:
            if not all(map(_has_texts, values)):
                return False
        elif field.type == field.TYPE_STRING and not all(isinstance(v, str) for v in values):
            return False
    return True


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, else its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def title(node: onnx.NodeProto) -> str:
    """Return what errors call a node."""
    called = node.name or next(filter(None, node.output), "")
    return f"{node.op_type} {called!r}"


def is_standard(domain: str) -> bool:
    """Return whether a domain is that of ONNX's own operator set."""
    return domain in ("", "ai.onnx")


def type_of(node: onnx.NodeProto) -> str:
    """Return a node's op type, written ``domain::Type`` in other domains than ONNX's own."""
    return node.op_type if is_standard(node.domain) else f"{node.domain}::{node.op_type}"


def versions_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each operator set of a network, ``""`` for ONNX's own."""
    return {"" if is_standard(x.domain) else x.domain: x.version for x in model.opset_import}


HOLDERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Types of ONNX's own ops that have attributes of graphs."""


def graphs(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        if node.op_type in HOLDERS or node.domain:  # faster than to ask each node for its bodies
            for body in bodies(node):
                yield from graphs(body)


def all_nodes(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph or function, and of all graphs inside these."""
    return (node for one in graphs(graph) for node in one.node)


FunctionKey: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a function."""


def functions_of(model: onnx.ModelProto) -> dict[FunctionKey, onnx.FunctionProto]:
    """Return a network's functions by what calls of them name."""
    return {(f.domain, f.name, f.overload): f for f in model.functions}


def called_by(node: onnx.NodeProto) -> FunctionKey:
    """Return the key of the function that a node calls, if the network has it."""
    return node.domain, node.op_type, node.overload


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds itself.

    Attributes of all other ops of ONNX are not looked at, which would take most of the time.
    """
    if node.op_type in HOLDERS or not is_standard(node.domain):
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def copied_except(message: Any, target: Any, *left_out: str) -> None:
    """Copy all fields of a protobuf message but those that are named."""
    for field, value in message.ListFields():
        if field.name in left_out:
            continue
        if field.is_repeated:
            getattr(target, field.name).extend(value)
        elif field.message_type is not None:
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)


def copied(message: Message) -> Message:
    """Return a copy of a protobuf message; raises ``SizeError`` if a network does not fit."""
    if isinstance(message, onnx.ModelProto):
        sizes = (len(x.raw_data) for x in message.graph.initializer)
        require_copies(sizes, "copying the network")
    new: Any = type(message)()
    new.CopyFrom(message)
    return cast(Message, new)


def require_copies(sizes: Iterable[int], what: str) -> None:
    """Raise ``SizeError`` if tensors of so many bytes do not fit: protobuf would end the process.

    The largest is there up to three times, while it is read or written.
    """
    every = list(sizes)
    require(sum(every) + 2 * max(every, default=0), what)


def set_items(field: Any, items: Iterable[Any]) -> None:
    """Put items in the place of those that a repeated field of a protobuf message has."""
    every = list(items)
    del field[:]
    field.extend(every)


def names_read(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the names that nodes read, and the graphs inside them from outside."""
    return {name for node in nodes for name in (*node.input, *captured(node))}


def captured(node: onnx.NodeProto) -> set[str]:
    """Return the names that the graphs inside a node read from outside."""
    found = set[str]()
    for body in bodies(node):
        read = names_read(body.node) | {x.name for x in body.output}
        found |= read - defined(body) - {""}
    return found


def defined(graph: onnx.GraphProto) -> set[str]:
    """Return the names that a graph gives to tensors of its own."""
    own = {x.name for x in (*graph.input, *graph.initializer)}
    own.update(x.values.name for x in graph.sparse_initializer)
    return own.union(*(node.output for node in graph.node)) - {""}


def array(tensor: onnx.TensorProto) -> Array | None:
    """Return a tensor's value if it is small and in the file itself."""
    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if external or prod(tensor.dims) > SMALL:
        return None
    try:
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise InputError(f"tensor {tensor.name!r} has broken data ({error})") from None
    except KeyError:
        kind = tensor.data_type
        raise InputError(f"tensor {tensor.name!r}: unknown ONNX element type {kind}") from None


def drop_data(graph: onnx.GraphProto) -> None:
    """Empty large tensors of a graph, of which only shapes matter."""
    values = (a.t for node in graph.node for a in node.attribute if a.HasField("t"))
    for tensor in (*graph.initializer, *values):
        if prod(tensor.dims) > SMALL:
            for field in DATA_FIELDS:
                tensor.ClearField(field)


def sparse_as_inputs(graph: onnx.GraphProto) -> None:
    """Turn sparse initialisers into inputs, of which shape inference knows the shape."""
    inputs = {value.name for value in graph.input}
    for x in graph.sparse_initializer:
        name, kind = x.values.name, x.values.data_type
        if name not in inputs:
            graph.input.append(onnx.helper.make_tensor_value_info(name, kind, list(x.dims)))
    del graph.sparse_initializer[:]


HOLDING = frozenset({"Constant", "ConstantOfShape"})
"""Types of ONNX's own ops that have attributes of tensors."""

ALIGNMENT = 4096
"""Weights beside a network begin at multiples of so many bytes, so that they can be mapped."""

LARGEST = 2**31 - 1
"""Most bytes of one protobuf message."""


class LoadedModel(NamedTuple):
    """A network as it was given, weights included."""

    model: onnx.ModelProto
    name: str  # that of its file, else its own
    outside: frozenset[str] = frozenset()  # the names of weights that were in files of their own
    files: frozenset[Path] = frozenset()  # the files that were read


def loaded(model: onnx.ModelProto) -> LoadedModel:
    """Return a network that is in memory already.

    Raises ``InputError`` if it is none, or its weights are not there.
    """
    needed("onnx", "converting a network")
    if not isinstance(model, onnx.ModelProto):
        raise InputError(f"model must be a network of ONNX or a file, not {type(model).__name__}")
    name = model.graph.name
    if _outside(model):
        raise InputError("its weights are in files; load them too, or give the file", file=name)
    return LoadedModel(model, name)


def load(path: str | Path) -> LoadedModel:
    """Read a network, with weights that are in files of their own.

    Raises ``InputError`` if a file is missing, or holds no network.
    """
    path = named(path)
    model = parse_model(path)
    outside = _outside(model)
    places = [entry.value for x in outside for entry in x.external_data if entry.key == "location"]
    names = frozenset(x.name for x in model.graph.initializer if x.data_location == x.EXTERNAL)
    try:
        files = frozenset({path.resolve(), *((path.parent / place).resolve() for place in places)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of keys that say nothing to us
            sizes = (_size_outside(tensor, path.parent) for tensor in outside)
            require_copies(sizes, "reading the weights")
            for tensor in outside:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(path.parent))
                tensor.ClearField("external_data")
                tensor.data_location = tensor.DEFAULT
    except (MemoryError, SizeError):
        raise
    except Exception as error:  # validation errors of its own, and those of the system
        reason = " ".join(str(error).split())
        raise InputError(f"its weights cannot be read ({reason})", file=str(path)) from None
    return LoadedModel(model, str(path), names, files)


def _size_outside(tensor: onnx.TensorProto, folder: Path) -> int:
    """Return how many bytes of a file in a folder are the data of a tensor."""
    given = {str(entry.key): str(entry.value) for entry in tensor.external_data}
    left = os.path.getsize(folder / given.get("location", "")) - int(given.get("offset", 0))
    return min(left, int(given.get("length", left)))


def _outside(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Return the tensors whose data are in files of their own, wherever the network holds them."""
    every, sparse = list[onnx.TensorProto](), list[onnx.SparseTensorProto]()
    for graph in (one for whole in (model.graph, *model.functions) for one in graphs(whole)):
        every += getattr(graph, "initializer", ())
        sparse += getattr(graph, "sparse_initializer", ())
        holding = (n for n in graph.node if n.op_type in HOLDING or n.domain)
        given = [a for node in holding for a in node.attribute]
        for a in (*given, *getattr(graph, "attribute_proto", ())):
            every += [*a.tensors, *([a.t] if a.HasField("t") else [])]
            sparse += [
                *a.sparse_tensors,
                *([a.sparse_tensor] if a.HasField("sparse_tensor") else []),
            ]
    every += (part for x in sparse for part in (x.values, x.indices))
    return [x for x in every if x.data_location == x.EXTERNAL]


def write_proto(
    model: onnx.ModelProto, path: Path, outside: Collection[str] = (), *, overwrite: bool = True
) -> None:
    """Write a network whole or not at all.

    The initialisers named in ``outside`` go to a file beside it, of its name and ``.data``.
    Raises ``InputError`` if a file cannot be written, exists although it may not be replaced, or
    is too large.
    """
    chosen = [x for x in model.graph.initializer if x.name in outside and x.raw_data]
    beside = path.with_name(f"{path.name}.data")
    parts = _parts(_pointing(model, chosen, beside.name) if chosen else model, path)
    with ExitStack() as files:
        file = files.enter_context(written(path, overwrite=overwrite))
        file.writelines(parts)
        if chosen:
            file.flush()  # no full disk comes between the two files when they get their names
            data = files.enter_context(written(beside, overwrite=overwrite))
        for tensor in chosen:
            data.write(bytes(_aligned(data.tell()) - data.tell()))
            data.write(tensor.raw_data)


def _pointing(model: onnx.ModelProto, chosen: list[onnx.TensorProto], file: str) -> onnx.ModelProto:
    """Return a network that finds some of its weights in a file, one after the other."""
    light = onnx.ModelProto()
    copied_except(model, light, "graph")
    copied_except(model.graph, light.graph, "initializer")
    names, offset = {x.name for x in chosen}, 0
    for tensor in model.graph.initializer:
        new = light.graph.initializer.add()
        if tensor.name not in names:
            new.CopyFrom(tensor)
            continue
        copied_except(tensor, new, *DATA_FIELDS, "external_data")
        new.data_location = new.EXTERNAL
        offset, length = _aligned(offset), len(tensor.raw_data)
        for key, value in (("location", file), ("offset", offset), ("length", length)):
            new.external_data.add(key=key, value=str(value))
        offset += length
    return light


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def fits_file(model: onnx.ModelProto) -> bool:
    """Return whether one file can hold a network with all its weights."""
    with suppress(InputError):
        return bool(next(_parts(model, "")))
    return False


def proto_bytes(model: onnx.ModelProto, path: str | Path) -> bytes:
    """Return the bytes of a network's file, with all weights in it."""
    return b"".join(_parts(model, path))


def _parts(model: onnx.ModelProto, path: str | Path) -> Iterator[bytes]:
    """Yield the bytes of a network's file, one weight after the other.

    Protobuf needs several times the memory of a message to write it, or to tell its size.
    """
    plain, graph = onnx.ModelProto(), onnx.GraphProto()
    copied_except(model, plain, "graph")
    copied_except(model.graph, graph, "initializer")
    start, weights = graph.SerializeToString(), model.graph.initializer
    sizes = [x.ByteSize() for x in weights]
    heads = [_head(graph.INITIALIZER_FIELD_NUMBER, size) for size in sizes]
    size = len(start) + sum(map(len, heads)) + sum(sizes)
    begin = plain.SerializeToString() + _head(plain.GRAPH_FIELD_NUMBER, size) + start
    if len(begin) - len(start) + size > LARGEST:
        reason = "is larger than the 2 GiB that one file can hold; save it with weights beside it"
        raise InputError(reason, file=str(path))
    yield begin
    for head, tensor in zip(heads, weights, strict=True):
        yield head
        yield tensor.SerializeToString()


def _head(field: int, size: int) -> bytes:
    """Return what stands before a message of some bytes in a field of a message of protobuf."""
    found = [field << 3 | 2]
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes([*found, size])
