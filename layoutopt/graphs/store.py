"""What every unwinding graph is made of: ops, tensors and ValuedPairs, checked as they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from layoutopt.errors import InputError
from layoutopt.graphs.content import Content
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


class Store(Content):
    """Ops, tensors and ValuedPairs, added one by one; see :class:`layoutopt.Graph`."""

    def add(self, op: Op) -> tuple[Tensor, ...]:
        """Append an op whose inputs are given by name, and return its outputs.

        Raises
        ------
        InputError
            If the name is taken, an input is unknown, or attributes and operands do not
            fit.  The text names op and operands.
        """
        inputs = self._operands(op.inputs, op.id, type_name(op))
        names = tuple(map(self.tensor_name, inputs))
        return self._append(op if names == op.inputs else replace(op, inputs=names), inputs)

    def _operands(self, inputs: Iterable[Tensor | str], name: str, tag: str) -> tuple[int, ...]:
        """Return the numbers of an op's inputs, and name that op in errors."""
        try:
            return tuple(map(self.number, inputs))
        except InputError as error:
            raise InputError(f"op {name!r} ({tag}): {error.reason}") from None

    def _append(self, op: Op, inputs: tuple[int, ...]) -> tuple[Tensor, ...]:
        before = [self.shapes[t] for t in inputs]
        try:
            op, shapes = settle(op, before)
            self._check_name(op.id, len(shapes))
        except OpError as error:
            operands = ", ".join(map(_described, op.inputs, before))
            tail = f" (operands: {operands})" if operands else ""
            raise InputError(f"op {op.id!r} ({type_name(op)}): {error}{tail}") from None
        slot, first = Slot(len(self.ops)), len(self.shapes)
        self._number[op.id] = slot.number
        self.ops.append(op)
        self.op_inputs.append(inputs)
        self.op_outputs.append(range(first, first + len(shapes)))
        self.shapes.extend(shapes)
        self.producers.extend([slot.number] * len(shapes))
        self._slots.append(slot)
        return tuple([Tensor(self, slot, i) for i in range(len(shapes))])

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

    def op(self, which: Tensor | str) -> Op:
        """Return an op given by name, or by name or handle of an output.

        Raises
        ------
        InputError
            If there is no such op here.
        """
        return self.ops[self.op_number(which)]

    def inputs(self, op: Tensor | str) -> tuple[Tensor, ...]:
        """Return the tensors that an op reads."""
        return tuple(map(self.handle, self.op_inputs[self.op_number(op)]))

    def outputs(self, op: Tensor | str) -> tuple[Tensor, ...]:
        """Return the tensors that an op makes."""
        return tuple(map(self.handle, self.op_outputs[self.op_number(op)]))

    def consumers(self, which: Tensor | str) -> tuple[tuple[str, int], ...]:
        """Return ``(op name, input index)`` for every place where a tensor is read."""
        return tuple((self.ops[i].id, k) for i, k in self._readers_of(self.number(which)))

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
        found = [self.pairs[p] for p in self._pairs_with(t)]
        return tuple((self.handle(b if a == t else a), v) for a, b, v in found)

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
