"""The elements of a graph whose barriers have hooks, numbered, as a problem on tiles.

Elements of sinks come first (of grains, where a grain shares a tile), then those of outputs of
barriers with hooks; the numbers from there on stand for tiles 0, 1, ..., where fixed elements are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from layoutopt.dense.boxes import boxes
from layoutopt.dense.layouts import Layouts
from layoutopt.graphs.grains import Grained, grained
from layoutopt.graphs.hooking import hooked, output_tiles, reads
from layoutopt.graphs.locations import flow
from layoutopt.graphs.op import Array, Kind, size
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import TILE, memory_of, root_tiles
from layoutopt.graphs.values import to_decimal, to_integers
from layoutopt.integers import unique
from layoutopt.machine.rows import OnTiles
from layoutopt.pieces import Piece
from layoutopt.problem import IntArray

Table = dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False)
class Block:
    """A barrier with a hook.

    Parameters
    ----------
    graph, op
        The graph, and the barrier's number there.
    inputs
        For each input the numbers of its elements, flat.
    outputs
        The numbers of all elements of all outputs.
    conditions
        The distinct numbers among the inputs' that are of no fixed tile.
    reads
        The same of the inputs that decide each output element, if the hook says so.
    """

    graph: Store
    op: int
    inputs: list[IntArray]
    outputs: IntArray
    conditions: IntArray
    reads: list[IntArray] | None

    @property
    def name(self) -> str:
        """The barrier's name."""
        return self.graph.ops[self.op].id

    def evaluate(self, on: IntArray) -> IntArray:
        """Return the tiles of all output elements from those of all numbered elements."""
        every = np.concatenate([on, np.arange(memory_of(self.graph).tiles)])
        return _flat(output_tiles(self.graph, self.op, [every[numbers] for numbers in self.inputs]))


@dataclass(frozen=True, eq=False)
class Traced:
    """A graph as a problem on tiles.

    Parameters
    ----------
    problem
        Its elements.  ``unit * (constant + value)`` is the score of what it is worth.
    blocks
        The barriers with hooks, in the graph's order.
    fine
        The graph, with an element for each grain.
    first
        The first number of each sink of that graph.
    loose
        The kind of each element that no pair and no hook looks at, by number.
    """

    problem: OnTiles
    constant: int
    unit: Fraction
    blocks: list[Block]
    fine: Grained
    first: dict[int, int]
    loose: dict[int, int]

    def worth(self, value: int) -> Decimal:
        """Return a value of the problem as a score of the graph."""
        return to_decimal(self.constant + value, self.unit)

    def layouts(self, on: IntArray, loose: IntArray) -> Layouts:
        """Return the layouts of the graph's sinks.

        Parameters
        ----------
        on
            Shape ``(nodes,)``: the tile of each element.
        loose
            Shape ``(kinds, tiles)``: how many loose elements of each kind are on each tile;
            without kinds they are where the linear rule puts them.
        """
        graph, on = self.fine.graph, on.copy()
        tiles: list[Iterator[int]] = [
            iter(np.repeat(np.arange(row.size), row).tolist()) for row in loose
        ]
        found: Layouts = {}
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
    found = boxes(np.zeros(len(tiles), np.int64), tiles)
    return tuple((TILE, box.start, box.to, box.loops) for box in found)


def traced(graph: Store) -> Traced:
    """Return the problem of a graph with a tile memory whose barriers have hooks.

    Raises
    ------
    InputError
        If a rule or mapping does not fit, or a hook's reads are wrong.
    """
    fine = grained(graph)
    numbered, first, free = _roots(fine.graph, graph)
    wanted = {t for pair in fine.graph.pairs for t in pair[:2]}
    wanted |= {t for i in hooked(fine.graph) for t in fine.graph.op_inputs[i]}
    arrays = {t: x.reshape(-1) for t, x in flow(fine.graph, numbered, sorted(wanted)).items()}
    blocks = [_block(fine.graph, i, arrays, free) for i in hooked(fine.graph)]
    values, unit = to_integers([value for _, _, value in fine.graph.pairs])
    constant = 0
    edges: Table = {}
    rewards: Table = {}
    for (a, b, _), value in zip(fine.graph.pairs, values, strict=True):
        for u, v in np.sort(np.stack([arrays[a], arrays[b]], axis=1), axis=1).tolist():
            if u == v:
                constant += value
            elif v < free:
                edges[u, v] = edges.get((u, v), 0) + value
            elif u < free:
                rewards[u, v - free] = rewards.get((u, v - free), 0) + value
    seen = np.zeros(free, bool)
    for end in (*edges, *((u, u) for u, _ in rewards)):
        seen[list(end)] = True
    for block in blocks:
        seen[block.conditions] = seen[block.outputs] = True
    return _traced(fine, first, seen, blocks, (constant, unit, edges, rewards))


def _roots(graph: Store, coarse: Store) -> tuple[dict[int, Array], dict[int, int], int]:
    """Return the numbers of root tensors' elements, the first of each sink, and how many.

    Parameters
    ----------
    coarse
        The graph with grains, which rules may depend on.
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
    for t, producer in enumerate(graph.producers):
        if graph.ops[producer].kind is not Kind.VIEW and t not in arrays:
            tiles = root_tiles(coarse, coarse.number(graph.tensor_name(t))).tiles()
            arrays[t] = (free + tiles).reshape(graph.shapes[t])
    return arrays, {t: first[t] for t in sinks}, free


def _block(graph: Store, i: int, arrays: dict[int, Array], free: int) -> Block:
    inputs = [arrays[t] for t in graph.op_inputs[i]]
    every = _flat(inputs)
    deciding = reads(graph, i)
    own = None
    if deciding is not None:
        own = [_free(every[elements], free) for output in deciding for elements in output]
    outputs = _flat([arrays[t] for t in graph.op_outputs[i]])
    return Block(graph, i, inputs, outputs, _free(every, free), own)


def _flat(arrays: Sequence[Array]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *(x.reshape(-1) for x in arrays)])


def _free(numbers: IntArray, free: int) -> IntArray:
    return unique(numbers[numbers < free])


def _traced(
    fine: Grained,
    first: dict[int, int],
    seen: Array,
    blocks: list[Block],
    earned: tuple[int, Fraction, Table, Table],
) -> Traced:
    """Put a problem together, loose elements aside."""
    graph, memory = fine.graph, memory_of(fine.graph)
    width = np.zeros(len(seen), np.int64)
    for t, start in first.items():
        width[start : start + size(graph.shapes[t])] = memory.bytes_of(graph.tensor_name(t))
    room = None if width.sum() <= memory.bytes_per_tile else memory.bytes_per_tile
    widths, kind = np.unique(width[~seen], return_inverse=True)
    loose = dict(zip(np.flatnonzero(~seen).tolist(), kind.reshape(-1).tolist(), strict=True))
    counts = np.bincount(kind.reshape(-1), minlength=len(widths))
    constant, unit, edges, rewards = earned
    # Loose elements keep their numbers, but nothing ties them to a tile.
    tied = np.where(seen, width, 0)
    kinds = list(zip(widths.tolist(), counts.tolist(), strict=True))
    nonzero = [{k: w for k, w in table.items() if w} for table in (edges, rewards)]
    problem = OnTiles(len(seen), memory.tiles, nonzero[0], nonzero[1], tied, kinds, room)
    return Traced(problem, constant, unit, blocks, fine, first, loose)
