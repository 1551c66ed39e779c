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
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Protocol, TextIO, TypeVar, cast

import typer

from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import number
from layoutopt.base.table import Table

if TYPE_CHECKING:
    from layoutopt.base.limits import Progress
    from layoutopt.graphs.unwinding import Graph


STDIN, STDOUT, STDERR = 0, 1, 2

STDOUT_NAME = "standard output"
"""Name of the stream in errors."""


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
    """Print a line to stdout, unless its reader has closed it.

    Raises
    ------
    InputError
        If it cannot be written.
    """
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


def write_graph(graph: Graph, target: Path, overwrite: bool, quiet: bool) -> None:
    """Write an instance file, and its summary unless the file is standard output."""
    from layoutopt.io.instance import instance_bytes, write_instance

    if str(target) == "-":
        write_out(instance_bytes(graph), target, overwrite)
        return
    write_instance(graph, target, overwrite=overwrite)
    if not quiet:
        free = sum(t.size for t in graph.sinks())
        say(f"{target}: {len(graph.ops):,} ops, {len(graph.pairs):,} pairs, {free:,} free")


def write_out(data: bytes, path: Path, overwrite: bool) -> None:
    """Write bytes to a file, or to stdout for ``-``.

    Raises
    ------
    InputError
        If that fails; the message says where the bytes were saved instead.
    """
    from layoutopt.base.files import write_bytes

    if str(path) == "-":
        _write_stdout(data)
    else:
        saved(lambda target: write_bytes(target, data, overwrite=overwrite), path)


@contextmanager
def all_done() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield a context manager for several independent attempts, all of which are made.

    Raises
    ------
    InputError
        The first error of an attempt, raised after the last.
    """
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
    """Write a file, or if that fails a temporary one.

    Raises
    ------
    InputError
        If the file could not be written; the message names the temporary one.
    """
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
    return shlex.join(["layoutopt", *sys.argv[1:]])


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


Svg = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write a picture as SVG; - is standard output."),
]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write a picture as PNG.")]


def check_png(path: Path | None) -> None:
    """Refuse PNG to standard output, or without the packages for it."""
    if str(path) == "-":
        raise InputError("--png -: a file is required")
    if path is not None:
        from layoutopt.report import raster

        raster.check_installed()


def write_picture(picture: str, svg: Path | None, png: Path | None, overwrite: bool) -> None:
    """Write a picture, given as SVG, in the requested formats."""
    from layoutopt.base.files import write_bytes
    from layoutopt.report import raster

    if png is not None:
        write_bytes(png, raster.png(picture), overwrite=overwrite)
    if svg is not None:
        write_out(f"{picture}\n".encode(), svg, overwrite)


def table(rows: Sequence[Sequence[str]], left: int = 1, indent: str = "  ") -> str:
    """Return rows in aligned columns; see :meth:`~layoutopt.base.table.Table.text`."""
    return Table((), rows, left).text(indent)


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
