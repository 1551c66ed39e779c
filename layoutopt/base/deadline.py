"""Hard deadlines: an end to code that does not poll its limits in time.

Most code polls :class:`~layoutopt.base.limits.Limits`.  Where that would have to be done
everywhere, as in lowering a graph of 100,000 ops, an exception is raised in the thread that
computes, between two steps of the interpreter.  One thread does that for all that is under way,
phases within phases and other threads included.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from layoutopt.base.limits import Limits

Answer = TypeVar("Answer")

POLL = 0.05
"""Seconds between two looks at whether time is over."""

AGAIN = 0.5
"""Seconds after which the exception is raised again, should somebody have swallowed it."""

LOADING = 5.0
"""Seconds that the import of a library gets to end by itself."""

HIGHS_ENDS = 1.0
"""Seconds that HiGHS gets to stop; it does not always listen."""

GRACE, GRACE_SHARE = 1.0, 0.1
"""What follows a solution, restoring and checking it, may end so many seconds after the deadline,
or this share of the time that there was."""

LATE = 2.0
"""Seconds after the deadline, or after the call where this was over before, by which the check of
default layouts ends, should there be nothing else."""

BUSY = 4.0
"""Seconds more that the only answer gets to be checked where others take the processor."""

SHORT = 0.5
"""The same, and the patience with phases, where another answer is at hand."""

SECURED_ENDS, ANSWER_ENDS, LAST_ENDS = 1.0, 3.0, 5.0
"""Seconds after Ctrl-C by which an answer is checked where another is at hand and where none is,
and, should that not be so, simpler layouts are."""


class Patience(NamedTuple):
    """Seconds that a phase gets to end by itself, with the best that it has."""

    late: float
    """After the deadline, or when memory has run out."""
    interrupted: float
    """After Ctrl-C."""


PATIENCE = {
    "trace": Patience(0.0, 0.0),
    "certificate": Patience(0.0, 0.0),
    "solve": Patience(2.0, 0.5),
    "place": Patience(2.0, 0.5),
    "hooks": Patience(2.0, 0.5),
}
"""By phase; the others follow a solution, and are told at :data:`GRACE` and :data:`ANSWER_ENDS`."""


class _Over(BaseException):
    """Raised in the middle of a computation; no handler of errors takes it for one."""


def run_phase(
    name: str, work: Callable[[], Answer], limits: Limits, secured: bool = False
) -> Answer:
    """Return what a phase of a call returns; those that follow a solution do not end for memory.

    Parameters
    ----------
    secured
        Whether another answer is at hand, so that little is lost where there is none.

    Raises
    ------
    TimeoutError
        If it goes on for too long, or memory runs out: the limits say which.
    """
    given, since, worked = PATIENCE.get(name), math.inf, time.process_time()

    def over() -> bool:
        nonlocal since, worked
        now, interrupt = time.monotonic(), limits.interrupt
        if not (limits.over if given else limits.left == 0 or interrupt.is_set()):
            return False
        if since == math.inf:
            since, worked = now, time.process_time()
        late, ends = given or (grace(limits), SECURED_ENDS if secured else ANSWER_ENDS)
        if not interrupt.is_set():
            return now >= since + (min(late, SHORT) if secured else late)
        busy = not (given or secured) and time.process_time() - worked < ends
        return now >= interrupt.at + ends + (BUSY if busy else 0.0)

    try:
        return run_with_timeout(work, over)
    except MemoryError:
        limits.full.set()
        raise TimeoutError from None


def grace(limits: Limits) -> float:
    """Return the seconds after the deadline by which an answer must be ready."""
    span = limits.deadline - limits.started
    return GRACE if math.isinf(span) else max(GRACE, GRACE_SHARE * span)


def run_with_timeout(work: Callable[[], Answer], over: Callable[[], bool]) -> Answer:
    """Return what a function returns, or end it, wherever it is, when it goes on for too long.

    Parameters
    ----------
    over
        Whether it has gone on for too long; asked every :data:`POLL` seconds, in another thread.

    Raises
    ------
    TimeoutError
        If it was ended.
    """
    watch, late = _Watch(over), False
    error: BaseException | None = None
    try:  # no call stands outside of a try: the exception may come with any
        _KEEPER.add(watch)
        answer = work()
    except _Over:
        late = True
    except BaseException as raised:
        error = raised
    while not watch.ended:
        try:
            _KEEPER.drop(watch)
        except _Over:
            late = True
        except BaseException as raised:  # a second Ctrl-C
            error = raised
    if late:
        raise TimeoutError
    if error is not None:
        try:
            raise error
        finally:
            error = None  # it holds this frame, which holds it
    return answer


class _Watch:
    """A computation of the thread that makes this.

    Attributes
    ----------
    ended
        Whether nothing is raised any more.
    """

    def __init__(self, over: Callable[[], bool]) -> None:
        self.over, self.thread = over, threading.get_ident()
        self.next, self.loading = -math.inf, math.inf
        self.ended = False

    def look(self) -> None:
        """End the computation if its time has come."""
        now = time.monotonic()
        if now < self.next or not self.over():
            return
        self.loading = min(self.loading, now + LOADING)
        if now < self.loading and _imports(self.thread):
            return
        self.next = now + AGAIN
        thread, error = ctypes.c_ulong(self.thread), ctypes.py_object(_Over)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)


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


KEEPER = "layoutopt deadlines"
"""Name of the thread that ends what goes on for too long."""


class _Keeper:
    """The one thread that looks at all watches; it lives as long as there are any."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: a process that is a fork of another has none of its threads."""
        self.lock = threading.Lock()  # no other kind of lock is safe from exceptions at any step
        self.watches: list[_Watch] = []
        self.thread: threading.Thread | None = None

    def add(self, watch: _Watch) -> None:
        """Begin to look at a watch."""
        with self.lock:
            self.watches.append(watch)
            if self.thread is None:
                thread = threading.Thread(target=self._keep, name=KEEPER, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system gives none: so it says that memory has run out
                    raise MemoryError from None
                self.thread = thread

    def drop(self, watch: _Watch) -> None:
        """End a watch: once this has returned, it raises nothing any more.

        What was raised and has not arrived yet arrives in here.  To take it back instead would
        leave CPython 3.11 on the look-out for it for ever, and then calls that are traced hang.
        """
        with self.lock:  # whoever holds it is raising
            if watch in self.watches:
                self.watches.remove(watch)
        for _ in range(2):  # a loop's end is where the interpreter looks
            pass
        watch.ended = True

    def _keep(self) -> None:
        while True:
            time.sleep(POLL)
            with self.lock:
                if not self.watches:
                    self.thread = None
                    return
                for watch in self.watches:
                    with suppress(MemoryError):  # there may be some at the next look
                        watch.look()


_KEEPER = _Keeper()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEEPER.forget)


EXIT_WAITS = 10.0
"""Seconds that the end of the process waits for solvers that were left running."""

_left: list[threading.Thread] = []


def _wait_at_exit() -> None:
    """Let solvers that were left running end by their own time limits."""
    until = time.monotonic() + EXIT_WAITS
    for thread in _left:
        thread.join(max(0.0, until - time.monotonic()))


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
            thread.join(POLL)
            if limits.over:
                stop()  # again and again: a solver that has not begun yet does not hear it
                asked = min(asked, time.monotonic())
                if time.monotonic() - asked > patience:
                    raise TimeoutError
    finally:
        if thread.is_alive():
            if not _left:
                atexit.register(_wait_at_exit)
            _left.append(thread)
    if errors:
        raise errors[0]
    return answers[0]
