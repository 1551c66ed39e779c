"""Optima on other machines, and the smallest machine that suffices.

All of this is answered by counts of copies of each class, which
:mod:`layoutopt.network.capacity` takes one by one.  :func:`~layoutopt.unwinding.unwind` writes
large graphs' layouts out from cells, which stand for many copies at once, and may then earn a
little less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from layoutopt.base.errors import InputError
from layoutopt.base.limits import Progress, callbacks_raise, interruptible, limited
from layoutopt.base.numbers import exact_decimal, least, to_decimal
from layoutopt.base.result import Piece, Result, Status, UnwindingResult
from layoutopt.check.elements import evaluate, held, sink_bytes
from layoutopt.graphs.builder import listed
from layoutopt.graphs.locations import check_graph, layouts_in
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import memory_of
from layoutopt.lowering.lower import Lowered
from layoutopt.machine.capacitated import counts_problem
from layoutopt.network.capacity.answer import CapacityAnswer
from layoutopt.network.capacity.solve import smallest_capacity, solve_capacity, sweep
from layoutopt.tiles.memory import MOST


@dataclass(frozen=True)
class TilePrice:
    """Shadow price of the bytes of one tile.

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
    """Cost of the bytes of one sink.

    Parameters
    ----------
    sink
        The sink's name.
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
                raise InputError(f"{tile!r} is not a tile; tiles are 0 to {len(prices) - 1}")
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
    given = layouts_in(graph, layouts, "layouts", arrays=False)
    checked = evaluate(graph, given)
    if checked.violations or checked.score is None:
        raise InputError(next(iter(checked.violations), "the layouts have no score"))
    answer = None
    with callbacks_raise(limits), interruptible(limits), suppress(TimeoutError):
        lowered, problem, told = counts_problem(graph, limits)
        answer = solve_capacity(problem, told)
    if answer is None or answer.dual is None:
        grain = 1 if answer is None else answer.grain
        return ShadowPrices(checked.score, None, (), (), grain, memory.bytes_per_tile)
    prices = [price * lowered.unit for price in answer.prices]
    used, sinks = [0] * memory.tiles, []
    for sink, own in held(graph, given):
        cost = Fraction(0)
        for tile in own.nonzero()[0].tolist():
            used[tile] += int(own[tile])
            cost += prices[tile] * int(own[tile])
        sinks.append(SinkCost(sink.name, int(own.sum()), cost))
    tiles = [TilePrice(*each) for each in zip(range(memory.tiles), prices, used, strict=True)]
    return ShadowPrices(
        checked.score,
        lowered.unit * (lowered.constant + answer.dual),
        tuple(sorted(tiles, key=lambda entry: -entry.price)),
        tuple(sorted(sinks, key=lambda entry: -entry.cost)),
        answer.grain,
        memory.bytes_per_tile,
    )


@dataclass(frozen=True)
class CapacityPoint:
    """Optimum on a machine whose tiles hold so many bytes.

    Parameters
    ----------
    bytes_per_tile
        Capacity of each tile.
    score, bound
        The best score found, and a proved bound on every score; ``None`` while unknown.
    status
        ``infeasible`` where it is proved that the sinks do not fit.
    """

    bytes_per_tile: int
    score: Decimal | None
    bound: Decimal | None
    status: Status


@dataclass(frozen=True)
class SmallestMachine:
    """Bytes per tile that the unconstrained optimum needs, all tiles being equal.

    Parameters
    ----------
    low
        With fewer bytes per tile, less is earned, or the sinks do not fit.
    high
        With so many, as much is earned as without limit; ``None`` if that is not known.
    """

    low: int
    high: int | None

    @property
    def proved(self) -> bool:
        """Whether both are the same."""
        return self.low == self.high


def capacity_sweep(
    graph: GraphStore,
    scales: Sequence[float | Decimal] | None = None,
    *,
    bytes_per_tile: Sequence[int] | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[CapacityPoint, ...]:
    """Return what can be earned on machines with more or fewer bytes per tile.

    Sources stay where they are on the graph's own machine, also if a rule of a user looks at the
    capacity.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    scales, bytes_per_tile
        One of both: factors of the machine's own bytes per tile, rounded down, or bytes.
    time_limit
        Seconds for all together, shared out evenly; none by default.
    seed, workers, progress
        As for :func:`~layoutopt.unwinding.unwind`.

    Returns
    -------
    tuple
        A point for each capacity, ascending, equal ones once.  Neither scores nor bounds ever
        fall from one to the next.

    Raises
    ------
    InputError
        If there is no tile memory, a capacity is not in 1 to 2^40, or a barrier has a hook that
        is no view.
    SizeError
        If the graph is too irregular to be solved by classes, and too large for memory.
    """
    check_graph(graph)
    limits = limited(time_limit, seed=seed, workers=workers, progress=progress)
    wanted = capacities(graph, scales, bytes_per_tile)
    results = [Result() for _ in wanted]
    with callbacks_raise(limits), interruptible(limits), suppress(TimeoutError):
        lowered, problem, told = counts_problem(graph, limits)
        results = [_in_values(lowered, answer) for answer in sweep(problem, wanted, told)]
    return nested(wanted, results)


def smallest_machine(
    graph: GraphStore,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> SmallestMachine:
    """Return the fewest bytes per tile with which as much is earned as without limit.

    Parameters
    ----------
    graph
        A graph with a tile memory, whose own bytes per tile play no part.
    time_limit, seed, workers, progress
        As for :func:`~layoutopt.unwinding.unwind`.

    Raises
    ------
    InputError
        If there is no tile memory, or a barrier has a hook that is no view.
    SizeError
        If the graph is too irregular to be solved by classes, and too large for memory.
    """
    check_graph(graph)
    limits = limited(time_limit, seed=seed, workers=workers, progress=progress)
    with callbacks_raise(limits), interruptible(limits), suppress(TimeoutError):
        _, problem, told = counts_problem(graph, limits)
        return SmallestMachine(*smallest_capacity(problem, told))
    need = sum(sink_bytes(graph).values())
    return SmallestMachine(-(-need // memory_of(graph).tiles), None)


def _in_values(lowered: Lowered, answer: CapacityAnswer) -> Result:
    """Return an answer's numbers in the graph's values."""
    score, bound = (
        None if x is None else to_decimal(lowered.constant + x, lowered.unit)
        for x in (answer.objective, answer.bound)
    )
    return Result(objective=score, bound=bound, infeasible=str(answer.infeasible or ""))


def nested(capacities: Sequence[int], results: Sequence[Result]) -> tuple[CapacityPoint, ...]:
    """Return points; what fits a machine fits a larger one, and bounds hold for smaller ones."""
    points: list[CapacityPoint] = []
    for n, size in enumerate(capacities):
        scores = [Decimal(x.objective) for x in results[: n + 1] if x.objective is not None]
        bounds = [Decimal(x.bound) for x in results[n:] if x.bound is not None]
        why = next((x.infeasible for x in results[n:] if x.infeasible), "")
        score, bound = max(scores, default=None), None if why else min(bounds, default=None)
        status = Result(objective=score, bound=bound, infeasible=why).status
        points.append(CapacityPoint(size, score, bound, status))
    return tuple(points)


def capacities(
    graph: GraphStore, scales: Sequence[float | Decimal] | None, given: Sequence[int] | None = None
) -> list[int]:
    """Return bytes per tile, ascending, equal ones once; see :func:`capacity_sweep`."""
    own = memory_of(graph).bytes_per_tile
    if (scales is None) == (given is None):
        raise InputError("capacity_sweep needs either scales or bytes_per_tile")
    found = []
    for scale in listed("scales", () if scales is None else scales):
        size = math.floor(Fraction(exact_decimal(scale)) * own)
        if not 1 <= size <= MOST:
            allowed = f"1 to 2^{MOST.bit_length() - 1} is allowed"
            raise InputError(f"scale {scale}: makes {size:,} bytes per tile, {allowed}")
        found.append(size)
    sizes = listed("bytes_per_tile", () if given is None else given)
    found += [least("bytes_per_tile", value, most=MOST) for value in sizes]
    return sorted(set(found))
