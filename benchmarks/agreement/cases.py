"""Random graphs of all kinds for the comparison: graph ``k`` of a seed is always the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from layoutopt.base.result import Piece
from layoutopt.generate.random_graphs import random_graph, random_views
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.unwinding import Graph
from tests.hooked import random_hooked
from tests.lowering.graphs import awkward, on_tiles
from tests.machine.crowded import crowded
from tests.models.instances import apart, tangle

Layouts = dict[str, tuple[Piece, ...]]


@dataclass(frozen=True, eq=False)
class Case:
    """A graph, and what is given beforehand.

    Parameters
    ----------
    kind
        A key of :data:`KINDS`.
    graph
        The graph.
    fixed, start
        Layouts that are kept, and layouts to begin with; ``None`` without.
    """

    kind: str
    graph: Graph
    fixed: Layouts | None = None
    start: Layouts | None = None


def case(seed: int, k: int) -> Case:
    """Return the ``k``-th case of a seed; kinds take turns."""
    kind = list(KINDS)[k % len(KINDS)]
    draw = random.Random(f"{seed}/{k}")
    graph = KINDS[kind](draw)
    graph.name = f"agreement-{seed}-{k}"
    if kind != "given layouts":
        return Case(kind, graph)
    what = draw.choice(["fixed", "start", "both"])
    fixed = random_layouts(graph, draw, draw.choice([0.2, 0.5])) if what != "start" else None
    start = random_layouts(graph, draw, draw.choice([0.3, 0.8])) if what != "fixed" else None
    return Case(kind, graph, fixed, start)


def random_layouts(graph: Graph, draw: random.Random, share: float) -> Layouts:
    """Return a layout of a share of all sink elements, which may break a rule.

    Elements take locations of any root, sinks included, by pieces of one element.
    """
    roots = [t for t in graph.tensors() if t.kind is not Kind.VIEW and t.size]
    found: Layouts = {}
    for sink in graph.sinks():
        favourite = draw.choice([*roots, sink])
        pieces: list[Piece] = []
        for e in range(sink.size):
            root = favourite if draw.random() < 0.5 else draw.choice(roots)
            if draw.random() < share:
                pieces.append((root.name, draw.randrange(root.size), e, ((1, 1, 1),)))
        if pieces:
            found[sink.name] = tuple(pieces)
    return found


def _all_ops(draw: random.Random) -> Graph:
    return _random(draw, draw.randint(3, 12))


def _negative(draw: random.Random) -> Graph:
    return _random(draw, draw.randint(3, 9), negative=True)


def _no_barriers(draw: random.Random) -> Graph:
    return _random(draw, draw.randint(8, 30), barriers=False, negative=draw.random() < 0.3)


def _tiny(draw: random.Random) -> Graph:
    return _random(draw, draw.randint(1, 5), negative=draw.random() < 0.3)


def _empty(draw: random.Random) -> Graph:
    return _random(draw, draw.randint(2, 6), empty=0.4)


def _random(draw: random.Random, elements: int, **options: Any) -> Graph:
    ops, pairs = draw.randint(4, 16), draw.randint(2, 9)
    return random_graph(draw.getrandbits(40), elements, ops, pairs, **options)


def _ragged(draw: random.Random) -> Graph:
    if draw.random() < 0.5:
        return awkward(draw.getrandbits(40), 4, 24, negative=draw.random() < 0.3)
    ops, size, ties = draw.randint(3, 10), draw.randint(2, 5), draw.randint(2, 10)
    return random_views(draw.getrandbits(40), ops, size, draw.randint(1, 3), ties)


def _copies(draw: random.Random) -> Graph:
    """Return a small graph several times over, so that its components have multiplicities."""
    once = _random(draw, draw.randint(1, 3), negative=draw.random() < 0.3)
    graph = Graph("copies", "one graph several times over")
    for copy in range(draw.randint(2, 4)):
        for op in once.ops:
            inputs = tuple(f"{copy}.{name}" for name in op.inputs)
            graph.add(replace(op, id=f"{copy}.{op.id}", inputs=inputs))
        for a, b, value in once.pairs:
            first, second = (f"{copy}.{once.tensor_name(t)}" for t in (a, b))
            graph.valued_pair(first, second, value)
    sinks = graph.sinks()
    for _ in range(draw.randint(0, 2)):
        x, y = draw.choice(sinks), draw.choice(sinks)
        if x.shape == y.shape:
            graph.valued_pair(x, y, draw.choice([1, 2, -1]))
    return graph


def _magnitudes(draw: random.Random) -> Graph:
    """Return a graph with decimals of all sizes."""
    return _mixed(draw, draw.choice([_tiny, _negative, _copies, _tangle])(draw))


def _mixed(draw: random.Random, graph: Graph) -> Graph:
    """Give a graph's pairs decimals of all sizes, also such that nearly cancel out."""
    style = draw.choice(["spread", "awkward", "nearly", "long", "one unit"])
    graph.pairs = [(a, b, _restated(draw, style, Decimal(v))) for a, b, v in graph.pairs]
    return graph


def _restated(draw: random.Random, style: str, value: Decimal) -> Decimal:
    sign = -1 if value < 0 else 1
    if style == "spread":
        return value.scaleb(draw.choice([-30, -9, -9, 0, 0, 9, 9, 22, 30]))
    if style == "awkward":
        return Decimal(draw.choice(["0.1", "0.2", "0.3", "1e-9", "1e9", "1e22", "1e300"])) * sign
    if style == "nearly":
        return value.scaleb(12) + draw.choice([-1, 0, 1])
    if style == "long":
        return Decimal(sign * (2**62 + draw.randint(-2, 2)))
    return value.scaleb(-9)


def _tangle(draw: random.Random) -> Graph:
    return tangle(draw.getrandbits(40))


def _apart(draw: random.Random) -> Graph:
    return apart(draw.getrandbits(40))


def _given(draw: random.Random) -> Graph:
    return draw.choice([_all_ops, _tiny, _negative, _tangle, _magnitudes])(draw)


def _roomy(draw: random.Random) -> Graph:
    graph = on_tiles(awkward(draw.getrandbits(40), 4, 16), draw.getrandbits(40))
    return _mixed(draw, graph) if draw.random() < 0.2 else graph


def _crowded(draw: random.Random) -> Graph:
    while True:
        graph = crowded(draw.getrandbits(40))
        if graph is not None:
            return _mixed(draw, graph) if draw.random() < 0.2 else graph


def _hooks(draw: random.Random) -> Graph:
    graph = random_hooked(draw.getrandbits(40))
    return _mixed(draw, graph) if draw.random() < 0.2 else graph


KINDS: dict[str, Callable[[random.Random], Graph]] = {
    "all ops": _all_ops,
    "negative values": _negative,
    "no barriers": _no_barriers,
    "tiny": _tiny,
    "empty tensors": _empty,
    "barriers that compete": _tangle,
    "elements that repel": _apart,
    "ragged views": _ragged,
    "copies": _copies,
    "mixed magnitudes": _magnitudes,
    "given layouts": _given,
    "tiles with room": _roomy,
    "tiles that are full": _crowded,
    "hooks on tiles": _hooks,
}
"""Graphs by kind."""
