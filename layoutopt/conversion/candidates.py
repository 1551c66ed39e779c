"""Which modes are of use.

Most permutations are not: what agrees in an odd order can as well agree in one that something
needs.  The modes of an op and the orders that they take and give are joined, from op to op, to
*families*: to choose one member is to choose all, as long as no transform comes between.  An
operand or result of which several modes ask the same, as what a reduction leaves, joins nothing.
Of use are

- the families of all orders in which tensors are written, or required;
- of other families one of each *kind*.  The kind is made of the ops that cannot run in every
  order, as far as they run in this family, and of the useful orders of operands and results that
  join nothing, as far as the family has them.

Other families do not help: where a labelling has some, put useful ones of their kinds in their
places.  All ops run, orders that were equal still are, and so no transform is paid for that was
not paid for before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import factorial
from typing import TypeAlias

from layoutopt.conversion.modes import Mode, Modes
from layoutopt.conversion.values import Need, Order, Values
from layoutopt.operators.op import Op

Place: TypeAlias = tuple[int, int]
"""The number of an op, and that of a mode, or of an operand or result."""


@dataclass(frozen=True)
class Row:
    """The orders that a mode takes and gives."""

    takes: tuple[Need, ...]
    gives: tuple[Need, ...]


@dataclass
class Choices:
    """The useful modes of an op.

    Parameters
    ----------
    op
        The op.
    modes
        All modes.
    rows
        Those of use, by number; the first mode is always there.
    """

    op: Op
    modes: Modes
    rows: dict[int, Row] = field(default_factory=dict)

    @property
    def slots(self) -> tuple[str, ...]:
        """For each operand, then each result, its tensor's name; ``""`` for one left out."""
        return (*self.op.inputs, *self.op.outputs)

    def mode(self, number: int) -> Mode:
        """Return one of its modes."""
        return self.modes.every[number]


@dataclass(frozen=True)
class Family:
    """Modes that belong together.

    Parameters
    ----------
    members
        The modes.
    told
        Which ops among those that cannot run in every order.
    marks
        Orders of operands and results that join nothing.
    """

    members: tuple[Place, ...]
    told: frozenset[int]
    marks: frozenset[tuple[Place, Need]]


def choices(values: Values, ops: Iterable[tuple[Op, Modes]], kept: Sequence[str]) -> list[Choices]:
    """Return the useful modes of ops.

    Parameters
    ----------
    values
        The values.
    ops
        Ops that are no transposes, with their modes.
    kept
        Names of tensors that are useful as they are written: inputs and outputs.
    """
    every = [Choices(op, modes) for op, modes in ops]
    _Closing(values, every).close(kept)
    for one in every:
        one.rows = dict(sorted(one.rows.items()))
    return every


