"""The choice of layouts as plain data, with every mode of every op: what certificates are about.

See :mod:`layoutopt.certificate.conversion` for what it means.  Nothing is left out here, and no
labelling problem is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Any

from layoutopt.conversion.choice import CandidateModes, Joined, ModeRow
from layoutopt.conversion.costs import Costs, measured
from layoutopt.conversion.orders import AxisFactor, Order, has_parts, sort_key
from layoutopt.conversion.result import Stated, Tally
from layoutopt.conversion.values import Values


def stated(
    values: Values,
    every: Sequence[CandidateModes],
    costs: Costs,
    free: Sequence[int],
    kept: Sequence[str],
    modes: Sequence[int],
    orders: Mapping[int, Order],
) -> Stated:
    """Return a choice of layouts as plain data.

    Parameters
    ----------
    values
        The graph's values.
    every
        Its ops with their modes, and which of these are of use.
    costs
        What a transform costs.
    free
        Values that may come in any layout: constants, and inputs that are freed.
    kept
        Outputs that are wanted as they are written.
    modes, orders
        What is chosen: the number of the mode of each op, and the order of each free value.
    """
    joined = Joined(values, list(every))
    numbers = [_numbers(one) for one in every]
    rows = [[joined.row((at, n)) for n in own] for at, own in enumerate(numbers)]
    useful = [[n in one.rows for n in own] for one, own in zip(every, numbers, strict=True)]
    wanted = [ModeRow((values.written(name),), ()) for name in kept]
    taken = _taken(row for row in (*chain(*rows), *wanted))
    used = _taken(row for row in (*chain(*map(compress, rows, useful)), *wanted))
    write = _Writer(values, costs)
    places = {v: _orders(values, v, taken) for v in free}
    for v, own in places.items():
        some = [order in used.get(v, ()) for order in own]
        write.op(f"free {values.every[v].root}", [ModeRow((), ((v, o),)) for o in own], some)
    for at, one in enumerate(every):
        times = [one.mode(number).time for number in numbers[at]] if one.modes.priced else []
        write.op(one.op.name, rows[at], useful[at], times)
    for v, value in enumerate(values.every):
        if value.kind != "activation" and v not in places:
            write.op(f"given {value.root}", [ModeRow((), (values.written(value.root),))])
    for name, row in zip(kept, wanted, strict=True):
        write.op(f"wanted {name}", [row])
    chosen = [own.index(orders[v]) for v, own in places.items()]
    chosen += [own.index(mode) for own, mode in zip(numbers, modes, strict=True)]
    chosen += [0] * (len(write.ops) - len(chosen))
    return Stated(write.document, write.useful, chosen)


def _numbers(one: CandidateModes) -> list[int]:
    """Return the modes of an op: all that are no permutation too if they are of use."""
    known = len(one.modes.every)
    return [*range(known), *(number for number in one.rows if number >= known)]


def _taken(rows: Iterable[ModeRow]) -> dict[int, set[Order]]:
    """Return the orders in which each value is taken."""
    found: dict[int, set[Order]] = {}
    for row in rows:
        for v, order in row.takes:
            found.setdefault(v, set()).add(order)
    return found


def _orders(values: Values, v: int, taken: Mapping[int, set[Order]]) -> list[Order]:
    """Return the orders in which a free value may come; inputs come in whole axes."""
    value = values.every[v]
    orders = sorted(taken.get(v, ()), key=sort_key)
    fitting = [o for o in orders if value.kind != "input" or not has_parts(o)]
    return fitting or [values.written(value.root)[1]]


class _Writer:
    """The document as it is written."""

    def __init__(self, values: Values, costs: Costs) -> None:
        self.costs = costs
        self.names = [value.root for value in values.every]
        moves = {v.root: self._costs(Tally(1, v.bytes, 0)) for v in values.every}
        self.ops: list[dict[str, Any]] = []
        self.document = {"objectives": list(costs.objectives), "tensors": moves, "ops": self.ops}
        self.useful: list[list[int]] = []
        self.texts: dict[Order, str] = {}

    def _costs(self, tally: Tally, time: int = 0) -> list[int]:
        return list(measured(tally, self.costs.objectives, self.costs.times, time))

    def op(
        self, name: str, rows: list[ModeRow], useful: Sequence[bool] = (), times: Sequence[int] = ()
    ) -> None:
        """Write an op down; if none of its modes is of use, the first is."""
        modes = [[self._text(order) for _, order in (*row.takes, *row.gives)] for row in rows]
        takes, gives = ([self.names[v] for v, _ in side] for side in (rows[0].takes, rows[0].gives))
        self.ops.append({"op": name, "takes": takes, "gives": gives, "modes": modes})
        if times:
            self.ops[-1]["costs"] = [self._costs(Tally(0, 0, 0), time) for time in times]
        self.useful.append([number for number, use in enumerate(useful) if use] or [0])

    def _text(self, order: Order) -> str:
        """Return an order of axes, or of parts: ``1/16x4`` is ``index // 16 % 4`` of axis 1."""
        if order not in self.texts:
            items = [
                f"{i[0]}/{i[1]}x{i[2]}" if isinstance(i, AxisFactor) else str(i) for i in order
            ]
            self.texts[order] = ("" if all(len(item) == 1 for item in items) else ",").join(items)
        return self.texts[order]
