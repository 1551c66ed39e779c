"""The modes of an op that are of use, and how ops are joined by the orders that these ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutopt.conversion.further import VIEWS, further_mode
from layoutopt.conversion.modes import Mode, Modes
from layoutopt.conversion.orders import Order, has_parts
from layoutopt.conversion.values import Need, Values
from layoutopt.operators.op import Op

Place: TypeAlias = tuple[int, int]
"""The number of an op, and that of a mode, or of an operand or result."""


@dataclass(frozen=True)
class ModeRow:
    """The orders that a mode takes and gives."""

    takes: tuple[Need, ...]
    gives: tuple[Need, ...]


@dataclass
class CandidateModes:
    """The useful modes of an op.

    Parameters
    ----------
    op
        The op.
    modes
        All modes.
    rows
        Those of use, by number; the first mode is always there.
    further
        Modes for orders with parts; their numbers follow those of the others.
    """

    op: Op
    modes: Modes
    rows: dict[int, ModeRow] = field(default_factory=dict)
    further: list[Mode] = field(default_factory=list)

    @property
    def slots(self) -> tuple[str, ...]:
        """For each operand, then each result, its tensor's name; ``""`` for one left out."""
        return (*self.op.inputs, *self.op.outputs)

    def mode(self, number: int) -> Mode:
        """Return one of its modes."""
        known = len(self.modes.every)
        return self.modes.every[number] if number < known else self.further[number - known]

    def in_parts(self, slot: int, order: Order) -> int | None:
        """Return the number of the mode for an order with parts, or one that a view cuts so.

        None if there is none.
        """
        mode = further_mode(self.op, slot, order)
        if mode is None:
            return None
        if mode not in self.further:
            self.further.append(mode)
        return len(self.modes.every) + self.further.index(mode)


class Joined:
    """All modes of all ops, by the orders that they take and give.

    Parameters
    ----------
    values
        The values.
    every
        The ops with their modes.

    Attributes
    ----------
    at
        For each value the operands and results whose orders tell the mode.
    views
        For each value the operands and results of views.
    """

    def __init__(self, values: Values, every: list[CandidateModes]) -> None:
        self.values, self.every = values, every
        self.at: list[list[Place]] = [[] for _ in values.every]
        self.views: list[list[Place]] = [[] for _ in values.every]
        self._slots: list[list[Place]] = [[] for _ in values.every]
        for at, one in enumerate(every):
            for slot, name in enumerate(one.slots):
                if name:
                    number = values.number[name]
                    self._slots[number].append((at, slot))
                    if one.op.type in VIEWS:
                        self.views[number].append((at, slot))
                    if len(one.modes.every) > 1 and one.modes.tells[slot]:
                        self.at[number].append((at, slot))

    def row(self, member: Place) -> ModeRow:
        """Return what a mode takes and gives."""
        one = self.every[member[0]]
        orders, count = one.mode(member[1]).orders, len(one.op.inputs)
        takes = [self.need(n, order) for n, order in zip(one.op.inputs, orders, strict=False) if n]
        gives = [self.need(n, o) for n, o in zip(one.op.outputs, orders[count:], strict=True) if n]
        return ModeRow(tuple(takes), tuple(gives))

    def need(self, name: str, order: Order) -> Need:
        """Return an order of a tensor as one of its value."""
        return self.values.number[name], self.values.order(name, order)

    def joined(self, need: Need) -> Iterator[Place]:
        """Yield the modes that an order of a value is joined to."""
        number, order = need
        for at, slot in self.at[number]:
            one = self.every[at]
            own = self.values.own(one.slots[slot], order)
            for mode in one.modes.by_order[slot].get(own, ()):
                yield at, mode
        for at, slot in self._slots[number] if has_parts(order) else self.views[number]:
            one = self.every[at]
            own = self.values.own(one.slots[slot], order)
            further = None if own in one.modes.by_order[slot] else one.in_parts(slot, own)
            if further is not None:
                yield at, further
