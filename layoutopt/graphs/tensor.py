"""Handles of a graph's tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layoutopt.errors import InputError
from layoutopt.graphs.op import Kind, Op, Shape, size


class Slot:
    """Where an op stands in its graph; follows the op when others are removed.

    Parameters
    ----------
    number
        The op's number, -1 once it is removed.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(frozen=True, eq=False, repr=False)
class Tensor:
    """A handle of one tensor of a graph.

    Two handles are equal if they name the same output of the same op of the same graph.

    Parameters
    ----------
    graph
        The :class:`~layoutopt.Graph` that the tensor belongs to.
    slot
        Where the op stands that makes the tensor.
    output
        Which of the op's outputs the tensor is.
    """

    graph: Any  # to name the class here would be a circle
    slot: Slot
    output: int

    @property
    def index(self) -> int:
        """The tensor's number: tensors are counted in the order of ops and their outputs."""
        if self.slot.number < 0:
            raise InputError("the tensor's op was removed from its graph")
        number: int = self.graph.op_outputs[self.slot.number][self.output]
        return number

    @property
    def name(self) -> str:
        """The tensor's name in files: ``"id"``, or ``"id:1"`` for output 1 of several."""
        return str(self.graph.tensor_name(self.index))

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        shape: Shape = self.graph.shapes[self.index]
        return shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return size(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def op(self) -> Op:
        """The op that makes the tensor."""
        op: Op = self.graph.ops[self.graph.producers[self.index]]
        return op

    @property
    def kind(self) -> Kind:
        """How the tensor gets its locations."""
        return self.op.kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return self.slot is other.slot and self.output == other.output

    def __hash__(self) -> int:
        return hash((id(self.slot), self.output))

    def __repr__(self) -> str:
        if self.slot.number < 0:
            return f"{type(self).__name__}(removed)"
        return f"{type(self).__name__}({self.name!r}, {list(self.shape)})"
