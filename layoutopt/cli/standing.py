"""How far a batch run has come: a live line on a terminal, few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, TYPE_CHECKING, cast

from layoutopt.cli.progress import on_stderr
from layoutopt.cli.streams import Unfailing

if TYPE_CHECKING:
    from layoutopt.bench.run import Standing

Tell = Callable[["Standing"], None]

PATIENCE = 10.0
"""Seconds between plain lines, at least."""


def duration(seconds: float) -> str:
    """Return a time in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(standing: Standing) -> str:
    """Return in one line what is done, what failed, and when the end is expected."""
    total = standing.known + standing.done + standing.left
    parts = [f"{standing.known + standing.done:,} of {total:,} solves"]
    if standing.known:
        parts.append(f"{standing.known:,} known before")
    if standing.failed:
        parts.append(f"{standing.failed:,} failed")
    parts.append(duration(standing.seconds))
    if standing.seconds_left is not None and standing.left:
        end = time.strftime("%H:%M", time.localtime(time.time() + standing.seconds_left))
        parts.append(f"about {duration(standing.seconds_left)} left, until {end}")
    return ", ".join(parts)


def shown(quiet: bool) -> AbstractContextManager[Tell | None]:
    """Show on stderr how far a run has come."""
    return on_stderr(quiet, _live, line, PATIENCE)


@contextmanager
def _live() -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.description}")
    console = Console(file=cast(IO[str], Unfailing(sys.stderr)), highlight=False)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def tell(standing: Standing) -> None:
            done = standing.known + standing.done
            progress.update(
                task, completed=done, total=done + standing.left, description=line(standing)
            )

        yield tell
