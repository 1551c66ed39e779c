"""``layoutopt solve``: the best layouts of one graph, with a proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import exact, number, ratio, seconds
from layoutopt.cli import options
from layoutopt.cli.progress import both, shown
from layoutopt.cli.streams import (
    all_done,
    command_line,
    note,
    reserved_stdout,
    say,
    table,
    write_out,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutopt.base.limits import Trace
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.whatif import CapacityPoint, ShadowPrices, SmallestMachine

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
    """Requests beside a solution.

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
    """Options of a computation; a time limit counts from the command's begin."""

    time_limit: float | None
    seed: int
    workers: int
    overwrite: bool
    quiet: bool

    @property
    def left(self) -> float | None:
        """Seconds left, without end if there is no limit."""
        return options.left(self.time_limit)


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
    if wanted and graph.tile_memory is None:
        raise InputError(f"{_option(wanted)} needs a tile memory; --tiles PRESET|FILE gives one")
    if wanted.scales:
        from layoutopt.machine.whatif import capacities

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
    from layoutopt.machine.whatif import capacity_sweep, shadow_prices, smallest_machine

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
                _write_sweep(points, wanted.csv, how.overwrite)
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
    from layoutopt.base.numbers import exact_decimal

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


def _write_sweep(points: Sequence[CapacityPoint], path: Path, overwrite: bool) -> None:
    rows = ["bytes_per_tile,score,bound,status"]
    for p in points:
        score, bound = ("" if x is None else f"{x:f}" for x in (p.score, p.bound))
        rows.append(f"{p.bytes_per_tile},{score},{bound},{p.status}")
    write_out(("\n".join(rows) + "\n").encode(), path, overwrite)


PAIRS_SHOWN = 12


def command(
    instance: options.InstancePath,
    solver: options.Solver = "auto",
    fixed: options.Fixed = None,
    start: options.Start = None,
    time_limit: options.TimeLimit = None,
    memory_limit: options.MemoryLimit = None,
    gap: options.Gap = 0.0,
    seed: options.Seed = 0,
    workers: options.Workers = 1,
    json: options.Json = None,
    html: options.Html = None,
    certificate: options.Certificate = None,
    overwrite: options.Overwrite = False,
    attractions: options.Attractions = None,
    dim: options.Dim = None,
    training: options.Training = None,
    tiles: options.Tiles = None,
    barriers: options.Barriers = None,
    capacity_sweep: Sweep = None,
    sweep_csv: SweepCsv = None,
    prices: Prices = False,
    no_seconds: options.NoSeconds = False,
    quiet: options.Quiet = False,
) -> int:
    """Find the best layouts of a graph's inputs, and prove it."""
    how = How(time_limit, seed, workers, overwrite, quiet)
    options.check_limits(time_limit, gap, workers)
    options.limit_memory(memory_limit)
    targets = {"--json": json, "--html": html, "--certificate": certificate}
    targets["--sweep-csv"] = sweep_csv
    options.check_targets(targets, overwrite)
    from layoutopt.base.limits import Trace
    from layoutopt.unwinding import unwind

    wanted = wish(capacity_sweep, sweep_csv, prices, fixed)
    graph, spent = options.load(instance, attractions, dim, training, tiles, how.left, quiet)
    check_machine(wanted, graph)
    kept, begun = (options.layouts(path, graph, barriers) for path in (fixed, start))
    asked: dict[str, Any] = {"fixed": kept, "start": begun, "barriers": barriers}
    asked |= {"time_limit": how.left, "gap": gap, "seed": seed, "workers": workers}
    trace = Trace()
    with shown(quiet) as tell, reserved_stdout():
        asked["progress"] = tell if html is None else both(trace, tell)
        result = unwind(graph, solver, certificate=certificate is not None, **asked)
    result = replace(result, seconds={} if no_seconds else _times(result, spent))
    with all_done() as attempt:
        with attempt():
            _answer(result, trace, targets, how)
        readable = not quiet and "-" not in map(str, targets.values())
        answer(wanted, result, readable, how)
    if result.infeasible:
        note(f"layoutopt: {instance}: infeasible: {result.infeasible}")
    return exit_code(result)


