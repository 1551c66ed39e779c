"""Explanations of pairs, worked out by hand."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from layoutopt import (
    Change,
    Graph,
    PairExplanation,
    UnwindingResult,
    evaluate,
    explain_pair,
    read,
    unwind,
)
from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Status
from layoutopt.explain import trials
from layoutopt.explain.pair import Threshold, least_value
from layoutopt.explain.subject import Subject
from layoutopt.explain.trials import ParametricSolves, won
from layoutopt.generate.families import generate
from layoutopt.tiles.memory import TileMemory
from tests.support import hard_graph, refused

FIGURES = Path(__file__).parents[2] / "instances" / "figures"


def explained(graph: Graph, a: str, b: str) -> PairExplanation:
    """Return the explanation of a pair, all of which must be proved."""
    found = explain_pair(graph, unwind(graph), a, b)
    assert found.proved
    return found


def named(found: PairExplanation) -> list[tuple[str, str]]:
    """Return the names of the fewest pairs in the way."""
    return [(pair.a, pair.b) for pair in found.smallest or ()]


def split() -> Graph:
    """Return a sink of two elements, for each of which another pair is worth more, 2 and 5."""
    graph = Graph("split")
    x = graph.sink((2,), name="x")
    graph.valued_pair(x, graph.source((2,), name="a"), 1)
    graph.valued_pair(x[:1], graph.source((1,), name="b"), 2)
    graph.valued_pair(x[1:], graph.source((1,), name="c"), 5)
    return graph


def rivals() -> Graph:
    """Return two barriers, each of which reads the sink that wants to lie like the other."""
    graph = Graph("rivals")
    x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
    graph.valued_pair(x, graph.barrier([y], (2,), name="of y"), 3)
    graph.valued_pair(y, graph.barrier([x], (2,), name="of x"), 2)
    return graph


def tight(room: int = 32) -> Graph:
    """Return two sinks of 8 elements of 4 bytes that want tile 0, at 3 and 2.

    ``x`` fills it; ``y`` gets another tile, where half of its elements earn 1.
    """
    graph = Graph("tight")
    x, y = graph.sink((8,), name="x"), graph.sink((8,), name="y")
    a = graph.source((8,), [0] * 8, name="a")
    b = graph.source((8,), [0, 1] * 4, name="b")
    for one, other, value in ((x, a, 3), (y, a, 2), (y, b, 1), (a, b, 1)):
        graph.valued_pair(one, other, value)
    graph.tile_memory = TileMemory(tiles=2, bytes_per_tile=room)
    return graph


def test_the_chained_calls() -> None:
    """The figure's choice: 60 for the target of x cost 54 and two copies; at 11 they are equal."""
    graph = read(FIGURES / "chained_calls_copies.json")
    result = unwind(graph)
    found = explain_pair(graph, result, "target_x", "x")
    assert (found.a, found.b, found.value, found.elements) == ("x", "target_x", 10, 6)
    assert (found.matched, found.most, found.loses, found.obstacles) == (0, 6, 60, ())
    assert (found.score, found.status) == (130, Status.OPTIMAL)
    assert (found.alternative_score, found.cost) == (124, 6)
    assert found.gains == ()
    assert [(x.difference, x.before, x.after) for x in found.losses] == [
        *[(-54, 6, 0), (-6, 6, 0), (-6, 6, 0)]
    ]
    assert (found.losses[0].a, found.losses[0].b) == ("x", "matmul")
    assert found.layouts is not None
    assert evaluate(graph, found.layouts).score == 124
    assert found.threshold == found.threshold_more == 11
    assert named(found) == [("x", "matmul")]
    assert found.proved
    assert found.reason.startswith("winning 6 positions would earn 60 and cost 66: 54 of (x, matm")


