"""Groups: the parts of a graph that share no free element, found on tensors alone.

A tensor is *free* if some of its elements come from a sink.  Two sinks are in one group if
ops or ValuedPairs link them through free tensors.  Groups do not interact, except through
barrier order; tensors with no free element do not link groups, every group takes its own
copy of them.  Groups of equal *key* are the same problem and are solved once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from layoutopt.graphs.locations import Given, Tiled
from layoutopt.graphs.ops import Flatten, Identity, Kind, Reshape, Source, Squeeze, SumLike
from layoutopt.graphs.store import GraphStore
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray


@dataclass(frozen=True)
class Group:
    """Sinks that may influence each other, and the pairs that they are in.

    Parameters
    ----------
    pairs
        Numbers of the group's ValuedPairs.
    tensors
        Numbers of all tensors that these pairs' locations come from, ascending, which is an
        order of evaluation; of those that are always alike only the first.
    sinks
        The sinks among them, but for those whose elements are all given.
    fixed
        Roots whose own locations can be taken: sources, fixed points and barrier outputs among
        them, and whatever elements of their sinks are given.
    firsts
        For each tensor of the graph the first one that is always alike; see :func:`first_alike`.
    """

    pairs: tuple[int, ...]
    tensors: tuple[int, ...]
    sinks: tuple[int, ...]
    fixed: tuple[int, ...]
    firsts: Sequence[int] = field(repr=False)


def find_groups(graph: GraphStore, given: Given) -> list[Group]:
    """Return the groups of all ValuedPairs; a pair of two fixed tensors is a group alone."""
    free = free_tensors(graph, given)
    linked = link(graph, free)
    members: dict[Hashable, list[int]] = {}
    for p, (a, b, _) in enumerate(graph.pairs):
        free_side = a if free[a] else b if free[b] else None
        owner = ("fixed", p) if free_side is None else int(linked[free_side])
        members.setdefault(owner, []).append(p)
    firsts = first_alike(graph)
    return [_group(graph, given, pairs, firsts) for pairs in members.values()]


def link(graph: GraphStore, free: Sequence[bool]) -> IntArray:
    """Return equal numbers for tensors that ops or ValuedPairs link through free ones.

    Parameters
    ----------
    free
        For each tensor whether some of its elements come from a sink.
    """
    links = [(a, b) for a, b, _ in graph.pairs if free[a] and free[b]]
    for i, op in enumerate(graph.ops):
        if op.kind is Kind.VIEW:
            out = graph.op_outputs[i][0]
            links += [(t, out) for t in graph.carriers(i) if free[t]]
    ends = np.array(links, np.int64).reshape(-1, 2)
    return components(len(graph.shapes), *ends.T)[1]


def first_alike(graph: GraphStore) -> list[int]:
    """Return for each tensor the first of the graph that has its shape and the same elements.

    Chains of elementwise ops, as residual streams are, count as one tensor then.
    """
    firsts = list(range(len(graph.shapes)))
    for i, op in enumerate(graph.ops):
        if isinstance(op, SumLike | Identity | Reshape | Flatten | Squeeze):
            [out], [carrier] = graph.op_outputs[i], graph.carriers(i)
            if graph.shapes[out] == graph.shapes[carrier]:
                firsts[out] = firsts[carrier]
    return firsts


def free_tensors(graph: GraphStore, given: Given) -> list[bool]:
    """Return for each tensor whether some of its elements may come from a free sink element."""
    free = [False] * len(graph.shapes)
    for i, op in enumerate(graph.ops):
        if op.kind is Kind.SINK:
            free[graph.op_outputs[i][0]] = not given.whole(graph.op_outputs[i][0])
        elif op.kind is Kind.VIEW:
            free[graph.op_outputs[i][0]] = any(free[t] for t in graph.carriers(i))
    return free


def _group(graph: GraphStore, given: Given, pairs: list[int], firsts: Sequence[int]) -> Group:
    ends = {firsts[t] for p in pairs for t in graph.pairs[p][:2]}
    tensors = sources_of(graph, ends, firsts)
    kinds = {t: graph.ops[graph.producers[t]].kind for t in tensors}
    sinks = [t for t in tensors if kinds[t] is Kind.SINK]
    fixed = {t for t in tensors if kinds[t] not in (Kind.SINK, Kind.VIEW)}
    return Group(
        tuple(pairs),
        tuple(tensors),
        tuple(t for t in sinks if not given.whole(t)),
        tuple(sorted(fixed.union(*(given.tensors(t) for t in sinks)))),
        firsts,
    )


def sources_of(
    graph: GraphStore, tensors: set[int], firsts: Sequence[int] | None = None
) -> list[int]:
    """Return tensors, and all that their locations come from, ascending.

    Parameters
    ----------
    firsts
        For each tensor the one that is looked at in its stead.
    """
    every, todo = set(tensors), list(tensors)
    while todo:
        for carrier in graph.carriers(graph.producers[todo.pop()]):
            t = carrier if firsts is None else firsts[carrier]
            if t not in every:
                every.add(t)
                todo.append(t)
    return sorted(every)


def key_of(graph: GraphStore, group: Group) -> Hashable:
    """Return a key that two groups share only if they are the same problem.

    Tensors are renumbered within the group.  Roots without a mapping count by kind and
    shape, views by what they do, pairs by value.
    """
    local, firsts = {t: k for k, t in enumerate(group.tensors)}, group.firsts
    tensors = tuple(_tensor_key(graph, t, local, firsts) for t in group.tensors)
    pairs = tuple(
        (local[firsts[a]], local[firsts[b]], value)
        for a, b, value in (graph.pairs[p] for p in group.pairs)
    )
    return tensors, pairs


def _tensor_key(
    graph: GraphStore, t: int, local: dict[int, int], firsts: Sequence[int]
) -> Hashable:
    producer = graph.producers[t]
    op, shape = graph.ops[producer], graph.shapes[t]
    if op.kind is Kind.SINK:
        return "sink", shape
    if op.kind is not Kind.VIEW:
        # Integers and strings that compare equal to nothing of the other type.
        if isinstance(op, Tiled):
            return "tiled", shape, op.tiles[t - graph.op_outputs[producer][0]].key
        return "fixed", shape, op.mapping if isinstance(op, Source) else None
    carriers = tuple(local[firsts[c]] for c in graph.carriers(producer))
    if isinstance(op, Reshape | Flatten | Squeeze | Identity | SumLike):
        return "reshape", carriers, shape
    fields = tuple(getattr(op, f) for f in op.__struct_fields__ if f not in ("id", "inputs"))
    return type(op).__name__, carriers, fields
