"""Kinds of groups: classes of isomorphic components, and these classes as a labelling problem.

A component's nodes are its free elements and, as nodes of its own, the locations that they
may earn.  Once no two nodes of a component share a colour, the component is told by its
*row*: the sorted list of its edges' (colour, colour, value).  Equal rows are isomorphic
components.  Where there are few kinds of edge, the numbers of each are compared instead of
rows; otherwise rows are grouped by hash and then compared entry by entry, so that no hash
collision can merge two classes.  The problem has one component of each class, its
representative; its labels are written out for all.

All of this is one module, as its steps hand on the same arrays of elements and their colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import lookup, unique
from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box
from layoutopt.boxes.merge import boxes_of
from layoutopt.graphs.locations import FixedElements, LayoutDict, Origins
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.groups import (
    EdgeList,
    Edges,
    Group,
    Numbering,
    PrecedenceConflicts,
    edges_of,
    first_uses,
)
from layoutopt.network.components import components
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    Precedence,
    WeightArray,
    merge_parallel,
    owners,
)

FEW = 16  # up to so many colours, or kinds of edge, are looked at one by one; more are sorted


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


Hash = NDArray[np.uint64]

ROUNDS = 200  # refinement steps after which the remaining components count as unlike any other


def mix(values: NDArray[Any], salt: int) -> Hash:
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
    """Return class of each component, and size and first member of each class.

    ``where`` and ``kind`` are component and kind of each edge.
    """
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


def pieces_of(graph: GraphStore, tensors: IntArray, elements: IntArray) -> tuple[Piece, ...]:
    """Write the origins of a sink's elements, root tensor and flat element, as pieces.

    Elements whose tensor is -1 are in none.
    """
    found = (box for box in boxes_of(tensors, elements) if box.label >= 0)
    return tuple((graph.tensor_name(b.label), b.start, b.to, b.loops) for b in found)


def layouts_of(graph: GraphStore, origins: Origins) -> LayoutDict:
    """Return origins of sink elements, by the sinks' numbers, as layouts."""
    return {graph.tensor_name(sink): pieces_of(graph, *own) for sink, own in origins.items()}


def reduce_kind(
    graph: GraphStore,
    groups: Sequence[Group],
    values: list[int],
    conflicts: PrecedenceConflicts,
    given: FixedElements,
    tiles: int,
) -> GroupKind:
    """Trace a group and find the representatives of its components; all groups have one key.

    Values are those of the graph's pairs, as multiples of one unit.  With a number of tiles,
    components on different tiles are never of one class.
    """
    edges = edges_of(graph, groups[0], values, given, tiles)
    numbers = edges.numbers
    sizes = np.diff(numbers.starts[: len(numbers.sinks) + 1])
    colour: IntArray = np.repeat(_small(len(numbers.sinks)), sizes)
    readers = [conflicts.readers[t] for t in numbers.sinks if t in conflicts.readers]
    read_by = np.concatenate(readers) if readers else None
    if read_by is not None:
        colour = np.unique(
            colour * np.int64(len(conflicts.reader_sets)) + read_by, return_inverse=True
        )[1]
    origin = origins_of(numbers, apart=tiles > 0)
    classes = find_classes(edges, colour, origin)
    kind = represent(graph, tuple(groups), edges, classes, conflicts, read_by, origin)
    return replace(kind, given=_given_numbers(graph, numbers, given))


def origins_of(numbers: Numbering, apart: bool) -> IntArray:
    """Return a number for the tensor of each location, and one for each mapped one, or for all."""
    sizes = np.diff(numbers.starts[len(numbers.sinks) :]).tolist()
    sizes += [1] * len(numbers.pool) if apart else [len(numbers.pool)]
    return np.repeat(_small(len(sizes)), sizes)


def _given_numbers(
    graph: GraphStore, numbers: Numbering, given: FixedElements
) -> tuple[IntArray, IntArray] | None:
    """Return :attr:`GroupKind.given`."""
    if not any(given.touches(t) for t in numbers.sinks):
        return None
    placed, own = [], []
    for t, start in zip(numbers.sinks, numbers.starts.tolist(), strict=False):
        elements = np.arange(start, start + size(graph.shapes[t]), dtype=numbers.dtype)
        none = np.full(len(elements), -1, numbers.dtype)
        tensors, of = given.own(t)
        usual = (tensors == t) & (of == np.arange(len(of)))
        stood_in = numbers.locate(graph, np.where(usual, -1, tensors), of)
        own.append(np.where(usual, elements, stood_in))
        placed.append(numbers.locate(graph, *given.origins[t]) if t in given.origins else none)
    return np.concatenate(placed), np.concatenate(own)


def _small(count: int) -> IntArray:
    """Return ``0 .. count-1`` in the smallest signed type that holds them."""
    return np.arange(count, dtype=np.min_scalar_type(-count - 1))