def test_a_pair_that_is_won() -> None:
    """It needs no alternative; its threshold is the value down to which it stays won."""
    graph = read(FIGURES / "chained_calls_copies.json")
    found = explained(graph, "x", "matmul")
    assert (found.matched, found.most, found.cost, found.layouts) == (6, 6, 0, None)
    assert (found.threshold, found.threshold_more, found.smallest) == (8, None, ())
    assert found.changes == found.losses == found.gains == ()
    assert found.reason == "it matches everywhere"


def test_fractions() -> None:
    """Three positions of one element against one that is worth 10: a third of 10 is the least."""
    graph = Graph("thirds")
    s = graph.sink((1,), name="s")
    wide = graph.expand(s, (3,), name="wide")
    graph.valued_pair(wide, graph.source((3,), ["here"] * 3, name="a"), 1)
    graph.valued_pair(s, graph.source((1,), name="b"), 10)
    found = explained(graph, "wide", "a")
    assert found.threshold == found.threshold_more == Fraction(10, 3)
    assert (found.cost, named(found)) == (7, [("s", "b")])


def test_part_of_a_pair() -> None:
    """One element is won from 2 on, both from 5 on; both rivals stand in the way."""
    found = explained(split(), "x", "a")
    assert (found.matched, found.most, found.cost) == (0, 2, 5)
    assert (found.threshold_more, found.threshold) == (2, 5)
    assert sorted(named(found)) == [("slice0", "b"), ("slice1", "c")]
    assert found.reason == (
        "winning 2 positions would earn 2 and cost 7: 5 of (slice1, c) and 2 of (slice0, b)"
    )


def test_repeated_pairs_add_up() -> None:
    """Pairs of the same tensors in either order are one; so are those that lose."""
    graph = Graph("repeated")
    x = graph.sink((2,), name="x")
    a, b = graph.source((2,), name="a"), graph.source((2,), name="b")
    for one, other, value in ((x, a, "0.5"), (a, x, 1), (x, b, 1), (b, x, "2.25")):
        graph.valued_pair(one, other, value)
    found = explained(graph, "a", "x")
    assert (found.value, found.threshold) == (Decimal("1.5"), Fraction(13, 4))
    assert found.changes == (Change("x", "b", Decimal("3.25"), 2, 0),)
    assert found.cost == Decimal("3.5")
    assert explain_pair(graph, unwind(graph), x, a).cost == found.cost


def test_values_of_either_sign() -> None:
    """A pair that nobody wants to match pays from the value on that makes up for what it costs."""
    graph = Graph("signs")
    x = graph.sink((2,), name="x")
    a = graph.source((2,), name="a")
    graph.valued_pair(x, a, -5)
    graph.valued_pair(graph.identity(x, name="again"), a, 3)
    found = explained(graph, "x", "a")
    assert (found.matched, found.most, found.cost) == (0, 2, 4)
    assert found.threshold == -3
    assert (found.smallest, [x.difference for x in found.gains]) == (None, [6])


def test_barrier_order_joins_groups() -> None:
    """Winning a pair costs one of other tensors, if both wait for each other."""
    found = explained(rivals(), "y", "of x")
    assert (found.matched, found.most, found.cost) == (0, 2, 2)
    assert [(x.a, x.b, x.difference) for x in found.losses] == [("x", "of y", -6)]
    assert (found.threshold, named(found)) == (3, [("x", "of y")])


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
    found = explain_pair(graph, unwind(graph, fixed={"x": halves}), "slice0", "b")
    assert (found.matched, found.most, found.score, found.alternative_score) == (1, 1, 2, 7)


def mixed(graph: Graph) -> None:
    """Add a pair of which the second half is fixed on both sides."""
    parts = [graph.sink((2,)), graph.source((2,)), graph.source((2,)), graph.source((2,))]
    a, b = graph.concat(parts[:2], 0, name="a"), graph.concat(parts[2:], 0, name="b")
    graph.valued_pair(a, b, 1)


def fixed(graph: Graph) -> None:
    """Add a pair of two sources, with one location in common."""
    a, b = graph.source((3,), [0, 1, 2], name="a"), graph.source((3,), [0, 2, 1], name="b")
    graph.valued_pair(a, b, 1)


