"""One kind of group, solved on representative cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from layoutopt.base.errors import InternalError
from layoutopt.boxes.box import Box
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.cells import cell_sets, cell_times
from layoutopt.lowering.classes.expand import Expansion
from layoutopt.lowering.classes.precedence import readers_of, with_readers
from layoutopt.lowering.classes.reduced import Reduced, added, reduce_group
from layoutopt.lowering.classes.systems import orbits_of
from layoutopt.lowering.elements.classes import Classes, find_classes
from layoutopt.lowering.elements.groups import Group, PrecedenceConflicts
from layoutopt.lowering.elements.kinds import GroupKind, first_uses, origins_of, represent
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray


def placed(reduced: Reduced, where: IntArray) -> IntArray:
    """Return where free cells lie, names replaced by fixed cells where edges know one.

    ``where`` is that of :meth:`Expansion.boxes`.
    """
    numbers = reduced.edges.numbers
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
        return _tied(self.reduced, self.classes)

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
        for p in reduced.roots[: len(reduced.edges.numbers.sinks)]:
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
    contested: bool = False,
    tiles: int = 0,
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


def _tied(reduced: Reduced, classes: Classes) -> int:
    """Return the number of free elements that an edge touches."""
    reached = np.append(classes.class_of[classes.component] >= 0, False)
    total = Fraction(0)
    for p in reduced.roots[: len(reduced.edges.numbers.sinks)]:
        index = np.nonzero(reached[reduced.tensors[p]])
        if len(index[0]):
            known: dict[Fraction, int] = {}
            times = cell_times(reduced.cells, p, index, known)
            counts = np.bincount(times, minlength=len(known)).tolist()
            total += sum((n * c for n, c in zip(known, counts, strict=True)), Fraction(0))
    if total.denominator != 1:
        raise InternalError("representatives do not add up to whole elements")
    return int(total)
