"""Graphs with bodies: the least cost is that of the best layouts of what is tied.

For a choice of these layouts a graph with bodies falls apart.  It is one without bodies then, where
what a body is given is an input, and what is wanted of it an output, in the layout that is chosen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations, product

import pytest

from layoutopt.base.result import Status
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.rules.op import Body, Op
from layoutopt.layout.permutations import Permutation, inverse
from tests.conversion.drawn import WEIGH

Shape = tuple[int, ...]
Cost = tuple[int, ...]


def permuted(shape: Shape, order: Permutation) -> Shape:
    """Return a shape with its axes in another order."""
    return tuple(shape[axis] for axis in order)


def bare(order: Permutation, axis: int) -> Permutation:
    """Return an order without an axis."""
    return tuple(a - (a > axis) for a in order if a != axis)


class Drawing:
    """A graph with bodies, or what it falls apart to.

    Parameters
    ----------
    seed
        Equal seeds give equal graphs.
    chosen
        The order of the axes of whatever is tied, one after the other; None: with bodies.
    """

    def __init__(self, seed: int, chosen: Sequence[Permutation] | None = None) -> None:
        self.draw, self.graph = random.Random(seed), ConversionGraph(f"drawn {seed}")
        self.flat, self.chosen = chosen is not None, iter(chosen or ())
        self.ranks: list[int] = []
        self.shapes: dict[str, Shape] = {}
        self.rounds, self.names = {"": 1}, 0
        for name in ("go", "count"):
            self.graph.input(name, ())
        sizes = self.draw.choice([(2, 3, 4), (2, 2, 3), (1, 2, 3)])
        values = [self.graph.input("x", sizes)]
        self.shapes["x"] = sizes
        values = self.grow(values, "", 2)
        for name in self.nested(values, "", 2):
            self.graph.output(self.grow([self.turned(name)], "", 2)[-1])

    def name(self) -> str:
        """Return a new name."""
        self.names += 1
        return f"t{self.names}"

    def tie(self, rank: int) -> Permutation:
        """Return the order that is chosen of what is tied next."""
        self.ranks.append(rank)
        return next(self.chosen, tuple(range(rank)))

    def op(self, type: str, inputs: tuple[str, ...], scope: str, **attributes: object) -> str:
        """Add an op in a body."""
        name, shape = self.name(), self.shapes[inputs[0]]
        if type == "Transpose":
            shape = permuted(shape, attributes["perm"])  # type: ignore[arg-type]
        own, size = ("", 4 * self.rounds[scope]) if self.flat else (scope, 4)
        op = Op(type, attributes, inputs, (name,), (), (shape,), name, 17, scope=own)
        self.shapes[name] = shape
        return self.graph.add(op, [size])[0]

    def turned(self, name: str, scope: str = "") -> str:
        """Return a tensor, mostly with its axes in another order."""
        rank = len(self.shapes[name])
        order = tuple(self.draw.sample(range(rank), rank))
        turns = self.draw.random() < 0.8
        return self.op("Transpose", (name,), scope, perm=order) if turns else name

    def like(self, name: str, shape: Shape, scope: str) -> str | None:
        """Return a tensor, or a transpose of it, that has a shape."""
        if len(self.shapes[name]) != len(shape):
            return None
        every = permutations(range(len(shape)))
        orders = [p for p in every if permuted(self.shapes[name], p) == shape]
        if not orders:
            return None
        order = self.draw.choice(orders)
        still = order == tuple(range(len(shape)))
        return name if still else self.op("Transpose", (name,), scope, perm=order)

    def grow(self, values: list[str], scope: str, most: int) -> list[str]:
        """Return tensors, and what some ops make of them."""
        values = list(values)
        for _ in range(self.draw.randint(0, most)):
            name = self.draw.choice(values[-3:])
            kind = self.draw.choice(["Neg", "Transpose", "Transpose", WEIGH, "Add", "Softmax"])
            other = self.like(self.draw.choice(values), self.shapes[name], scope)
            if kind == "Transpose":
                values.append(self.turned(name, scope))
            elif kind == "Softmax":
                axis = self.draw.randrange(len(self.shapes[name]))
                values.append(self.op(kind, (name,), scope, axis=axis))
            elif kind == "Add" and other is not None:
                values.append(self.op(kind, (name, other), scope))
            elif kind != "Add":
                values.append(self.op(kind, (name,), scope))
        return values

    def given(self, shape: Shape, order: Permutation, scope: str, *, inside: bool = False) -> str:
        """Return what an op with a body gives: an input of this, or a result."""
        name = self.name()
        self.shapes[name] = shape
        if self.flat:
            size = 4 * self.rounds[scope]
            self.graph.input(name, permuted(shape, order), element_bytes=size)
            self.shapes[name] = permuted(shape, order)
            return self.op("Transpose", (name,), scope, perm=inverse(order))
        return self.graph.body_input(name, shape, 4, scope) if inside else name

    def wanted(self, name: str, order: Permutation, scope: str) -> str:
        """Return a tensor that an op with a body takes in an order."""
        if self.flat:
            self.graph.output(self.op("Transpose", (name,), scope, perm=order))
        return name

    def nested(self, values: list[str], scope: str, deep: int) -> list[str]:
        """Add an op with bodies, and return its results."""
        kind = self.draw.choice([self.loop, self.scan, self.branches])
        return kind(values, scope, deep)

    def inner(self, values: list[str], scope: str, deep: int) -> list[str]:
        """Return what there is in a body, with another op with bodies in it at times."""
        values = self.grow(values, scope, 3)
        if deep > 1 and self.draw.random() < 0.25:
            values += self.nested(values, scope, deep - 1)
        return values

    def body(self, scope: str, rounds: int) -> str:
        """Return the name of a new body."""
        name = f"{self.name()}/0"
        self.rounds[name] = self.rounds[scope] * rounds
        return name

    def add(
        self,
        type: str,
        scope: str,
        bodies: list[Body],
        inputs: list[str],
        outputs: list[str],
        **attributes: object,
    ) -> None:
        """Add an op with bodies, if there are to be any."""
        if not self.flat:
            shapes = tuple(self.shapes.get(name, ()) for name in outputs)
            name = bodies[0].scope.removesuffix("/0")
            op = Op(
                type,
                attributes,
                tuple(inputs),
                tuple(outputs),
                (),
                shapes,
                name,
                17,
                scope=scope,
                bodies=tuple(bodies),
            )
            self.graph.add(op, [4] * len(outputs))

    def loop(self, values: list[str], scope: str, deep: int) -> list[str]:
        """Add a Loop that carries a value, and collects another one."""
        rounds, first = self.draw.choice([1, 2, 5]), self.draw.choice(values)
        shape, body = self.shapes[first], self.body(scope, rounds)
        order = self.tie(len(shape))
        self.wanted(first, order, scope)
        held = self.given(shape, order, body, inside=True)
        values = self.inner([*values, self.turned(held, body)], body, deep)
        last = self.like(self.draw.choice(values[-2:]), shape, body) or held
        self.wanted(last, order, body)
        end = self.draw.choice(values)
        own = self.tie(len(self.shapes[end]))
        self.wanted(end, own, body)
        result = self.given(shape, order, scope)
        every = (rounds, *self.shapes[end])
        collected = self.given(every, (0, *(a + 1 for a in own)), scope)
        step, go = self.name(), self.name()
        if not self.flat:
            for name in (step, go):
                self.graph.body_input(name, (), 4, body)
        inputs, outputs = ["count", "go", first, go, last, end], [result, collected, step, go, held]
        self.add("Loop", scope, [Body(body, 3, 3, rounds)], inputs, outputs)
        return [result, collected]

    def scan(self, values: list[str], scope: str, deep: int) -> list[str]:
        """Add a Scan of one value."""
        source = self.draw.choice(values)
        shape = self.shapes[source]
        axis = self.draw.randrange(len(shape))
        body, order = self.body(scope, shape[axis]), self.tie(len(shape))
        self.wanted(source, order, scope)
        less = tuple(size for a, size in enumerate(shape) if a != axis)
        element = self.given(less, bare(order, axis), body, inside=True)
        end = self.draw.choice(self.inner([*values, self.turned(element, body)], body, deep))
        place = self.draw.randint(0, len(self.shapes[end]))
        own = self.tie(len(self.shapes[end]) + 1)
        self.wanted(end, bare(own, place), body)
        sizes = [*self.shapes[end]]
        sizes.insert(place, shape[axis])
        result = self.given(tuple(sizes), own, scope)
        axes = {"scan_input_axes": (axis,), "scan_output_axes": (place,)}
        self.add(
            "Scan",
            scope,
            [Body(body, 1, 1, shape[axis])],
            [source, end],
            [result, element],
            num_scan_inputs=1,
            **axes,
        )
        return [result]

    def branches(self, values: list[str], scope: str, deep: int) -> list[str]:
        """Add an If of one result."""
        shape = self.shapes[self.draw.choice(values)]
        order, ends = self.tie(len(shape)), list[str]()
        first = self.body(scope, 1)
        scopes = [first, first.replace("/0", "/1")]
        self.rounds[scopes[1]] = self.rounds[scope]
        for body in scopes:
            own = self.inner(values, body, deep)
            end = self.like(self.draw.choice(own), shape, body)
            spare = next(name for name in values if self.shapes[name] == shape)
            ends.append(self.wanted(end or spare, order, body))
        result = self.given(shape, order, scope)
        bodies = [Body(body, 0, 1) for body in scopes]
        self.add("If", scope, bodies, ["go", *ends], [result])
        return [result]


def parts(graph: ConversionGraph) -> list[ConversionGraph]:
    """Return the parts of a graph that have no tensor in common, one graph each."""
    groups: list[set[str]] = []
    for op in graph.ops:
        joined = {*op.inputs, *op.outputs}
        joined.update(*(group for group in groups if not group.isdisjoint(joined)))
        groups = [*(group for group in groups if group.isdisjoint(joined)), joined]
    found = []
    for group in groups:
        part = ConversionGraph()
        for name, tensor in graph.tensors.items():
            if name in group and tensor.kind == "input":
                part.input(name, tensor.shape, element_bytes=tensor.element_bytes)
        for op in graph.ops:
            if op.inputs[0] in group:
                part.add(op, [graph.tensors[name].element_bytes for name in op.outputs])
        part.output(*(name for name in graph.outputs if name in group))
        found.append(part)
    return found


def least(graph: ConversionGraph, objective: str, known: dict[str, Cost]) -> Cost:
    """Return the least cost of a graph without bodies, part by part; known parts are looked up."""
    costs = []
    for part in parts(graph):
        key = repr((part.ops, part.tensors, part.outputs))
        if key not in known:
            known[key] = convert_graph(part, objective=objective).objective
        costs.append(known[key])
    return tuple(map(sum, zip(*costs, strict=True)))


@pytest.mark.parametrize("start", range(0, 24, 6))
def test_the_least_cost_of_all_layouts_that_are_tied(start: int) -> None:
    """It is that of one of the graphs that a graph with bodies falls apart to."""
    for seed in range(start, start + 6):
        whole = Drawing(seed)
        every = [list(permutations(range(rank))) for rank in whole.ranks]
        choices = list(product(*every))
        if len(choices) > 150:
            continue
        objective = ("count,bytes", "bytes,count", "bytes")[seed % 3]
        found = convert_graph(whole.graph, objective=objective)
        assert found.status is Status.OPTIMAL
        known: dict[str, Cost] = {}
        best = min(least(Drawing(seed, way).graph, objective, known) for way in choices)
        assert found.objective == best, seed
