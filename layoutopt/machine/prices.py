"""What capacity is worth: prices of the bytes of each tile, and the bound that they prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from layoutopt.capacity.solve import solve_capacity
from layoutopt.check.elements import evaluate
from layoutopt.check.occupancy import held
from layoutopt.dense.representatives import Layouts
from layoutopt.errors import InputError
from layoutopt.graphs.layouts import check_graph, given_layouts
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import memory_of
from layoutopt.limits import Progress, interruptible, limited
from layoutopt.machine.capacitated import counted
from layoutopt.pieces import Piece
from layoutopt.result import UnwindingResult


@dataclass(frozen=True)
class TilePrice:
    """What bytes of one tile are worth.

    Parameters
    ----------
    tile
        The tile's number.
    price
        What one more byte there can be worth at most; see :class:`ShadowPrices`.
    used
        Bytes of sinks there.
    """

    tile: int
    price: Fraction
    used: int


@dataclass(frozen=True)
class SinkCost:
    """What the bytes of one sink cost.

    Parameters
    ----------
    sink
        The sink's name.
    bytes
        Its bytes.
    cost
        The sum over its bytes of the price of the tile that each is on.
    """

    sink: str
    bytes: int
    cost: Fraction


@dataclass(frozen=True, eq=False)
class ShadowPrices:
    """Prices per byte of tiles, and the bound that they prove.

    With prices ``p[t]`` of 0 or more no layouts are worth more than::

        bound = sum_t p[t] * capacity[t] + sum over copies of max_k (value(k) - price of k's bytes)

    over the configurations ``k`` of each copy, which is Lagrangian duality.  The second sum does
    not depend on capacities; so where each tile ``t`` holds ``more[t]`` further bytes, no score is
    above ``bound + sum_t p[t] * more[t]``.

    Parameters
    ----------
    score
        What the given layouts are worth.
    bound
        What the prices prove; ``None``, and no tiles and sinks, if time ran out too early.  As
        prices are per byte, it may lie above the best bound that a search proves.
    tiles
        All tiles, the dearest first.
    sinks
        All sinks, the dearest first.
    grain
        Tiles hold whole multiples of so many bytes, the greatest common divisor of all that must
        stay together; fewer bytes more are worth nothing.
    capacity
        Bytes that each tile holds.
    """

    score: Decimal
    bound: Fraction | None
    tiles: tuple[TilePrice, ...]
    sinks: tuple[SinkCost, ...]
    grain: int
    capacity: int

    def bound_at(self, more: Mapping[int, int]) -> Fraction | None:
        """Return what no score is above if some tiles hold more bytes, or fewer.

        Parameters
        ----------
        more
            Further bytes by tile, below 0 for fewer.

        Raises
        ------
        InputError
            If a tile is none of the machine's.
        """
        if self.bound is None:
            return None
        prices = {entry.tile: entry.price for entry in self.tiles}
        total = self.bound
        for tile, count in more.items():
            if tile not in prices:
                raise InputError(f"{tile!r} is none of the tiles 0 to {len(prices) - 1}")
            whole = (self.capacity + count) // self.grain - self.capacity // self.grain
            total += prices[tile] * whole * self.grain
        return total


def shadow_prices(
    graph: GraphStore,
    layouts: Mapping[str, Sequence[Piece]] | UnwindingResult,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> ShadowPrices:
    """Return what a byte of each tile is worth, and what the bytes of each sink cost.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    layouts
        Pieces by sink, or a result, such as :func:`~layoutopt.unwinding.unwind` gives: they say on
        which tiles the bytes of sinks are.
    time_limit, seed, workers, progress
        As for :func:`~layoutopt.unwinding.unwind`.

    Raises
    ------
    InputError
        If there is no tile memory, there are no layouts, they break a rule, or a barrier has a
        hook that is no view.
    SizeError
        If the graph is too irregular to be solved by classes, and too large for memory.
    """
    check_graph(graph)
    limits = limited(time_limit, seed=seed, workers=workers, progress=progress)
    memory = memory_of(graph)
    given = given_layouts(graph, layouts)
    checked = evaluate(graph, given)
    if checked.violations or checked.score is None:
        raise InputError(next(iter(checked.violations), "the layouts have no score"))
    with interruptible(limits):
        try:
            lowered, problem, told = counted(graph, limits)
            answer = solve_capacity(problem, told)
        except TimeoutError:
            return ShadowPrices(checked.score, None, (), (), 1, memory.bytes_per_tile)
    if answer.dual is None:
        return ShadowPrices(checked.score, None, (), (), answer.grain, memory.bytes_per_tile)
    prices = [price * lowered.unit for price in answer.prices]
    used, sinks = _costs(graph, given, prices)
    tiles = [TilePrice(*each) for each in zip(range(memory.tiles), prices, used, strict=True)]
    return ShadowPrices(
        checked.score,
        lowered.unit * (lowered.constant + answer.dual),
        tuple(sorted(tiles, key=lambda entry: -entry.price)),
        tuple(sorted(sinks, key=lambda entry: -entry.cost)),
        answer.grain,
        memory.bytes_per_tile,
    )


def _costs(
    graph: GraphStore, layouts: Layouts, prices: Sequence[Fraction]
) -> tuple[list[int], list[SinkCost]]:
    """Return the bytes on each tile, and what those of each sink cost."""
    used, sinks = [0] * len(prices), []
    for sink, own in held(graph, layouts):
        cost = Fraction(0)
        for tile in own.nonzero()[0].tolist():
            used[tile] += int(own[tile])
            cost += prices[tile] * int(own[tile])
        sinks.append(SinkCost(sink.name, int(own.sum()), cost))
    return used, sinks
