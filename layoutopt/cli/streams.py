"""Standard output, kept for answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
