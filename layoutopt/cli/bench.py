"""``layoutopt bench``: batch runs and their stores of results."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from layoutopt.base.errors import InputError, errors_at, printable
from layoutopt.base.numbers import number, ratio
from layoutopt.cli import options, streams
from layoutopt.cli.options import BLAS_THREADS, SIGNALLED
from layoutopt.cli.streams import Unfailing, command_line, note, on_stderr, say, table, write_out

if TYPE_CHECKING:
    from layoutopt.bench.analysis import BatchChange, Difference, Summary
    from layoutopt.bench.executors import JobExecutor
    from layoutopt.bench.row import Row
    from layoutopt.bench.run import Report, RunProgress

CHANGES_SHOWN = 40


def summary_table(rows: Sequence[Row]) -> str:
    """Return a line per solver, with version and machine if there are several."""
    from layoutopt.bench.analysis import summaries

    found = summaries(rows)
    lines = [
        ["solver", "version", "machine"]
        + ["solves", "optimal", "feasible", "infeasible", "unknown", "failed"]
        + ["mean gap", "seconds", "behind", "mean loss"],
        *map(_summary, found),
    ]
    dull = {name for name in ("version", "machine") if len({getattr(s, name) for s in found}) == 1}
    dull |= {name for name in ("infeasible", "unknown", "failed") if not _any(found, name)}
    keep = [i for i, name in enumerate(lines[0]) if name not in dull]
    left = 1 + len({"version", "machine"} - dull)
    return table([[cells[i] for i in keep] for cells in lines], left=left, indent="")


def _any(found: Sequence[Summary], name: str) -> bool:
    return any(getattr(summary, name) for summary in found)


def _summary(s: Summary) -> list[str]:
    counts = (s.solves, s.optimal, s.feasible, s.infeasible, s.unknown, s.failed)
    cells = [s.solver, s.version, s.machine, *(f"{count:,}" for count in counts)]
    return [*cells, ratio(s.gap), f"{s.seconds:.3f}", f"{s.behind:,}", ratio(s.loss)]


def row_table(rows: Sequence[Row]) -> str:
    """Return a line per row, followed by those of errors."""
    from layoutopt.bench.analysis import best_of, best_scores, loss

    best = best_scores(rows)
    lines = [["instance", "solver", "status", "score", "bound", "gap", "seconds", "MiB", "loss"]]
    for row in rows:
        memory = "-" if row.peak_bytes is None else f"{row.peak_bytes >> 20:,}"
        cells = [row.instance, _way(row), row.status, number(row.score), number(row.bound)]
        lost = ratio(loss(row, best), best_of(row, best))
        lines.append([*cells, ratio(row.gap, row.score), f"{row.seconds:.3f}", memory, lost])
    errors = [
        printable(f"{row.instance} {row.solver}: {row.error} ({row.log})")
        for row in rows
        if row.error
    ]
    return "\n".join([table(lines, left=3, indent=""), *errors])


def _way(row: Row) -> str:
    """Return a solver's name, with seed and repetition unless 0."""
    seed = f" seed {row.seed}" if row.seed else ""
    return f"{row.solver}{seed}" + (f" #{row.repeat + 1}" if row.repeat else "")


def change_table(found: Difference) -> str:
    """Return the changes for worse and better, and the ratios of times."""
    worse = sum(not change.better for change in found.changes)
    lines = [
        f"{found.compared:,} tasks on both sides, {found.only_before:,} only before, "
        f"{found.only_after:,} only after: {worse:,} worse, {len(found.changes) - worse:,} better"
    ]
    if found.changes:
        shown = [_change(change) for change in found.changes[:CHANGES_SHOWN]]
        head = ["", "instance", "solver", "what", "before", "after", ""]
        lines += ["", table([head, *shown], left=4, indent="")]
    if len(found.changes) > CHANGES_SHOWN:
        lines.append(f"... and {len(found.changes) - CHANGES_SHOWN:,} more changes")
    if found.overall:
        head = ["overall times", "tasks", "after / before", "95 % interval", ""]
        rows = [
            [o.solver, f"{o.count:,}", f"{o.ratio:.3f}", f"{o.low:.3f} - {o.high:.3f}"]
            + ["noise" if o.noise else "slower" if o.ratio > 1 else "faster"]
            for o in found.overall
        ]
        lines += ["", table([head, *rows], indent="")]
    return "\n".join(lines)


def _change(change: BatchChange) -> list[str]:
    size = f"x {change.size:.2f}" if change.what == "seconds" else ""
    if change.what in ("score", "bound"):
        size = f"{change.size:+.2%}"
    cells = [change.instance, change.solver, change.what, change.before, change.after]
    return ["better" if change.better else "worse", *cells, size]


OnProgress = Callable[["RunProgress"], None]

PATIENCE = 10.0
"""Least seconds between progress lines without a terminal."""


