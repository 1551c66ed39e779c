"""Solvers that do not stop when they are told to."""

from __future__ import annotations

import threading

import pytest

from layoutopt.base.deadline import left_running, run_stoppable
from layoutopt.base.limits import Limits


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


def test_a_solver_that_ends_is_not() -> None:
    """Nothing is left of a solver that answered."""
    assert run_stoppable(lambda: 7, lambda: None, Limits()) == 7
    assert not left_running()
