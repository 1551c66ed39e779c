"""Graphs on a tile memory: locations are tiles, rules place sources, hooks place barriers.

The linear rule places sources without rule or mapping, fixed points, and outputs of barriers
without hooks.  A fresh location of an element of a sink is the tile on which the linear rule
would place that element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from layoutopt.base.errors import InputError, errors_of
from layoutopt.base.limits import require
from layoutopt.base.numbers import unique
from layoutopt.base.result import Piece, UnwindingResult
from layoutopt.graphs import ops
from layoutopt.graphs.locations import (
    TILE,
    Locations,
    Placed,
    Tiled,
    checked_layouts,
    hook_of,
    hooked,
    layouts_in,
)
from layoutopt.graphs.ops import Array, Kind, Shape, UnwindingOp, size
from layoutopt.graphs.store import GraphStore
from layoutopt.tiles.blocks import TileMap, even_steps, tile_map_of
from layoutopt.tiles.hooks import Strided, hooked_tiles, read_elements, strided_outputs
from layoutopt.tiles.memory import TileMemory


def memory_of(graph: GraphStore) -> TileMemory:
    """Return the tile memory of a graph that has one."""
    if graph.tile_memory is None:
        raise InputError("the graph has no tile memory")
    return graph.tile_memory


def require_countable(total: int) -> None:
    """Raise InputError for more bytes than are counted in 64 bits, sums of them included."""
    if total >= 2**61:
        raise InputError(f"tensors take {total:,} bytes in all, where less than 2^61 is allowed")


def root_tiles(graph: GraphStore, t: int) -> TileMap:
    """Return the tiles of a root tensor of a graph with a tile memory."""
    memory, producer = memory_of(graph), graph.producers[t]
    op = graph.ops[producer]
    if isinstance(op, Tiled):
        return op.tiles[t - graph.op_outputs[producer][0]]
    _refuse_hook(graph, producer)
    with errors_of(f"op {op.id!r}"):
        if isinstance(op, ops.Source) and op.mapping is not None:
            return _mapped(op.mapping, memory)
        from layoutopt.tiles.rules import tile_map

        return tile_map(graph.shapes[t], memory, op.rule if isinstance(op, ops.Source) else None)


class TileLocations(Locations):
    """Tiles as locations, named by their numbers.

    If sinks are ``laid``, unplaced ones lie on the tiles of the linear rule.  Outputs of barriers
    with a hook have locations of their own; with ``hooks``, only where the hook fails or the tiles
    of inputs depend on themselves.
    """

    def __init__(self, graph: GraphStore, laid: bool, hooks: bool) -> None:
        super().__init__(graph)
        self.laid, self.hooks = laid, hooked(graph) if hooks else []
        self._tiles: dict[int, Array] = {}

    def on(self, tiles: Array) -> Array:
        """Return the location numbers of tiles."""
        self.pool.update({tile: self.count + tile for tile in unique(tiles).tolist()})
        return tiles + self.count

    def own(self, t: int) -> Array:
        """Return the location numbers of a root tensor's own tiles, flat."""
        if t in self._tiles:
            return self._tiles[t]
        producer = self.graph.producers[t]
        open_yet = not self.laid and self.graph.ops[producer].kind is Kind.SINK
        if open_yet or hook_of(self.graph, producer) is not None:
            return super().own(t)
        return self.on(root_tiles(self.graph, t).tiles())

    def at(self, origin: str, elements: Array) -> Array:
        """Return the location numbers of the tiles of elements of an origin of pieces."""
        if origin == TILE:
            return self.on(elements)
        t = self.graph.number(origin)
        if hook_of(self.graph, self.graph.producers[t]) is not None:
            return self.own(t)[elements]
        return self.on(root_tiles(self.graph, t).at(elements))

    def find(self, given: Placed, wanted: Sequence[int], found: dict[int, Array]) -> None:
        """Add the numbers of tensors, in their shapes, and of all on the way, for given layouts."""
        known = -1
        while wanted and len(self._tiles) > known:
            known = len(self._tiles)  # sinks may take locations of outputs of later barriers
            found.clear()
            for i in self.hooks:
                super().find(given, self.graph.op_inputs[i], found)
                tiles = [found[t] - self.count for t in self.graph.op_inputs[i]]
                if all((tile >= 0).all() for tile in tiles):
                    with suppress(InputError):
                        every = map(self.on, output_tiles(self.graph, i, tiles))
                        self._tiles.update(zip(self.graph.op_outputs[i], every, strict=True))
        super().find(given, wanted, found)

    def numbered(self, locations: Array) -> Array:
        """Return the numbers of the tiles of locations; tiles are returned unchanged."""
        known = locations >= self.count
        tensors, elements = Locations(self.graph).origins(np.where(known, -1, locations))
        found = locations.copy()
        for t in unique(tensors[~known]).tolist():
            found[tensors == t] = self.at(self.graph.tensor_name(t), elements[tensors == t])
        return found


