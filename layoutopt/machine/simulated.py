"""Unwinding with barriers whose outputs' tiles hooks compute from their inputs' tiles.

The *master* problem lets the outputs lie anywhere, so that its optimum is a bound.  Its sinks
with the outputs that hooks compute from them are a solution.  Where these outputs are not the
master's own, a row is added for each: if the elements that it depends on are where they are
now, it is where the hook says.  There are finitely many such rows, so bound and score meet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.numbers import to_decimal, to_integers, unique
from layoutopt.base.result import Piece, Result
from layoutopt.boxes.merge import boxes_of
from layoutopt.check.elements import Located, evaluate
from layoutopt.graphs.locations import TILE, LayoutDict, flow, hooked
from layoutopt.graphs.ops import Array, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import (
    Grained,
    coarsen,
    fix_tiles,
    memory_of,
    opaque,
    output_tiles,
    reads,
    relaxed,
    root_tiles,
    viewed,
)
from layoutopt.machine.capacitated import NO_WAY
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.cpsat import solve_programme
from layoutopt.network.solvers.programme import Programme, ProgrammeResult, ProgrammeWriter
from layoutopt.tiles.memory import MOST, TileMemory

Rows = dict[tuple[int, tuple[tuple[int, int], ...]], int]
"""The tile of an element that follows where others, pairs of element and tile, are there."""


@dataclass(frozen=True, eq=False)
class HookedBarrier:
    """A barrier with a hook, number ``op`` of the graph.

    ``inputs`` has for each input the numbers of its elements, flat, ``outputs`` those of all
    outputs; ``conditions`` are the distinct ones of the inputs that are of no fixed tile, ``reads``
    those of them that decide each output element.
    """

    graph: GraphStore
    op: int
    inputs: list[IntArray]
    outputs: IntArray
    conditions: IntArray
    reads: list[IntArray]

    def evaluate(self, on: IntArray) -> IntArray:
        """Return the tiles of all output elements from those of all numbered elements."""
        every = np.concatenate([on, np.arange(memory_of(self.graph).tiles)])
        return _flat(output_tiles(self.graph, self.op, [every[numbers] for numbers in self.inputs]))


@dataclass(frozen=True, eq=False)
class TracedTiles:
    """A graph as elements that are to be put on tiles.

    Elements that earn ``value`` make a score of ``unit * (constant + value)``.
    """

    tiles: int  # number of tiles
    # What two elements earn on one tile, by their numbers, the smaller first; and what an element
    # earns on a tile, by element and tile.
    edges: dict[tuple[int, int], int]
    rewards: dict[tuple[int, int], int]
    width: IntArray  # shape `(elements,)`: bytes of each, 0 for those that take no room
    loose: dict[int, int]  # the kind of each element that no pair and no hook looks at, by number
    kinds: Sequence[tuple[int, int]]  # bytes of each kind of loose elements, and how many there are
    room: int | None  # the bytes of a tile; None if everything fits one
    constant: int
    unit: Fraction
    blocks: list[HookedBarrier]  # the barriers with hooks, in the graph's order
    fine: Grained  # the graph with an element for each grain
    first: dict[int, int]  # the first number of each of its sinks

    @property
    def packed(self) -> Sequence[tuple[int, int]]:
        """The kinds of loose elements that are to be packed: none if everything fits one tile."""
        return self.kinds if self.room is not None else ()

    def value(self, on: IntArray) -> int:
        """Return what elements earn on given tiles."""
        together = sum(w for (u, v), w in self.edges.items() if on[u] == on[v])
        return together + sum(r for (u, t), r in self.rewards.items() if on[u] == t)

    def worth(self, value: int) -> Decimal:
        """Return what elements earn as a score of the graph."""
        return to_decimal(self.constant + value, self.unit)

    def programme(self, rows: Rows) -> Programme:
        """State the programme with some rows."""
        to, tiles = ProgrammeWriter(), self.tiles
        earned = np.zeros((len(self.width), tiles), object)
        for at, reward in self.rewards.items():
            earned[at] += reward
        edges = np.array([*self.edges], np.int64).reshape(-1, 2)
        x = to.agreement(earned, edges, np.array([*self.edges.values()], object))
        loose = [to.block(np.zeros(tiles, np.int64), count) for _, count in self.packed]
        for (v, conditions), tile in rows.items():
            columns = [int(x[u, t]) for u, t in conditions]
            to.row([*columns, int(x[v, tile])], [1] * len(columns) + [-1], high=len(columns) - 1)
        for taken, (_, count) in zip(loose, self.packed, strict=True):
            to.row(taken.tolist(), [1] * tiles, count, count)
        if self.room is not None:
            widths = [*self.width.tolist(), *(width for width, _ in self.packed)]
            to.family(np.stack([*x, *loose], axis=1), widths, 0, self.room)
        return to.finished()

    def chosen(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return what a point of the programme means.

        First the tile of each element; then how many loose elements of each packed kind are on
        each tile, shape ``(kinds, tiles)``.
        """
        first = len(self.width) * self.tiles
        on = values[:first].reshape(len(self.width), self.tiles).argmax(axis=1)
        rest = values[first + len(self.edges) * self.tiles :]
        return on.astype(np.int64), rest.reshape(-1, self.tiles)

    def point(self, on: IntArray) -> IntArray:
        """Return elements on tiles as a point to begin with; ``-1`` for what is not said."""
        x = np.zeros((len(self.width), self.tiles), np.int64)
        x[np.arange(len(self.width)), on] = 1
        y = [x[u] * x[v] for u, v in self.edges]
        return np.concatenate([x.reshape(-1), *y, np.full(len(self.packed) * self.tiles, -1)])

    def layouts(self, on: IntArray, loose: IntArray) -> LayoutDict:
        """Return the layouts of the graph's sinks, from what :meth:`chosen` returns.

        Loose elements that are not packed are where the linear rule puts them.
        """
        graph, on = self.fine.graph, on.copy()
        tiles: list[Iterator[int]] = [
            iter(np.repeat(np.arange(row.size), row).tolist()) for row in loose
        ]
        found: LayoutDict = {}
        for t, first in self.first.items():
            own = root_tiles(graph, t).tiles()
            for e in range(len(own)):
                kind = self.loose.get(first + e)
                if kind is None:
                    own[e] = on[first + e]
                elif tiles:
                    own[e] = next(tiles[kind])
            found[graph.tensor_name(t)] = as_pieces(own)
        return self.fine.restored(found)


