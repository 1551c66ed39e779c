"""The master problem of barrier order, and solvers run so that they can be stopped."""

from __future__ import annotations

import random
import threading
import time
from itertools import permutations

import pytest

from layoutopt.base.deadline import run_stoppable
from layoutopt.base.limits import Limits
from layoutopt.network import order
from layoutopt.network.order import Arc, OrderCut, best_order


def earned(rank: list[int] | tuple[int, ...], tops: list[int], cuts: list[OrderCut]) -> int:
    """Return what an order lets the parts earn, as far as cuts tell."""
    left = list(tops)
    for cut in cuts:
        if all(rank[b] >= rank[c] for b, c in cut.closed):
            left[cut.part] = min(left[cut.part], cut.value)
    return sum(left)


def random_master(seed: int, wide: int = 1) -> tuple[int, list[Arc], list[int], list[OrderCut]]:
    """Return barriers, static arcs without a cycle, tops and cuts."""
    draw = random.Random(seed)
    barriers = draw.randint(2, 5)
    every = [(b, c) for b in range(barriers) for c in range(barriers) if b != c]
    static = [(b, c) for b, c in every if b < c and draw.random() < 0.2]
    tops = [draw.randint(5, 20) * wide for _ in range(3)]
    cuts = []
    for _ in range(8):
        part = draw.randrange(3)
        closed = frozenset(draw.sample(every, draw.randint(1, 2)))
        cuts.append(OrderCut(part, closed, tops[part] - draw.randint(0, 5) * wide - (wide > 1)))
    return barriers, static, tops, cuts


def best_of_all(barriers: int, static: list[Arc], tops: list[int], cuts: list[OrderCut]) -> int:
    """Return the most that any order earns."""
    orders = permutations(range(barriers))
    allowed = (r for r in orders if all(r[b] < r[c] for b, c in static))
    return max(earned(rank, tops, cuts) for rank in allowed)


def test_best_order() -> None:
    """On random masters the order keeps static arcs and earns the most, and that is the bound."""
    for seed in range(60):
        barriers, static, tops, cuts = random_master(seed)
        found = best_order(barriers, static, tops, cuts, Limits())
        assert found.rank is not None
        assert all(found.rank[b] < found.rank[c] for b, c in static)
        best = best_of_all(barriers, static, tops, cuts)
        assert found.bound == best
        assert earned(found.rank, tops, cuts) == best


def test_two_that_exclude_each_other() -> None:
    """Part 0 loses 3 unless 0 comes before 1, part 1 loses 2 unless 1 comes before 0."""
    cuts = [OrderCut(0, frozenset({(0, 1)}), 7), OrderCut(1, frozenset({(1, 0)}), 8)]
    found = best_order(2, [], [10, 10], cuts, Limits())
    assert found.bound == 18
    assert found.rank is not None
    assert found.rank[0] < found.rank[1]
    assert best_order(2, [(1, 0)], [10, 10], cuts, Limits()).bound == 17


def test_no_cuts() -> None:
    """Without cuts everything is earned."""
    assert best_order(3, [(2, 0)], [5, 6], [], Limits()).bound == 11


@pytest.mark.cpsat
def test_wide_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses too large for CP-SAT are rounded down, which keeps the bound true."""
    for seed in range(20):
        barriers, static, tops, cuts = random_master(seed, wide=10**40)
        found = best_order(barriers, static, tops, cuts, Limits())
        best = best_of_all(barriers, static, tops, cuts)
        assert best <= found.bound <= best * (1 + 1e-9)
    monkeypatch.setattr(order, "LARGEST", 8)
    barriers, static, tops, cuts = random_master(1)
    assert best_order(barriers, static, tops, cuts, Limits()).bound >= best_of_all(
        barriers, static, tops, cuts
    )


def test_no_time() -> None:
    """Without time the bound is what can be earned at most."""
    barriers, static, tops, cuts = random_master(0)
    found = best_order(barriers, static, tops, cuts, Limits(deadline=time.monotonic()))
    assert best_of_all(barriers, static, tops, cuts) <= found.bound <= sum(tops)


class TestThreads:
    """Solvers that hold the interpreter."""

    def test_answer(self) -> None:
        """What is computed comes back."""
        assert run_stoppable(lambda: 42, lambda: None, Limits()) == 42

    def test_errors(self) -> None:
        """What is raised is raised here."""

        def fail() -> None:
            raise KeyError("inside")

        with pytest.raises(KeyError, match="inside"):
            run_stoppable(fail, lambda: None, Limits())

    def test_stopped_by_time_and_by_hand(self) -> None:
        """When limits are over, the solver is asked to stop, and its answer is taken."""
        by_time, by_hand = Limits(deadline=time.monotonic() + 0.1), Limits()
        threading.Timer(0.1, by_hand.interrupt.set).start()
        for limits in (by_time, by_hand):
            enough = threading.Event()
            asked: list[int] = []

            def stop(enough: threading.Event = enough, asked: list[int] = asked) -> None:
                asked.append(1)
                enough.set()

            assert run_stoppable(lambda e=enough: e.wait(30), stop, limits) is True
            assert asked

    def test_stopped_before_it_begins(self) -> None:
        """A solver that is deaf until it has begun is asked again."""
        limits, begun, enough = Limits(), threading.Event(), threading.Event()
        limits.interrupt.set()

        def solve() -> bool:
            time.sleep(0.2)
            begun.set()
            return enough.wait(30)

        assert run_stoppable(solve, lambda: begun.is_set() and enough.set(), limits)
