"""The steps of a result: which there are, in which order, and what each needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.figures import unbroadcast_add, valued_pair
from benchmarks.traps import barrier_too_late
from layoutopt.base.result import Piece
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.steps import BarrierReady, Place, ProgramStep, steps
from layoutopt.unwinding import unwind
from tests.support import refused


def whole(origin: str, size: int) -> tuple[Piece, ...]:
    """Return the layout that takes a tensor as it is."""
    return ((origin, 0, 0, ((size, 1, 1),)),)


def names(found: tuple[ProgramStep, ...]) -> list[str]:
    """Return steps as ``"sink.number"`` and ``"barrier!"``."""
    return [
        f"{step.sink}.{step.number}" if isinstance(step, Place) else f"{step.barrier}!"
        for step in found
    ]


def halves() -> tuple[Graph, dict[str, tuple[Piece, ...]]]:
    """Return a sink whose second half takes what a barrier makes of its first half."""
    graph = Graph("halves")
    x = graph.sink((4,), name="x")
    graph.source((2,), name="s")
    graph.barrier([graph.slice(x, (0,), (2,))], (2,), name="f")
    return graph, {"x": (("f", 0, 2, ((2, 1, 1),)), ("s", 0, 0, ((2, 1, 1),)))}


def chain() -> tuple[Graph, dict[str, tuple[Piece, ...]]]:
    """Return barriers f(x), g(f), h(f) and two sinks; y takes g's locations, none takes h's."""
    graph = Graph("chain")
    x, _ = graph.sink((2,), name="x"), graph.sink((2,), name="y")
    f = graph.barrier([x], (2,), name="f")
    graph.barrier([graph.reverse(f, (0,))], (2,), name="g")
    graph.barrier([f], (2,), name="h")
    return graph, {"x": whole("x", 2), "y": whole("g", 2)}


def no_inputs() -> tuple[Graph, dict[str, tuple[Piece, ...]]]:
    """Return a barrier without inputs, of two outputs, that two sinks share."""
    graph = Graph("no inputs")
    graph.sink((2,), name="x")
    graph.sink((3,), name="y")
    graph.barrier([], shapes=[(2,), (3,)], name="f")
    return graph, {"x": whole("f:0", 2), "y": whole("f:1", 3)}


def nothing() -> tuple[Graph, dict[str, tuple[Piece, ...]]]:
    """Return sinks without elements."""
    graph = Graph("nothing")
    graph.sink((0, 3), name="x")
    return graph, {"x": ()}


CASES: dict[str, tuple[Callable[[], tuple[Graph, dict[str, tuple[Piece, ...]]]], list[str]]] = {
    "a sink in parts": (halves, ["x.1", "f!", "x.0"]),
    "only what is needed": (chain, ["x.0", "f!", "g!", "y.0"]),
    "a barrier once": (no_inputs, ["f!", "x.0", "y.0"]),
    "no elements": (nothing, []),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_of_plain_layouts(name: str) -> None:
    """Each piece once, each barrier that matters once, just before it is needed."""
    build, wanted = CASES[name]
    assert names(steps(*build())) == wanted


def test_steps_of_a_result() -> None:
    """Figure unbroadcastadd: A and B, then the product's layout, then C."""
    graph = unbroadcast_add()
    found = steps(graph, unwind(graph))
    assert found == (
        Place("A", 0, ("target_A", 0, 0, ((6, 1, 1),))),
        Place("B", 0, ("target_B", 0, 0, ((6, 1, 1),))),
        BarrierReady("matmul"),
        Place("C", 0, ("matmul", 0, 0, ((4, 1, 1),))),
    )
    assert [step.needs for step in found] == [(), (), found[:2], found[2:3]]


def test_the_results_order_is_kept() -> None:
    """Sinks and pieces come as ``order`` says; layouts alone get an order of their own."""
    graph, layouts = halves()
    graph.sink((1,), name="y")
    layouts["y"] = whole("y", 1)
    result = unwind(graph)
    for order, wanted in [
        ((("x", 1), ("x", 0), "y"), ["x.1", "f!", "x.0", "y.0"]),
        (("y", ("x", 1), ("x", 0)), ["y.0", "x.1", "f!", "x.0"]),
        ((("x", 1), ("y", 0), ("x", 0)), ["x.1", "y.0", "f!", "x.0"]),
        ((), names(steps(graph, layouts))),
    ]:
        given = replace(result, labelling=layouts, order=order)
        assert names(steps(graph, given)) == wanted


def test_a_long_chain_of_barriers() -> None:
    """Thousands of barriers that need each other are all there, first to last."""
    graph = Graph("long")
    x = graph.sink((1,), name="x")
    graph.sink((1,), name="y")
    for i in range(3000):
        x = graph.barrier([x], (1,), name=f"b{i}")
    found = steps(graph, {"x": whole("x", 1), "y": whole(x.name, 1)})
    assert names(found) == ["x.0", *(f"b{i}!" for i in range(3000)), "y.0"]


def test_printed_steps() -> None:
    """A step says what takes locations of what, or which barrier is known."""
    graph, layouts = halves()
    assert [str(step) for step in steps(graph, layouts)] == [
        "place x, piece 1: 2 locations of s",
        "know f",
        "place x, piece 0: 2 locations of f",
    ]
    own = Place("x", 0, ("x", 3, 3, ((1, 1, 1),)))
    assert str(own) == "place x, piece 0: 1 location of its own"


def test_wrong_layouts_are_refused() -> None:
    """Layouts that are missing, illegal or wait for themselves give one line each."""
    graph = barrier_too_late()
    result = unwind(graph)
    with refused("layouts"):
        steps(graph, replace(result, labelling=None))
    with refused("layouts"):
        steps(graph, [("x", 0, 0, ())])
    with refused("'y'", "no layout"):
        steps(graph, {"x": whole("x", 2)})
    with refused("sink 'id0'"):
        steps(valued_pair(), {"id0": whole("id0", 5), "id1": whole("id1", 6)})
    with refused("barrier order", "'barrier'"):
        steps(graph, {"x": whole("x", 2), "y": whole("barrier", 2)})
    with refused("order", "'x'", "before the barrier"):
        steps(graph, replace(result, order=("x", "y")))
    with refused("order", "'z'"):
        steps(graph, replace(result, order=("z",)))