def as_pieces(tiles: Array) -> tuple[Piece, ...]:
    """Return the pieces of a sink whose elements are on given tiles."""
    found = boxes_of(np.zeros(len(tiles), np.int64), tiles)
    return tuple((TILE, box.start, box.to, box.loops) for box in found)


def traced(graph: GraphStore) -> TracedTiles:
    """Return the problem of a graph with a tile memory whose barriers have hooks."""
    fine, memory = coarsen(graph), memory_of(graph)
    numbered, first, free = _roots(fine.graph, graph)
    pairs, hooks = fine.graph.pairs, hooked(fine.graph)
    wanted = {t for pair in pairs for t in pair[:2]}
    wanted |= {t for i in hooks for t in fine.graph.op_inputs[i]}
    arrays = {t: x.reshape(-1) for t, x in flow(fine.graph, numbered, sorted(wanted)).items()}
    blocks = [_block(fine.graph, i, arrays, free) for i in hooks]
    values, unit = to_integers([value for _, _, value in pairs])
    constant = 0
    edges: dict[tuple[int, int], int] = defaultdict(int)
    rewards: dict[tuple[int, int], int] = defaultdict(int)
    for (a, b, _), value in zip(pairs, values, strict=True):
        for u, v in np.sort(np.stack([arrays[a], arrays[b]], axis=1), axis=1).tolist():
            if u == v:
                constant += value
            elif v < free:
                edges[u, v] += value
            elif u < free:
                rewards[u, v - free] += value
    seen = np.zeros(free, bool)
    for end in (*edges, *((u, u) for u, _ in rewards)):
        seen[list(end)] = True
    for block in blocks:
        seen[block.conditions] = seen[block.outputs] = True
    width = np.zeros(free, np.int64)
    for t, start in first.items():
        name, count = fine.graph.tensor_name(t), size(fine.graph.shapes[t])
        width[start : start + count] = memory_of(fine.graph).bytes_of(name)
    room = None if width.sum() <= memory.bytes_per_tile else memory.bytes_per_tile
    widths, kind = np.unique(width[~seen], return_inverse=True)
    counts = np.bincount(kind.reshape(-1), minlength=len(widths))
    return TracedTiles(
        memory.tiles,
        {k: w for k, w in edges.items() if w},
        {k: w for k, w in rewards.items() if w},
        np.where(seen, width, 0),  # loose elements keep their numbers, but nothing ties them
        dict(zip(np.flatnonzero(~seen).tolist(), kind.reshape(-1).tolist(), strict=True)),
        list(zip(widths.tolist(), counts.tolist(), strict=True)),
        room,
        constant,
        unit,
        blocks,
        fine,
        first,
    )


