"""Layouts of sinks: a picture of the graph or its most relevant part, and sinks by class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import counted, times
from layoutopt.base.result import PairScore, Piece, UnwindingResult, elements
from layoutopt.base.table import Table
from layoutopt.graphs.display import TENSORS
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.store import GraphStore
from layoutopt.report.pages import Cell, joined, parts


def by_loss(pairs: Iterable[PairScore]) -> list[PairScore]:
    """Sort pairs by loss, then by value, largest first."""
    return sorted(pairs, key=lambda p: (p.loss, times(p.value, p.elements)), reverse=True)


def by_class(pairs: Iterable[PairScore]) -> list[list[PairScore]]:
    """Group equivalent pairs, in the order of their losses.

    Pairs are equivalent if they have the same value and numbers of positions and matches.
    """
    classes: dict[tuple[Decimal, int, int], list[PairScore]] = defaultdict(list)
    for pair in by_loss(pairs):
        classes[pair.value, pair.elements, pair.matched].append(pair)
    return list(classes.values())


PART = 24  # number of tensors drawn of a large graph
CLASSES, ORIGINS = 40, 4  # largest numbers of classes of sinks, and of origins of each


def changed(result: UnwindingResult) -> bool:
    """Return whether a result's graph has visibly changed since it was solved."""
    if result.graph is None or result.layouts is None:
        return False
    try:
        result.draw([])  # checks all layouts
    except InputError:
        return True
    return False


def drawn(result: UnwindingResult) -> str:
    """Draw the graph with its layouts; of a large one the part with the largest losses."""
    graph = result.graph
    if graph is None or result.layouts is None:
        return ""
    if len(graph.shapes) <= TENSORS:
        return parts.picture(str(graph.draw(result)))
    first = [alike[0] for alike in by_class(result.pairs)]
    chosen = [graph.tensor_name(t) for t in around(graph, first, result.layouts)]
    if not chosen:
        return ""
    told = (
        f"Of {len(graph.shapes):,} tensors {len(chosen):,} are drawn: those of one pair of each "
        "class, the classes that lose most, and what these tensors come from."
    )
    picture = graph.draw(result, tensors=chosen)
    return parts.paragraph(told, "soft") + parts.picture(str(picture))


def around(
    graph: GraphStore, pairs: Iterable[PairScore], layouts: Mapping[str, Sequence[Piece]]
) -> list[int]:
    """Return tensors of the first pairs, with the origins of their locations, ascending by number.

    Pairs that depend on a sink come first; as many as fit into :data:`PART` tensors are included.
    """
    decided: list[tuple[set[int], set[int]]] = []
    others: list[tuple[set[int], set[int]]] = []
    for pair in pairs:
        ends = {graph.number(pair.a), graph.number(pair.b)}
        whole = _sources(graph, ends, layouts)
        sink = any(graph.ops[graph.producers[t]].kind is Kind.SINK for t in whole)
        (decided if sink else others).append((whole, ends))
        if len(decided) == PART:
            break
    chosen: set[int] = set()
    for whole, ends in [*decided, *others]:
        if len(chosen | whole) <= PART:
            chosen |= whole
        elif not chosen:
            chosen |= ends
    return sorted(chosen)


def _sources(graph: GraphStore, ends: set[int], layouts: Mapping[str, Sequence[Piece]]) -> set[int]:
    """Return tensors with the origins of their locations, through views and layouts.

    Slightly more than :data:`PART` tensors may be returned, and then not all.
    """
    found, todo = set(ends), list(ends)
    while todo and len(found) <= PART:
        t = todo.pop()
        origins = {piece[0] for piece in layouts.get(graph.tensor_name(t), ())} - {TILE}
        near = {*graph.carriers(graph.producers[t]), *map(graph.number, origins)}
        todo += near - found
        found |= near
    return found


def sinks_by_class(result: UnwindingResult) -> str:
    """Return a table of classes of sinks and the origins of their locations.

    Sinks are in one class if they have the same shape, and as many elements each at locations of
    tensors of the same kind and shape.
    """
    if not result.layouts:
        return ""
    classes: dict[object, list[str]] = defaultdict(list)
    takes = {sink: _taken(pieces) for sink, pieces in result.layouts.items()}
    for sink, counts in takes.items():
        classes[_class(result.graph, sink, counts)].append(sink)
    order = sorted(classes.values(), key=lambda s: -len(s) * sum(takes[s[0]].values()))
    rows = [_row(result.graph, sinks, takes[sinks[0]]) for sinks in order[:CLASSES]]
    head = ["sinks", "shape", "elements of each", "lie at locations of"]
    told = counted(len(takes), "sink")
    if len(order) < len(takes):
        told += f" in {counted(len(order), 'class')} of sinks that lie alike"
    table = Table(head, rows, hidden=len(order) - CLASSES, noun="class")
    return parts.table(table, caption=told)


def _taken(pieces: Sequence[Piece]) -> Counter[str]:
    """Count the elements at locations of each origin."""
    found: Counter[str] = Counter()
    for piece in pieces:
        found[piece[0]] += elements(piece)
    return found


def _class(graph: GraphStore | None, sink: str, counts: Counter[str]) -> object:
    if graph is None:
        return sink
    shape = graph.shapes[graph.number(sink)]
    return shape, tuple(sorted((_role(graph, sink, o), n) for o, n in counts.items()))


def _role(graph: GraphStore, sink: str, origin: str) -> tuple[str, tuple[int, ...]]:
    if origin in (sink, TILE):
        return "itself" if origin == sink else TILE, ()
    t = graph.number(origin)
    return graph.ops[graph.producers[t]].kind.value, graph.shapes[t]


def _row(graph: GraphStore | None, sinks: Sequence[str], counts: Counter[str]) -> list[Any]:
    total = sum(counts.values())
    name = joined([sinks[0], parts.alike(sinks[1:]) if len(sinks) > 1 else ""])
    shape = "" if graph is None else str(list(graph.shapes[graph.number(sinks[0])]))
    shares = [
        (count / total, f"{_whose(graph, sinks[0], origin)}: {count:,}")
        for origin, count in counts.most_common(ORIGINS)
    ]
    rest = "" if counts else "it has no elements"
    if len(counts) > ORIGINS:
        left = sum(count for _, count in counts.most_common()[ORIGINS:])
        rest = f"{len(counts) - ORIGINS:,} other tensors: {left:,}"
    takes = parts.bars(shares, rest)
    return [Cell(sinks[0], name), shape, f"{total:,}", Cell("", takes, kind="text")]


def _whose(graph: GraphStore | None, sink: str, origin: str) -> str:
    if origin == sink:
        return "its own"
    if origin == TILE:
        return "tiles"
    if graph is None:
        return origin
    kind = graph.ops[graph.producers[graph.number(origin)]].kind
    return f"{origin} ({kind.value})" if kind is not Kind.VIEW else origin
