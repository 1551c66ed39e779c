"""Limits, progress and results, each alone."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from dataclasses import replace
from decimal import Decimal

import pytest

from layoutopt.base.errors import InputError, LayoutoptError, SizeError
from layoutopt.base.limits import Limits, Progress, interruptible
from layoutopt.base.result import Result, Status, Stopped


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
