"""Available memory, checks of work against it, and the limit that a call may be given.

A limit is one of the whole process, on the memory that is its own (``VmData``): what it reads
from files, such as the code of libraries, does not count.  The system itself holds it, as its
``RLIMIT_DATA``; work that would not fit is refused before, searches stop before.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from layoutopt.base.errors import InputError, SizeError

RESERVE = 128 * 2**20
"""Searches stop when the machine has fewer bytes left; writing an answer down needs some."""

SHARE, MOST_RESERVE = 0.1, 2**30
"""Of a limit this share is kept for that, but not more than so many bytes."""

LOOK = 0.05
"""Seconds between two looks."""

GROUPS = Path("/sys/fs/cgroup")
"""Where Linux tells what a container may take."""

ENDLESS = 2**60
"""More than any machine has: how a container without a limit says so."""

_looked: list[Any] = [0.0, False]
"""When :func:`full` looked last, and what it saw."""


def require(needed: float, what: str) -> None:
    """Refuse work that does not fit the memory, before it is begun.

    Parameters
    ----------
    needed
        About how many bytes the work takes.
    what
        The work, as an error's text begins.

    Raises
    ------
    SizeError
        If there are fewer.
    """
    free = available()
    if free is not None and needed > free:
        left = _left()
        whose = "the memory limit leaves" if left is not None and left <= free else ""
        raise SizeError(
            f"{what} needs about {needed / 2**30:.3g} GiB; {whose or 'this machine has'} "
            f"{free / 2**30:.3g} GiB{'' if whose else ' free'}"
        )


def fits(needed: float) -> bool:
    """Return whether work that takes about so many bytes fits the memory."""
    free = available()
    return free is None or needed <= free


def available() -> int | None:
    """Return the bytes that this process may still take, if the system tells."""
    known = [size for size in (_machine(), _group(), _left()) if size is not None]
    return max(min(known), 0) if known else None


def full() -> bool:
    """Return whether so little is left that searches had better stop."""
    now = time.monotonic()
    if now - _looked[0] >= LOOK:
        _looked[:] = now, _full()
    return bool(_looked[1])


def _full() -> bool:
    free = [size for size in (_machine(), _group()) if size is not None]
    if free and min(free) < RESERVE:
        return True
    left, limit = _left(), _limit()
    return left is not None and limit is not None and left < min(SHARE * limit, MOST_RESERVE)


@contextmanager
def memory_limit(size: int | str | None) -> Iterator[None]:
    """Let this process take no more than so many bytes, with all that it has already.

    Within, work that would not fit is refused with a :class:`~layoutopt.base.errors.SizeError`, and
    searches stop with the best that they have when nine tenths are taken.

    Parameters
    ----------
    size
        Bytes, or a text such as ``"512M"`` or ``"4G"``, in powers of 1024; ``None``: no limit.

    Raises
    ------
    InputError
        If that is no size, less than is taken already, or the system knows no limits.

    Examples
    --------
    >>> import layoutopt
    >>> with layoutopt.memory_limit("4G"):
    ...     pass
    """
    before = set_limit(size)
    try:
        yield
    finally:
        _restore(before)


def set_limit(size: int | str | None) -> int | None:
    """Begin a limit, see :func:`memory_limit`; return the one before, which a lower one keeps."""
    before = _limit()
    if size is None:
        return before
    wanted, now = parse_memory(size), taken()
    if now is None or _resource() is None:
        raise InputError("this system knows no memory limits")
    if now >= wanted:
        raise InputError(f"{size} of memory are too few: {now >> 20} MiB are taken already")
    _restore(wanted if before is None else min(wanted, before))
    return before


def _restore(limit: int | None) -> None:
    system = _resource()
    if system is not None:
        most = system.getrlimit(system.RLIMIT_DATA)[1]
        soft = most if limit is None else limit
        system.setrlimit(system.RLIMIT_DATA, (soft, most))
    _looked[:] = 0.0, False


def taken() -> int | None:
    """Return the bytes that this process has for itself; where Linux is not, at their peak."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[5])
    except (OSError, IndexError):
        system = _resource()
        return None if system is None else int(system.getrusage(system.RUSAGE_SELF).ru_maxrss)
    return pages * os.sysconf("SC_PAGE_SIZE")


def parse_memory(given: str | int) -> int:
    """Return a number of bytes: ``"512M"``, ``"2G"``, ``"1.5GiB"``, in powers of 1024.

    Raises
    ------
    InputError
        If it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(given).strip(), re.IGNORECASE)
    size = 0.0
    if found is not None:
        size = float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")
    if not 1 <= size < 2**62:
        raise InputError(f"{given!r} is no size of memory; write, for instance, 2G or 512M")
    return int(size)


def _left() -> int | None:
    """Return what this process's own limit leaves, if it has one."""
    limit, now = _limit(), taken()
    return None if limit is None or now is None else limit - now


def _limit() -> int | None:
    """Return this process's own limit, whoever set it."""
    system = _resource()
    if system is None:
        return None
    soft: int = system.getrlimit(system.RLIMIT_DATA)[0]
    return None if soft == system.RLIM_INFINITY else soft


def _resource() -> Any:
    """Return the module that knows the limits of processes; not all systems have it."""
    try:
        import resource
    except ImportError:
        return None
    return resource


def _machine() -> int | None:
    """Return the bytes that the machine has free."""
    try:
        with open("/proc/meminfo") as table:
            for line in table:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    names: dict[str, Any] = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _group() -> int | None:
    """Return the bytes that this process's container may still take; files that it read may go."""
    for most, now, stat in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        try:
            limit, used = ((GROUPS / name).read_text().strip() for name in (most, now))
            if not limit.isdecimal() or int(limit) > ENDLESS:
                return None
            rows = dict(line.split() for line in (GROUPS / stat).read_text().splitlines())
            files = sum(int(rows.get(name, 0)) for name in ("active_file", "inactive_file"))
            return int(limit) - int(used) + files
        except (OSError, ValueError):
            continue
    return None
