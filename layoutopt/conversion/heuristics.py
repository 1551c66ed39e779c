"""Heuristics for conversion: what compilers do, to be compared with the optimum.

Each chooses a useful mode for every op.  What transforms that takes is counted as for the optimum,
so that one transform serves all that want the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from layoutopt.conversion.candidates import CandidateModes, ModeRow
from layoutopt.conversion.labelling import ConversionLabelling
from layoutopt.conversion.values import Need
from layoutopt.layout.factors import Form, Order


class ChosenOrders:
    """How often orders of values are given, and wanted, while ops choose."""

    def __init__(self, task: ConversionLabelling, modes: Sequence[int] = ()) -> None:
        self.task = task
        self.homes: dict[int, Counter[Order]] = {}
        self.wanted: dict[int, Counter[Order]] = {}
        self.results = {n for rows in task.rows for row in rows for n, _ in row.gives}
        _count(self.homes, task.given)
        _count(self.wanted, task.forced)
        for at, number in enumerate(modes):
            self.add(at, number)

    def cost(self, value: int) -> int:
        """Return what transforms of a value cost."""
        orders = {order for order, times in self.wanted.get(value, {}).items() if times}
        home = [order for order, times in self.homes.get(value, {}).items() if times]
        if home:
            return self.task.weights[value] * len(orders.difference(home))
        free = value not in self.results  # then one order is for nothing
        return self.task.weights[value] * max(0, len(orders) - free)

    def add(self, at: int, number: int, times: int = 1) -> None:
        """Let an op run in a mode, or no more if ``times`` is -1."""
        row = self.task.rows[at][number]
        _count(self.wanted, row.takes, times)
        _count(self.homes, row.gives, times)

    def price(self, at: int, number: int, above: bool = False) -> int:
        """Return the cost of an op in a mode, transforms of its values included.

        ``above`` its operands' transforms alone count.
        """
        self.add(at, number)
        row = self.task.rows[at][number]
        values = {value for value, _ in (row.takes if above else (*row.takes, *row.gives))}
        found = sum(map(self.cost, values)) + (0 if above else self.task.times[at][number])
        self.add(at, number, -1)
        return found


def _count(orders: dict[int, Counter[Order]], needs: Iterable[Need], times: int = 1) -> None:
    for value, order in needs:
        orders.setdefault(value, Counter())[order] += times


def forward(task: ConversionLabelling) -> list[int]:
    """Choose op by op what costs least behind what is chosen: greedy propagation.

    It is how layouts flow forward through a graph in TVM's ``ConvertLayout`` ("Convert layout
    pass", Apache TVM documentation).
    """
    placed, found = ChosenOrders(task), list[int]()
    for at, rows in enumerate(task.rows):
        prices = [placed.price(at, number) for number in range(len(rows))]
        found.append(prices.index(min(prices)))
        placed.add(at, found[-1])
    return found


def push_through(task: ConversionLabelling) -> list[int]:
    """Begin as written; push transforms down through each op where that costs no more.

    It is how transposes move towards outputs in onnxruntime's ``TransposeOptimizer``, which
    estimates for each op whether that pays.
    """
    found = [0] * len(task.rows)
    placed = ChosenOrders(task, found)
    for at, rows in enumerate(task.rows):
        placed.add(at, 0, -1)
        prices = [placed.price(at, number) for number in range(len(rows))]
        above = [placed.price(at, number, above=True) for number in range(len(rows))]
        number = min(range(len(rows)), key=lambda n: (prices[n], above[n], n))
        found[at] = number
        placed.add(at, number)
    return found


def one_layout(task: ConversionLabelling) -> list[int]:
    """Let all ops run in one global layout where they can, as written elsewhere; take the best."""
    forms: dict[Form | None, None] = {}
    for one in task.every:
        forms.update(dict.fromkeys(_first(one)))
    best: tuple[int, list[int]] | None = None
    for form in forms:
        found = [own.index(form) if form in (own := _first(one)) else 0 for one in task.every]
        placed = ChosenOrders(task, found)
        total = sum(task.times[at][number] for at, number in enumerate(found))
        total += sum(map(placed.cost, placed.wanted))
        if best is None or total < best[0]:
            best = total, found
    return [] if best is None else best[1]


def _first(one: CandidateModes) -> list[Form | None]:
    """Return the form of an op's first operand in each of its modes."""
    return [(one.mode(number).inputs or (None,))[0] for number in one.rows]