def duration(seconds: float) -> str:
    """Return a time in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(progress: RunProgress) -> str:
    """Return a line with numbers of finished and failed solves, and the expected end."""
    total = progress.known + progress.done + progress.left
    parts = [f"{progress.known + progress.done:,} of {total:,} solves"]
    if progress.known:
        parts.append(f"{progress.known:,} known before")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    parts.append(duration(progress.seconds))
    if progress.seconds_left is not None and progress.left:
        end = time.strftime("%H:%M", time.localtime(time.time() + progress.seconds_left))
        parts.append(f"about {duration(progress.seconds_left)} left, until {end}")
    return ", ".join(parts)


def shown(quiet: bool) -> AbstractContextManager[OnProgress | None]:
    """Show the progress of a run on stderr."""
    return on_stderr(quiet, _live, line, PATIENCE)


@contextmanager
def _live() -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.description}")
    console = Console(file=cast(IO[str], Unfailing(sys.stderr)), highlight=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(progress: RunProgress) -> None:
            done = progress.known + progress.done
            bar.update(task, completed=done, total=done + progress.left, description=line(progress))

        yield show


STORE = Path("bench.sqlite")

Suites = Annotated[
    list[Path], typer.Argument(metavar="SUITE", help="Suites (.toml), folders, and instances.")
]
StoreFile = Annotated[Path, typer.Option(metavar="FILE", help="The store of results.")]


@dataclass(frozen=True)
class Overrides:
    """Options that override those of suites."""

    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver", metavar="NAME", help="Solver, instead of those of the suites; repeatable."
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Time limit of each solve, instead of that of the suites."
        ),
    ] = None
    gap: Annotated[
        float | None, typer.Option(metavar="RATIO", help="Relative gap at which to stop.")
    ] = None
    seed: Annotated[
        list[int] | None,
        typer.Option("--seed", metavar="N", help="Seed of the solvers; repeatable."),
    ] = None
    repeats: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How often each instance is solved.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Threads of each search.")
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory-limit",
            "--memory",
            metavar="SIZE",
            help="Memory limit of each worker, such as 2G.",
        ),
    ] = None
    grace: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Seconds past its time limit after which a solve is killed.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the given options under their names in suites."""
        names = {"solver": "solvers", "seed": "seeds"}
        return {
            names.get(name, name): tuple(value) if isinstance(value, list) else value
            for name, value in vars(self).items()
            if value is not None and value != []
        }


Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Number of worker processes; one per core by default.",
    ),
]
InProcess = Annotated[
    bool,
    typer.Option(
        "--in-process", help="Solve in this process, without workers; limits are not enforced."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS|FILE", help="Solve on the workers of this Dask scheduler."),
]
Retry = Annotated[bool, typer.Option("--retry", help="Repeat failed solves.")]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="Text added to the version in the store, to tell runs apart."
    ),
]
Machine = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of this machine in the store.")
]


@options.grouped
def command(
    suites: Suites,
    store: StoreFile = STORE,
    *,
    overrides: Overrides,
    jobs: Jobs = None,
    in_process: InProcess = False,
    dask: Dask = None,
    retry: Retry = False,
    label: Label = None,
    machine: Machine = None,
    quiet: options.Quiet = False,
) -> int:
    """Solve everything in the suites that the store does not have yet.

    The same command continues a run that was interrupted.
    """
    workers = overrides.workers or 1
    options.check_limits(overrides.time_limit, overrides.gap or 0.0, workers)
    for name in BLAS_THREADS:  # workers inherit them
        os.environ.setdefault(name, str(workers))
    with _executor(jobs, in_process, dask) as executor, shown(quiet) as on_progress:
        from layoutopt.bench.run import batch

        report = batch(
            suites,
            store,
            executor,
            overrides=overrides.given(),
            label=label or "",
            machine=machine or "",
            retry=retry,
            on_progress=on_progress,
        )
    return _finish(report, store, quiet)


def _finish(report: Report, store: Path, quiet: bool) -> int:
    """Print the summary of a run, and return the exit code."""
    if not quiet:
        failed = f" (see {store}.logs)" if report.progress.failed else ""
        note(f"{store}: {line(report.progress)}{failed}")
        if report.rows:
            say(summary_table(report.rows))
    if report.signal:
        note(f"layoutopt: interrupted; results are in {store}, the same command continues")
        return SIGNALLED + report.signal
    return 0


def _executor(jobs: int | None, in_process: bool, dask: str | None) -> JobExecutor:
    from layoutopt.bench.executors import DaskCluster, InProcess, Processes

    if sum((jobs is not None, in_process, dask is not None)) > 1:
        raise InputError("give at most one of --jobs, --in-process and --dask")
    if dask is not None:
        return DaskCluster(dask)
    return InProcess() if in_process else Processes(jobs or os.cpu_count() or 1)


