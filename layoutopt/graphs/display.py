"""Graphs as pictures, coloured by the locations of their elements."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import asdict

from layoutopt.base import numbers
from layoutopt.base.numbers import counted, more, number, unique
from layoutopt.base.result import PairScore, Piece, UnwindingResult, elements
from layoutopt.base.table import Part, Table, Words
from layoutopt.graphs.locations import Locations, Placed, checked_layouts, layouts_in
from layoutopt.graphs.ops import Array, Kind, Shape, Source, UnwindingOp, size, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import TileLocations
from layoutopt.pictures import grids
from layoutopt.pictures.cards import Card, OpCard, Tie
from layoutopt.pictures.colours import palette
from layoutopt.pictures.figure import figure, summary
from layoutopt.pictures.grids import BLANK, OTHERS, OWN, CellGrid, Stripe
from layoutopt.pictures.svg import Picture, abbreviations, distinct, shortened

MOST_OPS = 60  # largest number of ops in a table
MOST_IN_CELL = 6  # largest number of inputs or ValuedPairs in a cell of a table


def table(graph: GraphStore) -> str:
    """Return a table of a graph's first ops, a line for each output.

    Attractions are the other tensors of its ValuedPairs, and their values.
    """
    columns = ("tensor", "type", "inputs", "shape", "attractions")
    rows: list[tuple[str, ...]] = []
    for op, outputs in zip(graph.ops[:MOST_OPS], graph.op_outputs, strict=False):
        head = type_name(op), _cell(op.inputs)
        rows += [_row(graph, t, *head) for t in outputs] or [(op.id, *head, "", "")]
    rest = more(len(graph.ops) - MOST_OPS, "op")
    lines = [repr(graph), Table(columns, rows, len(columns)).text(""), rest]
    return "\n".join(filter(None, lines))


def _row(graph: GraphStore, t: int, tag: str, inputs: str) -> tuple[str, str, str, str, str]:
    partners = graph.valued_partners(graph.handle(t))
    attractions = _cell(f"{partner.name}: {value}" for partner, value in partners)
    return graph.tensor_name(t), tag, inputs, str(list(graph.shapes[t])), attractions


def _cell(entries: Iterable[str]) -> str:
    every = list(entries)
    left = len(every) - MOST_IN_CELL
    return ", ".join(every[:MOST_IN_CELL] + ([f"and {left} more"] if left > 0 else []))


ALONE, NAMED = -1, -2
"""Stand-ins for a root tensor: unshared locations, and locations named by mappings."""


def shares(
    numbers: Locations,
    where: Mapping[int, Array],
    given: Placed,
    chosen: Iterable[int],
    shared: Container[int],
) -> dict[int, Counter[int]]:
    """Count the elements of each tensor at the locations of each root tensor.

    ``where`` has the location number of each element, by tensor number, ``given`` the layouts of
    sinks as pieces, ``chosen`` further tensors; sinks are ``shared`` at locations that others take.
    """
    graph = numbers.graph
    roots = np.array(list(numbers.first), np.int64)
    starts = np.array(list(numbers.first.values()), np.int64)
    end = numbers.count - len(numbers.pool)
    sinks = [graph.op_of(t).kind is Kind.SINK for t in roots]
    found: dict[int, Counter[int]] = {}
    for t, array in where.items():
        flat = array.reshape(-1)
        own = flat[flat < end]
        owner = np.searchsorted(starts, own, "right") - 1
        alone = np.array(sinks)[owner]
        common = [n for n in unique(own[alone]).tolist() if n in shared]
        alone &= ~np.isin(own, common)
        each, counts = np.unique(np.where(alone, ALONE, roots[owner]), return_counts=True)
        found[t] = Counter(dict(zip(each.tolist(), counts.tolist(), strict=True)))
        found[t] += Counter({NAMED: len(flat) - len(own)})
    for t in chosen:
        fixed = graph.op_of(t).kind not in (Kind.SINK, Kind.VIEW)
        if fixed and t not in where:
            found[t] = Counter({t: size(graph.shapes[t])})
    names = {t: graph.tensor_name(t) for t in given}
    lent = {p[0] for t, layout in given.items() for p in _pieces(layout) if p[0] != names[t]}
    for t in given.keys() - where.keys():
        found[t] = Counter()
        for piece in _pieces(given[t]):
            fresh = piece[0] == names[t] and piece[0] not in lent
            found[t][ALONE if fresh else graph.number(piece[0])] += elements(piece)
    return found


def _pieces(layout: Array | Sequence[Piece]) -> Sequence[Piece]:
    return () if isinstance(layout, np.ndarray) else layout


WORDS_FIT = 100  # largest number of coloured locations for which cells have text


@dataclass(frozen=True)
class Look:
    """Appearance of a location: colour, short name and description."""

    fill: str
    word: str
    tip: str


class LocationNames:
    """Tensors of location numbers, and their names."""

    def __init__(self, numbers: Locations) -> None:
        self.graph = numbers.graph
        self._roots, self._starts = list(numbers.first), list(numbers.first.values())
        self._values = {number: value for value, number in numbers.pool.items()}
        self._mapped: dict[int | str, int] = {}
        for i, op in enumerate(self.graph.ops):
            if isinstance(op, Source):
                for value in op.mapping or ():
                    self._mapped.setdefault(value, self.graph.op_outputs[i][0])

    def root(self, number: int) -> int:
        """Return the first root tensor with a location; -1 if no mapping names it."""
        if number in self._values:
            return self._mapped.get(self._values[number], -1)
        return self._roots[bisect_right(self._starts, number) - 1]

    def family(self, number: int) -> tuple[bool, int]:
        """Return a location's key for hues: a root tensor, or a value of mappings."""
        named = number in self._values
        return named, number if named else self.root(number)

    def kind(self, number: int) -> Kind:
        """Return the kind of the root tensor of a location."""
        if number in self._values:
            return Kind.SOURCE
        return self.graph.op_of(self.root(number)).kind

    def full(self, number: int) -> str:
        """Return the name of a location."""
        if number in self._values:
            what = "location" if self.graph.tile_memory is None else "tile"
            return f"{what} {self._values[number]!r}"
        t = self.root(number)
        return self.graph.tensor_name(t) + indexed(self._element(number), self.graph.shapes[t])

    def short(self, locations: Iterable[int]) -> dict[int, str]:
        """Return a short name for each location, unless two would have the same."""
        every = list(locations)
        own = [n for n in every if n not in self._values]
        tensors = {n: self.graph.tensor_name(self.root(n)) for n in own}
        values = {n: str(self._values[n]) for n in every if n in self._values}
        heads = abbreviations(tensors.values())
        short = abbreviations(value for value in values.values() if len(value) > 3)
        words = {n: self._word(heads[name], n) for n, name in tensors.items()}
        words |= {n: short.get(value, value) for n, value in values.items()}
        times = Counter(words.values())
        return {n: word for n, word in words.items() if times[word] == 1}

    def _word(self, head: str, number: int) -> str:
        if size(self.graph.shapes[self.root(number)]) == 1:
            return head
        return f"{head}{'.' if head[-1].isdigit() else ''}{self._element(number)}"

    def _element(self, number: int) -> int:
        return number - self._starts[bisect_right(self._starts, number) - 1]


