"""The choice of modes as a labelling problem.

- A node per op with several useful modes; a node per input that is free, whose labels are the
  orders that it may come in, and one per output that is free and may be made in parts of axes,
  whose labels are the orders that it may be given back in.
- A node per value and order, with labels 0 and 1: is the value there in this order?  1 costs a
  transform.
- An edge from each op or source to each order that some of its modes take or give: then the order
  must be there.  A mode that gives a value in an order takes back its cost: one is free.
- An edge between two ops that give the same value, as it is free once in an order of both.

What only one mode can take is there in any case and needs no node.  Constants are laid out before
the graph runs, in as many orders as are wanted, and have no part in the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, compress
from typing import Any

import numpy as np

from layoutopt.base.deadline import run_phase
from layoutopt.base.limits import Limits, Stopped
from layoutopt.conversion.candidates import CandidateModes, JoinedModes, ModeRow
from layoutopt.conversion.cost_table import Costs, OpPrice, measured
from layoutopt.conversion.result import NO_TRANSFORMS, StatedProblem, Tally
from layoutopt.conversion.values import Need, Values
from layoutopt.layout.factors import AxisFactor, Order, has_factors, sort_key
from layoutopt.network.costs.solve import solve_pbqp
from layoutopt.network.network import CostAnswer, CostTable, Domain, Network
from layoutopt.network.problem import IntArray, exact_integers

TIES = 10.0
"""Effort spent on fewer changed ops among equally good choices, see ``Limits.turn``."""


def stated(
    values: Values,
    every: Sequence[CandidateModes],
    costs: Costs,
    free: Mapping[int, Order],
    kept: Sequence[str],
    modes: Sequence[int],
    orders: Mapping[int, Order],
) -> StatedProblem:
    """Return a choice of layouts as plain data.

    ``every`` has the ops with their modes, and which of these are of use.  Inputs and outputs that
    are ``free``, each with the order in which it is written, may be in any order of whole axes;
    outputs that are ``kept`` are wanted as they are written.
    What is chosen is the number of the mode of each op, and the order of each free value.
    """
    joined = JoinedModes(values, list(every))
    known = [len(one.modes.every) for one in every]
    # of modes that are no permutations, those of use
    numbers = [
        [*range(count), *(n for n in one.rows if n >= count)]
        for one, count in zip(every, known, strict=True)
    ]
    rows = [[joined.row((at, n)) for n in own] for at, own in enumerate(numbers)]
    useful = [[n in one.rows for n in own] for one, own in zip(every, numbers, strict=True)]
    wanted = [ModeRow((values.written(name),), ()) for name in kept]
    places = _orders(values, free, (*chain(*rows), *wanted))
    used = _orders(values, free, (*chain(*map(compress, rows, useful)), *wanted))
    write = _Writer(values, costs)
    for v, own in places.items():
        some = [order in used[v] for order in own]
        kind = "free" if values.every[v].kind == "input" else "wanted"
        write.op(f"{kind} {values.every[v].root}", _free_rows(values, v, own), some)
    for at, one in enumerate(every):
        prices = list(map(one.price, numbers[at]))
        counted = one.modes.priced or ("changed" in costs.objectives and (0, 1) in prices)
        write.op(one.op.name, rows[at], useful[at], prices if counted else [])
    for v, value in enumerate(values.every):
        if value.kind == "input" and v not in places:
            write.op(f"given {value.root}", [ModeRow((), (values.written(value.root),))])
    for name, row in zip(kept, wanted, strict=True):
        write.op(f"wanted {name}", [row])
    chosen = [own.index(orders[v]) for v, own in places.items()]
    chosen += [own.index(mode) for own, mode in zip(numbers, modes, strict=True)]
    chosen += [0] * (len(write.ops) - len(chosen))
    return StatedProblem(write.document, write.useful, chosen)


def _orders(
    values: Values, free: Mapping[int, Order], rows: Iterable[ModeRow]
) -> dict[int, list[Order]]:
    """Return for each free input and output the orders of whole axes that it may be in.

    Modes with these ``rows`` take or give it so; an output may also be as it is written.
    """
    found: dict[int, set[Order]] = {v: set() for v in free}
    needs = [need for row in rows for need in (*row.takes, *row.gives)]
    needs += [need for need in free.items() if values.every[need[0]].kind != "input"]
    for v, order in needs:
        if v in found and not has_factors(order):
            found[v].add(order)
    return {v: sorted(found[v] or {order}, key=sort_key) for v, order in free.items()}


def _free_rows(values: Values, v: int, orders: Iterable[Order]) -> list[ModeRow]:
    """Return a mode for each order of a free value: an input gives it so, an output takes it."""
    if values.every[v].kind == "input":
        return [ModeRow((), ((v, order),)) for order in orders]
    return [ModeRow(((v, order),), ()) for order in orders]


class _Writer:
    """The document as it is written."""

    def __init__(self, values: Values, costs: Costs) -> None:
        self.costs = costs
        self.names = [value.root for value in values.every]
        every = (v for v in values.every if v.kind != "constant")
        moves = {v.root: self._costs(v.move) for v in every}
        self.ops: list[dict[str, Any]] = []
        self.document = {"objectives": list(costs.objectives), "tensors": moves, "ops": self.ops}
        self.useful: list[list[int]] = []
        self.texts: dict[Order, str] = {}

    def _costs(self, tally: Tally, price: OpPrice = (0, 0)) -> list[int]:
        return list(measured(tally, self.costs.objectives, self.costs.times, *price))

    def op(
        self,
        name: str,
        rows: list[ModeRow],
        useful: Sequence[bool] = (),
        prices: Sequence[OpPrice] = (),
    ) -> None:
        """Write an op down; if none of its modes is of use, the first is."""
        modes = [[self._text(order) for _, order in (*row.takes, *row.gives)] for row in rows]
        takes, gives = ([self.names[v] for v, _ in side] for side in (rows[0].takes, rows[0].gives))
        self.ops.append({"op": name, "takes": takes, "gives": gives, "modes": modes})
        if prices:
            self.ops[-1]["costs"] = [self._costs(NO_TRANSFORMS, price) for price in prices]
        self.useful.append([number for number, use in enumerate(useful) if use] or [0])

    def _text(self, order: Order) -> str:
        """Return an order of axes, or of parts: ``1/16x4`` is ``index // 16 % 4`` of axis 1."""
        if order not in self.texts:
            items = [
                f"{i[0]}/{i[1]}x{i[2]}" if isinstance(i, AxisFactor) else str(i) for i in order
            ]
            self.texts[order] = ("" if all(len(item) == 1 for item in items) else ",").join(items)
        return self.texts[order]


