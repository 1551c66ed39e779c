"""Limits: time, Ctrl-C, gaps, counted work, and hard deadlines."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import layoutopt
from layoutopt.base import deadline
from layoutopt.base.deadline import (
    GRACE,
    grace,
    left_running,
    run_phase,
    run_stoppable,
    run_with_timeout,
)
from layoutopt.base.limits import Limits, Progress, Stopped, SumOfParts, interruptible, limited
from layoutopt.base.result import Result
from layoutopt.cli.main import heard
from layoutopt.network import CostNetwork, solve
from tests.support import hard_graph

# Limits, progress and results, each alone


def test_limits() -> None:
    """Without a deadline nothing is ever over; time left is never negative; parts are narrower.

    An interrupt is the reason, even after the deadline, and parts share it.
    """
    endless = Limits()
    assert (endless.left, endless.over, endless.stopped) == (math.inf, False, None)
    limits = Limits(deadline=time.monotonic() + 0.05)
    assert 0 < limits.left <= 0.05
    assert not limits.over
    assert (endless.within(5).left <= 5, Limits(deadline=0.0).within(5).left) == (True, 0)
    time.sleep(0.06)
    assert (limits.left, limits.over, limits.stopped) == (0, True, Stopped.TIME_LIMIT)
    part = limits.within(5)
    limits.interrupt.set()
    assert limits.stopped is part.stopped is Stopped.INTERRUPTED


HUGE = 10**400


def test_numbers_of_any_type_and_size() -> None:
    """Solvers get a finite gap, and times are compared without overflow."""
    for huge in (HUGE, math.inf, np.float16("inf")):
        limits = limited(np.float16(5), huge)  # type: ignore[arg-type]
        assert math.isfinite(limits.gap)
        assert 4 < limits.left <= 5
        assert limited(huge).deadline == math.inf  # type: ignore[arg-type]


def test_messages() -> None:
    """Messages tell phase, seconds and gap; what is elsewhere, or in another unit, is restated.

    What is earned elsewhere pays debts, what is lost makes them; coarser units multiply messages
    and divide debts, rounded up.  Steady messages tell the best numbers so far.
    """
    heard: list[Progress] = []
    limits = Limits(tell=heard.append, debt=7, started=time.monotonic() - 10)
    assert [limits.beside(n).debt for n in (3, 9, -4)] == [4, 0, 11]
    assert limits.per(3).debt == 3
    limits.beside(-4).report("x", 10, 12)
    limits.per(3).report("x", 10, None)
    assert [(m.objective, m.bound) for m in heard] == [(6, 8), (30, None)]
    heard.clear()
    steady = limits.steady("max")
    for objective, bound in [(1, 9), (0, 10), (None, None), (3, 5), (2, 6)]:
        steady.report("x", objective, bound)
    best = [(1, 9), (1, 9), (1, 9), (3, 5), (3, 5)]
    assert [(m.objective, m.bound) for m in heard] == best
    limits.report("phase", 4, 5)
    assert (heard[-1].phase, heard[-1].gap) == ("phase", 0.25)
    assert 10 <= heard[-1].seconds < 60
    assert Progress("x", 0.0, 4, None).gap is None
    assert Progress("x", 0.0, 0, 1).gap == pytest.approx(1e9)
    Limits().steady("max").beside(3).per(2).report("x", 1, 2)  # nobody listens


def test_parts_of_a_sum_tell_of_the_whole() -> None:
    """Each adds what is known of the others; without a solution of all there is no objective."""
    heard: list[Progress] = []
    whole = SumOfParts(Limits(tell=heard.append), [(5, 3), (None, 10)])
    whole.limits_for(0).report("x", 4, 3)
    whole.limits_for(1).report("x", 20, 15)
    whole.settle(1, 18, 17)
    whole.limits_for(0).report("x", 4, None)
    whole.settle(0, 4, 4)
    whole.limits_for(1).report("x", 17, 17)
    whole.settle(0, None, 4)
    whole.limits_for(1).report("x", 17, 17)
    told = [(None, 13), (25, 18), (22, None), (21, 21), (None, 21)]
    assert [(m.objective, m.bound) for m in heard] == told
    least = Limits(tell=heard.append).steady("min")
    heard.clear()
    for objective, bound in [(None, 2), (9, None), (10, 1), (7, 3)]:
        least.report("x", objective, bound)
    assert [(m.objective, m.bound) for m in heard] == [(None, 2), (9, 2), (9, 2), (7, 3)]
    assert heard[-1].gap == pytest.approx(4 / 7)


def pair_explained(progress: Callable[[Progress], None]) -> object:
    """Explain a pair of a small graph, which is solved several times."""
    graph = hard_graph(2, 3)
    a, b = (graph.tensor_name(tensor) for tensor in graph.pairs[0][:2])
    return layoutopt.explain_pair(graph, layoutopt.unwind(graph), a, b, progress=progress)


def network_solved(progress: Callable[[Progress], None], limits: Limits | None = None) -> object:
    """Solve a small cost network with a row."""
    network = CostNetwork()
    letters = network.domain(["a", "b"])
    network.node("x", letters)
    network.node("y", letters)
    network.table("x", "y", [[1, 2], [3, 0]])
    network.row({("x", "a"): 1, ("y", "b"): 1}, high=1)
    return solve(network, limits or Limits(tell=progress))


def solved_within(progress: Callable[[Progress], None]) -> object:
    """Solve by a user's solver that solves a network under the limits of its call."""

    @layoutopt.solver("mine")
    def mine(problem: object, limits: Limits, _: object) -> object:
        network_solved(progress, limits)
        return Result(stopped=Stopped.SIZE_LIMIT)

    return layoutopt.unwind(hard_graph(2, 3), "mine", progress=progress)


