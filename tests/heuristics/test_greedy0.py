"""Greedy0: every tie-break by hand, and all of it against a literal transcription."""

from __future__ import annotations

import heapq
import time
import tomllib
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.check.elements import evaluate
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.ops import Expand, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.greedy0 import greedy0
from layoutopt.unwinding import unwind
from tests.examples.graphs import graph_of

Place = tuple[int, int]
"""Tensor and flat element."""

Cover = dict[int, Place]
"""For some elements of a tensor their locations: root tensor and flat element."""


class Literal:
    """Greedy0 as it is written down, element by element, with nothing clever about it."""

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        count = len(graph.shapes)
        self.pieces: list[list[Cover]] = [[] for _ in range(count)]
        self.stack: list[tuple[int, Cover]] = []
        self.queue: list[tuple[Fraction, int, int, int]] = []
        self.readers: dict[int, list[Place]] = defaultdict(list)
        for i, op in enumerate(graph.ops):
            for k, t in enumerate(graph.op_inputs[i] if op.kind is not Kind.FIXED_POINT else ()):
                self.readers[t].append((i, k))
        self.length = [1] * len(graph.ops)
        for i in reversed(range(len(graph.ops))):
            after = [self.length[j] for t in graph.op_outputs[i] for j, _ in self.readers[t]]
            self.length[i] = 1 + max(after, default=0)
        self.back: list[list[tuple[int, dict[int, int]]]] = [[] for _ in range(count)]
        for sink in graph.sinks():
            self.walk(sink.index, sink.size)

    def walk(self, sink: int, count: int) -> None:
        """Note all ways back to a sink: those of a tensor's readers when it is visited."""
        front = [(sink, {e: e for e in range(count)})]
        self.back[sink].append((sink, front[0][1]))
        while front:
            t, chain = front.pop()
            for i, k in self.readers[t]:
                onward = self.image(i, k, lowest=True)
                if onward is not None:
                    out = self.graph.op_outputs[i][0]
                    way = {e: chain[o] for e, o in onward.items() if o in chain}
                    self.back[out].append((sink, way))
                    front.append((out, way))

    def image(self, i: int, k: int, *, lowest: bool) -> dict[int, int] | None:
        """Return the output elements of a view that come from input ``k``, or ``None``.

        With ``lowest``, broadcast elements but the first are left out.
        """
        op, inputs = self.graph.ops[i], self.graph.op_inputs[i]
        if k not in op.carriers(len(inputs)):
            return None
        shapes = [self.graph.shapes[inputs[j]] for j in op.carriers(len(inputs))]
        own = list(op.carriers(len(inputs))).index(k)
        arrays = [
            np.arange(size(s)).reshape(s) if j == own else np.full(s, -1)
            for j, s in enumerate(shapes)
        ]
        flat = np.asarray(op.view(arrays)).reshape(-1).tolist()
        found = {e: o for e, o in enumerate(flat) if o >= 0}
        if lowest and isinstance(op, Expand):
            first: dict[int, int] = {}
            for e, o in found.items():
                first.setdefault(o, e)
            found = {e: o for o, e in first.items()}
        return found

    def covered(self, t: int) -> Cover:
        """Return the locations of a tensor's covered elements."""
        joint: Cover = {}
        for piece in reversed(self.pieces[t]):
            joint.update(piece)
        return joint

    def full(self, t: int) -> bool:
        """Return whether a tensor is covered."""
        return len(self.covered(t)) == size(self.graph.shapes[t])

    def add(self, t: int, piece: Cover) -> None:
        """Add a piece that is not empty, and put it on the stack."""
        if piece:
            self.pieces[t].append(piece)
            self.stack.append((t, piece))

    def own(self, t: int) -> None:
        """Let what is not covered of a tensor have locations of its own."""
        known = self.covered(t)
        self.add(t, {e: (t, e) for e in range(size(self.graph.shapes[t])) if e not in known})

    def ready(self, i: int) -> bool:
        """Return whether a barrier's inputs are all covered."""
        op, inputs = self.graph.ops[i], self.graph.op_inputs[i]
        return op.kind is Kind.BARRIER and all(map(self.full, inputs))

    def run(self) -> dict[int, Cover]:
        """Return the locations of all sinks."""
        for i, op in enumerate(self.graph.ops):
            if op.kind in (Kind.SOURCE, Kind.FIXED_POINT) or self.ready(i):
                for t in self.graph.op_outputs[i]:
                    self.own(t)
        self.settle()
        for sink in self.graph.sinks():
            self.own(sink.index)
        self.settle()
        return {sink.index: self.covered(sink.index) for sink in self.graph.sinks()}

    def settle(self) -> None:
        """Flow and carry back until stack and queue are empty."""
        while self.stack or self.queue:
            extended = set()
            while self.stack:
                t, piece = self.stack.pop()
                extended.add(t)
                for i, k in self.readers[t]:
                    for o in self.graph.op_outputs[i]:
                        if self.ready(i) and not self.full(o):
                            self.own(o)
                        onward = self.image(i, k, lowest=False)
                        if onward is not None:
                            carried = {e: piece[x] for e, x in onward.items() if x in piece}
                            if carried.keys() - self.covered(o).keys():
                                self.add(o, carried)
            for t in sorted(extended):
                values: dict[int, Fraction] = defaultdict(Fraction)
                for a, b, value in self.graph.pairs:
                    for one, other in ((a, b), (b, a)):
                        if one == t:
                            values[other] += Fraction(value)
                for p, value in values.items():
                    length = self.length[self.graph.producers[p]]
                    heapq.heappush(self.queue, (-value, -length, -t, -p))
            while self.queue and not self.stack:
                _, _, t, p = heapq.heappop(self.queue)
                self.carry_back(-t, -p)

    def carry_back(self, t: int, p: int) -> None:
        """Carry every piece of ``t`` through every way from ``p`` back to sinks."""
        missing = set(range(size(self.graph.shapes[p]))) - self.covered(p).keys()
        for piece in list(self.pieces[t]):
            for sink, chain in self.back[p]:
                known = self.covered(sink)
                found: Cover = {}
                for e, location in piece.items():
                    if e in missing and e in chain and chain[e] not in known:
                        found.setdefault(chain[e], location)
                self.add(sink, found)


