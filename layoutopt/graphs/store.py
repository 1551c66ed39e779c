"""The store of every unwinding graph: ops, tensors and ValuedPairs, checked as they are added."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from copy import copy as shallow
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from threading import Lock
from typing import Any, Self, TypeAlias

import numpy as np
from msgspec.structs import replace

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import exact_decimal
from layoutopt.graphs.ops import MAX_ELEMENTS, Kind, Shape, UnwindingOp, size, type_name
from layoutopt.graphs.tensor import OpSlot, Tensor, described
from layoutopt.tiles.memory import TileMemory, known_memory

Value: TypeAlias = float | Decimal | Fraction | str | np.integer[Any] | np.floating[Any]

MAX_RANK = 64
"""NumPy's own limit."""

_CACHING = Lock()  # held while caches grow, as several threads may look at one graph


def settle(op: UnwindingOp, before: Sequence[Shape]) -> tuple[UnwindingOp, tuple[Shape, ...]]:
    """Return an op on inputs of given shapes, its own shape filled in, and its outputs' shapes."""
    if op.arity is not None and len(before) != op.arity:
        raise InputError(f"takes {op.arity} input(s), {len(before)} given")
    one, several = op.shape, getattr(op, "shapes", None)
    for shape in (() if one is None else (one,)) + (several or ()):
        _check(shape)
    shapes = op.infer(before)
    if several is not None:
        return op, shapes
    if one is None:
        _check(shapes[0])
        return replace(op, shape=shapes[0]), shapes
    if one != shapes[0]:
        raise InputError(f"the given shape {list(one)} must be {list(shapes[0])}, by the inputs")
    return op, shapes


def _check(shape: Shape) -> None:
    if shape and min(shape) < 0:
        raise InputError(f"shape {list(shape)} has a negative dimension")
    if len(shape) > MAX_RANK:
        raise InputError(f"rank {len(shape)} exceeds {MAX_RANK}")
    if size(tuple(n or 1 for n in shape)) > MAX_ELEMENTS:
        raise InputError(f"shape {list(shape)} has more than 2^62 elements")


@dataclass(frozen=True)
class ValuedPair:
    """Two tensors of one shape, and the value of each position with equal locations."""

    a: Tensor
    b: Tensor
    value: Decimal


