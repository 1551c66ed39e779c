"""Limits: time, Ctrl-C, gaps, counted work, and hard deadlines."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest

from layoutopt.base import deadline
from layoutopt.base.deadline import GRACE, grace, run_phase, run_with_timeout
from layoutopt.base.errors import InputError, LayoutoptError, SizeError
from layoutopt.base.limits import Limits, Progress, interruptible
from layoutopt.base.result import Result, Status, Stopped

# Limits, progress and results, each alone


class TestLimits:
    """Deadlines, interrupts and gaps."""

    def test_endless(self) -> None:
        """Without a deadline nothing is ever over."""
        limits = Limits()
        assert (limits.left, limits.over, limits.stopped) == (float("inf"), False, None)

    def test_deadline(self) -> None:
        """After the deadline it is over, and time left is never negative."""
        limits = Limits(deadline=time.monotonic() + 0.05)
        assert 0 < limits.left <= 0.05
        assert not limits.over
        time.sleep(0.06)
        assert (limits.left, limits.over, limits.stopped) == (0, True, Stopped.TIME_LIMIT)

    def test_interrupt_comes_first(self) -> None:
        """An interrupt is the reason, even after the deadline; narrower limits share it."""
        limits = Limits(deadline=0.0)
        part = limits.within(5)
        limits.interrupt.set()
        assert limits.stopped is part.stopped is Stopped.INTERRUPTED

    def test_within(self) -> None:
        """Narrower limits are never wider."""
        assert Limits().within(5).left <= 5
        assert Limits(deadline=0.0).within(5).left == 0

    def test_close(self) -> None:
        """A gap is relative to what is left of the objective after debts."""
        assert Limits().close(5, 5)
        assert Limits().close(5, 4)
        assert not Limits().close(5, 6)
        assert Limits(gap=0.2).close(10, 12)
        assert not Limits(gap=0.2).close(10, 13)
        assert not Limits(gap=0.2, debt=5).close(10, 12)
        assert Limits(gap=0.2, debt=5).close(10, 11)
        assert not Limits(gap=0.5).close(-10, -9)
        assert not Limits(gap=9.0, debt=20).close(10, 11)

    def test_beside(self) -> None:
        """What is earned elsewhere pays debts; what is lost makes them; messages include it."""
        heard: list[Progress] = []
        limits = Limits(tell=heard.append, debt=5)
        assert limits.beside(3).debt == 2
        assert limits.beside(9).debt == 0
        assert limits.beside(-4).debt == 9
        limits.beside(-4).report("x", 10, 12)
        assert (heard[0].objective, heard[0].bound) == (6, 8)

    def test_per(self) -> None:
        """Coarser units: messages are multiplied, debts divided and rounded up."""
        heard: list[Progress] = []
        limits = Limits(tell=heard.append, debt=7)
        assert limits.per(3).debt == 3
        limits.per(3).report("x", 10, None)
        assert (heard[0].objective, heard[0].bound) == (30, None)

    def test_steady(self) -> None:
        """The best objective and bound so far are told, whatever comes later."""
        heard: list[Progress] = []
        limits = Limits(tell=heard.append).steady()
        for objective, bound in [(1, 9), (0, 10), (None, None), (3, 5), (2, 6)]:
            limits.report("x", objective, bound)
        assert [(m.objective, m.bound) for m in heard] == [
            *((1, 9), (1, 9), (None, None), (3, 5), (3, 5))
        ]

    def test_nobody_listens(self) -> None:
        """Messages to nobody are no trouble, however they are restated."""
        Limits().steady().beside(3).per(2).report("x", 1, 2)

    def test_progress(self) -> None:
        """Messages tell the phase, the seconds since the call began, and the gap if known."""
        heard: list[Progress] = []
        Limits(tell=heard.append, started=time.monotonic() - 10).report("phase", 4, 5)
        [message] = heard
        assert message.phase == "phase"
        assert 10 <= message.seconds < 60
        assert message.gap == 0.25
        assert Progress("x", 0.0, 4, None).gap is None
        assert Progress("x", 0.0, 0, 1).gap == pytest.approx(1e9)


class TestInterruptible:
    """Ctrl-C."""

    def test_once_and_twice(self) -> None:
        """The first sets the event, the second interrupts, and the old handler comes back."""
        before = signal.getsignal(signal.SIGINT)
        limits = Limits()

        def interrupted_twice() -> None:
            with interruptible(limits):
                os.kill(os.getpid(), signal.SIGINT)
                assert limits.interrupt.is_set()
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)

        with pytest.raises(KeyboardInterrupt):
            interrupted_twice()
        assert signal.getsignal(signal.SIGINT) is before

    def test_within_another(self) -> None:
        """Whatever a computation is a part of stops as well; the second Ctrl-C still interrupts."""
        before = signal.getsignal(signal.SIGINT)
        whole, part = Limits(), Limits()

        def interrupted_twice() -> None:
            with interruptible(whole):
                with interruptible(part):
                    os.kill(os.getpid(), signal.SIGINT)
                    assert part.interrupt.is_set()
                assert whole.interrupt.is_set()
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)

        with pytest.raises(KeyboardInterrupt):
            interrupted_twice()
        assert signal.getsignal(signal.SIGINT) is before

    def test_a_part_ends(self) -> None:
        """After a part that nobody interrupted, Ctrl-C stops what is left of the whole."""
        whole = Limits()
        with interruptible(whole):
            with interruptible(Limits()):
                pass
            os.kill(os.getpid(), signal.SIGINT)
            assert whole.interrupt.is_set()

    def test_nothing_happens(self) -> None:
        """Without Ctrl-C nothing is set, and the old handler comes back all the same."""
        before, limits = signal.getsignal(signal.SIGINT), Limits()
        with interruptible(limits):
            assert signal.getsignal(signal.SIGINT) is not before
        assert signal.getsignal(signal.SIGINT) is before
        assert not limits.interrupt.is_set()

    def test_other_threads(self) -> None:
        """In other threads, which get no signals, nothing changes."""
        seen: list[bool] = []

        def work() -> None:
            before = signal.getsignal(signal.SIGINT)
            with interruptible(Limits()):
                seen.append(signal.getsignal(signal.SIGINT) is before)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == [True]


class TestResults:
    """What a result says of itself."""

    def test_status(self) -> None:
        """Optimal where objective and bound are equal; unknown without objective."""
        assert Result(objective=3, bound=3).status is Status.OPTIMAL
        assert Result(objective=3, bound=4).status is Status.FEASIBLE
        assert Result(objective=3).status is Status.FEASIBLE
        assert Result(bound=3).status is Status.UNKNOWN
        assert Result().status is Status.UNKNOWN
        above = Decimal("1.000000000000000000000000000001")
        assert Result(objective=Decimal(1), bound=above).status is Status.FEASIBLE
        assert Result(objective=Decimal("0.10"), bound=Decimal("0.1")).status is Status.OPTIMAL

    def test_gap(self) -> None:
        """Relative to the objective's size, and unknown where either number is."""
        assert Result(objective=10, bound=12).gap == 0.2
        assert Result(objective=-10, bound=-8).gap == 0.2
        assert Result(objective=0, bound=1).gap == 1e9
        assert Result(objective=1).gap is None
        assert Result(bound=1).gap is None
        huge = Result(objective=Decimal(1), bound=Decimal("1e400"))
        assert huge.gap == float("inf")
        close = Result(objective=Decimal(10**30), bound=Decimal(10**30 + 1))
        assert close.gap == 1e-30

    def test_errors(self) -> None:
        """Errors name file, place and reason, in one line, and are plain ValueErrors."""
        error = InputError("is wrong", "$.ops[3]", "a.json")
        assert str(error) == "a.json: $.ops[3]: is wrong"
        assert str(InputError("is wrong")) == "is wrong"
        assert str(error.located("$", "b.json")) == "a.json: $.ops[3]: is wrong"
        assert str(InputError("is wrong").located("$.x", "b.json")) == "b.json: $.x: is wrong"
        assert str(InputError("one\ntwo\r\nthree")) == "one two three"
        assert isinstance(SizeError("x"), InputError)
        assert isinstance(error, LayoutoptError)
        assert isinstance(error, ValueError)


