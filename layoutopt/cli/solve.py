"""``layoutopt solve``: the best layouts of one graph, with a proof."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from layoutopt.cli import options, whatif
from layoutopt.cli.progress import both, shown
from layoutopt.cli.streams import command_line, reserved_stdout, write_out
from layoutopt.cli.text import number, ratio, table

if TYPE_CHECKING:
    from layoutopt.result import UnwindingResult
    from layoutopt.trace import Trace

PAIRS_SHOWN = 12


def command(
    instance: options.InstancePath,
    solver: options.Solver = "auto",
    fixed: options.Fixed = None,
    start: options.Start = None,
    time_limit: options.TimeLimit = None,
    gap: options.Gap = 0.0,
    seed: options.Seed = 0,
    workers: options.Workers = 1,
    json: options.Json = None,
    html: options.Html = None,
    overwrite: options.Overwrite = False,
    attractions: options.Attractions = None,
    dim: options.Dim = None,
    training: options.Training = None,
    tiles: options.Tiles = None,
    barriers: options.Barriers = None,
    capacity_sweep: whatif.Sweep = None,
    sweep_csv: whatif.SweepCsv = None,
    prices: whatif.Prices = False,
    quiet: options.Quiet = False,
) -> int:
    """Find the best layouts of a graph's inputs, and prove it."""
    from layoutopt.trace import Trace
    from layoutopt.unwinding import unwind

    how = whatif.How(time.monotonic(), time_limit, seed, workers, overwrite, quiet)
    options.check_limits(time_limit, gap, workers)
    options.check_targets({"--json": json, "--html": html, "--sweep-csv": sweep_csv}, overwrite)
    wanted = whatif.wish(capacity_sweep, sweep_csv, prices, fixed)
    kept, begun = options.layouts(fixed), options.layouts(start)
    graph, spent = options.load(instance, attractions, dim, training, tiles)
    whatif.check_machine(wanted, graph)
    left = None if time_limit is None else max(time_limit - spent, 0.0)
    trace = Trace()
    with shown(quiet) as tell, reserved_stdout():
        result = unwind(
            graph,
            solver,
            fixed=kept,
            start=begun,
            barriers=barriers,
            time_limit=left,
            gap=gap,
            seed=seed,
            workers=workers,
            progress=tell if html is None else both(trace, tell),
        )
    seconds = {"read": spent} | result.seconds
    seconds["total"] += spent
    result = replace(result, seconds=seconds)
    _write(result, trace, json, html, overwrite)
    readable = not quiet and "-" not in (str(json), str(html), str(sweep_csv))
    if readable:
        typer.echo(summary(result))
    whatif.answer(wanted, result, readable, how)
    if result.infeasible:
        typer.echo(f"layoutopt: {instance}: infeasible: {result.infeasible}", err=True)
    return exit_code(result)


def exit_code(result: UnwindingResult) -> int:
    """Return 0 with a solution, 3 with a proof that there is none, and 4 with neither."""
    if result.layouts is not None:
        return 0
    return 3 if result.infeasible else 4


def _write(
    result: UnwindingResult, trace: Trace, json: Path | None, html: Path | None, overwrite: bool
) -> None:
    """Write a result where it is asked for: for programs, and as a page."""
    from layoutopt.io.result import result_bytes
    from layoutopt.report.result import WHY_SECONDS, report_html
    from layoutopt.result import Stopped

    if json is not None:
        write_out(result_bytes(result), json, overwrite)
    if html is not None:
        points = trace.points(result.seconds["total"], result)
        why = 0.0 if result.stopped is Stopped.INTERRUPTED else WHY_SECONDS
        page = report_html(result, points, command_line(), why_seconds=why)
        write_out(page.encode(), html, overwrite)


def summary(result: UnwindingResult) -> str:
    """Return what people want to know of a result."""
    size = {name: f"{count:,}" for name, count in result.size.items()}
    lines = [
        f"{result.instance or 'unnamed'}: {size['tensors']} tensors, {size['elements']} elements "
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
        ["gap", ratio(result.gap)],
        ["if all matched", number(result.max_score)],
        ["seconds", f"{result.seconds['total']:.2f}"],
    ]
    width = max(len(value) for _, value in rows)
    return [[name, value.ljust(width)] for name, value in rows]


def _pairs(result: UnwindingResult) -> list[list[str]]:
    """Return a table of the pairs, those first that lose most."""
    order = sorted(result.pairs, key=lambda p: p.value * (p.matched - p.elements))
    rows = [["pair", "", "value", "matched", "of", "loses"]]
    for p in order[:PAIRS_SHOWN]:
        lost = number(p.value * (p.elements - p.matched))
        rows.append([p.a, p.b, number(p.value), f"{p.matched:,}", f"{p.elements:,}", lost])
    return rows
