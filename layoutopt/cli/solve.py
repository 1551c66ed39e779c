"""``layoutopt solve``: provably optimal layouts of graphs and labels of cost networks."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import exact, number, ratio
from layoutopt.cli import options
from layoutopt.cli.options import BAD_INPUT
from layoutopt.cli.streams import (
    all_done,
    both,
    command_line,
    note,
    reserved_stdout,
    say,
    shown,
    table,
    write_out,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from layoutopt.base.limits import Trace
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.whatif import CapacityPoint, ShadowPrices, SmallestMachine
    from layoutopt.network import Solution

SHOWN = 12
"""Rows of a table of prices."""


@dataclass(frozen=True)
class Questions:
    """Options that evaluate the capacity of a tile memory."""

    capacity_sweep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="On a tile memory, also solve with its bytes per tile times each of these "
            "factors.",
        ),
    ] = None
    sweep_csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the scores of --capacity-sweep as CSV; - is standard output.",
        ),
    ] = None
    prices: Annotated[
        bool,
        typer.Option(
            "--prices",
            help="On a tile memory, also print what a byte of each tile is worth, and what each "
            "sink costs at these prices.",
        ),
    ] = False

    @property
    def scales(self) -> tuple[Decimal, ...]:
        """Factors of the machine's capacity, as written; none without a sweep."""
        return () if self.capacity_sweep is None else _scales(self.capacity_sweep)

    def __bool__(self) -> bool:
        return self.capacity_sweep is not None or self.prices

    @property
    def option(self) -> str:
        """The first of these options that is given."""
        return "--prices" if self.capacity_sweep is None else "--capacity-sweep"

    def check(self, fixed: Path | None) -> None:
        """Refuse incompatible options."""
        if self.sweep_csv is not None and self.capacity_sweep is None:
            raise InputError("--sweep-csv FILE requires --capacity-sweep A,B,...")
        if self and fixed is not None:
            raise InputError(f"{self.option} cannot be combined with --fixed")


def check_machine(wanted: Questions, graph: Graph) -> None:
    """Refuse these options without a tile memory."""
    if wanted and graph.tile_memory is None:
        raise InputError(f"{wanted.option} requires a tile memory; give one by --tiles PRESET|FILE")
    if wanted.scales:
        from layoutopt.machine.whatif import capacities

        capacities(graph, wanted.scales)


def answer(
    wanted: Questions,
    result: UnwindingResult,
    csv: Path | None,
    told: bool,
    search: options.Search,
    overwrite: bool,
) -> None:
    """Print the requested tables, and write the requested file.

    Parameters
    ----------
    csv
        File for the scores of a sweep, if any.
    told
        Whether to print.
    """
    if not wanted:
        return
    from layoutopt.machine.whatif import capacity_sweep, shadow_prices, smallest_machine

    more: dict[str, Any] = {"seed": search.seed, "workers": search.workers}
    graph = result.graph
    with shown(search.quiet) as more["progress"], reserved_stdout():
        prices = points = least = None
        if wanted.prices and told and result.layouts is not None:
            prices = shadow_prices(graph, result, time_limit=search.left, **more)
        if wanted.scales and (told or csv is not None):
            points = capacity_sweep(graph, wanted.scales, time_limit=search.left, **more)
            least = smallest_machine(graph, time_limit=search.left, **more) if told else None
    lines = [f"\n{prices_text(prices)}"] if wanted.prices and told else []
    if points is not None and least is not None:
        lines += [f"\n{sweep_text(points, graph.tile_memory.bytes_per_tile)}", smallest_text(least)]
    with all_done() as attempt:
        if points is not None and csv is not None:
            with attempt():
                _write_sweep(points, csv, overwrite)
        if lines:
            say("\n".join(lines))


