"""Explanations of pairs, worked out by hand."""

from __future__ import annotations

import os
import signal
import threading
import time
import tomllib
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from layoutopt import Graph, PairExplanation, UnwindingResult, explain_pair, read, unwind
from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Status
from layoutopt.explain import pair as pair_module
from layoutopt.explain.pair import ParametricSolves, least_value, won
from layoutopt.explain.subject import Subject
from layoutopt.generate.families import generate
from tests.examples.graphs import graph_of
from tests.support import hard_graph

FIGURES = Path(__file__).parents[2] / "instances" / "figures"


def explained(graph: Graph, a: str, b: str) -> PairExplanation:
    """Return the explanation of a pair, all of which must be proved."""
    found = explain_pair(graph, unwind(graph), a, b)
    assert found.proved
    return found


def named(found: PairExplanation) -> list[tuple[str, str]]:
    """Return the names of the fewest pairs in the way."""
    return [(pair.a, pair.b) for pair in found.smallest or ()]


CASES = tomllib.loads((Path(__file__).parents[1] / "cases/explanations.toml").read_text())


def small(start: str) -> Graph:
    """Return the graph of the first case whose name begins with some words."""
    name = next(name for name in CASES if name.startswith(start))
    return graph_of(CASES[name]["graph"].replace("; ", "\n"))


split, rivals, tight = (
    partial(small, words) for words in ("one element", "winning", "where tiles")
)


@pytest.mark.parametrize("name", CASES)
def test_pairs_by_hand(name: str) -> None:
    """What is told of a pair; each reason why positions cannot match is told, with how many."""
    case = CASES[name]
    found = explained(small(name), *case["pair"])
    assert {key: str(getattr(found, key)) for key in case["told"]} == case["told"]
    for changes in ("losses", "gains"):
        changed = [f"{x.a} {x.b} {x.difference}" for x in getattr(found, changes)]
        assert changed == case.get(changes, changed)
    smallest = sorted(map(" ".join, named(found)))
    assert smallest == case.get("smallest", smallest)
    told = case.get("obstacles", ())
    for obstacle, (positions, words) in zip(found.obstacles, told, strict="obstacles" in case):
        assert obstacle.positions == positions
        assert words in obstacle.why
        assert obstacle.why in found.reason


def test_outputs_of_one_barrier_match_nowhere() -> None:
    """Both outputs of a barrier and a fixed tensor have locations that differ."""
    graph = Graph("obstacles")
    first, second = graph.barrier([], shapes=[(1,), (2,)], name="both")
    a = graph.concat([graph.sink((1,)), second], 0, name="a")
    graph.valued_pair(a, graph.concat([first, graph.source((2,))], 0, name="b"), 1)
    found = explained(graph, "a", "b")
    assert (found.matched, [x.positions for x in found.obstacles]) == (1, [2])
    assert "both locations are fixed and differ" in found.reason


def test_a_pair_that_is_won() -> None:
    """It needs no alternative; its threshold is the value down to which it stays won."""
    graph = read(FIGURES / "chained_calls_copies.json")
    found = explained(graph, "x", "matmul")
    assert (found.matched, found.most, found.cost, found.layouts) == (6, 6, 0, None)
    assert (found.threshold, found.threshold_more, found.smallest) == (8, None, ())
    assert found.changes == found.losses == found.gains == ()
    assert found.reason == "it matches everywhere"


def test_what_is_out_of_reach_stays() -> None:
    """Of two parts that a heuristic laid out badly, only the pair's own is laid out anew."""
    graph = Graph("two parts")
    for name in "pq":
        x = graph.sink((2,), name=name)
        good, bad = (graph.source((2,), name=f"{name} {what}") for what in ("good", "bad"))
        graph.valued_pair(x, bad, 3)
        for _ in range(2):
            graph.valued_pair(graph.identity(x), good, 2)
    result = unwind(graph, "greedy0")
    assert result.score == 12
    found = explain_pair(graph, result, "identity0", "p good")
    assert (found.alternative_score, found.cost, found.status) == (14, -2, Status.FEASIBLE)
    assert found.layouts is not None
    assert {name: layout[0][0] for name, layout in found.layouts.items()} == {
        "p": "p good",
        "q": "q bad",
    }
    assert found.reason.endswith("; that would be better, these layouts are not optimal")


