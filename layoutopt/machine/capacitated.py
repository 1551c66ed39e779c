"""Unwinding on a tile memory whose capacity may bind.

With capacity a class of components is not one decision: its copies may take different tiles.
:mod:`layoutopt.network.capacity` decides how many take which; here its problem is written
down, and its answer is carried out on *units*: components of elements, or of cells that stand for
many elements.  A unit takes one configuration, so a few large units may have to go elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from layoutopt.base.errors import InputError, InternalError
from layoutopt.base.limits import Limits, fits_memory
from layoutopt.base.numbers import distinct, nearest, to_decimal
from layoutopt.base.result import Loop, Piece, Result
from layoutopt.check.elements import occupied, overfull
from layoutopt.graphs.locations import TILE, LayoutDict, hooked
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import coarsen, memory_of, tiled, viewed
from layoutopt.lowering.classes.kinds import LiftedKind
from layoutopt.lowering.elements.kinds import GroupKind, find
from layoutopt.lowering.lower import LIFT_FROM, Lowered, lower
from layoutopt.network.capacity.answer import CapacityAnswer, CountedLabels, Reason
from layoutopt.network.capacity.problem import CapacityProblem
from layoutopt.network.capacity.solve import solve_capacity
from layoutopt.network.problem import IntArray, Labelling, WeightArray, exact_integers
from layoutopt.tiles.memory import TileMemory

NO_WAY = "total capacity suffices, but no assignment respects every tile"
"""Why there may be no layouts although there is room enough."""

NEVER = 2**62
"""Groups of so many positions there are not: every element is traced."""

FEW = 10**6
"""Graphs of so many elements are looked at one by one where cells are too coarse."""

TRACED_BYTES = 200
"""What tracing takes of a free element, roughly."""


def place(graph: GraphStore, limits: Limits) -> tuple[Result, dict[str, int]]:
    """Choose layouts that keep to the capacity of a graph's tile memory, and to its grain.

    Returned are score, bound and layouts, and counts of what was solved.
    """
    fine, machine = coarsen(tiled(graph)), memory_of(graph)
    layouts: LayoutDict | None = None
    sizes: dict[str, int] = {}
    for lift_from in (LIFT_FROM, NEVER):
        lowered = lower(fine.graph, limits, lift_from=lift_from, tiles=machine.tiles)
        sizes = sizes or lowered.size
        placing = capacity_problem(lowered)
        answer = solve_capacity(placing.problem, _in_graph_values(limits, lowered))
        if answer.infeasible is not None:
            reason = overfull(graph) if answer.infeasible is Reason.BYTES else NO_WAY
            return Result(infeasible=reason), sizes
        found = placing.layouts(answer, linear=machine.grain == 1)
        layouts, exact = found or (layouts, False)
        if exact or answer.placement is None or not _traceable(fine.graph, layouts is None):
            break
    bound = None
    if answer.bound is not None:
        bound = to_decimal(lowered.constant + answer.bound, lowered.unit)
    restored = None if layouts is None else fine.restored(layouts)
    return Result(bound=bound, labelling=restored, stopped=answer.stopped), sizes


def counts_problem(graph: GraphStore, limits: Limits) -> tuple[Lowered, CapacityProblem, Limits]:
    """Return a graph as a problem of how many copies of which class go where.

    Returned are the lowered graph with an element for each grain, its problem, and limits whose
    messages are in the graph's values.
    """
    plain = viewed(graph)
    for i in hooked(plain):
        name = plain.ops[i].id
        raise InputError(f"barrier {name!r}: its hook is no view; capacity has no price then")
    lowered = lower(coarsen(tiled(plain)).graph, limits, tiles=memory_of(graph).tiles)
    return lowered, capacity_problem(lowered).problem, _in_graph_values(limits, lowered)


def _in_graph_values(limits: Limits, lowered: Lowered) -> Limits:
    """Return limits whose messages are in the graph's values."""

    def score(x: float) -> float:
        return nearest(lowered.unit * (lowered.constant + int(x)))

    return limits.restated(score, score)


def _traceable(graph: GraphStore, needed: bool) -> bool:
    """Return whether it pays to look at a graph's elements: few ones, or all if it is needed."""
    elements = sum(map(size, graph.shapes))
    return (needed or elements <= FEW) and fits_memory(TRACED_BYTES * elements)


