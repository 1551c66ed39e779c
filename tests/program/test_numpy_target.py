"""The target of arrays: what it makes, and what it refuses."""

from __future__ import annotations

from layoutopt.graphs.unwinding import Graph
from layoutopt.program.numpy_target import NumpyTarget
from tests.support import refused


def small() -> NumpyTarget:
    """Return a target for two sinks, and four sources of which two share locations."""
    graph = Graph()
    graph.sink((2,), name="x")
    graph.sink((1,), name="y")
    graph.source((2,), name="s")
    graph.source((3,), [0, "0", 0], name="t")
    graph.source((1,), ["0"], name="u")
    graph.source((0,), [], name="v")
    return NumpyTarget(graph)


def test_own_locations() -> None:
    """Equal entries of mappings are one number, others differ; a tensor has them once."""
    target = small()
    shapes = {"s": (2,), "t": (3,), "x": (2,), "u": (1,), "v": (0,)}
    numbers = {name: target.own(name, shape).tolist() for name, shape in shapes.items()}
    (a, b, c), (d,) = numbers["t"], numbers["u"]
    assert a == c
    assert b == d
    assert len({a, b, *numbers["s"], *numbers["x"]}) == 6
    assert numbers["v"] == []
    assert target.own("s", (2,)) is target.roots["s"]
    (first, second), fresh = target.barrier("f", [], [(2,), (2, 1)]), target.own("y", (1,))
    every = [*first.flat, *second.flat, *fresh, a, b, *numbers["s"], *numbers["x"]]
    assert len(set(every)) == len(every) == 11
    assert second.shape == (2, 1)


def test_a_sink_is_set_once_and_from_known_locations() -> None:
    """Copies of unset elements, onto set ones, or of other shapes are refused; barriers wait."""
    target = small()
    x, s = target.create("x", (2,)), target.own("s", (2,))
    assert x.tolist() == [-1, -1]
    with refused("barrier 'f'", "input 1"):
        target.barrier("f", [s, x], [(1,)])
    with refused("[2]", "[1]"):
        target.copy(s, x[:1])
    with refused("source", "without"):
        target.copy(target.placeholder((2,)), x)
    target.copy(s[1:], x[:1])
    assert x.tolist() == [s[1], -1]
    with refused("source", "without"):
        target.copy(x[::-1], target.create("y", (2,)))
    with refused("destination", "with a location"):
        target.copy(s, x)
    target.copy(s[:1], x[1:])
    assert target.layouts["x"].tolist() == [s[1], s[0]]