@pytest.mark.parametrize(
    "call",
    [
        lambda tell: layoutopt.unwind(hard_graph(2, 3), "cpsat", progress=tell, time_limit=60),
        network_solved,
        solved_within,
        lambda tell: layoutopt.convert("instances/conversion/pixels.onnx", progress=tell),
        pair_explained,
    ],
)
def test_errors_of_callbacks_reach_the_caller(call: Callable[..., object]) -> None:
    """Whatever phase a callback fails in, its error is no want of time, and no defect of ours."""
    heard: list[Progress] = []
    call(heard.append)
    assert heard
    phases = sorted({message.phase for message in heard})
    for phase, kind in zip(phases, cycle((TimeoutError, StopIteration)), strict=False):
        error = kind("the dashboard does not answer")
        error.__context__ = KeyError("dashboard")

        def tell(message: Progress, phase: str = phase, error: Exception = error) -> None:
            if message.phase == phase:
                raise error

        with pytest.raises(kind) as caught:
            call(tell)
        assert caught.value is error
        assert isinstance(error.__context__, KeyError)
        assert not error.__suppress_context__


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_ctrl_c(parts: int) -> None:
    """The first stops all that is computed, the second interrupts, the old handler comes back.

    That is so within a part of a computation, and after a part that nobody interrupted.
    """
    before, whole, part = signal.getsignal(signal.SIGINT), Limits(), Limits()

    def interrupted_twice() -> None:
        with interruptible(whole):
            assert signal.getsignal(signal.SIGINT) is not before
            with interruptible(part):
                if parts == 1:
                    os.kill(os.getpid(), signal.SIGINT)
                    assert part.interrupt.is_set()
            if parts != 1:
                os.kill(os.getpid(), signal.SIGINT)
            assert whole.interrupt.is_set()
            if parts < 2:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)

    with pytest.raises(KeyboardInterrupt) if parts < 2 else nullcontext():
        interrupted_twice()
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_ignored() -> None:
    """In the background of a script it stays ignored; other signals still stop what is computed."""
    before, limits = signal.signal(signal.SIGINT, signal.SIG_IGN), Limits()
    try:
        with heard(), interruptible(Limits()), interruptible(limits):
            signal.raise_signal(signal.SIGINT)
            assert not limits.interrupt.is_set()
            signal.raise_signal(signal.SIGTERM)
            assert limits.interrupt.is_set()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_ctrl_c() -> None:
    """Nothing is set; in other threads, which get no signals, nothing changes."""
    before, limits, seen = signal.getsignal(signal.SIGINT), Limits(), list[bool]()

    def work() -> None:
        with interruptible(limits):
            seen.append(signal.getsignal(signal.SIGINT) is before)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False, True]
    assert signal.getsignal(signal.SIGINT) is before
    assert not limits.interrupt.is_set()


