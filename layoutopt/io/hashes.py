"""Hashes that tell whether two files hold the same instance."""

from __future__ import annotations

from typing import Any

from layoutopt.base.errors import InputError
from layoutopt.base.files import digest, shortest
from layoutopt.graphs.ops import UnwindingOp, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.io.instance import FORMAT
from layoutopt.tiles.memory import DEFAULT_EXCHANGE, TileMemory

PATTERN = "^sha256:[0-9a-f]{64}$"
"""What a hash looks like, as a regular expression."""

SHOWN = len("sha256:") + 8
"""Length of what errors show of a hash."""

WRITTEN = frozenset({"id", "inputs", "shape", "shapes"})
"""What the canonical text has of every op; a shape that a file leaves out is the same there."""


def instance_hash(graph: GraphStore) -> str:
    """Return the hash of what an unwinding instance says, however its file is written.

    It is ``"sha256:"`` and the digest of a canonical text, which ``docs/same_answers.md`` states.
    Ops, pairs and tile memory count, and so do their order and their names; the name and the
    description of the instance do not.

    Raises
    ------
    InputError
        If the rule of a source holds what no file can.

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
    """Return an instance's hash; None if no file can hold the instance."""
    try:
        return instance_hash(graph)
    except InputError:
        return None


def check_hash(claimed: str | None, graph: GraphStore, file: str) -> None:
    """Refuse a file that belongs to another instance.

    Parameters
    ----------
    claimed
        The hash that the file states; None, as older versions wrote none, fits every instance.
    graph
        The instance.
    file
        The file's name, for the error.

    Raises
    ------
    InputError
        If the hash is another.
    """
    if claimed is None:
        return
    own = known_hash(graph)
    if claimed != own:
        there, here = (f"{text[:SHOWN]}..." if text else "none" for text in (claimed, own))
        reason = "is of another instance, or was made with other options"
        raise InputError(f"{reason} (hash {there} there, {here} here)", "$.instance_hash", file)


def _op(graph: GraphStore, number: int, op: UnwindingOp) -> list[Any]:
    """Return an op with the shapes of its outputs, and its other attributes by name."""
    attributes = {
        field: value
        for field in op.__struct_fields__
        if field not in WRITTEN and (value := getattr(op, field)) is not None
    }
    shapes = [graph.shapes[t] for t in graph.op_outputs[number]]
    return [op.id, type_name(op), op.inputs, shapes, attributes]


def _machine(memory: TileMemory) -> dict[str, Any]:
    """Return a tile memory with its defaults written down."""
    default = memory.bytes_of("default")
    widths = {name: width for name, width in memory.element_bytes.items() if width != default}
    return {
        "tiles": memory.tiles,
        "bytes_per_tile": memory.bytes_per_tile,
        "element_bytes": {"default": default} | widths,
        "grain": memory.grain,
        "exchange_bytes_per_cycle": memory.exchange_bytes_per_cycle or DEFAULT_EXCHANGE,
    }
