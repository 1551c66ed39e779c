"""The choice of layouts: forms, shapes, requirements, costs and searches."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutopt.base import deadline
from layoutopt.base.limits import Interrupt, Limits, Stopped
from layoutopt.base.result import Status
from layoutopt.conversion import labelling
from layoutopt.conversion.backends import BlockedCpu
from layoutopt.conversion.convert import SOLVERS, convert_graph
from layoutopt.conversion.cost_table import costs_from, read_costs
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.required import in_layouts
from layoutopt.conversion.rewrite import ops_of
from layoutopt.conversion.rules.op import Op, Shape, parse_operands
from layoutopt.layout.factors import Form, view
from layoutopt.network.network import CostAnswer, Network
from layoutopt.network.problem import IntArray
from tests.conversion.drawn import drawn
from tests.conversion.running import assert_same
from tests.conversion.timed import least_time, mixed, table
from tests.support import refused

# Parts of a conversion: values, forms, costs, names


FREE: list[tuple[Form, Form, Shape, list[str]]] = [
    ((0, 1, 2), (1, 0, 2), (1, 4, 5), ["Reshape"]),
    ((0, 1), (-1, 0, -1, 1), (4, 5), ["Reshape"]),
    ((0, 1, 2), (1, 0, 2), (1, 4, "n"), ["Reshape"]),
    ((0, 1, 2), (1, 2, 0), (1, "n", "m"), ["Squeeze", "Unsqueeze"]),
    ((0, 1), (-1, 0, 1), ("n", "m"), ["Unsqueeze"]),
    ((0, 1, 2), (1, 0, 2), (1, 0, 5), ["Reshape"]),
]
"""Forms before and after, the value's shape, and the ops that lead from one to the other."""


