"""Layouts that a heuristic chooses: on elements, or on boxes of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from layoutopt.base.entries import Entry
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, fits_memory, require
from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box, VectorBox, canonical
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.join import BoxIndex, image, join
from layoutopt.boxes.merge import merged
from layoutopt.check.elements import evaluate
from layoutopt.graphs.locations import FixedElements, LayoutDict
from layoutopt.graphs.ops import Expand, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.families import moves
from layoutopt.lowering.elements.kinds import layouts_of
from layoutopt.lowering.greedy0 import Elements, Greedy, Path, greedy0, inverse, relevant

STEPS = 2 * 10**5  # how many steps may be taken; see `Equations`

Line = tuple[int, int]
"""Extent and step of a loop along one axis."""

Gap = tuple[int, tuple[Line, ...]]
"""The first index of a set along one axis, and its loops."""


class Chosen(NamedTuple):
    """Origins that a heuristic has chosen."""

    layouts: LayoutDict  # the pieces of every sink
    complete: bool  # whether time and steps sufficed; else the rest got fresh locations


def greedy0_by_boxes(graph: GraphStore, limits: Limits, steps: int = STEPS) -> Chosen:
    """Choose layouts as Greedy0 does, as far as time and steps suffice."""
    greedy = _GreedyByBoxes(graph, limits, _Timed(steps, limits))
    try:
        greedy.run()
        complete = True
    except (SizeError, TimeoutError):
        complete = False
    return Chosen({sink.name: greedy.layout(sink.index) for sink in graph.sinks()}, complete)


class _Timed(Equations):
    """Equations that end with the time."""

    def __init__(self, steps: int, limits: Limits) -> None:
        super().__init__(steps)
        self.limits = limits

    def spend(self, steps: int = 1) -> None:
        """Count steps, and look at the time."""
        super().spend(steps)
        if self.limits.over:
            raise TimeoutError


class _GreedyByBoxes(Greedy):
    """The state of one run: pieces of tensors; what is covered of sinks, and what they lack."""

    def __init__(self, graph: GraphStore, limits: Limits, equations: Equations) -> None:
        super().__init__(graph, limits)
        self.equations = equations
        needed = relevant(graph, FixedElements(graph))
        self.pieces: dict[int, list[list[Box]]] = {t: [] for t in needed}
        self.missing = {t: size(graph.shapes[t]) for t in needed}
        self.sinks: dict[int, tuple[list[Box], list[Box]]] = {
            sink.index: ([], [_whole(graph, sink.index, 0)])
            for sink in graph.sinks()
            if self.missing.get(sink.index)
        }
        self.ways = _Ways(graph, equations)
        self.moves: dict[int, list[Box]] = {}
        self.done: dict[tuple[int, int], int] = {}

    def run(self) -> None:
        """Cover whatever sources and barriers lead to."""
        for i, op in enumerate(self.graph.ops):
            ready = op.kind is Kind.BARRIER and self._known(i)
            if op.kind in (Kind.SOURCE, Kind.FIXED_POINT) or ready:
                self._cover_themselves(i)
        self.settle()

    def layout(self, sink: int) -> tuple[Piece, ...]:
        """Return the pieces of a sink; what is not covered has locations of its own."""
        every = [_whole(self.graph, sink, 0)] if size(self.graph.shapes[sink]) else []
        covered, lacking = self.sinks.get(sink, ([], every))
        rest = [
            canonical(sink, to, to, [(n, here, here) for n, _, here in loops])
            for _, _, to, loops in lacking
        ]
        found = covered + rest
        with suppress(SizeError):
            found = merged(found, Equations(STEPS))
        return tuple((self.graph.tensor_name(b.label), b.start, b.to, b.loops) for b in found)

    def _flow(self) -> set[int]:
        grew = set()
        while self.stack:
            t, piece = self.stack.pop()
            grew.add(t)
            places = BoxIndex(piece, self.graph.shapes[t], self.equations)
            for i, k in self.consumers[t]:
                op, inputs = self.graph.ops[i], self.graph.op_inputs[i]
                if op.kind is Kind.BARRIER:
                    if self._known(i):
                        self._cover_themselves(i)
                elif k in (carriers := list(op.carriers(len(inputs)))):
                    self._move(i, carriers.index(k), places)
        return grew

    def _move(self, i: int, own: int, places: BoxIndex) -> None:
        """Carry a piece of one carrier of a view to its output."""
        [out] = self.graph.op_outputs[i]
        if out not in self.pieces:
            return
        if i not in self.moves:
            self.moves[i] = _moves(self.graph, i)
        found: list[Box] = []
        for move in self.moves[i]:
            if move.label == own:
                found += image(move, places, self.equations)
        self._cover(out, merged(found, self.equations))

    def _known(self, barrier: int) -> bool:
        return all(self.missing.get(t, 0) == 0 for t in self.graph.op_inputs[barrier])

    def _cover_themselves(self, i: int) -> None:
        """Give the outputs of an op that are not covered yet their own locations."""
        for t in self.graph.op_outputs[i]:
            if self.missing.get(t) and not self.pieces[t]:
                self._cover(t, [_whole(self.graph, t, 1)._replace(label=t)])

    def _cover(self, t: int, boxes: list[Box]) -> None:
        """Add a piece."""
        if boxes:
            self.pieces[t].append(boxes)
            self.missing[t] -= sum(box.elements for box in boxes)
            self.stack.append((t, boxes))

    def _carry_back(self, t: int, p: int) -> None:
        """Cover sinks; a piece that was carried back once has nothing left to cover there."""
        first = self.done.get((t, p), 0)
        if not self.missing[p] or first == len(self.pieces[t]):
            return
        self.done[t, p] = len(self.pieces[t])
        for piece in self.pieces[t][first:]:
            places = BoxIndex(piece, self.graph.shapes[t], self.equations)
            for sink, way in self.ways.back(p):
                if self.missing[sink]:
                    back: list[Box] = []
                    for step in way:
                        back += image(step.inverse, places, self.equations)
                    self._take(sink, merged(back, self.equations))

    def _take(self, sink: int, boxes: Sequence[Box]) -> None:
        """Cover what a sink lacks of some boxes."""
        covered, lacking = self.sinks[sink]
        found: list[Box] = []
        for box in boxes:
            taken, lacking = self._cut(lacking, box)
            found += taken
        if found:
            found, lacking = (merged(boxes, self.equations) for boxes in (found, lacking))
            self.sinks[sink] = covered + found, lacking
            self._cover(sink, found)

    def _cut(self, lacking: Sequence[Box], box: Box) -> tuple[list[Box], list[Box]]:
        """Return what a box has in common with what a sink lacks, and what is lacking still."""
        taken, kept, todo = [], [], list(lacking)
        while todo:
            self.equations.spend()
            part = todo.pop()
            common = self._common(part, box)
            if not common:
                kept.append(part)
                continue
            rest = _rest(part, common[0])
            if rest is None:
                todo += _slabs(part, common[0])
                continue
            (to, *_, start), loops = common[0]
            both = [(n, step[-1], step[0]) for n, step in loops]
            taken.append(canonical(box.label, start, to, both))
            if len(common) == 1:
                kept += rest
            else:
                todo += rest
        return taken, kept

    def _common(self, part: Box, box: Box) -> list[VectorBox]:
        """Return common elements: in the sink, the index of each loop, and in the box's origin."""
        width = len(part.loops)
        loops = []
        for k, (n, _, here) in enumerate(part.loops):
            axis = [int(j == k) for j in range(width)]
            loops.append((n, (here, here, *axis)))
        own = VectorBox((part.to, part.to, *[0] * width), tuple(loops))
        return list(join(own, box.vectors, self.equations))


