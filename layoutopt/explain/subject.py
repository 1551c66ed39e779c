"""Subject of explanations: layouts of a graph, with matches of its pairs and their obstacles.

Pairs of the same two tensors are merged, and their values added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from decimal import Decimal
from functools import cached_property

from msgspec.structs import replace

from layoutopt.base.errors import InputError, InternalError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import number, to_decimal, to_integers
from layoutopt.base.result import PairScore, Status, UnwindingResult
from layoutopt.check.elements import evaluate
from layoutopt.explain.explanation import Obstacle, listed
from layoutopt.graphs import ops
from layoutopt.graphs.locations import FixedElements, LayoutDict, check_result, fresh_layouts
from layoutopt.graphs.ops import Kind, UnwindingOp, size
from layoutopt.graphs.store import GraphStore, pair_ends
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import fix_tiles, memory_of, unused
from layoutopt.lowering.elements.groups import (
    Group,
    find_cycles,
    find_groups,
    free_tensors,
    sources_of,
)
from layoutopt.tiles.memory import MOST
from layoutopt.unwinding import unwind


def views_of(graph: GraphStore, pairs: Iterable[tuple[int, int]]) -> GraphStore:
    """Return the graph of some pairs, each of value 1, without barrier order and tile memory."""
    pairs = list(pairs)
    needed = {graph.producers[t] for t in sources_of(graph, {t for pair in pairs for t in pair})}
    found = GraphStore(graph.name)
    for i in sorted(needed):
        found.add(_alone(graph.ops[i], tuple(graph.tensor_name(t) for t in graph.carriers(i))))
    for a, b in pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), 1)
    return found


def _alone(op: UnwindingOp, carriers: tuple[str, ...]) -> UnwindingOp:
    """Return an op with the same locations that reads its carriers only."""
    if isinstance(op, ops.SumLike):
        return ops.Identity(id=op.id, inputs=carriers)
    if op.kind is Kind.BARRIER:
        shapes = op.shapes if isinstance(op, ops.Barrier) else None
        return ops.FixedPoint(id=op.id, inputs=(), shape=getattr(op, "shape", None), shapes=shapes)
    return replace(op, inputs=carriers)


def at_one_location(graph: GraphStore) -> GraphStore:
    """Return a graph as by :func:`views_of` with all fixed tensors at one location."""
    found = GraphStore(graph.name)
    one = unused(found, graph, "one")
    found.add(ops.Source(id=one, inputs=(), shape=()))
    for i, op in enumerate(graph.ops):
        if op.kind in (Kind.SINK, Kind.VIEW):
            found.add(op)
            continue
        for t in graph.op_outputs[i]:  # one op per output, with the tensor's name
            found.add(ops.Expand(id=graph.tensor_name(t), inputs=(one,), shape=graph.shapes[t]))
    for a, b, value in graph.pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), value)
    return found


class Subject:
    """A result for a graph, its pairs numbered, and explained within limits.

    ``bound`` and ``optimal`` are what the result proves; ``ends`` are the tensors of each pair by
    number; ``values`` multiples of a ``unit``; ``elements`` and ``matched`` numbers of positions.
    """

    def __init__(self, graph: GraphStore, result: UnwindingResult, limits: Limits) -> None:
        check_result(result)
        self.graph, self.result, self.limits = graph, result, limits
        if result.layouts is None:
            raise InputError("the result has no layouts to explain")
        self.layouts: LayoutDict = dict(result.layouts)
        whole = not result.size.get("given")  # otherwise the bound holds for the fixed layouts only
        self.bound = result.bound if whole else None
        self.optimal = whole and result.status is Status.OPTIMAL
        self.ends: list[tuple[int, int]] = []
        self.values: list[int] = []
        self._place: dict[frozenset[int], int] = {}
        multiples, self.unit = to_integers([value for _, _, value in graph.pairs])
        for (a, b, _), value in zip(graph.pairs, multiples, strict=True):
            p = self._place.setdefault(frozenset((a, b)), len(self.ends))
            if p == len(self.ends):
                self.ends.append((a, b))
                self.values.append(0)
            self.values[p] += value
        self.elements = [size(graph.shapes[a]) for a, _ in self.ends]
        self.matched = self._counted()

    def index(self, a: Tensor | str, b: Tensor | str) -> int:
        """Return the number of the pair of two tensors, in either order."""
        return self._place[pair_ends(self.graph, a, b)]

    def amount(self, multiple: int) -> Decimal:
        """Convert a multiple of the unit to a decimal."""
        return to_decimal(multiple, self.unit)

    @property
    def score(self) -> Decimal:
        """The score of the layouts."""
        pairs = zip(self.values, self.matched, strict=True)
        return self.amount(sum(value * matched for value, matched in pairs))

    def pair_score(self, p: int) -> PairScore:
        """Return a pair's score."""
        a, b = (self.graph.tensor_name(t) for t in self.ends[p])
        value = self.amount(self.values[p])
        return PairScore(a, b, value, self.elements[p], self.matched[p])

    def reach(self, p: int) -> tuple[tuple[int, ...], frozenset[str], GraphStore]:
        """Return the part of the graph that a pair can influence.

        That is pairs by number, the names of sinks that influence them, and the graph of these
        pairs in their order, each of value 1.

        This is its group of tensors, with other groups if barrier order may couple them; on a
        tile memory the whole graph, as all sinks share the capacity.
        """
        groups, contested = self._coupled
        own = next(n for n, group in enumerate(groups) if p in self._pairs_of(group))
        near = [groups[n] for n in (contested if own in contested else [own])]
        sinks = frozenset(self.graph.tensor_name(t) for group in near for t in group.sinks)
        pairs = sorted({q for group in near for q in self._pairs_of(group)})
        tiles = self.graph.tile_memory is not None
        everything = tiles or not self._others_keep_to_themselves(sinks)
        if everything:
            pairs, sinks = list(range(len(self.ends))), frozenset(self.layouts)
        ends = [self.ends[q] for q in pairs]
        if not everything and own not in contested:
            return tuple(pairs), sinks, views_of(self.graph, ends)
        whole = deepcopy(self.graph)
        whole.pairs = [(a, b, Decimal(1)) for a, b in ends]
        return tuple(pairs), sinks, whole

    @cached_property
    def _coupled(self) -> tuple[list[Group], frozenset[int]]:
        """The groups, and the numbers of those that barrier order may couple with others."""
        given = FixedElements(self.graph)
        groups = find_groups(self.graph, given)
        return groups, frozenset(find_cycles(self.graph, groups, given)[1])

    def _pairs_of(self, group: Group) -> set[int]:
        return {self._place[frozenset(self.graph.pairs[n][:2])] for n in group.pairs}

    def _others_keep_to_themselves(self, sinks: Collection[str]) -> bool:
        """Return whether all other sinks use only locations of barriers that they may depend on."""
        graph = self.graph
        useful = {t: group.fixed for group in self._coupled[0] for t in group.sinks}
        taken = {
            (sink.index, graph.number(piece[0]))
            for sink in graph.sinks()
            if sink.name not in sinks
            for piece in self.layouts[sink.name]
        }
        odd = [origin for t, origin in taken if origin not in useful.get(t, ())]
        return not any(graph.op_of(origin).kind is Kind.BARRIER for origin in odd)

    def confirm(self, layouts: LayoutDict, score: Decimal) -> None:
        """Raise InternalError if layouts of the graph are illegal, or have another score."""
        checked = evaluate(self.graph, layouts)
        if checked.violations or checked.score != score:
            why = next(iter(checked.violations), f"they earn {checked.score}, not {score}")
            raise InternalError(f"explained by layouts that cannot be: {why}")

    def _counted(self) -> list[int]:
        checked = evaluate(self.graph, self.layouts)
        if checked.violations:
            raise InputError(f"the result is of another graph: {checked.violations[0]}")
        if checked.score != self.result.score:
            told = f"it says {number(self.result.score)}, its layouts earn {number(checked.score)}"
            raise InputError(f"the result is of another graph: {told}")
        matched = [0] * len(self.ends)
        for (a, b, _), pair in zip(self.graph.pairs, checked.pairs, strict=True):
            matched[self._place[frozenset((a, b))]] = pair.matched
        return matched


