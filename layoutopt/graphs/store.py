"""What every unwinding graph is made of: ops, tensors and ValuedPairs, checked as they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from layoutopt.errors import InputError
from layoutopt.graphs.op import MAX_ELEMENTS, Kind, Op, OpError, Shape, size, type_name
from layoutopt.graphs.values import exact_decimal

MAX_RANK = 64
"""NumPy's own limit."""


@dataclass(frozen=True)
class Tensor:
    """A handle of one tensor of a graph.

    Parameters
    ----------
    graph
        The graph that the tensor belongs to.
    index
        The tensor's number: tensors are counted in order of insertion, and the outputs of
        one op in their own order.
    """

    graph: Store
    index: int

    @property
    def name(self) -> str:
        """The tensor's name in files: ``"id"``, or ``"id:1"`` for output 1 of several."""
        return self.graph.tensor_name(self.index)

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        return self.graph.shapes[self.index]

    @property
    def size(self) -> int:
        """The number of elements."""
        return size(self.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {list(self.shape)})"


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
            inputs = tuple(self.tensor(name).index for name in op.inputs)
        except InputError as error:
            raise InputError(f"{title}: {error.reason}") from None
        before = [self.shapes[t] for t in inputs]
        try:
            shapes = _infer(op, before)
            op = _with_shape(op, shapes)
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
        return tuple(Tensor(self, first + i) for i in range(len(shapes)))

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
        if isinstance(which, Tensor):
            if which.graph is not self:
                raise InputError(f"tensor {which.name!r} belongs to another graph")
            return which
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
        return Tensor(self, self.op_outputs[number][output])

    def tensor_name(self, number: int) -> str:
        """Return the name that files give to a tensor."""
        producer = self.producers[number]
        outputs = self.op_outputs[producer]
        name = self.ops[producer].id
        return name if len(outputs) == 1 else f"{name}:{number - outputs[0]}"

    def kind(self, which: Tensor | str) -> Kind:
        """Return how a tensor gets its locations."""
        return self.ops[self.producers[self.tensor(which).index]].kind

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors in order of insertion."""
        return tuple(Tensor(self, t) for t in range(len(self.shapes)))

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
        return tuple(ValuedPair(Tensor(self, a), Tensor(self, b), v) for a, b, v in self.pairs)

    def valued_partners(self, which: Tensor | str) -> tuple[tuple[Tensor, Decimal], ...]:
        """Return ``(partner, value)`` for every pair that a tensor is in."""
        t = self.tensor(which).index
        found = [(b if a == t else a, v) for a, b, v in self.pairs if t in (a, b)]
        return tuple((Tensor(self, p), v) for p, v in found)

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
        return tuple(Tensor(self, t) for outputs in found for t in outputs)


def _described(name: str, shape: Shape) -> str:
    return f"{name!r} {list(shape)}"


def _infer(op: Op, before: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return the outputs' shapes, all of them legal."""
    if op.arity is not None and len(before) != op.arity:
        raise OpError(f"takes {op.arity} input(s), {len(before)} given")
    given: Iterable[Shape | None] = (
        getattr(op, "shape", None),
        *(getattr(op, "shapes", None) or ()),
    )
    for shape in given:
        _check_shape(shape or ())
    return op.infer(before)


def _check_shape(shape: Shape) -> None:
    if any(d < 0 for d in shape):
        raise OpError(f"shape {list(shape)} has a negative dimension")
    if len(shape) > MAX_RANK:
        raise OpError(f"rank {len(shape)} is more than {MAX_RANK}")
    if size(tuple(d for d in shape if d)) > MAX_ELEMENTS:
        raise OpError(f"shape {list(shape)} has more than 2^62 elements")


def _with_shape(op: Op, shapes: Sequence[Shape]) -> Op:
    """Return the op with its derived shape written down, which a given one must equal."""
    if getattr(op, "shapes", None) is not None:
        return op
    for shape in shapes:
        _check_shape(shape)
    given = getattr(op, "shape", None)
    if given is None:
        return replace(op, shape=shapes[0])
    if given != shapes[0]:
        raise OpError(f"shape {list(given)} is given, {list(shapes[0])} follows from the inputs")
    return op
