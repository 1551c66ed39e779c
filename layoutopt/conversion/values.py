"""Values: tensors that are the same elements under other orders of axes.

A transpose that the user wrote moves nothing by itself: its output is its input with axes named in
another order.  All tensors that transposes join are one *value*, with the axes of the first of
them; so are the results of a view that stands there twice, and may run in two modes then.  A
layout of a value is an *order*: its axes, or parts of them, from the outermost to the
innermost, without those of size 1, which can be anywhere at no cost.  A size that is not known is
taken to be no 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from layoutopt.conversion.graph import ConversionGraph, Kind, size_of
from layoutopt.conversion.result import Tally
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.layout.factors import Order, order_of, renamed_order
from layoutopt.layout.permutations import Permutation, inverse

Need: TypeAlias = tuple[int, Order]
"""The number of a value, and an order."""


@dataclass
class Value:
    """Tensors that are the same elements."""

    root: str  # the name of the first of them, whose axes are the value's
    # its shape; empty where not even the rank is known, and then there is one order only
    shape: Shape
    kind: Kind  # where it comes from
    move: Tally  # what a transform of it costs
    tensors: list[str] = field(default_factory=list)  # names of all of them


@dataclass
class Values:
    """All values of a graph."""

    every: list[Value] = field(default_factory=list)  # in the order in which they come about
    number: dict[str, int] = field(default_factory=dict)  # by name of a tensor, that of its value
    # by name of a tensor, for each of its axes the value's axis
    frame: dict[str, Permutation] = field(default_factory=dict)
    # the other way round: for each of the value's axes the tensor's axis
    back: dict[str, Permutation] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Value, Permutation]:
        """Return the value of a tensor, and the tensor's axes in it."""
        return self.every[self.number[name]], self.frame[name]

    def written(self, name: str) -> Need:
        """Return a tensor's value in the order in which the tensor is written."""
        value, frame = self.of(name)
        return self.number[name], order_of(frame, value.shape)

    def order(self, name: str, order: Order) -> Order:
        """Return an order of a tensor's axes as one of its value's."""
        return renamed_order(order, self.frame[name])

    def own(self, name: str, order: Order) -> Order:
        """Return an order of a value's axes as one of a tensor's."""
        return renamed_order(order, self.back[name])

    def add(self, name: str, number: int, frame: Permutation) -> None:
        """Make a tensor one of a value's."""
        self.number[name], self.frame[name], self.back[name] = number, frame, inverse(frame)
        self.every[number].tensors.append(name)


def values_of(graph: ConversionGraph) -> Values:
    """Return the values of a graph."""
    found = Values()
    rounds = graph.rounds()
    given = {name for op in graph.ops for name in op.given()}
    results = {name for op in graph.ops for name in op.outputs} - given
    for name in graph.tensors:
        if name not in results:
            _begin(found, graph, name, rounds)
    before: Op | None = None
    for op in graph.ops:
        order = transposition(op)
        view = operator_of(op).category is Category.VIEW and len(op.outputs) == 1
        if (
            view
            and before is not None
            and before == replace(op, name=before.name, outputs=before.outputs)
        ):  # the same view once more
            [first] = before.outputs
            found.add(op.outputs[0], found.number[first], found.frame[first])
            before = None
            continue
        before = op
        if order is not None:
            frame = found.frame[op.inputs[0]]
            own = tuple(frame[axis] for axis in order)
            found.add(op.outputs[0], found.number[op.inputs[0]], own)
            continue
        for name in op.outputs:
            if name in results and name:
                _begin(found, graph, name, rounds)
    return found


def transposition(op: Op) -> Permutation | None:
    """Return the permutation of a transpose, None if an op is something else.

    One whose operand has an unknown number of axes is something else.
    """
    if op.type != "Transpose" or op.rank(0) is None or op.layouts is not None:
        return None
    [axes] = operator_of(op).follow(op)
    return None if axes is None else tuple(axis for axis in axes if axis is not None)


def _begin(values: Values, graph: ConversionGraph, name: str, rounds: Mapping[str, int]) -> None:
    tensor = graph.tensors[name]
    shape = tensor.shape or ()
    runs = 1 if tensor.kind == "constant" else rounds[tensor.scope]
    move = Tally(1, size_of(tensor) * runs, 0, runs=runs)
    values.every.append(Value(name, shape, tensor.kind, move))
    values.add(name, len(values.every) - 1, tuple(range(len(shape))))
