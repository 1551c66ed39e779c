"""``layoutopt bench``: batch runs and their stores of results."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer.core import TyperGroup

from layoutopt.base.errors import InputError, errors_at, printable
from layoutopt.base.numbers import ratio
from layoutopt.base.table import Table
from layoutopt.cli import options
from layoutopt.cli.options import BLAS_THREADS, SIGNALLED, OutputFiles, argument, flag, option
from layoutopt.cli.streams import command_line, note, say, shown

if TYPE_CHECKING:
    from layoutopt.bench.analysis import BatchChange, Difference
    from layoutopt.bench.executors import JobExecutor
    from layoutopt.bench.row import Row
    from layoutopt.bench.run import RunProgress

CHANGES_SHOWN = 40

PATIENCE = 10.0  # least seconds between progress lines without a terminal


def summary_table(rows: Sequence[Row]) -> str:
    """Return a line per solver, with version and machine if there are several."""
    from layoutopt.bench.analysis import summaries

    found = summaries(rows)
    columns = {name: [getattr(s, name) for s in found] for name in ("solver", "version", "machine")}
    for name in ("solves", "optimal", "feasible", "infeasible", "unknown", "failed"):
        columns[name] = [f"{getattr(s, name):,}" for s in found]
    columns["mean gap"] = [ratio(s.gap) for s in found]
    columns["seconds"] = [f"{s.seconds:.3f}" for s in found]
    columns["behind"] = [f"{s.behind:,}" for s in found]
    columns["mean loss"] = [ratio(s.loss) for s in found]
    for name in ("infeasible", "unknown", "failed"):
        if {*columns[name]} == {"0"}:
            del columns[name]
    for name in ("version", "machine"):
        if len({*columns[name]}) == 1:
            del columns[name]
    left = len(columns.keys() & {"solver", "version", "machine"})
    return Table([*columns], [*zip(*columns.values(), strict=True)], left).text("")


def row_table(rows: Sequence[Row]) -> str:
    """Return a line per row, followed by those of errors."""
    from layoutopt.bench.analysis import best_of, best_scores, loss
    from layoutopt.bench.row import cells

    best = best_scores(rows)
    lines = []
    for row in rows:
        lost = ratio(loss(row, best), best_of(row, best))
        lines.append([*cells(row), lost])
    head = ["instance", "solver", "status", "score", "bound", "gap", "seconds", "MiB", "loss"]
    errors = [
        printable(f"{row.instance} {row.solver}: {row.error} ({row.log})")
        for row in rows
        if row.error
    ]
    return "\n".join([Table(head, lines, 3).text(""), *errors])


def change_table(found: Difference) -> str:
    """Return the changes for worse and better, and the ratios of times."""
    worse = sum(not change.better for change in found.changes)
    lines = [
        f"{found.compared:,} tasks on both sides, {found.only_before:,} only before, "
        f"{found.only_after:,} only after: {worse:,} worse, {len(found.changes) - worse:,} better"
    ]
    if found.changes:
        head = ["", "instance", "solver", "what", "before", "after", ""]
        changes = [_change(change) for change in found.changes[:CHANGES_SHOWN]]
        table = Table(head, changes, 4, len(found.changes) - CHANGES_SHOWN, "change")
        lines += ["", table.text("")]
    if found.overall:
        head = ["overall times", "tasks", "after / before", "95 % interval", ""]
        rows = [
            [o.solver, f"{o.count:,}", f"{o.ratio:.3f}", f"{o.low:.3f} - {o.high:.3f}"]
            + ["noise" if o.noise else "slower" if o.ratio > 1 else "faster"]
            for o in found.overall
        ]
        lines += ["", Table(head, rows).text("")]
    return "\n".join(lines)


def _change(change: BatchChange) -> list[str]:
    size = f"x {change.size:.2f}" if change.what == "seconds" else ""
    if change.what in ("score", "bound"):
        size = f"{change.size:+.2%}"
    cells = [change.instance, change.solver, change.what, change.before, change.after]
    return ["better" if change.better else "worse", *cells, size]


def duration(seconds: float) -> str:
    """Return a time in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(progress: RunProgress) -> str:
    """Return a line with numbers of finished and failed solves, and the expected end."""
    finished, total = share(progress)
    parts = [f"{finished:,} of {total:,} solves"]
    if progress.known:
        parts.append(f"{progress.known:,} known before")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    parts.append(duration(progress.seconds))
    if progress.seconds_left is not None and progress.left:
        end = time.strftime("%H:%M", time.localtime(time.time() + progress.seconds_left))
        parts.append(f"about {duration(progress.seconds_left)} left, until {end}")
    return ", ".join(parts)


