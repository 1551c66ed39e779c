"""Elementwise operations, dynamic slices and optimiser steps: pairs and optima."""

from __future__ import annotations

from typing import Any

import pytest

from layoutopt.graphs.growers import DynamicTensor
from layoutopt.graphs.ops import Kind, Shape
from layoutopt.graphs.unwinding import Graph
from tests.support import named_pairs, proved, refused


def sinks(**shapes: Shape) -> Graph:
    """Return a graph with sinks of the given names and shapes."""
    graph = Graph()
    for name, shape in shapes.items():
        graph.sink(shape, name=name)
    return graph


def test_wrong_arguments_of_elementwise() -> None:
    """No operands, or operands that do not broadcast, are refused in one line."""
    graph = sinks(x=(2,), z=(3,))
    with refused("elementwise operation of nothing: needs at least one input"):
        graph.grow_elementwise([])
    with refused("elementwise operation of 'x', 'z': shapes [[2], [3]] do not broadcast"):
        graph.grow_elementwise(["x", "z"])
    with refused("inputs must be a list, not one str"):
        graph.grow_elementwise("x")
    with refused("value 'a' is not a decimal number"):
        graph.grow_elementwise(["x", "x", graph.tensor("x"), graph.sink((2,), name="w")], value="a")
    assert graph == sinks(x=(2,), z=(3,), w=(2,))


@pytest.mark.parametrize("update", [False, True])
def test_dynamic(update: bool) -> None:
    """Two barriers and a source, a pair for each; the result is the part or the sliceable."""
    graph = sinks(part=(1, 3), whole=(4, 3))
    out = graph.grow_dynamic("part", "whole", update=update, name="d")
    assert isinstance(out, DynamicTensor)
    assert named_pairs(graph) == [
        ("whole", "d.plain", 50),
        ("part", "d.part.target", 100),
        ("whole", "d.sliceable.target", 100),
    ]
    found = [
        (t.name, t.kind, t.op.inputs) for t in (out.plain, out.part_target, out.sliceable_target)
    ]
    assert found == [
        ("d.plain", Kind.SOURCE, ()),
        ("d.part.target", Kind.BARRIER, ("whole",)),
        ("d.sliceable.target", Kind.BARRIER, ("part",)),
    ]
    where = graph.locations()
    assert out == graph.tensor("d" if update else "part")
    assert (where[out.name] == where["whole" if update else "part"]).all()
    assert len(graph.ops) == 5 + update


def test_dynamic_part_may_be_any_output() -> None:
    """The handle of a part that is one of several outputs is that output."""
    graph = sinks(whole=(4,))
    _, part = graph.barrier([], shapes=[(4,), (2,)], name="b")
    out = graph.grow_dynamic(part, "whole")
    assert (out, out.name, out.shape) == (part, "b:1", (2,))


def test_dynamic_values() -> None:
    """Each default value can be changed."""
    graph = sinks(part=(2,), whole=(2,))
    graph.grow_dynamic("part", "whole", part_value=1, sliceable_value=2, plain_value="3.5")
    assert named_pairs(graph) == [
        ("whole", "source0", 3.5),
        ("part", "barrier0", 1),
        ("whole", "barrier1", 2),
    ]


@pytest.mark.parametrize("shape", [(4,), (5, 3), (1, 4), (1, 4, 3), ()])
def test_dynamic_part_must_fit(shape: Shape) -> None:
    """A part of another rank, or larger in any dimension, is refused."""
    graph = sinks(part=shape, whole=(4, 3))
    with refused(f"part 'part' {list(shape)} must fit into sliceable 'whole' [4, 3]"):
        graph.grow_dynamic("part", "whole")
    assert graph == sinks(part=shape, whole=(4, 3))


@pytest.mark.parametrize(
    ("part", "values", "best"),
    [
        # The sliceable first: 50 for each of its 4 elements, and 100 for each of the part's.
        # The part first: 100 for each of the sliceable's, and nothing for the part.
        (1, {}, 4 * 100),
        (3, {}, 4 * 50 + 3 * 100),
        (4, {}, 4 * 50 + 4 * 100),
        (1, {"plain_value": 76}, 4 * 76 + 1 * 100),
        (1, {"plain_value": 74}, 4 * 100),
        (3, {"part_value": 60}, 4 * 100),
        (3, {"part_value": 70}, 4 * 50 + 3 * 70),
        (3, {"sliceable_value": 130}, 4 * 130),
    ],
)
@pytest.mark.parametrize("update", [False, True])
def test_optimum_of_dynamic(part: int, values: dict[str, int], best: int, update: bool) -> None:
    """Part and sliceable cannot both follow the other: the better one comes first."""
    graph = sinks(part=(part,), whole=(4,))
    graph.grow_dynamic("part", "whole", update=update, **values)
    assert proved(graph).score == best


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("w", "long"), "gradient 'long' has shape [3], but the weights 'w' [2]"),
        (("w", "g", ["m", "long"]), "states[1] 'long' has shape [3], but the weights 'w' [2]"),
        (("long", "g"), "gradient 'g' has shape [2], but the weights 'long' [3]; all must have"),
        (("w", "g", "m"), "states must be a list, not one str"),
        (("w", "g", ["z"]), "'z' names no tensor"),
    ],
)
def test_wrong_arguments_of_optimizer_step(arguments: Any, reason: str) -> None:
    """What is wrong is told in one line, and nothing is added."""
    shapes = {"w": (2,), "g": (2,), "m": (2,), "long": (3,)}
    graph = sinks(**shapes)
    with refused(reason):
        graph.grow_optimizer_step(*arguments)
    assert graph == sinks(**shapes)


@pytest.mark.parametrize(
    ("target", "values", "best"),
    [
        # Per element: weights, gradient and both states at one place are worth 6 pairs; the
        # gradient is fixed elsewhere than the weights' target, so that one of both is lost.
        (70, {}, 70 + 3 * 20),
        (50, {}, 6 * 20),
        (61, {}, 61 + 3 * 20),
        (61, {"weights_value": 21}, 3 * 21 + 3 * 20),
        # The states leave the gradient for the weights, or stay: two pairs are lost either way.
        (70, {"states_value": 30}, 70 + 3 * 30),
        (50, {"states_value": 30, "weights_value": 1}, 50 + 3 * 30),
    ],
)
def test_optimum_of_optimizer_step(target: int, values: dict[str, int], best: int) -> None:
    """Weights leave the gradient for a target that is worth more, and the states choose."""
    graph = sinks(w=(5,), m=(5,), v=(5,))
    graph.valued_pair("w", graph.source((5,)), target)
    gradient = graph.fixed_point(["w"], (5,))
    graph.grow_optimizer_step("w", gradient, ["m", "v"], **values)
    assert proved(graph).score == 5 * best
