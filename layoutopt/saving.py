"""Files written whole or not at all: the one way in which this package writes."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that is there under its name only when the block has ended well.

    The bytes go to a temporary file in the same folder, which takes its name once they are on
    the disk.  A link stays, and what it leads to is replaced.  A new file has the permissions
    that the umask leaves, a replaced one keeps its own.  A device or a pipe has nothing to lose,
    and is written to.

    Parameters
    ----------
    overwrite
        Whether a file that exists is replaced, be it made while the block runs.

    Raises
    ------
    FileExistsError
        If it exists, and is not to be replaced.
    OSError
        If it cannot be written.
    """
    target = Path(os.path.realpath(path))
    if path.exists() and not target.is_file():  # a pipe has no name of its own to be followed to
        with path.open("wb") as file:  # refused by the system, if this is a directory
            yield file
        return
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = target.with_name(f".layoutopt-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        if mode is not None:
            temporary.chmod(mode)
        _take_place(temporary, target, overwrite)
    finally:
        temporary.unlink(missing_ok=True)
    _settle(target.parent)


def check_writable(folder: Path) -> None:
    """Find out whether a file can be made in a folder, by making one, which does not stay.

    Raises
    ------
    OSError
        If it cannot.
    """
    temporary = folder / f".layoutopt-{secrets.token_hex(8)}"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    temporary.unlink()


def _take_place(temporary: Path, target: Path, overwrite: bool) -> None:
    """Give a file its name; that of another, made meanwhile, only if it may be replaced."""
    if overwrite:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target)  # which, unlike renaming, never replaces anything
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        temporary.replace(target)


def _settle(folder: Path) -> None:
    """Bring a folder's names to the disk, too, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
