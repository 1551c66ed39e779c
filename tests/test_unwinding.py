"""The whole of ``unwind``: optima, proofs, limits, messages, repeatability and bad input."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

import layoutopt
from layoutopt import unwinding
from layoutopt.base.entries import Takes, load
from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, Progress, Stopped
from layoutopt.base.result import Result, Status, UnwindingResult
from layoutopt.check.elements import by_pieces, evaluate
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering import heuristics
from layoutopt.lowering.heuristics import greedy0_by_boxes
from layoutopt.unwinding import SOLVERS, unwind
from tests.support import EXACT, HEURISTIC, hard_graph, swap_solver


def plain(result: UnwindingResult) -> dict[str, Any]:
    """Return everything in a result but its times."""
    return {
        "status": str(result.status),
        "stopped": str(result.stopped),
        "score": str(result.score),
        "bound": str(result.bound),
        "max_score": str(result.max_score),
        "size": result.size,
        "pairs": [(p.a, p.b, str(p.value), p.elements, p.matched) for p in result.pairs],
        "layouts": result.layouts,
        "order": result.order,
    }


def test_results_are_complete() -> None:
    """Layouts, pairs, order and counts fit the graph and each other, evaluated both ways."""
    for seed in range(6):
        graph = random_graph(seed, elements=20)
        for name in ("auto", *HEURISTIC, "greedy0"):
            result = unwind(graph, name, seed=seed)
            found = evaluate(graph, result.layouts or {})
            assert found.violations == ()
            assert by_pieces(graph, result.layouts or {}) == found
            assert (found.score, found.pairs) == (result.score, result.pairs)
            assert found.max_score == result.max_score
            assert (result.instance, result.solver, result.seed) == (graph.name, name, seed)
            assert result.version == layoutopt.__version__
            assert result.size["free_elements"] == sum(t.size for t in graph.sinks())
            assert result.size["elements"] == sum(t.size for t in graph.tensors())
            assert result.seconds.keys() >= {"solve", "check", "total"}
            assert all(0 <= s <= result.seconds["total"] for s in result.seconds.values())


class TestProof:
    """``optimal`` is said only where score and bound are exactly equal."""

    def decimals(self, first: str, second: str) -> Graph:
        """Return a graph of one element with two wishes."""
        graph = Graph("decimals")
        x = graph.sink((1,), name="x")
        for value in (first, second):
            graph.valued_pair(x, graph.source((1,)), value)
        return graph

    def test_tenths(self) -> None:
        """0.1 + 0.2 is no more than 0.3, and is not taken for more."""
        graph = self.decimals("0.3", "0.1")
        graph.valued_pair("x", "source1", "0.2")
        for name in EXACT:
            result = unwind(graph, name)
            assert (result.score, result.bound) == (Decimal("0.3"), Decimal("0.3"))

    def test_small_differences_decide(self) -> None:
        """1 against 1 + 1e-30: the larger one is found, and proved."""
        result = unwind(self.decimals("1", "1.000000000000000000000000000001"))
        assert result.score == Decimal("1.000000000000000000000000000001")
        assert result.status is Status.OPTIMAL

    def test_small_differences_are_no_proof(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A solver that is 1e-30 short of its bound has not proved anything."""
        graph = self.decimals("1", "1.000000000000000000000000000001")

        def nearly(problem: Any, _limits: Any, _start: Any) -> Result:
            labels = problem.reward_at[problem.rewards.argmin()][1:]
            return Result(objective=problem.value(labels), bound=10**30 + 1, labelling=labels)

        swap_solver(monkeypatch, "auto", nearly)
        result = unwind(graph)
        assert (result.score, result.bound) == (1, Decimal("1.000000000000000000000000000001"))
        assert result.status is Status.FEASIBLE
        assert result.gap is not None
        assert 0 < result.gap < 1e-29

    def test_wrong_solvers_are_found_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A wrong objective, a bound below the score, broken order: internal errors, no results."""
        graph = Graph()
        x = graph.sink((1,), name="x")
        graph.valued_pair(graph.barrier([x], (1,), name="b"), x, 2)
        graph.valued_pair(x, graph.source((1,)), 1)

        def result(label: int, objective: int, bound: int) -> Callable[..., Result]:
            def solve(problem: Any, _limits: Any, _start: Any) -> Result:
                labels = problem.reward_at[problem.rewards.argsort()[label]][1:]
                return Result(objective=objective, bound=bound, labelling=labels)

            return solve

        for solver, reason in [
            (result(0, 2, 2), "the layouts score 1.0, but the solver claims 2.0"),
            (result(0, 1, 0), "the score 1.0 exceeds the bound 0.0"),
            (result(1, 2, 2), "barrier order: 'b' waits for itself"),
        ]:
            swap_solver(monkeypatch, "auto", solver)
            with pytest.raises(InternalError, match=reason):
                unwind(graph)

    def test_large_numbers(self) -> None:
        """Values of 400 digits are exact; messages say infinity where floats end."""
        graph = self.decimals("1e399", "1e-400")
        heard: list[Progress] = []
        result = unwind(graph, progress=heard.append)
        assert result.score == Decimal("1e399")
        assert result.status is Status.OPTIMAL
        assert result.gap == 0


def test_search_with_the_same_seed() -> None:
    """Equal calls give equal results and messages, where branching is needed too."""
    graph = hard_graph(4, 5)
    heard: list[list[Progress]] = [[], []]
    one, two = (unwind(graph, seed=3, progress=tell.append) for tell in heard)
    assert one.status is Status.OPTIMAL
    assert json.dumps(plain(one)) == json.dumps(plain(two))
    first, second = ([(m.phase, m.objective, m.bound) for m in told] for told in heard)
    assert first == second
    assert {"message passing", "branching"} <= {phase for phase, _, _ in first}
    known = [(score, bound or 0) for _, score, bound in first if score is not None]
    scores, bounds = ([pair[k] for pair in known] for k in (0, 1))
    assert (scores, bounds) == (sorted(scores), sorted(bounds, reverse=True))
    assert scores[-1] <= (one.score or 0) <= (one.bound or 0) <= bounds[-1]
    assert unwind(graph, seed=-4).score == one.score


class TestLimits:
    """Time, gap and interrupts, on a graph whose optimum nobody proves in seconds."""

    @pytest.mark.parametrize("name", SOLVERS)
    def test_time(self, name: str) -> None:
        """The whole call ends soon after its limit, with layouts, and a bound if it has any."""
        graph = hard_graph(1, 14)
        begun = time.monotonic()
        result = unwind(graph, name, time_limit=1.5)
        assert time.monotonic() - begun < 15  # slow machines included
        assert result.layouts is not None
        assert evaluate(graph, result.layouts).violations == ()
        assert result.status is Status.FEASIBLE
        if name in EXACT:
            assert result.stopped is Stopped.TIME_LIMIT
            assert result.bound is not None
            assert result.score is not None
            assert result.score < result.bound <= 10**6

    def test_longer_is_not_worse(self) -> None:
        """More time never gives less, and bounds of short runs hold for long ones."""
        graph = hard_graph(1, 12)
        short, long = (unwind(graph, time_limit=t) for t in (0.2, 1))
        assert short.score is not None
        assert long.score is not None
        assert short.bound is not None
        assert short.score <= long.score <= short.bound

    @pytest.mark.parametrize("name", SOLVERS)
    def test_no_time(self, name: str) -> None:
        """With no time at all there is a result that says so, and nothing else."""
        result = unwind(hard_graph(1, 5), name, time_limit=0)
        assert result.stopped is Stopped.TIME_LIMIT
        assert (result.score, result.gap, result.layouts) == (None,) * 3
        assert result.bound is not None  # what the values add up to
        assert result.status is Status.UNKNOWN
        assert result.pairs == result.order == ()
        assert result.max_score is not None

    @pytest.mark.parametrize("name", EXACT)
    def test_interrupt(self, name: str) -> None:
        """Ctrl-C once: the best layouts so far, and the handler is as it was before."""
        before = signal.getsignal(signal.SIGINT)
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        result = unwind(hard_graph(1, 14), name, time_limit=6)  # HiGHS runs on until then
        timer.join()
        assert result.stopped is Stopped.INTERRUPTED
        assert result.status is Status.FEASIBLE
        assert result.layouts is not None
        assert signal.getsignal(signal.SIGINT) is before

    def test_gap(self) -> None:
        """With a gap allowed, it stops early, within the gap, and says why."""
        for gap in (0.5, 0.1):
            result = unwind(hard_graph(2, 12), gap=gap, time_limit=60)
            assert result.stopped is Stopped.GAP_LIMIT
            assert result.status is Status.FEASIBLE
            assert result.gap is not None
            assert 0 < result.gap <= gap

    def test_gap_beside_a_large_constant(self) -> None:
        """A gap is relative to the whole score, which a constant loss can make small."""
        graph = hard_graph(2, 3)
        x = graph.tensor("x")
        best = unwind(graph).score
        assert best is not None
        graph.valued_pair(x, x, -int(best) // x.size)
        for name in EXACT:
            result = unwind(graph, name, gap=0.2, time_limit=60)
            assert result.score is not None
            assert result.bound is not None
            assert 0 <= result.bound - result.score <= Decimal("0.2") * abs(result.score)


class TestMessages:
    """What a listener is told."""

    @pytest.mark.parametrize("name", SOLVERS)
    def test_bounds_and_objectives(self, name: str) -> None:
        """Bounds never rise, objectives never fall, the final ones agree with the last."""
        told = 0
        graphs = [random_graph(s, elements=24, ops=14, pairs=8) for s in range(5)]
        for graph in [*graphs, hard_graph(3, 3)]:
            heard: list[Progress] = []
            result = unwind(graph, name, progress=heard.append)
            best = result.bound if result.bound is not None else result.max_score
            seconds = [message.seconds for message in heard]
            assert seconds == sorted(seconds)
            assert seconds[-1] <= result.seconds["total"]
            assert all(message.phase for message in heard)
            known = [m for m in heard if m.objective is not None and m.bound is not None]
            told += len(known)
            for message in known:
                assert (message.objective or 0) <= float(best) + 1e-9
                assert (message.bound or 0) >= float(result.score or 0) - 1e-9
                assert message.gap is not None
                assert message.gap >= 0
            assert [m.objective for m in known] == sorted(m.objective or 0 for m in known)
            assert [m.bound for m in known] == sorted((m.bound or 0 for m in known), reverse=True)
        assert told > 0 or name == "mip" or name not in EXACT

    def test_numbers_beyond_floats(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Scores that no float holds are told as infinity."""

        def loud(problem: Any, limits: Limits, _start: Any) -> Result:
            limits.report("loud", -(10**801), 10**801)
            return load("mip", Takes.LABELLING)(problem, limits, None)

        swap_solver(monkeypatch, "auto", loud)
        graph = Graph()
        graph.valued_pair(graph.sink((1,)), graph.source((1,)), "1e399")
        heard: list[Progress] = []
        unwind(graph, progress=heard.append)
        [message] = [m for m in heard if m.phase == "loud"]
        assert (message.objective, message.bound) == (-math.inf, math.inf)


