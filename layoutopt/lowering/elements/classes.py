"""The element graph of a group, and its classes: isomorphic components, found and confirmed.

Index arrays of numbered root elements flow through the views of a graph
(:mod:`layoutopt.graphs.locations`); what comes out says, for each element of any tensor, which sink
element it is or which location it has.  Composing index maps is left to NumPy.

A component's nodes are its free elements and, as nodes of its own, the locations that they
may earn.  Once no two nodes of a component share a colour, the component is told by its
*row*: the sorted list of its edges' (colour, colour, value).  Equal rows are isomorphic
components.  Where there are few kinds of edge, the numbers of each are compared instead of
rows; otherwise rows are grouped by hash and then compared entry by entry, so that no hash
collision can merge two classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import unique
from layoutopt.graphs.locations import FixedElements, flow, mapping_of
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.groups import Group
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray

FEW = 16  # up to so many colours, or kinds of edge, are looked at one by one; more are sorted


def owners(component: IntArray, labels: IntArray) -> IntArray:
    """Return for each node the first node of its component that has its label."""
    order = np.lexsort((np.arange(len(labels)), labels, component))
    c, chosen = component[order], labels[order]
    new = np.r_[True, (c[1:] != c[:-1]) | (chosen[1:] != chosen[:-1])][: len(labels)]
    owner = np.empty(len(labels), np.int64)
    owner[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return owner


def find(
    table: tuple[IntArray, IntArray, IntArray], component: IntArray, colour: IntArray
) -> IntArray:
    """Look components and colours up in a table of component, colour and thing.

    Everything is there; equal component and colour mean equal things.
    """
    owner, kind, thing = table
    wanted = unique(colour)
    found = np.empty(len(component), thing.dtype)
    if len(wanted) <= FEW:
        seen = np.zeros(int(owner.max(initial=0)) + 1, thing.dtype)
        for one in wanted:
            have, want = kind == one, colour == one
            seen[owner[have]] = thing[have]
            found[want] = seen[component[want]]
        return found
    width = np.int64(max(int(kind.max()), int(wanted[-1])) + 1)
    key = owner * width + kind
    order = np.argsort(key)
    at = np.searchsorted(key[order], component * width + colour)
    return thing[order[at]]


def distinct(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of a table, and which of them each row is.

    The table is given as columns, at least one; the rows are in lexicographic order, as stacked
    columns.
    """
    key, room = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        wide = high - low + 1
        if room * wide >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            column = np.unique(column, return_inverse=True)[1]
            room, low, wide = len(key), 0, len(key) + 1
        key, room = key * wide + (column - low).astype(np.int64), room * wide
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns]), index


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


def number_roots(graph: GraphStore, group: Group, tiles: int = 0) -> Numbering:
    """Number the root elements of a group; ``tiles`` is that of :func:`numbering`."""
    sizes = [
        0 if t in group.fixed and mapping_of(graph, t) is not None else size(graph.shapes[t])
        for t in (*group.sinks, *group.fixed)
    ]
    return numbering(graph, group.sinks, group.fixed, sizes, tiles)


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
    graph: GraphStore, group: Group, values: list[int], given: FixedElements, tiles: int = 0
) -> Edges:
    """Trace a group and collect its edges; values are those of the graph's pairs, in one unit."""
    numbers = number_roots(graph, group, tiles)
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
    """Return two arrays flat, in the order in which the first lies in memory, which is faster."""
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


Hash = NDArray[np.uint64]

ROUNDS = 200  # refinement steps after which the remaining components count as unlike any other


