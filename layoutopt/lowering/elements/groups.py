"""Groups, the parts of a graph that share no free element, and barriers that exclude each other.

A tensor is *free* if some of its elements come from a sink.  Two sinks are in one group if
ops or ValuedPairs link them through free tensors.  Groups do not interact, except through
barrier order; tensors with no free element do not link groups, every group takes its own
copy of them.  Groups of equal *key* are the same problem and are solved once.

Taking a location of barrier ``b`` for an element that barrier ``c`` reads means that ``b`` comes
before ``c``.  Only barriers on a cycle of such possible arcs and of arcs that are there anyway
(``c`` reads an output of ``b``) need any care.  The cycles are looked for on tensors first,
generously; only what is found there is then looked at element by element.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from layoutopt.base.numbers import unique
from layoutopt.graphs.locations import FixedElements, Tiled, flow
from layoutopt.graphs.ops import Array, KeepsOrder, Kind, Source, size
from layoutopt.graphs.store import GraphStore
from layoutopt.network.components import components, reached, strong_components
from layoutopt.network.problem import IntArray


@dataclass(frozen=True)
class Group:
    """Sinks that may influence each other, and the pairs that they are in."""

    pairs: tuple[int, ...]  # numbers of the group's ValuedPairs
    # numbers of all tensors that these pairs' locations come from, ascending, which is an order of
    # evaluation; of those that are always alike only the first
    tensors: tuple[int, ...]
    sinks: tuple[int, ...]  # the sinks among them, but for those whose elements are all given
    # roots whose own locations can be taken: sources, fixed points and barrier outputs among them,
    # and whatever elements of their sinks are given
    fixed: tuple[int, ...]
    # for each tensor of the graph the first one that is always alike; see `first_alike`
    firsts: Sequence[int] = field(repr=False)


def find_groups(graph: GraphStore, given: FixedElements) -> list[Group]:
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
    """Return equal numbers for tensors that ops or ValuedPairs link through free ones."""
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
        if isinstance(op, KeepsOrder):
            [out], [carrier] = graph.op_outputs[i], graph.carriers(i)
            if graph.shapes[out] == graph.shapes[carrier]:
                firsts[out] = firsts[carrier]
    return firsts


def free_tensors(graph: GraphStore, given: FixedElements) -> list[bool]:
    """Return for each tensor whether some of its elements may come from a free sink element."""
    free = [False] * len(graph.shapes)
    for i, op in enumerate(graph.ops):
        if op.kind is Kind.SINK:
            free[graph.op_outputs[i][0]] = not given.whole(graph.op_outputs[i][0])
        elif op.kind is Kind.VIEW:
            free[graph.op_outputs[i][0]] = any(free[t] for t in graph.carriers(i))
    return free


def _group(
    graph: GraphStore, given: FixedElements, pairs: list[int], firsts: Sequence[int]
) -> Group:
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

    ``firsts`` are for each tensor the one that is looked at in its stead.
    """

    def below(t: int) -> Iterable[int]:
        carriers = graph.carriers(graph.producers[t])
        return carriers if firsts is None else [firsts[carrier] for carrier in carriers]

    return sorted(reached(tensors, below))


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
    if isinstance(op, KeepsOrder):
        return "reshape", carriers, shape
    fields = tuple(getattr(op, f) for f in op.__struct_fields__ if f not in ("id", "inputs"))
    return type(op).__name__, carriers, fields


@dataclass(frozen=True, eq=False)
class PrecedenceConflicts:
    """The barriers that can exclude each other."""

    barriers: tuple[int, ...]  # op numbers, in the order in which they are numbered elsewhere
    arcs: IntArray  # shape (a, 2): the second barrier reads an output of the first
    # the distinct sets of barriers that read some element; the first is empty
    reader_sets: list[tuple[int, ...]]
    # for sinks of contested groups, by tensor number: for each element the index of its set in
    # `reader_sets`
    readers: dict[int, IntArray]
    groups: frozenset[int]  # numbers of the groups in which the choice of locations is limited

    @property
    def lifted(self) -> bool:
        """Whether readers are known of cells, not of elements."""
        return bool(self.groups) and not self.readers


def no_conflicts() -> PrecedenceConflicts:
    """Return that order limits nothing."""
    return PrecedenceConflicts((), np.zeros((0, 2), np.int64), [()], {}, frozenset())


