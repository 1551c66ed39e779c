"""One kind of group, and barrier order, on representative cells instead of elements."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from layoutopt.base.errors import InternalError
from layoutopt.base.numbers import unique
from layoutopt.boxes.box import Box
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.expand import Expansion
from layoutopt.lowering.classes.orbits import orbits_of
from layoutopt.lowering.classes.reduced import (
    Reduced,
    added,
    cell_sets,
    cell_times,
    reduce_group,
    trace_group,
)
from layoutopt.lowering.elements.groups import (
    Group,
    PrecedenceConflicts,
    first_alike,
    first_uses,
    sources_of,
)
from layoutopt.lowering.elements.kinds import (
    Classes,
    GroupKind,
    find_classes,
    origins_of,
    represent,
)
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray


def conflicts_by_classes(
    graph: GraphStore, barriers: Sequence[int], groups: Collection[int], free: Sequence[bool]
) -> PrecedenceConflicts:
    """Return the barriers that can exclude each other, and which reads outputs of which.

    Barriers, by op numbers, and groups are those that lie on possible cycles.
    """
    place = {b: k for k, b in enumerate(barriers)}
    firsts = first_alike(graph)
    arcs = []
    for c, barrier in enumerate(barriers):
        inputs = {firsts[t] for t in graph.op_inputs[barrier]}
        cone = Group((), tuple(sources_of(graph, inputs, firsts)), (), (), firsts)
        producers = {graph.producers[t] for t in cone.tensors} & place.keys()
        if producers:
            held = _roots_held(graph, cone, inputs, free)
            arcs += [(place[b], c) for b in sorted(producers) if b in held]
    return PrecedenceConflicts(
        tuple(barriers), np.array(arcs, np.int64).reshape(-1, 2), [()], {}, frozenset(groups)
    )


def _roots_held(
    graph: GraphStore, cone: Group, wanted: Collection[int], free: Sequence[bool]
) -> set[int]:
    """Return the ops whose outputs some elements of the wanted tensors come from."""
    traced = trace_group(graph, orbits_of(graph, cone, free))
    parts = traced.cells.orbits.slotted.system.parts
    starts = traced.numbers.starts
    found: set[int] = set()
    for part, array in zip(parts, traced.tensors, strict=True):
        if part.tensor in wanted:
            roots = np.searchsorted(starts, unique(array[array >= 0]), side="right") - 1
            # Locations that mappings name come last, and are of no barrier.
            known = [traced.roots[r] for r in roots.tolist() if r < len(traced.roots)]
            found.update(graph.producers[parts[p].tensor] for p in known)
    return found


def with_readers(graph: GraphStore, group: Group, conflicts: PrecedenceConflicts) -> Group:
    """Return a contested group with the tensors that barriers read its sinks through."""
    tensors = set(group.tensors)
    for barrier in conflicts.barriers:
        inputs = {group.firsts[t] for t in graph.op_inputs[barrier]}
        cone = sources_of(graph, inputs, group.firsts)
        if not set(cone).isdisjoint(group.sinks):
            tensors.update(cone)
    return replace(group, tensors=tuple(sorted(tensors)))


def readers_of(
    graph: GraphStore, group: Group, reduced: Reduced, conflicts: PrecedenceConflicts
) -> IntArray:
    """Return for each free cell the index of the set of barriers that read it.

    New sets are added to the conflicts's.
    """
    free = reduced.numbers.free
    read = np.zeros((free, len(conflicts.barriers)), bool)
    parts = reduced.cells.orbits.slotted.system.parts
    for c, barrier in enumerate(conflicts.barriers):
        inputs = {group.firsts[t] for t in graph.op_inputs[barrier]}
        for part, array in zip(parts, reduced.tensors, strict=True):
            if part.tensor in inputs:
                read[array[(array >= 0) & (array < free)], c] = True
    rows, of = np.unique(read, axis=0, return_inverse=True)
    index = []
    for row in rows:
        barriers = tuple(np.flatnonzero(row).tolist())
        if barriers not in conflicts.reader_sets:
            conflicts.reader_sets.append(barriers)
        index.append(conflicts.reader_sets.index(barriers))
    return np.array(index, np.int64)[of.reshape(-1)]


def placed(reduced: Reduced, where: IntArray) -> IntArray:
    """Return where free cells lie, names replaced by fixed cells where edges know one.

    ``where`` is that of :meth:`Expansion.boxes`.
    """
    numbers = reduced.numbers
    if not numbers.pool:
        return where
    named = where >= numbers.starts[-1]
    first, second = reduced.edges.agree.first, reduced.edges.agree.second
    same = named[first] & (where[first] == where[second])
    count = len(where)
    flock = components(count, first[same], second[same])[1]
    cell, name, fixed = reduced.at
    good = where[cell] == name
    best = np.full(int(flock.max(initial=-1)) + 1, numbers.total)
    np.minimum.at(best, flock[cell[good]], fixed[good])
    found: IntArray = np.where(named & (best[flock] < numbers.total), best[flock], where)
    return found


NOWHERE = -1  # stands for the tensor of which tiles are the elements


@dataclass(frozen=True, eq=False, kw_only=True)
class LiftedKind(GroupKind):
    """All groups that are the same problem, with its cells as if they were elements."""

    reduced: Reduced  # the cells, and how many elements they stand for
    sure: int  # what pairs of tensors that are always alike earn in one group

    @property
    def constant(self) -> int:
        """What one group earns whatever is chosen."""
        return self.edges.constant + self.sure

    @property
    def tied(self) -> int:
        """The number of sink elements, in one group, that a pair reaches."""
        reduced, classes = self.reduced, self.classes
        reached = np.append(classes.class_of[classes.component] >= 0, False)
        total = Fraction(0)
        for p in reduced.roots[: len(reduced.numbers.sinks)]:
            index = np.nonzero(reached[reduced.tensors[p]])
            if len(index[0]):
                known: dict[Fraction, int] = {}
                times = cell_times(reduced.cells, p, index, known)
                counts = np.bincount(times, minlength=len(known)).tolist()
                total += sum((n * c for n, c in zip(known, counts, strict=True)), Fraction(0))
        if total.denominator != 1:
            raise InternalError("representatives do not add up to whole elements")
        return int(total)

    def labels(self, _origins: Origins) -> IntArray:
        """Return labels to begin with: everything fresh."""
        return self.problem.labels + np.arange(self.problem.nodes)

    def boxes(self, where: IntArray) -> list[list[Box]]:
        """Return the boxes of each sink of the first group; see :meth:`GroupKind.boxes`."""
        group, numbers = self.groups[0], self.edges.numbers
        parts = self.reduced.cells.orbits.slotted.system.parts
        roots = (parts[p] for p in self.reduced.roots)
        uses = ((part.tensor, part.tensor, part.start, part.size) for part in roots)
        firsts = first_uses(self.graph, numbers.pool, uses, NOWHERE)
        found = Expansion(self.reduced, firsts).boxes(placed(self.reduced, where))
        place = {t: n for n, t in enumerate((*group.sinks, *group.fixed, NOWHERE))}
        return [
            [box._replace(label=place[box.label]) for box in found.get(t, [])] for t in group.sinks
        ]

    def units(self) -> tuple[IntArray, IntArray]:
        """Return the components that layouts are written out from, and how many each stands for."""
        classes, reduced = self.classes, self.reduced
        times = np.zeros(len(classes.class_of), object)
        for p in reduced.roots[: len(reduced.numbers.sinks)]:
            index = np.nonzero(reduced.tensors[p] >= 0)
            cells = reduced.tensors[p][index]
            times[classes.component[cells]] = cell_sets(reduced.cells, p, index)
        found = np.flatnonzero((classes.class_of >= 0) & (times > 0))
        return found, times[found].astype(np.int64)


def lift_kind(
    graph: GraphStore,
    groups: Sequence[Group],
    free: Sequence[bool],
    values: Sequence[int],
    conflicts: PrecedenceConflicts,
    contested: bool,
    tiles: int,
) -> LiftedKind:
    """Find representative cells of groups of one key, and their problem.

    Values are those of the graph's pairs, as multiples of one unit; in contested groups barrier
    order limits the choice.  With a number of tiles, components on different tiles are never of one
    class. Raises ``SizeError`` if views are too irregular.
    """
    first = with_readers(graph, groups[0], conflicts) if contested else groups[0]
    reduced = reduce_group(graph, orbits_of(graph, first, free), values, tiles)
    edges = reduced.edges
    numbers = edges.numbers
    sizes = np.diff(numbers.starts)
    colour = np.repeat(_ranked(numbers.sinks), sizes[: len(numbers.sinks)])
    read_by = readers_of(graph, first, reduced, conflicts) if contested else None
    if read_by is not None:
        colour = np.unique(np.stack([colour, read_by]), axis=1, return_inverse=True)[1].reshape(-1)
    origin = origins_of(numbers, apart=tiles > 0)
    pooled = len(numbers.fixed) + np.arange(max(len(numbers.pool), 1))
    tensor = np.append(_ranked(numbers.fixed), pooled)[origin]
    classes = _counted(reduced, find_classes(edges, colour, tensor))
    kind = represent(graph, tuple(groups), edges, classes, conflicts, read_by, origin)
    ends = ((p, *graph.pairs[p][:2]) for p in first.pairs)
    alike = [(p, a) for p, a, b in ends if first.firsts[a] == first.firsts[b]]
    sure = sum(values[p] * size(graph.shapes[a]) for p, a in alike)
    return LiftedKind(**vars(kind), reduced=reduced, sure=sure)


def _ranked(tensors: Sequence[int]) -> IntArray:
    """Return equal small numbers for equal tensors."""
    return np.unique(np.array(tensors, np.int64), return_inverse=True)[1]


def _counted(reduced: Reduced, classes: Classes) -> Classes:
    """Return classes with the numbers of element components that they stand for."""
    component = classes.component
    where = np.concatenate(
        [component[reduced.edges.agree.first], component[reduced.edges.earn.first]]
    )
    index = np.concatenate([reduced.agree, reduced.earn])
    times = np.full(len(classes.class_of), -1)
    times[where] = index
    if (times[where] != index).any():
        raise InternalError("edges of one component stand for different numbers of others")
    tied = np.flatnonzero(classes.class_of >= 0)
    unit = math.lcm(1, *(time.denominator for time in reduced.times))
    whole = [int(time * unit) for time in reduced.times]
    copies = added(whole, times[tied], classes.class_of[tied], len(classes.copies))
    if (copies % unit).any():
        raise InternalError("representatives do not add up to whole components")
    return replace(classes, copies=(copies // unit).astype(object))
