"""``layoutopt solve``: provably optimal layouts of graphs and labels of cost networks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import exact, number, ratio
from layoutopt.base.table import Table
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles, flag, option
from layoutopt.cli.streams import all_done, command_line, note, reserved_stdout, say, shown

if TYPE_CHECKING:
    from layoutopt.base.limits import Progress, Trace
    from layoutopt.base.result import Piece, UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.whatif import CapacityPoint, ShadowPrices, SmallestMachine
    from layoutopt.network import Solution

    Answer: TypeAlias = UnwindingResult | Solution

SHOWN = 12  # rows of a table of prices


@dataclass(frozen=True)
class Questions:
    """Options that evaluate the capacity of a tile memory."""

    capacity_sweep: Annotated[
        str | None,
        option(
            "A,B,...",
            "On a tile memory, also solve with its bytes per tile times each of these factors.",
        ),
    ] = None
    sweep_csv: Annotated[
        Path | None,
        option("FILE", "Write the scores of --capacity-sweep as CSV; - is standard output."),
    ] = None
    prices: Annotated[
        bool,
        flag(
            "On a tile memory, also print what a byte of each tile is worth, and what each sink "
            "costs at these prices.",
            "--prices",
        ),
    ] = False

    @property
    def scales(self) -> tuple[Decimal, ...]:
        """Factors of the machine's capacity, as written; none without a sweep."""
        return () if self.capacity_sweep is None else _scales(self.capacity_sweep)

    @property
    def asked(self) -> str:
        """The first of these options that is given, if any."""
        if self.scales:
            return "--capacity-sweep"
        return "--prices" if self.prices else ""

    def check(self, fixed: Path | None) -> None:
        """Refuse incompatible options."""
        if self.sweep_csv is not None and self.capacity_sweep is None:
            raise InputError("--sweep-csv FILE requires --capacity-sweep A,B,...")
        if self.asked and fixed is not None:
            raise InputError(f"{self.asked} cannot be combined with --fixed")

    def check_machine(self, graph: Graph) -> None:
        """Refuse these options without a tile memory."""
        if self.asked and graph.tile_memory is None:
            needs = "requires a tile memory; give one by --tiles PRESET|FILE"
            raise InputError(f"{self.asked} {needs}")
        if self.scales:
            from layoutopt.machine.whatif import capacities

            capacities(graph, self.scales)

    def answer(self, result: UnwindingResult, outputs: OutputFiles, search: options.Search) -> None:
        """Print the requested tables, and write the requested file."""
        if not self.asked:
            return
        from layoutopt.machine.whatif import capacity_sweep, shadow_prices, smallest_machine

        graph, told = result.graph, outputs.readable
        how: dict[str, Any] = {"seed": search.seed, "workers": search.workers}
        lines: list[str] = []
        points: Sequence[CapacityPoint] = ()
        with shown(search.quiet) as how["progress"], reserved_stdout():
            if self.prices and told:
                prices = None
                if result.layouts is not None:
                    prices = shadow_prices(graph, result, time_limit=search.left, **how)
                lines.append(f"\n{prices_text(prices)}")
            if self.scales and (told or "--sweep-csv" in outputs.given):
                points = capacity_sweep(graph, self.scales, time_limit=search.left, **how)
            if self.scales and told:
                least = smallest_machine(graph, time_limit=search.left, **how)
                lines.append(f"\n{sweep_text(points, graph.tile_memory.bytes_per_tile)}")
                lines.append(smallest_text(least))
        outputs.write({"--sweep-csv": lambda: _sweep_csv(points)}, lambda: "\n".join(lines))


def _scales(text: str) -> tuple[Decimal, ...]:
    from layoutopt.base.numbers import exact_decimal

    try:
        found = tuple(exact_decimal(each.strip()) for each in text.split(","))
    except InputError:
        found = ()
    if not found or min(found) <= 0:
        raise InputError(f"--capacity-sweep {text}: must be numbers above 0, such as 0.8,1,1.2")
    return found


def sweep_text(points: Sequence[CapacityPoint], own: int) -> str:
    """Return a table of scores by capacity, of which ``own`` bytes per tile are the memory's."""
    rows = []
    for p in points:
        size = f"{p.bytes_per_tile:,}", ratio(p.bytes_per_tile / own)
        rows.append([*size, number(p.score), number(p.bound), str(p.status)])
    return Table(
        ["bytes per tile", "share of this machine's", "score", "bound", "status"], rows, left=0
    ).text()