def share(progress: RunProgress) -> tuple[int, int]:
    """Return the numbers of finished and of all solves."""
    finished = progress.known + progress.done
    return finished, finished + progress.left


@dataclass(frozen=True)
class Overrides:
    """Options that override those of suites."""

    solver: Annotated[
        list[str] | None, option("NAME", "Solver, instead of those of the suites; repeatable.")
    ] = None
    time_limit: Annotated[
        float | None, option("SECONDS", "Time limit of each solve, instead of that of the suites.")
    ] = None
    gap: Annotated[float | None, option("RATIO", "Relative gap at which to stop.")] = None
    seed: Annotated[list[int] | None, option("N", "Seed of the solvers; repeatable.")] = None
    repeats: Annotated[int | None, option("N", "How often each instance is solved.", min=1)] = None
    workers: Annotated[int | None, option("N", "Threads of each search.", min=1)] = None
    memory: Annotated[
        str | None,
        option("SIZE", "Memory limit of each worker, such as 2G.", "--memory-limit", "--memory"),
    ] = None
    grace: Annotated[
        float | None,
        option("SECONDS", "Seconds past its time limit after which a solve is killed.", min=0),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the given options under their names in suites."""
        names = {"solver": "solvers", "seed": "seeds"}
        return {
            names.get(name, name): tuple(value) if isinstance(value, list) else value
            for name, value in vars(self).items()
            if value is not None and value != []
        }


@options.grouped
def command(
    suites: Annotated[list[Path], argument("SUITE", "Suites (.toml), folders, and instances.")],
    store: Annotated[Path, option("FILE", "The store of results.")] = Path("bench.sqlite"),
    *,
    overrides: Overrides,
    jobs: Annotated[
        int | None,
        option("N", "Number of worker processes; one per core by default.", "--jobs", "-j", min=1),
    ] = None,
    in_process: Annotated[
        bool,
        flag("Solve in this process, without workers; limits are not enforced.", "--in-process"),
    ] = False,
    dask: Annotated[
        str | None, option("ADDRESS|FILE", "Solve on the workers of this Dask scheduler.")
    ] = None,
    retry: Annotated[bool, flag("Repeat failed solves.", "--retry")] = False,
    label: Annotated[
        str, option("TEXT", "Text added to the version in the store, to tell runs apart.")
    ] = "",
    machine: Annotated[str, option("NAME", "Name of this machine in the store.")] = "",
    quiet: options.Quiet = False,
) -> int:
    """Solve everything in the suites that the store does not have yet.

    The same command continues a run that was interrupted.
    """
    workers = overrides.workers or 1
    options.limit(overrides.time_limit, None, overrides.gap or 0.0, workers)
    for name in BLAS_THREADS:  # workers inherit them
        os.environ.setdefault(name, str(workers))
    with (
        _executor(jobs, in_process, dask) as executor,
        shown(quiet, line, PATIENCE, share) as on_progress,
    ):
        from layoutopt.bench.run import batch

        report = batch(
            suites,
            store,
            executor,
            overrides=overrides.given(),
            label=label,
            machine=machine,
            retry=retry,
            on_progress=on_progress,
        )
    if not quiet:
        failed = f" (see {store}.logs)" if report.progress.failed else ""
        note(f"{store}: {line(report.progress)}{failed}")
        if report.rows:
            say(summary_table(report.rows))
    if report.interrupted:
        note(f"layoutopt: results are in {store}, the same command continues")
        return SIGNALLED + signal.SIGINT
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


app = options.group(
    cls=_Group,
    help="Solve many instances by many solvers, and keep every result in a store.  "
    "'layoutopt bench SUITE...' is short for 'layoutopt bench run SUITE...'.",
)
app.command("run", cls=options.Command)(command)

Store = Annotated[Path, argument("STORE", "A store of results (SQLite).")]
Solvers = Annotated[list[str] | None, option("NAME", "Only this solver; repeatable.", "--solver")]
Instances = Annotated[
    list[str] | None,
    option("PATTERN", "Only matching instances, such as 'figures/*'; repeatable.", "--instance"),
]


@dataclass(frozen=True)
class Filters:
    """Options that choose rows of a store."""

    solver: Solvers = None
    instance: Instances = None
    status: Annotated[
        list[str] | None,
        option("STATUS", "Only solves of this status, such as failed; repeatable."),
    ] = None
    version: Annotated[list[str] | None, option("VERSION", "Only this version; repeatable.")] = None
    machine: Annotated[list[str] | None, option("MACHINE", "Only this machine; repeatable.")] = None

    def rows(self, path: Path) -> list[Row]:
        """Return the matching rows of a store.

        Raise InputError if there are none, unless those of a status were wanted.
        """
        from layoutopt.bench.row import select
        from layoutopt.bench.store import reading

        with reading(path) as store:
            rows = store.rows()
        with errors_at(file=str(path)):
            rows = select(rows, **{name: value or [] for name, value in vars(self).items()})
            if not rows and not self.status:
                raise InputError("holds no such results")
        return rows


@app.command("show", cls=options.Command)
@options.grouped
def show(
    store: Store,
    *,
    filters: Filters,
    every: Annotated[bool, flag("Print a line for each solve.", "--rows")] = False,
    output: options.Output = None,
    html: options.Html = None,
    plot: Annotated[
        str | None, option("profile|time|gap|trace", "Kind of the picture; profile by default.")
    ] = None,
    svg: options.Svg = None,
    png: options.Png = None,
    overwrite: options.Overwrite = False,
) -> int:
    """Summarise a store by solver, or list its solves; write a page or draw a chart."""
    from layoutopt.report import batch

    files = {"--html": html, "--svg": svg, "--png": png}
    outputs = OutputFiles(files, overwrite, output=output, inputs=[store])
    if plot is not None and not outputs.pictured:
        raise InputError(f"--plot {plot} requires --svg FILE or --png FILE")
    rows = filters.rows(store)
    picture = batch.plot(rows, plot or "profile") if outputs.pictured else ""
    page = {"--html": lambda: batch.bench_html(rows, command_line()).encode()}
    outputs.write(
        options.picture_makers(picture) | page,
        lambda: row_table(rows) if every or filters.status else summary_table(rows),
    )
    return 0


@app.command("export", cls=options.Command)
@options.grouped
def export(
    store: Store,
    form: Annotated[
        str | None,
        option("csv|json|markdown", "Format; by default as FILE ends, csv for -.", "--format"),
    ] = None,
    output: Annotated[
        Path, option("FILE", "File to write; - is standard output.", "--output", "-o")
    ] = Path("-"),
    *,
    filters: Filters,
    no_seconds: options.NoSeconds = False,
    overwrite: options.Overwrite = False,
) -> int:
    """Export the solves of a store as CSV, JSON or Markdown."""
    from layoutopt.bench.row import EXPORTS

    outputs = OutputFiles({"--output": output}, overwrite, True, inputs=[store])
    if form is None:
        files: options.Files = dict.fromkeys(f"--{name}" for name in EXPORTS)
        options.place_output(output, files)
        form = next(name for name in EXPORTS if files[f"--{name}"])
    if form not in EXPORTS:
        raise InputError(f"--format {form}: allowed: {', '.join(EXPORTS)}")
    rows = filters.rows(store)
    outputs.write({"--output": lambda: EXPORTS[form](rows, measured=not no_seconds)})
    return 0


@app.command("diff", cls=options.Command)
def diff(
    before: Annotated[Path, argument("BEFORE", "A store of results (SQLite).")],
    after: Annotated[
        Path | None, argument("AFTER", "A second store; the same one by default.")
    ] = None,
    version: Annotated[
        list[str] | None, option("VERSION", "Version of both sides; given twice: before and after.")
    ] = None,
    machine: Annotated[
        list[str] | None, option("MACHINE", "Machine of both sides; given twice: before and after.")
    ] = None,
    solver: Solvers = None,
    instance: Instances = None,
    noise: Annotated[
        float | None, option("FACTOR", "Smallest ratio of times that counts as a change.", min=1)
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
    if after is None and sides[0] == sides[1]:
        reason = "is compared with itself; give a second store, or --version or --machine twice"
        raise InputError(reason, file=str(before))
    say(change_table(difference(sides[0], sides[1], noise or NOISE)))
    return 0


def _both(given: list[str] | None, option: str) -> tuple[str | None, str | None]:
    """Return an option's values for both sides, from one value for both or one for each."""
    words = given or []
    if len(words) > 2:
        raise InputError(f"{option} may be given at most twice, for before and after")
    return (words[0], words[-1]) if words else (None, None)