@pytest.mark.parametrize(("source", "target", "shape", "types"), FREE)
def test_free_moves(source: Form, target: Form, shape: Shape, types: list[str]) -> None:
    """Axes of size 1 move by ops that NumPy, with numbers for unknown sizes, finds right."""
    given = {"n": 3, "m": 2}
    sizes = [given.get(size, size) if isinstance(size, str) else size for size in shape]
    value = np.arange(int(np.prod(sizes))).reshape(sizes)  # type: ignore[arg-type]
    array, expected = _in_form(value, source), _in_form(value, target)
    steps = list(ops_of(source, view(source, target, shape), shape))
    assert [step.type for step in steps] == types
    for step in steps:
        if step.type == "Reshape":
            wanted = step.attributes["shape"]
            copied = [array.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
            array = array.reshape(copied)
        elif step.type == "Squeeze":
            array = array.squeeze(step.attributes["axes"])
        else:
            array = np.expand_dims(array, step.attributes["axes"])
    assert steps[-1].form == target
    np.testing.assert_array_equal(array, expected)


def _in_form(value: np.ndarray, form: Form) -> np.ndarray:
    whole = value.transpose([axis for axis in form if axis >= 0])
    return np.expand_dims(whole, tuple(i for i, axis in enumerate(form) if axis < 0))


# Ops in required layouts: the forms of their operands, and what cannot be had


def conv(shape: Shape | None, written: str = "") -> Op:
    """Return a convolution of data of a shape; nothing is known of its result."""
    graph = ConversionGraph()
    x, w = graph.input("x", shape), graph.constant("w", (8, 12, 1, 1))
    layouts = parse_operands(f"{written}->NCHW") if written else None
    graph.add(Op("Conv", {}, (x, w), ("y",), (), (None,), "conv", layouts=layouts))
    return graph.ops[0]


PLAIN, BLOCKED = (2, 12, 3, 5), (2, 3, 3, 5, 4)


# What ops cost in each layout decides with what transforms cost


@pytest.mark.parametrize(("fixed", "per_byte"), [(3, 0), (0, 40000)])
def test_the_least_time_of_all_combinations(fixed: int, per_byte: int) -> None:
    """It is that of the best of all ways to fix each op's layout, each with its proved minimum."""
    for seed in range(14):
        graph = mixed(seed)
        costs = costs_from(table(seed, fixed, per_byte))
        found = convert_graph(graph, costs=costs, objective="time")
        assert found.status is Status.OPTIMAL
        assert found.objective == (least_time(graph, costs, fixed),), graph.name
        assert_same(graph, found, seed)


def chain(channels: int = 4, size: int = 4) -> ConversionGraph:
    """Return two convolutions, by default of 256 bytes of data, with 64 of weights."""
    graph = ConversionGraph("chain")
    x, weights = graph.input("x", (1, channels, size, size)), (channels, channels, 1, 1)
    for n in range(2):
        x = graph.op("Conv", [x, graph.constant(f"w{n}", weights)], name=f"conv{n}")
    graph.output(x)
    return graph


def test_it_pays_to_change_or_not() -> None:
    """Two convolutions that save 3 us each are worth two transforms of 2 us, not of 4."""
    lines = [
        {"type": "Conv", "layouts": "NCHW,OIHW", "us": 5},
        {"type": "Conv", "layouts": "NHWC,HWIO", "us": 2},
    ]
    for each, layouts, least in ((2, "NHWC,HWIO->NHWC", 8), (4, "None", 10)):
        costs = costs_from({"transform": {"us": each}, "op": lines})
        found = convert_graph(chain(), costs=costs, objective="time,count")
        assert [str(op.layouts) for op in found.graph.ops if op.type == "Conv"] == [layouts] * 2
        assert found.objective == (least * 10**9, 2 if each == 2 else 0)
        assert found.bound == found.objective


def test_times_beyond_64_bits() -> None:
    """Times that no 64 bits hold, nor their differences, are read and added up exactly."""
    one = Decimal("1e20")
    lines = [
        {"type": "Conv", "layouts": layouts, "us": us}
        for layouts, us in (("NCHW,OIHW", one), ("NHWC,HWIO", one + 1))
    ]
    costs = costs_from({"transform": {"us": 2}, "op": lines})
    assert [line.fixed for line in costs.lines] == [10**29, 10**29 + 10**9]
    for objective, sums in (("time", (2 * 10**29,)), ("count,time", (0, 2 * 10**29))):
        found = convert_graph(chain(), costs=costs, objective=objective)
        assert (found.status, found.objective, found.bound) == (Status.OPTIMAL, sums, sums)


def test_files(tmp_path: Path) -> None:
    """A table is read from TOML exactly; what cannot be read is one line with the file's name."""
    path = tmp_path / "costs.toml"
    path.write_text('[transform]\nus = 0.1\n[[op]]\ntype = "Conv"\nlayouts = "NHWC"\nus = 2\n')
    costs = read_costs(path)
    assert (costs.fixed, [line.fixed for line in costs.lines]) == (10**8, [2 * 10**9])
    path.write_text("transform")
    with refused("costs.toml", "is not TOML"):
        read_costs(path)
    with refused("none.toml", "no such file"):
        read_costs(tmp_path / "none.toml")


# Searches that do not end as they should: the graph as it is given is the answer then


def given() -> ConversionGraph:
    """Return two transposes of 24 elements of 4 bytes, of which none is needed."""
    graph = ConversionGraph("given")
    x = graph.input("x", (2, 3, 4), "NWC")
    y = graph.op("Relu", [graph.op("Transpose", [x], {"perm": (0, 2, 1)})])
    graph.output(graph.op("Transpose", [y], {"perm": (0, 2, 1)}))
    return graph


def out_of_memory(*_given: object) -> CostAnswer:
    """Find no more memory."""
    raise MemoryError


def without_end(*_given: object) -> CostAnswer:
    """Go on for ever, and look at no limit."""
    while True:
        sum(range(100))


def below_zero(problem: Network, _limits: Limits, start: IntArray) -> CostAnswer:
    """Prove less than is known of all graphs."""
    cost = problem.cost(start)
    return CostAnswer(labelling=start, objective=cost, bound=-(10**6), stopped=Stopped.TIME_LIMIT)


def stopped() -> Interrupt:
    """Return a request to stop that has come."""
    interrupt = Interrupt()
    interrupt.set()
    return interrupt


@pytest.mark.parametrize(
    ("solve", "limits", "why"),
    [
        (out_of_memory, Limits(), Stopped.MEMORY_LIMIT),
        (out_of_memory, Limits(deadline=time.monotonic() + 10**6), Stopped.MEMORY_LIMIT),
        (below_zero, Limits(), Stopped.TIME_LIMIT),
        (without_end, Limits(deadline=0), Stopped.TIME_LIMIT),
        (without_end, Limits(interrupt=stopped()), Stopped.INTERRUPTED),
    ],
)
def test_what_is_given_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, solve: object, limits: Limits, why: Stopped
) -> None:
    """A search that is ended leaves the graph at its cost, 192 bytes, with nothing proved."""
    graph = given()
    assert convert_graph(graph).objective == (0,)
    monkeypatch.setattr(labelling, "solve_pbqp", solve)
    monkeypatch.setitem(deadline.PATIENCE, "solve", deadline.Patience(0.0, 0.0))
    found = convert_graph(graph, limits=limits)
    assert (found.status, found.stopped) == (Status.FEASIBLE, why)
    assert (found.objective, found.bound) == ((192,), (0,))
    assert_same(graph, found, 0)


