"""The steps of a result: which there are, in which order, and what each needs."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures import valued_pair
from benchmarks.traps import barrier_too_late
from layoutopt.base.result import Piece
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.steps import Place, steps
from layoutopt.unwinding import unwind
from tests.support import refused


def whole(origin: str, size: int) -> tuple[Piece, ...]:
    """Return the layout that takes a tensor as it is."""
    return ((origin, 0, 0, ((size, 1, 1),)),)


def halves() -> tuple[Graph, dict[str, tuple[Piece, ...]]]:
    """Return a sink whose second half takes what a barrier makes of its first half."""
    graph = Graph("halves")
    x = graph.sink((4,), name="x")
    graph.source((2,), name="s")
    graph.barrier([graph.slice(x, (0,), (2,))], (2,), name="f")
    return graph, {"x": (("f", 0, 2, ((2, 1, 1),)), ("s", 0, 0, ((2, 1, 1),)))}


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