def chains(task: ConversionLabelling) -> list[int]:
    """Choose the best of each chain of ops by dynamic programming, chain after chain.

    A chain goes on where a result has one reader.  What other chains have chosen before counts,
    what comes later does not (Liu et al., *Optimizing CNN model inference on CPUs*, USENIX ATC
    2019, who do so where a graph is not one chain alone).
    """
    placed, found = ChosenOrders(task), [-1] * len(task.rows)
    after = _next(task)
    for first in range(len(task.rows)):
        chain, at = list[int](), first
        while at >= 0 and found[at] < 0 and at not in chain:
            chain.append(at)
            at = after[at]
        for at, number in zip(chain, _best_chain(placed, chain), strict=True):
            found[at] = number
            placed.add(at, number)
    return found


def _next(task: ConversionLabelling) -> list[int]:
    """Return for each op the only reader of its only result, -1 if it has another number."""
    readers: dict[int, set[int]] = {}
    for at, rows in enumerate(task.rows):
        for value in {n for row in rows for n, _ in row.takes}:
            readers.setdefault(value, set()).add(at)
    found = []
    for rows in task.rows:
        results = {n for n, _ in rows[0].gives}
        own = readers.get(next(iter(results)), set()) if len(results) == 1 else set()
        found.append(next(iter(own)) if len(own) == 1 else -1)
    return found


def _best_chain(placed: ChosenOrders, chain: Sequence[int]) -> list[int]:
    """Return the best mode of each op of a chain."""
    task = placed.task
    best: list[list[int]] = []
    back: list[list[int]] = []
    for place, at in enumerate(chain):
        best.append([])
        back.append([])
        for number in range(len(task.rows[at])):
            if not place:
                best[-1].append(placed.price(at, number))
                back[-1].append(0)
                continue
            before = chain[place - 1]
            costs = []
            for other, cost in enumerate(best[-2]):
                given = task.rows[before][other].gives
                _count(placed.homes, given)
                costs.append(cost + placed.price(at, number))
                _count(placed.homes, given, -1)
            best[-1].append(min(costs))
            back[-1].append(costs.index(min(costs)))
    found = [best[-1].index(min(best[-1]))] if chain else []
    for row in back[:0:-1]:
        found.append(row[found[-1]])
    return found[::-1]


def completed(task: ConversionLabelling, wanted: Sequence[ModeRow]) -> list[int]:
    """Choose the modes with the wanted rows; where there is none, what costs least beside them."""
    pairs = zip(task.rows, wanted, strict=True)
    found = [rows.index(row) if row in rows else None for rows, row in pairs]
    placed = ChosenOrders(task)
    for at, number in enumerate(found):
        if number is not None:
            placed.add(at, number)
    chosen = list[int]()
    for at, number in enumerate(found):
        if number is None:
            number = min(range(len(task.rows[at])), key=partial(placed.price, at))
            placed.add(at, number)
        chosen.append(number)
    return chosen


def labels_of(task: ConversionLabelling, found: Sequence[int]) -> list[int]:
    """Return the labelling that chosen modes are."""
    labels = [0] * len(task.start)
    wanted: dict[int, set[Order]] = {}
    for node, rows, number in zip(task.op_nodes, task.rows, found, strict=True):
        if node is not None:
            labels[node] = number
        for need in (*rows[number].takes, *rows[number].gives):
            wanted.setdefault(need[0], set()).add(need[1])
    for value, (node, orders) in task.sources.items():
        if node is not None:
            own = wanted.setdefault(value, set())
            labels[node] = next((n for n, order in enumerate(orders) if order in own), 0)
            own.add(orders[labels[node]])
    for (value, order), node in task.nodes.items():
        labels[node] = int(order in wanted.get(value, ()))
    return labels
