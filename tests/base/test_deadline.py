"""Solvers that hold the interpreter, and are run so that they can be stopped."""

from __future__ import annotations

import threading
import time

import pytest

from layoutopt.base.deadline import left_running, run_stoppable
from layoutopt.base.limits import Limits


def fail() -> None:
    """Raise what a solver may raise."""
    raise KeyError("inside")


def test_what_comes_back() -> None:
    """An answer, or what was raised; nothing is left of a solver that ended."""
    assert run_stoppable(lambda: 42, lambda: None, Limits()) == 42
    with pytest.raises(KeyError, match="inside"):
        run_stoppable(fail, lambda: None, Limits())
    assert not left_running()


def test_stopped_by_time_and_by_hand() -> None:
    """When limits are over, the solver is asked to stop, and its answer is taken."""
    by_time, by_hand = Limits(deadline=time.monotonic() + 0.1), Limits()
    threading.Timer(0.1, by_hand.interrupt.set).start()
    for limits in (by_time, by_hand):
        enough = threading.Event()
        assert run_stoppable(lambda e=enough: e.wait(30), enough.set, limits) is True


def test_stopped_before_it_begins() -> None:
    """A solver that is deaf until it has begun is asked again."""
    limits, begun, enough = Limits(), threading.Event(), threading.Event()
    limits.interrupt.set()

    def solve() -> bool:
        time.sleep(0.2)
        begun.set()
        return enough.wait(30)

    assert run_stoppable(solve, lambda: begun.is_set() and enough.set(), limits)


def test_a_solver_left_to_itself_is_known() -> None:
    """Patience ends in an error, and it is known that the solver goes on until it has ended."""
    go_on = threading.Event()
    with pytest.raises(TimeoutError):
        run_stoppable(go_on.wait, lambda: None, Limits(deadline=0.0), patience=0.01)
    assert left_running()
    go_on.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(5)
    assert not left_running()