def repeated(graph: Graph) -> None:
    """Add a pair in which one element stands three times."""
    wide = graph.expand(graph.sink((1,)), (3,), name="a")
    graph.valued_pair(wide, graph.source((3,), name="b"), 1)


def twice(graph: Graph) -> None:
    """Add a pair in which two elements stand twice."""
    x = graph.sink((2,))
    a = graph.concat([x, x], 0, name="a")
    graph.valued_pair(a, graph.source((4,), name="b"), 1)


def waiting(graph: Graph) -> None:
    """Add a pair of a sink and what waits for its first element, and of a fixed part."""
    x = graph.sink((2,))
    barrier = graph.barrier([x[:1]], (2,), name="first")
    parts = [graph.source((1,)), graph.source((1,))]
    a = graph.concat([x, parts[0]], 0, name="a")
    graph.valued_pair(a, graph.concat([barrier, parts[1]], 0, name="b"), 1)


def several(graph: Graph) -> None:
    """Add a pair of two outputs of one barrier and of a fixed tensor, which can match nowhere."""
    first, second = graph.barrier([], shapes=[(1,), (2,)], name="both")
    a = graph.concat([graph.sink((1,)), second], 0, name="a")
    graph.valued_pair(a, graph.concat([first, graph.source((2,))], 0, name="b"), 1)


def crowded(graph: Graph) -> None:
    """Add a pair of six elements that want one tile, which holds four; the last one's is given."""
    a = graph.concat([graph.sink((6,)), graph.source((1,), [1])], 0, name="a")
    graph.valued_pair(a, graph.source((7,), [0] * 7, name="b"), 1)
    graph.tile_memory = TileMemory(tiles=2, bytes_per_tile=16)


def grained(graph: Graph) -> None:
    """Add a pair of given tensors: the rule of one keeps grains of two together, on tiles 0 and 1.

    Without grains it would be on tiles 0 to 3.
    """
    graph.source((4,), name="a")
    graph.valued_pair("a", graph.source((4,), [0, 0, 1, 0], name="b"), 1)
    graph.tile_memory = TileMemory(tiles=4, bytes_per_tile=64, grain=2)


OBSTACLES: list[tuple[Callable[[Graph], None], int, list[tuple[int, str]]]] = [
    (mixed, 2, [(2, "both locations are fixed and differ")]),
    (fixed, 1, [(2, "no sink reaches either side, and their locations differ")]),
    (repeated, 1, [(2, "different locations; 'a' repeats elements")]),
    (twice, 2, [(2, "which want it at different locations")]),
    (waiting, 1, [(1, "fixed and differ"), (1, "barrier order: outputs of 'first' are known")]),
    (several, 1, [(2, "both locations are fixed and differ")]),
    (grained, 3, [(1, "tiles that are given differ")]),
    (crowded, 4, [(1, "tiles that are given differ"), (2, "tiles hold too little")]),
]


@pytest.mark.parametrize(
    ("build", "most", "why"), OBSTACLES, ids=lambda x: getattr(x, "__name__", "")
)
def test_obstacles(build: Callable[[Graph], None], most: int, why: list[tuple[int, str]]) -> None:
    """Each reason why positions cannot match is told, with how many; the rest is won."""
    graph = Graph("obstacles")
    build(graph)
    found = explained(graph, "a", "b")
    assert (found.matched, found.most) == (most, most)
    assert len(found.obstacles) == len(why)
    for obstacle, (positions, words) in zip(found.obstacles, why, strict=True):
        assert obstacle.positions == positions
        assert words in obstacle.why
        assert obstacle.why in found.reason
    assert found.reason.startswith("it matches wherever it can; at ")


