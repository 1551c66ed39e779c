"""Standard streams and output files, and progress of a computation.

Results that cannot be written are saved elsewhere.  Progress is one live line on a terminal, plain
lines elsewhere.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias, cast

from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import number

if TYPE_CHECKING:
    from layoutopt.base.limits import Progress


STDIN, STDOUT, STDERR = 0, 1, 2

STDOUT_NAME = "standard output"  # name of the stream in errors


def open_streams() -> None:
    """Open closed standard streams, whose numbers other files would get otherwise."""
    for stream in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Redirect stdout of native code and users' functions to stderr.

    HiGHS prints lines that no option suppresses, which would corrupt JSON.
    """
    flush()
    kept = os.dup(STDOUT)
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        with suppress(OSError, ValueError):  # errors of output for stderr are ignored
            if sys.stdout is not None:
                sys.stdout.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def say(text: str) -> None:
    """Print a line to stdout, unless its reader has closed it."""
    if sys.stdout is None:
        return
    with _told_stdout():
        sys.stdout.write(_shown(text, sys.stdout) + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    """Print a line to stderr; failures are ignored."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(_shown(text, sys.stderr) + "\n")
            sys.stderr.flush()


class Unfailing:
    """A text stream that ignores failures of output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if possible."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def flush() -> None:
    """Flush stdout; see :func:`say`."""
    if sys.stdout is not None:
        with _told_stdout():
            sys.stdout.flush()


def discard_stdout() -> None:
    """Discard all further output."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STDOUT)
        os.close(nowhere)


def write_out(data: bytes, path: Path, overwrite: bool) -> None:
    """Write bytes to a file, or to stdout for ``-``; errors say where they were saved instead."""
    from layoutopt.base.files import write_bytes

    if str(path) == "-":
        _write_stdout(data)
    else:
        saved(lambda target: write_bytes(target, data, overwrite=overwrite), path)


@contextmanager
def all_done() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield a context manager for independent attempts; the first error is raised at the end."""
    troubles: list[InputError] = []

    @contextmanager
    def attempt() -> Iterator[None]:
        try:
            yield
        except InputError as error:
            troubles.append(error)

    with attempt():
        yield attempt
    if troubles:
        raise troubles[0]


def saved(write: Callable[[Path], object], path: Path) -> None:
    """Write a file, or if that fails a temporary one, which the error names."""
    try:
        write(path)
    except InputError as error:
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="layoutopt-"))
            write(folder / path.name)
        except (InputError, OSError):
            with suppress(OSError):
                if folder is not None:
                    folder.rmdir()
            raise error from None
        reason = f"{error.reason}; it was saved as {folder / path.name}"
        raise InputError(reason, error.place, error.file) from None


def command_line() -> str:
    """Return the command line of this process, quoted for a shell."""
    every = (os.fsencode(word).decode("utf-8", "replace") for word in sys.argv[1:])
    return shlex.join(["layoutopt", *every])


def _write_stdout(data: bytes) -> None:
    if sys.stdout is None:
        raise InputError("cannot be written (it is closed)", file=STDOUT_NAME)
    with _told_stdout():
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:  # replaced by a text stream
            sys.stdout.write(data.decode())
        else:
            sys.stdout.flush()
            binary.write(data)
        sys.stdout.flush()


@contextmanager
def _told_stdout() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        raise InputError(f"cannot be written ({error.strerror})", file=STDOUT_NAME) from None


def _shown(text: str, stream: TextIO) -> str:
    """Return a text with characters escaped that a stream or terminal cannot show."""
    encoding = stream.encoding or "utf-8"
    text = printable(text, keep="\n")
    return text.encode(encoding, "backslashreplace").decode(encoding)


Tell: TypeAlias = Callable[[Any], None]
"""Takes messages of progress: dataclasses with the elapsed ``seconds``."""


def line(message: Progress) -> str:
    """Return a message as text: time, phase, incumbent, bound, gap."""
    parts = [f"{message.seconds:7.1f} s", message.phase]
    for name, value in (("best", message.objective), ("bound", message.bound)):
        parts += [] if value is None else [f"{name} {number(value)}"]
    gap = message.gap
    if gap is not None and isfinite(gap) and (message.objective or not gap):
        parts.append(f"gap {gap:,.3%}")
    return "  ".join(parts)


@contextmanager
def shown(
    quiet: bool,
    line: Callable[[Any], str] = line,
    patience: float = 1.0,
    share: Callable[[Any], tuple[int, int]] | None = None,
) -> Iterator[Tell | None]:
    """Show progress on stderr: one live line on a terminal, plain lines elsewhere.

    Plain lines are at least ``patience`` seconds and a twentieth of the elapsed time apart.  A
    share of finished work is shown as a bar; otherwise the seconds of the live line run on.
    """
    if quiet:
        yield None
    elif sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _plain(line, patience)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn

        unicode = sys.stderr.encoding.lower().startswith("utf")
        columns: list[ProgressColumn] = [SpinnerColumn("dots" if unicode else "line")]
        if share is not None:
            columns = [BarColumn(), TextColumn("{task.percentage:>3.0f}%")]
        columns.append(TextColumn("{task.description}", markup=False))
        console = Console(file=cast(IO[str], Unfailing(sys.stderr)), highlight=False)
        last = LastMessage(line)
        with Progress(*columns, console=console, transient=True) as live:
            task = live.add_task(cast(str, last), total=None)

            def tell(message: Any) -> None:
                last.message, last.at = message, time.monotonic()
                if share is not None:
                    done, total = share(message)
                    live.update(task, completed=done, total=total, description=line(message))

            yield tell


def _plain(line: Callable[[Any], str], patience: float) -> Tell:
    last = time.monotonic()

    def tell(message: Any) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= max(patience, message.seconds / 20):
            note(line(message))
            last = now

    return tell


class LastMessage:
    """The last message as a text with a running clock."""

    def __init__(self, line: Callable[[Any], str]) -> None:
        self.line, self.at = line, 0.0
        self.message: Any = None

    def __str__(self) -> str:
        if self.message is None:
            return ""
        seconds = self.message.seconds + time.monotonic() - self.at
        return self.line(replace(self.message, seconds=seconds))
