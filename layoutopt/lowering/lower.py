"""Lowering of a graph to one labelling problem, and of its labels back to layouts.

Each kind of group is traced once.  Of each class of isomorphic components one
representative goes into the problem, its weights multiplied by the number of copies in all
groups of that kind, so that the problem's optimum is the graph's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, fits_memory, require
from layoutopt.base.numbers import to_integers
from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box
from layoutopt.graphs.locations import TILE, FixedElements, LayoutDict, Origins, fresh_layouts
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.groups import (
    Group,
    PrecedenceConflicts,
    find_conflicts,
    find_cycles,
    find_groups,
    free_tensors,
    key_of,
    sources_of,
)
from layoutopt.lowering.elements.kinds import GroupKind, memory_needed, pieces_of, reduce_kind
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    Precedence,
    WeightArray,
    exact_integers,
)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A graph as a labelling problem."""

    graph: GraphStore
    # its representatives. `unit * (constant + problem.value(labels))` is the score of the layouts
    # that `layouts` gives
    problem: Labelling
    constant: int  # what is earned whatever is chosen
    unit: Fraction  # what one is worth
    kinds: tuple[GroupKind, ...]  # the different groups
    # counts by name: `unconstrained` sink elements, `groups`, `group_kinds`, `components`,
    # `classes`
    size: dict[str, int]
    given: FixedElements  # what is given beforehand

    def layouts(self, labels: IntArray) -> LayoutDict:
        """Return the layouts of all sinks for labels of the problem's nodes.

        Unconstrained elements keep a location of their own.
        """
        found: LayoutDict = {}
        for kind, own in zip(self.kinds, self.split(labels), strict=True):
            found |= self.pieces(kind.boxes(kind.spread(own)), kind.groups)
        return self.completed(found)

    def split(self, labels: IntArray) -> list[IntArray]:
        """Return labels of the nodes of each kind from labels of the problem's nodes."""
        found, node, label = [], 0, 0
        for kind in self.kinds:
            own = labels[node : node + kind.problem.nodes]
            fresh = own - self.problem.labels - node + kind.problem.labels
            found.append(np.where(own < self.problem.labels, own - label, fresh))
            node, label = node + kind.problem.nodes, label + kind.problem.labels
        return found

    def pieces(self, boxes: Sequence[Sequence[Box]], groups: Sequence[Group]) -> LayoutDict:
        """Return the layouts of the sinks of groups that are alike, from each sink's boxes."""
        return {
            self.graph.tensor_name(group.sinks[place]): tuple(
                _piece(self.graph, group, box) for box in own
            )
            for place, own in enumerate(boxes)
            for group in groups
        }

    def completed(self, layouts: LayoutDict) -> LayoutDict:
        """Return layouts with those of sinks that no group needs, in the graph's order."""
        found, given = fresh_layouts(self.graph) | layouts, self.given
        for sink in self.graph.sinks():
            if sink.name not in layouts and given.touches(sink.index):
                origins = given.placed(sink.index, given.own(sink.index))
                found[sink.name] = pieces_of(self.graph, *origins)
        return found

    def labels(self, origins: Origins) -> IntArray:
        """Return labels of the problem's nodes from layouts.

        ``origins`` are for each sink, by tensor number, root tensor and flat element of each
        location.
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


LIFT_FROM = 10**5  # groups of so many pair positions are solved without touching their elements
CONTEST_BYTES = 40  # what finding the readers of an element takes

PER_GROUP = 1000
"""Of groups with more tensors and pairs than this, so many more positions are asked for."""


def lower(
    graph: GraphStore,
    limits: Limits,
    given: FixedElements | None = None,
    lift_from: int = LIFT_FROM,
    tiles: int = 0,
) -> Lowered:
    """Return a graph's labelling problem.

    Groups of ``lift_from`` or more pair positions are lifted, smaller ones traced element by
    element. With the number of tiles of the graph's memory, components whose sources lie on
    different tiles, or whose sinks have elements of different bytes, are of different classes.
    Raises ``SizeError`` if the graph's tensors do not fit this machine's memory, and
    ``TimeoutError`` if time runs out.
    """
    values, unit = to_integers([value for _, _, value in graph.pairs])
    given = FixedElements(graph) if given is None else given
    groups = find_groups(graph, given)
    free = free_tensors(graph, given)
    work = _Work(graph, limits, given, groups, values, free, lift_from, tiles)
    kinds, conflicts = work.done()
    constant = sum(kind.constant * len(kind.groups) for kind in kinds)
    problem = _joined([kind.problem for kind in kinds], conflicts)
    sizes = _sizes(graph, groups, kinds, given)
    return Lowered(graph, problem, constant, unit, tuple(kinds), sizes, given)


@dataclass(frozen=True, eq=False)
class _Work:
    """Inputs of the lowering of a graph's groups."""

    graph: GraphStore
    limits: Limits
    given: FixedElements
    groups: Sequence[Group]
    values: list[int]
    free: Sequence[bool]
    lift_from: int
    tiles: int

    def done(self) -> tuple[list[GroupKind], PrecedenceConflicts]:
        """Lower all groups; where barrier order is too irregular to be lifted, by elements."""
        self.limits.report("barriers")
        barriers, contested = find_cycles(self.graph, self.groups, self.given)
        if not contested:
            conflicts = PrecedenceConflicts()
            return self._kinds(conflicts), conflicts
        read = sources_of(self.graph, {t for b in barriers for t in self.graph.op_inputs[b]})
        tensors = {t for g in contested for t in self.groups[g].tensors}.union(read)
        elements = sum(size(self.graph.shapes[t]) for t in tensors)
        if not self.given.count and self._pays(elements, len(tensors)):
            from layoutopt.lowering.classes.kinds import conflicts_by_classes

            try:
                conflicts = conflicts_by_classes(self.graph, barriers, contested, self.free)
                return self._kinds(conflicts), conflicts
            except SizeError as error:
                if not fits_memory(CONTEST_BYTES * elements):
                    raise error from None
        require(CONTEST_BYTES * elements, "barrier order, looked at element by element,")
        conflicts = find_conflicts(self.graph, self.groups, self.given, barriers, contested)
        return self._kinds(conflicts), conflicts

    def _kinds(self, conflicts: PrecedenceConflicts) -> list[GroupKind]:
        """Lower one group of each kind."""
        alike: dict[Hashable, list[Group]] = {}
        for g, group in enumerate(self.groups):
            alone = g in conflicts.groups or any(map(self.given.touches, group.tensors))
            key: Hashable = g if alone else self._key(group)
            alike.setdefault(key, []).append(group)
        kinds: list[GroupKind] = []
        for n, (key, members) in enumerate(alike.items()):
            if self.limits.over:
                raise TimeoutError
            self.limits.report(f"tracing group {n + 1} of {len(alike)}")
            if key in conflicts.groups and conflicts.lifted:
                kinds.append(self._lifted(members, conflicts, contested=True))
            else:
                kinds.append(self._kind(members, conflicts, alone=isinstance(key, int)))
        return kinds

    def _key(self, group: Group) -> Hashable:
        """Return a key of groups that are the same problem."""
        key = key_of(self.graph, group)
        memory = self.graph.tile_memory if self.tiles else None
        if memory is None:
            return key
        return key, tuple(memory.bytes_of(self.graph.tensor_name(t)) for t in group.sinks)

    def _kind(
        self, groups: Sequence[Group], conflicts: PrecedenceConflicts, alone: bool
    ) -> GroupKind:
        """Lift groups of one key if that pays, or trace the elements of the first."""
        group = groups[0]
        positions = sum(size(self.graph.shapes[self.graph.pairs[p][0]]) for p in group.pairs)
        needed = memory_needed(self.graph, group)
        if not alone and self._pays(positions, len(group.tensors) + len(group.pairs)):
            try:
                return self._lifted(groups, conflicts)
            except SizeError as error:
                if not fits_memory(needed):
                    raise error from None
        name = self.graph.tensor_name((group.sinks or group.fixed)[0])
        require(needed, f"tracing every element of the group of tensor {name!r}")
        return reduce_kind(self.graph, groups, self.values, conflicts, self.given, self.tiles)

    def _lifted(
        self, groups: Sequence[Group], conflicts: PrecedenceConflicts, contested: bool = False
    ) -> GroupKind:
        from layoutopt.lowering.classes.kinds import lift_kind

        return lift_kind(
            self.graph, groups, self.free, self.values, conflicts, contested, self.tiles
        )

    def _pays(self, elements: int, things: int) -> bool:
        """Return whether there are so many elements to so few tensors that lifting pays."""
        return elements >= self.lift_from * max(1, things / PER_GROUP)