def literal(graph: GraphStore) -> dict[int, list[Place]]:
    """Return what the transcription chooses: a location for each element of each sink."""
    return {t: [cover[e] for e in sorted(cover)] for t, cover in Literal(graph).run().items()}


def chosen(graph: GraphStore) -> dict[int, list[Place]]:
    """Return what the package chooses."""
    found = greedy0(graph, Limits())
    return {
        t: list(zip(tensor.tolist(), element.tolist(), strict=True))
        for t, (tensor, element) in found.items()
    }


def takes(graph: Graph, sink: Tensor | str) -> list[str]:
    """Return the locations of a sink's elements as text, after asking the transcription, too."""
    found, t = chosen(graph), graph.tensor(sink).index
    needed = {t for a, b, _ in graph.pairs for t in (a, b)}
    assert t not in needed or found[t] == literal(graph)[t]
    return [f"{graph.tensor_name(origin)}{element}" for origin, element in found[t]]


def test_against_the_transcription() -> None:
    """800 random graphs: the same location for every sink element that matters.

    Of sinks that neither pairs nor barriers lead to, only that they are fresh is asked.
    """
    fixed = fresh = 0
    for seed in range(800):
        graph = random_graph(
            seed,
            elements=8 + seed % 5 * 4,
            ops=8 + seed % 7,
            pairs=3 + seed % 5,
            negative=seed % 2 == 0,
        )
        expected, found = literal(graph), chosen(graph)
        sinks = {sink.index for sink in graph.sinks()}
        for t in sinks:
            kept = [origin in sinks for origin, _ in found[t]]
            if found[t] != expected[t]:
                assert all(kept), (seed, graph.tensor_name(t))
                assert found[t] == [(t, e) for e in range(len(found[t]))]
                assert all(t not in pair[:2] for pair in graph.pairs)
            fresh += sum(kept)
            fixed += len(kept) - sum(kept)
    assert fixed > 2000
    assert fresh > 2000


EXAMPLES = tomllib.loads((Path(__file__).parents[1] / "examples/greedy0.toml").read_text())


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_by_hand(name: str) -> None:
    """Each tie-break, and what is covered: by hand, and by the transcription."""
    [expected] = EXAMPLES[name]
    graph = graph_of(expected.pop("graph"))
    assert {sink: " ".join(takes(graph, sink)) for sink in expected} == expected
    assert evaluate(graph, unwind(graph, "greedy0").layouts or {}).violations == ()


def test_arbitrarily_bad() -> None:
    """N aliases worth 1 each with b lose against one pair worth 1.1 with a: 1.1 of n."""
    graph = Graph()
    x, b = graph.sink((1,), name="x"), graph.source((1,), name="b")
    for _ in range(50):
        graph.valued_pair(graph.identity(x), b, 1)
    graph.valued_pair(x, graph.source((1,), name="a"), "1.1")
    assert takes(graph, x) == ["a0"]
    greedy, best = unwind(graph, "greedy0"), unwind(graph)
    assert (str(greedy.score), str(best.score)) == ("1.1", "50.0")
    assert str(greedy.bound) == "51.1"


def test_deep_and_branching_graphs() -> None:
    """A tensor joined to itself twenty times over has a million ways back, and is no trouble."""
    graph = Graph()
    x = graph.sink((2,), name="x")
    view: Tensor = x
    for _ in range(20):
        left, right = graph.slice(view, (0,), (1,)), graph.slice(view, (1,), (2,))
        view = graph.concat([right, left], 0)
    graph.valued_pair(view, graph.source((2,), name="s"), 1)
    for _ in range(3000):
        view = graph.identity(view)
    graph.valued_pair(view, graph.source((2,), name="t"), 2)
    begun = time.monotonic()
    found = chosen(graph)
    assert time.monotonic() - begun < 20
    assert found[x.index] == [(graph.tensor("t").index, 0), (graph.tensor("t").index, 1)]


def test_time_runs_out() -> None:
    """Without time there is no layout."""
    graph = Graph()
    graph.valued_pair(graph.sink((1,)), graph.source((1,)), 1)
    with pytest.raises(TimeoutError):
        greedy0(graph, Limits(deadline=0.0))