def _whole(graph: GraphStore, t: int, there: int) -> Box:
    """Return all of a tensor as one box."""
    return canonical(0, 0, 0, [(size(graph.shapes[t]), there, 1)])


def _moves(graph: GraphStore, i: int) -> list[Box]:
    [out], carriers = graph.op_outputs[i], graph.carriers(i)
    found = moves(graph.ops[i], [graph.shapes[c] for c in carriers], graph.shapes[out])
    return [canonical(*move) for move in found if move.elements]


def _rest(part: Box, common: VectorBox) -> list[Box] | None:
    """Return a box without some of its elements; ``None`` if they are no product of sets.

    ``common`` has, between two quantities that do not matter, the index of each loop.
    """
    firsts = list(common.start[1:-1])
    lines: list[list[Line]] = [[] for _ in firsts]
    for n, step in common.loops:
        along = [k for k, more in enumerate(step[1:-1]) if more]
        if n > 1 and len(along) != 1:
            return None
        if n > 1:
            [k] = along
            stride = step[1 + k]
            firsts[k] += min(stride * (n - 1), 0)
            lines[k].append((n, abs(stride)))
    found: list[Box] = []
    done: list[Gap] = []
    for k, (n, _, _) in enumerate(part.loops):
        line = sorted(lines[k], key=lambda each: -each[1])
        gaps = _gaps(n, firsts[k], line)
        if gaps is None:
            return None
        whole: list[Gap] = [(0, ((m, 1),)) for m, _, _ in part.loops[k + 1 :]]
        found += [_inside(part, [*done, gap, *whole]) for gap in gaps]
        done.append((firsts[k], tuple(line)))
    return found


