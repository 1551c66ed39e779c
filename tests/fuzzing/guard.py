"""What a run of a target may do: so many seconds, so much memory, one folder."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar
from unittest.mock import patch

import layoutopt
from layoutopt.base import limits as base_limits

SECONDS = 10.0
"""Processor seconds that a small input may take at most, solving included."""

MEMORY = 2**30
"""Bytes that an input may take beside what is loaded already."""

SYSTEM = ("/dev/", "/proc/", "/sys/")


class Hang(BaseException):
    """A run took too long; no ``except Exception`` stops it."""


class Escape(BaseException):
    """A run opened a file that it has no business with."""


@contextmanager
def timed() -> Iterator[None]:
    """Raise :class:`Hang` where a run is when its processor time is over."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise Hang(f"takes more than {SECONDS:g} seconds")

    # Not SIGALRM, which is libFuzzer's.  It rings again, should a callback swallow the first.
    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(spare: int = MEMORY) -> None:
    """Keep this process, for good, to what it has now and some more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + spare
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def small_machine() -> Iterator[None]:
    """Let the package believe that the machine has little memory, so that it refuses more."""
    with patch.object(base_limits, "available_memory", lambda: MEMORY // 2):
        yield


class Fence:
    """Notices files outside a folder that a run opens.

    Parameters
    ----------
    folder
        Where a run may read and write.

    Notes
    -----
    An audit hook stays as long as its process and is called for every ``id()`` and every file, so
    all fences share the first one's: hundreds would slow whatever the process does later.
    """

    _standing: ClassVar[list[Fence]] = []
    _hooked: ClassVar[bool] = False

    def __init__(self, folder: Path) -> None:
        self.folder = f"{folder.resolve()}/"
        own = (Path(layoutopt.__file__).parent, Path(sys.prefix), Path(sys.base_prefix))
        self.readable = (*SYSTEM, *(f"{path.resolve()}/" for path in own))
        if not Fence._hooked:
            sys.addaudithook(Fence._hear)
            Fence._hooked = True

    @contextmanager
    def up(self) -> Iterator[None]:
        """Raise :class:`Escape` where a run opens a file outside; imports write no bytecode."""
        Fence._standing.append(self)
        try:
            with patch.object(sys, "dont_write_bytecode", True):
                yield
        finally:
            Fence._standing.remove(self)

    @staticmethod
    def _hear(event: str, arguments: tuple[Any, ...]) -> None:
        if not Fence._standing or event != "open" or not isinstance(arguments[0], str | bytes):
            return
        path = os.path.realpath(os.fsdecode(arguments[0]))
        writes = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        for fence in Fence._standing:
            allowed = (fence.folder,) if writes else (fence.folder, *fence.readable)
            if not f"{path}/".startswith(allowed):
                raise Escape(f"opens {path}")
