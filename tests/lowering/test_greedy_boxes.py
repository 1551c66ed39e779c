"""Greedy0 over boxes chooses what it chooses over elements."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest

from benchmarks.figures import FIGURES
from benchmarks.traps import TRAPS
from layoutopt.base.entries import ENTRIES, Takes
from layoutopt.base.limits import Limits
from layoutopt.check.elements import evaluate
from layoutopt.generate.families import FAMILIES, generate
from layoutopt.generate.random_graphs import random_graph, random_views
from layoutopt.graphs.locations import FixedElements
from layoutopt.graphs.tiling import locations_of
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.heuristics import choose, greedy0_by_boxes
from layoutopt.unwinding import unwind
from tests.lowering.graphs import awkward
from tests.models.instances import mixed, tangle

NEVER = 2**62
SIDE = 2**18


def assert_alike(graph: Graph) -> int:
    """Assert that boxes and elements give every element of every tensor the same location.

    Returns
    -------
    saved
        How many elements more the sinks have than pieces.
    """
    boxes, complete = greedy0_by_boxes(graph, Limits())
    traced = choose(
        graph, ENTRIES["greedy0", Takes.GRAPH], Limits(), FixedElements(graph), large=NEVER
    )
    one, other = evaluate(graph, boxes), evaluate(graph, traced)
    assert complete
    assert (one.score, one.violations, one.pairs) == (other.score, (), other.pairs), graph.name
    mine, theirs = locations_of(graph, boxes), locations_of(graph, traced)
    for name, where in theirs.items():
        assert (mine[name] == where).all(), (graph.name, name)
    return sum(sink.size - len(boxes[sink.name]) for sink in graph.sinks())


def spread(seed: int) -> Graph:
    """Return a random graph of rows, their copies reversed, cut and joined, and ties of these."""
    draw = random.Random(seed)
    graph = Graph(f"spread-{seed}")
    width = draw.randint(1, 2)
    rows = [graph.sink((1, width)) for _ in range(3)]
    found = [graph.expand(row, (draw.randint(2, 5), width)) for row in rows]
    for _ in range(draw.randint(2, 6)):
        x, kind = draw.choice(found), draw.randrange(3)
        if kind == 0:
            found.append(graph.reverse(x, (0,)))
        elif kind == 1:
            first = draw.randrange(x.shape[0])
            found.append(x[first : draw.randint(first + 1, x.shape[0])])
        elif x.shape[0] <= 12:
            found.append(graph.concat([x, draw.choice(found)], 0))
    for _ in range(draw.randint(2, 5)):
        x = draw.choice(found)
        alike = [t for t in found if t.shape == x.shape and t != x]
        if alike:
            graph.valued_pair(x, draw.choice(alike), draw.randint(1, 9))
    for t in (draw.choice(rows), draw.choice(rows), *draw.sample(found, draw.randint(0, 1))):
        graph.valued_pair(t, graph.source(t.shape), draw.randint(1, 9))
    return graph


@pytest.mark.parametrize(
    ("family", "count"),
    [
        (spread, 30),
        (awkward, 30),
        (partial(awkward, negative=True), 25),
        (partial(awkward, widest=24, largest=900), 10),
        (mixed, 25),
        (tangle, 25),
        (partial(random_graph, elements=30, ops=14, pairs=6), 25),
        (partial(random_graph, elements=20, ops=14, negative=True), 25),
        (partial(random_views, ops=12, size=6, ties=6), 10),
    ],
)
def test_random_graphs(family: Callable[[int], Graph], count: int) -> None:
    """Graphs of views of every kind, and of barriers that compete: every location is the same.

    Some elements of some graphs stand for others, or nothing would be shown.
    """
    saved = [assert_alike(family(seed)) for seed in range(count)]
    assert max(saved) > 0


@pytest.mark.parametrize("name", [*FIGURES, *TRAPS])
def test_figures_and_traps(name: str) -> None:
    """So it is on the figures of the notes and on the graphs that beat Greedy0."""
    assert_alike({**FIGURES, **TRAPS}[name]())


LARGE = {"gpt2-small", "gpt2-xl", "llama-7b", "llama-70b", "resnet-50"}
"""Families that are shapes of others."""

LLAMA = {"kv_heads": "2", "gated": "true", "rotary": "true", "joined": "true", "tied": "false"}


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - LARGE))
def test_families(family: str) -> None:
    """So it is on every named family."""
    assert_alike(generate(family, {}))


def test_transformers() -> None:
    """So it is on transformers with all that Llama has, and with one flat buffer of weights."""
    assert_alike(generate("transformer", LLAMA))
    assert_alike(generate("transformer", {"flat": "true", "width": "8", "layers": "1"}))


class TestHuge:
    """Scores by hand where no element can be looked at."""

    def greedy(self, graph: Graph) -> Decimal | None:
        """Return what greedy0 earns."""
        return unwind(graph, "greedy0").score

    def test_transposed(self) -> None:
        """A square matrix takes s whole; of its tie to its transpose the diagonal is left.

        Per two mirrored elements it earns 2 + 2 where all at one location earn 6 + 2; on the
        diagonal both earn 3 + 2.
        """
        n = SIDE
        graph = Graph()
        w = graph.sink((n, n), name="w")
        graph.valued_pair(w, w.T, 3)
        graph.valued_pair(w, graph.source((n, n), name="s"), 2)
        graph.valued_pair(w.T, graph.source((n, n), name="t"), 2)
        assert self.greedy(graph) == 2 * n * (n - 1) + 5 * n
        assert unwind(graph).score == 4 * n * (n - 1) + 5 * n

    def test_reversed(self) -> None:
        """A vector of even length tied to itself reversed, and to s and t half by half.

        The better half takes s; then it is carried to the mirrored half before t is asked.
        """
        n = SIDE**2
        graph = Graph()
        x = graph.sink((2 * n,), name="x")
        graph.valued_pair(x, x[::-1], 4)
        graph.valued_pair(x[:n], graph.source((n,), name="s"), 5)
        graph.valued_pair(x[n:], graph.source((n,), name="t"), 3)
        assert self.greedy(graph) == 4 * 2 * n + 5 * n

    def test_copies_beyond_index_0_lead_nowhere(self) -> None:
        """Only index 0 of a broadcast dimension leads back, on an axis that has no root.

        Copies of x, all or without the first, are tied to copies of y in reverse order; s covers
        one of x and y.  The other follows, as any copy of the one is known and index 0 of the
        other is among those tied.  Only if that is left out, 9 are lost everywhere.
        """
        n = SIDE
        for first in (0, 1):
            for known in (0, 1):
                graph = Graph()
                x, y = graph.sink((1, n), name="x"), graph.sink((1, n), name="y")
                wide = graph.slice(graph.expand(x, (n, n)), (first, 0), (n, n))
                other = graph.reverse(graph.expand(y, (n - first, n)), (0,))
                graph.valued_pair(wide, other, 9)
                graph.valued_pair((x, y)[known], graph.source((1, n), name="s"), 3)
                lost = first == 1 and known == 1
                assert self.greedy(graph) == 3 * n + (0 if lost else 9 * n * (n - first))

    def test_barriers_wait_for_every_element(self) -> None:
        """Of two barriers only that whose inputs are all covered in time is taken.

        Both would be worth 9.  One reads all of x, whose halves take s and t for 8 and 7; the
        other reads one element of z besides, which nothing covers.
        """
        n = SIDE**2
        graph = Graph()
        x, y = graph.sink((2 * n,), name="x"), graph.sink((n,), name="y")
        z, v = graph.sink((n,), name="z"), graph.sink((n,), name="v")
        graph.valued_pair(x[:n], graph.source((n,), name="s"), 8)
        graph.valued_pair(x[n:], graph.source((n,), name="t"), 7)
        graph.valued_pair(graph.barrier([x], (n,), name="b"), y, 9)
        graph.valued_pair(y, graph.source((n,), name="u"), 1)
        graph.valued_pair(graph.barrier([x, z[5:6]], (n,), name="c"), v, 9)
        graph.valued_pair(v, graph.source((n,), name="w"), 2)
        assert self.greedy(graph) == (8 + 7 + 9 + 2) * n

    def test_groups_of_one_kind_choose_each_for_itself(self) -> None:
        """Two groups are the same problem, but greedy0 sees only one barrier in time.

        Both sinks are worth 9 with a barrier and 1 with a source.  One barrier reads a sink that
        nothing covers, the other a source.
        """
        n = SIDE**2
        graph = Graph()
        for read in (graph.sink((n,), name="z"), graph.source((n,), name="r")):
            x, b = graph.sink((n,)), graph.barrier([read], (n,))
            graph.valued_pair(x, b, 9)
            graph.valued_pair(x, graph.source((n,)), 1)
        assert self.greedy(graph) == (1 + 9) * n

    def test_elementwise_chains_keep_their_own_numbers(self) -> None:
        """Of two pairs of one value that with the longer path of its partner is taken first.

        Both partners are always alike x, and still their places in the graph decide.
        """
        n = SIDE**2
        for late in (False, True):
            graph = Graph()
            x = graph.sink((n,), name="x")
            one = graph.identity(x)
            two = graph.identity(one)
            s, t = graph.source((n,), name="s"), graph.source((n,), name="t")
            graph.valued_pair(two if late else one, s, 5)
            graph.valued_pair(one if late else two, t, 5)
            found = unwind(graph, "greedy0").layouts or {}
            assert found["x"] == (("t" if late else "s", 0, 0, ((n, 1, 1),)),)


@pytest.mark.parametrize("steps", [0, 3, 30, 100, 300])
def test_too_few_steps(steps: int) -> None:
    """What is not covered by then has locations of its own; the layouts are legal all the same."""
    early = 0
    for seed in range(20):
        graph = random_views(seed, ops=16, size=8)
        layouts, complete = greedy0_by_boxes(graph, Limits(), steps)
        assert evaluate(graph, layouts).violations == ()
        early += not complete
    assert early > 5 * (steps < 300)


def test_time_runs_out() -> None:
    """After the deadline everything has locations of its own."""
    graph = awkward(0)
    layouts, complete = greedy0_by_boxes(graph, Limits(deadline=0.0))
    assert not complete
    assert {piece[0] for own in layouts.values() for piece in own} <= set(layouts)
