"""Computations that do not end by themselves are ended, and no others."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from layoutopt.base.deadline import GRACE, Phases, grace, run_with_timeout, stoppable
from layoutopt.base.limits import Limits, limited
from layoutopt.base.result import Result, Stopped


def forever() -> None:
    """Spend time as loops do that look at nothing."""
    while True:
        sum(range(100))


def test_what_goes_on_is_ended() -> None:
    """A loop without end raises, in the thread that runs it, soon after it should have ended."""
    for _ in range(5):
        with pytest.raises(TimeoutError):
            run_with_timeout(forever, lambda: True)


def test_what_ends_in_time_is_left_alone() -> None:
    """An answer comes back although time is over, if it comes within the patience."""
    assert run_with_timeout(lambda: 7, lambda: False) == 7
    assert run_with_timeout(lambda: time.sleep(0.2) or 8, lambda: True, patience=60) == 8


def test_errors_pass_through() -> None:
    """What a function raises is what comes out."""

    def wrong() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run_with_timeout(wrong, lambda: False)


def test_no_handler_of_errors_takes_it() -> None:
    """Code that goes on after any error is ended all the same, as often as it takes."""
    swallowed = 0

    def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                try:
                    forever()
                except Exception:
                    swallowed -= 100
            except BaseException:
                swallowed += 1
                if swallowed > 1:
                    raise

    end = time.monotonic() + 0.2
    with pytest.raises(TimeoutError):
        run_with_timeout(stubborn, lambda: time.monotonic() > end)
    assert swallowed == 2


def test_nothing_comes_later() -> None:
    """However close to its end a function is ended, nothing is raised after that."""
    for n in range(200):
        end = time.monotonic() + n / 1e5
        with suppress(TimeoutError):
            run_with_timeout(
                lambda n=n: sum(range(n * 100)), lambda end=end: time.monotonic() > end
            )
    sum(range(10**6))


TRACED = """
import sys
from contextlib import suppress
from layoutopt.base.deadline import run_with_timeout
run_with_timeout(lambda: None, lambda: False)
with suppress(TimeoutError):
    run_with_timeout(lambda: [0 for _ in iter(int, 1)], lambda: True)
sys.settrace(lambda *_: None)
print((lambda: "here")())
"""


def test_debuggers_go_on() -> None:
    """What is traced afterwards, as by a debugger or for coverage, does not hang."""
    done = subprocess.run(
        [sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "here\n"


def test_other_threads() -> None:
    """A thread that is not the main one is ended as well."""
    ended: list[bool] = []

    def work() -> None:
        try:
            run_with_timeout(forever, lambda: True)
        except TimeoutError:
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert ended == [True]


def test_no_threads_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that gives no thread is out of memory, and says so."""

    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    with pytest.raises(MemoryError):
        run_with_timeout(lambda: 7, lambda: False)


class TestPhases:
    """Phases of a call."""

    def test_seconds(self) -> None:
        """Each phase is measured, however it ends; an answer passes through."""
        phases = Phases(Limits())
        assert phases.run("trace", lambda: 5) == 5
        with pytest.raises(KeyError):
            phases.run("check", lambda: {}["x"])
        assert set(phases.seconds) == {"trace", "check"}
        assert all(seconds >= 0 for seconds in phases.seconds.values())

    def test_tracing_ends_with_the_limits(self) -> None:
        """Be it time or Ctrl-C: there is nothing yet that could get lost."""
        interrupted = Limits()
        interrupted.interrupt.set()
        for limits in (Limits(deadline=0.0), interrupted):
            with pytest.raises(TimeoutError):
                Phases(limits).run("trace", forever)

    def test_checks_end_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl-C leaves them less than a second, the deadline a grace."""
        limits = Limits()
        limits.interrupt.set()
        monkeypatch.setattr("layoutopt.base.deadline.GRACE", 0.1)
        assert Phases(limits).run("check", lambda: time.sleep(0.2) or 5) == 5
        with pytest.raises(TimeoutError):
            Phases(limits).run("check", forever)
        assert time.monotonic() - limits.interrupt.at < 5  # slow machines included
        late = Limits(deadline=time.monotonic() - GRACE)
        with pytest.raises(TimeoutError):
            Phases(late).run("check", forever)

    def test_grace(self) -> None:
        """A second, or a tenth of the time that there was."""
        assert grace(Limits()) == 1
        assert grace(Limits(deadline=7.0, started=2.0)) == 1
        assert grace(Limits(deadline=52.0, started=2.0)) == 5

    def test_memory(self) -> None:
        """Running out of memory ends a phase like running out of time; the limits tell which."""
        limits = Limits()

        def large() -> None:
            raise MemoryError

        with pytest.raises(TimeoutError):
            Phases(limits).run("trace", large)
        assert limits.stopped is Stopped.MEMORY_LIMIT


class TestSolvers:
    """Solvers that do not stop."""

    def test_a_deaf_one(self) -> None:
        """One that does not look at its limits is ended, and has found nothing."""

        def deaf() -> Result:
            forever()
            raise AssertionError

        found = stoppable(deaf, limited(time_limit=0))
        assert (found.labelling, found.stopped) == (None, Stopped.TIME_LIMIT)

    def test_a_greedy_one(self) -> None:
        """One that takes all memory has found nothing, and what follows stops, too."""

        def greedy() -> Result:
            raise MemoryError

        limits = Limits()
        found = stoppable(greedy, limits)
        assert (found.labelling, found.stopped) == (None, Stopped.MEMORY_LIMIT)
        assert limits.stopped is Stopped.MEMORY_LIMIT