def test_close_is_exact() -> None:
    """Whether a gap is small enough is decided without rounding, however large the numbers are."""
    huge = 10**400
    assert not Limits().close(huge, huge + 1)
    assert Limits().close(huge, huge)
    assert Limits(gap=0.1).close(huge, huge + huge // 10 - 1)
    assert not Limits(gap=0.1).close(huge, huge + huge // 9)
    fine = Limits(gap=1e-18)
    assert fine.close(10**18, 10**18 + 1)
    assert not fine.close(10**18 - 1, 10**18)  # a double takes this for 10**18
    assert Limits(gap=0.3).close(10, 13)  # the double is less than 0.3
    assert Limits(gap=math.inf).close(1, huge)
    assert not Limits(gap=math.inf).close(0, 1)


def test_turns_end_by_counted_work() -> None:
    """A turn is over when its effort is spent, the whole is not; turns within turns are shorter."""
    limits = Limits()
    turn = limits.turn(2.0)
    inner = turn.turn(5.0)
    assert (limits.counted, turn.counted, inner.counted) == (math.inf, 2.0, 2.0)
    turn.spend(1.5)
    assert not turn.over
    replace(turn, tell=None).spend(0.5)  # what is made of a turn is the same turn
    assert turn.stopped is Stopped.TIME_LIMIT
    assert not limits.over
    assert not inner.over
    limits.spend(10.0)
    assert not limits.over


# Computations that do not end by themselves are ended, and no others


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
