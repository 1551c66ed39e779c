"""The places of one group: representative cells, numbered through within each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from layoutopt.dense.boxes import Box
from layoutopt.dense.groups import Group
from layoutopt.graphs.op import Kind, size
from layoutopt.graphs.ops import Concat
from layoutopt.graphs.store import Store
from layoutopt.integers import unique
from layoutopt.lifting.cells import family_cells, flat_elements
from layoutopt.lifting.expand import Expansion
from layoutopt.lifting.families import NOTHING, VIEW
from layoutopt.lifting.reduced import reduce_group
from layoutopt.lifting.systems import orbits_of
from layoutopt.problem import IntArray


class GroupPlaces:
    """The cells of a group's tensors that stand for elements, with all that relates them.

    Tensors are those of the group, ``group.tensors``; a cell of a tensor is known by its place
    among those of all the tensor's parts.

    Parameters
    ----------
    graph
        The graph.
    group
        The group.
    free
        For each tensor whether some of its elements come from a sink.

    Attributes
    ----------
    elements
        For each tensor the flat element that each place is.
    views
        For each view, by its output: from where each place comes, as a number that counts
        through the places of all carriers, and the first number of each carrier, and their end.
    pairs
        For each pair, by number: the places of its first and of its second tensor that are drawn
        together.

    Raises
    ------
    SizeError
        If views are too irregular.
    """

    def __init__(self, graph: Store, group: Group, free: Sequence[bool]) -> None:
        self.graph, self.group = graph, group
        orbits = orbits_of(graph, group, free, lowest=True)
        self.reduced = reduce_group(graph, orbits, [0] * len(graph.pairs))
        self.parts = orbits.slotted.system.parts
        self.elements: dict[int, IntArray] = {t: np.zeros(0, np.int64) for t in group.tensors}
        self._place: list[IntArray] = []
        for p, part in enumerate(self.parts):
            real = self.reduced.tensors[p] >= 0
            known = self.elements[part.tensor]
            place = np.full(real.shape, -1)
            place[real] = len(known) + np.arange(np.count_nonzero(real))
            self._place.append(place)
            flat = flat_elements(self.reduced.cells, p)[real] + part.start
            self.elements[part.tensor] = np.concatenate([known, flat])
        self.views = self._views()
        self.pairs = self._pairs()
        self._numbers = self._root_numbers()
        self._expansion = Expansion(self.reduced, np.zeros((0, 2), np.int64))
        self._boxes: dict[bytes, dict[int, list[Box]]] = {}

    def boxes(self, chosen: dict[int, tuple[IntArray, IntArray]]) -> dict[int, list[Box]]:
        """Return the boxes of each sink.

        Parameters
        ----------
        chosen
            For each place of each sink the root tensor and the place there whose location it
            takes.
        """
        where = np.arange(self.reduced.edges.numbers.free)
        for sink, (tensors, places) in chosen.items():
            taken = np.empty(len(places), np.int64)
            for t in unique(tensors).tolist():
                here = tensors == t
                taken[here] = self._numbers[t][places[here]]
            where[self._numbers[sink]] = taken
        # Groups of one key mostly choose the same.
        key = where.tobytes()
        if key not in self._boxes:
            self._boxes[key] = self._expansion.boxes(where)
        return self._boxes[key]

    def _related(self, f: int) -> tuple[IntArray, IntArray]:
        """Return the places of either side that a family relates."""
        family = self.reduced.cells.orbits.slotted.system.families[f]
        out, inp = family_cells(self.reduced.cells, f)
        sides = self._place[family.out][out], self._place[family.inp][inp]
        one, other = (side.reshape(-1) for side in np.broadcast_arrays(*sides))
        return one, other

    def _views(self) -> dict[int, tuple[IntArray, list[int]]]:
        found = {}
        for t in self.group.tensors:
            if self.graph.ops[self.graph.producers[t]].kind is Kind.VIEW:
                carriers = self.graph.carriers(self.graph.producers[t])
                counts = [len(self.elements[self.group.firsts[c]]) for c in carriers]
                starts = list(accumulate(counts, initial=0))
                found[t] = np.full(len(self.elements[t]), -1), starts
        for f, family in enumerate(self.reduced.cells.orbits.slotted.system.families):
            if family.inp != NOTHING and family.pair == VIEW:
                out, inp = self._related(f)
                t = self.parts[family.out].tensor
                source, starts = found[t]
                source[out] = inp + np.array(starts)[self._carrier(t, self.elements[t][out])]
        return found

    def _carrier(self, t: int, elements: IntArray) -> IntArray:
        """Return which carrier each of some elements of a view comes from."""
        op, shape = self.graph.ops[self.graph.producers[t]], self.graph.shapes[t]
        if not isinstance(op, Concat):
            return np.zeros(len(elements), np.int64)
        widths = [
            self.graph.shapes[c][op.axis] for c in self.graph.carriers(self.graph.producers[t])
        ]
        index = elements // size(shape[op.axis + 1 :]) % shape[op.axis]
        carrier: IntArray = np.searchsorted(np.cumsum(widths), index, side="right")
        return carrier

    def _pairs(self) -> dict[int, tuple[IntArray, IntArray]]:
        found: dict[int, list[tuple[IntArray, IntArray]]] = {p: [] for p in self.group.pairs}
        for f, family in enumerate(self.reduced.cells.orbits.slotted.system.families):
            if family.pair != VIEW:
                found[family.pair].append(self._related(f))
        none = np.zeros(0, np.int64)
        return {
            p: (
                np.concatenate([none, *(a for a, _ in sides)]),
                np.concatenate([none, *(b for _, b in sides)]),
            )
            for p, sides in found.items()
        }

    def _root_numbers(self) -> dict[int, IntArray]:
        """Return for each root tensor the number of the cell of each place."""
        found: dict[int, IntArray] = {}
        starts = self.reduced.edges.numbers.starts.tolist()
        for p, start in zip(self.reduced.roots, starts, strict=False):
            known = found.get(self.parts[p].tensor, np.zeros(0, np.int64))
            cells = start + np.flatnonzero(self._place[p] >= 0)
            found[self.parts[p].tensor] = np.concatenate([known, cells])
        return found