def fill_fresh(
    graph: GraphStore,
    layouts: Mapping[str, Sequence[Piece]],
    room: IntArray,
    linear: bool,
    shares: Mapping[int, IntArray] | None,
) -> LayoutDict | None:
    """Return layouts in which all that lies at fresh locations has tiles with room, if it has any.

    Pieces whose origins are sinks mean fresh locations.  With ``linear``, their elements stay where
    the linear rule puts them, if all of them fit there; else each tile gets its share: for each
    number of bytes how many elements that take so many go to each tile.  Where shares are not
    known, tiles are filled one after the other, with the widest elements first, which may leave
    some over although there is a way.  ``room``, shape ``(tiles,)``, are the bytes that everything
    else leaves.
    """
    machine = memory_of(graph)
    sinks = {sink.name for sink in graph.sinks()}
    loose = {name: [p for p in pieces if p[0] in sinks] for name, pieces in layouts.items()}
    found: LayoutDict = {name: tuple(pieces) for name, pieces in layouts.items()}
    if linear and (occupied(graph, loose) <= room).all():
        return found
    left = room.copy()
    shares = {} if shares is None else {width: share.copy() for width, share in shares.items()}
    for name in sorted(loose, key=lambda name: -machine.bytes_of(name)):
        kept = [piece for piece in found[name] if piece[0] not in sinks]
        width = machine.bytes_of(name)
        for piece in loose[name]:
            counts = shares.get(width, left // width)
            before = counts.copy()
            moved = _spread_over_tiles(piece, counts)
            if moved is None:
                return None
            left -= (before - counts) * width
            kept += moved
        if loose[name]:
            found[name] = tuple(sorted(kept, key=lambda piece: piece[2]))
    return found


def _spread_over_tiles(piece: Piece, counts: IntArray) -> list[Piece] | None:
    """Return a piece cut and put on tiles, taken off their ``counts``; ``None`` without room."""
    _, _, to, loops = piece
    rest = [(to, tuple((extent, 0, step) for extent, _, step in loops))]
    found: list[Piece] = []
    for tile in np.flatnonzero(counts).tolist():
        while counts[tile] and rest:
            first, own = rest.pop()
            count = math.prod(extent for extent, _, _ in own)
            taken = min(int(counts[tile]), count)
            boxes, others = _cut_box(first, own, taken)
            found += [(TILE, tile, at, inner) for at, inner in boxes]
            rest += others
            counts[tile] -= taken
        if not rest:
            return found
    return None if rest else found


Walked = tuple[int, tuple[Loop, ...]]


def _cut_box(to: int, loops: tuple[Loop, ...], count: int) -> tuple[list[Walked], list[Walked]]:
    """Return the boxes of the first elements of a box, and those of the rest, last ones first."""
    head: list[Walked] = []
    rest: list[Walked] = []
    while loops and count:
        (extent, _, step), inner = loops[0], loops[1:]
        each = math.prod(n for n, _, _ in inner)
        whole, count = divmod(count, each)
        if whole:
            head.append((to, ((whole, 0, step), *inner)))
        left = extent - whole - (1 if count else 0)
        if left:
            rest.append((to + (extent - left) * step, ((left, 0, step), *inner)))
        to, loops = to + whole * step, inner
    return head, rest


class Units(NamedTuple):
    """The units of a kind of group: the class of each, and how many copies it stands for.

    There are ``groups`` groups of this kind, with as many units each.
    """

    of: IntArray
    copies: IntArray
    groups: int


class UnitAssignment:
    """Configurations for all units of all groups, so that counts are kept as well as units permit.

    ``starts`` says for each unit where its labels begin in ``labels``: tiles of the nodes of
    configurations, each in the order of its class's nodes.  ``room`` are the bytes left on each
    tile, and ``exact`` says whether all counts are kept.
    """

    def __init__(
        self, problem: CapacityProblem, placement: CountedLabels, kinds: Sequence[Units]
    ) -> None:
        self.problem, self.placement, self.kinds = problem, placement, kinds
        none = [np.zeros(0, np.int64)]
        self.of = np.concatenate(none + [np.tile(k.of, k.groups) for k in kinds])
        self.copies = np.concatenate(none + [np.tile(k.copies, k.groups) for k in kinds])
        ends = np.searchsorted(placement.classes, np.arange(len(problem.copies) + 1))
        self.first, self.last = ends[self.of], ends[self.of + 1]
        if (self.first == self.last).any():
            raise InternalError("a class of units has no configuration")
        self.starts = placement.starts[self.first]
        self.labels = placement.labels
        self.order = np.argsort(problem.class_of, kind="stable")
        self.begin = np.searchsorted(
            problem.class_of[self.order], np.arange(len(problem.copies) + 1)
        )
        self.room, self.exact = problem.capacity.copy(), True

    def run(self) -> bool:
        """Share out, and put what is left where there is room; return whether everything fits."""
        left = self._shared()
        self.exact = not len(left)
        sure = np.ones(len(self.of), bool)
        sure[left] = False
        self._take(np.flatnonzero(sure))
        if (self.room < 0).any():
            raise InternalError("units take more than what they stand for")
        room, more = self.room.tolist(), list[int]()
        for unit in left[np.argsort(-self.copies[left], kind="stable")].tolist():
            if not self._place_unit(unit, room, more):
                return False
        self.room = np.array(room, np.int64)
        self.labels = np.concatenate([self.labels, np.array(more, np.int64)])
        return True

    def by_kind(self) -> list[IntArray]:
        """Return the starts of each kind's units, shape ``(groups, units)``."""
        ends = np.cumsum([len(kind.of) * kind.groups for kind in self.kinds])
        parts = zip(np.split(self.starts, ends[:-1]), self.kinds, strict=False)  # one for no kinds
        return [part.reshape(kind.groups, len(kind.of)) for part, kind in parts]

    def _shared(self) -> IntArray:
        """Give units of classes with several configurations one each; return those left over."""
        several = np.flatnonzero(self.last - self.first > 1)
        several = several[np.lexsort([-self.copies[several], self.of[several]])]
        heads = np.flatnonzero(np.r_[True, np.diff(self.of[several]) != 0][: len(several)])
        left: list[IntArray] = [np.zeros(0, np.int64)]
        for units in np.split(several, heads[1:]):
            if len(units):
                left.append(self._of_class(units))
        return np.concatenate(left)

    def _of_class(self, units: IntArray) -> IntArray:
        """Share the units of one class, large ones first, and return those left over."""
        first, last = int(self.first[units[0]]), int(self.last[units[0]])
        counts = self.placement.counts[first:last].copy()
        for k in np.argsort(-counts, kind="stable").tolist():
            before = np.cumsum(self.copies[units])
            fits = before <= counts[k]
            if not fits.all():  # smaller ones may still fit beside them
                total = 0
                for n, size in enumerate(self.copies[units].tolist()):
                    fits[n] = total + size <= counts[k]
                    total += size if fits[n] else 0
            self.starts[units[fits]] = self.placement.starts[first + k]
            units = units[~fits]
            if not len(units):
                break
        return units

    def _take(self, units: IntArray) -> None:
        """Subtract what units that have one of their class's configurations take."""
        placement = self.placement
        taken = np.zeros(len(placement.labels) + 1, np.int64)  # by where a configuration begins
        np.add.at(taken, self.starts[units], self.copies[units])
        each = np.repeat(taken[placement.starts[:-1]], np.diff(placement.starts))
        np.subtract.at(self.room, placement.labels, self.problem.bytes[placement.nodes] * each)

    def _place_unit(self, unit: int, room: list[int], more: list[int]) -> bool:
        """Give a unit the first of its class's configurations that fits, or any tiles with room.

        ``room`` has the bytes left on each tile, which shrink, and ``more`` further labels.
        """
        begin, end = self.begin[self.of[unit] : self.of[unit] + 2].tolist()
        own, copies = self.order[begin:end], int(self.copies[unit])
        need = [width * copies for width in self.problem.bytes[own].tolist()]
        for k in range(int(self.first[unit]), int(self.last[unit])):
            first = int(self.placement.starts[k])
            if _take_room(self.labels[first : first + len(need)].tolist(), need, room):
                self.starts[unit] = first
                return True
        best = max(range(len(room)), key=room.__getitem__)
        labels = [best] * len(need)
        if not _take_room(labels, need, room):
            labels = _first_fit_decreasing(need, room)
            if not labels or not _take_room(labels, need, room):
                return False
        self.starts[unit] = len(self.labels) + len(more)
        more += labels
        return True


def _take_room(labels: list[int], need: list[int], room: list[int]) -> bool:
    """Take room on tiles, if there is enough on all of them."""
    for n, label in enumerate(labels):
        room[label] -= need[n]
        if room[label] < 0:
            for m in range(n + 1):
                room[labels[m]] += need[m]
            return False
    return True


def _first_fit_decreasing(need: list[int], room: list[int]) -> list[int]:
    """Return tiles for nodes one by one, the largest first; nothing if one fits nowhere."""
    left, labels = list(room), [0] * len(need)
    for n in sorted(range(len(need)), key=lambda n: -need[n]):
        labels[n] = max(range(len(left)), key=left.__getitem__)
        left[labels[n]] -= need[n]
        if left[labels[n]] < 0:
            return []
    return labels


@dataclass(frozen=True, eq=False)
class LoweredCapacity:
    """The capacity problem of a graph that was lowered with its number of tiles.

    It has the classes of all kinds, ``first`` being the number of the first class of each, then one
    of unconstrained elements for each number of bytes that these have.
    """

    lowered: Lowered
    problem: CapacityProblem
    first: tuple[int, ...]

    def layouts(self, answer: CapacityAnswer, linear: bool) -> tuple[LayoutDict, bool] | None:
        """Return layouts, and whether they are worth what the answer says; ``None`` without room.

        What no pair reaches may stay where the linear rule puts it if ``linear``.
        """
        if answer.placement is None:
            return None
        kinds = self.lowered.kinds
        known = [kind.units() for kind in kinds]
        units = [
            Units(first + kind.classes.class_of[components], copies, len(kind.groups))
            for first, kind, (components, copies) in zip(self.first, kinds, known, strict=True)
        ]
        found = UnitAssignment(self.problem, answer.placement, units)
        if not found.run():
            return None
        layouts: LayoutDict = {}
        for kind, (components, _), starts in zip(kinds, known, found.by_kind(), strict=True):
            equal: dict[bytes, list[int]] = {}  # groups that take the same
            for g, row in enumerate(starts):
                equal.setdefault(row.tobytes(), []).append(g)
            for groups in equal.values():
                boxes = kind.boxes(kind.put(components, starts[groups[0]], found.labels))
                layouts |= self.lowered.pieces(boxes, [kind.groups[g] for g in groups])
        shares = self._shares(answer.placement) if found.exact else None
        every = self.lowered.completed(layouts)
        full = fill_fresh(self.lowered.graph, every, found.room, linear, shares)
        return None if full is None else (full, found.exact)

    def _shares(self, placement: CountedLabels) -> dict[int, IntArray]:
        """Return how many unconstrained elements go to each tile, by their bytes."""
        shares: dict[int, IntArray] = {}
        first = sum(len(kind.copies) for kind in self.lowered.kinds)
        for number in range(first, len(self.problem.copies)):
            share = np.zeros(self.problem.problem.labels, np.int64)
            for tiles, count in placement.of(number):
                share[tiles] += count
            [width] = self.problem.bytes[self.problem.class_of == number].tolist()
            shares[width] = share
        return shares


def capacity_problem(lowered: Lowered) -> LoweredCapacity:
    """Return the capacity problem of a graph, lowered with its number of tiles."""
    memory = memory_of(lowered.graph)
    loose = _unconstrained(lowered, memory)
    copies: list[int] = []
    first, parts, nodes = [], [], 0
    for kind in lowered.kinds:
        first.append(len(copies))
        copies += [n * len(kind.groups) for n in kind.copies]
        parts.append(_part(kind, memory, lowered, nodes, first[-1], copies))
        nodes += kind.problem.nodes
    of = len(copies) + np.arange(len(loose))
    width, none = np.array([wide for wide, _ in loose], np.int64), np.zeros((0, 2), np.int64)
    parts.append((none, [], none, [], of, width, np.full(len(loose), -1)))
    edges, weights, rewarded, rewards, classes, widths, home = zip(*parts, strict=True)
    problem = Labelling(
        nodes + len(loose),
        memory.tiles,
        np.concatenate(edges),
        exact_integers([*chain(*weights)]),
        np.concatenate(rewarded),
        exact_integers([*chain(*rewards)]),
    )
    return LoweredCapacity(
        lowered,
        CapacityProblem(
            problem,
            np.concatenate(classes),
            np.array([*copies, *(count for _, count in loose)], np.int64),
            np.concatenate(widths),
            np.full(memory.tiles, memory.bytes_per_tile),
            np.concatenate(home),
        ),
        tuple(first),
    )


def _part(
    kind: GroupKind, memory: TileMemory, lowered: Lowered, node: int, first: int, copies: list[int]
) -> tuple[Any, ...]:
    """Return what a kind adds to the problem: nodes from ``node``, classes from ``first`` on.

    For one copy of each class these are edges, their weights, rewarded nodes with tiles, and their
    rewards; then for each node its class, bytes and preferred tile.
    """
    problem = kind.problem
    of = kind.node_class + first
    many = np.array(copies, object)[of]
    at = problem.reward_at
    return (
        problem.edges + node,
        (problem.weights // many[problem.edges[:, 0]]).tolist(),
        np.stack([at[:, 0] + node, _rewarded_tiles(kind)], axis=1),
        (problem.rewards // many[at[:, 0]]).tolist(),
        of,
        _widths(lowered, memory, kind)[kind.nodes],
        _preferred_tiles(kind),
    )


def _rewarded_tiles(kind: GroupKind) -> IntArray:
    """Return the tile of the label of each reward."""
    numbers = kind.edges.numbers
    tile: IntArray = kind.label_key % numbers.total - numbers.starts[-1]
    return tile[kind.problem.reward_at[:, 1]]


def _preferred_tiles(kind: GroupKind) -> IntArray:
    """Return for each node the tile that its component is to take where nothing is lost by it.

    It is one that earns most if all nodes take it; of several such tiles the one that has, tied
    to the component, an element of the first tensor.  So neighbours follow one tensor.
    """
    problem = kind.problem
    numbers = kind.edges.numbers
    home = np.full(problem.nodes, -1)
    if not isinstance(kind, LiftedKind) or not len(problem.reward_at):
        return home
    component = kind.classes.component
    cell, name, fixed = kind.reduced.at
    root = np.searchsorted(numbers.starts, fixed, side="right")
    tied, which = distinct([component[cell], name - numbers.starts[-1]])
    first = np.full(tied.shape[1], len(numbers.starts))
    np.minimum.at(first, which, root)
    at = problem.reward_at
    earned, which = distinct([component[kind.nodes[at[:, 0]]], _rewarded_tiles(kind)])
    worth: WeightArray = np.zeros(earned.shape[1], problem.rewards.dtype)
    np.add.at(worth, which, problem.rewards)
    known = find((tied[0], tied[1], np.arange(tied.shape[1])), earned[0], earned[1])
    order = np.lexsort([first[known], -worth, earned[0]])
    chosen = order[np.flatnonzero(np.r_[True, np.diff(earned[0][order]) != 0])]
    best = np.full(len(kind.classes.class_of), -1)
    best[earned[0][chosen]] = earned[1][chosen]
    return best[component[kind.nodes]]


def _widths(lowered: Lowered, memory: TileMemory, kind: GroupKind) -> IntArray:
    """Return the bytes of each free element of a kind."""
    numbers = kind.edges.numbers
    sizes = np.diff(numbers.starts[: len(numbers.sinks) + 1])
    names = [lowered.graph.tensor_name(t) for t in numbers.sinks]
    return np.repeat(np.array([memory.bytes_of(name) for name in names], np.int64), sizes)


def _unconstrained(lowered: Lowered, memory: TileMemory) -> list[tuple[int, int]]:
    """Return pairs of bytes, and how many elements of so many bytes no pair reaches."""
    counts: dict[int, int] = {}
    for sink in lowered.graph.sinks():
        width = memory.bytes_of(sink.name)
        counts[width] = counts.get(width, 0) + sink.size
    for kind in lowered.kinds:
        each = np.array(kind.copies, object)[kind.node_class] * len(kind.groups)
        own = _widths(lowered, memory, kind)[kind.nodes]
        for width, count in zip(own.tolist(), each.tolist(), strict=True):
            counts[width] -= count
    if min(counts.values(), default=0) < 0:
        raise InternalError("more elements are to be placed than there are")
    return sorted((width, count) for width, count in counts.items() if count)
