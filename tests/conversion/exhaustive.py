"""The least cost of a conversion by trying everything.

Of the package there is nothing here but what single ops can do.  Every permutation of every op is
tried, and every way on parts of axes that an order of some tensor leads to.  Two layouts are the
same if they put the same elements at the same places in memory, which is looked up, not reasoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import permutations
from math import prod

import numpy as np

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.modes import VIEWS, Mode, ModeTable, further_modes, mode_of
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import Category, RemapError, Remapped
from layoutopt.conversion.rules.registry import category_of, operator_of, remap
from layoutopt.conversion.values import values_of
from layoutopt.layout.factors import Form, has_factors, order_of
from tests.layout.drawn import formed

Place = tuple[str, bytes]
"""A tensor that no transpose gives, and the numbers of its elements as they lie in memory."""

Cost = tuple[int, ...]


def least(
    graph: ConversionGraph,
    objective: str,
    free_io: bool = False,
    most: Cost | None = None,
    desired: Requirements | None = None,
) -> Cost | None:
    """Return the least value of each objective, in order.

    Ops are gone through in order; of all choices that leave the same places to read from later,
    the cheapest goes on.

    Parameters
    ----------
    graph, objective, free_io, desired
        As for ``convert_graph``.
    most
        What costs more is left out; None is returned if nothing else is found.
    """
    numbers, root = _elements(graph)
    ops = [op for op in graph.ops if op.type != "Transpose"]
    last = {root[name]: n for n, op in enumerate(ops) for name in op.inputs if name}
    last.update({root[name]: len(ops) for name in graph.outputs})
    names = objective.split(",")
    places = Places(graph, names)
    limit = None if most is None else packed(most)
    states = {places.mask(set() if free_io else _given(graph, numbers)): 0}
    ways = _every_way(graph, ops, desired)
    for n, op in enumerate(ops):
        after: dict[int, int] = {}
        counts = category_of(op) is not Category.AGNOSTIC
        written = tuple(
            _places(own, (None,) * len(own), numbers, root) for own in (op.inputs, op.outputs)
        )
        for needs, gives in _options(op, ways[n], numbers, root):
            changed = counts and (needs, gives) != written
            own = packed([int(changed and name == "changed") for name in names])
            needed, given = places.mask(needs), places.mask(gives)
            live = places.live({name for name, end in last.items() if end > n})
            for there, cost in states.items():
                total = cost + own + places.paid(there, needed)
                if limit is None or total <= limit:
                    then = (there | needed | given) & live
                    after[then] = min(after.get(then, total), total)
        states = after
    ends = {(root[name], numbers[name].tobytes()) for name in graph.outputs}
    needed = places.mask(set() if free_io else ends)
    made = {root[name] for name in graph.outputs if graph.tensors[root[name]].kind == "activation"}
    freed = made if free_io else set()
    found = [
        cost + places.paid(there, needed) + places.unwhole(there, freed)
        for there, cost in states.items()
    ]
    return unpacked(min(found), len(names)) if found else None


DIGITS = 40


def packed(cost: Sequence[int]) -> int:
    """Return a cost as one number; such numbers add up and compare as the costs do."""
    found = 0
    for value in cost:
        assert 0 <= value < 2 ** (DIGITS - 10)
        found = found << DIGITS | value
    return found


def unpacked(number: int, length: int) -> Cost:
    """Return the cost that a number stands for."""
    return tuple(number >> DIGITS * n & (1 << DIGITS) - 1 for n in reversed(range(length)))


class Places:
    """Sets of places as numbers with a bit for each, and what it costs to get there."""

    def __init__(self, graph: ConversionGraph, names: list[str]) -> None:
        self.graph, self.names = graph, names
        self.bits: dict[Place, int] = {}
        self.costs: dict[int, int] = {}
        self.of: dict[str, int] = {}
        self.beginnings: dict[int, str] = {}
        """The input of each place in which it may come."""
        self.whole: dict[str, int] = {}
        """All places of a tensor in whole axes: an input may come, an output be given back so."""

    def mask(self, places: AbstractSet[Place]) -> int:
        """Return the number of a set; constants, laid out beforehand, are in none."""
        return sum(self._bit(p) for p in places if self.graph.tensors[p[0]].kind != "constant")

    def _bit(self, place: Place) -> int:
        if place not in self.bits:
            bit = self.bits[place] = 1 << len(self.bits)
            name, tensor = place[0], self.graph.tensors[place[0]]
            size = prod(tensor.shape or ()) * tensor.element_bytes  # type: ignore[arg-type]
            self.costs[bit] = packed([{"bytes": size, "count": 1}.get(n, 0) for n in self.names])
            self.of[name] = self.of.get(name, 0) | bit
            if _is_whole(self.graph, place):
                self.whole[name] = self.whole.get(name, 0) | bit
                if self.graph.producer(name) is None:
                    self.beginnings[bit] = name
        return self.bits[place]

    def live(self, names: Iterable[str]) -> int:
        """Return all known places of tensors."""
        return sum(self.of.get(name, 0) for name in names)

    def unwhole(self, there: int, names: Iterable[str]) -> int:
        """Return the cost of a transform of each of these tensors that is only there in parts."""
        parts = (self.of.get(n, 0) & there for n in names if not there & self.whole.get(n, 0))
        return sum(self.costs[there & -there] for there in parts if there)

    def paid(self, there: int, needed: int) -> int:
        """Return the cost of the places that are not there; an input comes in one for nothing."""
        missing, total = needed & ~there, 0
        while missing:
            bit = missing & -missing
            name = self.beginnings.get(bit)
            if name is None or there & self.whole[name]:
                total += self.costs[bit]
            there, missing = there | bit, missing ^ bit
        return total


def _elements(graph: ConversionGraph) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return for each tensor the numbers of its elements, and whose numbers these are."""
    numbers, root = dict[str, np.ndarray](), dict[str, str]()
    for name, tensor in graph.tensors.items():
        shape = [int(size) for size in tensor.shape or ()]  # type: ignore[arg-type]
        numbers[name], root[name] = np.arange(prod(shape)).reshape(shape), name
    bare, again, last = None, False, ""
    for op in graph.ops:
        before, bare = bare, replace(op, name="", outputs=())
        again = bare == before and category_of(op) is Category.VIEW and not again
        if op.type == "Transpose":
            [x], [y] = op.inputs, op.outputs
            numbers[y], root[y] = numbers[x].transpose(op.attributes["perm"]), root[x]
        elif again:  # a view that stands there twice gives the same elements twice
            root[op.outputs[0]] = last
        last = op.outputs[0]
    return numbers, root