@dataclass
class ConversionLabelling:
    """A labelling problem, and what its nodes stand for."""

    problem: Network
    constant: int  # what every labelling costs besides
    start: IntArray  # the labels of the graph as it is given
    op_nodes: list[int | None]  # of each op its node, None where it has one mode
    # of each input and output whose order is chosen: its node, None if there is one order only,
    # and orders
    sources: dict[int, tuple[int | None, list[Order]]]
    nodes: dict[Need, int]  # the node of each order of a value that may be there or not
    every: list[CandidateModes]  # the ops with their useful modes
    weights: list[int]  # of each value what a transform of it costs
    times: list[list[int]]  # of each op what its modes cost besides, in the order of its rows
    forced: list[Need]  # orders that outputs are wanted in
    given: list[Need]  # orders of inputs that are not free

    @cached_property
    def rows(self) -> list[list[ModeRow]]:
        """Of each op its useful modes."""
        return [list(one.rows.values()) for one in self.every]

    def cost(self, labels: IntArray) -> int | None:
        """Return what a labelling costs, ``None`` if it does what is forbidden."""
        return None if self.problem.fault(labels) else self.problem.cost(labels)

    def modes(self, labels: IntArray) -> list[int]:
        """Return the number of the mode of each op: of equally good ones, the plainest."""
        return [
            one.plainest[list(one.rows)[0 if node is None else int(labels[node])]]
            for one, node in zip(self.every, self.op_nodes, strict=True)
        ]

    def orders(self, labels: IntArray) -> dict[int, Order]:
        """Return the order of each input and output whose order is chosen."""
        return {
            number: orders[0 if node is None else int(labels[node])]
            for number, (node, orders) in self.sources.items()
        }


