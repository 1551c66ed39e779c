"""Groups, the parts of a graph that share no free element, and the elements of groups.

A tensor is *free* if some of its elements come from a sink.  Two sinks are in one group if
ops or ValuedPairs link them through free tensors.  Groups do not interact, except through
barrier order; tensors with no free element do not link groups, every group takes its own copy of
them.  Groups of equal *key* are the same problem and are solved once.

Taking a location of barrier ``b`` for an element that barrier ``c`` reads means that ``b`` comes
before ``c``.  Only barriers on a cycle of such possible arcs and of arcs that are there anyway
(``c`` reads an output of ``b``) need any care.  The cycles are looked for on tensors first,
generously; only what is found there is then looked at element by element.

The element graph of a group has the pairs of its elements.  Index arrays of numbered root elements
flow through the views of a graph (:mod:`layoutopt.graphs.locations`); what comes out says, for each
element of any tensor, which sink element it is or which location it has.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import unique
from layoutopt.graphs.locations import FixedElements, Tiled, flow, mapping_of
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
    """The barriers that can exclude each other; by default there are none."""

    # op numbers, in the order in which they are numbered elsewhere
    barriers: tuple[int, ...] = ()
    # shape (a, 2): the second barrier reads an output of the first
    arcs: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    # the distinct sets of barriers that read some element; the first is empty
    reader_sets: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    # for sinks of contested groups, by tensor number: for each element the index of its set in
    # `reader_sets`
    readers: dict[int, IntArray] = field(default_factory=dict)
    # numbers of the groups in which the choice of locations is limited
    groups: frozenset[int] = frozenset()

    @property
    def lifted(self) -> bool:
        """Whether readers are known of cells, not of elements."""
        return bool(self.groups) and not self.readers


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
    used, of = np.unique(np.append(of, 0), return_inverse=True)  # the first is empty, used or not
    readers = {t: of[a:b] for t, a, b in zip(sinks, starts[:-1], starts[1:], strict=True)}
    return PrecedenceConflicts(
        tuple(barriers),
        np.array(arcs, np.int64).reshape(-1, 2),
        [sets[s] for s in used.tolist()],
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
    names = [*dict.fromkeys(name for link in links for name in link)]
    place = {name: k for k, name in enumerate(names)}
    arcs = np.array([(place[a], place[b]) for a, b in links], np.int64).reshape(-1, 2)
    of = strong_components(len(names), arcs)
    found = [name for name, many in zip(names, np.bincount(of)[of], strict=True) if many > 1]
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


@dataclass(frozen=True, eq=False)
class Numbering:
    """The root elements of a group, numbered.

    Sink elements come first, then the locations of fixed tensors without a mapping, then
    the distinct values of all mappings.
    """

    sinks: tuple[int, ...]  # the free root tensors, in the order of their numbers
    fixed: tuple[int, ...]  # the other root tensors
    # first number of each tensor of `sinks` and then of `fixed`; a fixed tensor with a mapping has
    # no numbers of its own. Its last entry is the first of the mappings
    starts: NDArray[np.int64]
    free: int  # number of sink elements
    pool: tuple[int | str, ...]  # the distinct mapping values, in order of their numbers
    total: int  # number of root elements and locations

    @property
    def dtype(self) -> np.dtype[np.int32] | np.dtype[np.int64]:
        """The smallest integer type that holds every number."""
        return np.dtype(np.int32) if self.total < 2**31 else np.dtype(np.int64)

    def own(self, graph: GraphStore, t: int) -> Array:
        """Return the numbers of the locations that a root tensor has of its own, flat.

        They are -1 where the group does not know a location.
        """
        mapping = mapping_of(graph, t)
        if mapping is not None:
            return mapping.places(self.place()).astype(self.dtype)
        count = size(graph.shapes[t])
        if t not in self.fixed:
            return np.full(count, -1, self.dtype)
        start = int(self.starts[len(self.sinks) + self.fixed.index(t)])
        return np.arange(start, start + count, dtype=self.dtype)

    def place(self) -> dict[int | str, int]:
        """Return the number of each mapping value."""
        return {value: int(self.starts[-1]) + k for k, value in enumerate(self.pool)}

    def locate(self, graph: GraphStore, tensors: Array, elements: Array) -> Array:
        """Return the numbers of locations; -1 where the group knows none, or the tensor is -1.

        Locations are given as root tensors and flat elements.
        """
        where = np.full(len(tensors), -1, self.dtype)
        for t in unique(tensors[tensors >= 0]).tolist():
            here = np.flatnonzero(tensors == t)
            where[here] = self.own(graph, t)[elements[here]]
        return where


def numbering(
    graph: GraphStore,
    sinks: tuple[int, ...],
    fixed: tuple[int, ...],
    sizes: Sequence[int],
    tiles: int,
) -> Numbering:
    """Return numbers of so many elements of each free and then each fixed root tensor.

    The names ``0 .. tiles-1`` come first in the pool, whether they occur or not.
    """
    pool: dict[int | str, None] = dict.fromkeys(range(tiles))
    for t in fixed:
        mapping = mapping_of(graph, t)
        pool.update(dict.fromkeys(mapping.used() if mapping is not None else ()))
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    free, total = int(starts[len(sinks)]), int(starts[-1]) + len(pool)
    return Numbering(sinks, fixed, starts, free, tuple(pool), total)


def root_arrays(
    graph: GraphStore, group: Group, numbers: Numbering, given: FixedElements
) -> dict[int, Array]:
    """Return the root numbers of the elements of each root tensor, shaped."""
    arrays = {}
    for t in group.tensors:
        kind = graph.ops[graph.producers[t]].kind
        if kind is Kind.SINK:
            arrays[t] = _sink_array(graph, numbers, given, t).reshape(graph.shapes[t])
        elif kind is not Kind.VIEW:
            arrays[t] = numbers.own(graph, t).reshape(graph.shapes[t])
    return arrays


def _sink_array(graph: GraphStore, numbers: Numbering, given: FixedElements, t: int) -> Array:
    """Return the numbers of a sink's elements, and of their locations where these are given."""
    start = int(numbers.starts[numbers.sinks.index(t)]) if t in numbers.sinks else 0
    flat = np.arange(start, start + size(graph.shapes[t]), dtype=numbers.dtype)
    if t not in given.origins:
        return flat
    taken = numbers.locate(graph, *given.origins[t])
    return np.where(taken >= 0, taken, flat)


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges with their values; parallel ones are not merged."""

    first: IntArray  # a free element each
    second: IntArray  # another free element, or a location
    value: IntArray  # index of the value in :attr:`Edges.values`


@dataclass(frozen=True, eq=False)
class Edges:
    """All edges of a group."""

    numbers: Numbering  # how roots are numbered
    values: tuple[int, ...]  # the distinct values of edges, as multiples of the graph's unit
    agree: EdgeList  # edges between two different free elements
    earn: EdgeList  # edges between a free element and a location
    constant: int  # what is earned whatever is chosen, in the graph's unit


def edges_of(
    graph: GraphStore, group: Group, values: list[int], given: FixedElements, tiles: int
) -> Edges:
    """Trace a group and collect its edges; values are those of the graph's pairs, in one unit.

    ``tiles`` is that of :func:`numbering`.
    """
    sizes = [
        0 if t in group.fixed and mapping_of(graph, t) is not None else size(graph.shapes[t])
        for t in (*group.sinks, *group.fixed)
    ]
    numbers = numbering(graph, group.sinks, group.fixed, sizes, tiles)
    arrays = flow(
        graph,
        root_arrays(graph, group, numbers, given),
        {t for p in group.pairs for t in graph.pairs[p][:2]},
    )
    index: dict[int, int] = {}
    agree: list[tuple[Array, Array, int]] = []
    earn: list[tuple[Array, Array, int]] = []
    constant = 0
    for p in group.pairs:
        a, b, _ = graph.pairs[p]
        if values[p] == 0:
            continue
        kind = index.setdefault(values[p], len(index))
        x, y = _aligned(arrays[a], arrays[b])
        differ = x != y
        constant += values[p] * int(len(x) - np.count_nonzero(differ))
        x_free, y_free = x < numbers.free, y < numbers.free
        agree.append((*_where(x_free & y_free & differ, x, y), kind))
        earn.append((*_where(x_free & ~y_free, x, y), kind))
        earn.append((*_where(~x_free & y_free, y, x), kind))
    return Edges(numbers, tuple(index), _list(agree, numbers), _list(earn, numbers), constant)


def _aligned(x: Array, y: Array) -> tuple[Array, Array]:
    """Return two arrays flat, in the order in which the first one lies in memory.

    Index arrays of permuted views would otherwise be walked with long strides again and
    again.
    """
    axes = np.argsort([-abs(step) for step in x.strides], kind="stable")
    return x.transpose(axes).reshape(-1), y.transpose(axes).reshape(-1)


def _where(keep: NDArray[np.bool_], x: Array, y: Array) -> tuple[Array, Array]:
    return (x, y) if keep.all() else (x[keep], y[keep])


def _list(parts: list[tuple[Array, Array, int]], numbers: Numbering) -> EdgeList:
    none = [np.zeros(0, numbers.dtype)]
    counts = [len(x) for x, _, _ in parts]
    largest = max((kind for _, _, kind in parts), default=0)
    kinds = np.array([kind for _, _, kind in parts], np.min_scalar_type(-largest - 1))
    return EdgeList(
        np.concatenate(none + [x for x, _, _ in parts]),
        np.concatenate(none + [y for _, y, _ in parts]),
        np.repeat(kinds, counts),
    )


def first_uses(
    graph: GraphStore,
    pool: Sequence[int | str],
    parts: Iterable[tuple[int, int, int, int]],
    memory: int,
) -> IntArray:
    """Return number and flat element of the part that first has each location of the pool.

    Parts are numbers, tensors, and their first element and number of elements there.  On a tile
    memory, which counts as part ``memory``, locations are tiles, and its elements.
    """
    if graph.tile_memory is not None:
        return np.array([(memory, int(tile)) for tile in pool], np.int64).reshape(-1, 2)
    place = {value: k for k, value in enumerate(pool)}
    firsts = np.full((len(place), 2), -1)
    for number, t, start, count in parts:
        mapping = mapping_of(graph, t)
        for value, element in () if mapping is None else mapping.firsts(start, count):
            if firsts[place[value], 0] < 0:
                firsts[place[value]] = number, element
    return firsts