Family: TypeAlias = tuple[bool, bool, int]
"""Key for hues: whether it is a sink's, whether a mapping's value, and its number."""


class Looks:
    """Appearance of locations: ``of`` each, and ``hues``, a colour of each family.

    Locations of ``unknown`` root tensors are not known, locations of sinks that other tensors take
    are ``shared``, and ``owners`` always have a colour.
    """

    def __init__(
        self,
        names: LocationNames,
        locations: Iterable[int],
        unknown: Container[int],
        shared: Container[int],
        owners: Iterable[int],
    ) -> None:
        self.of: dict[int, Look] = {}
        self.names = names
        families: dict[Family, list[int]] = {self.family(owner): [] for owner in owners}
        for n in sorted(locations):
            root, sink = names.root(n), names.kind(n) is Kind.SINK
            if root in unknown and sink:
                self.of[n] = Look(BLANK, "", "not yet placed")
            elif sink and n not in shared:
                self.of[n] = Look(OWN, "", "at a location of its own")
            else:  # sinks last, so that other colours are the same in all solutions
                families.setdefault((sink, *names.family(n)), []).append(n)
        order = sorted(families)
        coloured = [n for family in order for n in families[family]]
        words = names.short(coloured) if len(coloured) <= WORDS_FIT else {}
        colours = palette([max(1, len(families[family])) for family in order])
        self.hues = {f: fills[len(fills) // 2] for f, fills in zip(order, colours, strict=True)}
        for family, fills in zip(order, colours, strict=True):
            for n, fill in zip(families[family], fills, strict=False):
                self.of[n] = Look(fill, words.get(n, ""), f"at {names.full(n)}")
                if names.root(n) in unknown:
                    self.of[n] = Look(BLANK, "", "depends on unplaced sinks")

    def family(self, owner: int) -> Family:
        """Return the family of all locations of a root tensor."""
        graph = self.names.graph
        return graph.op_of(owner).kind is Kind.SINK, False, owner

    def stripe(self, owner: int, count: int) -> Stripe:
        """Return the stripe for ``count`` elements at an owner's locations."""
        if owner == ALONE:
            return Stripe(OWN, count, f"{count:,} at locations of their own")
        if owner == NAMED:
            return Stripe(OTHERS, count, f"{count:,} at locations named by mappings")
        name = self.names.graph.tensor_name(owner)
        return Stripe(self.hues[self.family(owner)], count, f"{count:,} at locations of {name}")


def cells(
    numbers: Locations,
    where: Mapping[int, Array],
    unknown: Container[int],
    shared: Container[int],
    shares: Mapping[int, Counter[int]],
) -> dict[int, CellGrid | tuple[Stripe, ...]]:
    """Return the appearance of tensors: cells where locations are known, else shares as stripes."""
    graph = numbers.graph
    found: dict[int, CellGrid | tuple[Stripe, ...]] = {}
    every = {n for array in where.values() for n in unique(array).tolist()}
    owners = {owner for counts in shares.values() for owner in counts if owner >= 0}
    looks = Looks(LocationNames(numbers), every, unknown, shared, owners)
    for t, counts in shares.items():
        found[t] = tuple(looks.stripe(*item) for item in counts.most_common())
    for t, array in where.items():
        shown = [looks.of[n] for n in array.reshape(-1).tolist()]
        name, shape = graph.tensor_name(t), graph.shapes[t]
        found[t] = CellGrid(
            tuple(one.fill for one in shown),
            tuple(one.word for one in shown),
            tuple(f"{name}{indexed(i, shape)}: {one.tip}" for i, one in enumerate(shown)),
        )
    return found


def indexed(element: int, shape: Shape) -> str:
    """Return the index of a flat element, in brackets; an empty string for rank 0."""
    return str([int(i) for i in np.unravel_index(element, shape)]) if shape else ""


Layouts: TypeAlias = Mapping[Any, Sequence[Piece] | Array]
"""Layouts of sinks, by name or handle: pieces, or arrays of location numbers."""

CELLS, ALL_CELLS = 256, 1200
"""Largest number of elements drawn as cells, per tensor and in total; others are plain boxes."""

TRACED = 2**20  # tensors with larger roots are plain boxes, and their elements are not counted


def figure_of(
    graph: GraphStore, layouts: Layouts | None, chosen: Sequence[int], pairs: Sequence[PairScore]
) -> str:
    """Draw tensors, given by number, with all ops and ValuedPairs between them, as SVG.

    Pairs of tensors that are too large to trace match as the scores of ``pairs`` say.
    """
    laid = layouts is not None
    numbers = Locations(graph)
    if graph.tile_memory is not None:
        numbers = TileLocations(graph, laid, laid and sum(map(size, graph.shapes)) <= TRACED)
    given = checked_layouts(numbers, layouts or {})
    place = {t: i for i, t in enumerate(chosen)}
    found: dict[int, Array] = {}
    wanted = [t for t in _traced(graph) if t in place and (laid or size(graph.shapes[t]) <= CELLS)]
    numbers.find(given, wanted, found)
    where = {t: found[t] for t in wanted}
    if laid and graph.tile_memory is not None:  # but where no hook tells the tiles
        where = {t: tiles for t, tiles in where.items() if (tiles >= numbers.count).all()}
    shown = {t: where[t] for t in _drawn_as_grids(graph, where)}
    unknown = _depending_on_sinks(graph) if layouts is None else set()
    shared = _shared(numbers, where)
    counts = {}
    if laid and graph.tile_memory is None:  # owners of locations matter little on tiles
        large = {t: array for t, array in where.items() if t not in shown and array.size}
        huge = {t: layout for t, layout in given.items() if t in place and t not in where}
        counts = shares(numbers, large, huge, [t for t in chosen if t not in where], shared)
    looks = cells(numbers, shown, unknown, shared, counts)
    names = distinct(map(graph.tensor_name, chosen))
    return figure(
        graph.name or "graph",
        [_card(graph, t, names[graph.tensor_name(t)], looks.get(t)) for t in chosen],
        _steps(graph, place),
        _ties(graph, place, where, laid, {(p.a, p.b): p.matched for p in pairs}),
        "valued pair: value" + ("" if layouts is None else " · matched of all"),
    )


def _traced(graph: GraphStore) -> list[int]:
    """Return the tensors without very large roots."""
    largest: list[int] = []
    for t, producer in enumerate(graph.producers):
        before = (largest[c] for c in graph.carriers(producer))
        largest.append(max([size(graph.shapes[t]), *before]))
    return [t for t, most in enumerate(largest) if most <= TRACED]


def _drawn_as_grids(graph: GraphStore, tensors: Iterable[int]) -> list[int]:
    """Return the tensors drawn cell by cell: the smallest ones, up to the limits."""
    found, total = [], 0
    for t in sorted(tensors, key=lambda t: size(graph.shapes[t])):
        count = size(graph.shapes[t])
        total += count
        if count <= CELLS and total <= ALL_CELLS and grids.plan(graph.shapes[t]) is not None:
            found.append(t)
    return found


def _depending_on_sinks(graph: GraphStore) -> set[int]:
    """Return the tensors that depend on sinks through views and barriers."""
    found: set[int] = set()
    for i, op in enumerate(graph.ops):
        needs = graph.op_inputs[i] if op.kind is Kind.BARRIER else graph.carriers(i)
        if op.kind is Kind.SINK or not found.isdisjoint(needs):
            found.update(graph.op_outputs[i])
    return found


def _shared(numbers: Locations, where: Mapping[int, Array]) -> set[int]:
    """Return locations where a pair matches, or that a sink takes from another root."""
    graph = numbers.graph
    ends = {(a, b) for a, b, _ in graph.pairs if a != b and a in where and b in where}
    parts = [where[a][where[a] == where[b]] for a, b in ends]
    for t in where.keys() & numbers.first.keys():
        own = numbers.first[t] <= where[t]
        own &= where[t] < numbers.first[t] + size(graph.shapes[t])
        parts.append(where[t][~own])
    return {n for part in parts for n in unique(part).tolist()}


def _card(
    graph: GraphStore, t: int, title: str, look: CellGrid | tuple[Stripe, ...] | None
) -> Card:
    op, shape = graph.op_of(t), graph.shapes[t]
    name, dims = graph.tensor_name(t), str(list(shape))
    kind = op.kind.value
    note = f"{kind} {dims}" if op.kind in (Kind.SINK, Kind.SOURCE) else dims
    tip = f"{name}: {type_name(op)} of shape {dims}"
    if not isinstance(look, tuple):
        return Card(title, shortened(note, 28), tip, kind, shape, look)
    tip += "".join(f"\n{stripe.tip}" for stripe in look)
    return Card(title, shortened(note, 28), tip, kind, shape, None, look)


def _steps(graph: GraphStore, place: Mapping[int, int]) -> list[OpCard]:
    """Return the ops with a drawn output."""
    steps = []
    for i in dict.fromkeys(graph.producers[t] for t in place):
        op, carriers = graph.ops[i], graph.carriers(i)
        label = "" if op.kind in (Kind.SINK, Kind.SOURCE) else type_name(op)
        drawn = dict.fromkeys(t for t in graph.op_inputs[i] if t in place)
        inputs = tuple((place[t], t in carriers) for t in drawn)
        outputs = tuple(place[t] for t in graph.op_outputs[i] if t in place)
        steps.append(OpCard(label, _op_text(op), inputs, outputs))
    return steps


def _op_text(op: UnwindingOp) -> str:
    rest = {k: v for k, v in asdict(op).items() if k not in ("id", "inputs") and v is not None}
    words = ", ".join(f"{name} {value}" for name, value in rest.items())
    return shortened(f"{type_name(op)} {op.id!r}({', '.join(op.inputs)}) {words}".rstrip(), 160)


def _ties(
    graph: GraphStore,
    place: Mapping[int, int],
    where: Mapping[int, Array],
    laid: bool,
    known: Mapping[tuple[str, str], int],
) -> list[Tie]:
    """Return the ValuedPairs of drawn tensors, those of the same two tensors merged."""
    values: dict[tuple[int, int], Decimal] = {}
    for a, b, value in graph.pairs:
        if a in place and b in place:
            ends = (b, a) if (b, a) in values else (a, b)
            values[ends] = numbers.total([values.get(ends, Decimal(0)), value])
    ties = []
    for (a, b), value in values.items():
        count, label = size(graph.shapes[a]), number(value)
        names = graph.tensor_name(a), graph.tensor_name(b)
        matched = known.get(names) if laid else None
        tip = f"{' ~ '.join(names)}: {label} for each of {count:,}"
        if laid and a in where and b in where:
            matched = int(np.count_nonzero(where[a] == where[b]))
        if matched is not None:
            label += f" · {matched:,} of {count:,}"
            tip += f", {matched:,} match: {number(numbers.times(value, matched))}"
        earns = None if laid and matched is None else matched != 0
        ties.append(Tie(place[a], place[b], label, tip, earns))
    return ties


TENSORS = 40  # largest number of tensors in a picture
ROWS = 30  # largest number of ops in a table in notebooks


def draw(
    graph: GraphStore,
    layouts: Layouts | UnwindingResult | None = None,
    tensors: Iterable[Tensor | str] | Tensor | str | None = None,
) -> Picture:
    """Draw tensors; see :meth:`layoutopt.Graph.draw`."""
    if tensors is None:
        chosen: Sequence[int] = range(len(graph.shapes))
    else:
        if isinstance(tensors, str | Tensor) or not isinstance(tensors, Iterable):
            tensors = [tensors]
        chosen = sorted({graph.number(t) for t in tensors})
    pairs: Sequence[PairScore] = ()
    if isinstance(layouts, UnwindingResult):
        pairs, layouts = layouts.pairs, layouts.layouts
    if layouts is not None:
        layouts = layouts_in(graph, layouts, "layouts")
    if len(chosen) > TENSORS:
        return Picture(_summary(graph, len(chosen)), reduced=True)

    return Picture(figure_of(graph, layouts, chosen, pairs))


def shown_parts(graph: GraphStore) -> Iterator[Part]:
    """Yield what notebooks show of a graph: a picture, or a table of a large graph."""
    yield Words(graph.name or "unnamed", "title")
    yield Words(graph.description, "soft")
    yield Words(_counts(graph))
    if len(graph.shapes) <= TENSORS:
        yield from draw(graph).shown_parts()
        return
    rows = []
    for i in range(min(ROWS, len(graph.ops))):
        shapes = ", ".join(str(list(graph.shapes[t])) for t in graph.op_outputs[i])
        op = graph.ops[i]
        rows.append([op.id, type_name(op), shortened(", ".join(op.inputs)), shapes])
    yield Table(["op", "type", "inputs", "shape"], rows, left=4)
    yield Words(more(len(graph.ops) - ROWS, "op"), "soft")


def _counts(graph: GraphStore) -> str:
    kinds = Counter(op.kind for op in graph.ops)
    entries = [(len(graph.ops), "op"), (len(graph.shapes), "tensor")]
    entries += [(kinds[kind], kind.value) for kind in Kind if kinds[kind]]
    return ", ".join(counted(*entry) for entry in [*entries, (len(graph.pairs), "valued pair")])


def _summary(graph: GraphStore, wanted: int) -> str:
    types = Counter(type_name(op) for op in graph.ops).most_common()
    rows = [(f"{len(graph.shapes):,}", "tensors"), (f"{len(graph.pairs):,}", "valued pairs")]
    rows += [(f"{n:,}", kind) for kind, n in types[:12]]
    if len(types) > 12:
        rows.append((f"{sum(n for _, n in types[12:]):,}", "other ops"))
    note = f"{wanted:,} tensors are too many to draw; choose up to {TENSORS} by tensors=[...]"
    return summary(graph.name or "unnamed graph", rows, note)