def _joined(problems: Sequence[Labelling], conflicts: PrecedenceConflicts) -> Labelling:
    """Put problems side by side."""
    nodes = np.cumsum([0, *(p.nodes for p in problems)])
    labels = np.cumsum([0, *(p.labels for p in problems)])
    ends, at = [np.zeros((0, 2), np.int64)], [np.zeros((0, 2), np.int64)]
    for problem, n, k in zip(problems, nodes[:-1], labels[:-1], strict=True):
        ends.append(problem.edges + n)
        at.append(problem.reward_at + (n, k))
    precedence = None
    if conflicts.barriers:
        orders = [p.precedence for p in problems]
        offered = [
            np.full(p.labels, -1) if o is None else o.label_barrier
            for p, o in zip(problems, orders, strict=True)
        ]
        readers = [
            np.zeros(p.nodes, np.int64) if o is None else o.node_readers
            for p, o in zip(problems, orders, strict=True)
        ]
        precedence = Precedence(
            len(conflicts.barriers),
            conflicts.arcs,
            np.concatenate(offered),
            tuple(conflicts.reader_sets),
            np.concatenate(readers),
        )
    return Labelling(
        int(nodes[-1]),
        int(labels[-1]),
        np.concatenate(ends),
        _packed([p.weights for p in problems]),
        np.concatenate(at),
        _packed([p.rewards for p in problems]),
        precedence=precedence,
    )


def _packed(arrays: Sequence[WeightArray]) -> WeightArray:
    found = np.concatenate([np.zeros(0, np.int64), *arrays])
    if found.dtype == object or np.abs(found).sum(dtype=float) < 2**60:
        return found
    return exact_integers(found.tolist())  # each array's sum fits 64 bits, but not that of all


def _sizes(
    graph: GraphStore, groups: Sequence[Group], kinds: Sequence[GroupKind], given: FixedElements
) -> dict[str, int]:
    free = sum(t.size for t in graph.sinks()) - given.count
    tied = sum(kind.tied * len(kind.groups) for kind in kinds)
    return {
        "unconstrained": free - tied,
        "groups": len(groups),
        "group_kinds": len(kinds),
        "components": sum(sum(kind.copies) * len(kind.groups) for kind in kinds),
        "classes": sum(len(kind.copies) for kind in kinds),
    }
