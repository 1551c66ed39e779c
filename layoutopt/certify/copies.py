"""Class, node, copy and location of each sink element, as boxes of several quantities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import gcd, prod
from typing import Any

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.boxes import join
from layoutopt.boxes.box import Box as FlatBox
from layoutopt.boxes.box import VectorBox, plus
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.merge import boxes_of
from layoutopt.certificate.sums import CertifiedBox
from layoutopt.certificate.views import (
    CUTTING,
    FIXED,
    SAME,
    UNTIED,
    along,
    crossed,
    kept_of,
    line,
    relation,
    runs,
    scaled,
    steps_of,
)
from layoutopt.graphs.locations import mapping_of
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.expand import Expansion
from layoutopt.lowering.classes.kinds import LiftedKind
from layoutopt.lowering.elements.groups import Group
from layoutopt.lowering.elements.kinds import GroupKind
from layoutopt.lowering.lower import Lowered
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray, by_component


class Components:
    """Division of a problem's nodes into classes."""

    def __init__(self, lowered: Lowered) -> None:
        problem = lowered.problem
        count, of = components(problem.nodes, *problem.edges.T)
        # The nodes of each class, of which the first one identifies copies.
        self.members = [own.tolist() for own in by_component(np.arange(len(of)), of, count)]
        # For each node its class, and its index there; and the first node of that class.
        self.tag = {u: (k, j) for k, own in enumerate(self.members) for j, u in enumerate(own)}
        self.leader = np.array([own[0] for own in self.members], np.int64)[of]
        self._nodes = [0, *accumulate(kind.problem.nodes for kind in lowered.kinds)]
        self.copies = [self._copies(lowered, own[0]) for own in self.members]

    def kinds(self, nodes: Iterable[int]) -> set[int]:
        """Return the kinds of groups of some nodes."""
        found = np.searchsorted(self._nodes, [*nodes], side="right") - 1
        return set(found.tolist())

    def _copies(self, lowered: Lowered, node: int) -> int:
        """Count the copies of a node's class in all groups of its kind."""
        which = int(np.searchsorted(self._nodes, node, side="right")) - 1
        kind = lowered.kinds[which]
        classes = kind.classes
        component = classes.component[kind.nodes[node - self._nodes[which]]]
        return kind.copies[int(classes.class_of[component])] * len(kind.groups)


MOST = 2 * 10**5  # largest number of boxes in a list


def join_on(
    one: Sequence[CertifiedBox],
    two: Sequence[CertifiedBox],
    shape: Sequence[int],
    equations: Equations,
) -> list[CertifiedBox]:
    """Join two lists of boxes on their first quantity, the flat elements of a tensor.

    For each member of ``one`` and of ``two`` with equal first quantities the result has this
    quantity, the others of ``one`` and the others of ``two``; tags are concatenated.
    """
    mine = [VectorBox(*box.of(0, *range(len(box.start)))[1:]) for box in one]
    others = [VectorBox(*box[1:]) for box in two]
    found = []
    for a, b, (start, loops) in join.join_on(mine, others, tuple(shape), equations):
        found.append(
            CertifiedBox(one[a].tag + two[b].tag, start, tuple([(n, s) for n, s in loops if n > 1]))
        )
        if len(found) > MOST:
            raise SizeError(f"a certificate needs more than {MOST:,} boxes for one tensor")
    return found


def parts(box: CertifiedBox, k: int, cuts: Sequence[int]) -> list[CertifiedBox]:
    """Cut a box along one loop."""
    step = box.loops[k][1]
    found = []
    for a, b in pairwise(cuts):
        loop = ((b - a, step),) if b - a > 1 else ()
        loops = (*box.loops[:k], *loop, *box.loops[k + 1 :])
        found.append(CertifiedBox(box.tag, plus(box.start, step, a), loops))
    return found