def obstacles(graph: GraphStore, a: int, b: int, most: int, limits: Limits) -> tuple[Obstacle, ...]:
    """Return the obstacles of a pair of tensors that can match at so many positions at most.

    There are none if it can match everywhere, or if time runs out.
    """
    elements = size(graph.shapes[a])
    if most == elements:
        return ()
    if graph.tile_memory is not None:
        return _on_tiles(graph, a, b, most, limits)
    views = views_of(graph, [(a, b)])
    unordered = _most(views, limits)
    if unordered is None:
        return ()
    differ = _at_home(at_one_location(views)) - _at_home(views)
    return _told(
        (differ, _why_fixed(graph, a, b)),
        (elements - unordered - differ, _why_repeated(graph, a, b)),
        (unordered - most, _why_later(graph, a, b)),
    )


def _on_tiles(graph: GraphStore, a: int, b: int, most: int, limits: Limits) -> tuple[Obstacle, ...]:
    roomy = fix_tiles(graph)  # rules may look at grains
    roomy.pairs = [(a, b, Decimal(1))]
    roomy.tile_memory = replace(memory_of(graph), bytes_per_tile=MOST, grain=1)
    unlimited = _most(roomy, limits)
    if unlimited is None:
        return ()
    return _told(
        (size(graph.shapes[a]) - unlimited, "tiles that are given differ"),
        (unlimited - most, "tiles hold too little, or a grain would have to be torn apart"),
    )