def mix(values: NDArray[Any], salt: int = 0) -> Hash:
    """Return well spread 64-bit hashes (the finaliser of SplitMix64)."""
    x = values.astype(np.uint64) + np.uint64((salt * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def refine(component: IntArray, colour: IntArray, ends: IntArray, kind: IntArray) -> IntArray:
    """Return colours that tell all nodes of each component apart, as small integers.

    Colours of nodes that are given are the same for all components; ``kind`` is what tells edges,
    shape ``(m, 2)``, apart.
    """
    hashes = mix(colour, 1)
    label = mix(kind, 2)
    alike = -1
    for step in range(ROUNDS):
        first, twins = _twins(component, hashes)
        if not len(twins):
            break
        if len(twins) == alike:  # refinement is stuck: single one node out per component
            chosen = _one_each(component[first], first)
            hashes[chosen] = mix(hashes[chosen], 3 + step)
        alike = len(twins)
        around = np.zeros_like(hashes)
        np.add.at(around, ends[:, 0], mix(hashes[ends[:, 1]] ^ label, 4))
        np.add.at(around, ends[:, 1], mix(hashes[ends[:, 0]] ^ label, 4))
        hashes = mix(hashes + around, 5)
    colours = np.unique(hashes, return_inverse=True)[1]
    _, twins = _twins(component, colours)
    left = np.isin(component, component[twins])
    colours[left] = len(colours) + np.flatnonzero(left)
    return colours


def _twins(component: IntArray, colour: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the nodes that share component and colour with a later, or an earlier, one."""
    order = np.lexsort((colour, component))
    c, h = component[order], colour[order]
    equal = np.flatnonzero((c[1:] == c[:-1]) & (h[1:] == h[:-1]))
    return order[equal], order[equal + 1]


def _one_each(component: IntArray, nodes: IntArray) -> IntArray:
    """Return one of the nodes for each of their components: the first listed."""
    _, where = np.unique(component, return_index=True)
    return nodes[where]


MANY = 256  # above so many colours, twins are found by sorting


@dataclass(frozen=True, eq=False)
class Classes:
    """Components of a group's free elements, and their classes."""

    component: IntArray  # component of each free element
    class_of: IntArray  # class of each component; -1 for an element that no edge touches
    copies: IntArray  # number of components in each class
    representative: IntArray  # one component of each class
    node_colour: IntArray  # colour of each free element; no two of one component share one
    # colour of each earn edge's location; no two locations of one component share one
    label_colour: IntArray


def find_classes(edges: Edges, node_colour: IntArray, location_colour: IntArray) -> Classes:
    """Split a group into components and find which are isomorphic.

    Elements of different colours, small integers, are never matched with each other; nor are
    locations, whose colours are by number less the number of free elements.
    """
    component, count = _components(edges.agree, edges.numbers.free)
    label_colour = location_colour[edges.earn.second - edges.numbers.free]
    odd = np.zeros(count, bool)
    if len(edges.agree.first):
        _mark_twins(odd, component, np.arange(edges.numbers.free), node_colour)
    _mark_twins(odd, component[edges.earn.first], edges.earn.second, label_colour)
    if odd.any():
        node_colour, label_colour = _refined(edges, component, odd, node_colour, label_colour)
    where = np.concatenate([component[edges.agree.first], component[edges.earn.first]])
    kind = _kinds(edges, node_colour, label_colour)
    class_of, copies, first = _classified(where, kind, count)
    return Classes(component, class_of, copies, first, node_colour, label_colour)


def _components(agree: EdgeList, free: int) -> tuple[IntArray, int]:
    if not len(agree.first):
        return np.arange(free, dtype=agree.first.dtype), free
    count, component = components(free, agree.first, agree.second)
    return component, count


def _mark_twins(
    odd: NDArray[np.bool_], component: IntArray, things: IntArray, colour: IntArray
) -> None:
    """Mark components in which two different things have one colour."""
    colours = int(colour.max(initial=-1)) + 1
    if colours > MANY:
        order = np.lexsort((things, colour, component))
        where, shade, thing = component[order], colour[order], things[order]
        same = (where[1:] == where[:-1]) & (shade[1:] == shade[:-1])
        odd[where[1:][same & (thing[1:] != thing[:-1])]] = True
        return
    seen = np.zeros(len(odd), things.dtype)
    for one in range(colours):
        here = colour == one
        where, thing = component[here], things[here]
        seen[where] = thing
        odd[where[seen[where] != thing]] = True


def _refined(
    edges: Edges,
    component: IntArray,
    odd: NDArray[np.bool_],
    node_colour: IntArray,
    label_colour: IntArray,
) -> tuple[IntArray, IntArray]:
    """Return the colours, new ones in odd components, so that none has twins."""
    nodes = np.flatnonzero(odd[component])
    place = np.zeros(len(component), np.int64)
    place[nodes] = np.arange(len(nodes))
    bonds = odd[component[edges.agree.first]]
    ties = np.flatnonzero(odd[component[edges.earn.first]])
    tied = edges.earn.first[ties]
    # A location counts once in each component.
    key = component[tied] * np.int64(edges.numbers.total) + edges.earn.second[ties]
    _, first, local = np.unique(key, return_index=True, return_inverse=True)
    top = int(node_colour.max(initial=0)) + 1
    colours = refine(
        np.concatenate([component[nodes], component[tied[first]]]),
        np.concatenate([node_colour[nodes], label_colour[ties[first]].astype(np.int64) + top]),
        np.concatenate(
            [
                np.column_stack(
                    [place[edges.agree.first[bonds]], place[edges.agree.second[bonds]]]
                ),
                np.column_stack([place[tied], len(nodes) + local]),
            ]
        ),
        np.concatenate([edges.agree.value[bonds], edges.earn.value[ties]]),
    )
    top = max(top, int(label_colour.max(initial=0)) + 1)
    node_colour, label_colour = node_colour.astype(np.int64), label_colour.astype(np.int64)
    node_colour[nodes] = top + colours[: len(nodes)]
    label_colour[ties] = top + colours[len(nodes) :][local]
    return node_colour, label_colour


def _kinds(edges: Edges, node_colour: IntArray, label_colour: IntArray) -> IntArray:
    """Return the kind of every edge, those that agree first.

    Two edges have one kind if their ends' colours and their values are equal, and they
    both agree or both earn.
    """
    one, two = node_colour[edges.agree.first], node_colour[edges.agree.second]
    near = np.concatenate([np.minimum(one, two), node_colour[edges.earn.first]])
    far = np.concatenate([np.maximum(one, two), label_colour])
    earns = np.repeat([False, True], [len(edges.agree.first), len(edges.earn.first)])
    value = np.concatenate([edges.agree.value, edges.earn.value])
    return _numbered([near, far, value, earns])


def _numbered(columns: Sequence[IntArray]) -> IntArray:
    """Return equal numbers for equal rows of a table: mixed radix, packed when large."""
    number: IntArray = np.zeros(len(columns[0]), np.int32)
    size = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            number, size = _packed(number, size)
        size *= width
        kind = np.int32 if size < 2**31 else np.int64
        number = number.astype(kind, copy=False) * width + column
    return _packed(number, size)[0]


def _packed(number: IntArray, size: int) -> tuple[IntArray, int]:
    """Return the same partition by numbers ``0 .. n-1``, in the same order, and ``n``."""
    if size > 2 * len(number) + 2**16:
        values, packed = np.unique(number, return_inverse=True)
        return packed, len(values)
    seen = np.zeros(size, bool)
    seen[number] = True
    rank = np.cumsum(seen, dtype=np.int32 if size < 2**31 else np.int64) - 1
    return rank[number], int(rank[-1]) + 1 if size else 0


def _classified(where: IntArray, kind: IntArray, count: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return each component's class by edges ``(where, kind)``; each class's size and first."""
    kinds = int(kind.max(initial=-1)) + 1
    if kinds <= FEW:
        return _counted(where, kind, kinds, count)
    key = np.sort(where * np.int64(kinds) + kind)
    return _grouped(key // kinds, key % kinds, count)


def _counted(
    where: IntArray, kind: IntArray, kinds: int, count: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Classify components by how many edges of each kind they have."""
    of: IntArray = np.zeros(count, np.int32)
    classes = 1
    for one in range(kinds):
        times, most = _times(where[kind == one], count)
        width = most + 1
        wide = np.int32 if classes * width < 2**31 else np.int64
        of, classes = _packed(of.astype(wide, copy=False) * width + times, classes * width)
    touched = np.zeros(count, bool)
    touched[where] = True
    members = np.flatnonzero(touched)
    own, classes = _packed(of[members], classes)
    class_of = np.full(count, -1, own.dtype)
    class_of[members] = own
    first = np.zeros(classes, np.int64)
    first[own[::-1]] = members[::-1]
    return class_of, np.bincount(own, minlength=classes), first


def _times(where: IntArray, count: int) -> tuple[IntArray, int]:
    """Return how often each number below ``count`` occurs, and the largest of that."""
    once: IntArray = np.zeros(count, np.int8)
    once[where] = 1
    if np.count_nonzero(once) == len(where):
        return once, int(len(where) > 0)
    times = np.bincount(where, minlength=count)
    return times, int(times.max())


def _grouped(where: IntArray, kind: IntArray, count: int) -> tuple[IntArray, IntArray, IntArray]:
    """Group components by equal rows: class of each, size and first member of each class."""
    starts = np.flatnonzero(np.r_[True, where[1:] != where[:-1]]) if len(where) else where[:0]
    present = where[starts]
    lengths = np.diff(np.r_[starts, len(where)])
    salt = 0
    while True:
        hashes = np.add.reduceat(mix(kind, salt), starts) if len(starts) else starts
        _, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        if _confirmed(kind, starts, lengths, first[of]):
            break
        salt += 1  # two kinds of component met in one hash: hash again
    class_of = np.full(count, -1, np.int64)
    class_of[present] = of
    return class_of, np.bincount(of, minlength=len(first)), present[first]


def _confirmed(kind: IntArray, starts: IntArray, lengths: IntArray, model: IntArray) -> bool:
    """Return whether every row equals, entry by entry, the row that it is said to equal."""
    if not np.array_equal(lengths, lengths[model]):
        return False
    shift = np.repeat(starts[model] - starts, lengths)
    return np.array_equal(kind, kind[np.arange(len(kind)) + shift])
