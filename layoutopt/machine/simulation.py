"""Costs of layouts on a machine: bytes on each tile, exchanged bytes, and cycles.

Formulas are in the docstring of :func:`simulate`, and in ``docs/tiles.md`` with an example.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, TypeVar

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import counted, exact_decimal, ratio
from layoutopt.base.result import Piece, UnwindingResult
from layoutopt.base.table import Part, Shown, Table
from layoutopt.check.elements import Spread, spread, uncovered
from layoutopt.graphs.locations import check_graph, layouts_in
from layoutopt.graphs.ops import Kind, SumLike, SumLikeReduce, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import memory_of, require_countable
from layoutopt.pictures.svg import Picture
from layoutopt.pictures.tiles import WAYS, TileShares, tile_grid
from layoutopt.tiles.blocks import Array
from layoutopt.tiles.counting import Counts, summed
from layoutopt.tiles.memory import DEFAULT_EXCHANGE, TileMemory

AnyGraph = TypeVar("AnyGraph", bound=GraphStore)


def cycle_values(graph: AnyGraph, memory: TileMemory | None = None) -> AnyGraph:
    """Return a copy of a graph whose values are the cycles that a mismatch costs.

    Every positive value becomes ``element_bytes / exchange_bytes_per_cycle``, in cycles per
    element: that long a tile sends, or receives, an element of the tensor that moves (see
    :func:`moving` and :func:`bytes_of`).  What a tile can exchange in a cycle is 4 bytes where
    the machine does not say it.  Values of zero and below stay as they are: such pairs cost
    nothing where they differ.

    Parameters
    ----------
    graph
        The graph.
    memory
        The machine, which the copy gets; by default the graph's own.

    Raises
    ------
    InputError
        If there is no machine, or the cycles of an element are no finite decimal.

    Examples
    --------
    >>> from layoutopt import Graph
    >>> from layoutopt.tiles.memory import TileMemory
    >>> graph = Graph()
    >>> pair = graph.valued_pair(graph.sink((8,)), graph.source((8,)), 100)
    >>> machine = TileMemory(16, 1024, {"default": 2}, exchange_bytes_per_cycle=8)
    >>> cycle_values(graph, machine).valued_pairs()[0].value
    Decimal('0.25')
    """
    found = on_machine(graph, memory)
    rate = exchange_rate(memory_of(found))
    for p, (a, b, value) in enumerate(graph.pairs):
        if value > 0:
            width = bytes_of(found, moving(found, a, b))
            try:
                found.pairs[p] = a, b, exact_decimal(Fraction(width, rate))
            except InputError:
                raise InputError(
                    f"{width} bytes at {rate} bytes per cycle are no finite decimal number of "
                    "cycles; exchange_bytes_per_cycle must divide a power of ten times "
                    "element_bytes"
                ) from None
    return found


def on_machine(graph: AnyGraph, memory: TileMemory | None) -> AnyGraph:
    """Return a copy of a graph with another tile memory, or with its own."""
    check_graph(graph)
    found = deepcopy(graph)
    if memory is not None:
        found.tile_memory = memory
    memory_of(found)
    return found


def exchange_rate(memory: TileMemory) -> int:
    """Return how many bytes a tile receives, and sends, in a cycle; 4 where nothing says it."""
    return memory.exchange_bytes_per_cycle or DEFAULT_EXCHANGE


def bytes_of(graph: GraphStore, t: int) -> int:
    """Return the bytes of an element of a tensor of a graph with a tile memory.

    They are what ``element_bytes`` says of its name; of a view that it does not name, those of
    the first tensor whose elements the view carries on; of all others the default.
    """
    memory = memory_of(graph)
    while graph.tensor_name(t) not in memory.element_bytes:
        producer = graph.producers[t]
        if graph.ops[producer].kind is not Kind.VIEW:
            break
        t = graph.carriers(producer)[0]
    return memory.bytes_of(graph.tensor_name(t))


def moving(graph: GraphStore, a: int, b: int) -> int:
    """Return which tensor of a pair comes to where the other lies, by number.

    If one of the two is a source, a target, it is the other; else the one that stands first in
    the graph.
    """
    first, second = sorted((a, b))
    targets = [graph.op_of(t).kind is Kind.SOURCE for t in (first, second)]
    return second if targets == [True, False] else first


@dataclass(frozen=True)
class PairExchange:
    """Bytes that move because of a ValuedPair, which is counted with an op.

    Of its elements, ``apart`` are where its tensors are on different tiles.  Bytes are ``apart``
    times those of an element of the tensor that moves; 0 if the pair's value is not positive.
    """

    a: str
    b: str
    op: str
    elements: int
    apart: int
    bytes: int


@dataclass(frozen=True)
class Phase:
    """An exchange: the bytes of all pairs that are counted with one op, at the same time.

    ``tile``, the first of several, receives or sends most; divided by the bytes that a tile
    exchanges in a cycle, rounded up, these are the cycles.
    """

    op: str
    bytes: int
    tile: int
    most: int
    cycles: int


Parts: TypeAlias = dict[int, list[Counts]]
"""Bytes by tile in parts, by op."""


def _exchanged(graph: GraphStore, where: Spread) -> tuple[list[PairExchange], Parts, Parts]:
    """Return what each pair moves, and what tiles receive and send."""
    received: Parts = defaultdict(list)
    sent: Parts = defaultdict(list)
    found: list[PairExchange] = []
    readers: dict[int, set[int]] = defaultdict(set)
    for i in range(len(graph.ops)):
        for t in graph.op_inputs[i] if computes(graph, i) else ():
            readers[t].add(i)
    for a, b, value in graph.pairs:
        op, count = _served(graph, readers, a, b), size(graph.shapes[a])
        tiles, often = where.both(a, b)
        apart = count - int(often.sum())
        moves = moving(graph, a, b)
        width = bytes_of(graph, moves) if value > 0 else 0
        if apart and width:
            stays = a if moves == b else b
            for ends, t in ((sent, moves), (received, stays)):
                there, numbers = summed([where.each(t), (tiles, -often)])
                ends[op].append((there, numbers * width))
        names = graph.tensor_name(a), graph.tensor_name(b), graph.ops[op].id
        found.append(PairExchange(*names, count, apart, apart * width))
    return found, received, sent


def _served(graph: GraphStore, readers: Mapping[int, set[int]], a: int, b: int) -> int:
    """Return the op that a pair is counted with; :func:`simulate` tells the rule."""
    mine, other = readers.get(a, set()), readers.get(b, set())
    makes, made = graph.producers[a], graph.producers[b]
    later = max(makes, made)
    found = (mine & other) | (mine & {made}) | (other & {makes}) or mine | other
    before = [i for i in found if i <= later]
    return max(before) if before else min(found, default=later)


def _phase(graph: GraphStore, op: int, received: list[Counts], sent: list[Counts]) -> Phase:
    ends = [summed(received), summed(sent)]
    most = max(int(numbers.max()) for _, numbers in ends)
    tile = min(int(tiles[numbers == most].min(initial=2**62)) for tiles, numbers in ends)
    cycles = -(-most // exchange_rate(memory_of(graph)))
    return Phase(graph.ops[op].id, int(ends[0][1].sum()), tile, most, cycles)


def computes(graph: GraphStore, op: int) -> bool:
    """Return whether an op, by number, reads its operands: views and reduces of sums do not."""
    if isinstance(graph.ops[op], SumLike):
        return True
    return graph.ops[op].kind is not Kind.VIEW and not isinstance(graph.ops[op], SumLikeReduce)


TOLD = 5
"""How many tiles are told by number."""

NAMED = 3
"""How many tensors of a tile are told by name."""

SHOWN = 8
"""Length of a table in a notebook."""


@dataclass(frozen=True, eq=False)
class Simulation(Shown):
    """Costs of layouts on a machine; see :func:`simulate`.

    Parameters
    ----------
    memory
        The machine.
    always
        Shape ``(tiles,)``: bytes of sinks, which stay on each tile.
    peak
        Shape ``(tiles,)``: the most bytes that are ever on each tile.
    received, sent
        Shape ``(tiles,)``: bytes that each tile receives and sends in all phases together.
    pairs
        What moves because of each ValuedPair, in the graph's order.
    phases
        The exchanges that move anything, in the order of ops.
    shares
        Which sinks weigh most on each tile.
    """

    memory: TileMemory
    always: Array
    peak: Array
    received: Array
    sent: Array
    pairs: tuple[PairExchange, ...]
    phases: tuple[Phase, ...]
    shares: TileShares = field(repr=False)

    @property
    def bytes(self) -> int:
        """Bytes that are exchanged in all."""
        return sum(phase.bytes for phase in self.phases)

    @property
    def cycles(self) -> int:
        """Cycles of all phases, one after the other."""
        return sum(phase.cycles for phase in self.phases)

    def fullest(self, count: int = TOLD) -> list[tuple[int, int]]:
        """Return tiles with the bytes that always stay there, most first."""
        return _largest(self.always, count)

    def busiest(self, count: int = TOLD) -> list[tuple[int, int]]:
        """Return tiles with the bytes that they receive and send in all, most first."""
        return _largest(self.received + self.sent, count)

    def draw(self, by: str = "bytes") -> Picture:
        """Draw the tiles as a grid; the pointer tells number, bytes and heaviest tensors.

        Parameters
        ----------
        by
            ``"bytes"``: a tile is the darker the more bytes always stay there.  ``"tensor"``:
            its colour is that of the sink that has most bytes there.

        Raises
        ------
        InputError
            If it is neither.
        """
        if by not in WAYS:
            raise InputError(f"tiles cannot be coloured by {by!r}; allowed: {', '.join(WAYS)}")
        high = self.memory.bytes_per_tile
        return Picture(tile_grid(self.always, self.peak, high, self.shares, by))

    def rows(self) -> list[tuple[str, str]]:
        """Return what people want to know of peaks and exchanges, each with its name."""
        peak = f"at most {self.peak.max():,} bytes at once, on tile {self.peak.argmax()}"
        only = f"only sinks count against the {self.memory.bytes_per_tile:,}"
        moved = counted(self.bytes, "byte"), counted(len(self.phases), "phase")
        return [
            ("peak", f"{peak} (sinks and results of ops; {only})"),
            ("exchanged", " in ".join(moved)),
            ("cycles", f"{self.cycles:,}"),
            ("busiest tiles", _named(self.busiest())),
        ]

    def exchanges(self, most: int) -> Table:
        """Return a table of so many exchanges, the longest first."""
        phases = sorted(self.phases, key=lambda phase: -phase.cycles)[:most]
        head = ["exchange for", "bytes", "most on a tile", "tile", "cycles"]
        rows = [
            [p.op, f"{p.bytes:,}", f"{p.most:,}", f"{p.tile:,}", f"{p.cycles:,}"] for p in phases
        ]
        return Table(head, rows)

    def shown_parts(self) -> Iterator[Part]:
        """Yield its numbers, its longest exchanges, and the tiles."""
        yield Table(["", ""], [*occupancy_rows(self.memory, self.always), *self.rows()], left=2)
        if self.phases:
            yield self.exchanges(SHOWN)
        yield from self.draw().shown_parts()


def simulate(
    graph: GraphStore,
    layouts: Mapping[str, Sequence[Piece]] | UnwindingResult,
    memory: TileMemory | None = None,
) -> Simulation:
    """Tell what layouts mean on a machine: bytes on each tile, exchanges, and cycles.

    *Bytes.*  A sink's elements are on their tiles for the whole program.  What a barrier or
    fixed point makes lies by its hook or the linear rule, from its op on to the last op, in the
    graph's order, that reads it or a view of it.  Views, elementwise sums (``sum_like``, in the
    place of the operand that they follow), sources and ``sum_like_reduce`` take no room.

    *Exchange.*  At each position of a ValuedPair whose two tensors are on different tiles, one
    element moves once: that of the tensor which :func:`moving` names, from its tile to that of
    the other.  Its bytes are those of :func:`bytes_of`.  Pairs of the same tensors each count.
    Values do not matter, but those of zero and below stand for nothing that moves.  What no pair
    says is not counted.

    *Phases.*  A pair is counted with the op that it serves: one that reads both tensors, or
    reads one and makes the other; without such an op one that reads either; without that the
    op that makes the later of both.  Only ops that compute count as readers, no views.  Of
    several it is the last one up to the later tensor, else the first one after it.  All that is
    counted with an op moves at the same time and takes
    ``ceil(max over tiles of max(received, sent) / exchange_bytes_per_cycle)`` cycles; phases
    follow one another.  Computing takes no time here.

    Parameters
    ----------
    graph
        The graph.
    layouts
        Pieces by sink, or a result.
    memory
        The machine; by default the graph's own.

    Raises
    ------
    InputError
        If there is no machine, layouts do not cover the sinks, a rule or hook does not fit, or a
        barrier with a hook waits for itself.
    SizeError
        If a large graph's layouts are too irregular to be counted by pieces.
    """
    placed, found = on_machine(graph, memory), layouts_in(graph, layouts, "layouts", arrays=False)
    if broken := uncovered(placed, found):
        raise InputError(broken[0])
    _check_bytes(placed)
    where = spread(placed, found)
    always, shares = _sinks(placed, where)
    pairs, received, sent = _exchanged(placed, where)
    return Simulation(
        memory_of(placed),
        always,
        _peak(placed, where, always),
        _total(placed, received),
        _total(placed, sent),
        tuple(pairs),
        tuple(_phase(placed, i, received[i], sent[i]) for i in sorted(received)),
        shares,
    )


def tiles_of(memory: TileMemory) -> str:
    """Return how many tiles there are, and of how many bytes."""
    return f"{counted(memory.tiles, 'tile')} of {counted(memory.bytes_per_tile, 'byte')} each"


def occupancy_rows(memory: TileMemory, always: Array) -> list[tuple[str, str]]:
    """Return what people want to know of the bytes on each tile, each with its name."""
    total, most = int(always.sum()), int(always.max())
    over = int((always > memory.bytes_per_tile).sum())
    more = f", more than fits on {over:,} tiles" if over else ""
    share, free = ratio(total / memory.total), memory.total - total
    return [
        ("tiles", tiles_of(memory)),
        ("sinks", f"{total:,} bytes of {memory.total:,} ({share}), {free:,} free"),
        ("on a tile", f"{total / memory.tiles:,.1f} bytes on average, at most {most:,}{more}"),
        ("fullest tiles", _named(_largest(always, TOLD))),
    ]


def _check_bytes(graph: GraphStore) -> None:
    """Refuse tensors and pairs of more bytes than are counted."""
    every = [*range(len(graph.shapes)), *(t for a, b, _ in graph.pairs for t in (a, b))]
    require_countable(sum(size(graph.shapes[t]) * bytes_of(graph, t) for t in every))


def _sinks(graph: GraphStore, where: Spread) -> tuple[Array, TileShares]:
    """Return the bytes of sinks on each tile, and which weigh most there."""
    tiles = memory_of(graph).tiles
    total = np.zeros(tiles, np.int64)
    which, heaviest = np.full((NAMED, tiles), -1), np.zeros((NAMED, tiles), np.int64)
    sinks = graph.sinks()
    for s, sink in enumerate(sinks):
        at, numbers = where.each(sink.index)
        held = numbers * bytes_of(graph, sink.index)
        total[at] += held
        names = np.vstack([which[:, at], np.full(len(at), s)])
        weights = np.vstack([heaviest[:, at], held])
        order = np.argsort(-weights, axis=0, kind="stable")[:NAMED]
        which[:, at] = np.take_along_axis(names, order, 0)
        heaviest[:, at] = np.take_along_axis(weights, order, 0)
    return total, TileShares([sink.name for sink in sinks], which, heaviest)


def _peak(graph: GraphStore, where: Spread, always: Array) -> Array:
    """Return the most bytes that are on each tile at any op."""
    last = _last_readers(graph)
    live, peak = always.copy(), always.copy()
    ends: dict[int, list[Counts]] = defaultdict(list)
    for i, op in enumerate(graph.ops):
        makes = op.kind in (Kind.BARRIER, Kind.FIXED_POINT) and computes(graph, i)
        made = [(t, *where.each(t)) for t in graph.op_outputs[i]] if makes else []
        for t, tiles, numbers in made:
            held = numbers * bytes_of(graph, t)
            live[tiles] += held
            ends[max(i, last.get(t, i))].append((tiles, held))
        for _, tiles, _ in made:
            peak[tiles] = np.maximum(peak[tiles], live[tiles])
        for tiles, held in ends.pop(i, ()):
            live[tiles] -= held
    return peak


def _last_readers(graph: GraphStore) -> dict[int, int]:
    """Return the last op that reads each tensor or a view of it, by numbers; if any does."""
    last: dict[int, int] = {}
    for i in range(len(graph.ops) - 1, -1, -1):
        for t in graph.op_inputs[i] if computes(graph, i) else ():
            last[t] = max(i, last.get(t, i))
        for t in graph.carriers(i):
            for out in graph.op_outputs[i]:
                if out in last:
                    last[t] = max(last[out], last.get(t, i))
    return last


def _total(graph: GraphStore, parts: Parts) -> Array:
    """Return the bytes of all ops on each tile."""
    found = np.zeros(memory_of(graph).tiles, np.int64)
    for tiles, numbers in (part for own in parts.values() for part in own):
        found[tiles] += numbers
    return found


def _largest(numbers: Array, count: int) -> list[tuple[int, int]]:
    order = np.argsort(-numbers, kind="stable")[:count]
    return [(int(tile), int(numbers[tile])) for tile in order if numbers[tile]]


def _named(tiles: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{tile} ({amount:,})" for tile, amount in tiles) or "none"
