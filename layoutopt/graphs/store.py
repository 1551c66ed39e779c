"""What every unwinding graph is made of: ops, tensors and ValuedPairs, checked as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from layoutopt.errors import InputError
from layoutopt.graphs.inference import settle
from layoutopt.graphs.op import Kind, Op, OpError, Shape, type_name
from layoutopt.graphs.tensor import Slot, Tensor
from layoutopt.graphs.values import exact_decimal


@dataclass(frozen=True)
class ValuedPair:
    """Two tensors of one shape, and what each position with equal locations earns."""

    a: Tensor
    b: Tensor
    value: Decimal


class Store:
    """Ops, tensors and ValuedPairs.

    Parameters
    ----------
    name, description
        Free text, kept in files.

    Attributes
    ----------
    ops
        The ops in order of insertion.
    shapes
        The shape of each tensor, by tensor number.
    producers
        The number of the op that makes each tensor.
    op_inputs, op_outputs
        Tensor numbers by op number.
    pairs
        ``(tensor number, tensor number, value)`` in order of insertion.
    tile_memory
        The instance's tile memory, if any.
    """

    def __init__(self, name: str = "", description: str = "") -> None:
        self.name = name
        self.description = description
        self.tile_memory: Any = None
        self.ops: list[Op] = []
        self.shapes: list[Shape] = []
        self.producers: list[int] = []
        self.op_inputs: list[tuple[int, ...]] = []
        self.op_outputs: list[range] = []
        self.pairs: list[tuple[int, int, Decimal]] = []
        self._slots: list[Slot] = []
        self._number: dict[str, int] = {}

    def add(self, op: Op) -> tuple[Tensor, ...]:
        """Append an op whose inputs are given by name, and return its outputs.

        Raises
        ------
        InputError
            If the name is taken, an input is unknown, or attributes and operands do not
            fit.  The text names op and operands.
        """
        title = f"op {op.id!r} ({type_name(op)})"
        if not op.id or op.id in self._number:
            raise InputError(f"{title}: the id is {'taken' if op.id else 'empty'}")
        try:
            inputs = tuple(self.number(name) for name in op.inputs)
        except InputError as error:
            raise InputError(f"{title}: {error.reason}") from None
        before = [self.shapes[t] for t in inputs]
        try:
            op, shapes = settle(op, before)
        except OpError as error:
            operands = ", ".join(map(_described, op.inputs, before))
            tail = f" (operands: {operands})" if operands else ""
            raise InputError(f"{title}: {error}{tail}") from None
        if self._ambiguous(op.id, len(shapes)):
            raise InputError(f"{title}: the id makes a tensor's name ambiguous")
        return self._append(op, inputs, shapes)

    def _ambiguous(self, name: str, outputs: int) -> bool:
        """Return whether ``"id:1"`` would name both an op and an output of another."""
        head, _, tail = name.rpartition(":")
        other = self.op_outputs[self._number[head]] if head in self._number else ()
        return (len(other) > 1 and tail in map(str, range(len(other)))) or (
            outputs > 1 and any(f"{name}:{i}" in self._number for i in range(outputs))
        )

    def _append(
        self, op: Op, inputs: tuple[int, ...], shapes: Sequence[Shape]
    ) -> tuple[Tensor, ...]:
        first = len(self.shapes)
        self._number[op.id] = len(self.ops)
        self.op_inputs.append(inputs)
        self.op_outputs.append(range(first, first + len(shapes)))
        self.shapes.extend(shapes)
        self.producers.extend([len(self.ops)] * len(shapes))
        self.ops.append(op)
        slot = Slot(len(self._slots))
        self._slots.append(slot)
        return tuple(Tensor(self, slot, i) for i in range(len(shapes)))

    def valued_pair(
        self, a: Tensor | str, b: Tensor | str, value: float | Decimal | str
    ) -> ValuedPair:
        """Reward each position at which two tensors of one shape have equal locations.

        Parameters
        ----------
        value
            Per element: any finite number, also zero or negative.  A ``float`` means the
            shortest decimal that prints as it; a string or ``Decimal`` is taken exactly.

        Raises
        ------
        InputError
            If the shapes differ or the value is no finite number.
        """
        ta, tb = self.tensor(a), self.tensor(b)
        if ta.shape != tb.shape:
            pair = f"{_described(ta.name, ta.shape)} and {_described(tb.name, tb.shape)}"
            raise InputError(f"valued pair of {pair}: the shapes differ")
        exact = exact_decimal(value)
        self.pairs.append((ta.index, tb.index, exact))
        return ValuedPair(ta, tb, exact)

    def tensor(self, which: Tensor | str) -> Tensor:
        """Return the handle of a tensor given by name or handle.

        Raises
        ------
        InputError
            If there is no such tensor here, or the name fits an op with several outputs.
        """
        return self.handle(self.number(which))

    def handle(self, number: int) -> Tensor:
        """Return the handle of a tensor given by number."""
        producer = self.producers[number]
        return Tensor(self, self._slots[producer], number - self.op_outputs[producer][0])

    def number(self, which: Tensor | str) -> int:
        """Return the number of a tensor given by name or handle.

        Raises
        ------
        InputError
            As :meth:`tensor` does.
        """
        if isinstance(which, Tensor):
            if which.graph is not self:
                raise InputError(f"tensor {which.name!r} belongs to another graph")
            return which.index
        number, output = self._number.get(which), 0
        if number is None:
            head, _, tail = which.rpartition(":")
            number = self._number.get(head)
            if number is None or not (tail.isascii() and tail.isdecimal()):
                raise InputError(f"{which!r} names no tensor of an earlier op")
            output = int(tail)
        elif len(self.op_outputs[number]) != 1:
            outputs = len(self.op_outputs[number])
            raise InputError(f"{which!r} has {outputs} outputs; name one, as in {which + ':0'!r}")
        if output >= len(self.op_outputs[number]):
            raise InputError(f"{which!r}: the op has {len(self.op_outputs[number])} output(s)")
        return self.op_outputs[number][output]

    def tensor_name(self, number: int) -> str:
        """Return the name that files give to a tensor."""
        producer = self.producers[number]
        outputs = self.op_outputs[producer]
        name = self.ops[producer].id
        return name if len(outputs) == 1 else f"{name}:{number - outputs[0]}"

    def kind(self, which: Tensor | str) -> Kind:
        """Return how a tensor gets its locations."""
        return self.ops[self.producers[self.number(which)]].kind

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors in order of insertion."""
        return tuple(self.handle(t) for t in range(len(self.shapes)))

    def sinks(self) -> tuple[Tensor, ...]:
        """Return the tensors whose locations are to be chosen."""
        return self._of_kind(Kind.SINK)

    def sources(self) -> tuple[Tensor, ...]:
        """Return the tensors with locations of their own and no inputs."""
        return self._of_kind(Kind.SOURCE)

    def barriers(self) -> tuple[Tensor, ...]:
        """Return all outputs of barriers, reduces included."""
        return self._of_kind(Kind.BARRIER)

    def fixed_points(self) -> tuple[Tensor, ...]:
        """Return all outputs of fixed points."""
        return self._of_kind(Kind.FIXED_POINT)

    def valued_pairs(self) -> tuple[ValuedPair, ...]:
        """Return all pairs as they were added; repeated ones are not merged."""
        return tuple(ValuedPair(self.handle(a), self.handle(b), v) for a, b, v in self.pairs)

    def valued_partners(self, which: Tensor | str) -> tuple[tuple[Tensor, Decimal], ...]:
        """Return ``(partner, value)`` for every pair that a tensor is in."""
        t = self.number(which)
        found = [(b if a == t else a, v) for a, b, v in self.pairs if t in (a, b)]
        return tuple((self.handle(p), v) for p, v in found)

    def carriers(self, op: int) -> list[int]:
        """Return the input tensors, by number, whose locations an op passes on."""
        return [self.op_inputs[op][i] for i in self.ops[op].carriers(len(self.op_inputs[op]))]

    def __eq__(self, other: object) -> bool:
        """Compare everything that a file keeps."""
        return self._kept() == other._kept() if isinstance(other, Store) else NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Graph({self.name!r}: {len(self.ops)} ops, {len(self.pairs)} valued pairs)"

    def _kept(self) -> tuple[Any, ...]:
        return self.name, self.description, self.ops, self.pairs, self.tile_memory

    def _of_kind(self, kind: Kind) -> tuple[Tensor, ...]:
        found = (self.op_outputs[i] for i, op in enumerate(self.ops) if op.kind is kind)
        return tuple(self.handle(t) for outputs in found for t in outputs)


def _described(name: str, shape: Shape) -> str:
    return f"{name!r} {list(shape)}"
