"""Heuristics for conversion: never better than what is proved, and where each of them loses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.conversion.backends import BlockedCpu
from layoutopt.conversion.convert import SOLVERS, convert_graph
from layoutopt.conversion.graph import ConversionGraph
from tests.conversion.drawn import drawn
from tests.conversion.running import arrays_of, run, run_conversion

NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@pytest.mark.parametrize("solver", SOLVERS[1:])
def test_no_heuristic_beats_the_optimum(solver: str) -> None:
    """Graphs compute the same, cost what is counted, and no less than what is proved."""
    lost = 0
    for seed in range(8000, 8030):
        graph = drawn(seed, 6 + seed % 20)
        desired = BlockedCpu(2) if seed % 3 == 0 else None
        best = convert_graph(graph, objective="count,bytes", desired=desired)
        found = convert_graph(graph, objective="count,bytes", desired=desired, solver=solver)
        assert found.objective >= best.objective
        assert found.bound == (0, 0)
        assert (found.status is Status.OPTIMAL) == (found.objective == (0, 0))
        given = arrays_of(graph, seed)
        before, after = run(graph, given), run_conversion(found, given)
        for name in graph.outputs:
            np.testing.assert_allclose(after[name], before[name], rtol=1e-12)
        lost += found.objective > best.objective
    assert lost > 0 or solver == "pbqp"


def fixed(graph: ConversionGraph, x: str, name: str) -> str:
    """Add an op that takes its operand as it is written."""
    return graph.op("test::Fixed", [x], shape=graph.tensors[x].shape, name=name)


def late() -> ConversionGraph:
    """A sum of NCHW and NHWC that only readers of NHWC want: it is told too late which to turn."""
    graph = ConversionGraph("late")
    x, y = graph.input("x", (2, 3, 4, 5)), graph.input("y", (2, 4, 5, 3))
    total = graph.op("Add", [x, graph.op("Transpose", [y], {"perm": NCHW})])
    last = graph.op("Transpose", [graph.op("Relu", [total])], {"perm": NHWC})
    graph.output(fixed(graph, last, "a"), fixed(graph, last, "b"))
    return graph


def twice() -> ConversionGraph:
    """One input is read in NHWC behind two chains: one transform before both of them is enough."""
    graph = ConversionGraph("twice")
    x = graph.op("Relu", [graph.input("x", (2, 3, 4, 5))])
    for name in "ab":
        y = graph.op("Tanh", [graph.op("Sigmoid", [x])])
        graph.output(fixed(graph, graph.op("Transpose", [y], {"perm": NHWC}), name))
    return graph


def two_towers() -> ConversionGraph:
    """Two towers whose ops between want different orders: no one layout suits both."""
    graph = ConversionGraph("two towers")
    for name, order in (("a", NHWC), ("b", (3, 2, 1, 0))):
        x = fixed(graph, graph.input(name, (2, 3, 4, 5)), f"{name}1")
        y = graph.op("Softmax", [graph.op("Transpose", [x], {"perm": order})], {"axis": 1})
        back = tuple(sorted(range(4), key=order.__getitem__))
        graph.output(fixed(graph, graph.op("Transpose", [y], {"perm": back}), f"{name}2"))
    return graph


@pytest.mark.parametrize(
    ("build", "best", "losing"),
    [
        (late, 1, {"forward": 2, "push-through": 2, "chains": 2}),
        (twice, 1, {"forward": 2, "push-through": 2, "chains": 2}),
        (two_towers, 0, {"one-layout": 2}),
    ],
)
def test_where_they_lose(
    build: Callable[[], ConversionGraph], best: int, losing: dict[str, int]
) -> None:
    """The number of transforms that each solver leaves, by hand; those not named find the best."""
    for solver in SOLVERS:
        found = convert_graph(build(), objective="count", solver=solver)
        assert found.objective == (losing.get(solver, best),), solver