def _sweep_csv(points: Sequence[CapacityPoint]) -> bytes:
    rows = []
    for p in points:
        exact = ("" if x is None else f"{x:f}" for x in (p.score, p.bound))
        rows.append([p.bytes_per_tile, *exact, p.status])
    return Table(["bytes_per_tile", "score", "bound", "status"], rows).csv().encode()


def smallest_text(found: SmallestMachine) -> str:
    """Return the bytes per tile that the unconstrained optimum needs."""
    if found.high is None:
        needed = f"{found.low:,} bytes per tile or more"
    else:
        needed = f"{found.low:,}{'' if found.proved else f' to {found.high:,}'} bytes per tile"
    return f"  the unconstrained optimum needs {needed}"


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
    rows = [
        [str(t.tile), f"{t.used:,}", f"{found.capacity:,}", number(float(t.price))]
        for t in dear[:SHOWN]
    ]
    head = ["tile", "bytes", "of", "one more is worth at most"]
    lines += ["", Table(head, rows, left=0).text()]
    free = len(found.tiles) - len(dear)
    more = f"{len(dear) - SHOWN:,} more tiles, and " if len(dear) > SHOWN else ""
    if more or free:
        lines.append(f"  ... and {more}{free:,} tiles on which bytes are worth nothing")
    costs = [entry for entry in found.sinks if entry.cost]
    rows = [[s.sink, f"{s.bytes:,}", number(float(s.cost))] for s in costs[:SHOWN]]
    table = Table(["sink", "bytes", "cost"], rows, hidden=len(costs) - SHOWN, noun="sink")
    return "\n".join([*lines, "", table.text()])