def test_odd_layouts_do_not_stay() -> None:
    """A sink that waits for a barrier for nothing is laid out anew, or both would wait."""
    graph = Graph("odd")
    x, z = graph.sink((2,), name="x"), graph.sink((2,), name="z")
    graph.barrier([x], (2,), name="of x")
    graph.valued_pair(x, graph.barrier([z], (2,), name="of z"), 2)
    graph.valued_pair(z, graph.source((2,), name="c"), 1)
    whole = ((2, 1, 1),)
    result = unwind(graph, fixed={"x": (("x", 0, 0, whole),), "z": (("of x", 0, 0, whole),)})
    found = explain_pair(graph, result, "x", "of z")
    assert (found.score, found.alternative_score, found.alternative_proved) == (0, 6, True)


def test_layouts_that_were_given() -> None:
    """A result with given layouts is optimal only with these; its bound is not held against it."""
    graph = split()
    result = unwind(graph, fixed={"x": (("x", 0, 0, ((2, 1, 1),)),)})
    assert (result.score, result.bound) == (0, 0)
    found = explain_pair(graph, result, "x", "a")
    assert (found.alternative_score, found.cost) == (2, -2)
    assert (found.threshold_more, found.threshold) == (2, 5)
    halves = (("b", 0, 0, ((1, 1, 1),)), ("x", 1, 1, ((1, 1, 1),)))
    found = explain_pair(graph, unwind(graph, fixed={"x": halves}), "l", "b")
    assert (found.matched, found.most, found.score, found.alternative_score) == (1, 1, 2, 7)


def test_a_large_graph() -> None:
    """Of millions of elements at once: a bias loses its reduce to three pairs of the same value."""
    graph = generate("gpt2-small", {})
    result = unwind(graph)
    bias = "layer0.feed_forward.up.b"
    found = explain_pair(graph, result, "layer0.feed_forward.up.biased.1.reduce", bias)
    assert (found.value, found.matched, found.most) == (20, 0, 3072)
    assert (found.cost, found.threshold) == (2 * 20 * 3072, 60)
    assert [x.difference for x in found.changes] == [-20 * 3072] * 3
    assert len(named(found)) == 2
    assert all(bias in names for names in named(found))
    assert found.proved


def test_without_time() -> None:
    """What is known of the result is told, and that nothing else is."""
    graph = split()
    found = explain_pair(graph, unwind(graph), "x", "a", time_limit=0)
    assert (found.matched, found.loses, found.score) == (0, 2, 7)
    assert (found.most, found.alternative_score, found.cost, found.threshold) == (None,) * 4
    assert (found.smallest, found.layouts, found.proved) == (None, None, False)
    assert found.reason.startswith("time ran out")


@pytest.mark.parametrize("worse", [{"time_limit": 0}, {"solver": "greedy0"}])
@pytest.mark.parametrize(
    ("build", "a", "b"), [(split, "x", "a"), (rivals, "y", "q"), (tight, "y", "a")]
)
def test_time_that_ends_between_solves(
    monkeypatch: pytest.MonkeyPatch,
    build: Callable[[], Graph],
    a: str,
    b: str,
    worse: dict[str, Any],
) -> None:
    """From wherever on solves prove nothing, what is called proved is what else is found."""
    graph, calls, most = build(), 0, 10**6

    def counted(*given: Any, **more: Any) -> UnwindingResult:
        nonlocal calls
        calls += 1
        return unwind(*given, **(more if calls <= most else more | worse))

    monkeypatch.setattr(pair_module, "unwind", counted)
    result = unwind(graph)
    full = explain_pair(graph, result, a, b)
    assert full.proved
    count = calls
    assert count >= 3
    for ended in range(count):
        calls, most = 0, ended
        found = explain_pair(graph, result, a, b)
        assert not found.proved or "solver" in worse
        assert not found.most_proved or found.most == full.most
        assert not found.alternative_proved or found.alternative_score == full.alternative_score
        assert not found.threshold_proved or found.threshold == full.threshold
        assert not found.smallest_proved or named(found) == named(full)
        assert str(found)


