"""Files of networks: weights beside them, nothing half written."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from layoutopt.errors import InputError
from layoutopt.extras import needed
from layoutopt.io.files import named, write_bytes, written
from layoutopt.onnx.protobuf import DATA_FIELDS, copied_except, parse_model

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

ALIGNMENT = 4096
"""Weights beside a network begin at multiples of so many bytes, so that they can be mapped."""

LARGEST = 2**31 - 1
"""Most bytes of one protobuf message."""


class Loaded(NamedTuple):
    """A network as it was given, weights included.

    Parameters
    ----------
    model
        The network.
    name
        That of its file, else its own.
    outside
        The names of weights that were in files of their own.
    files
        The files that were read.
    """

    model: ModelProto
    name: str
    outside: frozenset[str] = frozenset()
    files: frozenset[Path] = frozenset()


def loaded(model: ModelProto) -> Loaded:
    """Return a network that is in memory already.

    Raises
    ------
    InputError
        If it is none, or its weights are not there.
    """
    onnx = needed("onnx", "converting a network")
    if not isinstance(model, onnx.ModelProto):
        raise InputError(f"model must be a network of ONNX or a file, not {type(model).__name__}")
    name = model.graph.name
    if _outside(model):
        raise InputError("its weights are in files; load them too, or give the file", file=name)
    return Loaded(model, name)


def copied(model: ModelProto) -> ModelProto:
    """Return a network that may be changed in place of another."""
    from onnx import ModelProto

    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def load(path: str | Path) -> Loaded:
    """Read a network, with weights that are in files of their own.

    Raises
    ------
    InputError
        If a file is missing, or holds no network.
    """
    path = named(path)
    model = parse_model(path)
    from onnx import external_data_helper  # which is there, as the model could be read

    outside = _outside(model)
    places = [entry.value for x in outside for entry in x.external_data if entry.key == "location"]
    names = frozenset(x.name for x in outside)
    try:
        files = frozenset({path.resolve(), *((path.parent / place).resolve() for place in places)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of keys that say nothing to us
            external_data_helper.load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # validation errors of its own, and those of the system
        reason = " ".join(str(error).split())
        raise InputError(f"its weights cannot be read ({reason})", file=str(path)) from None
    return Loaded(model, str(path), names, files)


def _outside(model: ModelProto) -> list[TensorProto]:
    from onnx import TensorProto

    return [x for x in model.graph.initializer if x.data_location == TensorProto.EXTERNAL]


def write_proto(
    model: ModelProto, path: Path, outside: Collection[str] = (), *, overwrite: bool = True
) -> None:
    """Write a network whole or not at all.

    Parameters
    ----------
    model
        The network.
    path
        The file.  Weights beside it go to a file of its name and ``.data``.
    outside
        Names of initialisers that are to be beside it.
    overwrite
        Whether existing files may be replaced.

    Raises
    ------
    InputError
        If a file cannot be written, exists although it may not be replaced, or is too large.
    """
    chosen = [x for x in model.graph.initializer if x.name in outside and x.raw_data]
    if not chosen:
        write_bytes(path, _bytes(model, path), overwrite=overwrite)
        return
    beside = path.with_name(f"{path.name}.data")
    light = _bytes(_pointing(model, chosen, beside.name), path)
    with written(path, overwrite=overwrite) as file, written(beside, overwrite=overwrite) as data:
        file.write(light)
        file.flush()  # no full disk comes between the two files when they get their names
        _write_data(data, chosen)


def _pointing(model: ModelProto, chosen: list[TensorProto], file: str) -> ModelProto:
    """Return a network that finds some of its weights in a file, one after the other."""
    from onnx import ModelProto

    light = ModelProto()
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


def _write_data(file: BinaryIO, tensors: list[TensorProto]) -> None:
    """Write weights one after the other, each from a multiple of :data:`ALIGNMENT` on."""
    for tensor in tensors:
        file.write(bytes(_aligned(file.tell()) - file.tell()))
        file.write(tensor.raw_data)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _bytes(model: ModelProto, path: Path) -> bytes:
    if model.ByteSize() > LARGEST:
        reason = "is larger than the 2 GiB that one file can hold; keep weights beside the network"
        raise InputError(reason, file=str(path))
    data: bytes = model.SerializeToString()
    return data