def test_handlers_of_other_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python can neither tell nor set them, so that they stay."""
    real = signal.getsignal
    before = {number: real(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def foreign(number: int) -> Any:
        return None if real(number) is before.get(number) else real(number)

    monkeypatch.setattr(signal, "getsignal", foreign)
    with heard(), interruptible(Limits()):
        pass
    assert {number: real(number) for number in before} == before


def judged(objective: Any, bound: Any) -> tuple[str, float | None]:
    """Return status and gap, relative to the size of the objective, of two numbers."""
    result = Result(objective=objective, bound=bound)
    return str(result.status), result.gap


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


def test_what_ends_and_what_does_not() -> None:
    """A loop without end raises soon after it should have ended; answers and errors come back."""
    for _ in range(5):
        with pytest.raises(TimeoutError):
            run_with_timeout(forever, lambda: True)
    assert run_with_timeout(lambda: 7, lambda: False) == 7
    assert run_with_timeout(lambda: time.sleep(0.2) or 8, lambda: False) == 8
    with pytest.raises(KeyError, match="x"):
        run_with_timeout(lambda: {}["x"], lambda: False)


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


def test_nobody_is_interrupted_while_a_thread_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread could get the exception, and who starts it would wait for it for ever."""
    held, start = list[bool](), threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        held.append(deadline._KEEPER.lock.locked())  # noqa: SLF001
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    assert run_stoppable(lambda: 7, lambda: None, Limits()) == 7
    assert held == [True]


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


# Phases of a call


def interrupted() -> Limits:
    """Return limits that Ctrl-C has ended."""
    limits = Limits()
    limits.interrupt.set()
    return limits


def large() -> None:
    """Run out of memory."""
    raise MemoryError


def test_phases_end_with_their_limits() -> None:
    """Answers and errors pass through; tracing and solving end by time, Ctrl-C or memory."""
    assert run_phase("trace", lambda: 5, Limits()) == 5
    with pytest.raises(KeyError):
        run_phase("check", lambda: {}["x"], Limits())
    for phase, work, limits, why in [
        ("trace", forever, Limits(deadline=0.0), Stopped.TIME_LIMIT),
        ("trace", forever, interrupted(), Stopped.INTERRUPTED),
        ("solve", forever, Limits(deadline=0.0), Stopped.TIME_LIMIT),
        ("trace", large, Limits(), Stopped.MEMORY_LIMIT),
    ]:
        with pytest.raises(TimeoutError):
            run_phase(phase, work, limits)
        assert limits.stopped is why
    given = [Limits(), Limits(deadline=7.0, started=2.0), Limits(deadline=52.0, started=2.0)]
    assert [grace(limits) for limits in given] == [1, 1, 5]


def test_checks_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C leaves them some seconds, the deadline a grace; both end sooner with an answer."""
    limits = interrupted()
    monkeypatch.setattr(deadline, "GRACE", 0.1)
    assert run_phase("check", lambda: time.sleep(0.2) or 5, limits) == 5
    with pytest.raises(TimeoutError):
        run_phase("check", forever, limits)
    assert time.monotonic() - limits.interrupt.at < 20  # busy machines included
    with pytest.raises(TimeoutError):
        run_phase("check", forever, Limits(deadline=time.monotonic() - GRACE))
    monkeypatch.setattr(deadline, "GRACE", 60.0)
    monkeypatch.setattr(deadline, "ANSWER_ENDS", 60.0)
    for limits in (Limits(deadline=time.monotonic()), interrupted()):
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            run_phase("check", forever, limits, secured=True)
        assert time.monotonic() - begun < 30


def test_the_only_answer_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C does not lose it because others take the processor."""
    monkeypatch.setattr(deadline, "ANSWER_ENDS", 0.2)
    assert run_phase("check", lambda: time.sleep(0.7) or 5, interrupted()) == 5


# Solvers that hold the interpreter, and are run so that they can be stopped


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
