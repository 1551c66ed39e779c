"""How much memory there is, and whether it is enough."""

from __future__ import annotations

import os
from typing import Any

from layoutopt.errors import SizeError


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
    limit = available()
    if limit is not None and needed > limit:
        raise SizeError(
            f"{what} needs about {needed / 2**30:.3g} GiB; this machine has "
            f"{limit / 2**30:.3g} GiB free"
        )


def available() -> int | None:
    """Return the bytes of memory that are available, if the system tells."""
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
