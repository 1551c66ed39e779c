"""Layouts on a tile memory that respect capacity: how many copies of which class go where.

With capacity a class of components is not one decision: its copies may take different tiles.
:mod:`layoutopt.capacity` decides how many take which; here its problem is written down, and its
answer is carried out on *units*: components of elements, or of cells that stand for many
elements.  A unit takes one configuration, so a few large units may have to go elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.capacity.answer import CapacityAnswer, Placement
from layoutopt.capacity.problem import CapacityProblem
from layoutopt.dense.groups import Group
from layoutopt.dense.kinds import GroupKind
from layoutopt.dense.layouts import Layouts
from layoutopt.dense.lookup import distinct, find
from layoutopt.errors import InternalError
from layoutopt.graphs.tiling import memory_of
from layoutopt.lifting.kinds import LiftedKind
from layoutopt.lowered import Kind, Lowered
from layoutopt.machine.filling import filled
from layoutopt.machine.units import Chosen, Units, share_out
from layoutopt.problem import IntArray, Labelling, WeightArray, exact_integers
from layoutopt.tiles.memory import TileMemory


@dataclass(frozen=True, eq=False)
class Placing:
    """The capacity problem of a lowered graph.

    Parameters
    ----------
    lowered
        A graph with a tile memory, lowered with its number of tiles.
    problem
        The problem: the classes of all kinds, then one of elements that no pair reaches for
        each number of bytes that these have.
    first
        The number of the first class of each kind.
    """

    lowered: Lowered
    problem: CapacityProblem
    first: tuple[int, ...]

    def layouts(self, answer: CapacityAnswer, linear: bool) -> tuple[Layouts, bool] | None:
        """Carry an answer out; ``None`` if units do not fit the room that others leave.

        Parameters
        ----------
        linear
            Whether what no pair reaches may stay where the linear rule puts it.

        Returns
        -------
        layouts, exact
            The layouts, and whether they are worth what the answer says.
        """
        if answer.placement is None:
            return None
        kinds = self.lowered.kinds
        known = [kind.units() for kind in kinds]
        units = [
            Units(first + kind.inner.classes.class_of[components], copies, len(kind.groups))
            for first, kind, (components, copies) in zip(self.first, kinds, known, strict=True)
        ]
        found = share_out(self.problem, answer.placement, units)
        if found is None:
            return None
        layouts: Layouts = {}
        for kind, (components, _), groups in zip(kinds, known, found.chosen, strict=True):
            for own, alike in _alike(kind.groups, groups):
                boxes = kind.boxes(kind.put(components, own.starts, own.labels))
                layouts |= self.lowered.pieces(boxes, alike)
        shares = self._shares(answer.placement) if found.exact else None
        every = self.lowered.completed(layouts)
        full = filled(self.lowered.graph, every, found.room, linear, shares)
        return None if full is None else (full, found.exact)

    def _shares(self, placement: Placement) -> dict[int, IntArray]:
        """Return how many elements that no pair reaches go to each tile, by their bytes."""
        shares: dict[int, IntArray] = {}
        first = sum(len(kind.copies) for kind in self.lowered.kinds)
        for number in range(first, len(self.problem.copies)):
            share = np.zeros(self.problem.problem.labels, np.int64)
            for tiles, count in placement.of(number):
                share[tiles] += count
            [width] = self.problem.bytes[self.problem.class_of == number].tolist()
            shares[width] = share
        return shares


def _alike(
    groups: Sequence[Group], chosen: Sequence[Chosen]
) -> Iterator[tuple[Chosen, list[Group]]]:
    """Yield what groups take, with all groups that take the same."""
    found: dict[bytes, tuple[Chosen, list[Group]]] = {}
    for group, own in zip(groups, chosen, strict=True):
        found.setdefault(own.starts.tobytes(), (own, []))[1].append(group)
    yield from found.values()


def capacity_problem(lowered: Lowered) -> Placing:
    """Return the capacity problem of a graph with a tile memory.

    Parameters
    ----------
    lowered
        The graph, lowered with its number of tiles.
    """
    memory = memory_of(lowered.graph)
    copies: list[int] = []
    first, parts, node = [], [], 0
    for kind in lowered.kinds:
        first.append(len(copies))
        copies += [n * len(kind.groups) for n in kind.copies]
        parts.append(_part(kind, memory, lowered, node, first[-1], copies))
        node += kind.problem.nodes
    loose = _loose(lowered, memory)
    nodes = [part.of for part in parts] + [len(copies) + np.arange(len(loose))]
    width = [part.width for part in parts] + [np.array([wide for wide, _ in loose], np.int64)]
    problem = Labelling(
        node + len(loose),
        memory.tiles,
        _rows([part.edges for part in parts]),
        exact_integers([w for part in parts for w in part.weights]),
        _rows([part.rewarded for part in parts]),
        exact_integers([r for part in parts for r in part.rewards]),
    )
    return Placing(
        lowered,
        CapacityProblem(
            problem,
            np.concatenate(nodes),
            np.array([*copies, *(count for _, count in loose)], np.int64),
            np.concatenate(width),
            np.full(memory.tiles, memory.bytes_per_tile),
            np.concatenate([*(part.home for part in parts), np.full(len(loose), -1)]),
        ),
        tuple(first),
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """One kind's share of the problem, for one copy of each class."""

    edges: IntArray
    weights: list[int]
    rewarded: IntArray
    rewards: list[int]
    of: IntArray
    width: IntArray
    home: IntArray