def locations_of(
    graph: GraphStore, layouts: Mapping[Any, Any] | UnwindingResult | None = None
) -> dict[str, Array]:
    """Return the location numbers of all tensors; see :meth:`layoutopt.Graph.locations`."""
    require(8 * sum(map(size, graph.shapes)), "a number for every element")
    on_tiles = graph.tile_memory is not None and layouts is not None
    if on_tiles:
        check_hooks(graph)
    numbers = TileLocations(graph, True, True) if on_tiles else Locations(graph)
    placed = checked_layouts(numbers, layouts_in(graph, layouts or {}, "layouts"))
    every: dict[int, Array] = {}
    numbers.find(placed, range(len(graph.shapes)), every)
    return {graph.tensor_name(t): every[t] for t in range(len(graph.shapes))}


POOL = -1
"""Stand-in for the root tensor of all mappings, and of all tiles; its elements are their values."""


class TileMaps(dict[int, TileMap]):
    """The tiles of root tensors by number; those of the pool are the tiles themselves.

    Equal maps are one object, by which counts can be remembered.
    """

    def __init__(self, graph: GraphStore) -> None:
        super().__init__()
        self.graph = graph
        self._same: dict[object, TileMap] = {}

    def __missing__(self, root: int) -> TileMap:
        count = memory_of(self.graph).tiles
        every = TileMap((count,), (even_steps(count, 1),))
        own = every if root == POOL else root_tiles(self.graph, root)
        self[root] = self._same.setdefault(own.key, own)
        return self[root]

    def of(self, origin: str) -> TileMap:
        """Return the tiles of the origin of a piece."""
        return self[POOL if origin == TILE else self.graph.number(origin)]


def _mapped(mapping: tuple[int | str, ...], memory: TileMemory) -> TileMap:
    tiles: list[int] = []
    for where in mapping:
        if not isinstance(where, int) or not 0 <= where < memory.tiles:
            raise InputError(f"mapping: {where!r} is not a tile; tiles are 0 to {memory.tiles - 1}")
        tiles.append(where)
    return tile_map_of(tiles)


def _refuse_hook(graph: GraphStore, i: int) -> None:
    if hook_of(graph, i) is not None:
        name = graph.ops[i].id
        raise InputError(f"barrier {name!r}: its tiles are given by a hook, not by a rule")


def tiled(graph: GraphStore) -> GraphStore:
    """Return a graph whose sources, fixed points and barriers are placed on their tiles.

    Tensors keep their numbers.  The graph has a tile memory and no hooks.
    """
    for i, op in enumerate(graph.ops):
        if op.id == TILE:
            raise InputError(f"op {TILE!r}: the name is reserved in graphs with a tile memory")
        _refuse_hook(graph, i)
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


def _rebuilt(
    graph: GraphStore, change: Callable[[GraphStore, int, UnwindingOp], Iterable[str] | None]
) -> GraphStore:
    """Return a graph whose ops are changed one after the other, with the same pairs and memory.

    ``change`` adds to the new graph what replaces op number ``i``, which it gets with the new
    names of its inputs, and returns the new names of its outputs if they have others.
    """
    found = graph.copy()
    found.truncate(0, 0)
    names: dict[str, str] = {}
    for i, op in enumerate(graph.ops):
        renamed = tuple(names.get(name, name) for name in op.inputs)
        new = change(found, i, op if renamed == op.inputs else replace(op, inputs=renamed))
        names.update(zip(map(graph.tensor_name, graph.op_outputs[i]), new or (), strict=False))
    for a, b, value in graph.pairs:
        one, two = (graph.tensor_name(t) for t in (a, b))
        found.valued_pair(names.get(one, one), names.get(two, two), value)
    return found