def represent(
    graph: GraphStore,
    groups: tuple[Group, ...],
    edges: Edges,
    classes: Classes,
    conflicts: PrecedenceConflicts,
    read_by: IntArray | None,
    origin: IntArray,
) -> GroupKind:
    """Write the representatives of classes down as a labelling problem.

    ``read_by`` is for each free element the index of the set of barriers that read it, ``None``
    where order does not matter; ``origin`` is for each location, by number less the number of free
    elements, the place among the fixed tensors of the one that it is of.
    """
    free, component = edges.numbers.free, classes.component
    chosen = np.zeros(len(classes.class_of), bool)
    chosen[classes.representative] = True
    nodes = np.flatnonzero(chosen[component])
    copies = [int(c) * len(groups) for c in classes.copies]
    bonds = np.flatnonzero(chosen[component[edges.agree.first]])
    ties = np.flatnonzero(chosen[component[edges.earn.first]])
    place = np.zeros(len(component), np.int64)
    place[nodes] = np.arange(len(nodes))
    tied = edges.earn.first[ties]
    key = component[tied] * np.int64(edges.numbers.total) + edges.earn.second[ties]
    label_key, first, label = np.unique(key, return_index=True, return_inverse=True)
    ends = place[np.stack([edges.agree.first[bonds], edges.agree.second[bonds]], axis=1)]
    class_of = classes.class_of[component]
    pairs, weights = merge_parallel(
        np.sort(ends, axis=1), _worth(edges, edges.agree, bonds, class_of, copies)
    )
    reward_at, rewards = merge_parallel(
        np.stack([place[tied], label], axis=1), _worth(edges, edges.earn, ties, class_of, copies)
    )
    precedence = None
    if read_by is not None:
        barrier = {b: k for k, b in enumerate(conflicts.barriers)}
        fixed = [barrier.get(graph.producers[t], -1) for t in edges.numbers.fixed]
        offered = np.array([*fixed, -1])[origin[edges.earn.second[ties[first]] - free]]
        precedence = Precedence(
            len(conflicts.barriers),
            conflicts.arcs,
            offered,
            tuple(conflicts.reader_sets),
            read_by[nodes],
        )
    problem = Labelling(
        len(nodes), len(first), pairs, weights, reward_at, rewards, precedence=precedence
    )
    colour = classes.label_colour[ties[first]]
    return GroupKind(graph, groups, edges, classes, nodes, colour, label_key, problem)


def _worth(
    edges: Edges, of: EdgeList, which: IntArray, class_of: IntArray, copies: list[int]
) -> WeightArray:
    """Return what edges are worth in all copies of their component together."""
    if not len(which):
        return np.zeros(0, np.int64)
    value, times = of.value[which], class_of[of.first[which]]
    largest = max(map(abs, edges.values)) * max(copies)
    kind: Any = np.int64 if largest * len(which) < 2**61 else object
    table, count = np.array(edges.values, kind), np.array(copies, kind)
    worth: WeightArray = table[value] * count[times]
    return worth


TABLE = 2**16  # tables of so many entries are always small enough