def test_the_best_without_onnxruntimes_ops_is_known_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search with them that is ended at once leaves it."""
    solvers = iter((labelling.solve_pbqp, labelling.solve_pbqp, out_of_memory))
    monkeypatch.setattr(labelling, "solve_pbqp", lambda *given: next(solvers)(*given))
    found = convert_graph(given(), microsoft=True)
    assert (found.stopped, found.objective) == (Stopped.MEMORY_LIMIT, (0,))


def test_where_a_search_ends_at_once_costs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that no op of a table takes as written is given as one does: nothing copies it."""
    monkeypatch.setattr(labelling, "solve_pbqp", out_of_memory)
    costs = [costs_from(table(seed, 0, 40000)) for seed in range(20)]
    found = [convert_graph(mixed(n), objective="time", costs=c) for n, c in enumerate(costs)]
    assert {one.stopped for one in found} == {Stopped.MEMORY_LIMIT}


def test_no_search_follows_when_memory_has_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after in the same call sees that memory is full."""
    limits = Limits()
    monkeypatch.setattr(labelling, "solve_pbqp", out_of_memory)
    convert_graph(given(), limits=limits)
    assert limits.stopped is Stopped.MEMORY_LIMIT


# Heuristics for conversion: never better than what is proved, and where each of them loses


NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@cache
def _drawn_and_least(seed: int) -> tuple[ConversionGraph, BlockedCpu | None, tuple[int, ...]]:
    graph = drawn(seed, 6 + seed % 20)
    desired = BlockedCpu(2) if seed % 3 == 0 else None
    found = convert_graph(graph, objective="count,bytes", desired=desired)
    return graph, desired, found.objective


@pytest.mark.parametrize("solver", SOLVERS[1:])
def test_no_heuristic_beats_the_optimum(solver: str) -> None:
    """Graphs compute the same, cost what is counted, and no less than what is proved."""
    lost = 0
    for seed in range(8000, 8018):
        graph, desired, best = _drawn_and_least(seed)
        found = convert_graph(graph, objective="count,bytes", desired=desired, solver=solver)
        assert found.objective >= best
        assert found.bound == (0, 0)
        assert (found.status is Status.OPTIMAL) == (found.objective == (0, 0))
        assert_same(graph, found, seed)
        lost += found.objective > best
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


def test_ops_without_a_line_stay() -> None:
    """Blocks that do not divide have no cost, and an op for which no line is left is as written."""
    costs = costs_from({"op": [{"type": "Conv", "layouts": "NCHW3c,OIHW3i3o", "us": 1}]})
    found = convert_graph(chain(), costs=costs, objective="time")
    assert found.objective == (0,)
    assert all(op.layouts is None for op in found.graph.ops)


def test_layouts_whose_blocks_cut_through_each_others() -> None:
    """Either may be chosen; an op that is written in the one does not run in the other."""
    graph = chain(6)
    for us in (4, 6):
        lines = [
            {"type": "Conv", "layouts": f"NCHW{n}c,OIHW{n}i{n}o", "us": time}
            for n, time in ((2, 5), (3, us))
        ]
        found = convert_graph(graph, costs=costs_from({"op": lines}), objective="time,count")
        assert found.objective == (2 * us * 10**9, 2)
        graph = found.graph


def test_ops_are_not_changed_by_axes_of_size_1() -> None:
    """Layouts of a table that differ in nothing else are as they are written, in any order."""
    lines = [{"type": "Conv", "layouts": f"{x},OIHW", "us": 1} for x in ("NHWC", "NCHW")]
    for one in (lines, lines[::-1]):
        costs = costs_from({"op": one})
        assert convert_graph(chain(4, 1), costs=costs, objective="changed").objective == (0,)


def form_in(written: str, wanted: str) -> Any:
    """Return the form of 12 channels, as they are or in blocks of four, that a layout requires.

    Where blocks do not divide them, the last block is filled up.
    """
    found = in_layouts(conv(BLOCKED if written else PLAIN, written), parse_operands(f"{wanted}->*"))
    assert found is not None
    assert found[0][1] is None
    return found[0][0]
