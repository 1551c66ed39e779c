"""``layoutopt compare``: several solvers on the same instances, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import options
from layoutopt.cli.progress import shown
from layoutopt.cli.solve import exit_code
from layoutopt.cli.streams import reserved_stdout
from layoutopt.cli.text import number, ratio, table

if TYPE_CHECKING:
    from layoutopt.comparison import Comparison
    from layoutopt.graphs.store import Store
    from layoutopt.result import UnwindingResult

HEAD = ["instance", "solver", "status", "score", "bound", "gap", "seconds", "loss"]


def command(
    instances: Annotated[
        list[Path],
        typer.Argument(metavar="INSTANCE...", help="Instances (.json, .json.gz) and networks."),
    ],
    solver: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Again for each solver; all stands for every one."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="For each solver and instance.")
    ] = None,
    gap: options.Gap = 0.0,
    seed: options.Seed = 0,
    workers: options.Workers = 1,
    json: options.Json = None,
    overwrite: options.Overwrite = False,
    attractions: options.Attractions = None,
    dim: options.Dim = None,
    training: options.Training = None,
    tiles: options.Tiles = None,
    barriers: options.Barriers = None,
    quiet: options.Quiet = False,
) -> int:
    """Solve instances by several solvers, in one table.

    Without --solver these are auto and greedy0.  The last column is what a solver loses
    against the best score of its instance.
    """
    from layoutopt.comparison import compare
    from layoutopt.result import Stopped

    options.check_limits(time_limit, gap, workers)
    options.check_target(json, overwrite)
    solvers = _solvers(solver)
    rows, code = [HEAD], 0
    results: list[UnwindingResult] = []
    for path in instances:
        graph = _load(path, attractions, dim, training, tiles, barriers)
        with shown(quiet) as tell, reserved_stdout():
            found = compare(
                graph,
                solvers,
                time_limit=time_limit,
                gap=gap,
                seed=seed,
                workers=workers,
                progress=tell,
            )
        rows += _rows(graph.name or path.name, found)
        results += found.results
        if found.best is None:
            code = max(code, min(map(exit_code, found.results)))
        if found.results[-1].stopped is Stopped.INTERRUPTED:
            break
    if json is not None:
        _write(results, json, overwrite)
    if not quiet and str(json) != "-":
        typer.echo(table(rows, left=3, indent=""))
    return code


def _load(
    path: Path,
    attractions: Path | None,
    dim: list[str] | None,
    training: str | None,
    tiles: str | None,
    barriers: str | None,
) -> Store:
    """Return a graph to be solved; what is for networks is for these only."""
    from layoutopt.graphs.hooking import heeded

    given = attractions, dim, training
    if path.suffix != ".onnx":
        given = attractions if str(attractions) == options.CYCLES else None, None, None
    graph, _ = options.load(path, *given, tiles)
    return heeded(graph, barriers)


def _solvers(names: list[str] | None) -> list[str]:
    from layoutopt.unwinding import SOLVERS

    if not names:
        return ["auto", "greedy0"]
    return list(SOLVERS) if "all" in names else list(dict.fromkeys(names))


def _rows(name: str, found: Comparison) -> list[list[str]]:
    return [
        [
            name,
            result.solver,
            str(result.status),
            number(result.score),
            number(result.bound),
            ratio(result.gap),
            f"{result.seconds['total']:.3f}",
            ratio(loss),
        ]
        for result, loss in zip(found.results, found.losses(), strict=True)
    ]


def _write(results: list[UnwindingResult], path: Path, overwrite: bool) -> None:
    from layoutopt.io.files import encode, write_bytes
    from layoutopt.io.result import result_document

    lines = b",\n".join(encode(result_document(result)) for result in results)
    data = b"[" + lines + b"]\n"
    if str(path) == "-":
        typer.echo(data.decode(), nl=False)
    else:
        write_bytes(path, data, overwrite=overwrite)
