"""``layoutopt bench``: batch runs, and what their stores hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from layoutopt.cli import batch, drawing, options
from layoutopt.cli.rows import change_table, row_table, summary_table
from layoutopt.cli.streams import command_line, say, write_out
from layoutopt.errors import InputError

if TYPE_CHECKING:
    from layoutopt.bench.row import Row

HELP = ("--help",)


class _Group(TyperGroup):
    """A group that hands words to ``run``, unless they name another of its commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *HELP):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help="Solve many instances by many solvers, and keep every result in a store.  "
    "layoutopt bench SUITE... is short for layoutopt bench run SUITE...",
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _common(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


app.command("run")(batch.command)

Store = Annotated[Path, typer.Argument(metavar="STORE", help="A store of results.")]
Solvers = Annotated[
    list[str] | None,
    typer.Option("--solver", metavar="NAME", help="Only this one; again for each."),
]
Instances = Annotated[
    list[str] | None,
    typer.Option("--instance", metavar="PATTERN", help="Only these, as in 'figures/*'."),
]
Statuses = Annotated[
    list[str] | None,
    typer.Option("--status", metavar="STATUS", help="Only these, as in failed."),
]
Versions = Annotated[
    list[str] | None, typer.Option("--version", metavar="VERSION", help="Only this one.")
]
Machines = Annotated[
    list[str] | None, typer.Option("--machine", metavar="MACHINE", help="Only this one.")
]

Plot = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="profile|time|gap|trace", help="What --svg and --png draw; profile."
    ),
]


@app.command("show")
def show(
    store: Store,
    solver: Solvers = None,
    instance: Instances = None,
    status: Statuses = None,
    version: Versions = None,
    machine: Machines = None,
    every: Annotated[bool, typer.Option("--rows", help="A line for each solve.")] = False,
    html: options.Html = None,
    plot: Plot = None,
    svg: drawing.Svg = None,
    png: drawing.Png = None,
    overwrite: options.Overwrite = False,
) -> int:
    """Show a store: a line for each solver, or for each solve; write a page, draw a chart."""
    targets = {"--html": html, "--svg": svg, "--png": png}
    options.check_targets(targets, overwrite)
    drawing.check_png(png)
    pictured = svg is not None or png is not None
    if plot is not None and not pictured:
        raise InputError(f"--plot {plot} is for --svg FILE and --png FILE")
    rows = _rows(store, solver, instance, status, version, machine)
    if pictured:
        _draw(rows, plot or "profile", svg, png, overwrite)
    if html is not None:
        _write_page(rows, html, overwrite)
    if "-" not in map(str, targets.values()):
        say(row_table(rows) if every or status else summary_table(rows))
    return 0


def _draw(rows: list[Row], name: str, svg: Path | None, png: Path | None, overwrite: bool) -> None:
    from layoutopt.report.batch import plot

    drawing.write_picture(plot(rows, name), svg, png, overwrite)


def _write_page(rows: list[Row], path: Path, overwrite: bool) -> None:
    from layoutopt.report.batch import bench_html

    write_out(bench_html(rows, command_line()).encode(), path, overwrite)


@app.command("export")
def export(
    store: Store,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|json|markdown", help="How it is written.")
    ] = "csv",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where; - is stdout.")
    ] = Path("-"),
    solver: Solvers = None,
    instance: Instances = None,
    status: Statuses = None,
    version: Versions = None,
    machine: Machines = None,
    no_seconds: options.NoSeconds = False,
    overwrite: options.Overwrite = False,
) -> int:
    """Write the rows of a store for other programs, or for a page."""
    from layoutopt.bench.row import EXPORTS

    if form not in EXPORTS:
        raise InputError(f"--format {form}: allowed: {', '.join(EXPORTS)}")
    options.check_target(output, overwrite)
    rows = _rows(store, solver, instance, status, version, machine)
    write_out(EXPORTS[form](rows, measured=not no_seconds), output, overwrite)
    return 0


@app.command("diff")
def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A store of results.")],
    after: Annotated[
        Path | None, typer.Argument(metavar="[AFTER]", help="Another; the same by default.")
    ] = None,
    version: Annotated[
        list[str] | None,
        typer.Option(metavar="VERSION", help="Of both sides; twice: before, after."),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(metavar="MACHINE", help="Of both sides; twice: before, after."),
    ] = None,
    solver: Solvers = None,
    instance: Instances = None,
    noise: Annotated[
        float | None, typer.Option(metavar="FACTOR", min=1, help="Least factor between times.")
    ] = None,
) -> int:
    """Show what became better or worse, beyond noise, from one run to another."""
    from layoutopt.bench.changes import NOISE, difference
    from layoutopt.bench.row import side

    versions, machines = _both(version, "--version"), _both(machine, "--machine")
    sides: list[list[Row]] = []
    for store, one, other in zip((before, after or before), versions, machines, strict=True):
        rows = _rows(store, solver, instance, None, None, None)
        try:
            sides.append(side(rows, one, other))
        except InputError as error:
            raise error.located(file=str(store)) from None
    say(change_table(difference(sides[0], sides[1], noise or NOISE)))
    return 0


def _both(given: list[str] | None, option: str) -> tuple[str | None, str | None]:
    """Return what is said of both sides, by one word for both or one for each."""
    words = given or []
    if len(words) > 2:
        raise InputError(f"{option} may be given twice at most, for before and after")
    return (words[0], words[-1]) if words else (None, None)


def _rows(
    path: Path,
    solver: list[str] | None,
    instance: list[str] | None,
    status: list[str] | None,
    version: list[str] | None,
    machine: list[str] | None,
) -> list[Row]:
    """Return the rows of a store that are asked for, of which there must be some."""
    from layoutopt.bench.row import select
    from layoutopt.bench.store import reading

    patterns = {
        "solver": solver or [],
        "instance": instance or [],
        "status": status or [],
        "version": version or [],
        "machine": machine or [],
    }
    with reading(path) as store:
        rows = store.rows()
    try:
        rows = select(rows, **patterns)
        if not rows:
            raise InputError("holds no such results")
    except InputError as error:
        raise error.located(file=str(path)) from None
    return rows
