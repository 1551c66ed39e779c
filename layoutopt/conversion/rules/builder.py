"""Unwinding graphs in the making, and the nodes of a network that enter them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import Op
from layoutopt.graphs.ops import Shape, dominates
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

Attractions: TypeAlias = Mapping[str, Decimal]
"""Value per element by table and key, for instance ``"matmul.lhs"``."""


@dataclass(frozen=True, eq=False)
class Node:
    """An op of a network, ready to enter an unwinding graph."""

    op: Op  # the op; outputs that nobody reads have no names
    # the operands; `None` for one that is left out, and for one that only carries structure
    inputs: tuple[Tensor | None, ...]
    shapes: tuple[Shape | None, ...]  # the outputs' shapes; `None` for one that nobody reads
    captured: tuple[Tensor, ...] = ()  # tensors that the bodies inside the node read

    @property
    def name(self) -> str:
        """The name of the first output that is read."""
        return next(filter(None, self.op.outputs))

    @property
    def shape(self) -> Shape:
        """The shape of the first output that is read."""
        return next(shape for shape in self.shapes if shape is not None)

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Everything that the node reads, in order."""
        return tuple(x for x in self.inputs if x is not None) + self.captured

    def operand(self, position: int) -> Tensor:
        """Return an operand that the node cannot do without, or behind all a captured tensor."""
        x = next(iter((*self.inputs, *self.captured)[position:]), None)
        if x is None:
            raise InputError(f"operand {position} is missing")
        return x

    def optional(self, position: int) -> Tensor | None:
        """Return an operand, if it is there and holds data, or structure of unknown values."""
        return self.inputs[position] if position < len(self.inputs) else None


@dataclass(frozen=True, eq=False)
class Use:
    """An op of a network, ready for its backward pass."""

    node: Node
    outputs: tuple[Tensor | None, ...]  # its outputs; `None` for one that nobody reads
    gradients: tuple[Tensor | None, ...]  # the outputs' gradients; `None` where there is none
    # positions of the operands whose gradients are needed; those captured are counted on
    wanted: tuple[int, ...]

    @property
    def output(self) -> Tensor:
        """The first output that has a gradient."""
        found = zip(self.outputs, self.gradients, strict=True)
        return next(y for y, dy in found if y is not None and dy is not None)

    @property
    def gradient(self) -> Tensor:
        """The gradient of the first output that has one."""
        return next(dy for dy in self.gradients if dy is not None)

    def operand(self, position: int) -> Tensor:
        """Return an operand, or behind the last a captured tensor."""
        return self.node.operand(position)


Outputs: TypeAlias = Tensor | Sequence[Tensor | None]

Build: TypeAlias = Callable[["GraphBuilder", Node], Outputs]
"""Adds the ops and pairs of a node to a graph, and returns the node's outputs."""

Gradients: TypeAlias = Iterator[tuple[int, Tensor]]
"""Position and gradient of each wanted operand."""


BackwardRule: TypeAlias = Callable[["GraphBuilder", Use], Gradients]
"""Adds the ops and pairs of a backward pass to a graph, and yields the wanted gradients."""


def column(shape: Shape, rank: int, axis: int) -> Shape:
    """Return a shape with ones behind it, so that its first axis becomes ``axis`` of ``rank``."""
    return (*shape, *(1,) * (rank - axis - len(shape)))


Step: TypeAlias = tuple[Callable[..., Tensor], *tuple[Any, ...]]
"""A method of the graph that adds a view, and its arguments."""


class GraphBuilder:
    """An unwinding graph, and the ways in which op types add to it.

    ``attractions`` are the pairs' values, ``taken`` names that helper ops must not have.
    """

    def __init__(self, graph: Graph, attractions: Attractions, taken: Collection[str]) -> None:
        self.graph = graph
        self.attractions = attractions
        self._taken = set(taken)

    def helper(self, base: str, role: str) -> str:
        """Return an unused name for an op that the network does not have."""
        name, count = f"{base}.{role}", 1
        while name in self._taken:
            count += 1
            name = f"{base}.{role}{count}"
        self._taken.add(name)
        return name

    def sink(self, name: str, shape: Shape) -> Tensor:
        """Add a tensor whose locations are free, drawn weakly to a row-major spread."""
        x = self.graph.sink(shape, name=name)
        self._draw(x, "sink.linear", self.helper(name, "linear"))
        return x

    def target(self, x: Tensor, value: str, base: str, role: str) -> None:
        """Draw an operand to the layout that an operation wants it in."""
        self._draw(x, value, self.helper(base, f"{role}.target"))

    def _draw(self, x: Tensor, value: str, name: str) -> None:
        if self.attractions[value]:
            source = self.graph.source(x.shape, name=name)
            self.graph.valued_pair(x, source, self.attractions[value])

    def pair(self, x: Tensor, y: Tensor, value: str) -> None:
        """Draw two tensors together, if they are different ones of the same shape."""
        if x.index != y.index and x.shape == y.shape and self.attractions[value]:
            self.graph.valued_pair(x, y, self.attractions[value])

    def tie(self, large: Tensor, small: Tensor, value: str, base: str, role: str) -> None:
        """Draw a tensor to one that it broadcasts to, if it does, through a reduce."""
        if large.shape == small.shape:
            self.pair(large, small, value)
        elif dominates(large.shape, small.shape) and self.attractions[value]:
            name = self.helper(base, f"{role}.reduce")
            reduced = self.graph.sum_like_reduce(large, small.shape, name=name)
            self.graph.valued_pair(reduced, small, self.attractions[value])

    def aligned(self, x: Tensor, rank: int, axis: int, base: str, role: str) -> Tensor:
        """Return a tensor with ones behind it, so that its first axis becomes ``axis``."""
        shape = column(x.shape, rank, axis)
        if shape == x.shape:
            return x
        return self.graph.reshape(x, shape, name=self.helper(base, f"{role}.aligned"))

    def gradient_name(self, x: Tensor) -> str:
        """Return an unused name for a gradient of a tensor."""
        return self.helper(x.name, "gradient")

    def chain(self, x: Tensor, name: str, steps: Sequence[Step]) -> Tensor:
        """Add views one after the other; the last has the given name.

        Steps, of which there is one or more, are methods of
        :class:`~layoutopt.graphs.unwinding.Graph` with their arguments.
        """
        for k, (method, *arguments) in enumerate(steps):
            last = k == len(steps) - 1
            own = name if last else self.helper(name, method.__name__)
            x = method(self.graph, x, *arguments, name=own)
        return x