@options.grouped
def command(
    instances: options.InstancePaths,
    solver: Annotated[str, option("NAME", options.SOLVER_NAMES)] = "auto",
    fixed: Annotated[
        Path | None,
        option("RESULT", "Keep the layouts of this result, which may have only some of the sinks."),
    ] = None,
    start: Annotated[
        Path | None, option("RESULT", "Start the search from the layouts of this result.")
    ] = None,
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
    from layoutopt.network.files import is_network

    search.begin()
    questions.check(fixed)
    files = {"--json": json, "--certificate": certificate, "--sweep-csv": questions.sweep_csv}
    options.check_words([solver], barriers, instances)
    if html or not all(map(is_network, instances)):
        files["--html"] = html
    options.place_output(output, files)
    every = _placed(files, instances, overwrite, search.quiet, reading)
    own = {"fixed": fixed, "html": files.get("--html"), "barriers": barriers}

    def solve(instance: Path, outputs: OutputFiles) -> Answer:
        if is_network(instance):
            from layoutopt.cli.networks import refuse, solve_network

            refuse(instance, own | vars(reading) | vars(questions))
            return solve_network(instance, solver, start, search, outputs, no_seconds)
        graph, read = reading.load(instance, search.left, search.quiet)
        questions.check_machine(graph)
        kept, begun = (_layouts(path, graph, barriers) for path in (fixed, start))
        asked = {"fixed": kept, "start": begun, "barriers": barriers, **search.asked()}
        result, trace = _unwound(graph, solver, outputs, asked)
        times = {"read": read, **result.seconds, "total": options.spent()}
        result = replace(result, seconds={} if no_seconds else times)
        with all_done() as attempt:
            with attempt():
                _answer(result, trace, outputs)
            questions.answer(result, outputs, search)
        if result.infeasible:
            note(f"layoutopt: {instance}: infeasible: {result.infeasible}")
        return result

    return _solve_each(solve, instances, every)


def _unwound(
    graph: Graph, solver: str, outputs: OutputFiles, asked: dict[str, Any]
) -> tuple[UnwindingResult, Trace]:
    """Solve a graph; return its result, and score and bound over time if a page shows them."""
    from layoutopt.base.limits import Trace
    from layoutopt.unwinding import unwind

    trace, certificate = Trace(), "--certificate" in outputs.given
    with shown(outputs.quiet) as tell, reserved_stdout():

        def both(message: Progress) -> None:
            trace(message)
            if tell is not None:
                tell(message)

        progress = both if "--html" in outputs.given else tell
        return unwind(graph, solver, certificate=certificate, progress=progress, **asked), trace


def _layouts(
    path: Path | None, graph: Graph, barriers: str | None
) -> dict[str, tuple[Piece, ...]] | None:
    """Return the layouts of a graph's result file; ``None`` without one."""
    if path is None:
        return None
    from layoutopt.graphs.tiling import apply_hook_mode
    from layoutopt.io.instance import check_hash
    from layoutopt.io.result import read_result

    found = read_result(path)
    check_hash(found.instance_hash, apply_hook_mode(graph, barriers), str(path))
    if found.layouts is None:
        raise InputError("has no layouts", "$.layouts", str(path))
    return found.layouts


ENDINGS = {
    "--json": ".json",
    "--html": ".html",
    "--certificate": ".certificate.json",
    "--sweep-csv": ".csv",
}
"""Suffixes of an instance's files in a folder of outputs."""


def own_files(files: options.Files, instance: Path, several: bool) -> options.Files:
    """Return the output files of one instance, in folders named after the instance.

    If there are several instances, outputs must be folders.
    """
    stem = "stdin" if str(instance) == "-" else instance.name
    for ending in (".gz", ".json", ".onnx"):
        stem = stem.removesuffix(ending)
    found = dict(files)
    for name, path in files.items():
        if path is not None and path.is_dir():
            found[name] = path / f"{stem.replace(':', '.')}{ENDINGS[name]}"
        elif path is not None and several and str(path) != "-":
            reason = "must be a folder, as there are several instances"
            raise InputError(f"{name}: {reason}", file=str(path))
    return found


def _placed(
    files: options.Files,
    instances: Sequence[Path],
    overwrite: bool,
    quiet: bool,
    reading: options.Reading,
) -> list[OutputFiles]:
    """Return the output files of each instance, which must not be those of another one."""
    every, seen = [], set[Path]()
    for instance in instances:
        wanted = own_files(files, instance, len(instances) > 1)
        outputs = OutputFiles(wanted, overwrite, quiet, inputs=[*instances, *reading.files])
        own = {path for path in outputs.given.values() if str(path) != "-"}
        if own & seen:
            reason = "two instances have this name; solve them separately"
            raise InputError(reason, file=str(min(own & seen)))
        seen |= own
        every.append(outputs)
    return every


def _solve_each(
    solve: Callable[[Path, OutputFiles], Answer],
    instances: Sequence[Path],
    every: Sequence[OutputFiles],
) -> int:
    """Solve instances in turn, also after one that cannot be read; return the highest exit code."""
    from layoutopt.base.limits import Stopped

    codes: list[int] = []
    for i, (instance, outputs) in enumerate(zip(instances, every, strict=True)):
        if i:
            options.begin(time.monotonic())
            if outputs.readable:
                say("")
        with options.reported(codes, instance):
            result = solve(instance, outputs)
            codes.append(options.exit_code(result))
            if result.stopped is Stopped.INTERRUPTED:
                break
    return max(codes)


def _answer(result: UnwindingResult, trace: Trace, outputs: OutputFiles) -> None:
    def document() -> bytes:
        from layoutopt.io.result import result_bytes

        return result_bytes(result)

    def page() -> bytes:
        from layoutopt.base.limits import Stopped
        from layoutopt.report.result import WHY_SECONDS, report_html

        total = result.seconds.get("total")  # with --no-seconds, the trace is omitted as well
        points = () if total is None else trace.points(total, result)
        hurried = total is None or result.stopped is Stopped.INTERRUPTED
        why = 0.0 if hurried else WHY_SECONDS
        return report_html(result, points, command_line(), why_seconds=why).encode()

    makers: dict[str, Callable[[], bytes | None]] = {"--json": document, "--html": page}
    makers["--certificate"] = lambda: _certificate(result, outputs.given["--certificate"])
    outputs.write(makers, result.summary)


def _certificate(result: UnwindingResult, path: Path) -> bytes | None:
    """Return a result's certificate; or print why there is none, or why it proves less."""
    from layoutopt.io.certificate import certificate_bytes

    if result.certificate is None:
        note(f"layoutopt: {path}: no certificate is written: {result.uncertified}")
        return None
    proved = Fraction(result.certificate["bound"])
    found = proved if result.bound is None else Fraction(result.bound)
    if proved > found:
        note(
            f"layoutopt: {path}: proves a bound of {exact(proved)} only; "
            f"the search's, {exact(found)}, is not certified"
        )
    return certificate_bytes(result.certificate)
