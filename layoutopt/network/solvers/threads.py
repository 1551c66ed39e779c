"""Running a solver that holds the interpreter, so that it can be stopped from outside."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from layoutopt.base.limits import Limits

Answer = TypeVar("Answer")

SOLVER_POLL = 0.05
"""Seconds between two looks at the limits."""


_left: list[threading.Thread] = []


def left_running() -> bool:
    """Return whether a solver that was left to itself still runs.

    A process that ends in the ordinary way may be aborted then, in the middle of its cleaning up.
    """
    return any(thread.is_alive() for thread in _left)


def run_stoppable(
    solve: Callable[[], Answer],
    stop: Callable[[], object],
    limits: Limits,
    patience: float = math.inf,
) -> Answer:
    """Call ``solve`` in a thread, and ``stop`` as soon as the limits say so.

    Parameters
    ----------
    patience
        Seconds after which a solver that does not stop is left to itself.

    Returns
    -------
    Answer
        What ``solve`` returned, be it before or after it was stopped.

    Raises
    ------
    TimeoutError
        If patience ran out.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(solve())
        except BaseException as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    asked = math.inf
    try:
        while thread.is_alive():
            thread.join(SOLVER_POLL)
            if limits.over:
                stop()  # again and again: a solver that has not begun yet does not hear it
                asked = min(asked, time.monotonic())
                if time.monotonic() - asked > patience:
                    raise TimeoutError
    finally:
        if thread.is_alive():
            _left.append(thread)
    if errors:
        raise errors[0]
    return answers[0]
