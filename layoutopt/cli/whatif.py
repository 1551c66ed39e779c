"""What ``layoutopt solve`` tells of capacity: scores on other machines, and prices of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from layoutopt.cli import clock
from layoutopt.cli.progress import shown
from layoutopt.cli.streams import all_done, reserved_stdout, say, write_out
from layoutopt.cli.text import number, ratio, table
from layoutopt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.prices import ShadowPrices
    from layoutopt.machine.whatif import CapacityPoint, SmallestMachine
    from layoutopt.result import UnwindingResult

SHOWN = 12
"""Length of a table of prices."""

Sweep = Annotated[
    str | None,
    typer.Option(
        "--capacity-sweep",
        metavar="A,B,...",
        help="On a tile memory, also scores with so many times its bytes per tile.",
    ),
]
SweepCsv = Annotated[
    Path | None,
    typer.Option("--sweep-csv", metavar="FILE", help="Write these scores here; - is stdout."),
]
Prices = Annotated[
    bool,
    typer.Option(
        "--prices", help="On a tile memory, also what bytes of tiles are worth, and sinks cost."
    ),
]


@dataclass(frozen=True)
class Wish:
    """What is asked beside a solution.

    Parameters
    ----------
    scales
        Factors of the machine's capacity, as written; empty without a sweep.
    csv
        Where the scores at these go, if anywhere.
    prices
        Whether prices are asked for.
    """

    scales: tuple[Decimal, ...]
    csv: Path | None
    prices: bool

    def __bool__(self) -> bool:
        return bool(self.scales) or self.prices


@dataclass(frozen=True)
class How:
    """How answers are computed, and who is told; a time limit counts from the command's begin."""

    time_limit: float | None
    seed: int
    workers: int
    overwrite: bool
    quiet: bool

    @property
    def left(self) -> float | None:
        """Seconds left, without end if there is no limit."""
        return clock.left(self.time_limit)


def wish(sweep: str | None, csv: Path | None, prices: bool, fixed: Path | None) -> Wish:
    """Return what options ask for, refused if they do not go together."""
    if csv is not None and sweep is None:
        raise InputError("--sweep-csv FILE is for --capacity-sweep A,B,...")
    found = Wish(() if sweep is None else _scales(sweep), csv, prices)
    if found and fixed is not None:
        raise InputError(f"{_option(found)} does not go with --fixed")
    return found


def check_machine(wanted: Wish, graph: Graph) -> None:
    """Refuse questions about a machine where there is none, or that none can be."""
    from layoutopt.machine.whatif import capacities

    if wanted and graph.tile_memory is None:
        raise InputError(f"{_option(wanted)} needs a tile memory; --tiles PRESET|FILE gives one")
    if wanted.scales:
        capacities(graph, wanted.scales)


def answer(wanted: Wish, result: UnwindingResult, told: bool, how: How) -> None:
    """Print what is asked, and write the file that is asked for.

    Parameters
    ----------
    told
        Whether anybody reads what is printed.
    """
    if not wanted:
        return
    from layoutopt.machine.prices import shadow_prices
    from layoutopt.machine.whatif import capacity_sweep, smallest_machine

    more: dict[str, Any] = {"seed": how.seed, "workers": how.workers}
    graph = result.graph
    with shown(how.quiet) as more["progress"], reserved_stdout():
        prices = points = least = None
        if wanted.prices and told and result.layouts is not None:
            prices = shadow_prices(graph, result, time_limit=how.left, **more)
        if wanted.scales and (told or wanted.csv is not None):
            points = capacity_sweep(graph, wanted.scales, time_limit=how.left, **more)
            least = smallest_machine(graph, time_limit=how.left, **more) if told else None
    lines = [f"\n{prices_text(prices)}"] if wanted.prices and told else []
    if points is not None and least is not None:
        lines += [f"\n{sweep_text(points, graph.tile_memory.bytes_per_tile)}", smallest_text(least)]
    with all_done() as attempt:
        if points is not None and wanted.csv is not None:
            with attempt():
                _write(points, wanted.csv, how.overwrite)
        if lines:
            say("\n".join(lines))


def sweep_text(points: Sequence[CapacityPoint], own: int) -> str:
    """Return a table of scores by capacity.

    Parameters
    ----------
    own
        The machine's own bytes per tile.
    """
    rows = [["bytes per tile", "of own", "score", "bound", "status"]]
    for p in points:
        share = ratio(p.bytes_per_tile / own)
        size = f"{p.bytes_per_tile:,}"
        rows.append([size, share, number(p.score), number(p.bound), str(p.status)])
    return table(rows, left=0)


def smallest_text(found: SmallestMachine) -> str:
    """Return how many bytes per tile the unconstrained optimum needs."""
    if found.high is None:
        return f"  the unconstrained optimum needs {found.low:,} bytes per tile or more"
    if found.proved:
        return f"  the unconstrained optimum needs {found.low:,} bytes per tile"
    return f"  the unconstrained optimum needs {found.low:,} to {found.high:,} bytes per tile"


def prices_text(found: ShadowPrices | None) -> str:
    """Return tables of the dearest tiles and sinks, and what the prices prove."""
    if found is None:
        return "  no prices without layouts"
    if found.bound is None:
        return "  no prices: time ran out"
    dear = [entry for entry in found.tiles if entry.price]
    grain = f"; tiles hold multiples of {found.grain:,} bytes" if found.grain > 1 else ""
    lines = [f"  proved by prices: no score above {number(float(found.bound))}{grain}"]
    if not dear:
        return f"{lines[0]}; no tile's capacity limits the score"
    rows = [["tile", "bytes", "of", "one more is worth at most"]]
    for tile in dear[:SHOWN]:
        used = f"{tile.used:,}", f"{found.capacity:,}"
        rows.append([str(tile.tile), *used, number(float(tile.price))])
    lines += ["", table(rows, left=0)]
    free = len(found.tiles) - len(dear)
    more = f"{len(dear) - SHOWN:,} more tiles, and " if len(dear) > SHOWN else ""
    if more or free:
        lines.append(f"  ... and {more}{free:,} tiles on which bytes are worth nothing")
    costs = [entry for entry in found.sinks if entry.cost]
    rows = [["sink", "bytes", "cost"]]
    rows += [[s.sink, f"{s.bytes:,}", number(float(s.cost))] for s in costs[:SHOWN]]
    lines += ["", table(rows)]
    if len(costs) > SHOWN:
        lines.append(f"  ... and {len(costs) - SHOWN:,} more sinks")
    return "\n".join(lines)


def _scales(text: str) -> tuple[Decimal, ...]:
    from layoutopt.graphs.values import exact_decimal

    try:
        found = tuple(exact_decimal(each.strip()) for each in text.split(","))
    except InputError:
        found = ()
    if not found or min(found) <= 0:
        raise InputError(
            f"--capacity-sweep {text}: must be numbers above 0, as in --capacity-sweep 0.8,1,1.2"
        )
    return found


def _option(wanted: Wish) -> str:
    return "--capacity-sweep" if wanted.scales else "--prices"


def _write(points: Sequence[CapacityPoint], path: Path, overwrite: bool) -> None:
    rows = ["bytes_per_tile,score,bound,status"]
    for p in points:
        score, bound = ("" if x is None else f"{x:f}" for x in (p.score, p.bound))
        rows.append(f"{p.bytes_per_tile},{score},{bound},{p.status}")
    write_out(("\n".join(rows) + "\n").encode(), path, overwrite)
