"""Standard streams and files of answers: nothing that is found out gets lost on the way out."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from layoutopt.base.errors import InputError, printable
from layoutopt.base.table import Table

STDIN, STDOUT, STDERR = 0, 1, 2

STDOUT_NAME = "standard output"
"""What errors call it."""


def open_streams() -> None:
    """Occupy the numbers of standard streams that are closed, which a file would get else."""
    for stream in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Send to stderr what native code, or a user's function, writes to stdout.

    HiGHS has been seen to print a line past every switch for silence, which would spoil JSON.
    """
    flush()
    kept = os.dup(STDOUT)
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        with suppress(OSError, ValueError):  # what was printed is for stderr, as is its trouble
            if sys.stdout is not None:
                sys.stdout.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def say(text: str) -> None:
    """Print a line to stdout, if that is open.

    Raises
    ------
    InputError
        If it cannot be written.  A reader that has gone is no trouble: nothing more is printed.
    """
    if sys.stdout is None:
        return
    with _told_stdout():
        sys.stdout.write(_shown(text, sys.stdout) + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    """Print a line to stderr; if that cannot be, nobody wants to know."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(_shown(text, sys.stderr) + "\n")
            sys.stderr.flush()


class Unfailing:
    """A stream of text that may break: nothing that is written to it stops a computation."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if that can be."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if that can be."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def flush() -> None:
    """Write out what stdout still holds; see :func:`say`."""
    if sys.stdout is not None:
        with _told_stdout():
            sys.stdout.flush()


def discard_stdout() -> None:
    """Let everything that is still printed go nowhere."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STDOUT)
        os.close(nowhere)


def write_out(data: bytes, path: Path, overwrite: bool) -> None:
    """Write what ends with a line feed to a file, or to stdout for ``-``.

    Raises
    ------
    InputError
        If that fails; it says where the bytes are instead.
    """
    from layoutopt.base.files import write_bytes

    if str(path) == "-":
        _write_stdout(data)
    else:
        saved(lambda target: write_bytes(target, data, overwrite=overwrite), path)


@contextmanager
def all_done() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield what each of several attempts is entered with: one that fails prevents no other.

    Raises
    ------
    InputError
        The first that was raised in any of them, after the last.
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
    """Write a file; where that cannot be, write it among temporary files, and say so.

    Raises
    ------
    InputError
        If the file is not at its place; the text says where it is.
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
        reason = f"{error.reason}; what was to be written is in {folder / path.name}"
        raise InputError(reason, error.place, error.file) from None


def command_line() -> str:
    """Return the command line of this process as a shell would take it."""
    return shlex.join(["layoutopt", *sys.argv[1:]])


def _write_stdout(data: bytes) -> None:
    if sys.stdout is None:
        raise InputError("cannot be written (it is closed)", file=STDOUT_NAME)
    with _told_stdout():
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:  # a stream of text has taken its place
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
    """Return a text with what a stream or a terminal cannot show, as in odd names, spelt out."""
    encoding = stream.encoding or "utf-8"
    text = printable(text, keep="\n")
    return text.encode(encoding, "backslashreplace").decode(encoding)


Svg = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write a picture as SVG; - is standard output."),
]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write a picture as PNG.")]


def check_png(path: Path | None) -> None:
    """Refuse to print pixels, and to make any without what it takes."""
    if str(path) == "-":
        raise InputError("--png -: pixels need a file")
    if path is not None:
        from layoutopt.report import raster

        raster.check_installed()


def write_picture(picture: str, svg: Path | None, png: Path | None, overwrite: bool) -> None:
    """Write a picture, given as SVG, in the forms that are asked for."""
    from layoutopt.base.files import write_bytes
    from layoutopt.report import raster

    if png is not None:
        write_bytes(png, raster.png(picture), overwrite=overwrite)
    if svg is not None:
        write_out(f"{picture}\n".encode(), svg, overwrite)


def table(rows: Iterable[Sequence[str]], left: int = 1, indent: str = "  ") -> str:
    """Return rows in aligned columns; see :meth:`~layoutopt.base.table.Table.text`."""
    return Table((), rows, left).text(indent)
