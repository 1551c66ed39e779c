"""Graphs on a tile memory: locations are tiles, rules place sources, hooks place barriers.

The linear rule places sources without rule or mapping, fixed points, and outputs of barriers
without hooks.  A fresh location of an element of a sink is the tile on which the linear rule
would place that element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from layoutopt.base.errors import InputError
from layoutopt.base.result import Piece
from layoutopt.graphs.locations import TILE, Tiled
from layoutopt.graphs.ops import (
    Array,
    Barrier,
    Concat,
    Expand,
    Flatten,
    Kind,
    Reshape,
    Sink,
    Slice,
    Source,
    SubSample,
    UnwindingOp,
    size,
)
from layoutopt.graphs.store import GraphStore
from layoutopt.tiles.blocks import TileMap, even_steps, tile_map_of
from layoutopt.tiles.hooks import Strided, hooked_tiles, read_elements, strided_outputs
from layoutopt.tiles.memory import TileMemory


def root_tiles(graph: GraphStore, t: int) -> TileMap:
    """Return the tiles of a root tensor of a graph with a tile memory.

    Raises
    ------
    InputError
        If a rule or a mapping does not fit, or there is a hook; the message names the op.
    """
    memory = memory_of(graph)
    op = graph.ops[graph.producers[t]]
    if isinstance(op, Tiled):
        return op.tiles[t - graph.op_outputs[graph.producers[t]][0]]
    if hook_of(graph, graph.producers[t]) is not None:
        raise InputError(f"barrier {op.id!r}: its tiles are given by a hook, not by a rule")
    try:
        if isinstance(op, Source) and op.mapping is not None:
            return _mapped(op.mapping, memory)
        from layoutopt.tiles.rules import tile_map

        return tile_map(graph.shapes[t], memory, op.rule if isinstance(op, Source) else None)
    except InputError as error:
        raise InputError(f"op {op.id!r}: {error.reason}") from None


def hook_of(graph: GraphStore, i: int) -> str | None:
    """Return the hook that computes the tiles of an op's outputs, if any."""
    op = graph.ops[i]
    return op.hook if graph.tile_memory is not None and isinstance(op, Barrier) else None


def tiled(graph: GraphStore) -> GraphStore:
    """Return a graph whose sources, fixed points and barriers are placed on their tiles.

    Tensors keep their numbers.  A graph without a tile memory is returned unchanged.

    Raises
    ------
    InputError
        If a rule or mapping does not fit, a barrier has a hook, or an op is called ``"tile"``.
    """
    if graph.tile_memory is None:
        return graph
    for i, op in enumerate(graph.ops):
        if op.id == TILE:
            raise InputError(f"op {TILE!r}: the name is reserved in graphs with a tile memory")
        if hook_of(graph, i) is not None:
            raise InputError(f"barrier {op.id!r}: its tiles are given by a hook, not by a rule")
    return fix_tiles(graph)


def fix_tiles(graph: GraphStore) -> GraphStore:
    """Return a graph with a tile memory whose sources and fixed points have explicit tiles.

    They keep these tiles on other machines, where rules would give other ones.
    """
    count = memory_of(graph).tiles
    found = deepcopy(graph)
    for i, op in enumerate(graph.ops):
        if op.kind in (Kind.SINK, Kind.VIEW) or hook_of(graph, i) is not None:
            continue
        outputs = graph.op_outputs[i]
        shapes = tuple(graph.shapes[t] for t in outputs)
        tiles = tuple(root_tiles(graph, t) for t in outputs)
        found.ops[i] = Tiled(id=op.id, inputs=(), shapes=shapes, tiles=tiles, count=count)
        found.op_inputs[i] = ()
    return found


def every_tile(tiles: int) -> TileMap:
    """Return the map of a tensor with one element on each tile."""
    return TileMap((tiles,), (even_steps(tiles, 1),))


def memory_of(graph: GraphStore) -> TileMemory:
    """Return the tile memory of a graph that has one."""
    if graph.tile_memory is None:
        raise InputError("the graph has no tile memory")
    return graph.tile_memory


