"""Users' solvers that return garbage end in one line that names them, and never in an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import layoutopt
from layoutopt import Graph, Result, SolverError, Status, Stopped, registry, unwind, unwinding
from layoutopt.base.limits import Limits
from layoutopt.network.problem import Labelling
from layoutopt.tiles.memory import TileMemory
from tests.cli.conftest import Run, instance, run
from tests.support import hard_graph

__all__ = ["instance", "run"]


def graph_of_one() -> Graph:
    """Return a graph of one element: s is worth 2, the barrier's output 5, but it reads x."""
    graph = Graph("one")
    x = graph.sink((1,), name="x")
    graph.valued_pair(graph.barrier([x], (1,), name="b"), x, 5)
    graph.valued_pair(x, graph.source((1,), name="s"), 2)
    graph.valued_pair(x, graph.source((1,), name="t"), 1)
    return graph


def label(problem: Labelling, reward: int) -> np.ndarray:
    """Return the labelling that earns one reward."""
    return problem.reward_at[problem.rewards == reward][:, 1].copy()


def blamed(call: Callable[..., Any], *told: str, exact: bool = False) -> None:
    """Expect one line of a SolverError that names the solver and tells what is wrong."""
    layoutopt.solver("mine", exact=exact)(call)
    with pytest.raises(SolverError) as error:
        unwind(graph_of_one(), "mine")
    text = str(error.value)
    assert text.startswith("solver 'mine' ")
    assert len(text.splitlines()) == 1
    for part in told:
        assert part in text


def fail(*_given: object) -> Result:
    """Fail with a reason of two lines."""
    raise ValueError("no idea\nwhat to do")


def answered(answer: Callable[[Labelling], Any]) -> object:
    """Solve by a solver that gives an answer whatever it is asked."""
    layoutopt.solver("mine")(lambda problem, *_: answer(problem))
    return unwind(graph_of_one(), "mine")


class TestSolvers:
    """On labelling problems."""

    def test_failures(self) -> None:
        """What is raised is told, on one line, with the cause kept for those who look."""
        blamed(fail, "failed: ValueError: no idea what to do")
        blamed(lambda *_: sys.exit("tired"), "failed: SystemExit: tired")
        blamed(lambda: None, "failed: TypeError")
        with pytest.raises(SolverError) as error:
            unwind(graph_of_one(), "mine")
        assert isinstance(error.value.__cause__, TypeError)

    def test_problems_cannot_be_changed(self) -> None:
        """Whoever writes to the problem's arrays fails at that."""
        for name in ("edges", "weights", "reward_at", "rewards", "banned"):

            def spoil(problem: Labelling, *_: object, name: str = name) -> Result:
                getattr(problem, name)[...] = 0
                return Result()

            blamed(spoil, "failed: ValueError", "read-only")

        def spoil_order(problem: Labelling, *_: object) -> Result:
            assert problem.precedence is not None
            problem.precedence.node_readers[:] = 0
            return Result()

        blamed(spoil_order, "failed: ValueError", "read-only")

    @pytest.mark.parametrize(
        ("reward", "bound", "told"),
        [
            (2, 1, "claims the bound 1, but 2 is attainable"),  # by its own labelling
            (1, 1, "claims the bound 1, but 2 is attainable"),  # by greedy0, or a single move
            (None, 1, "claims the bound 1, but 2 is attainable"),
        ],
    )
    def test_bounds_below_the_truth(self, reward: int | None, bound: int, told: str) -> None:
        """A claimed bound is held against all that is known, and what local search makes of it."""

        def claim(problem: Labelling, *_: object) -> Result:
            return Result(labelling=None if reward is None else label(problem, reward), bound=bound)

        blamed(claim, told, exact=True)
        layoutopt.solver("mine")(claim)
        assert unwind(graph_of_one(), "mine").bound == 5

    def test_local_search_refutes_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where no start tells better, a single move from the claimed optimum does."""
        monkeypatch.setattr(unwinding, "START_LIMIT", 0)
        told = "claims the bound 1, but 2 is attainable"
        blamed(lambda p, *_: Result(labelling=label(p, 1), bound=1), told, exact=True)

    def test_exact_solvers_prove(self) -> None:
        """A bound that holds is reported, and makes the answer optimal where it is met."""
        for reward, bound, status in [(2, 2, Status.OPTIMAL), (1, 2, Status.FEASIBLE)]:

            def solve(
                problem: Labelling, *_: object, reward: int = reward, bound: int = bound
            ) -> Result:
                return Result(labelling=label(problem, reward), bound=bound)

            layoutopt.solver("mine", exact=True)(solve)
            found = unwind(graph_of_one(), "mine")
            assert (found.score, found.bound, found.status) == (reward, bound, status)

    @pytest.mark.parametrize(("value", "room", "bound"), [(1, 16, 16), (1, 4, 16), (-1, 16, 12)])
    def test_tile_memories(self, value: int, room: int, bound: int) -> None:
        """Its own layouts and bound are returned, if they fit and hold, not those of ``auto``."""
        graph, asked = Graph("two"), list[int]()
        a, b = graph.sink((4,), name="a"), graph.sink((4,), name="b")
        graph.valued_pair(a, graph.source((4,), [0] * 4), value)
        graph.valued_pair(a, b, 3)
        graph.tile_memory = TileMemory(4, room * 4)
        auto = registry.find("auto").load()

        @layoutopt.solver("mine", exact=True)
        def solve(problem: Labelling, *given: Any) -> Result:
            asked.append(problem.nodes)
            return auto(problem, *given)

        found = unwind(graph, "mine")
        assert asked
        assert found.bound == bound
        assert (found.status is Status.OPTIMAL) == (value > 0 and room == 16)

    def test_no_answer(self) -> None:
        """A solver that returns nothing is answered with its start, as built-in ones are."""
        layoutopt.solver("mine")(lambda *_: Result(stopped=Stopped.SIZE_LIMIT))
        found = unwind(graph_of_one(), "mine")
        assert found.score == unwind(graph_of_one(), "greedy0").score
        assert found.stopped is Stopped.SIZE_LIMIT

    def test_time(self) -> None:
        """Running out of time in time is no fault; at any other time it is one."""

        def slow(_problem: Labelling, limits: Limits, _start: object) -> Result:
            while not limits.over:
                pass
            raise TimeoutError

        layoutopt.solver("mine")(slow)
        found = unwind(graph_of_one(), "mine", time_limit=0.2)
        assert (found.score, found.stopped) == (2, Stopped.TIME_LIMIT)

        def hasty(*_given: object) -> Result:
            raise TimeoutError("no patience")

        blamed(hasty, "failed: TimeoutError: no patience")

    def test_labels_from_elsewhere_become_fresh(self) -> None:
        """A label that nothing earns in its component is legal, but means nothing there."""
        graph = Graph("two")
        for name, value in (("x", 2), ("y", 3)):
            sink = graph.sink((1,), name=name)
            graph.valued_pair(sink, graph.source((1,), name=f"s{name}"), value)
        for last, mine, score in ((True, "y", 3), (False, "x", 2)):

            def same(problem: Labelling, *_: object, last: bool = last) -> Result:
                return Result(labelling=np.full(problem.nodes, (problem.labels - 1) * last))

            layoutopt.solver("mine")(same)
            found = unwind(graph, "mine")
            assert found.score == score
            own = {name: name for name in "xy"} | {mine: f"s{mine}"}
            assert {name: p[0] for name, (p,) in (found.layouts or {}).items()} == own

    def test_on_the_command_line(self, run: Run, instance: object) -> None:
        """One line, and an exit code that tells that nothing was answered."""
        layoutopt.solver("mine")(fail)
        ran = run("solve", instance, "--solver", "mine")
        assert ran.code not in (0, 2)
        assert ran.err.count("\n") == 1
        assert "solver 'mine' failed: ValueError: no idea what to do" in ran.err


def own_places(graph: Graph, places: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return origins that leave every element of every sink where it is."""
    return {
        sink.index: (np.full(places.count(sink.index), sink.index), np.arange(sink.size))
        for sink in graph.sinks()
    }