def _told(*reasons: tuple[int, str]) -> tuple[Obstacle, ...]:
    return tuple(Obstacle(count, why) for count, why in reasons if count)


def _most(graph: GraphStore, limits: Limits) -> int | None:
    """Maximise the matching positions of a graph's only pair; ``None`` if time runs out."""
    left = None if limits.left == math.inf else limits.left
    result = unwind(graph, time_limit=left, seed=limits.seed, workers=limits.workers)
    return result.pairs[0].matched if result.status is Status.OPTIMAL else None


def _at_home(graph: GraphStore) -> int:
    """Count the matching positions of the pair with all sinks at fresh locations."""
    return evaluate(graph, fresh_layouts(graph)).pairs[0].matched


def _why_fixed(graph: GraphStore, a: int, b: int) -> str:
    free = free_tensors(graph, FixedElements(graph))
    if free[a] or free[b]:
        return "both locations are fixed and differ"
    return "no sink reaches either side, and their locations differ"


def _why_repeated(graph: GraphStore, a: int, b: int) -> str:
    why = "one element stands at several positions, which want it at different locations"
    tensors = sources_of(graph, {a, b})
    repeats = _named(graph, tensors, lambda op: isinstance(op, ops.Expand))
    return f"{why}; {repeats} repeats elements" if repeats else why


def _why_later(graph: GraphStore, a: int, b: int) -> str:
    tensors = sources_of(graph, {a, b})
    barriers = _named(graph, tensors, lambda op: op.kind is Kind.BARRIER)
    why = f"outputs of {barriers} are computed from these elements"
    return f"barrier order: {why}, which therefore cannot take their locations"


def _named(graph: GraphStore, tensors: Iterable[int], suits: Callable[[UnwindingOp], bool]) -> str:
    """Return the names of the ops that produce tensors and satisfy a condition."""
    ops = (graph.ops[i] for i in dict.fromkeys(graph.producers[t] for t in tensors))
    return listed([repr(op.id) for op in ops if suits(op)])
