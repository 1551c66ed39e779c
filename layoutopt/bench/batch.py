"""A whole batch run, from suites to rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layoutopt import __version__
from layoutopt.bench.executors import Team
from layoutopt.bench.plan import asked, plan
from layoutopt.bench.row import Row
from layoutopt.bench.run import Standing, Tell, run
from layoutopt.bench.store import writing
from layoutopt.bench.suite import read_suite
from layoutopt.errors import InputError


@dataclass(frozen=True)
class Report:
    """What came of a batch run.

    Parameters
    ----------
    rows
        All rows that the suites ask for and the store has, known before or new.
    standing
        How far the run came.
    signal
        Number of the signal that ended it early, or 0.
    """

    rows: list[Row]
    standing: Standing
    signal: int


def batch(
    suites: Sequence[str | Path],
    store: str | Path,
    team: Team,
    *,
    wishes: Mapping[str, Any] | None = None,
    label: str = "",
    machine: str = "",
    retry: bool = False,
    tell: Tell | None = None,
) -> Report:
    """Solve what suites name, but for what a store knows, and keep each result there at once.

    Parameters
    ----------
    suites, wishes
        Files and folders, and entries that replace theirs; see
        :func:`~layoutopt.bench.suite.read_suite`.
    store
        The file, made if there is none.
    team
        Who solves; see :mod:`layoutopt.bench.executors`.
    label
        Added to the version, to tell states of a working copy apart.
    machine
        What the store calls the machine, instead of the team's name for it.
    retry
        Whether failures are done again.
    tell
        Called with every :class:`~layoutopt.bench.run.Standing`.

    Raises
    ------
    InputError
        If a suite is wrong, or the store cannot be used.
    WorkerError
        If no worker can be started.
    """
    read = [read_suite(path, team.solvers, **(wishes or {})) for path in suites]
    if not team.isolated and any(solve.memory for suite in read for solve in suite.solves):
        raise InputError("a memory limit needs workers; this process cannot be limited")
    version = f"{__version__}+{label}" if label else __version__
    with writing(store) as opened:
        todo = plan(read, opened, version, machine or team.machine, team.slots, retry)
        standing, signal = run(todo, opened, team, retry=retry, tell=tell)
        return Report(asked(todo, opened), standing, signal)
