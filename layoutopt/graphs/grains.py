"""Grains: elements of sinks that must share a tile, as elements of smaller sinks.

A sink of ``n`` elements with a grain of ``g`` becomes two: one with an element for each whole
grain, and one for what is left, both spread over the elements that they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutopt.graphs.op import Kind, size
from layoutopt.graphs.ops import Concat, Expand, Flatten, Reshape, Sink
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import memory_of
from layoutopt.pieces import Piece
from layoutopt.tiles.memory import TileMemory


@dataclass(frozen=True, eq=False)
class Grained:
    """A graph whose sinks have an element for each grain.

    Parameters
    ----------
    graph
        The graph.
    origins
        For each of its sinks the sink that it is of, the first element there, and how many
        elements share each grain.
    """

    graph: GraphStore
    origins: dict[str, tuple[str, int, int]]

    def restored(self, layouts: Mapping[str, Sequence[Piece]]) -> dict[str, tuple[Piece, ...]]:
        """Return layouts of the original sinks.

        Parameters
        ----------
        layouts
            Pieces by sink; no origin is a sink.
        """
        found: dict[str, list[Piece]] = {}
        for name, pieces in layouts.items():
            sink, first, many = self.origins[name]
            for origin, start, to, loops in pieces:
                own = [(extent, there, here * many) for extent, there, here in loops]
                inner = [(many, 0, 1)] if many > 1 else []
                piece = origin, start, first + to * many, (*own, *inner)
                found.setdefault(sink, []).append(piece)
        return {sink: tuple(pieces) for sink, pieces in found.items()}


def grained(graph: GraphStore) -> Grained:
    """Return a graph with a tile memory as one whose memory has no grain.

    Ops keep their names, sinks excepted; what a sink was is a view then.
    """
    memory = memory_of(graph)
    found = type(graph)(graph.name)
    widths = {"default": memory.bytes_of("default")}
    origins: dict[str, tuple[str, int, int]] = {}
    for op in graph.ops:
        count = size(op.infer([])[0]) if op.kind is Kind.SINK else 0
        if not isinstance(op, Sink):
            found.add(op)
        elif memory.grain == 1 or not count:
            found.add(op)
            widths[op.id] = memory.bytes_of(op.id)
            origins[op.id] = op.id, 0, 1
        else:
            whole, rest = divmod(count, memory.grain)
            for first, grains, many in (
                (0, whole, memory.grain),
                (count - rest, min(rest, 1), rest),
            ):
                if grains:
                    name = _unused(graph, f"{op.id}#{'grains' if many == memory.grain else 'rest'}")
                    widths[name] = many * memory.bytes_of(op.id)
                    origins[name] = op.id, first, many
            _spread(found, op, [name for name, own in origins.items() if own[0] == op.id], origins)
    for a, b, value in graph.pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), value)
    found.tile_memory = TileMemory(memory.tiles, memory.bytes_per_tile, element_bytes=widths)
    return Grained(found, origins)


def _spread(
    graph: GraphStore, op: Sink, names: Sequence[str], origins: Mapping[str, tuple[str, int, int]]
) -> None:
    """Add sinks of grains, and the view that makes of them what a sink was."""
    [shape] = op.infer([])
    count, parts = size(shape), []
    for name in names:
        _, first, many = origins[name]
        grains = (count - first) // many if many else 0
        graph.add(Sink(id=name, inputs=(), shape=(grains, 1)))
        graph.add(Expand(id=f"{name}.each", inputs=(name,), shape=(grains, many)))
        graph.add(Flatten(id=f"{name}.flat", inputs=(f"{name}.each",)))
        parts.append(f"{name}.flat")
    if len(parts) > 1:
        graph.add(Concat(id=f"{names[0]}.all", inputs=tuple(parts), axis=0))
        parts = [f"{names[0]}.all"]
    graph.add(Reshape(id=op.id, inputs=(parts[0],), shape=shape))


def _unused(graph: GraphStore, name: str) -> str:
    """Return a name that no op begins with."""
    while any(op.id.startswith(name) for op in graph.ops):
        name += "#"
    return name
