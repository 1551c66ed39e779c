"""When a command began: limits count from then, and so do the seconds that it tells."""

from __future__ import annotations

import time

from layoutopt.cli import LOADED

_begun = LOADED


def begin(when: float) -> None:
    """Note when the command began, as a value of ``time.monotonic()``."""
    global _begun
    _begun = when


def begun() -> float:
    """Return when the command began."""
    return _begun


def spent() -> float:
    """Return the seconds since the command began."""
    return time.monotonic() - _begun


def left(time_limit: float | None) -> float | None:
    """Return the seconds that are left of a limit for the whole command; ``None`` without one."""
    return None if time_limit is None else max(time_limit - spent(), 0.0)