def test_nowhere() -> None:
    """A pair that cannot match at all has no threshold, which is proved."""
    graph = Graph("nowhere")
    graph.valued_pair(graph.source((2,), name="a"), graph.source((2,), name="b"), 1)
    found = explained(graph, "a", "b")
    assert (found.most, found.threshold, found.threshold_more, found.smallest) == (
        0,
        None,
        None,
        (),
    )
    assert found.reason == (
        "it can match nowhere: no sink reaches either side, and their locations differ"
    )


def test_no_positions() -> None:
    """A pair of empty tensors says so."""
    graph = Graph("empty")
    graph.valued_pair(graph.sink((0,), name="a"), graph.source((0,), name="b"), 1)
    assert explained(graph, "a", "b").reason == "it has no positions"


def test_a_tile_memory() -> None:
    """Where tiles are full, pairs of other sinks pay; half of y pays from 2 on, all from 4 on."""
    found = explained(tight(), "y", "a")
    assert (found.matched, found.most, found.alternative_score, found.cost) == (0, 8, 24, 8)
    assert [(x.a, x.b, x.difference) for x in found.losses] == [("x", "a", -24)]
    assert (found.threshold_more, found.threshold, named(found)) == (2, 4, [("x", "a")])
    assert explained(tight(64), "y", "a").matched == 8


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
    ("build", "a", "b"), [(split, "x", "a"), (rivals, "y", "of x"), (tight, "y", "a")]
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

    monkeypatch.setattr(trials, "unwind", counted)
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

    def doubted(trials: ParametricSolves, wanted: int, floor: int) -> Threshold:
        found = least_value(trials, wanted, floor)
        return found._replace(proved=found.proved and wanted != count)

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
    explain_pair(graph, result, "slice0", "b")
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


def test_refused() -> None:
    """No such pair, no layouts, another graph's layouts, score or bound: one line each."""
    graph = split()
    result = unwind(graph)
    with refused("no valued pair of 'b' and 'c'"):
        explain_pair(graph, result, "b", "c")
    with refused("unknown tensor 'z'"):
        explain_pair(graph, result, "z", "c")
    with refused("no layouts"):
        explain_pair(graph, unwind(graph, time_limit=0), "x", "a")
    with refused("another graph", "its origin 'b'"):
        explain_pair(rivals(), result, "y", "of x")
    with refused("another graph", "it says 8, its layouts earn 7"):
        explain_pair(graph, replace(result, objective=Decimal(8)), "x", "a")
    worse = unwind(graph, fixed={"x": (("x", 0, 0, ((2, 1, 1),)),)})
    with refused("another graph", "bound is 0", "earn 2"):
        explain_pair(graph, replace(worse, size={}), "x", "a")
    with refused("time_limit"):
        explain_pair(graph, result, "x", "a", time_limit=-1)


def test_sums_of_many_digits() -> None:
    """Costs and alternative scores of 40 digits are exact, in numbers and in words."""
    graph = Graph("digits")
    x, y = graph.sink((1,), name="x"), graph.sink((1,), name="y")
    for name, value in (("a", "1e30"), ("b", "2e30")):
        graph.valued_pair(x, graph.source((1,), name=name), value)
    graph.valued_pair(x, y, "1e-9")
    told = explained(graph, "x", "a")
    assert told.score == Decimal("2000000000000000000000000000000.000000001")
    assert told.alternative_score == Decimal("1000000000000000000000000000000.000000001")
    assert told.cost == 10**30
    graph.valued_pair(y, graph.source((1,), name="c"), "3e-9")
    told = explained(graph, "y", "x")
    assert told.cost == Decimal("2e-9")
    both = Graph("both")
    z = both.sink((3,), name="z")
    both.valued_pair(z, both.source((3,), name="d"), "1e30")
    both.valued_pair(z, both.source((3,), name="e"), "1e-9")
    told = explained(both, "z", "e")
    assert told.cost == Decimal("2999999999999999999999999999999.999999997")
    assert told.loses == Decimal("3e-9")
    assert "cost 3,000,000,000,000,000,000,000,000,000,000 of (z, d)" in told.reason
