"""Hard deadlines for code that does not poll its limits.

Most code polls :class:`~layoutopt.base.limits.Limits`.  Where this is impractical, as in lowering
a graph of 100,000 ops, an asynchronous exception is raised in the computing thread.  One monitor
thread does so for all running computations, nested phases and other threads included.
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

POLL = 0.05  # seconds between two checks of the deadlines
AGAIN = 0.5  # seconds after which the exception is raised again, in case it was suppressed
LOADING = 5.0  # seconds for a running import to finish before it is interrupted
HIGHS_ENDS = 1.0  # seconds for HiGHS to stop; it does not always react

GRACE, GRACE_SHARE = 1.0, 0.1
"""Time for restoring and checking a solution after the deadline: seconds, or share of the time
limit; the larger one counts."""

LATE = 2.0
"""Seconds after the deadline, or after the call if the deadline had passed, for checking default
layouts if there are no others."""

BUSY = 4.0  # additional seconds for checking the only solution while other processes use the CPU
SHORT = 0.5  # seconds after the deadline for phases if another solution is secured

SECURED_ENDS, ANSWER_ENDS, LAST_ENDS = 1.0, 3.0, 5.0
"""Seconds after Ctrl-C for checking a solution: if another one is secured, if none is, and, should
that fail, for checking default layouts."""


class Patience(NamedTuple):
    """Seconds for a phase to stop by itself with its best solution."""

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
"""Patience by phase; for the others, which follow a solution, :data:`GRACE` applies."""


class _Over(BaseException):
    """The asynchronous exception; not an Exception, so that error handlers do not catch it."""


def run_phase(
    name: str, work: Callable[[], Answer], limits: Limits, secured: bool = False
) -> Answer:
    """Run a phase of a call under its limits; phases after a solution ignore those of memory.

    Less patience is needed if another solution is secured.  If time or memory runs out, it raises
    TimeoutError, and ``limits.stopped`` says which.
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
    """Call a function; interrupt it, and raise TimeoutError, when ``over`` returns true.

    ``over`` is called every :data:`POLL` seconds in another thread.
    """
    watch, late = _Watch(over), False
    error: BaseException | None = None
    try:  # the exception may arrive at any call, so all are inside a try
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
            error = None  # break the reference cycle with this frame
    return answer


class _Watch:
    """A monitored computation of the current thread, until it has ``ended``."""

    def __init__(self, over: Callable[[], bool]) -> None:
        self.over, self.thread = over, threading.get_ident()
        self.next, self.loading = -math.inf, math.inf
        self.ended = False

    def look(self) -> None:
        """Raise the exception in the computation's thread if its time is over."""
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
    """Return whether a thread is inside an import, which could not be repeated if interrupted."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001  (a documented function)
    while frame is not None and frame.f_code is not run_with_timeout.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


KEEPER = "layoutopt deadlines"  # name of the monitor thread


class _Keeper:
    """The monitor thread of all watches; it ends with the last one."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset the state after a fork, which copies no threads."""
        # Other kinds of locks are not safe from asynchronous exceptions.
        self.lock = threading.Lock()
        self.watches: list[_Watch] = []
        self.thread: threading.Thread | None = None

    def add(self, watch: _Watch) -> None:
        """Begin to monitor a watch."""
        with self.lock:
            self.watches.append(watch)
            if self.thread is None:
                thread = threading.Thread(target=self._keep, name=KEEPER, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system has no memory for a thread
                    raise MemoryError from None
                self.thread = thread

    def drop(self, watch: _Watch) -> None:
        """End a watch; after this returns, it raises no exception.

        A pending exception is delivered in here.  Cancelling it instead would leave CPython 3.11
        waiting for it, and traced calls would hang.
        """
        with self.lock:  # held while exceptions are raised
            if watch in self.watches:
                self.watches.remove(watch)
        for _ in range(2):  # the interpreter checks for exceptions at the end of a loop
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
                    with suppress(MemoryError):  # memory may be available at the next check
                        watch.look()


_KEEPER = _Keeper()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEEPER.forget)


EXIT_WAITS = 10.0  # seconds that the end of the process waits for solvers that were left running

_left: list[threading.Thread] = []


def _wait_at_exit() -> None:
    """Let solvers that were left running end by their own time limits."""
    until = time.monotonic() + EXIT_WAITS
    for thread in _left:
        thread.join(max(0.0, until - time.monotonic()))


def left_running() -> bool:
    """Return whether an abandoned solver still runs.

    The process should then exit without cleaning up, which might abort.
    """
    return any(thread.is_alive() for thread in _left)


def run_stoppable(
    solve: Callable[[], Answer],
    stop: Callable[[], object],
    limits: Limits,
    patience: float = math.inf,
) -> Answer:
    """Call ``solve`` in a thread, and ``stop`` it when the limits are reached; return its result.

    A solver that does not stop within so many seconds is abandoned, and TimeoutError raised.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(solve())
        except BaseException as error:  # raised again below
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    with _KEEPER.lock:  # a thread that begins could get the exception meant for this one
        thread.start()
    asked = math.inf
    try:
        while thread.is_alive():
            thread.join(POLL)
            if limits.over:
                stop()  # repeated, as a solver that has not started yet ignores it
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
