"""Changing a graph that is already there: removing, renaming and copying."""

from __future__ import annotations

from copy import copy as shallow
from copy import deepcopy
from typing import Any, Self

from msgspec.structs import replace

from layoutopt.errors import InputError
from layoutopt.graphs.op import OpError
from layoutopt.graphs.store import Store, ValuedPair
from layoutopt.graphs.tensor import Slot, Tensor

FOUND_AGAIN = ("_readers", "_pairs_of", "_known_ops", "_known_pairs")
"""What a copy need not take over; nothing that it does take over is changed in place."""


class Editor(Store):
    """A store of ops whose content can be taken away again; see :class:`layoutopt.Graph`."""

    def remove(self, *which: Tensor | str) -> None:
        """Remove ops, with all their outputs and the ValuedPairs that these are in.

        Handles of other tensors stay what they are; handles of removed ones raise an error
        when they are used.

        Parameters
        ----------
        which
            Names of ops, or handles of an output of each.

        Raises
        ------
        InputError
            If an op that stays reads an output; nothing is removed then.
        """
        gone = {self.op_number(one) for one in which}
        for t in (t for i in sorted(gone) for t in self.op_outputs[i]):
            reader = next((i for i, _ in self._readers_of(t) if i not in gone), None)
            if reader is not None:
                name, other = self.tensor_name(t), self.ops[reader].id
                raise InputError(f"{name!r} is read by op {other!r}; remove that too")
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
        """Remove all but the first so many ops and ValuedPairs."""
        self.pairs = self.pairs[:pairs]
        self.remove(*(op.id for op in self.ops[ops:]))

    def remove_pairs(self, a: Tensor | str, b: Tensor | str) -> tuple[ValuedPair, ...]:
        """Remove every ValuedPair of two tensors, and return them.

        Raises
        ------
        InputError
            If there is none.
        """
        ends = {self.number(a), self.number(b)}
        gone = [pair for pair in self.pairs if {pair[0], pair[1]} == ends]
        if not gone:
            names = f"{self.tensor(a).name!r} and {self.tensor(b).name!r}"
            raise InputError(f"there is no valued pair of {names}")
        self.pairs = [pair for pair in self.pairs if {pair[0], pair[1]} != ends]
        self._forget()
        return tuple(ValuedPair(self.handle(x), self.handle(y), value) for x, y, value in gone)

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
        except OpError as error:
            self._number[old] = i
            raise InputError(f"op {old!r} cannot be named {name!r}: {error}") from None
        self._number[name] = i
        self.ops[i] = replace(self.ops[i], id=name)
        for j in {j for t in self.op_outputs[i] for j, _ in self._readers_of(t)}:
            names = tuple(map(self.tensor_name, self.op_inputs[j]))
            self.ops[j] = replace(self.ops[j], inputs=names)

    def copy(self) -> Self:
        """Return an independent graph of the same content; its handles are its own."""
        return deepcopy(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self)()
        slots = [Slot(n) for n in range(len(self.ops))]
        memo.update(zip(map(id, self._slots), slots, strict=True))  # for handles copied with it
        own = {name: held for name, held in vars(self).items() if name not in FOUND_AGAIN}
        vars(other).update({name: shallow(held) for name, held in own.items()}, _slots=slots)
        return other


def _moved(outputs: range, place: dict[int, int]) -> range:
    first = place[outputs[0]] if outputs else 0
    return range(first, first + len(outputs))
