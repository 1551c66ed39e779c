"""Candidate modes of ops, and the orders of axes that join ops.

Most permutations are not: what agrees in an odd order can as well agree in one that something
needs.  The modes of an op and the orders that they take and give are joined, from op to op, to
*families*: to choose one member is to choose all, as long as no transform comes between.  An
operand or result of which several modes ask the same, as what a reduction leaves, joins nothing.
Of use are

- the families of all orders in which tensors are written, or required;
- other families whose place no useful one can take.  It can if in it, too, run the ops of the other
  that cannot run in every order, if each op takes and gives useful orders in the places of the
  other's where these join nothing, and if its views lead to useful orders where the other's do.
  How parts are ordered that are side by side does not count there: products take and give them in
  any order.  Of each value an order has one other in its place, whatever family it is of, and a
  useful order has itself.

Orders with parts come from ops that are required in blocks, from views of axes that are not side by
side, and from what follows on these.

Other families do not help: where a labelling has some, put useful ones in their places.  All ops
run.  Orders that were equal still are: those that are joined, as they are of one family, and
all others, as equal orders have the same in their place.  So no transform is paid for that was not
paid for before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import factorial
from typing import TypeAlias

from layoutopt.conversion.cost_table import OpPrice
from layoutopt.conversion.modes import VIEWS, Mode, Modes, as_written, further_modes
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.registry import computes_along_axes, operator_of
from layoutopt.conversion.values import Need, Values
from layoutopt.layout.factors import Order, axis_of, ends_of, has_factors, is_nested

Place: TypeAlias = tuple[int, int]
"""The number of an op, and that of a mode, or of an operand or result."""


@dataclass(frozen=True)
class ModeRow:
    """The orders that a mode takes and gives."""

    takes: tuple[Need, ...]
    gives: tuple[Need, ...]


@dataclass
class CandidateModes:
    """The useful modes of an op."""

    op: Op
    modes: Modes  # all modes
    # for each operand, then each result, its tensor's name; `""` for one left out, and for a
    # constant, which is laid out before the graph runs, in as many orders as are wanted
    slots: tuple[str, ...]
    # those of use, by number; the first mode is always there
    rows: dict[int, ModeRow] = field(default_factory=dict)
    # modes for orders with parts; their numbers follow those of the others
    further: list[Mode] = field(default_factory=list)
    _numbers: dict[tuple[Order, ...], int] = field(default_factory=dict)  # theirs, by orders
    # the numbers of those for an order of an operand or result, where others do not add to them
    _in_parts: dict[tuple[int, Order], list[int]] = field(default_factory=dict)

    def mode(self, number: int) -> Mode:
        """Return one of its modes."""
        known = len(self.modes.every)
        return self.modes.every[number] if number < known else self.further[number - known]

    def price(self, number: int) -> OpPrice:
        """Return what a mode costs."""
        mode, written = self.mode(number), self._written
        return mode.time, int(written is not None and mode.orders != written.orders)

    @cached_property
    def plainest(self) -> dict[int, int]:
        """For each useful mode the one nearest to how the op is written, of equal orders and price.

        Constants and axes of size 1 may be laid out otherwise, which costs nothing.
        """
        found: dict[tuple[ModeRow, OpPrice], int] = {}
        for number in sorted(self.rows, key=self._distance):
            found.setdefault((self.rows[number], self.price(number)), number)
        return {number: found[row, self.price(number)] for number, row in self.rows.items()}

    def _distance(self, number: int) -> tuple[int, ...]:
        mode = self.mode(number)
        exchanged = mode.operands is not None
        return int(mode.type != ""), int(exchanged), sum(f is not None for f in mode.forms), number

    @cached_property
    def _written(self) -> Mode | None:
        """The mode in which the op is written, None for ops that never count as changed."""
        return as_written(self.op) if computes_along_axes(self.op) else None

    def in_parts(self, slot: int, order: Order) -> list[int]:
        """Return the numbers of the modes for an order with parts, or one that a view cuts so."""
        known, found = len(self.modes.every), list[int]()
        if self.modes.fixed:
            return found
        if (slot, order) in self._in_parts:
            return self._in_parts[slot, order]
        alone = operator_of(self.op).each_alone
        whole = (*self.modes.every, *self.further) if alone else self.modes.every
        for mode in further_modes(self.op, slot, order, whole):
            number = self._numbers.setdefault(mode.orders, len(self.further))
            if number == len(self.further):
                self.further.append(mode)
            found.append(known + number)
        if not alone:
            self._in_parts[slot, order] = found
        return found


class JoinedModes:
    """All modes of all ops, by the orders that they take and give."""

    def __init__(self, values: Values, every: list[CandidateModes]) -> None:
        self.values, self.every = values, every
        # For each value the operands and results whose orders tell the mode, and those of views.
        self.at: list[list[Place]] = [[] for _ in values.every]
        self.views: list[list[Place]] = [[] for _ in values.every]
        self.vague: list[list[Place]] = [[] for _ in values.every]  # those that tell no mode
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
                    if slot in one.modes.vague:
                        self.vague[number].append((at, slot))

    def row(self, member: Place) -> ModeRow:
        """Return what a mode takes and gives."""
        one = self.every[member[0]]
        pairs = [*zip(one.slots, one.mode(member[1]).orders, strict=True)]
        sides = pairs[: len(one.op.inputs)], pairs[len(one.op.inputs) :]
        return ModeRow(*(tuple(self.need(n, o) for n, o in side if n) for side in sides))

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
        places = self._slots[number] if has_factors(order) else self.views[number]
        yield from self._further(places, order)

    def _further(self, places: Iterable[Place], order: Order) -> Iterator[Place]:
        """Yield modes for an order of a value that are none of the permutations of their ops."""
        for at, slot in places:
            one = self.every[at]
            own = self.values.own(one.slots[slot], order)
            if own not in one.modes.by_order[slot]:
                for mode in one.in_parts(slot, own):
                    yield at, mode


@dataclass(frozen=True)
class ModeFamily:
    """Modes that belong together."""

    members: tuple[Place, ...]
    # which ops among those that cannot run in every order; of views, the complement of their
    # numbers, if they can by parts
    told: frozenset[int]
    # values on the other sides of views, each with the axes of its order there
    behind: frozenset[tuple[int, tuple[int, ...]]]
    # by op, what each of its modes takes and gives of values that other families may share
    marks: dict[int, list[tuple[Need, ...]]]


def choices(
    values: Values, ops: Iterable[tuple[Op, Modes]], kept: Sequence[str]
) -> list[CandidateModes]:
    """Return the useful modes of ops that are no transposes.

    ``kept`` names tensors that are useful as they are written, inputs and outputs.
    """

    def moved(name: str) -> str:
        return name and name * (values.of(name)[0].kind != "constant")

    every = [
        CandidateModes(op, modes, tuple(map(moved, (*op.inputs, *op.outputs)))) for op, modes in ops
    ]
    _Closing(values, every).close(kept)
    for one in every:
        one.rows = dict(sorted(one.rows.items()))
    return every


def axes_of(order: Order) -> tuple[int, ...]:
    """Return the axes of an order, once for parts that are side by side."""
    return tuple(axis for axis, _ in groupby(map(axis_of, order)))


class _Closing(JoinedModes):
    """Useful families, and what has not been looked at yet."""

    def __init__(self, values: Values, every: list[CandidateModes]) -> None:
        super().__init__(values, every)
        self.seen: set[Need] = set()
        self.waiting: list[Need] = []
        self.ends: dict[tuple[int, int], set[int]] = {}
        self.axes: dict[int, set[tuple[int, ...]]] = {}  # of each value those of useful orders
        both = enumerate(zip(self.at, self.vague, strict=True))
        # values that families may share, as an operand or result of one joins nothing
        self.shared = {v for v, (telling, vague) in both if vague and len(telling + vague) > 1}
        # for each op its operands and results that join nothing, or are of such values
        self.marked: list[list[int]] = [[] for _ in every]
        for v, places in enumerate(self.vague):
            for at, slot in (*places, *(self.at[v] if v in self.shared else ())):
                self.marked[at].append(slot)
        self.images: dict[Need, Need] = {}  # useful orders that take the places of others

    def close(self, kept: Sequence[str]) -> None:
        """Find all that is useful."""
        for name in kept:
            self.see(self.values.written(name))
        for at, one in enumerate(self.every):
            for number in range(len(one.modes.every) if one.modes.priced else 1):
                self.use((at, number))
        self.spread()
        regions = [
            self.families(ops)
            for ops in self.regions()  # whose families can be of several kinds
            if sum(map(self.is_partial, ops)) > 1 or any(self.marked[at] for at in ops)
        ]
        changed = True
        while changed:
            self.images = {}
            added = [self.completed(families) for families in regions]
            changed = any(added)

    def see(self, need: Need) -> None:
        """Call an order useful."""
        if need not in self.seen:
            self.seen.add(need)
            self.waiting.append(need)
            self.axes.setdefault(need[0], set()).add(axes_of(need[1]))
            for axis, ends in ends_of(need[1]).items():
                self.ends.setdefault((need[0], axis), set()).update(ends)

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
            need = self.waiting.pop()
            for member in (*self.joined(need), *self.in_any_order(need)):
                if self.fits(member):
                    self.use(member)

    def in_any_order(self, need: Need) -> Iterator[Place]:
        """Return modes in an order of ops each of whose operands and results has any order."""
        every = self._slots[need[0]]
        alone = (place for place in every if operator_of(self.every[place[0]].op).each_alone)
        return self._further(alone, need[1])

    def fits(self, member: Place) -> bool:
        """Return whether a mode may be used; one for orders with parts, not always.

        It must not cut axes through parts that are useful already, nor pad what is cut without:
        from one such order to the other it would be two transforms.
        """
        if member[1] < len(self.every[member[0]].modes.every):
            return True
        row = self.row(member)
        for number, order in (*row.takes, *row.gives):
            for axis, ends in ends_of(order).items():
                useful = self.ends.get((number, axis), ends)
                if not is_nested(useful | ends) or max(useful) != max(ends):
                    return False
        return True

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

    def is_partial(self, at: int) -> bool:
        """Return whether an op cannot run in every order of an operand or result."""
        one = self.every[at]
        return any(
            tells and len(column) < factorial(len(next(iter(column))))
            for tells, column in zip(one.modes.tells, one.modes.by_order, strict=True)
        )

    def families(self, ops: list[int]) -> list[ModeFamily]:
        """Return all families of some ops."""
        left = {(at, mode): None for at in ops for mode in range(len(self.every[at].modes.every))}
        partial = {at for at in ops if self.is_partial(at)}
        found = []
        while left:
            members, needs, told = [left.popitem()[0]], set[Need](), set[int]()
            behind = set[tuple[int, tuple[int, ...]]]()
            for member in members:
                for need in self.telling(member):
                    if need not in needs:
                        needs.add(need)
                        new = [other for other in self.joined(need) if other in left]
                        members += dict.fromkeys(new)
                        for other in new:
                            left.pop(other, None)
            marks = self.marks(members)
            needs.update(need for rows in marks.values() for row in rows for need in row)
            for need in needs:
                views = self.viewed(need)
                told |= views.keys()
                behind.update(*views.values())
            told |= {at for at, _ in members if at in partial}
            found.append(ModeFamily(tuple(members), frozenset(told), frozenset(behind), marks))
        return found

    def viewed(self, need: Need) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
        """Return marks of the views that can run in an order of their operand or result.

        With each come the values on its other side, and the orders of their axes there.
        """
        found: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for at, slot in self.views[need[0]]:
            one = self.every[at]
            own = self.values.own(one.slots[slot], need[1])
            modes = one.modes.by_order[slot].get(own) or one.in_parts(slot, own)
            if modes:
                rows = (self.row((at, mode)) for mode in modes)
                needs = {n for row in rows for n in (*row.takes, *row.gives) if n[0] != need[0]}
                found[~at] = [(value, axes_of(order)) for value, order in needs]
        return found

    def telling(self, member: Place) -> list[Need]:
        """Return the orders that a mode is joined to."""
        one = self.every[member[0]]
        parts = zip(one.slots, one.modes.tells, one.mode(member[1]).orders, strict=True)
        return [self.need(name, order) for name, tells, order in parts if name and tells]

    def marks(self, members: list[Place]) -> dict[int, list[tuple[Need, ...]]]:
        """Return what modes take and give of values that other families may share."""
        found: dict[int, list[tuple[Need, ...]]] = {}
        for at, mode in members:
            if self.marked[at]:
                one, orders = self.every[at], self.every[at].mode(mode).orders
                needs = (self.need(one.slots[slot], orders[slot]) for slot in self.marked[at])
                found.setdefault(at, []).append(tuple(needs))
        return found

    def completed(self, families: list[ModeFamily]) -> bool:
        """Call families useful whose places no useful ones can take; return whether one was."""
        # first those that few can replace, whose orders then have the same in their places
        families = sorted(families, key=lambda family: (-len(family.told), -len(family.marks)))
        useful = [family for family in families if self.is_useful(family)]
        before = len(useful)
        for family in families:
            if not self.is_useful(family) and not any(self.replaces(o, family) for o in useful):
                for member in family.members:
                    self.use(member)
                self.spread()
                useful.append(family)
        return len(useful) > before

    def replaces(self, useful: ModeFamily, other: ModeFamily) -> bool:
        """Put a useful family in another's place, if this agrees with all that were put before."""
        linked = {link for link in other.behind if link[1] in self.axes.get(link[0], ())}
        if not other.told <= useful.told or not linked <= useful.behind:
            return False
        found: dict[Need, Need] = {}
        for at, rows in other.marks.items():
            for row in rows:
                known = [n if n in self.seen else found.get(n, self.images.get(n)) for n in row]
                for new in useful.marks.get(at, ()):
                    agree = all(old in (None, own) for old, own in zip(known, new, strict=True))
                    if agree and len({*zip(row, new, strict=True)}) == len({*row}):
                        break
                else:
                    return False
                pairs = zip(row, new, strict=True)
                found |= {need: own for need, own in pairs if need[0] in self.shared}
        self.images |= found
        return True

    def is_useful(self, family: ModeFamily) -> bool:
        """Return whether a family is."""
        at, number = family.members[0]
        return number in self.every[at].rows
