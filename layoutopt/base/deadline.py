"""An end to computations that do not look at their limits in time.

Most of them look.  Where that would have to be done everywhere, as in lowering a graph of 100,000
ops, an exception is raised in the thread that computes, between two steps of the interpreter.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
from collections.abc import Callable
from math import isinf
from typing import TypeVar

from layoutopt.base.limits import Limits
from layoutopt.base.result import Result, Stopped

Answer = TypeVar("Answer")

POLL = 0.05
"""Seconds between two looks at whether time is over."""

AGAIN = 0.5
"""Seconds after which the exception is raised again, should somebody have swallowed it."""

PATIENCE = {"trace": 0.0, "solve": 2.0, "place": 2.0, "hooks": 2.0}
"""Seconds that phases get to end by themselves, with the best that they have."""

GRACE, GRACE_SHARE = 1.0, 0.1
"""What follows a solution, restoring and checking it, may end so many seconds after the deadline,
or this share of the time that there was."""

LATE, LATEST = 2.0, 6.0
"""Seconds after the deadline, or after the call where this was over before, by which the check of
default layouts ends, should there be nothing else; the latter where others take the processor."""

SHORT = 0.5
"""The same, and the patience with phases, where another answer is at hand."""

LOADING = 5.0
"""Seconds that the import of a library gets to end by itself."""

SEARCH_ENDS, ANSWER_ENDS, LAST_ENDS = 0.5, 3.0, 5.0
"""Seconds after Ctrl-C by which a search must have ended, its answer is checked, and, should that
not be so, simpler layouts are."""


class _Over(BaseException):
    """Raised in the middle of a computation; no handler of errors takes it for one."""


def run_with_timeout(
    work: Callable[[], Answer],
    over: Callable[[], bool],
    patience: float | Callable[[], float] = 0.0,
) -> Answer:
    """Return what a function returns, or end it, wherever it is, when it goes on for too long.

    Parameters
    ----------
    over
        Whether it should have ended.
    patience
        Seconds that it gets to end by itself then, or what returns them at that moment.

    Raises
    ------
    TimeoutError
        If it did not.
    """
    watch, late = _Watch(over, patience), False
    error: BaseException | None = None
    try:  # no call stands outside of a try: the exception may come with any
        watch.start()
        answer = work()
    except _Over:
        late = True
    except BaseException as raised:
        error = raised
    while not watch.ended:
        try:
            watch.end()
        except _Over:
            late = True
    if late:
        raise TimeoutError
    if error is not None:
        try:
            raise error
        finally:
            error = None  # it holds this frame, which holds it
    return answer


def grace(limits: Limits) -> float:
    """Return the seconds after the deadline by which an answer must be ready."""
    span = limits.deadline - limits.started
    return GRACE if isinf(span) else max(GRACE, GRACE_SHARE * span)


class _Watch:
    """The watch over the thread that makes it, kept by another thread."""

    def __init__(self, over: Callable[[], bool], patience: float | Callable[[], float]) -> None:
        self.over, self.patience = over, patience
        self.watched = threading.get_ident()
        self.ended = False
        self.done, self.lock = threading.Event(), threading.Lock()
        self.thread = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        """Begin the watch."""
        try:
            self.thread.start()
        except RuntimeError:  # the system gives none: so it says that memory has run out
            raise MemoryError from None

    def _keep(self) -> None:
        while not self.over():
            if self.done.wait(POLL):
                return
        wait = self.patience() if callable(self.patience) else self.patience
        loading = time.monotonic() + wait + LOADING
        while not self.done.wait(wait):
            with self.lock:
                if time.monotonic() < loading and _imports(self.watched):
                    wait = POLL
                elif not self.done.is_set():
                    _raise(self.watched, _Over)
                    wait = AGAIN

    def end(self) -> None:
        """End the watch: once this has returned, nothing is raised any more.

        What was raised and has not arrived yet arrives in here.  To take it back instead would
        leave CPython 3.11 on the look-out for it for ever, and then calls that are traced hang.
        """
        self.done.set()
        with self.lock:  # whoever holds it is raising
            pass
        for _ in range(2):  # a loop's end is where the interpreter looks
            pass
        self.ended = True


def _imports(thread: int) -> bool:
    """Return whether a thread is in the middle of an import that began under its last watch.

    Where it is not, an exception that is raised in it arrives at the latest where the next import
    begins: libraries that are loaded by half cannot be loaded again.
    """
    frame = sys._current_frames().get(thread)  # noqa: SLF001  (a documented function)
    while frame is not None and frame.f_code is not run_with_timeout.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _raise(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in another thread, between two steps of the interpreter."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def stoppable(solve: Callable[[], Result], limits: Limits) -> Result:
    """Return what a solver finds, nothing if it does not stop in time or memory runs out."""
    try:
        return run_with_timeout(solve, lambda: limits.over, lambda: _patience(limits, "solve"))
    except TimeoutError:
        return Result(stopped=limits.stopped or Stopped.TIME_LIMIT)
    except MemoryError:
        return limits.exhausted()


def _patience(limits: Limits, name: str, secured: bool = False) -> float:
    """Return the seconds that a phase gets to end by itself now that its limits are over.

    Parameters
    ----------
    secured
        Whether another answer is at hand, so that nothing is lost where there is none.
    """
    if PATIENCE.get(name) == 0:
        return 0.0
    if limits.interrupt.is_set():
        after = SEARCH_ENDS if name in PATIENCE else ANSWER_ENDS
        return max(0.0, limits.interrupt.at + after - time.monotonic())
    if secured:
        return SHORT
    return PATIENCE[name] if name in PATIENCE else grace(limits)


class Phases:
    """The phases of a call: how long each took, and an end to those that go on for too long.

    Parameters
    ----------
    limits
        Those of the whole call.

    Attributes
    ----------
    seconds
        What each phase took.
    secured
        Whether an answer is at hand already.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.seconds: dict[str, float] = {}
        self.secured = False

    def run(self, name: str, work: Callable[[], Answer]) -> Answer:
        """Return what a phase returns; those that follow a solution do not end for want of memory.

        Raises
        ------
        TimeoutError
            If it goes on for too long, or memory runs out: the limits say which.
        """
        begun, limits = time.monotonic(), self.limits

        def over() -> bool:
            if name in PATIENCE:
                return limits.over
            return limits.left == 0 or limits.interrupt.is_set()

        try:
            return run_with_timeout(work, over, lambda: _patience(limits, name, self.secured))
        except MemoryError:
            self.limits.exhausted()
            raise TimeoutError from None
        finally:
            self.seconds[name] = time.monotonic() - begun


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