def test_not_proved() -> None:
    """On a graph that nobody solves in seconds, numbers are told that are not proved."""
    graph = hard_graph(1, 14)
    result = unwind(graph, time_limit=1)
    begun = time.monotonic()
    found = explain_pair(graph, result, "x", "s", time_limit=3)
    assert time.monotonic() - begun < 25  # slow machines included
    assert found.status is Status.FEASIBLE
    assert not found.proved
    assert not found.threshold_proved
    assert "(not proved)" in str(found)


@pytest.mark.parametrize("count", [1, 2])
def test_either_threshold_may_lack_a_proof(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds are proved only if both are, that for more positions and that for all."""

    def doubted(trials: ParametricSolves, wanted: int, floor: int) -> tuple[Fraction, bool]:
        found, proved = least_value(trials, wanted, floor)
        return found, proved and wanted != count

    monkeypatch.setattr("layoutopt.explain.pair.least_value", doubted)
    graph = split()
    found = explain_pair(graph, unwind(graph), "x", "a")
    assert (found.threshold_more, found.threshold, found.threshold_proved) == (2, 5, False)
    assert found.smallest_proved
    assert not found.proved


def test_without_a_proof_of_the_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that rests on the alternative is proved if it is not."""
    monkeypatch.setattr(
        "layoutopt.explain.pair.won", lambda *given: won(*given)._replace(proved=False)
    )
    graph = split()
    found = explain_pair(graph, unwind(graph), "x", "a")
    assert found.most_proved
    assert not (found.alternative_proved or found.threshold_proved or found.smallest_proved)
    assert found.reason.endswith("(not proved)")


def test_interrupt() -> None:
    """Ctrl-C once ends all that is left to solve, and the handler is as it was before."""
    graph = hard_graph(1, 14)
    result = unwind(graph, time_limit=1)
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    found = explain_pair(graph, result, "x", "s", time_limit=120)
    timer.join()
    assert time.monotonic() - begun < 60
    assert not found.proved
    assert signal.getsignal(signal.SIGINT) is before


def test_layouts_are_confirmed() -> None:
    """Layouts of the whole graph that are not worth what was found stop everything."""
    graph = split()
    result = unwind(graph)
    subject = Subject(graph, result, Limits())
    subject.confirm(subject.layouts, Decimal(7))
    with pytest.raises(InternalError, match="they earn 7"):
        subject.confirm(subject.layouts, Decimal(8))
    with pytest.raises(InternalError, match="has no layout"):
        subject.confirm({}, Decimal(0))


def test_alternatives_are_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alternative is; the result itself was when it was read."""
    seen = []
    monkeypatch.setattr(Subject, "confirm", lambda _, *given: seen.append(given))
    graph = split()
    result = unwind(graph)
    found = explain_pair(graph, result, "x", "a")
    assert seen == [(found.layouts, found.alternative_score)]
    explain_pair(graph, result, "l", "b")
    assert len(seen) == 1


def test_progress() -> None:
    """Whoever listens hears what is being solved, and for what."""
    graph, heard = split(), list[Progress]()
    explain_pair(graph, unwind(graph), "x", "a", progress=heard.append)
    parts = [message.phase.partition(":")[0] for message in heard]
    assert list(dict.fromkeys(parts)) == [
        "as many as can match",
        "winning the pair",
        "where choices change",
        "without pairs in the way",
    ]
