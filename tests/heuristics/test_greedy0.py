"""Greedy0: every tie-break by hand, and all of it against a literal transcription."""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from fractions import Fraction

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


class TestOrderOfPairs:
    """Which pair is taken first; the sink x of one element takes what comes first."""

    def test_value(self) -> None:
        """The larger value per element wins, however small the tensor."""
        graph = Graph()
        x = graph.sink((3,), name="x")
        graph.valued_pair(x, graph.source((3,), name="s"), 2)
        part = graph.slice(x, (1,), (2,))
        graph.valued_pair(part, graph.source((1,), name="t"), "2.1")
        assert takes(graph, x) == ["s0", "t0", "s2"]

    def test_repeated_pairs_add_up(self) -> None:
        """Two pairs of 2 and 3 weigh more than one of 4, in whichever order they are written."""
        graph = Graph()
        x, s, t = graph.sink((1,), name="x"), graph.source((1,), name="s"), graph.source((1,))
        graph.valued_pair(x, t, 4)
        graph.valued_pair(s, x, 2)
        graph.valued_pair(x, s, 3)
        assert takes(graph, x) == ["s0"]

    def test_sums_of_different_pairs_do_not_count(self) -> None:
        """Two aliases worth 2 each with s lose against one worth 3 with t."""
        graph = Graph()
        x, s = graph.sink((1,), name="x"), graph.source((1,), name="s")
        t = graph.source((1,), name="t")
        graph.valued_pair(graph.identity(x), s, 2)
        graph.valued_pair(graph.identity(x), s, 2)
        graph.valued_pair(x, t, 3)
        assert takes(graph, x) == ["t0"]

    def test_longest_path(self) -> None:
        """Of equal values, the partner farther from the end of the graph is served first.

        x (one element) is paired with s directly, and through y = identity(x) with t.  From x
        two ops are left (x itself counts), from y one: s wins although t is the later source.
        """
        graph = Graph()
        x, s = graph.sink((1,), name="x"), graph.source((1,), name="s")
        t = graph.source((1,), name="t")
        graph.valued_pair(graph.identity(x), t, 5)
        graph.valued_pair(x, s, 5)
        assert takes(graph, x) == ["s0"]

    def test_longest_path_counts_the_longest(self) -> None:
        """Two copies of x, one read by a chain of two: t wins, by length 3 against 2."""
        graph = Graph()
        x, t = graph.sink((1,), name="x"), graph.source((1,), name="t")
        s = graph.source((1,), name="s")
        one, two = graph.identity(x), graph.identity(x)
        graph.identity(one)
        graph.identity(graph.identity(two))
        graph.valued_pair(one, s, 5)
        graph.valued_pair(two, t, 5)
        assert takes(graph, x) == ["t0"]

    def test_fixed_points_are_no_consumers(self) -> None:
        """A fixed point that reads a tensor does not make its path longer."""
        graph = Graph()
        x, s = graph.sink((1,), name="x"), graph.source((1,), name="s")
        t = graph.source((1,), name="t")
        one, two = graph.identity(x), graph.identity(x)
        graph.fixed_point([graph.identity(one)], (1,))
        graph.fixed_point([graph.identity(one)], (1,))
        graph.identity(graph.identity(two))
        graph.valued_pair(one, t, 5)
        graph.valued_pair(two, s, 5)
        assert takes(graph, x) == ["s0"]

    def test_larger_source_number(self) -> None:
        """Then the tensor with the larger number gives its locations."""
        for names in (["s", "t"], ["t", "s"]):
            graph = Graph()
            x = graph.sink((1,), name="x")
            first, second = (graph.source((1,), name=n) for n in names)
            graph.valued_pair(x, second, 5)
            graph.valued_pair(x, first, 5)
            assert takes(graph, x) == [f"{names[1]}0"]

    def test_larger_partner_number(self) -> None:
        """Then the partner with the larger number is served.

        One source of two elements, two copies of x that show it forwards and backwards: the
        later copy is served, and covers x.
        """
        for backwards in (False, True):
            graph = Graph()
            x, s = graph.sink((2,), name="x"), graph.source((2,), name="s")
            one = graph.reverse(x, [0] if not backwards else [])
            two = graph.reverse(x, [0] if backwards else [])
            graph.valued_pair(s, two, 5)
            graph.valued_pair(s, one, 5)
            assert takes(graph, x) == (["s1", "s0"] if backwards else ["s0", "s1"])

    def test_zero_and_negative_values_come_last(self) -> None:
        """They are taken all the same, when nothing better is left."""
        graph = Graph()
        x = graph.sink((3,), name="x")
        for value, low, high in [(-1, 0, 3), (0, 0, 2), (1, 0, 1)]:
            part = graph.slice(x, (low,), (high,))
            graph.valued_pair(part, graph.source((high - low,), name=f"s{value}_"), value)
        assert takes(graph, x) == ["s1_0", "s0_1", "s-1_2"]


