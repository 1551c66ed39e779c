"""Classes: isomorphic components of the element graph, found and confirmed.

A component's nodes are its free elements and, as nodes of its own, the locations that they
may earn.  Once no two nodes of a component share a colour, the component is told by its
*row*: the sorted list of its edges' (colour, colour, value).  Equal rows are isomorphic
components.  Rows are grouped by hash and then compared entry by entry, so that no hash
collision can merge two kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.dense.edges import EdgeList, Edges
from layoutopt.dense.refine import mix, refine
from layoutopt.problem import IntArray


@dataclass(frozen=True, eq=False)
class Classes:
    """Components of a group's free elements, and their classes.

    Parameters
    ----------
    component
        Component of each free element.
    class_of
        Class of each component; -1 for an element that no edge touches.
    copies
        Number of components in each class.
    representative
        One component of each class.
    node_colour
        Colour of each free element; no two of one component share one.
    label_colour
        Colour of each earn edge's location; no two locations of one component share one.
    """

    component: IntArray
    class_of: IntArray
    copies: IntArray
    representative: IntArray
    node_colour: IntArray
    label_colour: IntArray


def find_classes(edges: Edges, node_colour: IntArray, location_colour: IntArray) -> Classes:
    """Split a group into components and find which are isomorphic.

    Parameters
    ----------
    node_colour
        What tells free elements apart from the start: small integers; elements of different
        colour are never matched with each other.
    location_colour
        The same for locations, by number less the number of free elements.
    """
    component, count = _components(edges.agree, edges.numbers.free)
    label_colour = location_colour[edges.earn.second - edges.numbers.free]
    odd = np.zeros(count, bool)
    _mark_twins(odd, component, np.arange(edges.numbers.free), node_colour)
    _mark_twins(odd, component[edges.earn.first], edges.earn.second, label_colour)
    if odd.any():
        node_colour, label_colour = _refined(edges, component, odd, node_colour, label_colour)
    rows = _rows(edges, component, node_colour, label_colour)
    class_of, copies, first = _grouped(*rows, count)
    return Classes(component, class_of, copies, first, node_colour, label_colour)


def _components(agree: EdgeList, free: int) -> tuple[IntArray, int]:
    if not len(agree.first):
        return np.arange(free), free
    ones = np.ones(len(agree.first), bool)
    matrix = coo_array((ones, (agree.first, agree.second)), shape=(free, free))
    count, component = connected_components(matrix, directed=False)
    return component, int(count)


def _mark_twins(
    odd: NDArray[np.bool_], component: IntArray, things: IntArray, colour: IntArray
) -> None:
    """Mark components in which two different things have one colour."""
    seen = np.zeros(len(odd), things.dtype)
    for one in range(int(colour.max(initial=-1)) + 1):
        here = np.flatnonzero(colour == one)
        where = component[here]
        seen[where] = things[here]
        odd[where[seen[where] != things[here]]] = True


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
        np.concatenate([node_colour[nodes], top + label_colour[ties[first]]]),
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


def _rows(
    edges: Edges, component: IntArray, node_colour: IntArray, label_colour: IntArray
) -> tuple[IntArray, IntArray]:
    """Return component and kind of every edge, sorted by component and then by kind.

    Two edges have one kind if their ends' colours and their values are equal, and they
    both agree or both earn.
    """
    one, two = node_colour[edges.agree.first], node_colour[edges.agree.second]
    near = np.concatenate([np.minimum(one, two), node_colour[edges.earn.first]])
    far = np.concatenate([np.maximum(one, two), label_colour])
    value = np.concatenate([edges.agree.value, edges.earn.value + len(edges.values)])
    kind = _numbered([near, far, value])
    where = np.concatenate([component[edges.agree.first], component[edges.earn.first]])
    kinds = int(kind.max(initial=0)) + 1
    key = np.sort(where * np.int64(kinds) + kind)
    return key // kinds, key % kinds


def _numbered(columns: Sequence[IntArray]) -> IntArray:
    """Return equal numbers for equal rows of a table: mixed radix, packed again when large."""
    number = np.zeros(len(columns[0]), np.int64)
    size = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            number = np.unique(number, return_inverse=True)[1]
            size = int(number.max(initial=0)) + 1
        number = number * width + column
        size *= width
    return np.unique(number, return_inverse=True)[1] if size > len(number) else number


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
