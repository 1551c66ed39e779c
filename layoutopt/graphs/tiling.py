"""A graph on a tile memory: every location is a tile, and sources lie where rules put them.

Sources without rule or mapping, fixed points and the outputs of barriers follow the linear rule,
and so does what a sink is said to own: with a tile memory, "a fresh location of element e of
sink x" means the tile on which the linear rule puts that element.  Outputs of barriers with
hooks lie where :mod:`layoutopt.graphs.hooking` says.
"""

from __future__ import annotations

from copy import deepcopy

from layoutopt.errors import InputError
from layoutopt.graphs.mapping import Tiled
from layoutopt.graphs.op import Kind
from layoutopt.graphs.ops import Barrier, Source
from layoutopt.graphs.store import GraphStore
from layoutopt.tiles.blocks import TileMap, even_steps, tile_map_of
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map

TILE = "tile"
"""The origin of pieces that name tiles themselves."""


def root_tiles(graph: GraphStore, t: int) -> TileMap:
    """Return the tiles of a root tensor of a graph with a tile memory.

    Raises
    ------
    InputError
        If a rule or a mapping does not fit, or there is a hook; the text names the op.
    """
    memory = memory_of(graph)
    op = graph.ops[graph.producers[t]]
    if isinstance(op, Tiled):
        return op.tiles[t - graph.op_outputs[graph.producers[t]][0]]
    if hook_of(graph, graph.producers[t]) is not None:
        raise InputError(f"barrier {op.id!r}: a hook gives its tiles, no rule")
    try:
        if isinstance(op, Source) and op.mapping is not None:
            return _mapped(op.mapping, memory)
        return tile_map(graph.shapes[t], memory, op.rule if isinstance(op, Source) else None)
    except InputError as error:
        raise InputError(f"op {op.id!r}: {error.reason}") from None


def hook_of(graph: GraphStore, i: int) -> str | None:
    """Return the hook that gives the tiles of an op's outputs, if any does."""
    op = graph.ops[i]
    return op.hook if graph.tile_memory is not None and isinstance(op, Barrier) else None


def tiled(graph: GraphStore) -> GraphStore:
    """Return a graph with every source, fixed point and barrier at its tiles.

    Tensors keep their numbers.  A graph without a tile memory is returned as it is.

    Raises
    ------
    InputError
        If a rule or mapping does not fit, a barrier has a hook, or an op is called ``"tile"``.
    """
    if graph.tile_memory is None:
        return graph
    for i, op in enumerate(graph.ops):
        if op.id == TILE:
            raise InputError(f"op {TILE!r}: in graphs with a tile memory the name means the tiles")
        if hook_of(graph, i) is not None:
            raise InputError(f"barrier {op.id!r}: a hook gives its tiles, no rule")
    return settled(graph)


def settled(graph: GraphStore) -> GraphStore:
    """Return a graph with a tile memory, everything at its tiles but sinks and what hooks give.

    Its sources stay there on other machines too, whatever rules make of these.
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
            raise InputError(f"mapping: {where!r} is none of the tiles 0 to {memory.tiles - 1}")
        tiles.append(where)
    return tile_map_of(tiles)
