"""Signals that ask the program to end: they are answered as Ctrl-C is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = ("SIGTERM", "SIGHUP", "SIGXCPU")
"""A polite kill, a terminal that has gone, the end of processor time that was granted."""


@contextmanager
def heard() -> Iterator[list[int]]:
    """Let these signals do what Ctrl-C does, unless they are ignored.

    Whatever handles Ctrl-C at that moment handles them: a solver stops with the best that it has, a
    batch run keeps what is done.

    Yields
    ------
    list of int
        The numbers of those that came, Ctrl-C itself not among them.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, stop)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