@dataclass
class LabellingBuilder:
    """A graph, of whose ops ``every`` has the useful modes, and the labelling problem made of it.

    Inputs and outputs that are ``free``, each with the order in which it is written, may be in any
    order of whole axes; ``wanted`` are orders that must be there for the graph's other outputs.
    """

    values: Values
    every: list[CandidateModes]
    costs: Costs
    free: Mapping[int, Order]
    wanted: Sequence[Need]
    forced: set[Need] = field(default_factory=set)
    homes: set[Need] = field(default_factory=set)
    nodes: dict[Need, int] = field(default_factory=dict)
    own: list[list[int]] = field(default_factory=list)
    begin: list[int] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    tables: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    pairs: list[tuple[int, int, IntArray]] = field(default_factory=list)

    def labelling(self) -> ConversionLabelling:
        """Return the labelling problem."""
        self.forced = set(self.wanted)
        self.weights = [self.costs.weight(value.move) for value in self.values.every]
        inputs = (v for v, value in enumerate(self.values.every) if value.kind == "input")
        fixed = [v for v in inputs if v not in self.free]
        given = [self.values.written(self.values.every[v].root) for v in fixed]
        self.homes = set(given)
        needs = [list(one.rows.values()) for one in self.every]
        sources = _orders(self.values, self.free, (*chain(*needs), ModeRow(tuple(self.wanted), ())))
        freed = {v: _free_rows(self.values, v, orders) for v, orders in sources.items()}
        wanted = self._settle([*needs, *freed.values()])
        self.forced -= self.homes
        self.nodes = {need: self._node([0, self.weights[need[0]]], 0) for need in wanted}
        constant = sum(self.weights[v] for v, _ in self.forced)
        op_nodes: list[int | None] = []
        times = [[self.costs.op(one.price(n)) for n in one.rows] for one in self.every]
        for own, rows in zip(times, needs, strict=True):
            op_nodes.append(self._chooser(rows, 0, own) if len(rows) > 1 else None)
            constant += own[0] if len(rows) == 1 else 0
        self._charge_once(needs, op_nodes)
        places: dict[int, tuple[int | None, list[Order]]] = {}
        for v, orders in sources.items():
            label = orders.index(self._first(v, orders)) if len(orders) > 1 else 0
            places[v] = self._chooser(freed[v], label) if len(orders) > 1 else None, orders
        problem, start = self._problem(), np.array(self.begin, np.int64)
        kept = self.every, self.weights, times, list(self.wanted), given
        return ConversionLabelling(problem, constant, start, op_nodes, places, self.nodes, *kept)

    def _settle(self, needs: list[list[ModeRow]]) -> dict[Need, None]:
        """Find what is there in any case; return other orders that a mode takes."""
        for rows in needs:
            if len(rows) == 1:
                self.forced.update(rows[0].takes)
                self.homes.update(rows[0].gives)
        taken = dict.fromkeys(
            n for rows in needs if len(rows) > 1 for row in rows for n in row.takes
        )
        return {n: None for n in taken if n not in self.forced and n not in self.homes}

    def _first(self, v: int, orders: list[Order]) -> Order:
        """Return the order of a free value at the start: as written, or else one that is taken."""
        if self.free[v] in orders:
            return self.free[v]
        taken = [o for o in orders if (v, o) in self.forced or self.begin[self.nodes[v, o]]]
        return (taken or orders)[0]

    def _node(self, costs: list[int], label: int) -> int:
        self.own.append(costs)
        self.begin.append(label)
        return len(self.own) - 1

    def _chooser(self, rows: list[ModeRow], label: int, own: Sequence[int] = ()) -> int:
        """Add the node of an op or source, and its edges; ``own`` is what its modes cost."""
        returns = [
            cost - sum(self.weights[n[0]] for n in row.gives if n in self.nodes or n in self.forced)
            for row, cost in zip(rows, own or [0] * len(rows), strict=True)
        ]
        node = self._node(returns, label)
        users: dict[Need, list[int]] = {}
        for number, row in enumerate(rows):
            for need in dict.fromkeys((*row.takes, *row.gives)):
                if need in self.nodes:
                    users.setdefault(need, []).append(number)
        for need, numbers in users.items():
            key = (len(rows), tuple(numbers))
            self.edges.append(
                (node, self.nodes[need], self.tables.setdefault(key, len(self.tables)))
            )
            if label in numbers:
                self.begin[self.nodes[need]] = 1
        return node

    def _charge_once(self, needs: list[list[ModeRow]], op_nodes: list[int | None]) -> None:
        """Add the edge of each pair of ops that give the same value."""
        makers: dict[int, tuple[int, list[ModeRow]]] = {}
        for node, rows in zip(op_nodes, needs, strict=True):
            if node is None:
                continue
            for v in dict.fromkeys(v for v, _ in rows[0].gives):
                other, before = makers.setdefault(v, (node, rows))
                if other != node:
                    both = ({*a.gives} & {*b.gives} for a in before for b in rows)
                    paid = [
                        sum(n in self.nodes or n in self.forced for n in common) for common in both
                    ]
                    costs = exact_integers([self.weights[v] * count for count in paid])
                    self.pairs.append((other, node, costs.reshape(len(before), len(rows))))

    def _problem(self) -> Network:
        tables = []
        for count, numbers in self.tables:
            allowed = np.ones((count, 2), bool)
            allowed[list(numbers), 0] = False
            tables.append(CostTable(np.zeros((count, 2), np.int64), allowed))
        for u, w, costs in self.pairs:
            self.edges.append((u, w, len(tables)))
            tables.append(CostTable(costs))
        edges = np.array(self.edges, np.int64).reshape(-1, 3)
        sizes, domain_of = np.unique([*map(len, self.own)], return_inverse=True)
        at = [(u, i) for u, own in enumerate(self.own) for i in range(len(own))]
        return Network(
            nodes=tuple(map(str, range(len(self.own)))),
            domains=tuple(map(Domain, sizes.astype(int).tolist())),
            domain_of=domain_of,
            cost_at=np.array(at, np.int64).reshape(-1, 2),
            costs=exact_integers([*chain(*self.own)]),
            table_edges=edges[:, :2].copy(),
            table_of=edges[:, 2].copy(),
            tables=tuple(tables),
        )