def sweep_text(points: Sequence[CapacityPoint], own: int) -> str:
    """Return a table of scores by capacity.

    Parameters
    ----------
    own
        The memory's own bytes per tile.
    """
    rows = [["bytes per tile", "of own", "score", "bound", "status"]]
    for p in points:
        share = ratio(p.bytes_per_tile / own)
        size = f"{p.bytes_per_tile:,}"
        rows.append([size, share, number(p.score), number(p.bound), str(p.status)])
    return table(rows, left=0)


def smallest_text(found: SmallestMachine) -> str:
    """Return the bytes per tile that the unconstrained optimum needs."""
    if found.high is None:
        return f"  the unconstrained optimum needs {found.low:,} bytes per tile or more"
    if found.proved:
        return f"  the unconstrained optimum needs {found.low:,} bytes per tile"
    return f"  the unconstrained optimum needs {found.low:,} to {found.high:,} bytes per tile"


def prices_text(found: ShadowPrices | None) -> str:
    """Return tables of the most expensive tiles and sinks, and the bound by prices."""
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
        raise InputError(f"--capacity-sweep {text}: must be numbers above 0, such as 0.8,1,1.2")
    return found


def _write_sweep(points: Sequence[CapacityPoint], path: Path, overwrite: bool) -> None:
    rows = ["bytes_per_tile,score,bound,status"]
    for p in points:
        score, bound = ("" if x is None else f"{x:f}" for x in (p.score, p.bound))
        rows.append(f"{p.bytes_per_tile},{score},{bound},{p.status}")
    write_out(("\n".join(rows) + "\n").encode(), path, overwrite)


@options.grouped
def command(
    instances: options.InstancePaths,
    solver: options.Solver = "auto",
    fixed: options.Fixed = None,
    start: options.Start = None,
    *,
    search: options.Search,
    output: options.Output = None,
    json: options.Json = None,
    html: options.Html = None,
    certificate: options.Certificate = None,
    overwrite: options.Overwrite = False,
    reading: options.Reading,
    barriers: options.Barriers = None,
    questions: Questions,
    no_seconds: options.NoSeconds = False,
) -> int:
    """Solve instances to proven optimality: layouts of graphs, or labels of cost networks.

    With several instances, outputs must be folders; each instance writes a file named after it.
    """
    search.begin()
    questions.check(fixed)
    named = {"--json": json, "--html": html, "--certificate": certificate}
    named["--sweep-csv"] = questions.sweep_csv
    options.place_output(output, named)
    every = _placed(named, instances, overwrite)

    def solve(instance: Path, targets: options.Targets) -> UnwindingResult:
        from layoutopt.base.limits import Trace
        from layoutopt.unwinding import unwind

        graph, spent = reading.load(instance, search.left, search.quiet)
        check_machine(questions, graph)
        kept, begun = (options.layouts(path, graph, barriers) for path in (fixed, start))
        asked = {"fixed": kept, "start": begun, "barriers": barriers, **search.asked()}
        trace = Trace()
        with shown(search.quiet) as tell, reserved_stdout():
            asked["progress"] = tell if targets["--html"] is None else both(trace, tell)
            result = unwind(graph, solver, certificate=certificate is not None, **asked)
        result = replace(result, seconds={} if no_seconds else _times(result, spent))
        readable = not search.quiet and "-" not in map(str, targets.values())
        with all_done() as attempt:
            with attempt():
                _answer(result, trace, targets, readable, overwrite)
            answer(questions, result, targets["--sweep-csv"], readable, search, overwrite)
        if result.infeasible:
            note(f"layoutopt: {instance}: infeasible: {result.infeasible}")
        return result

    others = {"fixed": fixed, "html": html, "barriers": barriers}
    others |= vars(reading) | vars(questions)
    network = partial(_solve_network, solver, start, search, overwrite, no_seconds, others)
    return _solve_each(solve, network, instances, every, search.quiet)


def _solve_network(*given: Any) -> Solution:
    """Solve one cost network; the last two arguments are the file and its outputs."""
    from layoutopt.cli.networks import NetworkCall

    return NetworkCall(*given[:-2]).solve(*given[-2:])