def _gaps(extent: int, first: int, lines: Sequence[Line]) -> list[Gap] | None:
    """Return the indices of an axis that loops leave out; ``None`` if loops overlap."""
    holes = _holes(lines)
    if holes is None:
        return None
    end = first + 1 + sum((n - 1) * step for n, step in lines)
    ends = [(0, first), (end, extent - end)]
    found: list[Gap] = [(start, ((n, 1),)) for start, n in ends if n]
    return found + [(first + start, loops) for start, loops in holes]


def _holes(lines: Sequence[Line]) -> list[Gap] | None:
    """Return what loops, in descending order of steps, leave out between their ends."""
    if not lines:
        return []
    (n, step), inner = lines[0], lines[1:]
    width = 1 + sum((m - 1) * more for m, more in inner)
    holes = _holes(inner)
    if holes is None or width > step:
        return None
    found = [(start, ((n, step), *loops)) for start, loops in holes]
    return [*found, (width, ((n - 1, step), (step - width, 1)))] if width < step else found


def _inside(part: Box, axes: Sequence[Gap]) -> Box:
    """Return a product of sets of indices of a box's loops as a box."""
    to, loops = part.to, []
    for (_, _, here), (first, lines) in zip(part.loops, axes, strict=True):
        to += first * here
        loops += [(n, 0, step * here) for n, step in lines]
    return canonical(0, 0, to, loops)


def _slabs(part: Box, common: VectorBox) -> list[Box]:
    """Return a box in slices along the shortest loop that elements in common do not run along."""
    mixed: Counter[int] = Counter()
    for n, step in common.loops:
        mixed.update(k for k, more in enumerate(step[1:-1]) if more and n > 1)
    which = min(mixed, key=lambda k: part.loops[k][0])
    n, _, here = part.loops[which]
    rest = part.loops[:which] + part.loops[which + 1 :]
    return [Box(0, 0, part.to + k * here, rest) for k in range(n)]