def proved(stated: ConversionLabelling, first: IntArray, limits: Limits) -> CostAnswer:
    """Choose the best labels; the ``first`` ones, where time is too short.

    Among equally good choices, few ops run otherwise than they are written.  These are found by a
    second problem, as the proof of the first must not wait for ties that no objective counts.
    """
    try:
        answer = run_phase("solve", partial(solve_pbqp, stated.problem, limits, first), limits)
    except TimeoutError:
        found, why = stated.cost(first), limits.stopped or Stopped.TIME_LIMIT
        return CostAnswer(labelling=first, objective=found, bound=-stated.constant, stopped=why)
    if answer.stopped is not Stopped.FINISHED:
        return answer
    try:
        fewer = run_phase("solve", partial(_least_changed, stated, answer, limits), limits)
    except TimeoutError:
        return answer
    same = fewer is not None and stated.cost(fewer) == answer.objective
    return replace(answer, labelling=fewer) if same else answer


def _least_changed(
    stated: ConversionLabelling, answer: CostAnswer, limits: Limits
) -> IntArray | None:
    """Return labels of the same cost with which the fewest ops change that have a choice."""
    given, ops = stated.problem, [node for node in stated.op_nodes if node is not None]
    node, label = given.cost_at.T
    changed = np.isin(node, ops) & (label != stated.start[node])
    costs = given.costs.astype(object) * (len(ops) + 1) + changed
    smaller = replace(given, costs=exact_integers(costs.tolist()))
    return solve_pbqp(smaller, limits.partial().turn(TIES), answer.labelling).labelling
