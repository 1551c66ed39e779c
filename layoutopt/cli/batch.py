"""``layoutopt bench run``: many instances by many solvers, every result in a store."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import options
from layoutopt.cli.rows import summary_table
from layoutopt.cli.standing import line, shown
from layoutopt.cli.streams import note, say
from layoutopt.errors import InputError

if TYPE_CHECKING:
    from layoutopt.bench.executors import Team
    from layoutopt.bench.run import Report

STORE = Path("bench.sqlite")

SIGNALLED = 128
"""Added to the number of a signal, the exit code of a process that it ended."""

BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What libraries of linear algebra look at, which else take all cores."""

Suites = Annotated[
    list[Path], typer.Argument(metavar="SUITE...", help="Suites (.toml), folders and instances.")
]
StoreFile = Annotated[Path, typer.Option(metavar="FILE", help="Where results are kept.")]
Solvers = Annotated[
    list[str] | None,
    typer.Option("--solver", metavar="NAME", help="Again for each, in place of the suite's."),
]
TimeLimit = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="For each solve, in place of the suite's.")
]
Gap = Annotated[float | None, typer.Option(metavar="RATIO", help="Relative gap to stop at.")]
Seeds = Annotated[
    list[int] | None, typer.Option("--seed", metavar="N", help="Of solvers; again for each.")
]
Repeats = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="How often the same is solved.")
]
Workers = Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads of each search.")]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", "--memory", metavar="SIZE", help="What a worker may take, as in 2G."
    ),
]
Grace = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0, help="A solve is killed so long past its limit."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="Workers; one per core by default."),
]
InProcess = Annotated[
    bool, typer.Option("--in-process", help="Solve here: no workers, and no limits that hold.")
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS|FILE", help="Solve on the workers of a Dask scheduler."),
]
Retry = Annotated[bool, typer.Option("--retry", help="Do again what failed.")]
Label = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What is measured, added to the version in the store."),
]
Machine = Annotated[
    str | None, typer.Option(metavar="NAME", help="What the store calls the machine.")
]


def command(
    suites: Suites,
    store: StoreFile = STORE,
    solver: Solvers = None,
    time_limit: TimeLimit = None,
    gap: Gap = None,
    seed: Seeds = None,
    repeats: Repeats = None,
    workers: Workers = None,
    memory: Memory = None,
    grace: Grace = None,
    jobs: Jobs = None,
    in_process: InProcess = False,
    dask: Dask = None,
    retry: Retry = False,
    label: Label = None,
    machine: Machine = None,
    quiet: options.Quiet = False,
) -> int:
    """Solve what the suites name, but for what the store knows already.

    A run that was ended, in whatever way, is continued by the same command.
    """
    options.check_limits(time_limit, gap or 0.0, workers or 1)
    wishes = {
        "solvers": tuple(solver or ()) or None,
        "time_limit": time_limit,
        "gap": gap,
        "seeds": tuple(seed or ()) or None,
        "repeats": repeats,
        "workers": workers,
        "memory": memory,
        "grace": grace,
    }
    for name in BLAS_THREADS:  # workers inherit them
        os.environ.setdefault(name, str(workers or 1))
    with _team(jobs, in_process, dask) as team, shown(quiet) as tell:
        from layoutopt.bench.run import batch

        report = batch(
            suites,
            store,
            team,
            wishes={name: value for name, value in wishes.items() if value is not None},
            label=label or "",
            machine=machine or "",
            retry=retry,
            tell=tell,
        )
    return _told(report, store, quiet)


def _told(report: Report, store: Path, quiet: bool) -> int:
    """Tell what came of a run, and return the exit code."""
    if not quiet:
        failed = f" (see {store}.logs)" if report.standing.failed else ""
        note(f"{store}: {line(report.standing)}{failed}")
        if report.rows:
            say(summary_table(report.rows))
    if report.signal:
        told = f"layoutopt: interrupted; what is done is in {store}, the same command continues"
        note(told)
        return SIGNALLED + report.signal
    return 0


def _team(jobs: int | None, in_process: bool, dask: str | None) -> AbstractContextManager[Team]:
    from layoutopt.bench.executors import cluster, here, processes

    if sum((jobs is not None, in_process, dask is not None)) > 1:
        raise InputError("--jobs, --in-process and --dask exclude each other")
    if dask is not None:
        return cluster(dask)
    return here() if in_process else processes(jobs or os.cpu_count() or 1)