@dataclass(frozen=True, eq=False)
class Grained:
    """A graph whose sinks have one element per grain.

    ``origins`` has for each of its sinks the original sink, the first element there, and the
    number of elements per grain.
    """

    graph: GraphStore
    origins: dict[str, tuple[str, int, int]]

    def restored(self, layouts: Mapping[str, Sequence[Piece]]) -> dict[str, tuple[Piece, ...]]:
        """Return layouts of the original sinks, from pieces none of whose origins is a sink."""
        found: dict[str, list[Piece]] = {sink: [] for sink, _, _ in self.origins.values()}
        for name, pieces in layouts.items():
            sink, first, many = self.origins[name]
            for origin, start, to, loops in pieces:
                own = [(extent, there, here * many) for extent, there, here in loops]
                inner = [(many, 0, 1)] if many > 1 else []
                found[sink].append((origin, start, first + to * many, (*own, *inner)))
        return {sink: tuple(pieces) for sink, pieces in found.items()}


def coarsen(graph: GraphStore) -> Grained:
    """Return an equivalent graph for a memory of grain 1.

    Ops except sinks keep their names; original sinks become views.
    """
    memory = memory_of(graph)
    widths = {"default": memory.bytes_of("default")}
    origins: dict[str, tuple[str, int, int]] = {}

    def change(found: GraphStore, _: int, op: UnwindingOp) -> None:
        count = size(op.infer([])[0]) if op.kind is Kind.SINK else 0
        if not isinstance(op, ops.Sink) or memory.grain == 1 or not count:
            found.add(op)
            if isinstance(op, ops.Sink):
                widths[op.id] = memory.bytes_of(op.id)
                origins[op.id] = op.id, 0, 1
            return
        whole, rest = divmod(count, memory.grain)
        parts = [(0, whole, memory.grain, "grains"), (count - rest, min(rest, 1), rest, "rest")]
        own = []
        for first, grains, many, role in parts:
            if grains:
                name = unused(found, graph, f"{op.id}#{role}")
                widths[name] = many * memory.bytes_of(op.id)
                origins[name] = op.id, first, many
                own.append((name, grains, many))
        _spread(found, op, own)

    found = _rebuilt(graph, change)
    found.tile_memory = TileMemory(memory.tiles, memory.bytes_per_tile, element_bytes=widths)
    return Grained(found, origins)


def _spread(graph: GraphStore, op: ops.Sink, parts: Sequence[tuple[str, int, int]]) -> None:
    """Replace a sink by sinks, of name, grains and elements of each, and views that join them."""
    flat = []
    for name, grains, many in parts:
        graph.add(ops.Sink(id=name, inputs=(), shape=(grains, 1)))
        graph.add(ops.Expand(id=f"{name}.each", inputs=(name,), shape=(grains, many)))
        graph.add(ops.Flatten(id=f"{name}.flat", inputs=(f"{name}.each",)))
        flat.append(f"{name}.flat")
    if len(flat) > 1:
        joined = f"{parts[0][0]}.all"
        graph.add(ops.Concat(id=joined, inputs=tuple(flat), axis=0))
        flat = [joined]
    graph.add(ops.Reshape(id=op.id, inputs=(flat[0],), shape=op.shape))


BARRIERS = ("opaque", "simulated")
"""Modes for barriers with hooks."""


def opaque(graph: GraphStore) -> GraphStore:
    """Return the graph without hooks."""
    found = deepcopy(graph)
    found.ops = [replace(op, hook=None) if isinstance(op, ops.Barrier) else op for op in graph.ops]
    return found


def apply_hook_mode(graph: GraphStore, barriers: str | None) -> GraphStore:
    """Return the graph with or without its hooks, which must be known and fit.

    ``None`` keeps hooks if the graph has a tile memory, ``"simulated"`` requires one,
    ``"opaque"`` removes all hooks.
    """
    check_hook_mode(barriers)
    if barriers == "simulated" and graph.tile_memory is None:
        raise InputError("barriers can be simulated only on a tile memory; the graph has none")
    if barriers == "opaque":
        return opaque(graph) if hooked(graph) else graph
    check_hooks(graph)
    return graph


def check_hook_mode(barriers: str | None) -> None:
    """Raise InputError unless this is ``None`` or a known word."""
    if barriers not in (None, *BARRIERS):
        raise InputError(f"unknown barriers {barriers!r}; known: {', '.join(BARRIERS)}")


def check_hooks(graph: GraphStore) -> None:
    """Raise InputError, naming barrier and hook, unless every used hook is known and fits."""
    for i in hooked(graph):
        _strided(graph, i)