def _roots(graph: GraphStore, coarse: GraphStore) -> tuple[dict[int, Array], dict[int, int], int]:
    """Return the numbers of root tensors' elements, the first of each sink, and how many.

    Rules may depend on the graph with grains, ``coarse``.
    """
    free, first = 0, {}
    arrays: dict[int, Array] = {}
    hooks = {t for i in hooked(graph) for t in graph.op_outputs[i]}
    sinks = [sink.index for sink in graph.sinks()]
    for t in (*sinks, *sorted(hooks)):
        count = size(graph.shapes[t])
        arrays[t] = np.arange(free, free + count).reshape(graph.shapes[t])
        first[t] = free
        free += count
    for t in graph.roots():
        if t not in arrays:
            tiles = root_tiles(coarse, coarse.number(graph.tensor_name(t))).tiles()
            arrays[t] = (free + tiles).reshape(graph.shapes[t])
    return arrays, {t: first[t] for t in sinks}, free


def _block(graph: GraphStore, i: int, arrays: dict[int, Array], free: int) -> HookedBarrier:
    inputs = [arrays[t] for t in graph.op_inputs[i]]
    every = _flat(inputs)
    outputs = _flat([arrays[t] for t in graph.op_outputs[i]])
    conditions = _free(every, free)
    deciding = reads(graph, i)
    if deciding is None:
        return HookedBarrier(graph, i, inputs, outputs, conditions, [conditions] * len(outputs))
    own = [_free(every[elements], free) for output in deciding for elements in output]
    return HookedBarrier(graph, i, inputs, outputs, conditions, own)


def _flat(arrays: Sequence[Array]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *(x.reshape(-1) for x in arrays)])


def _free(numbers: IntArray, free: int) -> IntArray:
    return unique(numbers[numbers < free])


VARIABLES = 200_000
"""Variables that the master problem may have."""

TABLE = 4096
"""Barriers whose inputs have up to so many layouts are written down at once."""


def solve_hooked(
    graph: GraphStore, limits: Limits, solve: Callable[[GraphStore], Result], table: int = TABLE
) -> Result:
    """Choose layouts for a graph with a tile memory whose barriers have hooks.

    Built-in hooks become views; if there are no others, that graph is solved as any other, by
    ``solve``.  Barriers whose inputs have up to ``table`` layouts are written down at once.
    Stopped by the limit of size, where there are too many elements and tiles, the bound lets
    outputs lie anywhere, and layouts are the best of those found without hooks.
    """
    graph = viewed(graph)
    if not hooked(graph):
        return solve(graph)
    positions = sum(size(graph.shapes[a]) for a, _, _ in graph.pairs)
    roots = sum(map(size, graph.shapes)) + positions
    if roots * memory_of(graph).tiles > VARIABLES:
        return _beyond(graph, solve)
    known = traced(graph)
    if not known.programme({}).fits():
        return _beyond(graph, solve)
    return _Search(known, limits, table).result()


def solve_unhooked(graph: GraphStore, solve: Callable[[GraphStore], Result]) -> Result:
    """Choose layouts for a graph as if no user's hook were there.

    They come without score and bound: hooks decide what they earn.
    """
    plain = viewed(graph)
    shut = opaque(plain) if hooked(plain) else plain
    found = solve(shut)
    layouts = None if found.labelling is None else _on_tiles(shut, found.labelling, graph)
    return replace(found, objective=None, bound=None, labelling=layouts)