class TestPieces:
    """What a pair covers, and what it leaves."""

    def test_nothing_is_revised(self) -> None:
        """Covered elements stay, even if a pair learnt later is worth more.

        x is covered by s for 1; only then is barrier b known, which would have been worth 9.
        """
        graph = Graph()
        x, y = graph.sink((1,), name="x"), graph.sink((1,), name="y")
        graph.valued_pair(x, graph.source((1,), name="s"), 3)
        graph.valued_pair(y, graph.source((1,), name="t"), 2)
        graph.valued_pair(graph.barrier([y], (1,), name="b"), x, 9)
        assert takes(graph, x) == ["s0"]
        assert takes(graph, y) == ["t0"]

    def test_a_better_barrier_in_time(self) -> None:
        """If y is covered first, b is known in time, and its pair is taken before s's."""
        graph = Graph()
        x, y = graph.sink((1,), name="x"), graph.sink((1,), name="y")
        graph.valued_pair(x, graph.source((1,), name="s"), 2)
        graph.valued_pair(y, graph.source((1,), name="t"), 3)
        graph.valued_pair(graph.barrier([y], (1,), name="b"), x, 9)
        assert takes(graph, x) == ["b0"]

    def test_barriers_wait_for_every_element(self) -> None:
        """A barrier whose input is half covered is not known; a pair is tried again as it grows."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((1,), name="y")
        graph.valued_pair(graph.slice(x, (0,), (1,)), graph.source((1,), name="s"), 9)
        graph.valued_pair(graph.slice(x, (1,), (2,)), graph.source((1,), name="t"), 1)
        graph.valued_pair(graph.barrier([x], (1,), name="b"), y, 9)
        graph.valued_pair(y, graph.source((1,), name="u"), 5)
        assert takes(graph, y) == ["u0"]
        assert takes(graph, x) == ["s0", "t0"]

    def test_known_sides_that_grow_are_tried_again(self) -> None:
        """X and y are tied; each half of y that becomes covered is carried to x at once."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
        graph.valued_pair(x, y, 9)
        graph.valued_pair(graph.slice(y, (0,), (1,)), graph.source((1,), name="s"), 5)
        graph.valued_pair(x, graph.source((2,), name="u"), 4)
        graph.valued_pair(graph.slice(y, (1,), (2,)), graph.source((1,), name="t"), 3)
        assert takes(graph, x) == ["s0", "u1"]
        assert takes(graph, y) == ["s0", "u1"]

    def test_earlier_pieces_win(self) -> None:
        """Where one sink element is reached from two positions, the earlier piece covers it.

        The known side is t twice, joined to s; the other side shows the only element of x three
        times.  The concat's first piece came from the source that was taken from the stack
        first, which is the last one: u.
        """
        graph = Graph()
        x = graph.sink((1,), name="x")
        s, u = graph.source((1,), name="s"), graph.source((1,), name="u")
        graph.valued_pair(graph.concat([s, u], 0), graph.concat([x, x], 0), 1)
        assert takes(graph, x) == ["u0"]

    def test_earlier_ways_win(self) -> None:
        """Within one piece, ways are taken in the order in which a stack of readers finds them.

        Of concat(x, x) the first half leads back through input 0, the second through input 1,
        and one reader's inputs are noted in order; but behind it, the latter is visited first.
        """
        graph = Graph()
        x, s = graph.sink((2,), name="x"), graph.source((4,), name="s")
        twice = graph.concat([x, x], 0)
        graph.valued_pair(twice, s, 1)
        assert takes(graph, x) == ["s0", "s1"]
        graph.remove_pairs(twice, s)
        graph.valued_pair(graph.identity(twice), s, 1)
        assert takes(graph, x) == ["s2", "s3"]

    def test_direct_ways_win(self) -> None:
        """What reads the sink itself is noted before what reads its reverse, an earlier op."""
        for turned_first, expected in ((True, ["s2", "s3"]), (False, ["s0", "s1"])):
            graph = Graph()
            x = graph.sink((2,), name="x")
            turned = graph.reverse(x, [0])
            parts = [turned, x] if turned_first else [x, turned]
            graph.valued_pair(graph.concat(parts, 0), graph.source((4,), name="s"), 1)
            assert takes(graph, x) == expected

    def test_later_readers_win(self) -> None:
        """Of two views of x that are joined, the later one is visited first."""
        for turned_first, expected in ((True, ["s2", "s3"]), (False, ["s3", "s2"])):
            graph = Graph()
            x = graph.sink((2,), name="x")
            one = graph.reverse(x, [0] if turned_first else [])
            two = graph.reverse(x, [] if turned_first else [0])
            graph.valued_pair(graph.concat([one, two], 0), graph.source((4,), name="s"), 1)
            assert takes(graph, x) == expected

    def test_only_the_lowest_slice_of_expand_leads_back(self) -> None:
        """Copies beyond index 0 of a broadcast dimension cover nothing."""
        graph = Graph()
        x = graph.sink((1, 2), name="x")
        wide = graph.expand(x, (3, 2))
        graph.valued_pair(graph.slice(wide, (1, 0), (3, 2)), graph.source((2, 2), name="s"), 9)
        graph.valued_pair(graph.slice(wide, (0, 0), (1, 1)), graph.source((1, 1), name="t"), 1)
        assert takes(graph, x) == ["t0", "x1"]

    def test_mutually_exclusive_barriers(self) -> None:
        """Of two barriers that read each other's sink, the first one known is taken from.

        The slice's own source is worth 3, the whole's 2: the slice y is covered, barrier up is
        known and covers x; down is too late for y.
        """
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((1,), name="y")
        graph.valued_pair(graph.barrier([y], (2,), name="up"), x, 9)
        graph.valued_pair(graph.barrier([x], (1,), name="down"), y, 9)
        graph.valued_pair(x, graph.source((2,), name="s"), 2)
        graph.valued_pair(y, graph.source((1,), name="t"), 3)
        assert takes(graph, x) == ["up0", "up1"]
        assert takes(graph, y) == ["t0"]


