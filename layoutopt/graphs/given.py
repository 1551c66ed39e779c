"""Sink elements whose locations are given beforehand, so that nothing is left to choose.

A given element counts as a fixed one: wherever its tensor is traced, the number of its
location stands in its place.  Locations that sink elements own, *fresh* ones, may be given
too.  Where the owner itself stays free, it needs another fresh location to choose, or its
choice would be mistaken for the given one: it gets a *stand-in*, the own location of some
given element, which nobody else can take.
"""

from __future__ import annotations

import numpy as np

from layoutopt.graphs.locations import Origins
from layoutopt.graphs.op import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.integers import unique


class Given:
    """The given elements of a graph.

    Parameters
    ----------
    graph
        The graph.
    origins
        For sinks, by tensor number: root tensor and flat element of each location; a tensor
        of -1 where nothing is given.

    Attributes
    ----------
    count
        The number of given elements.
    """

    def __init__(self, graph: GraphStore, origins: Origins | None = None) -> None:
        self.graph = graph
        self.origins = {t: o for t, o in (origins or {}).items() if (o[0] >= 0).any()}
        self.count = sum(int(np.count_nonzero(o[0] >= 0)) for o in self.origins.values())
        self._stand_ins = self._find_stand_ins()

    def whole(self, t: int) -> bool:
        """Return whether all elements of a sink are given."""
        return t in self.origins and bool((self.origins[t][0] >= 0).all())

    def touches(self, t: int) -> bool:
        """Return whether a sink differs from one of which nothing is given."""
        return t in self.origins or t in self._stand_ins

    def tensors(self, t: int) -> set[int]:
        """Return the root tensors whose locations elements of a sink are given or own."""
        found: set[int] = set()
        for table in (self.origins, self._stand_ins):
            if t in table:
                found.update(unique(table[t][0]).tolist())
        return found - {-1}

    def own(self, t: int) -> tuple[Array, Array]:
        """Return root tensor and flat element of the fresh locations that a sink's elements own."""
        if t in self._stand_ins:
            return self._stand_ins[t]
        elements = np.arange(size(self.graph.shapes[t]))
        return np.full(len(elements), t), elements

    def placed(self, t: int, own: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return origins of a sink's elements, the given ones in place of others.

        Parameters
        ----------
        own
            Origins of those that are not given.
        """
        if t not in self.origins:
            return own
        tensors, elements = self.origins[t]
        return np.where(tensors >= 0, tensors, own[0]), np.where(tensors >= 0, elements, own[1])

    def _find_stand_ins(self) -> Origins:
        """Pair free owners of given locations with given elements that own none."""
        self._named: dict[int, Array] = {}
        for tensors, elements in self.origins.values():
            for t in unique(tensors[tensors >= 0]).tolist():
                if self.graph.ops[self.graph.producers[t]].kind is Kind.SINK:
                    named = self._named.setdefault(t, np.zeros(size(self.graph.shapes[t]), bool))
                    named[elements[tensors == t]] = True
        spare = self._spare()
        found: Origins = {}
        for t, named in self._named.items():
            free = self.origins[t][0] < 0 if t in self.origins else np.ones(len(named), bool)
            owners = np.flatnonzero(named & free)
            if len(owners):
                tensors, elements = np.full(len(named), t), np.arange(len(named))
                tensors[owners], elements[owners] = spare[:, : len(owners)]
                spare = spare[:, len(owners) :]
                found[t] = tensors, elements
        return found

    def _spare(self) -> Array:
        """Return the given elements, tensor and element, whose own location is not given."""
        parts = [np.zeros((2, 0), np.int64)]
        for t, (tensors, _) in self.origins.items():
            spare = tensors >= 0
            if t in self._named:
                spare &= ~self._named[t]
            elements = np.flatnonzero(spare)
            parts.append(np.stack([np.full(len(elements), t), elements]))
        return np.concatenate(parts, axis=1)
