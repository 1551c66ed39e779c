"""``layoutopt compare``: several solvers on the same instances, in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from layoutopt.base.table import Table
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles, flag, option
from layoutopt.cli.streams import command_line, note, reserved_stdout, shown

PAIRS = 40  # rows of the table of losses

if TYPE_CHECKING:
    from layoutopt.comparison import Comparison

Csv = Annotated[Path | None, option("FILE", "Write the table as CSV; - is standard output.")]
Markdown = Annotated[
    Path | None, option("FILE", "Write the tables as Markdown; - is standard output.")
]


@options.grouped
def command(
    instances: options.InstancePaths,
    solver: Annotated[
        list[str] | None,
        option("NAME", f"Repeatable; 'all' stands for every built-in one.  {options.SOLVER_NAMES}"),
    ] = None,
    *,
    search: options.Search,
    output: options.Output = None,
    json: options.Json = None,
    csv: Csv = None,
    markdown: Markdown = None,
    html: options.Html = None,
    pairs: Annotated[
        bool,
        flag("Also list the loss of each pair; with --csv, instead of the solvers.", "--pairs"),
    ] = False,
    overwrite: options.Overwrite = False,
    reading: options.Reading,
    barriers: options.Barriers = None,
    no_seconds: options.NoSeconds = False,
) -> int:
    """Compare several solvers on the same instances, in one table.

    By default auto and greedy0; for cost networks all that apply.  "to best bound" is the gap to
    the best bound that any of them proved; "loss" is relative to the best score.
    """
    from layoutopt.base.limits import Stopped
    from layoutopt.network.files import is_network

    search.begin()
    of_costs = any(map(is_network, instances))
    options.check_words(solver or [], barriers, instances)
    page = {} if of_costs and html is None else {"--html": html}
    files = {"--json": json, "--csv": csv, "--markdown": markdown, **page}
    outputs = OutputFiles(files, overwrite, search.quiet, output, [*instances, *reading.files])
    if of_costs:
        others = {"pairs": pairs, "barriers": barriers, "html": html} | vars(reading)
        from layoutopt.cli.networks import compare_networks, refuse

        for path in filter(is_network, instances):
            refuse(path, others)
        return compare_networks(instances, solver, search, outputs, no_seconds)
    every: list[Comparison] = []
    codes: list[int] = []
    try:
        for path in instances:
            with options.reported(codes, path):
                every.append(_compared(path, solver, search, reading, barriers, no_seconds))
                codes.append(_code(every[-1], path))
                if every[-1].results[-1].stopped is Stopped.INTERRUPTED:
                    break
    finally:  # also after Ctrl-C while an instance is read
        if every:
            _write(every, outputs, pairs)
    return max(codes)


def _code(found: Comparison, path: Path) -> int:
    """Return the exit code of an instance, that of its best solver; print if it is infeasible."""
    for why in [result.infeasible for result in found.results if result.infeasible][:1]:
        note(f"layoutopt: {path}: infeasible: {why}")
    return 0 if found.best is not None else min(map(options.exit_code, found.results))


def _compared(
    path: Path,
    solver: list[str] | None,
    search: options.Search,
    reading: options.Reading,
    barriers: str | None,
    no_seconds: bool,
) -> Comparison:
    """Solve an instance by all solvers; options for ONNX models apply to these only."""
    from layoutopt.comparison import compare
    from layoutopt.graphs.tiling import apply_hook_mode

    if path.suffix != ".onnx":
        cycles = reading.attractions if str(reading.attractions) == options.CYCLES else None
        reading = options.Reading(cycles, tiles=reading.tiles)
    graph = apply_hook_mode(reading.load(path)[0], barriers)
    how = search.asked() | {"time_limit": search.time_limit}
    with shown(search.quiet) as tell, reserved_stdout():
        found = compare(graph, _solvers(solver), **how, progress=tell)
    results = found.results
    if no_seconds:
        results = tuple(replace(result, seconds={}) for result in results)
    return replace(found, results=results, name=graph.name or path.name)


def _solvers(names: list[str] | None) -> list[str]:
    from layoutopt.registry import ALL
    from layoutopt.unwinding import SOLVERS

    found: list[str] = []
    for name in names or ["auto", "greedy0"]:
        found += SOLVERS if name == ALL else [name]
    return list(dict.fromkeys(found))


def _write(every: Sequence[Comparison], outputs: OutputFiles, pairs: bool) -> None:
    """Write the requested files, and print the tables."""
    from layoutopt.base.files import encode_list
    from layoutopt.comparison import csv_text, markdown_text, tables
    from layoutopt.io.result import result_document

    def page() -> bytes:
        from layoutopt.report.comparison import comparison_html

        return comparison_html(every, command_line()).encode()

    makers = {
        "--json": lambda: encode_list([result_document(r) for x in every for r in x.results]),
        "--csv": lambda: csv_text(every, pairs).encode(),
        "--markdown": lambda: markdown_text(every, pairs).encode(),
        "--html": page,
    }
    results, *lost = tables(every, pairs)
    shown = [results, *(_first(table) for table in lost if table.rows)]
    outputs.write(makers, lambda: "\n\n".join(table.text("") for table in shown))


def _first(table: Table) -> Table:
    return replace(table, rows=table.rows[:PAIRS], hidden=len(table.rows) - PAIRS)
