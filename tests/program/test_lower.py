"""Schedules carried out: the same locations and score as the specification finds, by arrays."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from benchmarks.figures import FIGURES, unbroadcast_add
from benchmarks.traps import TRAPS
from layoutopt.base.result import Loop, UnwindingResult
from layoutopt.graphs.ops import Array, Kind
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.lower import METHODS, lower, parts, viewed
from layoutopt.program.steps import Place, Schedule, schedule
from layoutopt.program.target import NumpyTarget, Views
from layoutopt.unwinding import unwind
from tests.models.instances import FAMILIES
from tests.support import refused

SOLVERS = ("auto", "greedy0")


def carried_out(graph: Graph, program: Schedule) -> dict[str, Array]:
    """Return the number of each tensor's locations after a schedule was carried out in arrays.

    Barriers that the schedule leaves out are asked for in the end.
    """
    target = NumpyTarget(graph)
    sinks = lower(program, target)
    assert sinks.keys() == target.layouts.keys() == {sink.name for sink in graph.sinks()}

    def root(t: int) -> Array:
        name, op = graph.tensor_name(t), graph.producers[t]
        if graph.ops[op].kind is Kind.SINK:
            return sinks[name]
        if graph.ops[op].kind is not Kind.BARRIER:
            return target.own(name, graph.shapes[t])
        if graph.ops[op].id not in target.outputs:
            shapes = [graph.shapes[out] for out in graph.op_outputs[op]]
            target.barrier(graph.ops[op].id, [], shapes)
        return target.outputs[graph.ops[op].id][t - graph.op_outputs[op].start]

    every = viewed(graph, target, range(len(graph.shapes)), root)
    return {graph.tensor_name(t): array for t, array in enumerate(every)}


def renamed(numbers: dict[str, Array]) -> list[int]:
    """Return all numbers in order, each as the place where it came first."""
    flat = np.concatenate([np.ravel(numbers[name]) for name in sorted(numbers)])
    _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    return first[inverse].tolist()


def confirm(graph: Graph, program: Schedule, result: UnwindingResult) -> None:
    """Hold the arrays of a schedule against locations and score of a result."""
    found = carried_out(graph, program)
    wanted = graph.locations(result.layouts)
    assert {name: array.shape for name, array in found.items()} == {
        name: array.shape for name, array in wanted.items()
    }
    assert all((array >= 0).all() for array in found.values())
    assert renamed(found) == renamed(wanted), graph.name
    score = sum(
        (p.value * int((found[p.a.name] == found[p.b.name]).sum()) for p in graph.valued_pairs()),
        Decimal(0),
    )
    assert score == result.score, graph.name


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", [*FIGURES, *TRAPS])
def test_figures_and_traps(name: str, solver: str) -> None:
    """Arrays agree with the specification on every figure of the notes, and every trap."""
    graph = (FIGURES | TRAPS)[name]()
    result = unwind(graph, solver)
    confirm(graph, schedule(graph, result), result)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_random_graphs(family: str, solver: str) -> None:
    """They agree on random graphs of all ops, with barriers of all kinds."""
    seen: Counter[str] = Counter()
    for seed in range(30 if solver == "auto" else 60):
        graph = FAMILIES[family](seed)
        result = unwind(graph, solver)
        program = schedule(graph, result)
        confirm(graph, program, result)
        seen["parts"] += any(not isinstance(entry, str) for entry in result.order)
        seen["barriers"] += any(not isinstance(item, Place) for item in program)
        seen["several pieces"] += any(len(found) > 1 for found in (result.layouts or {}).values())
    assert seen["several pieces"] >= 3
    assert seen["barriers"] >= 3
    assert seen["parts"] >= 1 or family != "tangle"


def strided(seed: int) -> Graph:
    """Return a graph of larger sinks, tied through views to sources and to barriers of others.

    Views of all kinds, one after the other, ask for boxes of many strides; where they
    overlap, the boxes of a layout are torn apart.
    """
    draw = random.Random(seed)
    graph = Graph(f"strided-{seed}")
    known: list[Tensor] = []
    for _ in range(3):
        x = graph.sink([draw.randint(1, 6) for _ in range(draw.randint(1, 3))])
        for _ in range(2):
            y = x
            for _ in range(draw.randint(1, 4)):
                z = rearranged(graph, y, draw)
                y = z if z.size else y
            alike = [t for t in known if t.size == y.size]
            if alike and draw.random() < 0.5:
                graph.valued_pair(y, graph.reshape(draw.choice(alike), y.shape), draw.randint(1, 9))
            else:
                mapping = [draw.randrange(y.size) for _ in range(y.size)]
                target = graph.source(y.shape, mapping if draw.random() < 0.1 else None)
                graph.valued_pair(y, target, draw.randint(1, 9))
        known.append(graph.barrier([x], x.shape))
        known += [graph.barrier([graph.slice(graph.flatten(x), (0,), (1,))], y.shape), x]
    return graph


def rearranged(graph: Graph, x: Tensor, draw: random.Random) -> Tensor:
    """Return a random view of a tensor, by one op or a few."""
    step = draw.randrange(7)
    if step == 0:
        return graph.dim_shuffle(x, draw.sample(range(x.ndim), x.ndim))
    if step == 1:
        return graph.reverse(x, [d for d in range(x.ndim) if draw.random() < 0.6])
    if step == 2:
        return graph.sub_sample(x, [draw.randint(1, 3) for _ in x.shape])
    if step == 3:
        lower = [draw.randint(0, n // 3) for n in x.shape]
        return graph.slice(x, lower, [n - draw.randint(0, n // 3) for n in x.shape])
    if step == 4:
        split = [d for d in range(1, x.size + 1) if x.size % d == 0]
        rows = draw.choice(split)
        return graph.reshape(x, (rows, x.size // rows))
    if step == 5:
        return graph.expand(x, (draw.randint(1, 3), *x.shape)) if x.size < 60 else x
    return graph.sett_sample(x, [[(draw.randint(1, 3), 1, draw.randint(0, 3))] for _ in x.shape])


@pytest.mark.parametrize("solver", SOLVERS)
def test_strided_layouts(solver: str) -> None:
    """They agree where layouts have strides of all kinds, both ways, and boxes that are cut."""
    seen: Counter[str] = Counter()
    for seed in range(50):
        graph = strided(seed)
        result = unwind(graph, solver)
        confirm(graph, schedule(graph, result), result)
        for name, found in (result.layouts or {}).items():
            for piece in found:
                seen["pieces"] += 1
                seen["loops of loops"] += len(piece[3]) > 1
                seen["backwards"] += any(step < 0 for _, step, _ in piece[3])
                seen["repeated"] += any(step == 0 for _, step, _ in piece[3])
                sizes = graph.tensor(piece[0]).size, graph.tensor(name).size
                seen["cut"] += len(list(parts(piece, *sizes))) > 1
    assert seen["pieces"] > 450
    assert min(seen["loops of loops"], seen["backwards"]) > 50
    assert seen["repeated"] > 10 or solver == "greedy0"  # it unwinds one element of a broadcast
    assert seen["cut"] > 1


def told(argument: object) -> str:
    """Return an argument as text; lists, of tensors mostly, without their quotes."""
    return f"[{', '.join(map(told, argument))}]" if isinstance(argument, list) else str(argument)


class Recorder:
    """A target that writes down what it is asked for; its tensors are the calls' texts."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., str | list[str]]:
        if name not in METHODS:
            raise AttributeError(name)

        def call(*arguments: object) -> str | list[str]:
            text = f"{name}({', '.join(map(told, arguments))})"
            if name not in vars(Views):
                self.calls.append(text)
            return [f"{arguments[0]}:0"] if name == "barrier" else text

        return call