class _Group(TyperGroup):
    """A group whose default command is ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *options.HELP):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help="Solve many instances by many solvers, and keep every result in a store.  "
    "'layoutopt bench SUITE...' is short for 'layoutopt bench run SUITE...'.",
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _common(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


app.command("run", cls=options.Command)(command)

Store = Annotated[Path, typer.Argument(metavar="STORE", help="A store of results (SQLite).")]
Solvers = Annotated[
    list[str] | None,
    typer.Option("--solver", metavar="NAME", help="Only this solver; repeatable."),
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance",
        metavar="PATTERN",
        help="Only matching instances, such as 'figures/*'; repeatable.",
    ),
]


@dataclass(frozen=True)
class Filters:
    """Options that choose rows of a store."""

    solver: Solvers = None
    instance: Instances = None
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Only solves of this status, such as failed; repeatable.",
        ),
    ] = None
    version: Annotated[
        list[str] | None,
        typer.Option("--version", metavar="VERSION", help="Only this version; repeatable."),
    ] = None
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", metavar="MACHINE", help="Only this machine; repeatable."),
    ] = None

    def rows(self, path: Path) -> list[Row]:
        """Return the matching rows of a store; raise InputError if there are none."""
        from layoutopt.bench.row import select
        from layoutopt.bench.store import reading

        with reading(path) as store:
            rows = store.rows()
        with errors_at(file=str(path)):
            rows = select(rows, **{name: value or [] for name, value in vars(self).items()})
            if not rows:
                raise InputError("holds no such results")
        return rows


Plot = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="profile|time|gap|trace", help="Kind of the picture; profile by default."
    ),
]


@app.command("show", cls=options.Command)
@options.grouped
def show(
    store: Store,
    *,
    filters: Filters,
    every: Annotated[bool, typer.Option("--rows", help="Print a line for each solve.")] = False,
    output: options.Output = None,
    html: options.Html = None,
    plot: Plot = None,
    svg: streams.Svg = None,
    png: streams.Png = None,
    overwrite: options.Overwrite = False,
) -> int:
    """Summarise a store by solver, or list its solves; write a page or draw a chart."""
    targets = {"--html": html, "--svg": svg, "--png": png}
    options.place_output(output, targets)
    html, svg, png = targets.values()
    options.check_targets(targets, overwrite)
    streams.check_png(png)
    pictured = svg is not None or png is not None
    if plot is not None and not pictured:
        raise InputError(f"--plot {plot} requires --svg FILE or --png FILE")
    rows = filters.rows(store)
    if pictured:
        _draw(rows, plot or "profile", svg, png, overwrite)
    if html is not None:
        _write_page(rows, html, overwrite)
    if "-" not in map(str, targets.values()):
        say(row_table(rows) if every or filters.status else summary_table(rows))
    return 0


def _draw(rows: list[Row], name: str, svg: Path | None, png: Path | None, overwrite: bool) -> None:
    from layoutopt.report.batch import plot

    streams.write_picture(plot(rows, name), svg, png, overwrite)


def _write_page(rows: list[Row], path: Path, overwrite: bool) -> None:
    from layoutopt.report.batch import bench_html

    write_out(bench_html(rows, command_line()).encode(), path, overwrite)


@app.command("export", cls=options.Command)
@options.grouped
def export(
    store: Store,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|json|markdown", help="Format of the output.")
    ] = "csv",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; - is standard output."),
    ] = Path("-"),
    *,
    filters: Filters,
    no_seconds: options.NoSeconds = False,
    overwrite: options.Overwrite = False,
) -> int:
    """Export the solves of a store as CSV, JSON or Markdown."""
    from layoutopt.bench.row import EXPORTS

    if form not in EXPORTS:
        raise InputError(f"--format {form}: allowed: {', '.join(EXPORTS)}")
    options.check_target(output, overwrite)
    rows = filters.rows(store)
    write_out(EXPORTS[form](rows, measured=not no_seconds), output, overwrite)
    return 0


@app.command("diff", cls=options.Command)
def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A store of results (SQLite).")],
    after: Annotated[
        Path | None,
        typer.Argument(metavar="AFTER", help="A second store; the same one by default."),
    ] = None,
    version: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION", help="Version of both sides; given twice: before and after."
        ),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MACHINE", help="Machine of both sides; given twice: before and after."
        ),
    ] = None,
    solver: Solvers = None,
    instance: Instances = None,
    noise: Annotated[
        float | None,
        typer.Option(
            metavar="FACTOR", min=1, help="Smallest ratio of times that counts as a change."
        ),
    ] = None,
) -> int:
    """Compare two runs: what became better or worse, beyond noise."""
    from layoutopt.bench.analysis import NOISE, difference
    from layoutopt.bench.row import side

    versions, machines = _both(version, "--version"), _both(machine, "--machine")
    sides: list[list[Row]] = []
    for store, one, other in zip((before, after or before), versions, machines, strict=True):
        rows = Filters(solver, instance).rows(store)
        with errors_at(file=str(store)):
            sides.append(side(rows, one, other))
    say(change_table(difference(sides[0], sides[1], noise or NOISE)))
    return 0


def _both(given: list[str] | None, option: str) -> tuple[str | None, str | None]:
    """Return an option's values for both sides, from one value for both or one for each."""
    words = given or []
    if len(words) > 2:
        raise InputError(f"{option} may be given at most twice, for before and after")
    return (words[0], words[-1]) if words else (None, None)
