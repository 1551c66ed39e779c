"""Standard output, kept for answers."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

STDOUT, STDERR = 1, 2


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Send to stderr what native code, or a user's function, writes to stdout.

    HiGHS has been seen to print a line past every switch for silence, which would spoil JSON.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(STDOUT)
    except OSError:  # closed: there is nothing to keep
        yield
        return
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def write_out(data: bytes, path: Path, overwrite: bool) -> None:
    """Write what ends with a line feed to a file, or to stdout for ``-``."""
    from layoutopt.io.files import write_bytes

    if str(path) == "-":
        typer.echo(data.decode(), nl=False)
    else:
        write_bytes(path, data, overwrite=overwrite)


def command_line() -> str:
    """Return the command line of this process as a shell would take it."""
    return shlex.join(["layoutopt", *sys.argv[1:]])