def _given(graph: ConversionGraph, numbers: dict[str, np.ndarray]) -> set[Place]:
    inputs = [n for n, tensor in graph.tensors.items() if tensor.kind == "input"]
    return {(name, numbers[name].tobytes()) for name in inputs}


def _is_whole(graph: ConversionGraph, place: Place) -> bool:
    """Return whether a tensor is in whole axes, in which an input may come."""
    shape = graph.tensors[place[0]].shape or ()
    return place[1] in _whole(tuple(int(size) for size in shape))  # type: ignore[arg-type]


@cache
def _whole(shape: tuple[int, ...]) -> frozenset[bytes]:
    """Return a tensor's elements as they lie in memory with its axes in each order."""
    numbers = np.arange(prod(shape)).reshape(shape)
    return frozenset(numbers.transpose(p).tobytes() for p in permutations(range(numbers.ndim)))


def _options(
    op: Op, ways: list[Mode], numbers: dict[str, np.ndarray], root: dict[str, str]
) -> set[tuple[frozenset[Place], frozenset[Place]]]:
    """Return what each way to run an op takes and gives."""
    found = set()
    for way in ways:
        needs = _places(op.inputs, way.inputs, numbers, root)
        found.add((needs, _places(op.outputs, way.outputs, numbers, root)))
    return found


def _every_way(
    graph: ConversionGraph, ops: list[Op], desired: Requirements | None
) -> list[list[Mode]]:
    """Return all ways of ops: permutations and others, and what orders of tensors lead to."""
    values = values_of(graph)
    ways = [ModeTable(desired).of(op).every[:1] if desired else () for op in ops]
    ways = [
        list(w) if w and w[0].layouts else _permutations(op)
        for w, op in zip(ways, ops, strict=True)
    ]
    whole_ways = [list(own) for own in ways]
    slots: dict[int, list[tuple[int, int, str]]] = {}
    for n, op in enumerate(ops):
        for slot, name in enumerate((*op.inputs, *op.outputs)):
            if name:
                slots.setdefault(values.number[name], []).append((n, slot, name))
    waiting = [(n, way) for n, own in enumerate(ways) for way in own]
    for n, way in waiting:
        names = (*ops[n].inputs, *ops[n].outputs)
        for name, order in zip(names, way.orders, strict=True):
            for m, slot, other in slots[values.number[name]] if name else ():
                own = values.own(other, values.order(name, order))
                if has_factors(own) or ops[m].type in VIEWS:
                    for more in further_modes(ops[m], slot, own, whole_ways[m]):
                        if all(more.orders != old.orders for old in ways[m]):
                            ways[m].append(more)
                            waiting.append((m, more))
    return ways


def _permutations(op: Op) -> list[Mode]:
    same = mode_of(op, op.attributes, (None,) * (len(op.inputs) + len(op.outputs)))
    rank = operator_of(op).rank(op)
    if operator_of(op).each_alone:
        ways = [same]
        for slot, shape in enumerate((*op.input_shapes, *op.output_shapes)):
            orders = {order_of(p, shape or ()) for p in permutations(range(len(shape or ())))}
            ways += [way for order in orders for way in further_modes(op, slot, order, tuple(ways))]
        return ways
    if category_of(op) in (Category.HEAVY, Category.OPAQUE) or rank is None:
        return [same]
    ways = []
    for way in _remapped(op, rank):
        assert way.inputs is not None and way.outputs is not None
        inputs, outputs = (
            tuple(
                None if p is None or s is None else tuple(i - len(p) + len(s) for i in p)
                for p, s in zip(side, shapes, strict=True)
            )
            for side, shapes in ((way.inputs, op.input_shapes), (way.outputs, op.output_shapes))
        )
        ways.append(mode_of(op, way.attributes, (*inputs, *outputs)))
    for axes in permutations(range(rank)) if op.type == "MatMul" else ():
        order = order_of(axes, op.output_shapes[0] or ())
        ways += further_modes(op, len(op.inputs), order, ways[:1])
    return ways


def _remapped(op: Op, rank: int) -> Iterator[Remapped]:
    for order in permutations(range(rank)):
        with suppress(RemapError):
            yield remap(op, order)
    other = operator_of(op).alternatives
    yield from () if other is None else other(op)


def _places(
    names: tuple[str, ...],
    forms: tuple[Form | None, ...],
    numbers: dict[str, np.ndarray],
    root: dict[str, str],
) -> frozenset[Place]:
    found = set()
    for name, form in zip(names, forms, strict=True):
        if name:
            array = numbers[name]
            found.add((root[name], array.tobytes() if form is None else laid(array, form)))
    return frozenset(found)


def laid(array: np.ndarray, form: Form) -> bytes:
    """Return elements as they lie in memory when a tensor has a form; padding is -1."""
    return formed(array, form, -1).tobytes()