class _Search:
    """Rows, the best layouts, and the bound."""

    def __init__(self, known: TracedTiles, limits: Limits, table: int) -> None:
        self.known, self.limits = known, limits
        self.rows: Rows = {}
        self.best: int | None = None
        self.bound: int | None = None
        self.on: IntArray | None = None
        self.loose = np.zeros((0, known.tiles), np.int64)
        for block in known.blocks:
            layouts_of_inputs = float(known.tiles) ** len(block.conditions)
            if layouts_of_inputs <= table:
                self._tabulate(block)

    def result(self) -> Result:
        """Search until bound and score meet, and return what is found."""
        known, limits = self.known, self.limits
        stopped = Stopped.FINISHED
        while not self._closed():
            if limits.over:
                stopped = limits.stopped or Stopped.TIME_LIMIT
                break
            start = None if self.on is None else known.point(self.on)
            found = solve_programme(known.programme(self.rows), limits, start, self.bound)
            if found.infeasible:
                found = self._without_rows()
                if found.infeasible:
                    return Result(infeasible=NO_WAY)
            if found.values is None:
                stopped = limits.stopped or Stopped.TIME_LIMIT
                break
            if found.bound is not None:
                self.bound = found.bound if self.bound is None else min(self.bound, found.bound)
            self._learn(*known.chosen(found.values))
            limits.report("hooks", *self._told())
        if stopped is Stopped.FINISHED and self.best != self.bound:
            stopped = Stopped.GAP_LIMIT
        score, bound = (None if x is None else known.worth(x) for x in (self.best, self.bound))
        layouts = None if self.on is None else known.layouts(self.on, self.loose)
        return Result(objective=score, bound=bound, labelling=layouts, stopped=stopped)

    def _without_rows(self) -> ProgrammeResult:
        """Return whether any layout fits, hooks aside: rows rule none out, or contradict."""
        found = solve_programme(self.known.programme({}), self.limits)
        if found.values is not None:
            raise InputError("hooks gave different outputs for equal inputs")
        return found

    def _closed(self) -> bool:
        if self.best is None or self.bound is None:
            return False
        constant = self.known.constant
        return self.limits.close(self.best + constant, self.bound + constant)

    def _told(self) -> list[float | None]:
        both = (self.best, self.bound)
        return [None if x is None else float(self.known.worth(x)) for x in both]

    def _learn(self, on: IntArray, loose: IntArray) -> None:
        """Take the master's sinks with what follows from them, and add rows.

        The first barrier whose outputs the master has elsewhere reads what it reads in the
        master, so a row for it is one that the master breaks.
        """
        really = on.copy()
        for block in self.known.blocks:
            self._add(block, really)
        value = self.known.value(really)
        if self.best is None or value > self.best:
            self.best, self.on, self.loose = value, really, loose

    def _add(self, block: HookedBarrier, on: IntArray) -> None:
        """Set a barrier's outputs from its inputs, and add the rows that say so."""
        on[block.outputs] = block.evaluate(on)
        for node, nodes in zip(block.outputs.tolist(), block.reads, strict=True):
            conditions = tuple(zip(nodes.tolist(), on[nodes].tolist(), strict=True))
            before = self.rows.setdefault((node, conditions), int(on[node]))
            if before != on[node]:
                barrier = block.graph.ops[block.op].id
                raise InputError(
                    f"barrier {barrier!r}: its hook gave tiles {before} and {on[node]} for an "
                    "output element whose inputs were equal"
                )

    def _tabulate(self, block: HookedBarrier) -> None:
        """Add the rows of all layouts of a barrier's inputs."""
        on = np.zeros(len(self.known.width), np.int64)
        for tiles in product(range(self.known.tiles), repeat=len(block.conditions)):
            on[block.conditions] = tiles
            self._add(block, on)


def _beyond(graph: GraphStore, solve: Callable[[GraphStore], Result]) -> Result:
    """Return a bound, and the best layouts that are found without hooks."""
    memory = memory_of(graph)
    # Rules may look at the machine, so what is fixed stays where this machine has it.
    free, shut = fix_tiles(relaxed(graph)), opaque(graph)
    free.tile_memory = TileMemory(memory.tiles, MOST)
    top = solve(free)
    found = Result(bound=top.bound, stopped=Stopped.SIZE_LIMIT)
    tried = solve(shut)
    if tried.infeasible:
        return tried
    for solved, result in ((free, top), (shut, tried)):
        if result.labelling is None:
            continue
        layouts = _on_tiles(solved, result.labelling, graph)
        checked = evaluate(graph, layouts)
        if checked.violations or checked.score is None:
            continue
        if found.objective is None or checked.score > found.objective:
            found = replace(found, objective=checked.score, labelling=layouts)
    return found


def _on_tiles(solved: GraphStore, layouts: LayoutDict, graph: GraphStore) -> LayoutDict:
    """Return layouts of a graph's sinks, written as tiles, from those of one without hooks."""
    located = Located(solved, layouts)
    tiles = {sink.name: located.of(solved.number(sink.name)) for sink in graph.sinks()}
    return {name: as_pieces(own) for name, own in tiles.items()}