class _Closing:
    """Useful families, and what has not been looked at yet."""

    def __init__(self, values: Values, every: list[Choices]) -> None:
        self.values, self.every = values, every
        self.seen: set[Need] = set()
        self.waiting: list[Need] = []
        self.at: list[list[Place]] = [[] for _ in values.every]
        for at, one in enumerate(every):
            if len(one.modes.every) > 1:
                for slot, name in enumerate(one.slots):
                    if name and one.modes.tells[slot]:
                        self.at[values.number[name]].append((at, slot))

    def close(self, kept: Sequence[str]) -> None:
        """Find all that is useful."""
        for name in kept:
            self.see(self.values.written(name))
        for at in range(len(self.every)):
            self.use((at, 0))
        self.spread()
        regions = [self.families(ops) for ops in self.regions() if self.is_special(ops)]
        changed = True
        while changed:
            added = [self.completed(families) for families in regions]
            changed = any(added)

    def see(self, need: Need) -> None:
        """Call an order useful."""
        if need not in self.seen:
            self.seen.add(need)
            self.waiting.append(need)

    def use(self, member: Place) -> None:
        """Call a mode useful."""
        at, number = member
        if number not in self.every[at].rows:
            self.every[at].rows[number] = row = self.row(member)
            for need in (*row.takes, *row.gives):
                self.see(need)

    def spread(self) -> None:
        """Call whole families useful."""
        while self.waiting:
            for member in self.joined(self.waiting.pop()):
                self.use(member)

    def row(self, member: Place) -> Row:
        """Return what a mode takes and gives."""
        one = self.every[member[0]]
        orders, count = one.mode(member[1]).orders, len(one.op.inputs)
        takes = [self.need(n, order) for n, order in zip(one.op.inputs, orders, strict=False) if n]
        gives = [self.need(n, o) for n, o in zip(one.op.outputs, orders[count:], strict=True) if n]
        return Row(tuple(takes), tuple(gives))

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

    def regions(self) -> Iterator[list[int]]:
        """Yield ops with several modes, those that are joined together."""
        left = {at: None for at, one in enumerate(self.every) if len(one.modes.every) > 1}
        while left:
            found = [left.popitem()[0]]
            for at in found:
                one = self.every[at]
                for name, tells in zip(one.slots, one.modes.tells, strict=True):
                    if name and tells:
                        for other, _ in self.at[self.values.number[name]]:
                            if other in left:
                                del left[other]
                                found.append(other)
            yield found

    def is_special(self, ops: list[int]) -> bool:
        """Return whether families of some ops can be of several kinds."""
        partly = [at for at in ops if self.is_partial(at)]
        return len(partly) > 1 or any(self.every[at].modes.vague for at in ops)

    def is_partial(self, at: int) -> bool:
        """Return whether an op cannot run in every order of an operand or result."""
        one = self.every[at]
        return any(
            tells and len(column) < factorial(len(next(iter(column))))
            for tells, column in zip(one.modes.tells, one.modes.by_order, strict=True)
        )

    def families(self, ops: list[int]) -> list[Family]:
        """Return all families of some ops."""
        left = {(at, mode): None for at in ops for mode in range(len(self.every[at].modes.every))}
        partial = {at for at in ops if self.is_partial(at)}
        found = []
        while left:
            members, needs = [left.popitem()[0]], set[Need]()
            for member in members:
                for need in self.telling(member):
                    if need not in needs:
                        needs.add(need)
                        new = [other for other in self.joined(need) if other in left]
                        members += dict.fromkeys(new)
                        for other in new:
                            left.pop(other, None)
            told = frozenset(at for at, _ in members if at in partial)
            marks = frozenset(mark for member in members for mark in self.marks(member))
            found.append(Family(tuple(members), told, marks))
        return found

    def telling(self, member: Place) -> list[Need]:
        """Return the orders that a mode is joined to."""
        one = self.every[member[0]]
        parts = zip(one.slots, one.modes.tells, one.mode(member[1]).orders, strict=True)
        return [self.need(name, order) for name, tells, order in parts if name and tells]

    def marks(self, member: Place) -> list[tuple[Place, Need]]:
        """Return the orders that a mode is not joined to, though it has a choice there."""
        one, orders = self.every[member[0]], self.every[member[0]].mode(member[1]).orders
        slots = one.slots
        return [
            ((member[0], slot), self.need(slots[slot], orders[slot]))
            for slot in one.modes.vague
            if slots[slot]
        ]

    def completed(self, families: list[Family]) -> bool:
        """Call a family of each kind useful; return whether one was not."""
        useful = [family for family in families if self.is_useful(family)]
        before = len(useful)
        for family in families:
            if self.is_useful(family):
                continue
            marks = {mark for mark in family.marks if mark[1] in self.seen}
            if not any(family.told <= o.told and marks <= o.marks for o in useful):
                for member in family.members:
                    self.use(member)
                self.spread()
                useful.append(family)
        return len(useful) > before

    def is_useful(self, family: Family) -> bool:
        """Return whether a family is."""
        at, number = family.members[0]
        return number in self.every[at].rows
