"""The least cost of a conversion by trying everything, with nothing of the package but remap.

Every permutation of every op is tried.  Two layouts are the same if they put the same elements at
the same places in memory, which is looked up, not reasoned.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.operators.op import Op
from layoutopt.operators.operator import Category
from layoutopt.operators.registry import category_of, operator_of, remap
from layoutopt.operators.remapping import RemapError, Remapped

Place = tuple[str, bytes]
"""A tensor that no transpose gives, and the numbers of its elements as they lie in memory."""

Cost = tuple[int, int]


def least(
    graph: ConversionGraph, objective: str, free_io: bool = False, most: Cost | None = None
) -> Cost | None:
    """Return the least cost, the objective that comes first standing first.

    Ops are gone through in order; of all choices that leave the same places to read from later,
    the cheapest goes on.

    Parameters
    ----------
    graph, objective, free_io
        As for ``convert_graph``.
    most
        What costs more is left out; None is returned if nothing else is found.
    """
    numbers, root = _elements(graph)
    ops = [op for op in graph.ops if op.type != "Transpose"]
    last = {root[name]: n for n, op in enumerate(ops) for name in op.inputs if name}
    if not free_io:
        last.update({root[name]: len(ops) for name in graph.outputs})
    states: dict[frozenset[Place], Cost] = {frozenset(_given(graph, numbers, free_io)): (0, 0)}
    for n, op in enumerate(ops):
        after: dict[frozenset[Place], Cost] = {}
        for needs, gives in _options(op, numbers, root):
            for there, cost in states.items():
                now, paid = _paid(graph, there, needs, objective)
                live = frozenset(p for p in {*now, *gives} if last.get(p[0], -1) > n)
                total = (cost[0] + paid[0], cost[1] + paid[1])
                if most is not None and total > most:
                    continue
                after[live] = min(after.get(live, total), total)
        states = after
    ends = [] if free_io else [(root[name], numbers[name].tobytes()) for name in graph.outputs]
    found = [
        (cost[0] + paid[0], cost[1] + paid[1])
        for there, cost in states.items()
        for paid in [_paid(graph, there, set(ends), objective)[1]]
    ]
    return min(found, default=None)


def _elements(graph: ConversionGraph) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return for each tensor the numbers of its elements, and whose numbers these are."""
    numbers, root = dict[str, np.ndarray](), dict[str, str]()
    for name, tensor in graph.tensors.items():
        shape = [int(size) for size in tensor.shape or ()]  # type: ignore[arg-type]
        numbers[name], root[name] = np.arange(int(np.prod(shape))).reshape(shape), name
    for op in graph.ops:
        if op.type == "Transpose":
            [x], [y] = op.inputs, op.outputs
            numbers[y], root[y] = numbers[x].transpose(op.attributes["perm"]), root[x]
    return numbers, root


def _given(graph: ConversionGraph, numbers: dict[str, np.ndarray], free_io: bool) -> list[Place]:
    inputs = [n for n, tensor in graph.tensors.items() if tensor.kind == "input"]
    return [] if free_io else [(name, numbers[name].tobytes()) for name in inputs]


def _paid(
    graph: ConversionGraph, there: frozenset[Place], needs: set[Place], objective: str
) -> tuple[set[Place], Cost]:
    now, total = set(there), (0, 0)
    for place in sorted(needs - there):
        tensor = graph.tensors[place[0]]
        first = graph.producer(place[0]) is None and all(p[0] != place[0] for p in now)
        now.add(place)
        if not first:
            size = len(place[1]) // 8 * tensor.element_bytes
            cost = (size, 1) if objective.startswith("bytes") else (1, size)
            total = (total[0] + cost[0], total[1] + cost[1])
    return now, total


def _options(
    op: Op, numbers: dict[str, np.ndarray], root: dict[str, str]
) -> set[tuple[frozenset[Place], frozenset[Place]]]:
    """Return what each way to run an op takes and gives."""
    found = set()
    for way in _ways(op):
        needs = _places(op.inputs, way.inputs, numbers, root)
        found.add((needs, _places(op.outputs, way.outputs, numbers, root)))
    return found


def _ways(op: Op) -> list[Remapped]:
    same = Remapped(op.attributes, (None,) * len(op.inputs), (None,) * len(op.outputs))
    rank = operator_of(op).rank(op)
    if category_of(op) in (Category.HEAVY, Category.OPAQUE) or rank is None:
        return [same]
    ways = []
    for order in permutations(range(rank)):
        try:
            ways.append(remap(op, order))
        except RemapError:
            continue
    return ways


def _places(
    names: tuple[str, ...],
    orders: tuple[tuple[int, ...] | None, ...] | None,
    numbers: dict[str, np.ndarray],
    root: dict[str, str],
) -> frozenset[Place]:
    found = set()
    for name, order in zip(names, orders or (), strict=True):
        array = numbers[name]
        if order is not None:
            array = array.reshape((1,) * (len(order) - array.ndim) + array.shape).transpose(order)
        found.add((root[name], array.tobytes()))
    return frozenset(found)
