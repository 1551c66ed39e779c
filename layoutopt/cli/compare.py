"""``layoutopt compare``: several solvers on the same instances, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.base.errors import InputError
from layoutopt.cli import options
from layoutopt.cli.streams import (
    all_done,
    command_line,
    reserved_stdout,
    say,
    shown,
    table,
    write_out,
)

if TYPE_CHECKING:
    from layoutopt.comparison import Comparison
    from layoutopt.graphs.store import GraphStore

PAIRS_SHOWN = 40
"""Rows of the table of pairs."""

Solvers = Annotated[
    list[str] | None,
    typer.Option(
        "--solver",
        metavar="NAME",
        help=f"Repeatable; 'all' stands for every built-in one.  {options.SOLVER_NAMES}",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write the table as CSV; - is standard output."),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown", metavar="FILE", help="Write the tables as Markdown; - is standard output."
    ),
]
Pairs = Annotated[
    bool,
    typer.Option(
        "--pairs", help="Also list the loss of each pair; with --csv, instead of the solvers."
    ),
]


@options.grouped
def command(
    instances: options.InstancePaths,
    solver: Solvers = None,
    *,
    search: options.Search,
    output: options.Output = None,
    json: options.Json = None,
    csv: Csv = None,
    markdown: Markdown = None,
    html: options.Html = None,
    pairs: Pairs = False,
    overwrite: options.Overwrite = False,
    reading: options.Reading,
    barriers: options.Barriers = None,
    no_seconds: options.NoSeconds = False,
) -> int:
    """Compare several solvers on the same instances, in one table.

    By default auto and greedy0.  "to best bound" is the gap to the best bound that any of them
    proved; "loss" is relative to the best score.
    """
    search.begin()
    targets = {"--json": json, "--csv": csv, "--markdown": markdown, "--html": html}
    options.place_output(output, targets)
    options.check_targets(targets, overwrite)
    from layoutopt.base.result import Stopped
    from layoutopt.reading import is_network

    if any(map(is_network, instances)):
        from layoutopt.cli.networks import compare_networks, refuse

        for path in instances:
            if not is_network(path):
                raise InputError("is not a cost network; compare it separately", file=str(path))
            refuse(path, {"pairs": pairs, "barriers": barriers, "html": html} | vars(reading))
        return compare_networks(instances, solver, search, targets, no_seconds, overwrite)
    from layoutopt.comparison import compare

    how = search.asked() | {"time_limit": search.time_limit}
    every: list[Comparison] = []
    for path in instances:
        graph = _load(path, reading, barriers)
        with shown(search.quiet) as tell, reserved_stdout():
            found = compare(graph, _solvers(solver), **how, progress=tell)
        every.append(_named(found, graph.name or path.name, no_seconds))
        if found.results[-1].stopped is Stopped.INTERRUPTED:
            break
    with all_done() as attempt:
        with attempt():
            _write(every, targets, pairs, overwrite)
        if not search.quiet and "-" not in map(str, targets.values()):
            say(_text(every, pairs))
    return max(map(_code, every), default=0)


def _named(found: Comparison, name: str, no_seconds: bool) -> Comparison:
    """Return a comparison with a name, and without times if ``--no-seconds`` is given."""
    results = found.results
    if no_seconds:
        results = tuple(replace(result, seconds={}) for result in results)
    return replace(found, results=results, name=name)


def _code(found: Comparison) -> int:
    """Return the exit code of an instance: that of its best solver."""
    return 0 if found.best is not None else min(map(options.exit_code, found.results))


def _load(path: Path, reading: options.Reading, barriers: str | None) -> GraphStore:
    """Return a graph to solve; options for ONNX models apply to these only."""
    from layoutopt.graphs.tiling import apply_hook_mode

    if path.suffix != ".onnx":
        cycles = reading.attractions if str(reading.attractions) == options.CYCLES else None
        reading = options.Reading(cycles, tiles=reading.tiles)
    return apply_hook_mode(reading.load(path)[0], barriers)


def _solvers(names: list[str] | None) -> list[str]:
    from layoutopt.registry import ALL
    from layoutopt.unwinding import SOLVERS

    found: list[str] = []
    for name in names or ["auto", "greedy0"]:
        found += SOLVERS if name == ALL else [name]
    return list(dict.fromkeys(found))


def _text(every: Sequence[Comparison], pairs: bool) -> str:
    """Return the table of solvers and, if requested, that of pairs."""
    from layoutopt.comparison import COLUMNS, PAIR_COLUMNS

    rows = [["instance", *COLUMNS]]
    rows += [[found.name, *row] for found in every for row in found.rows()]
    text = table(rows, left=3, indent="")
    lost = [[found.name, *row] for found in every for row in found.pair_rows()] if pairs else []
    if lost:
        text += f"\n\n{table([['instance', *PAIR_COLUMNS], *lost[:PAIRS_SHOWN]], 4, indent='')}"
    if len(lost) > PAIRS_SHOWN:
        text += f"\n... and {len(lost) - PAIRS_SHOWN:,} more pairs"
    return text


def _write(
    every: Sequence[Comparison], targets: options.Targets, pairs: bool, overwrite: bool
) -> None:
    """Write the requested files."""
    from layoutopt.comparison import csv_text, markdown_text
    from layoutopt.report.comparison import comparison_html

    made: dict[str, Callable[[], bytes]] = {
        "--json": lambda: _documents(every),
        "--csv": lambda: csv_text(every, pairs).encode(),
        "--markdown": lambda: markdown_text(every, pairs).encode(),
        "--html": lambda: comparison_html(every, command_line()).encode(),
    }
    with all_done() as attempt:
        for option, path in targets.items():
            if path is not None:
                with attempt():
                    write_out(made[option](), path, overwrite)


def _documents(every: Sequence[Comparison]) -> bytes:
    from layoutopt.base.files import encode
    from layoutopt.io.result import result_document

    results = [result for found in every for result in found.results]
    return b"[" + b",\n".join(encode(result_document(result)) for result in results) + b"]\n"