FIGURE = """
own(target_A, (2, 3))
create(A, (2, 3))
copy(reshape(own(target_A, (2, 3)), (6,)), reshape(create(A, (2, 3)), (6,)))
run(A)
own(target_B, (3, 2))
create(B, (3, 2))
copy(reshape(own(target_B, (3, 2)), (6,)), reshape(create(B, (3, 2)), (6,)))
run(B)
barrier(matmul, [create(A, (2, 3)), create(B, (3, 2))], [(2, 2)])
create(C, (2, 2))
copy(reshape(matmul:0, (4,)), reshape(create(C, (2, 2)), (4,)))
run(C)
run(matmul)
run(Out)
"""


def test_the_calls_of_a_figure() -> None:
    """Figure unbroadcastadd: A and B, then the layout of their product, then C, as it is added."""
    graph = unbroadcast_add()
    ops = {"A": [], "B": [], "C": [], "matmul": ["A", "B"], "Out": ["matmul", "C"]}
    target = Recorder()
    sinks = lower(schedule(graph, unwind(graph), ops), target)
    assert target.calls == FIGURE.strip().splitlines()
    assert sinks == {name: f"create({name}, {graph.tensor(name).shape})" for name in "ABC"}


def copied(piece: tuple[int, int, tuple[Loop, ...]]) -> list[str]:
    """Return the copies of a piece: of views that are flattened, sliced, split and sampled first.

    They are turned, permuted and repeated afterwards.
    """
    graph = Graph()
    graph.sink((4, 4), name="x")
    graph.source((20,), name="s")
    target = Recorder()
    lower(Schedule(graph, (Place("x", 0, ("s", *piece)),)), target)
    return target.calls[2:]


def test_changed_schedules_are_refused() -> None:
    """A barrier that comes too late is named."""
    graph = unbroadcast_add()
    a, b, product, c = schedule(graph, unwind(graph)).items
    with refused("place C", "not known yet"):
        lower(Schedule(graph, (a, b, c, product)), Recorder())
    with refused("barrier 'matmul'", "input 1"):
        lower(Schedule(graph, (a, product, b, c)), NumpyTarget(graph))


def test_wrong_targets_are_refused() -> None:
    """A missing method is named, and a barrier with another number of outputs than it has."""
    graph = unbroadcast_add()
    program = schedule(graph, unwind(graph))
    with refused("schedule(graph, result)"):
        lower(program.items, Recorder())
    target = Recorder()
    target.expand = None
    with refused("'expand'", *METHODS):
        lower(program, target)
    target = Recorder()
    target.barrier = lambda name, inputs, shapes: []
    with refused("'matmul'", "0 tensors for 1 output"):
        lower(program, target)