def find_conflicts(
    graph: GraphStore,
    groups: Sequence[Group],
    given: FixedElements,
    barriers: Sequence[int],
    contested: Collection[int],
) -> PrecedenceConflicts:
    """Look at barriers and groups on possible cycles element by element."""
    sinks = [t for g in sorted(contested) for t in groups[g].sinks]
    starts = np.cumsum([0, *(size(graph.shapes[t]) for t in sinks)])
    roots = _root_tokens(graph, barriers, dict(zip(sinks, starts.tolist(), strict=False)), given)
    arcs: list[tuple[int, int]] = []
    sets: list[tuple[int, ...]] = [()]
    of = np.zeros(int(starts[-1]), np.int64)
    for c, barrier in enumerate(barriers):
        inputs = graph.op_inputs[barrier]
        held = flow(graph, roots, inputs)
        tokens = unique(np.concatenate([held[t].reshape(-1) for t in inputs] or [of[:0]]))
        arcs += [(-2 - b, c) for b in tokens[tokens < -1].tolist()]
        sets = _split(of, tokens[tokens >= 0], sets, c)
    readers = {t: of[a:b] for t, a, b in zip(sinks, starts[:-1], starts[1:], strict=True)}
    return PrecedenceConflicts(
        tuple(barriers),
        np.array(arcs, np.int64).reshape(-1, 2),
        sets,
        readers,
        frozenset(contested),
    )


def _split(
    of: IntArray, read: IntArray, sets: list[tuple[int, ...]], barrier: int
) -> list[tuple[int, ...]]:
    """Add a barrier to the sets of the elements that it reads."""
    old, index = np.unique(of[read], return_inverse=True)
    of[read] = len(sets) + index
    return sets + [(*sets[s], barrier) for s in old.tolist()]


def _root_tokens(
    graph: GraphStore, barriers: Sequence[int], starts: dict[int, int], given: FixedElements
) -> dict[int, Array]:
    """Return what stands for root elements.

    That is a number of its own for each free element of a contested sink, ``-2 - k`` for the
    outputs of contested barrier ``k`` and for elements that are given its locations, and -1
    for everything else.
    """
    place = {t: -2 - k for k, b in enumerate(barriers) for t in graph.op_outputs[b]}
    wanted = sources_of(graph, {t for b in barriers for t in graph.op_inputs[b]})
    tokens: dict[int, Array] = {}
    for t in wanted:
        kind, shape = graph.ops[graph.producers[t]].kind, graph.shapes[t]
        if kind is Kind.VIEW:
            continue
        token: Array = np.broadcast_to(np.int64(place.get(t, -1)), shape)
        if t in starts:
            token = np.arange(starts[t], starts[t] + size(shape)).reshape(shape)
        if t in given.origins:
            tensors = given.origins[t][0].reshape(shape)
            own = np.full(len(graph.shapes) + 1, -1)  # the last entry is for what is not given
            own[list(place)] = list(place.values())
            token = np.where(tensors >= 0, own[tensors], token)
        tokens[t] = token
    return tokens


def find_cycles(
    graph: GraphStore, groups: Sequence[Group], given: FixedElements
) -> tuple[tuple[int, ...], set[int]]:
    """Return the barriers and groups on a cycle, found on tensors alone.

    An arc leads from a barrier to each group that can earn its locations and to each sink that
    is given them, from a group or such a sink to each barrier that reads it, and from a barrier
    to each that reads it.
    """
    if not any(op.kind is Kind.BARRIER for op in graph.ops):
        return (), set()
    links: list[tuple[tuple[str, int], tuple[str, int]]] = []
    for t in given.origins:
        for origin in given.tensors(t):
            if graph.ops[graph.producers[origin]].kind is Kind.BARRIER:
                links.append((("barrier", graph.producers[origin]), ("given", t)))
    group_of = {t: g for g, group in enumerate(groups) for t in group.sinks}
    for g, group in enumerate(groups):
        for t in group.fixed if group.sinks else ():
            if graph.ops[graph.producers[t]].kind is Kind.BARRIER:
                links.append((("barrier", graph.producers[t]), ("group", g)))
    if not links:
        return (), set()
    read = _readable(graph)
    for i, op in enumerate(graph.ops):
        if op.kind is Kind.BARRIER:
            for root in {r for t in graph.op_inputs[i] for r in read[t]}:
                producer = graph.producers[root]
                if root in given.origins:
                    links.append((("given", root), ("barrier", i)))
                if root in group_of:
                    links.append((("group", group_of[root]), ("barrier", i)))
                elif graph.ops[producer].kind is Kind.BARRIER:
                    links.append((("barrier", producer), ("barrier", i)))
    found = [n for part in strong_components(links) if len(part) > 1 for n in part]
    barriers = tuple(sorted(i for kind, i in found if kind == "barrier"))
    return barriers, {i for kind, i in found if kind == "group"}


def _readable(graph: GraphStore) -> list[frozenset[int]]:
    """Return for each tensor the sinks and barrier outputs that its elements may come from."""
    read: list[frozenset[int]] = [frozenset()] * len(graph.shapes)
    for i, op in enumerate(graph.ops):
        if op.kind is Kind.VIEW:
            below = [read[t] for t in graph.carriers(i)]
            read[graph.op_outputs[i][0]] = (
                below[0] if len(below) == 1 else frozenset().union(*below)
            )
        elif op.kind in (Kind.SINK, Kind.BARRIER):
            for t in graph.op_outputs[i]:
                read[t] = frozenset((t,))
    return read