class _Ways:
    """Ways from tensors back to sinks, as boxes: ``start`` in the sink, ``to`` in the tensor."""

    def __init__(self, graph: GraphStore, equations: Equations) -> None:
        self.graph, self.equations = graph, equations
        self.readers = Counter(t for inputs in graph.op_inputs for t in inputs)
        self.paths: list[Path] = []
        self.numbers: dict[Path, int] = {}
        self.found: dict[int, list[Box]] = {}
        self.sorted: dict[int, list[tuple[int, list[Box]]]] = {}

    def back(self, t: int) -> list[tuple[int, list[Box]]]:
        """Return the ways back from a tensor, in order: the sink, and boxes."""
        if t not in self.sorted:
            ways: dict[int, list[Box]] = defaultdict(list)
            for box in self._boxes(t):
                ways[box.label].append(box)
            last = self.graph.producers[t]
            order = sorted(ways, key=lambda n: inverse(self.paths[n], last))
            self.sorted[t] = [(self.paths[n][0], ways[n]) for n in order]
        return self.sorted[t]

    def _boxes(self, t: int) -> list[Box]:
        for out in self.graph.view_order([t], self.found):
            self.found[out] = merged(self._of(out), self.equations)
        return self.found[t]

    def _of(self, t: int) -> Iterator[Box]:
        i = self.graph.producers[t]
        op, inputs = self.graph.ops[i], self.graph.op_inputs[i]
        if op.kind is Kind.SINK and size(self.graph.shapes[t]):
            yield _whole(self.graph, t, 1)._replace(label=self._number((t,)))
        if op.kind is not Kind.VIEW:
            return
        carriers = list(op.carriers(len(inputs)))
        for move in _moves(self.graph, i):
            k = carriers[move.label]
            c = inputs[k]
            if isinstance(op, Expand):  # only index 0 of a broadcast dimension leads back
                move = move._replace(loops=tuple([loop for loop in move.loops if loop[1]]))
            places = BoxIndex(self.found[c], self.graph.shapes[c], self.equations)
            for box in image(move, places, self.equations):
                if self.readers[c] > 1:
                    yield box._replace(label=self._number((*self.paths[box.label], i, k)))
                else:
                    yield box

    def _number(self, path: Path) -> int:
        if path not in self.numbers:
            self.numbers[path] = len(self.paths)
            self.paths.append(path)
        return self.numbers[path]


BYTES = 12  # what a heuristic keeps of an element: a location, and the piece that gave it
LARGE = 10**7  # graphs of so many elements are not looked at element by element
TOO_LARGE = 10**9  # graphs of so many elements are not even where boxes are too many
SHARE = 0.5  # share of the time that is left for boxes: their layouts are to be checked, too


def choose(
    graph: GraphStore, solver: Entry, limits: Limits, given: FixedElements, large: int = LARGE
) -> LayoutDict | None:
    """Return the layouts that a heuristic chooses; ``None`` if a tile memory is too small for them.

    Greedy0 chooses the same whether it looks at elements or at boxes of them.  Where irregular
    views make too many boxes, and the graph is too large for its elements, it covers what it can in
    time; the rest gets fresh locations.  A user's heuristic, and any if some elements are given,
    looks at every element: raises ``SizeError`` if they do not fit this machine's memory, and
    ``TimeoutError`` if time runs out.
    """
    heuristic, elements = solver.load(), sum(map(size, graph.shapes))
    if heuristic is greedy0 and elements >= large and not given.count:
        found = greedy0_by_boxes(graph, limits.within(SHARE * limits.left))
        if (
            found.complete
            or elements >= TOO_LARGE
            or limits.over
            or not fits_memory(BYTES * elements)
        ):
            return _kept(graph, found.layouts)
    require(BYTES * elements, f"{solver.name}, which looks at every element here,")
    chosen = heuristic(graph, limits, given, Elements(graph))
    return _kept(graph, layouts_of(graph, chosen))


def _kept(graph: GraphStore, layouts: LayoutDict) -> LayoutDict | None:
    """Return layouts if a tile memory's capacity and grain permit: heuristics know neither."""
    if graph.tile_memory is not None and evaluate(graph, layouts).violations:
        return None
    return layouts