def _answer(
    result: UnwindingResult, trace: Trace, targets: dict[str, Path | None], how: How
) -> None:
    """Write a result wherever it is asked for, and print its summary."""
    certificate = targets["--certificate"]
    with all_done() as attempt:
        with attempt():
            _write(result, trace, targets["--json"], targets["--html"], how.overwrite)
        if certificate is not None:
            with attempt():
                _certify(result, certificate, how.overwrite)
        if not how.quiet and "-" not in map(str, targets.values()):
            say(summary(result))


def _times(result: UnwindingResult, read: float) -> dict[str, float]:
    """Return seconds by phase, reading among them, and those of the whole command so far."""
    times = {"read": read} | result.seconds
    return times | {"total": options.spent()}


def exit_code(result: UnwindingResult) -> int:
    """Return 0 with a solution, 3 with a proof that there is none, and 4 with neither."""
    if result.layouts is not None:
        return 0
    return 3 if result.infeasible else 4


def _write(
    result: UnwindingResult, trace: Trace, json: Path | None, html: Path | None, overwrite: bool
) -> None:
    """Write a result where it is asked for: for programs, and as a page."""

    def page() -> bytes:
        from layoutopt.base.result import Stopped
        from layoutopt.report.result import WHY_SECONDS, report_html

        total = result.seconds.get("total")  # without times, what takes as long as there is time
        points = () if total is None else trace.points(total, result)  # is left out, too
        hurried = total is None or result.stopped is Stopped.INTERRUPTED
        why = 0.0 if hurried else WHY_SECONDS
        return report_html(result, points, command_line(), why_seconds=why).encode()

    with all_done() as attempt:
        if json is not None:
            from layoutopt.io.result import result_bytes

            with attempt():
                write_out(result_bytes(result), json, overwrite)
        if html is not None:
            write_out(page(), html, overwrite)


def _certify(result: UnwindingResult, path: Path, overwrite: bool) -> None:
    """Write a result's certificate, or say why there is none."""
    from layoutopt.io.certificate import certificate_bytes

    if result.certificate is None:
        note(f"layoutopt: {path}: no certificate is written: {result.uncertified}")
        return
    write_out(certificate_bytes(result.certificate), path, overwrite)
    proved = Fraction(result.certificate["bound"])
    found = proved if result.bound is None else Fraction(result.bound)
    if proved > found:
        note(
            f"layoutopt: {path}: proves a bound of {exact(proved)} only; "
            f"the search's, {exact(found)}, is not certified"
        )


def summary(result: UnwindingResult) -> str:
    """Return what people want to know of a result."""
    size = {name: f"{count:,}" for name, count in result.size.items()}
    name = printable(result.instance or "unnamed")
    lines = [
        f"{name}: {size['tensors']} tensors, {size['elements']} elements "
        f"({size['free_elements']} free), {size['edges']} pair positions",
        table(_verdict(result)),
    ]
    if result.pairs:
        lines += ["", table(_pairs(result), left=2)]
    if len(result.pairs) > PAIRS_SHOWN:
        lines.append(f"  ... and {len(result.pairs) - PAIRS_SHOWN} more pairs")
    return "\n".join(lines)


def _verdict(result: UnwindingResult) -> list[list[str]]:
    why = "" if result.stopped == "finished" else f" ({result.stopped})"
    given = result.size.get("given", 0)
    why += f" with {given:,} elements given" if given else ""
    rows = [
        ["status", f"{result.status}{why}"],
        ["score", number(result.score)],
        ["bound", number(result.bound)],
        ["gap", ratio(result.gap, result.score)],
        ["if all matched", number(result.max_score)],
        ["seconds", seconds(result.seconds.get("total"))],
    ]
    width = max(len(value) for _, value in rows)
    return [[name, value.ljust(width)] for name, value in rows]


def _pairs(result: UnwindingResult) -> list[list[str]]:
    """Return a table of the pairs, those first that lose most."""
    order = sorted(result.pairs, key=lambda p: p.loss.copy_negate())
    rows = [["pair", "", "value", "matched", "of", "loses"]]
    for p in order[:PAIRS_SHOWN]:
        counts = [f"{p.matched:,}", f"{p.elements:,}"]
        rows.append([p.a, p.b, number(p.value), *counts, number(p.loss)])
    return rows
