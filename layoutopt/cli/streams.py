"""Standard streams and output files; results that cannot be written are saved elsewhere."""

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


def table(rows: Iterable[Sequence[str]], left: int = 1, indent: str = "  ") -> str:
    """Return rows in aligned columns; see :meth:`~layoutopt.base.table.Table.text`."""
    return Table((), rows, left).text(indent)
