"""Unwinding instances as JSON files: format ``layoutopt/unwinding/1``, with hashes and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from layoutopt.base import files
from layoutopt.base.errors import InputError
from layoutopt.base.files import digest, shortest
from layoutopt.graphs.locations import check_graph
from layoutopt.graphs.ops import AnyOp, UnwindingOp, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import DEFAULT_EXCHANGE, PRESETS, TileMemory

FORMAT = "layoutopt/unwinding/1"

OP_TYPES = sorted(str(cls.__struct_config__.tag) for cls in get_args(AnyOp))

# Kept as text, so that values are exact.
Number = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "number"})]

Hash = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]


class PairEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One ValuedPair: two tensor names and the value of a match, per element."""

    a: str
    b: str
    value: Number


class InstanceDocument(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole instance file."""

    format: Literal["layoutopt/unwinding/1"]
    ops: list[AnyOp]
    name: str = ""
    description: str = ""
    valued_pairs: list[PairEntry] = []
    tile_memory: TileMemory | None = None


def parse_instance(raw: bytes, file: str = "") -> Graph:
    """Parse the bytes of an instance file; errors say where."""
    document = files.decode(
        msgspec.json.Decoder(InstanceDocument), raw, file, {".type": OP_TYPES, ".format": [FORMAT]}
    )
    if not document.ops:
        raise InputError("the graph has no ops", "$.ops", file)
    graph = Graph(document.name, document.description)
    graph.tile_memory = document.tile_memory
    for i, op in enumerate(document.ops):
        try:
            graph.add(op)
        except InputError as error:
            error = _forward(op, document.ops[i:]) or error
            raise error.located(f"$.ops[{i}]", file) from None
    for i, pair in enumerate(document.valued_pairs):
        try:
            graph.valued_pair(pair.a, pair.b, files.number(pair.value))
        except InputError as error:
            raise error.located(f"$.valued_pairs[{i}]", file) from None
    return graph


def _forward(op: UnwindingOp, rest: Sequence[UnwindingOp]) -> InputError | None:
    """Return an error if an op's input is defined later in the file."""
    later = {other.id for other in rest}
    for name in op.inputs:
        if name in later or name.rpartition(":")[0] in later:
            title = f"op {op.id!r} ({type_name(op)})"
            return InputError(f"{title}: input {name!r} must be defined before it, without a cycle")
    return None


def instance_bytes(graph: GraphStore) -> bytes:
    """Return the bytes of a graph's instance file, one op per line."""
    head: dict[str, Any] = {"format": FORMAT, "name": graph.name}
    if graph.description:
        head["description"] = graph.description
    pairs = [
        PairEntry(graph.tensor_name(a), graph.tensor_name(b), msgspec.Raw(str(value).encode()))
        for a, b, value in graph.pairs
    ]
    tail = {"tile_memory": graph.tile_memory} if graph.tile_memory is not None else {}
    return files.encode_lines(head | {"ops": graph.ops, "valued_pairs": pairs} | tail)


def read_instance(path: str | Path) -> Graph:
    """Read an instance file, packed with gzip if its name ends in ``.gz``."""
    return parse_instance(files.read_bytes(files.named(path)), str(path))


def check_name(path: Path) -> None:
    """Refuse a file name without the suffix of an instance, except for devices."""
    if not path.name.endswith(files.INSTANCES) and (path.is_file() or not path.exists()):
        raise InputError(f"must end in {' or '.join(files.INSTANCES)}", file=str(path))


def write_instance(graph: Graph, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a graph as an instance file, ``.json``, or ``.json.gz`` packed with gzip.

    Raises
    ------
    InputError
        If the suffix is another, or the file cannot be written or exists and ``overwrite`` is
        false.
    """
    check_graph(graph)
    target = files.named(path)
    check_name(target)
    files.write_bytes(target, instance_bytes(graph), overwrite=overwrite)


def tile_memory(which: str | Path, **overrides: Any) -> TileMemory:
    """Return the tile memory of a preset or file.

    Parameters
    ----------
    which
        A name in :data:`~layoutopt.tiles.memory.PRESETS`, or a JSON file with the
        object that instance files have under ``tile_memory``.
    overrides
        Fields of :class:`~layoutopt.tiles.memory.TileMemory` to replace.

    Raises
    ------
    InputError
        If there is no such preset or file, or a field is invalid.

    Examples
    --------
    >>> tile_memory("ipu-mk2", element_bytes={"default": 2}).capacity()
    319488
    """
    path = Path(which)
    if str(which) in PRESETS:
        memory = PRESETS[str(which)]
    elif not path.suffix and not path.exists():
        known = ", ".join(PRESETS)
        raise InputError(f"unknown tile memory {str(which)!r}; known: {known}, or a JSON file")
    else:
        decoder = msgspec.json.Decoder(TileMemory)
        memory = files.decode(decoder, files.read_bytes(path), str(path), {})
    strange = sorted(overrides.keys() - set(TileMemory.__struct_fields__))
    if strange:
        allowed = ", ".join(TileMemory.__struct_fields__)
        raise InputError(f"unknown field {strange[0]!r} of a tile memory; allowed: {allowed}")
    # its own `replace` checks nothing before msgspec 0.21
    return TileMemory(**(msgspec.structs.asdict(memory) | overrides))


SHOWN = len("sha256:") + 8  # length of abbreviated hashes in errors

WRITTEN = frozenset({"id", "inputs", "shape", "shapes"})
"""Members of every op in the canonical text, which states also derived shapes."""


def instance_hash(graph: GraphStore) -> str:
    """Return the hash of an unwinding instance, independent of its spelling in files.

    It is ``"sha256:"`` and the digest of a canonical text, defined in ``docs/reproducibility.md``.
    This contains ops, pairs and tile memory with their order and names, but not the name and
    description of the instance.

    Raises
    ------
    InputError
        If the rule of a source cannot be represented in JSON.

    Examples
    --------
    >>> from layoutopt.graphs.unwinding import Graph
    >>> graph = Graph("one sink")
    >>> x = graph.sink((2,), name="x")
    >>> instance_hash(graph)[:15]
    'sha256:b3919108'
    """
    return digest(
        {
            "format": FORMAT,
            "ops": [_op(graph, number, op) for number, op in enumerate(graph.ops)],
            "valued_pairs": [
                [graph.tensor_name(a), graph.tensor_name(b), shortest(value)]
                for a, b, value in graph.pairs
            ],
            "tile_memory": None if graph.tile_memory is None else _machine(graph.tile_memory),
        }
    )


def known_hash(graph: GraphStore) -> str | None:
    """Return an instance's hash; None if it cannot be represented in a file."""
    try:
        return instance_hash(graph)
    except InputError:
        return None


def check_hash(claimed: str | None, graph: GraphStore, file: str) -> None:
    """Refuse a file that belongs to another instance, by the hash that it states.

    ``None``, as in files of older versions, is not checked.
    """
    if claimed is None:
        return
    own = known_hash(graph)
    if claimed != own:
        there, here = (f"{text[:SHOWN]}..." if text else "none" for text in (claimed, own))
        reason = "belongs to another instance, or was made with other options"
        raise InputError(f"{reason} (hash {there}, expected {here})", "$.instance_hash", file)


def _op(graph: GraphStore, number: int, op: UnwindingOp) -> list[Any]:
    attributes = {
        field: value
        for field in op.__struct_fields__
        if field not in WRITTEN and (value := getattr(op, field)) is not None
    }
    shapes = [graph.shapes[t] for t in graph.op_outputs[number]]
    return [op.id, type_name(op), op.inputs, shapes, attributes]


def _machine(memory: TileMemory) -> dict[str, Any]:
    default = memory.bytes_of("default")
    widths = {name: width for name, width in memory.element_bytes.items() if width != default}
    return {
        "tiles": memory.tiles,
        "bytes_per_tile": memory.bytes_per_tile,
        "element_bytes": {"default": default} | widths,
        "grain": memory.grain,
        "exchange_bytes_per_cycle": memory.exchange_bytes_per_cycle or DEFAULT_EXCHANGE,
    }