class GraphStore:
    """Ops, tensors and ValuedPairs; see :class:`layoutopt.Graph`.

    Parameters
    ----------
    name, description
        Free text, kept in files.

    Attributes
    ----------
    ops
        The ops in order of insertion.  Attributes are read-only; methods change them.
    shapes
        The shape of each tensor, by tensor number.
    producers
        The number of the op that produces each tensor.
    op_inputs, op_outputs
        Tensor numbers by op number.
    pairs
        ``(tensor number, tensor number, value)`` in order of insertion.
    """

    def __init__(self, name: str = "", description: str = "") -> None:
        if not isinstance(name, str) or not isinstance(description, str):
            raise InputError(f"a graph's name and description are texts, not {name!r}")
        self.name = name
        self.description = description
        self._tile_memory: TileMemory | None = None
        self.ops: list[UnwindingOp] = []
        self.shapes: list[Shape] = []
        self.producers: list[int] = []
        self.op_inputs: list[tuple[int, ...]] = []
        self.op_outputs: list[range] = []
        self.pairs: list[tuple[int, int, Decimal]] = []
        self._slots: list[OpSlot] = []
        self._number: dict[str, int] = {}
        self._counts: dict[str, int] = {}  # of names made up, by kind of op
        self._forget()

    @property
    def tile_memory(self) -> TileMemory | None:
        """The instance's tile memory, if any; can be set to a TileMemory or a preset's name.

        Raises
        ------
        InputError
            If it is set to anything else.
        """
        return self._tile_memory

    @tile_memory.setter
    def tile_memory(self, given: TileMemory | str | None) -> None:
        self._tile_memory = None if given is None else known_memory(given)

    def add(self, op: UnwindingOp) -> tuple[Tensor, ...]:
        """Append an op whose inputs are given by name, and return its outputs.

        Raises
        ------
        InputError
            If the name is taken, an input is unknown, or attributes do not fit operands.
        """
        inputs = self._operands(op.inputs, op.id, type_name(op))
        names = tuple(map(self.tensor_name, inputs))
        return self._append(op if names == op.inputs else replace(op, inputs=names), inputs)

    def _operands(self, inputs: Iterable[Tensor | str], name: str, tag: str) -> tuple[int, ...]:
        """Return the numbers of an op's inputs; errors name the op."""
        try:
            return tuple(map(self.number, inputs))
        except InputError as error:
            raise InputError(f"op {name!r} ({tag}): {error.reason}") from None

    def _append(self, op: UnwindingOp, inputs: tuple[int, ...]) -> tuple[Tensor, ...]:
        before = [self.shapes[t] for t in inputs]
        try:
            op, shapes = settle(op, before)
            self._check_name(op.id, len(shapes))
        except InputError as error:
            operands = ", ".join(described(self.handle(t)) for t in inputs)
            tail = f" (operands: {operands})" if operands else ""
            raise InputError(f"op {op.id!r} ({type_name(op)}): {error.reason}{tail}") from None
        slot, first = OpSlot(len(self.ops)), len(self.shapes)
        self._number[op.id] = slot.number
        self.ops.append(op)
        self.op_inputs.append(inputs)
        self.op_outputs.append(range(first, first + len(shapes)))
        self.shapes.extend(shapes)
        self.producers.extend([slot.number] * len(shapes))
        self._slots.append(slot)
        return tuple([Tensor(self, slot, i) for i in range(len(shapes))])

    def _check_name(self, name: str, outputs: int) -> None:
        """Refuse an op name that is invalid, taken, or a tensor's, as "b:1" is of an op "b"."""
        if not isinstance(name, str) or not name:
            raise InputError("the id must be a nonempty string")
        if name in self._number:
            raise InputError("the id is already used by another op")
        if outputs == 1 and ":" not in name:
            return
        head, _, tail = name.rpartition(":")
        other = self.op_outputs[self._number[head]] if head in self._number else ()
        if (len(other) > 1 and tail in map(str, range(len(other)))) or (
            outputs > 1 and any(f"{name}:{i}" in self._number for i in range(outputs))
        ):
            raise InputError("the id would make a tensor's name ambiguous")

    def valued_pair(self, a: Tensor | str, b: Tensor | str, value: Value) -> ValuedPair:
        """Add a value for each position at which two tensors of one shape have equal locations.

        Parameters
        ----------
        value
            Per element: any finite number, also zero or negative.  A ``float`` stands for its
            shortest decimal representation; strings and ``Decimal`` are exact.

        Raises
        ------
        InputError
            If the shapes differ or the value is not a finite number.
        """
        ta, tb = self.tensor(a), self.tensor(b)
        if ta.shape != tb.shape:
            pair = f"{described(ta)} and {described(tb)}"
            raise InputError(f"valued pair of {pair}: the shapes differ")
        exact = exact_decimal(value)
        self.pairs.append((ta.index, tb.index, exact))
        return ValuedPair(ta, tb, exact)

    def remove(self, *which: Tensor | str) -> None:
        """Remove ops, all their outputs, and the ValuedPairs of these outputs.

        Handles of other tensors remain valid; using handles of removed ones raises an error.

        Parameters
        ----------
        which
            Names of ops, or handles of an output of each.

        Raises
        ------
        InputError
            If a remaining op reads an output; nothing is removed then.
        """
        gone = {self.op_number(one) for one in which}
        for t in (t for i in sorted(gone) for t in self.op_outputs[i]):
            reader = next((i for i, _ in self._readers_of(t) if i not in gone), None)
            if reader is not None:
                name, other = self.tensor_name(t), self.ops[reader].id
                raise InputError(f"{name!r} is read by op {other!r}; remove that op too")
        for i in gone:
            self._slots[i].number = -1
        kept = [i for i in range(len(self.ops)) if i not in gone]
        place = {t: n for n, t in enumerate(t for i in kept for t in self.op_outputs[i])}
        self.shapes = [self.shapes[t] for t in place]
        self.op_inputs = [tuple(place[t] for t in self.op_inputs[i]) for i in kept]
        self.op_outputs = [_moved(self.op_outputs[i], place) for i in kept]
        self.ops = [self.ops[i] for i in kept]
        self._slots = [self._slots[i] for i in kept]
        for n, slot in enumerate(self._slots):
            slot.number = n
        self.pairs = [
            (place[a], place[b], value) for a, b, value in self.pairs if a in place and b in place
        ]
        self.producers = [n for n, outputs in enumerate(self.op_outputs) for _ in outputs]
        self._number = {op.id: n for n, op in enumerate(self.ops)}
        self._forget()

    def truncate(self, ops: int, pairs: int) -> None:
        """Keep only the first ``ops`` ops and ``pairs`` ValuedPairs."""
        self.pairs = self.pairs[:pairs]
        self.remove(*(op.id for op in self.ops[ops:]))

    def remove_pairs(self, a: Tensor | str, b: Tensor | str) -> tuple[ValuedPair, ...]:
        """Remove every ValuedPair of two tensors, and return them.

        Raises
        ------
        InputError
            If there is no such pair.
        """
        ends = pair_ends(self, a, b)
        gone = [pair for pair in self.pairs if frozenset(pair[:2]) == ends]
        self.pairs = [pair for pair in self.pairs if frozenset(pair[:2]) != ends]
        self._forget()
        return tuple(map(self._pair, gone))

    def rename(self, which: Tensor | str, name: str) -> None:
        """Give an op another name.

        Parameters
        ----------
        which
            The op's name, or a handle of an output.

        Raises
        ------
        InputError
            If the name is empty or taken.
        """
        i = self.op_number(which)
        old = self.ops[i].id
        if name == old:
            return
        del self._number[old]
        try:
            self._check_name(name, len(self.op_outputs[i]))
        except InputError as error:
            self._number[old] = i
            raise InputError(f"op {old!r} cannot be named {name!r}: {error.reason}") from None
        self._number[name] = i
        before = [*map(self.tensor_name, self.op_outputs[i])]
        self.ops[i] = replace(self.ops[i], id=name)
        if self.tile_memory is not None:
            new = dict(zip(before, map(self.tensor_name, self.op_outputs[i]), strict=True))
            given = self.tile_memory.element_bytes
            moved = {x: y for x, y in new.items() if x in given and "default" not in (x, y)}
            gone = {*moved, *new.values()} - {"default"}  # no tensor had a new name until now
            widths = {x: n for x, n in given.items() if x not in gone}
            widths |= {y: given[x] for x, y in moved.items()}
            self.tile_memory = replace(self.tile_memory, element_bytes=widths)
        for j in {j for t in self.op_outputs[i] for j, _ in self._readers_of(t)}:
            names = tuple(map(self.tensor_name, self.op_inputs[j]))
            self.ops[j] = replace(self.ops[j], inputs=names)

    def copy(self) -> Self:
        """Return an independent copy of the graph, with handles of its own."""
        return deepcopy(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self).__new__(type(self))
        slots = [OpSlot(n) for n in range(len(self.ops))]
        memo.update(zip(map(id, self._slots), slots, strict=True))  # for handles copied with it
        state: Any = object.__getstate__(self)
        held, slotted = state if isinstance(state, tuple) else (state, {})  # by __slots__
        for name, value in held.items():
            mutable = isinstance(value, dict | list | set)  # others, such as locks, are shared
            vars(other)[name] = shallow(value) if mutable else value
        for name, value in slotted.items():
            setattr(other, name, value)
        other._slots = slots  # noqa: SLF001  (of the same class)
        other._forget()  # noqa: SLF001
        return other

    def tensor(self, which: Tensor | str) -> Tensor:
        """Return the handle of a tensor given by name or handle.

        Raises
        ------
        InputError
            If there is no such tensor, or the name is that of an op with several outputs.
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
        if not isinstance(which, str):
            raise InputError(f"{which!r} is neither a tensor nor the name of one")
        number, output = self._number.get(which), 0
        if number is None:
            head, _, tail = which.rpartition(":")
            number = self._number.get(head)
            if number is None or not (tail.isascii() and tail.isdecimal()):
                from difflib import get_close_matches

                close = get_close_matches(which, self._number, 1)
                hint = f"did you mean {close[0]!r}?" if close else "no op so far has this name"
                raise InputError(f"unknown tensor {which!r}; {hint}")
            output = int(tail)
        elif len(self.op_outputs[number]) != 1:
            outputs = len(self.op_outputs[number])
            raise InputError(
                f"{which!r} has {outputs} outputs; choose one, such as {which + ':0'!r}"
            )
        if output >= len(self.op_outputs[number]):
            raise InputError(f"{which!r}: the op has {len(self.op_outputs[number])} output(s)")
        return self.op_outputs[number][output]

    def op_of(self, number: int) -> UnwindingOp:
        """Return the op that produces a tensor given by number."""
        return self.ops[self.producers[number]]

    def roots(self) -> list[int]:
        """Return the numbers of root tensors, which are all but those that views produce."""
        found = (self.op_outputs[i] for i, op in enumerate(self.ops) if op.kind is not Kind.VIEW)
        return [t for outputs in found for t in outputs]

    def tensor_name(self, number: int) -> str:
        """Return the name that files give to a tensor."""
        producer = self.producers[number]
        outputs = self.op_outputs[producer]
        name = self.ops[producer].id
        return name if len(outputs) == 1 else f"{name}:{number - outputs[0]}"

    def op_number(self, which: Tensor | str) -> int:
        """Return the number of an op given by name, or by name or handle of an output.

        Raises
        ------
        InputError
            If there is no such op here.
        """
        if isinstance(which, str) and which in self._number:
            return self._number[which]
        return self.producers[self.number(which)]

    def op(self, which: Tensor | str) -> UnwindingOp:
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
        """Return the tensors that an op produces."""
        return tuple(map(self.handle, self.op_outputs[self.op_number(op)]))

    def consumers(self, which: Tensor | str) -> tuple[tuple[str, int], ...]:
        """Return ``(op name, input index)`` for every use of a tensor."""
        return tuple((self.ops[i].id, k) for i, k in self._readers_of(self.number(which)))

    def kind(self, which: Tensor | str) -> Kind:
        """Return the kind of the op that produces a tensor."""
        return self.op_of(self.number(which)).kind

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors in order of insertion."""
        return tuple(map(self.handle, range(len(self.shapes))))

    def sinks(self) -> tuple[Tensor, ...]:
        """Return the tensors whose locations the solver chooses."""
        return self._of_kind(Kind.SINK)

    def sources(self) -> tuple[Tensor, ...]:
        """Return the outputs of sources."""
        return self._of_kind(Kind.SOURCE)

    def barriers(self) -> tuple[Tensor, ...]:
        """Return all outputs of barriers, those of ``sum_like_reduce`` included."""
        return self._of_kind(Kind.BARRIER)

    def fixed_points(self) -> tuple[Tensor, ...]:
        """Return all outputs of fixed points."""
        return self._of_kind(Kind.FIXED_POINT)

    def _of_kind(self, kind: Kind) -> tuple[Tensor, ...]:
        found = (self.op_outputs[i] for i, op in enumerate(self.ops) if op.kind is kind)
        return tuple(self.handle(t) for outputs in found for t in outputs)

    def valued_pairs(self) -> tuple[ValuedPair, ...]:
        """Return all pairs in the order of insertion, without merging equal ones."""
        return tuple(map(self._pair, self.pairs))

    def _pair(self, pair: tuple[int, int, Decimal]) -> ValuedPair:
        return ValuedPair(self.handle(pair[0]), self.handle(pair[1]), pair[2])

    def valued_partners(self, which: Tensor | str) -> tuple[tuple[Tensor, Decimal], ...]:
        """Return ``(partner, value)`` for every pair of a tensor."""
        t = self.number(which)
        found = [self.pairs[p] for p in self._pairs_with(t)]
        return tuple((self.handle(b if a == t else a), v) for a, b, v in found)

    def carriers(self, op: int) -> list[int]:
        """Return the numbers of the input tensors whose locations an op's output has."""
        return [self.op_inputs[op][i] for i in self.ops[op].carriers(len(self.op_inputs[op]))]

    def view_order(self, tensors: Iterable[int], known: Container[int] = ()) -> list[int]:
        """Return tensors, and those whose locations they have through views; carriers first.

        Known ones, and what only these need, are left out.
        """
        found: set[int] = set()
        todo = list(tensors)
        while todo:
            t = todo.pop()
            if t not in found and t not in known:
                found.add(t)
                todo += self.carriers(self.producers[t])
        return sorted(found)  # ops come after their inputs

    def _forget(self) -> None:
        """Clear the caches of readers and pairs."""
        self._readers: dict[int, list[tuple[int, int]]] = {}
        self._pairs_of: dict[int, list[int]] = {}
        self._known_ops = self._known_pairs = 0

    def _readers_of(self, t: int) -> Sequence[tuple[int, int]]:
        """Return op number and input index of every use of a tensor."""
        if self._known_ops < len(self.ops):
            with _CACHING:
                for i in range(self._known_ops, len(self.ops)):
                    for k, x in enumerate(self.op_inputs[i]):
                        _append_new(self._readers.setdefault(x, []), (i, k))
                self._known_ops = len(self.ops)
        return self._readers.get(t, ())

    def _pairs_with(self, t: int) -> Sequence[int]:
        """Return the numbers of a tensor's pairs."""
        if self._known_pairs < len(self.pairs):
            with _CACHING:
                for p in range(self._known_pairs, len(self.pairs)):
                    for x in set(self.pairs[p][:2]):
                        _append_new(self._pairs_of.setdefault(x, []), p)
                self._known_pairs = len(self.pairs)
        return self._pairs_of.get(t, ())

    def __eq__(self, other: object) -> bool:
        """Compare everything that instance files contain."""
        return self._kept() == other._kept() if isinstance(other, GraphStore) else NotImplemented

    __hash__ = object.__hash__

    def _kept(self) -> tuple[Any, ...]:
        return self.name, self.description, self.ops, self.pairs, self.tile_memory

    def __repr__(self) -> str:
        return f"Graph({self.name!r}: {len(self.ops)} ops, {len(self.pairs)} valued pairs)"


def pair_ends(graph: GraphStore, a: Tensor | str, b: Tensor | str) -> frozenset[int]:
    """Return the numbers of two tensors, which a ValuedPair must join."""
    ends = frozenset((graph.number(a), graph.number(b)))
    if not any(frozenset(pair[:2]) == ends for pair in graph.pairs):
        names = f"{graph.tensor(a).name!r} and {graph.tensor(b).name!r}"
        raise InputError(f"there is no valued pair of {names}")
    return ends


def _append_new(found: list[Any], item: Any) -> None:
    """Append an item unless it is there since an update of a cache that was interrupted."""
    if not found or found[-1] < item:
        found.append(item)


def _moved(outputs: range, place: dict[int, int]) -> range:
    first = place[outputs[0]] if outputs else 0
    return range(first, first + len(outputs))