def _part(
    kind: Kind, memory: TileMemory, lowered: Lowered, node: int, first: int, copies: list[int]
) -> _Part:
    problem, inner = kind.problem, kind.inner
    numbers = inner.edges.numbers
    of = inner.classes.class_of[inner.classes.component[inner.nodes]] + first
    many = np.array(copies, object)[of]
    tile = inner.label_key % numbers.total - numbers.starts[-1]
    at = problem.reward_at
    return _Part(
        problem.edges + node,
        (problem.weights // many[problem.edges[:, 0]]).tolist(),
        np.stack([at[:, 0] + node, tile[at[:, 1]]], axis=1),
        (problem.rewards // many[at[:, 0]]).tolist(),
        of,
        _widths(lowered, memory, inner)[inner.nodes],
        _homes(kind),
    )


def _homes(kind: Kind) -> IntArray:
    """Return for each node the tile that its component is to take where nothing is lost by it.

    It is one that earns most if all nodes take it; of several such tiles the one that has, tied
    to the component, an element of the first tensor.  So neighbours follow one tensor.
    """
    inner, problem = kind.inner, kind.problem
    numbers = inner.edges.numbers
    home = np.full(problem.nodes, -1)
    if not isinstance(kind, LiftedKind) or not len(problem.reward_at):
        return home
    component = inner.classes.component
    cell, name, fixed = kind.reduced.at
    root = np.searchsorted(numbers.starts, fixed, side="right")
    tied, which = distinct([component[cell], name - numbers.starts[-1]])
    first = np.full(tied.shape[1], len(numbers.starts))
    np.minimum.at(first, which, root)
    at = problem.reward_at
    tile = (inner.label_key % numbers.total - numbers.starts[-1])[at[:, 1]]
    earned, which = distinct([component[inner.nodes[at[:, 0]]], tile])
    worth: WeightArray = np.zeros(earned.shape[1], problem.rewards.dtype)
    np.add.at(worth, which, problem.rewards)
    known = find((tied[0], tied[1], np.arange(tied.shape[1])), earned[0], earned[1])
    order = np.lexsort([first[known], -worth, earned[0]])
    chosen = order[np.flatnonzero(np.r_[True, np.diff(earned[0][order]) != 0])]
    best = np.full(len(inner.classes.class_of), -1)
    best[earned[0][chosen]] = earned[1][chosen]
    return best[component[inner.nodes]]


def _widths(lowered: Lowered, memory: TileMemory, inner: GroupKind) -> IntArray:
    """Return the bytes of each free element of a kind."""
    numbers = inner.edges.numbers
    sizes = np.diff(numbers.starts[: len(numbers.sinks) + 1])
    names = [lowered.graph.tensor_name(t) for t in numbers.sinks]
    return np.repeat(np.array([memory.bytes_of(name) for name in names], np.int64), sizes)


def _loose(lowered: Lowered, memory: TileMemory) -> list[tuple[int, int]]:
    """Return pairs of bytes, and how many elements of so many bytes no pair reaches."""
    counts: dict[int, int] = {}
    for sink in lowered.graph.sinks():
        width = memory.bytes_of(sink.name)
        counts[width] = counts.get(width, 0) + sink.size
    for kind in lowered.kinds:
        inner = kind.inner
        of = inner.classes.class_of[inner.classes.component[inner.nodes]]
        each = np.array(kind.copies, object)[of] * len(kind.groups)
        own = _widths(lowered, memory, inner)[inner.nodes]
        for width, count in zip(own.tolist(), each.tolist(), strict=True):
            counts[width] -= count
    if min(counts.values(), default=0) < 0:
        raise InternalError("more elements are to be placed than there are")
    return sorted((width, count) for width, count in counts.items() if count)


def _rows(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros((0, 2), np.int64), *parts])