def output_tiles(graph: GraphStore, i: int, inputs: Sequence[Array]) -> list[Array]:
    """Return the tiles of the outputs of barrier ``i``, by its hook, from those of its inputs.

    All arrays are flat.
    """
    before, after = _shapes(graph, i)
    shaped = [
        np.asarray(tiles, np.int64).reshape(shape)
        for tiles, shape in zip(inputs, before, strict=True)
    ]
    with errors_of(f"barrier {graph.ops[i].id!r}"):
        found = hooked_tiles(hook_of(graph, i) or "", shaped, after, memory_of(graph))
    return [tiles.reshape(-1) for tiles in found]


def reads(graph: GraphStore, i: int) -> list[Array] | None:
    """Return the input elements that determine each output element, if the hook declares them.

    See :func:`layoutopt.tiles.hooks.read_elements`.
    """
    with errors_of(f"barrier {graph.ops[i].id!r}"):
        return read_elements(hook_of(graph, i) or "", *_shapes(graph, i))


def _strided(graph: GraphStore, i: int) -> list[Strided] | None:
    with errors_of(f"barrier {graph.ops[i].id!r}"):
        return strided_outputs(hook_of(graph, i) or "", *_shapes(graph, i))


def _shapes(graph: GraphStore, i: int) -> tuple[list[Shape], list[Shape]]:
    """Return the shapes of an op's inputs and outputs."""
    inputs, outputs = graph.op_inputs[i], graph.op_outputs[i]
    return [graph.shapes[t] for t in inputs], [graph.shapes[t] for t in outputs]


def viewed(graph: GraphStore) -> GraphStore:
    """Return an equivalent graph in which only users' hooks remain, and only used ones.

    Barriers with a built-in hook become views; hooks of barriers that influence no pair are
    removed.  Sinks, sources and remaining barriers keep their names.
    """
    needed = _needed(graph)

    def change(found: GraphStore, i: int, op: UnwindingOp) -> list[str] | None:
        outputs = graph.op_outputs[i]
        lies = _strided(graph, i) if hook_of(graph, i) is not None else None
        if lies is not None:
            return [
                _view(found, graph, t, op.inputs[how.source], how)
                for t, how in zip(outputs, lies, strict=True)
            ]
        unneeded = isinstance(op, ops.Barrier) and needed.isdisjoint(outputs)
        found.add(replace(op, hook=None) if unneeded else op)
        return None

    return _rebuilt(graph, change)


def relaxed(graph: GraphStore) -> GraphStore:
    """Return a relaxation in which outputs of barriers with hooks are sinks."""

    def change(found: GraphStore, i: int, op: UnwindingOp) -> list[str] | None:
        if hook_of(graph, i) is None:
            found.add(op)
            return None
        names = []
        for t in graph.op_outputs[i]:
            names.append(unused(found, graph, graph.tensor_name(t)))
            found.add(ops.Sink(id=names[-1], inputs=(), shape=graph.shapes[t]))
        return names

    return _rebuilt(graph, change)


def unused(found: GraphStore, graph: GraphStore, name: str) -> str:
    """Derive from a name one that begins no op's name of two graphs."""
    name = name.replace(":", "#")
    while any(op.id.startswith(name) for one in (graph, found) for op in one.ops):
        name += "#"
    return name


def _view(found: GraphStore, graph: GraphStore, t: int, source: str, how: Strided) -> str:
    """Add views that select elements of a tensor, and return the last one's name."""
    shape = graph.shapes[t]
    last = unused(found, graph, graph.tensor_name(t))
    if not size(shape):
        found.add(ops.Source(id=last, inputs=(), shape=shape))
        return last
    sampled, cut = (unused(found, graph, f"{last}.{role}") for role in ("windows", "first"))
    zero = (0,) * len(how.counts)
    found.add(ops.SubSample(id=sampled, inputs=(source,), strides=how.strides))
    found.add(ops.Slice(id=cut, inputs=(sampled,), lower=zero, upper=how.counts))
    found.add(ops.Reshape(id=last, inputs=(cut,), shape=shape))
    return last


def _needed(graph: GraphStore) -> set[int]:
    """Return the tensors that influence pairs through views and hooks."""
    found = {t for pair in graph.pairs for t in pair[:2]}
    for i in range(len(graph.ops) - 1, -1, -1):
        if any(t in found for t in graph.op_outputs[i]):
            found.update(graph.carriers(i) if hook_of(graph, i) is None else graph.op_inputs[i])
    return found