def register(change: Callable[[Graph, Any], Any]) -> None:
    """Register a heuristic that leaves everything where it is, but for a change."""

    @layoutopt.heuristic("mine")
    def choose(graph: Graph, _limits: object, _given: object, places: Any) -> Any:
        found = own_places(graph, places)
        changed = change(graph, found)
        return found if changed is None else changed


def changed(change: Callable[[Graph, Any], Any]) -> object:
    """Solve by a heuristic that leaves everything where it is, but for a change."""
    register(change)
    return unwind(graph_of_one(), "mine")


class TestHeuristics:
    """On graphs."""

    def test_views_have_no_locations(self) -> None:
        """Locations are those of sinks, sources, fixed points and barriers."""
        graph = graph_of_one()
        view = graph.identity("x", name="copy")
        register(lambda g, f: {0: (np.array([view.index]), np.array([0]))})
        with pytest.raises(SolverError, match="gives sink 'x' locations of 'copy', a view"):
            unwind(graph, "mine")

    def test_given_elements_stay(self) -> None:
        """What is fixed must not be moved; what keeps it is scored."""
        graph = graph_of_one()
        fixed = {"x": (("s", 0, 0, ()),)}
        register(lambda g, f: None)
        with pytest.raises(SolverError, match="moves elements of sink 'x' whose locations"):
            unwind(graph, "mine", fixed=fixed)
        s = graph.tensor("s").index
        register(lambda g, f: {0: (np.array([s]), np.array([0]))})
        assert unwind(graph, "mine", fixed=fixed).score == 2

    def test_machines(self) -> None:
        """On a tile memory that is too small for the answer there is none, and no blame."""
        graph = Graph("full")
        x = graph.sink((4,), name="x")
        graph.valued_pair(x, graph.source((4,), [0, 0, 0, 0], name="s"), 1)
        s = graph.tensor("s").index
        for room, status in ((4, Status.OPTIMAL), (2, Status.UNKNOWN)):
            graph.tile_memory = TileMemory(2, room, {"default": 1})
            register(lambda g, f: {x.index: (np.full(4, s), np.arange(4))})
            assert unwind(graph, "mine").status is status


def test_users_solvers_on_a_hard_graph() -> None:
    """Copies of a built-in solver, registered, say what it says, but for what it proves."""
    built_in = registry.find("auto").load()
    layoutopt.solver("like-auto")(lambda *given: built_in(*given))
    layoutopt.solver("exactly-auto", exact=True)(lambda *given: built_in(*given))
    graph = hard_graph(3, 5)
    one, two, three = (unwind(graph, name) for name in ("auto", "like-auto", "exactly-auto"))
    assert one.score == two.score == three.score
    assert (two.bound, two.status) == (166, Status.FEASIBLE)
    assert (three.bound, three.status) == (one.bound, Status.OPTIMAL)
    assert replace(three, solver="auto").layouts == one.layouts