@pytest.mark.parametrize("name", SOLVERS)
def test_too_large(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that is too large and too irregular gets what greedy0 makes of it in time."""
    short = partial(greedy0_by_boxes, steps=300)
    monkeypatch.setattr(heuristics, "greedy0_by_boxes", short)
    graph = Graph("huge")
    p, q = 100_003, 99_991
    x = graph.sink((p * q,), name="x")
    for rows, columns in ((p, q), (q, p)):
        half = graph.reshape(x, (rows, columns))[:, : columns // 2]
        graph.valued_pair(half, graph.source(half.shape), 1)
    result = unwind(graph, name)
    assert result.status is Status.FEASIBLE
    assert (result.stopped is Stopped.SIZE_LIMIT) == (name != "greedy0")
    assert result.bound == result.max_score


def test_large_graphs_have_no_greedy_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a size, greedy0 is not asked for a start, and the answer is as good."""
    monkeypatch.setattr(unwinding, "START_LIMIT", 0)

    def never(*_given: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(unwinding, "greedy0", never)
    for name in EXACT:
        graph = random_graph(4, elements=20)
        assert unwind(graph, name).status is Status.OPTIMAL


def test_starts_that_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A greedy start that does not come in time is done without."""

    def slow(*_given: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(unwinding, "greedy0", slow)
    assert unwind(random_graph(4, elements=20)).status is Status.OPTIMAL


def test_a_start_out_of_order_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that says nothing is not answered with a start that breaks barrier order."""
    graph = Graph("waits for itself")
    x = graph.sink((1,), name="x")
    graph.valued_pair(graph.barrier([x], (1,), name="b"), x, 2)
    graph.valued_pair(x, graph.source((1,)), 1)

    def forbidden(_run: Any, lowered: Any, _limits: Any) -> Any:
        problem = lowered.problem
        return problem.reward_at[problem.rewards.argmax()][1:]

    monkeypatch.setattr(unwinding, "_start", forbidden)
    swap_solver(monkeypatch, "cpsat", lambda *_: Result(stopped=Stopped.SIZE_LIMIT))
    result = unwind(graph, "cpsat")
    assert (result.score, result.layouts) == (0, {"x": (("x", 0, 0, ((1, 1, 1),)),)})


def test_no_answer_and_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that says nothing is answered with fresh locations for everything."""
    monkeypatch.setattr(unwinding, "START_LIMIT", 0)
    graph = Graph("beyond CP-SAT")
    x, s = graph.sink((2,), name="x"), graph.source((2,), name="s")
    graph.valued_pair(x, s, "1e30")
    graph.valued_pair(x, s, 1)
    result = unwind(graph, "cpsat")
    assert (result.score, result.stopped) == (0, Stopped.SIZE_LIMIT)
    assert result.bound == result.max_score == Decimal(2 * (10**30 + 1))
    assert result.layouts == {"x": (("x", 0, 0, ((2, 1, 1),)),)}
    assert result.status is Status.FEASIBLE
