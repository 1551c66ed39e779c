"""What a running computation says: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from layoutopt.cli.streams import Unfailing, note
from layoutopt.cli.text import number

if TYPE_CHECKING:
    from layoutopt.limits import Progress

Tell = Callable[["Progress"], None]


def line(message: Progress) -> str:
    """Return a message as text: time, phase, incumbent, bound, gap."""
    parts = [f"{message.seconds:7.1f} s", message.phase]
    if message.objective is not None:
        parts.append(f"score {number(message.objective)}")
    if message.bound is not None:
        parts.append(f"bound {number(message.bound)}")
    if message.gap is not None:
        parts.append(f"gap {message.gap:.3%}")
    return "  ".join(parts)


def both(first: Tell, second: Tell | None) -> Tell:
    """Return what passes messages on to both."""

    def tell(message: Progress) -> None:
        first(message)
        if second is not None:
            second(message)

    return tell


@contextmanager
def shown(quiet: bool) -> Iterator[Tell | None]:
    """Show messages on stderr while a computation runs."""
    if quiet:
        yield None
    elif sys.stderr is not None and sys.stderr.isatty():
        with _live() as tell:
            yield tell
    else:
        yield _Lines()


class _Lines:
    """Plain lines: at most one a second, and fewer as time goes by."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.phase = ""

    def __call__(self, message: Progress) -> None:
        now = time.monotonic()
        if now - self.last >= max(1.0, message.seconds / 20):
            note(line(message))
            self.last = now


@contextmanager
def _live() -> Iterator[Tell]:
    from rich.console import Console

    console = Console(file=cast(IO[str], Unfailing(sys.stderr)), highlight=False)
    with console.status("") as status:

        def tell(message: Progress) -> None:
            status.update(line(message))

        yield tell
