"""``layoutopt solve``: the best layouts of one graph, with a proof."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutopt.cli import clock, options, whatif
from layoutopt.cli.progress import both, shown
from layoutopt.cli.streams import all_done, command_line, note, reserved_stdout, say, write_out
from layoutopt.cli.text import exact, number, ratio, seconds, table
from layoutopt.errors import printable

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
    capacity_sweep: whatif.Sweep = None,
    sweep_csv: whatif.SweepCsv = None,
    prices: whatif.Prices = False,
    no_seconds: options.NoSeconds = False,
    quiet: options.Quiet = False,
) -> int:
    """Find the best layouts of a graph's inputs, and prove it."""
    how = whatif.How(time_limit, seed, workers, overwrite, quiet)
    from layoutopt.trace import Trace
    from layoutopt.unwinding import unwind

    options.check_limits(time_limit, gap, workers)
    options.limit_memory(memory_limit)
    targets = {"--json": json, "--html": html, "--certificate": certificate}
    targets["--sweep-csv"] = sweep_csv
    options.check_targets(targets, overwrite)
    wanted = whatif.wish(capacity_sweep, sweep_csv, prices, fixed)
    graph, spent = options.load(instance, attractions, dim, training, tiles, how.left)
    whatif.check_machine(wanted, graph)
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
        whatif.answer(wanted, result, readable, how)
    if result.infeasible:
        note(f"layoutopt: {instance}: infeasible: {result.infeasible}")
    return exit_code(result)


def _answer(
    result: UnwindingResult, trace: Trace, targets: dict[str, Path | None], how: whatif.How
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
    return times | {"total": clock.spent()}


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

    def page() -> bytes:
        total = result.seconds.get("total")  # without times, what takes as long as there is time
        points = () if total is None else trace.points(total, result)  # is left out, too
        hurried = total is None or result.stopped is Stopped.INTERRUPTED
        why = 0.0 if hurried else WHY_SECONDS
        return report_html(result, points, command_line(), why_seconds=why).encode()

    with all_done() as attempt:
        if json is not None:
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