@dataclass(frozen=True, eq=False)
class GroupKind:
    """All groups that are the same problem."""

    graph: GraphStore
    groups: tuple[Group, ...]
    edges: Edges  # of the elements of the first group, which stand for those of all
    classes: Classes  # of these elements
    nodes: IntArray  # the free elements that are the problem's nodes, ascending
    label_colour: IntArray  # colour of each of the problem's labels
    # for each label, ascending, its component times the number of roots, plus its location
    label_key: IntArray
    # the representatives of the classes, weights multiplied by the number of copies
    problem: Labelling
    # where elements of the group are given, or own other fresh locations than usual: for each free
    # element the number of the given location, or -1, and of the fresh one that it owns
    given: tuple[IntArray, IntArray] | None = None

    @property
    def constant(self) -> int:
        """What one group earns whatever is chosen."""
        return self.edges.constant

    @property
    def copies(self) -> list[int]:
        """The number of components of each class, in one group."""
        return [int(count) for count in self.classes.copies]

    @property
    def node_class(self) -> IntArray:
        """The class of the component of each of the problem's nodes."""
        return self.classes.class_of[self.classes.component[self.nodes]]

    def units(self) -> tuple[IntArray, IntArray]:
        """Return the components that layouts are written out from, and how many each stands for."""
        found = np.flatnonzero(self.classes.class_of >= 0)
        return found, np.ones(len(found), np.int64)

    def put(self, components: IntArray, starts: IntArray, tiles: IntArray) -> IntArray:
        """Return what every free element takes, as :meth:`spread` does, if components have tiles.

        Tiles are those of the nodes of each component, in the order of its class's nodes, from
        ``starts``.
        """
        classes = self.classes
        if not len(self.nodes):
            return np.arange(len(classes.component))
        of = self.node_class
        order = np.argsort(of, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(of[order], of[order])
        begin = np.full(len(classes.class_of), -1)
        begin[components] = starts
        model, where = self.models(), np.arange(len(classes.component))
        taken = (model >= 0) & (begin[classes.component] >= 0)
        place = begin[classes.component[taken]] + rank[model[taken]]
        where[taken] = self.edges.numbers.starts[-1] + tiles[place]
        return where

    @property
    def tied(self) -> int:
        """The number of sink elements, in one group, that a pair reaches."""
        return int(np.count_nonzero(self.classes.class_of[self.classes.component] >= 0))

    def boxes(self, where: IntArray) -> list[list[Box]]:
        """Return the boxes of each sink of the first group; ``where`` is that of :meth:`spread`.

        Origins of boxes count the group's sinks, then its fixed tensors; the one after the last
        stands for the tiles of a tile memory.
        """
        numbers = self.edges.numbers
        starts = numbers.starts[: len(numbers.sinks) + 1].tolist()
        return [boxes_of(*self._origins(where[a:b])) for a, b in pairwise(starts)]

    def spread(self, labels: IntArray) -> IntArray:
        """Return what every free element of the first group takes, from labels of all nodes.

        That is the number of a location, or of the free element that owns the fresh location.
        """
        where = self._chosen(labels)
        if self.given is None:
            return where
        placed, own = self.given
        fresh = where < len(own)
        where[fresh] = own[where[fresh]]
        return np.where(placed >= 0, placed, where)

    def _chosen(self, labels: IntArray) -> IntArray:
        """Return what every free element takes if none is given."""
        classes, earn = self.classes, self.edges.earn
        component, colour = classes.component, classes.node_colour
        where = np.arange(len(component), dtype=self.edges.numbers.dtype)
        if not len(self.nodes):
            return where
        model = self.models()
        named = np.append(labels < self.problem.labels, False)  # the last for no model
        fresh = np.append(labels >= self.problem.labels, False)
        take = np.flatnonzero(named[model])
        if len(take):
            wanted = self.label_colour[np.where(named[:-1], labels, 0)]
            where[take] = find(
                (component[earn.first], classes.label_colour, earn.second),
                component[take],
                wanted[model[take]],
            )
        take = np.flatnonzero(fresh[model])
        if len(take):
            owner = owners(component[self.nodes], labels)
            where[take] = find(
                (component, colour, np.arange(len(component), dtype=where.dtype)),
                component[take],
                colour[self.nodes][owner][model[take]],
            )
        return where

    def models(self) -> IntArray:
        """Return the problem's node that stands for each free element, -1 where none does."""
        classes = self.classes
        if not len(self.nodes):
            return np.full(len(classes.component), -1)
        class_of = classes.class_of[classes.component]
        width = np.int64(int(classes.node_colour.max()) + 1)
        key = np.where(class_of >= 0, class_of * width + classes.node_colour, -1)
        own, size = key[self.nodes], len(classes.copies) * int(width) + 1
        if size <= 2 * len(key) + TABLE:
            table = np.full(size, -1, classes.component.dtype)
            table[own] = np.arange(len(own))
            return table[key]  # the last entry, for -1, stays -1
        order = np.argsort(own)
        found = order[np.minimum(np.searchsorted(own[order], key), len(own) - 1)]
        return np.where(key >= 0, found, -1)

    def labels(self, origins: Origins) -> IntArray:
        """Return the labels that the problem's nodes have in given layouts.

        ``origins`` are for each sink, by tensor number, root tensor and flat element of each
        location.
        """
        where = self._numbers(origins)
        component = self.classes.component[self.nodes]
        key = component * np.int64(self.edges.numbers.total) + where
        at, named = lookup(self.label_key, key)
        where = np.where(where < 0, -1 - self.nodes, where)
        return np.where(named, at, self.problem.labels + owners(component, where))

    def _numbers(self, origins: Origins) -> IntArray:
        """Return the location numbers that the nodes have in the first group."""
        numbers, group = self.edges.numbers, self.groups[0]
        tensors, elements = (
            np.concatenate([np.zeros(0, np.int64), *(origins[t][i] for t in group.sinks)])[
                self.nodes
            ]
            for i in (0, 1)
        )
        where = numbers.locate(self.graph, tensors, elements)
        for t, start in zip(group.sinks, numbers.starts.tolist(), strict=False):
            fresh = (tensors == t) & (where < 0)
            where[fresh] = start + elements[fresh]
        return where

    def _origins(self, where: IntArray) -> tuple[IntArray, IntArray]:
        """Return root tensor (sinks first, then fixed ones) and flat element of numbers.

        A location that a mapping gives is named by the first element that has it.
        """
        numbers = self.edges.numbers
        starts = numbers.starts.astype(where.dtype)
        tensor = np.searchsorted(starts, where, side="right").astype(where.dtype) - 1
        element = where - starts[tensor]
        if numbers.pool:
            fixed = enumerate(numbers.fixed, len(numbers.sinks))
            parts = ((k, t, 0, size(self.graph.shapes[t])) for k, t in fixed)
            last = len(numbers.sinks) + len(numbers.fixed)
            firsts = first_uses(self.graph, numbers.pool, parts, last)
            pooled = where >= numbers.starts[-1]
            tensor[pooled], element[pooled] = firsts[element[pooled]].T
        return tensor, element


def memory_needed(graph: GraphStore, group: Group) -> int:
    """Return roughly how many bytes tracing and classifying a group takes."""
    elements = sum(size(graph.shapes[t]) for t in group.tensors)
    edges = sum(size(graph.shapes[graph.pairs[p][0]]) for p in group.pairs)
    return 4 * elements + 45 * edges
