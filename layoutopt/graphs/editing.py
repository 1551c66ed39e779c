"""Changing a graph that is already there: removing, renaming and copying."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from msgspec.structs import replace

from layoutopt.errors import InputError
from layoutopt.graphs.store import Store, ValuedPair
from layoutopt.graphs.tensor import Slot, Tensor


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
        gone = {self._op_number(one) for one in which}
        removed = {t for i in gone for t in self.op_outputs[i]}
        for i, inputs in enumerate(self.op_inputs):
            if i not in gone and not removed.isdisjoint(inputs):
                name = self.tensor_name(next(t for t in inputs if t in removed))
                raise InputError(f"{name!r} is read by op {self.ops[i].id!r}; remove that too")
        for i in gone:
            self._slots[i].number = -1
        kept = [i for i in range(len(self.ops)) if i not in gone]
        place = {t: n for n, t in enumerate(t for i in kept for t in self.op_outputs[i])}
        self.pairs = [
            (place[a], place[b], value) for a, b, value in self.pairs if a in place and b in place
        ]
        self.shapes = [self.shapes[t] for t in place]
        self.op_inputs = [tuple(place[t] for t in self.op_inputs[i]) for i in kept]
        self.op_outputs = [_moved(self.op_outputs[i], place) for i in kept]
        self.ops = [self.ops[i] for i in kept]
        self._slots = [self._slots[i] for i in kept]
        self.producers = [n for n, outputs in enumerate(self.op_outputs) for _ in outputs]
        self._number = {op.id: n for n, op in enumerate(self.ops)}
        for n, slot in enumerate(self._slots):
            slot.number = n

    def remove_pairs(self, a: Tensor | str, b: Tensor | str) -> tuple[ValuedPair, ...]:
        """Remove every ValuedPair of two tensors, and return them.

        Raises
        ------
        InputError
            If there is none.
        """
        ends = {self.number(a), self.number(b)}
        found = tuple(
            ValuedPair(self.handle(x), self.handle(y), value)
            for x, y, value in self.pairs
            if {x, y} == ends
        )
        if not found:
            names = f"{self.tensor(a).name!r} and {self.tensor(b).name!r}"
            raise InputError(f"there is no valued pair of {names}")
        self.pairs = [pair for pair in self.pairs if {pair[0], pair[1]} != ends]
        return found

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
        i = self._op_number(which)
        old = self.ops[i].id
        if name == old:
            return
        del self._number[old]
        if not name or name in self._number or self._ambiguous(name, len(self.op_outputs[i])):
            self._number[old] = i
            raise InputError(f"op {old!r}: the name {name!r} is {'taken' if name else 'empty'}")
        self._number[name] = i
        self.ops[i] = replace(self.ops[i], id=name)
        for j, inputs in enumerate(self.op_inputs):
            if any(t in self.op_outputs[i] for t in inputs):
                names = tuple(self.tensor_name(t) for t in inputs)
                self.ops[j] = replace(self.ops[j], inputs=names)

    def copy(self) -> Self:
        """Return an independent graph of the same content; its handles are its own."""
        other = type(self)(self.name, self.description)
        own = {k: v.copy() if isinstance(v, list | dict) else v for k, v in vars(self).items()}
        vars(other).update(own, _slots=[Slot(n) for n in range(len(self.ops))])
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def _op_number(self, which: Tensor | str) -> int:
        """Return the number of an op given by name or by an output."""
        if isinstance(which, str) and which in self._number:
            return self._number[which]
        return self.producers[self.number(which)]


def _moved(outputs: Iterable[int], place: dict[int, int]) -> range:
    numbers = [place[t] for t in outputs]
    return range(numbers[0], numbers[-1] + 1) if numbers else range(0)
