"""Available memory, checks of work against it, and memory limits.

A limit applies to the private memory of the process (``VmData``); mapped files, such as libraries,
do not count.  It is enforced by the system (``RLIMIT_DATA``); before it is reached, searches stop,
and work that would not fit is refused.
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

RESERVE = 128 * 2**20  # searches stop if fewer bytes are free; the rest is needed for the result

SHARE, MOST_RESERVE = 0.1, 2**30
"""Share of a memory limit reserved for the result, and its largest number of bytes."""

LOOK = 0.05  # seconds between two measurements

SMALL = 2**20
"""Work of so many bytes or fewer is never refused; measuring takes longer than the work."""

GROUPS = Path("/sys/fs/cgroup")  # Linux's files of memory limits of containers
ENDLESS = 2**60  # limits of at least so many bytes mean that a container has no limit
_looked: list[Any] = [0.0, False]  # time and result of the last measurement by :func:`full`


def require(needed: float, what: str) -> None:
    """Raise SizeError if work, named ``what``, needs more bytes than are available."""
    free = None if needed <= SMALL else available()
    if free is not None and needed > free:
        left = _left()
        whose = "the memory limit leaves" if left is not None and left <= free else ""
        raise SizeError(
            f"{what} needs about {needed / 2**30:.3g} GiB; {whose or 'this machine has'} "
            f"{free / 2**30:.3g} GiB{'' if whose else ' free'}"
        )


def fits(needed: float) -> bool:
    """Return whether work of about so many bytes fits into memory."""
    free = available()
    return free is None or needed <= free


def available() -> int | None:
    """Return the bytes available to this process; None if unknown."""
    known = [size for size in (_machine(), _group(), _left()) if size is not None]
    return max(min(known), 0) if known else None


def full() -> bool:
    """Return whether so little memory is left that searches should stop."""
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
    """Limit the memory of this process in a ``with`` block, bytes already allocated included.

    Work that would not fit raises :class:`~layoutopt.base.errors.SizeError`; searches stop with
    their best solution when nine tenths are used.

    Parameters
    ----------
    size
        Bytes, or a string such as ``"512M"`` or ``"4G"``, in powers of 1024; ``None``: no limit.

    Raises
    ------
    InputError
        If the size is invalid or already exceeded, or the system does not support limits.

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
        put_limit(before)


def set_limit(size: int | str | None) -> int | None:
    """Set a limit, unless the present one is lower, and return the previous limit."""
    before = _limit()
    if size is None:
        return before
    wanted, now = parse_memory(size), taken()
    if now is None or _resource() is None:
        raise InputError("this system does not support memory limits")
    if now >= wanted:
        raise InputError(f"the memory limit {size} is exceeded already: {now >> 20} MiB are in use")
    put_limit(wanted if before is None else min(wanted, before))
    return before


def put_limit(limit: int | None) -> None:
    """Set this process's own limit, as far as the system allows."""
    system = _resource()
    if system is not None:
        most = system.getrlimit(system.RLIMIT_DATA)[1]
        above = limit is None or (most != system.RLIM_INFINITY and limit > most)
        soft = most if above else limit
        system.setrlimit(system.RLIMIT_DATA, (soft, most))
    _looked[:] = 0.0, False


def taken() -> int | None:
    """Return the private memory of this process in bytes; other systems than Linux: its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[5])
    except (OSError, IndexError):
        system = _resource()
        return None if system is None else int(system.getrusage(system.RUSAGE_SELF).ru_maxrss)
    return pages * os.sysconf("SC_PAGE_SIZE")


def parse_memory(given: str | int) -> int:
    """Parse a number of bytes: ``"512M"``, ``"2G"``, ``"1.5GiB"``, in powers of 1024."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(given).strip(), re.IGNORECASE)
    size = 0.0
    if found is not None:
        size = float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")
    if not 1 <= size < 2**62:
        raise InputError(f"invalid size of memory {given!r}; valid are, for example, 2G and 512M")
    return int(size)


def _left() -> int | None:
    """Return the bytes that this process's own limit leaves; None without a limit."""
    limit, now = _limit(), taken()
    return None if limit is None or now is None else limit - now


def _limit() -> int | None:
    """Return this process's own limit in bytes, if any."""
    system = _resource()
    if system is None:
        return None
    soft: int = system.getrlimit(system.RLIMIT_DATA)[0]
    return None if soft == system.RLIM_INFINITY else soft


def _resource() -> Any:
    """Return the module ``resource``, which not all systems have."""
    try:
        import resource
    except ImportError:
        return None
    return resource


def _machine() -> int | None:
    """Return the free bytes of the machine."""
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
    """Return the bytes that the container's limit leaves; page cache counts as free."""
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