def decided(boxes: Iterable[CertifiedBox]) -> list[CertifiedBox]:
    """Cut boxes ``(element, side, side)`` until both sides are equal or different throughout."""
    found, todo = [], list(boxes)
    while todo:
        box = todo.pop()
        gaps = [(n, s[1] - s[2]) for n, s in box.loops]
        gap = CertifiedBox((), (box.start[1] - box.start[2],), tuple([(n, (s,)) for n, s in gaps]))
        low, high = gap.ends(0)
        common = gcd(*[s for _, s in gaps])
        equal = low == high == 0
        unlike = low > 0 or high < 0 or (common and gap.start[0] % common)
        if box.tag[:2] != box.tag[2:] or equal or unlike:
            found.append(box)
            if len(found) > MOST:
                raise SizeError(f"a certificate needs more than {MOST:,} boxes for one pair")
        else:
            k = max(range(len(gaps)), key=lambda k: abs(gaps[k][1]) * (gaps[k][0] - 1))
            todo += parts(box, k, [0, gaps[k][0] // 2, gaps[k][0]])
    return found


class NumberedLocations:
    """Numbers of every element of a graph, and of every location named by a mapping."""

    def __init__(self, graph: GraphStore) -> None:
        self.starts = [0, *accumulate(size(shape) for shape in graph.shapes)]
        pool: dict[tuple[type, int | str], int] = {}
        # Boxes `(element, location)` of each tensor with a mapping.
        self.mapped: dict[int, list[CertifiedBox]] = {}
        for t in range(len(graph.shapes)):
            mapping = mapping_of(graph, t)
            if mapping is not None:
                names = [mapping.names[code] for code in mapping.codes.tiles().tolist()]
                numbers = [pool.setdefault((type(v), v), len(pool)) for v in names]
                own = [(at, self.starts[-1] + number) for at, number in enumerate(numbers)]
                self.mapped[t] = [CertifiedBox((), start, ()) for start in own]


@dataclass
class Copies:
    """The boxes of all sinks of a graph, by numbers of locations."""

    lowered: Lowered
    components: Components
    places: NumberedLocations
    equations: Equations

    def sinks(self, labels: IntArray) -> dict[int, list[CertifiedBox]]:
        """Return boxes ``(element, copy, location)`` of each sink, tagged by class and node."""
        graph = self.lowered.graph
        leaders = self.lowered.problem.labels + self.components.leader
        marks, copies, taken = self._marks(), self.located(leaders), self.located(labels)
        found = {}
        for sink in graph.sinks():
            t, shape = sink.index, graph.shapes[sink.index]
            own = (
                [CertifiedBox((), (0, self.places.starts[t]), ((sink.size, (1, 1)),))]
                if sink.size
                else []
            )
            mine = marks.get(t, [box.of(0, tag=UNTIED) for box in own])
            boxes = join_on(mine, copies.get(t, own), shape, self.equations)
            found[t] = join_on(boxes, taken.get(t, own), shape, self.equations)
        return found

    def located(
        self, labels: IntArray, nodes: Collection[int] | None = None
    ) -> dict[int, list[CertifiedBox]]:
        """Return boxes ``(element, location)`` of each sink of a group for a labelling.

        Given nodes, only their groups are included.
        """
        found: dict[int, list[CertifiedBox]] = {}
        asked = None if nodes is None else self.components.kinds(nodes)
        split = self.lowered.split(labels)
        for which, (kind, own) in enumerate(zip(self.lowered.kinds, split, strict=True)):
            if asked is not None and which not in asked:
                continue
            pieces = kind.boxes(kind.spread(own))
            for group in kind.groups:
                for t, boxes in zip(group.sinks, pieces, strict=True):
                    found[t] = self._pieces(group, boxes)
        return found

    def _pieces(self, group: Group, pieces: Sequence[FlatBox]) -> list[CertifiedBox]:
        """Return the boxes ``(element, location)`` of the pieces of a layout, in their order."""
        found: list[CertifiedBox] = []
        walks: dict[int, list[CertifiedBox]] = {}  # by tensor, tagged by piece
        for k, piece in enumerate(pieces):
            loops = tuple([(n, (to, at)) for n, at, to in piece.loops])
            walk = CertifiedBox((k,), (piece.to, piece.start), loops)
            walks.setdefault((*group.sinks, *group.fixed)[piece.label], []).append(walk)
        for t, own in walks.items():
            if t in self.places.mapped:
                shape, there = self.lowered.graph.shapes[t], [box.of(1, 0) for box in own]
                joined = join_on(there, self.places.mapped[t], shape, self.equations)
                found += [box.of(1, 2) for box in joined]
            else:
                found += [
                    box._replace(start=plus(box.start, (0, self.places.starts[t]))) for box in own
                ]
        return [box._replace(tag=()) for box in sorted(found, key=lambda box: box.tag)]

    def _marks(self) -> dict[int, list[CertifiedBox]]:
        """Return boxes ``(element,)`` of each sink of a group, tagged by class and node."""
        found: dict[int, list[CertifiedBox]] = {}
        first = 0
        for kind in self.lowered.kinds:
            models = kind.models()
            for place, boxes in enumerate(_marked(kind, models)):
                own = [
                    box._replace(tag=UNTIED if node < 0 else self.components.tag[first + node])
                    for node, box in boxes
                ]
                found |= {group.sinks[place]: own for group in kind.groups}
            first += kind.problem.nodes
        return found


def _marked(kind: GroupKind, marks: IntArray) -> list[list[tuple[int, CertifiedBox]]]:
    """Yield boxes ``(element,)`` of sinks of a kind, with their common mark."""
    group = kind.groups[0]
    if isinstance(kind, LiftedKind):
        numbers, count = kind.reduced.edges.numbers, int(marks.max(initial=-1)) + 2
        firsts = np.stack([np.full(count, -1), np.arange(count) - 1], axis=1)
        found = Expansion(kind.reduced, firsts).boxes(numbers.starts[-1] + 1 + marks)
        return [[one for box in found.get(t, []) for one in _unrolled(box)] for t in group.sinks]
    starts = kind.edges.numbers.starts[: len(group.sinks) + 1].tolist()
    every = [boxes_of(marks[a:b], np.zeros(b - a, np.int64)) for a, b in pairwise(starts)]
    return [[(box.label, one) for box in own for _, one in _unrolled(box)] for own in every]


def _unrolled(box: FlatBox) -> Iterator[tuple[int, CertifiedBox]]:
    """Split a box so that marks, which may increase along its loops, are constant."""
    counting = [loop for loop in box.loops if loop[1]]
    loops = tuple([(n, (to,)) for n, at, to in box.loops if not at])
    for index in np.ndindex(*(n for n, _, _ in counting)):
        moves = list(zip(index, counting, strict=True))
        mark = box.start + sum(i * at for i, (_, at, _) in moves)
        yield mark, CertifiedBox((), (box.to + sum(i * to for i, (_, _, to) in moves),), loops)


class Tracer:
    """Propagation of boxes through ops, with the data that the checker needs.

    ``ops`` are those of instance files, ``sinks`` for each sink, by tensor number, its boxes
    ``(element, copy, location)``.
    """

    def __init__(
        self,
        graph: GraphStore,
        ops: list[dict[str, Any]],
        places: NumberedLocations,
        sinks: dict[int, list[CertifiedBox]],
        equations: Equations,
    ) -> None:
        self.graph, self.ops, self.places, self.equations = graph, ops, places, equations
        # For each view and each of its carriers `"kept"`: boxes `(side, element, element of the
        # view)`; and `"left"`: `(side, element)`.
        self.views: dict[str, list[dict[str, list[CertifiedBox]]]] = {}
        # Boxes `(copy, location, element)`.
        self.sinks = {
            graph.tensor_name(t): [box.of(1, 2, 0) for box in own] for t, own in sinks.items()
        }
        self._found = {t: [box.of(0, 1) for box in own] for t, own in sinks.items()}

    def boxes(self, t: int) -> list[CertifiedBox]:
        """Return the boxes ``(element, side)`` of a tensor."""
        for out in self.graph.view_order([t], self._found):
            self._found[out] = self._view(out) if self._sources(out) else self._own(out)
        return self._found[t]

    def together(self, a: int, b: int) -> list[CertifiedBox]:
        """Return boxes ``(element, side, side)`` of two tensors of one shape."""
        return join_on(self.boxes(a), self.boxes(b), self.graph.shapes[a], self.equations)

    def _sources(self, t: int) -> list[int]:
        return self.graph.carriers(self.graph.producers[t])

    def _own(self, t: int) -> list[CertifiedBox]:
        mapped = self.places.mapped.get(t)
        if mapped is not None:
            return [box._replace(tag=FIXED) for box in mapped]
        whole = line(prod(self.graph.shapes[t]), self.places.starts[t])
        return [box.of(1, 0, tag=FIXED) for box in whole]

    def _view(self, t: int) -> list[CertifiedBox]:
        ins, op = self._sources(t), self.ops[self.graph.producers[t]]
        if op["type"] in SAME:
            return self._found[ins[0]]
        shapes = [self.graph.shapes[c] for c in ins]
        claims, found = [], []
        for c, moved, left in zip(ins, relation(op, shapes), _left(op, shapes), strict=True):
            both, shape = self._found[c], self.graph.shapes[c]
            kept, rest = (join_on(own, both, shape, self.equations) for own in (moved, left))
            claims.append(
                {"kept": [b.of(2, 0, 1) for b in kept], "left": [b.of(1, 0) for b in rest]}
            )
            found += [box.of(1, 2) for box in kept]
        self.views[self.graph.tensor_name(t)] = claims
        return found


def _left(op: dict[str, Any], shapes: list[tuple[int, ...]]) -> list[list[CertifiedBox]]:
    """Return boxes ``(element,)`` of the elements that a view omits, for each input."""
    if op["type"] not in CUTTING:
        nothing = op["type"] == "expand" and not prod(op["shape"])
        whole = [[box.of(0) for box in line(prod(shape))] for shape in shapes]
        return whole if nothing else [[] for _ in shapes]
    [shape], found = shapes, []
    steps = steps_of(shape)

    def at(d: int, boxes: list[CertifiedBox]) -> list[CertifiedBox]:
        return [scaled(box.of(0), (steps[d],)) for box in boxes]

    kept = [at(d, along(op, shapes, 0, d)[1]) for d in range(len(shape))]
    for d in range(len(shape)):
        rest = [at(e, line(shape[e])) for e in range(d + 1, len(shape))]
        found += crossed([*kept[:d], at(d, _between(op, shape[d], d)), *rest], 1)
    return [found]


def _between(op: dict[str, Any], n: int, d: int) -> list[CertifiedBox]:
    """Return boxes of the indices of a dimension that an op omits."""
    if op["type"] == "slice":
        a, b = op["lower"][d], op["upper"][d]
        return line(a) + line(n - b, b)
    if op["type"] == "sub_sample":
        s = op["strides"][d]
        times, rest = divmod(n, s)
        whole = [
            CertifiedBox((), (1, 0), (*own.loops, (times, (s, 0)))) for own in line(s - 1) if times
        ]
        return whole + line(max(rest - 1, 0), times * s + 1)
    stripes = op["setts"][d]
    return runs(np.setdiff1d(np.arange(n), kept_of(n, stripes))) if stripes else []
