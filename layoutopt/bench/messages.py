"""Messages of a worker process to the process that watches it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from layoutopt.bench.job import Outcome
from layoutopt.bench.work import Instance


class Ready(NamedTuple):
    """The worker hears jobs from now on.

    Parameters
    ----------
    solvers
        Names of all solvers that it has.
    """

    solvers: tuple[str, ...]


class Full(NamedTuple):
    """A job is not taken: the worker has more memory already than it may have for it."""

    reason: str


class Made(NamedTuple):
    """The instance of a job is there."""

    instance: Instance


class NotMade(NamedTuple):
    """The instance of a job cannot be made."""

    reason: str
    log: str


class SolveDone(NamedTuple):
    """One solve is over.

    Parameters
    ----------
    worn
        Whether the worker had better be replaced, because of what happened, or as a solver still
        runs.
    """

    outcome: Outcome
    worn: bool


Message: TypeAlias = Ready | Full | Made | NotMade | SolveDone