def _mapped(mapping: tuple[int | str, ...], memory: TileMemory) -> TileMap:
    tiles: list[int] = []
    for where in mapping:
        if not isinstance(where, int) or not 0 <= where < memory.tiles:
            raise InputError(f"mapping: {where!r} is not a tile; tiles are 0 to {memory.tiles - 1}")
        tiles.append(where)
    return tile_map_of(tiles)


@dataclass(frozen=True, eq=False)
class Grained:
    """A graph whose sinks have one element per grain.

    Parameters
    ----------
    origins
        For each of its sinks the original sink, the first element there, and the number of
        elements per grain.
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


def coarsen(graph: GraphStore) -> Grained:
    """Return an equivalent graph for a memory of grain 1.

    Ops except sinks keep their names; original sinks become views.
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
    """Add sinks with one element per grain, and the view that replaces the original sink."""
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
    """Return a name that is no prefix of an op's name."""
    while any(op.id.startswith(name) for op in graph.ops):
        name += "#"
    return name


BARRIERS = ("opaque", "simulated")
"""Modes for barriers with hooks."""


def hooked(graph: GraphStore) -> list[int]:
    """Return the numbers of the barriers whose outputs' tiles are given by a hook."""
    return [i for i in range(len(graph.ops)) if hook_of(graph, i) is not None]


def opaque(graph: GraphStore) -> GraphStore:
    """Return the graph without hooks."""
    found = type(graph)(graph.name, graph.description)
    for op in graph.ops:
        found.add(replace(op, hook=None) if isinstance(op, Barrier) else op)
    return _finished(found, graph, {})


def apply_hook_mode(graph: GraphStore, barriers: str | None) -> GraphStore:
    """Return the graph with or without its hooks.

    Parameters
    ----------
    barriers
        ``None``: hooks are kept if the graph has a tile memory.  ``"simulated"``: the same, but
        a tile memory is required.  ``"opaque"``: all hooks are removed.

    Raises
    ------
    InputError
        If the mode is unknown, or a hook that is kept is unknown or does not fit.
    """
    if barriers not in (None, *BARRIERS):
        raise InputError(f"unknown barriers {barriers!r}; known: {', '.join(BARRIERS)}")
    if barriers == "simulated" and graph.tile_memory is None:
        raise InputError("barriers can be simulated only on a tile memory; the graph has none")
    if barriers == "opaque":
        return opaque(graph) if hooked(graph) else graph
    check_hooks(graph)
    return graph


def check_hooks(graph: GraphStore) -> None:
    """Raise InputError, naming barrier and hook, unless every used hook is known and fits."""
    for i in hooked(graph):
        _strided(graph, i)


def output_tiles(graph: GraphStore, i: int, inputs: Sequence[Array]) -> list[Array]:
    """Return the tiles of the outputs of a barrier with a hook, flat.

    Parameters
    ----------
    i
        The barrier's number.
    inputs
        The tiles of each input, flat.

    Raises
    ------
    InputError
        If the hook does not fit or fails; the message names barrier and hook.
    """
    shaped = [
        np.asarray(tiles, np.int64).reshape(graph.shapes[t])
        for tiles, t in zip(inputs, graph.op_inputs[i], strict=True)
    ]
    shapes = [graph.shapes[t] for t in graph.op_outputs[i]]
    try:
        found = hooked_tiles(hook_of(graph, i) or "", shaped, shapes, memory_of(graph))
    except InputError as error:
        raise InputError(f"barrier {graph.ops[i].id!r}: {error.reason}") from error.__cause__
    return [tiles.reshape(-1) for tiles in found]


def reads(graph: GraphStore, i: int) -> list[Array] | None:
    """Return the input elements that determine each output element, if the hook declares them.

    See :func:`layoutopt.tiles.hooks.read_elements`.
    """
    inputs = [graph.shapes[t] for t in graph.op_inputs[i]]
    outputs = [graph.shapes[t] for t in graph.op_outputs[i]]
    try:
        return read_elements(hook_of(graph, i) or "", inputs, outputs)
    except InputError as error:
        raise InputError(f"barrier {graph.ops[i].id!r}: {error.reason}") from error.__cause__


