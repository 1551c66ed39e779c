"""Progress of a computation: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Protocol, TypeVar, cast

from layoutopt.base.numbers import number
from layoutopt.cli.streams import Unfailing, note

if TYPE_CHECKING:
    from layoutopt.base.limits import Progress

Tell = Callable[["Progress"], None]


class _Timed(Protocol):
    """Messages with the elapsed seconds."""

    @property
    def seconds(self) -> float: ...


M = TypeVar("M", bound=_Timed)


def line(message: Progress) -> str:
    """Return a message as text: time, phase, incumbent, bound, gap."""
    parts = [f"{message.seconds:7.1f} s", message.phase]
    if message.objective is not None:
        parts.append(f"score {number(message.objective)}")
    if message.bound is not None:
        parts.append(f"bound {number(message.bound)}")
    if message.gap is not None and (message.objective or not message.gap):
        parts.append(f"gap {message.gap:.3%}")
    return "  ".join(parts)


def both(first: Tell, second: Tell | None) -> Tell:
    """Return a callback that calls both."""

    def tell(message: Progress) -> None:
        first(message)
        if second is not None:
            second(message)

    return tell


def shown(quiet: bool) -> AbstractContextManager[Tell | None]:
    """Show messages on stderr while a computation runs."""
    return on_stderr(quiet, _live, line, patience=1.0)


@contextmanager
def on_stderr(
    quiet: bool,
    live: Callable[[], AbstractContextManager[Callable[[M], None]]],
    line: Callable[[M], str],
    patience: float,
) -> Iterator[Callable[[M], None] | None]:
    """Show progress: one live line on a terminal, plain lines elsewhere.

    Parameters
    ----------
    quiet
        Show nothing, and yield ``None``.
    live
        Display of messages on a terminal.
    line
        Returns a message as text.
    patience
        Least seconds between plain lines; at least a twentieth of the elapsed time.
    """
    if quiet:
        yield None
    elif sys.stderr is not None and sys.stderr.isatty():
        with live() as tell:
            yield tell
    else:
        yield _lines(line, patience)


def _lines(line: Callable[[M], str], patience: float) -> Callable[[M], None]:
    last = time.monotonic()

    def tell(message: M) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= max(patience, message.seconds / 20):
            note(line(message))
            last = now

    return tell


@contextmanager
def _live() -> Iterator[Tell]:
    from rich.console import Console

    console = Console(file=cast(IO[str], Unfailing(sys.stderr)), highlight=False)
    told = LastMessage()
    with console.status(told):
        yield told.tell


class LastMessage:
    """The last message as a line with a running clock."""

    def __init__(self) -> None:
        self.message: Progress | None = None
        self.ahead = 0.0

    def tell(self, message: Progress) -> None:
        """Replace the shown message."""
        self.ahead = time.monotonic() - message.seconds
        self.message = message

    def __rich__(self) -> str:
        if self.message is None:
            return ""
        return line(replace(self.message, seconds=time.monotonic() - self.ahead))