ENDINGS = {
    "--json": ".json",
    "--html": ".html",
    "--certificate": ".certificate.json",
    "--sweep-csv": ".csv",
}
"""Suffixes of an instance's files in a folder of outputs."""


def own_targets(named: options.Targets, instance: Path, several: bool) -> options.Targets:
    """Return the output files of one instance in a folder, named after the instance.

    Raises
    ------
    InputError
        If there are several instances, and an output is not a folder.
    """
    stem = "stdin" if str(instance) == "-" else instance.name
    for ending in (".gz", ".json", ".onnx"):
        stem = stem.removesuffix(ending)
    found = dict(named)
    for option, path in named.items():
        if path is not None and path.is_dir():
            found[option] = path / f"{stem.replace(':', '.')}{ENDINGS[option]}"
        elif path is not None and several and str(path) != "-":
            reason = "must be a folder, as there are several instances"
            raise InputError(f"{option}: {reason}", file=str(path))
    return found


def _placed(
    named: options.Targets, instances: Sequence[Path], overwrite: bool
) -> list[options.Targets]:
    """Return the output files of each instance.

    Files that must not be replaced, or that two instances would write, are refused.
    """
    every = [own_targets(named, instance, len(instances) > 1) for instance in instances]
    seen: set[Path] = set()
    for targets in every:
        options.check_targets(targets, overwrite)
        own = {path for path in targets.values() if path is not None and str(path) != "-"}
        if own & seen:
            reason = "two instances have this name; solve them separately"
            raise InputError(reason, file=str(min(own & seen)))
        seen |= own
    return every


def _solve_each(
    solve: Callable[[Path, options.Targets], UnwindingResult],
    network: Callable[[Path, options.Targets], Solution],
    instances: Sequence[Path],
    every: Sequence[options.Targets],
    quiet: bool,
) -> int:
    """Solve instances and cost networks in turn; return the highest exit code.

    If one of several cannot be read, the others are solved nevertheless; Ctrl-C ends all.
    """
    from layoutopt.base.result import Stopped
    from layoutopt.reading import is_network

    def either(instance: Path, targets: options.Targets) -> UnwindingResult | Solution:
        return (network if is_network(instance) else solve)(instance, targets)

    if len(instances) == 1:
        return options.exit_code(either(instances[0], every[0]))
    codes = []
    for number_, (instance, targets) in enumerate(zip(instances, every, strict=True)):
        if number_:
            options.begin(time.monotonic())
            if not quiet and "-" not in map(str, targets.values()):
                say("")
        try:
            result = either(instance, targets)
        except InputError as error:
            note(f"layoutopt: {error}")
            codes.append(BAD_INPUT)
            continue
        codes.append(options.exit_code(result))
        if result.stopped is Stopped.INTERRUPTED:
            break
    return max(codes)


def _answer(
    result: UnwindingResult,
    trace: Trace,
    targets: options.Targets,
    readable: bool,
    overwrite: bool,
) -> None:
    """Write a result to the requested files, and print its summary."""
    certificate = targets["--certificate"]
    with all_done() as attempt:
        with attempt():
            _write(result, trace, targets["--json"], targets["--html"], overwrite)
        if certificate is not None:
            with attempt():
                _certify(result, certificate, overwrite)
        if readable:
            say(result.summary())


def _times(result: UnwindingResult, read: float) -> dict[str, float]:
    """Return seconds by phase, reading included, and those of the command so far."""
    times = {"read": read} | result.seconds
    return times | {"total": options.spent()}


def _write(
    result: UnwindingResult, trace: Trace, json: Path | None, html: Path | None, overwrite: bool
) -> None:
    """Write a result as JSON and as a page, as requested."""

    def page() -> bytes:
        from layoutopt.base.result import Stopped
        from layoutopt.report.result import WHY_SECONDS, report_html

        total = result.seconds.get("total")  # with --no-seconds, the trace is omitted as well
        points = () if total is None else trace.points(total, result)
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
    """Write a result's certificate, or print why there is none."""
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