class TestUncovered:
    """What the pairs do not cover gets fresh locations, all at once; then flow goes on."""

    def test_no_source(self) -> None:
        """Both ends of a pair keep what is their own: they were uncovered together."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
        graph.valued_pair(x, y, 1)
        assert takes(graph, x) == ["x0", "x1"]
        assert takes(graph, y) == ["y0", "y1"]

    def test_flow_goes_on(self) -> None:
        """A barrier that waited becomes known, but what it could cover is covered by then."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
        graph.valued_pair(graph.barrier([x], (2,), name="b"), y, 1)
        assert takes(graph, x) == ["x0", "x1"]
        assert takes(graph, y) == ["y0", "y1"]
        assert evaluate(graph, unwind(graph, "greedy0").layouts or {}).violations == ()

    def test_unrelated_sinks(self) -> None:
        """Sinks in no pair keep their own locations, also those without elements."""
        graph = Graph()
        graph.sink((2,), name="x")
        graph.sink((0,), name="none")
        graph.source((0,))
        graph.sink((1,), name="y")
        assert takes(graph, "x") == ["x0", "x1"]
        assert takes(graph, "none") == []
        assert takes(graph, "y") == ["y0"]


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


def test_layouts_are_always_legal() -> None:
    """Whatever the graph, all sinks are covered and no barrier waits for itself."""
    for seed in range(300):
        graph = random_graph(seed, elements=16, ops=12, negative=seed % 2 == 0)
        found = evaluate(graph, unwind(graph, "greedy0").layouts or {})
        assert found.violations == ()


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
