"""Ops, tensors and ValuedPairs as lists, and the ways between name, number and handle."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from layoutopt.errors import InputError
from layoutopt.graphs.op import Op, OpError, Shape
from layoutopt.graphs.tensor import Slot, Tensor
from layoutopt.tiles.memory import TileMemory, known_memory


class Content:
    """What is in a graph.  Its attributes are there to be read; methods alone may change them.

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
    """

    def __init__(self, name: str = "", description: str = "") -> None:
        self.name = name
        self.description = description
        self._tile_memory: TileMemory | None = None
        self.ops: list[Op] = []
        self.shapes: list[Shape] = []
        self.producers: list[int] = []
        self.op_inputs: list[tuple[int, ...]] = []
        self.op_outputs: list[range] = []
        self.pairs: list[tuple[int, int, Decimal]] = []
        self._slots: list[Slot] = []
        self._number: dict[str, int] = {}
        self._forget()

    @property
    def tile_memory(self) -> TileMemory | None:
        """The instance's tile memory, if any; it can be set to one, or to a preset's name.

        Raises
        ------
        InputError
            If it is set to anything else.
        """
        return self._tile_memory

    @tile_memory.setter
    def tile_memory(self, given: TileMemory | str | None) -> None:
        self._tile_memory = None if given is None else known_memory(given)

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
        if not isinstance(which, str):
            raise InputError(f"{which!r} is neither a tensor nor the name of one")
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

    def tensor_name(self, number: int) -> str:
        """Return the name that files give to a tensor."""
        producer = self.producers[number]
        outputs = self.op_outputs[producer]
        name = self.ops[producer].id
        return name if len(outputs) == 1 else f"{name}:{number - outputs[0]}"

    def _forget(self) -> None:
        """Forget who reads and who is paired, to be found again when it is asked for."""
        self._readers: dict[int, list[tuple[int, int]]] = {}
        self._pairs_of: dict[int, list[int]] = {}
        self._known_ops = self._known_pairs = 0

    def _readers_of(self, t: int) -> Sequence[tuple[int, int]]:
        """Return op number and input index of every place where a tensor is read."""
        for i in range(self._known_ops, len(self.ops)):
            for k, x in enumerate(self.op_inputs[i]):
                self._readers.setdefault(x, []).append((i, k))
        self._known_ops = len(self.ops)
        return self._readers.get(t, ())

    def _pairs_with(self, t: int) -> Sequence[int]:
        """Return the numbers of the pairs that a tensor is in."""
        for p in range(self._known_pairs, len(self.pairs)):
            for x in set(self.pairs[p][:2]):
                self._pairs_of.setdefault(x, []).append(p)
        self._known_pairs = len(self.pairs)
        return self._pairs_of.get(t, ())

    def _check_name(self, name: str, outputs: int) -> None:
        """Refuse a name that is none, is taken, or by which a tensor would be named twice.

        The latter is ``"b:1"`` where op ``"b"`` has several outputs, and ``"b"`` for such an
        op where there is an op ``"b:1"``.
        """
        if not isinstance(name, str) or not name:
            raise OpError(f"the id is {'empty' if name == '' else 'no string'}")
        if name in self._number:
            raise OpError("the id is taken")
        if outputs == 1 and ":" not in name:
            return
        head, _, tail = name.rpartition(":")
        other = self.op_outputs[self._number[head]] if head in self._number else ()
        if (len(other) > 1 and tail in map(str, range(len(other)))) or (
            outputs > 1 and any(f"{name}:{i}" in self._number for i in range(outputs))
        ):
            raise OpError("the id makes a tensor's name ambiguous")
