"""Computations that do not end by themselves are ended, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from layoutopt.base import deadline
from layoutopt.base.deadline import GRACE, grace, run_phase, run_with_timeout
from layoutopt.base.limits import Limits
from layoutopt.base.result import Stopped


def forever() -> None:
    """Spend time as loops do that look at nothing."""
    while True:
        sum(range(100))


def end_keeper() -> None:
    """Wait until the thread that looks at watches ends, as there is none left."""
    for thread in threading.enumerate():
        if thread.name == deadline.KEEPER:
            thread.join(60)
            assert not thread.is_alive()


def test_what_goes_on_is_ended() -> None:
    """A loop without end raises, in the thread that runs it, soon after it should have ended."""
    for _ in range(5):
        with pytest.raises(TimeoutError):
            run_with_timeout(forever, lambda: True)


def test_what_ends_in_time_is_left_alone() -> None:
    """An answer comes back."""
    assert run_with_timeout(lambda: 7, lambda: False) == 7
    assert run_with_timeout(lambda: time.sleep(0.2) or 8, lambda: False) == 8


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

    end_keeper()
    monkeypatch.setattr(threading.Thread, "start", none)
    with pytest.raises(MemoryError):
        run_with_timeout(lambda: 7, lambda: False)


def test_one_thread_for_all() -> None:
    """Phases within phases, in several threads, are watched by one thread, which ends with them."""
    seen: list[int] = []

    def nested(depth: int) -> None:
        if depth:
            run_with_timeout(lambda: nested(depth - 1), lambda: False)
        else:
            seen.append(len({*threading.enumerate()} - before - {*threads}))
            forever()

    def work() -> None:
        with suppress(TimeoutError):
            run_with_timeout(lambda: nested(5), lambda: len(seen) == 3)

    end_keeper()
    before = {*threading.enumerate()}
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert max(seen) == 1
    end_keeper()


def test_the_inner_end_is_the_first() -> None:
    """What is ended within another leaves that one to go on; an outer end ends both."""

    def outer() -> str:
        with pytest.raises(TimeoutError):
            run_with_timeout(forever, lambda: True)
        return "on"

    assert run_with_timeout(outer, lambda: False) == "on"
    reached: list[int] = []

    def inner() -> None:
        with suppress(TimeoutError):
            run_with_timeout(forever, lambda: False)
        reached.append(1)
        forever()

    with pytest.raises(TimeoutError):
        run_with_timeout(inner, lambda: True)
    assert reached == [1]


def test_a_keeper_that_lacks_memory_looks_again() -> None:
    """A look that fails for want of memory is no reason to watch no more."""
    looks: list[int] = []

    def over() -> bool:
        looks.append(1)
        if len(looks) == 1:
            raise MemoryError
        return True

    with pytest.raises(TimeoutError):
        run_with_timeout(forever, over)


FORKED = """
import os, sys
from layoutopt.base.deadline import run_with_timeout

def work():
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        run_with_timeout(lambda: [0 for _ in iter(int, 1)], lambda: True)
    except TimeoutError:
        os._exit(7)

sys.exit(os.waitstatus_to_exitcode(run_with_timeout(work, lambda: False)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_forks() -> None:
    """A fork in the middle of a phase has a watch of its own."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=60, check=False)
    assert done.returncode == 7


class TestPhases:
    """Phases of a call."""

    def test_answers_and_errors(self) -> None:
        """They pass through."""
        assert run_phase("trace", lambda: 5, Limits()) == 5
        with pytest.raises(KeyError):
            run_phase("check", lambda: {}["x"], Limits())

    def test_tracing_ends_with_the_limits(self) -> None:
        """Be it time or Ctrl-C: there is nothing yet that could get lost."""
        interrupted = Limits()
        interrupted.interrupt.set()
        for limits in (Limits(deadline=0.0), interrupted):
            with pytest.raises(TimeoutError):
                run_phase("trace", forever, limits)

    def test_a_deaf_solver(self) -> None:
        """A solver that does not look at its limits is ended."""
        limits = Limits(deadline=0.0)
        with pytest.raises(TimeoutError):
            run_phase("solve", forever, limits)
        assert limits.stopped is Stopped.TIME_LIMIT

    def test_checks_end_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl-C leaves them some seconds, the deadline a grace."""
        limits = Limits()
        limits.interrupt.set()
        monkeypatch.setattr(deadline, "GRACE", 0.1)
        assert run_phase("check", lambda: time.sleep(0.2) or 5, limits) == 5
        with pytest.raises(TimeoutError):
            run_phase("check", forever, limits)
        assert time.monotonic() - limits.interrupt.at < 20  # busy machines included
        late = Limits(deadline=time.monotonic() - GRACE)
        with pytest.raises(TimeoutError):
            run_phase("check", forever, late)

    def test_the_only_answer_on_a_busy_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl-C does not lose it because others take the processor."""
        monkeypatch.setattr(deadline, "ANSWER_ENDS", 0.2)
        limits = Limits()
        limits.interrupt.set()
        assert run_phase("check", lambda: time.sleep(0.7) or 5, limits) == 5

    def test_an_answer_at_hand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where there is one, phases end sooner, after the deadline and after Ctrl-C."""
        monkeypatch.setattr(deadline, "GRACE", 60.0)
        monkeypatch.setattr(deadline, "ANSWER_ENDS", 60.0)
        interrupted = Limits()
        interrupted.interrupt.set()
        for limits in (Limits(deadline=time.monotonic()), interrupted):
            begun = time.monotonic()
            with pytest.raises(TimeoutError):
                run_phase("check", forever, limits, secured=True)
            assert time.monotonic() - begun < 30

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
            run_phase("trace", large, limits)
        assert limits.stopped is Stopped.MEMORY_LIMIT