def viewed(graph: GraphStore) -> GraphStore:
    """Return an equivalent graph in which only users' hooks remain, and only used ones.

    Barriers with a built-in hook become views; hooks of barriers that influence no pair are
    removed.  Sinks, sources and remaining barriers keep their names.

    Raises
    ------
    InputError
        If a hook is unknown, or does not fit its barrier.
    """
    found = type(graph)(graph.name)
    names: dict[str, str] = {}
    needed = _needed(graph)
    for i, op in enumerate(graph.ops):
        op = replace(op, inputs=tuple(names.get(name, name) for name in op.inputs))
        lies = _strided(graph, i) if hook_of(graph, i) is not None else None
        if lies is not None:
            for t, how in zip(graph.op_outputs[i], lies, strict=True):
                name = _view(found, graph, t, op.inputs[how.source], how)
                names[graph.tensor_name(t)] = name
        elif isinstance(op, Barrier) and not any(t in needed for t in graph.op_outputs[i]):
            found.add(replace(op, hook=None))
        else:
            found.add(op)
    return _finished(found, graph, names)


def relaxed(graph: GraphStore) -> GraphStore:
    """Return a relaxation in which outputs of barriers with hooks are sinks."""
    found = type(graph)(graph.name)
    names: dict[str, str] = {}
    for i, op in enumerate(graph.ops):
        if hook_of(graph, i) is None:
            found.add(replace(op, inputs=tuple(names.get(name, name) for name in op.inputs)))
            continue
        for t in graph.op_outputs[i]:
            name = unused(found, graph, graph.tensor_name(t))
            names[graph.tensor_name(t)] = name
            found.add(Sink(id=name, inputs=(), shape=graph.shapes[t]))
    return _finished(found, graph, names)


def unused(found: GraphStore, graph: GraphStore, name: str) -> str:
    """Derive from a name one that no op of two graphs has."""
    taken = {op.id for op in graph.ops} | {op.id for op in found.ops}
    name = name.replace(":", "#")
    while name in taken:
        name += "#"
    return name


def _finished(found: GraphStore, graph: GraphStore, names: dict[str, str]) -> GraphStore:
    """Add pairs and tile memory."""
    for a, b, value in graph.pairs:
        one, two = (graph.tensor_name(t) for t in (a, b))
        found.valued_pair(names.get(one, one), names.get(two, two), value)
    found.tile_memory = graph.tile_memory
    return found


def _strided(graph: GraphStore, i: int) -> list[Strided] | None:
    inputs = [graph.shapes[t] for t in graph.op_inputs[i]]
    outputs = [graph.shapes[t] for t in graph.op_outputs[i]]
    try:
        return strided_outputs(hook_of(graph, i) or "", inputs, outputs)
    except InputError as error:
        raise InputError(f"barrier {graph.ops[i].id!r}: {error.reason}") from None


def _view(found: GraphStore, graph: GraphStore, t: int, source: str, how: Strided) -> str:
    """Add views that select elements of a tensor, and return the last one's name."""
    shape = graph.shapes[t]
    last = unused(found, graph, graph.tensor_name(t))
    if not size(shape):
        found.add(Source(id=last, inputs=(), shape=shape))
        return last
    sampled, cut = f"{last}.windows", f"{last}.first"
    sampled, cut = unused(found, graph, sampled), unused(found, graph, cut)
    zero = (0,) * len(how.counts)
    steps: list[UnwindingOp] = [
        SubSample(id=sampled, inputs=(source,), strides=how.strides),
        Slice(id=cut, inputs=(sampled,), lower=zero, upper=how.counts),
        Reshape(id=last, inputs=(cut,), shape=shape),
    ]
    for op in steps:
        found.add(op)
    return last


def _needed(graph: GraphStore) -> set[int]:
    """Return the tensors that influence pairs through views and hooks."""
    found = {t for pair in graph.pairs for t in pair[:2]}
    for i in range(len(graph.ops) - 1, -1, -1):
        if any(t in found for t in graph.op_outputs[i]):
            found.update(graph.carriers(i) if hook_of(graph, i) is None else graph.op_inputs[i])
    return found
