"""A graph as a labelling problem, and the way from its labels back to layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box
from layoutopt.graphs.layouts import Given
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import TILE
from layoutopt.lowering.elements.groups import Group
from layoutopt.lowering.elements.kinds import GroupKind
from layoutopt.lowering.elements.representatives import LayoutDict, pieces_of
from layoutopt.network.problem import IntArray, Labelling

if TYPE_CHECKING:
    from layoutopt.lowering.classes.kinds import LiftedKind

ClassKind: TypeAlias = "GroupKind | LiftedKind"


@dataclass(frozen=True, eq=False)
class Lowered:
    """A graph as a labelling problem.

    Parameters
    ----------
    graph
        The graph.
    problem
        Its representatives.  ``unit * (constant + problem.value(labels))`` is the score of
        the layouts that :meth:`layouts` gives.
    constant, unit
        What is earned whatever is chosen, and what one is worth.
    kinds
        The different groups.
    size
        Counts by name: ``unconstrained`` sink elements, ``groups``, ``group_kinds``,
        ``components``, ``classes``.
    given
        What is given beforehand.
    """

    graph: GraphStore
    problem: Labelling
    constant: int
    unit: Fraction
    kinds: tuple[ClassKind, ...]
    size: dict[str, int]
    given: Given

    def layouts(self, labels: IntArray) -> LayoutDict:
        """Return the layouts of all sinks for labels of the problem's nodes.

        Unconstrained elements keep a location of their own.
        """
        found: LayoutDict = {}
        node, label = 0, 0
        for kind in self.kinds:
            own = labels[node : node + kind.problem.nodes]
            fresh = own - self.problem.labels - node + kind.problem.labels
            where = kind.spread(np.where(own < self.problem.labels, own - label, fresh))
            found |= self.pieces(kind.boxes(where), kind.groups)
            node, label = node + kind.problem.nodes, label + kind.problem.labels
        return self.completed(found)

    def pieces(self, boxes: Sequence[Sequence[Box]], groups: Sequence[Group]) -> LayoutDict:
        """Return the layouts of the sinks of groups that are alike.

        Parameters
        ----------
        boxes
            The boxes of each sink, as kinds return them.
        """
        return {
            self.graph.tensor_name(group.sinks[place]): tuple(
                _piece(self.graph, group, box) for box in own
            )
            for place, own in enumerate(boxes)
            for group in groups
        }

    def completed(self, layouts: LayoutDict) -> LayoutDict:
        """Return layouts with those of sinks that no group needs, in the graph's order."""
        return {
            sink.name: layouts[sink.name] if sink.name in layouts else self._untied(sink.index)
            for sink in self.graph.sinks()
        }

    def _untied(self, t: int) -> tuple[Piece, ...]:
        """Return the layout of a sink that no group needs."""
        name, count = self.graph.tensor_name(t), size(self.graph.shapes[t])
        if self.given.touches(t):
            return pieces_of(self.graph, *self.given.placed(t, self.given.own(t)))
        return ((name, 0, 0, ((count, 1, 1),)),) if count else ()

    def labels(self, origins: Origins) -> IntArray:
        """Return labels of the problem's nodes from layouts.

        Parameters
        ----------
        origins
            For each sink, by tensor number, root tensor and flat element of each location.
        """
        found = [np.zeros(0, np.int64)]
        node, label = 0, 0
        for kind in self.kinds:
            own = kind.labels(origins)
            fresh = own - kind.problem.labels + self.problem.labels + node
            found.append(np.where(own < kind.problem.labels, own + label, fresh))
            node, label = node + kind.problem.nodes, label + kind.problem.labels
        return np.concatenate(found)


class SolvedGraph(NamedTuple):
    """A graph's labelling problem, and the labels that a solver found."""

    lowered: Lowered
    labels: IntArray


def _piece(graph: GraphStore, group: Group, box: Box) -> Piece:
    roots = (*group.sinks, *group.fixed)
    known = box.label < len(roots)
    name = graph.tensor_name(roots[box.label]) if known else TILE
    return name, box.start, box.to, box.loops
