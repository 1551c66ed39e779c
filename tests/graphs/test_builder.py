"""The builder: handles, names, pairs, exact values, and barrier hooks."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base.numbers import exact_decimal, to_decimal, to_integers
from layoutopt.graphs import ops
from layoutopt.graphs.locations import flow, hooked
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tiling import check_hooks, output_tiles, relaxed, viewed
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, parse_instance
from layoutopt.tiles.memory import TileMemory
from tests.hooked import own_hooks
from tests.support import refused

# The builder: handles, names and pairs


def test_handle() -> None:
    """A handle knows name, shape and size, and equals any other handle of its tensor."""
    graph = Graph("g", "text")
    x = graph.sink((2, 3), name="x")
    assert (x.name, x.shape, x.size, x.index) == ("x", (2, 3), 6, 0)
    assert x == graph.tensor("x") == graph.tensor("x:0") == graph.tensor(x)
    assert repr(x) == "Tensor('x', [2, 3])"
    assert repr(graph) == "Graph('g': 1 ops, 0 valued pairs)"
    assert graph.sink((), name="y").size == 1


def test_free_names() -> None:
    """Unnamed ops are numbered by type, past names that are taken, or refused."""
    graph = Graph()
    graph.sink((1,), name="sink1")
    assert [graph.sink((1,)).name for _ in range(3)] == ["sink0", "sink2", "sink3"]
    with refused("op 'reverse0'"):
        graph.reverse("sink0", [1])
    assert graph.reverse("sink0", [0]).name == "reverse0"


def test_locations_of_sources() -> None:
    """A mapping's integers are Python's, of whatever kind they came; others are refused."""
    graph = Graph()
    x = graph.source((3,), np.array([4, 4, 5], np.uint8), name="x")
    y = graph.source((3,), [np.int64(4), "a", np.str_("b")], name="y")
    assert graph.op(x) == ops.Source(id="x", inputs=(), shape=(3,), mapping=(4, 4, 5))
    assert graph.op(y) == ops.Source(id="y", inputs=(), shape=(3,), mapping=(4, "a", "b"))
    assert parse_instance(instance_bytes(graph)) == graph
    for wrong in ([0.5], [None], [[1]], np.array([1.0]), np.array([[1, 2]])):
        with refused("mapping must contain one integer or string per element"):
            graph.source((1,), wrong)
    for wrong in (1, "a", x):
        with refused("mapping must be a list, not one "):
            graph.source((1,), wrong)
    with refused("rule must be a dictionary, not str"):
        graph.source((1,), rule="linear")


def test_by_kind() -> None:
    """Sinks, sources, barriers (reduces included) and fixed points, in order."""
    graph = Graph()
    x = graph.sink((2,), name="x")
    graph.source((1,), name="s")
    graph.barrier([x], shapes=[(1,), (2,)], name="b")
    graph.fixed_point([x], (1,), name="f")
    graph.sum_like_reduce(x, (1,), name="r")
    graph.sink((), name="y")
    graph.identity(x, name="i")
    assert [t.name for t in graph.sinks()] == ["x", "y"]
    assert [t.name for t in graph.sources()] == ["s"]
    assert [t.name for t in graph.barriers()] == ["b:0", "b:1", "r"]
    assert [t.name for t in graph.fixed_points()] == ["f"]
    assert [t.name for t in graph.tensors()] == ["x", "s", "b:0", "b:1", "f", "r", "y", "i"]
    assert [t.index for t in graph.tensors()] == list(range(8))
    assert graph.kind("i") is Kind.VIEW


# Exact decimals in, exact integers of one unit out


decimals = st.builds(
    lambda digits, places: Decimal(digits).scaleb(-places),
    st.integers(-(10**25), 10**25),
    st.integers(-30, 60),
)


@given(st.lists(decimals))
def test_scaling_is_exact(values: list[Decimal]) -> None:
    """Integers times the unit are the values again, and the unit is the largest possible."""
    whole, unit = to_integers(values)
    assert all(isinstance(w, int) for w in whole)
    assert [w * unit for w in whole] == [Fraction(v) for v in values]
    assert unit > 0
    common = 0
    for w in whole:
        while w:
            common, w = w, common % w
    assert abs(common) in (0, 1)


@given(st.lists(decimals, min_size=1, max_size=6), st.integers(-(10**9), 10**9))
def test_sums_come_back_as_decimals(values: list[Decimal], times: int) -> None:
    """Any multiple of the unit is written exactly, with a digit after the point."""
    whole, unit = to_integers(values)
    total = times * sum(whole)
    written = to_decimal(total, unit)
    assert Fraction(written) == total * unit
    assert int(written.as_tuple().exponent) <= -1
    assert "." in f"{written:f}"


@given(decimals)
def test_decimals_are_kept(value: Decimal) -> None:
    """Decimals, their text and their fraction are all the same exact value."""
    assert exact_decimal(value) == value
    assert exact_decimal(str(value)) == value
    assert exact_decimal(Fraction(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_their_shortest_decimal(value: float) -> None:
    """A float is the decimal that prints as it, and reads back as the same float."""
    kept = exact_decimal(value)
    assert kept == Decimal(repr(value))
    assert float(kept) == value


def test_fractions_keep_all_digits() -> None:
    """A fraction of more than 28 digits is not rounded, as Python's decimals would be."""
    many = Fraction(10**40 + 1, 10**20)
    assert Fraction(exact_decimal(many)) == many
    assert Fraction(exact_decimal(-many)) == -many


# Graphs with barrier hooks, and without


VIEWS = [
    ("same", (2, 3), [(2, 3)]),
    ("normalisation", (4, 3), [(4, 3), (4, 1), (4,)]),
    ("reduce", (2, 3, 2), [(2,), (2, 3), (3,), (1, 3, 1), ()]),
    ("broadcast", (2, 3, 2), [(2,), (3, 1), (3, 2), (1, 1, 2), ()]),
    ("pool", (1, 7, 4), [(1, 3, 2), (1, 2, 4), (1, 7, 1)]),
    ("reduce", (2, 0), [(2, 0), (0,)]),
]


@pytest.mark.parametrize(("name", "shape", "outputs"), VIEWS)
def test_views_are_what_hooks_compute(
    name: str, shape: tuple[int, ...], outputs: list[tuple[int, ...]]
) -> None:
    """The views that stand for a barrier carry each tile to where the hook puts it."""
    graph = Graph("views")
    x = graph.sink(shape, name="x")
    outs = graph.barrier([x], shapes=outputs, hook=name, name="b")
    for k, out in enumerate(outs):
        graph.valued_pair(out, graph.source(out.shape, name=f"s{k}"), 1)
    graph.tile_memory = TileMemory(64, 1024)
    tiles = np.random.default_rng(1).permutation(64)[: x.size]
    expected = output_tiles(graph, hooked(graph)[0], [tiles])
    plain = viewed(graph)
    assert not hooked(plain)
    roots = {
        t: np.full(s, -1)
        for t, s in enumerate(plain.shapes)
        if plain.kind(plain.handle(t)) is not Kind.VIEW
    }
    roots[plain.number("x")] = tiles.reshape(shape)
    found = flow(plain, roots, [a for a, _, _ in plain.pairs])
    for (a, _, _), tile in zip(plain.pairs, expected, strict=True):
        assert found[a].reshape(-1).tolist() == tile.tolist()


def test_hooks_that_do_not_matter() -> None:
    """A user's hook whose outputs influence no pair is left out; others stay."""
    with own_hooks():
        graph = Graph("idle")
        x = graph.sink((2,), name="x")
        one = graph.barrier([x], (2,), hook="ascending", name="one")
        two = graph.barrier([one], (2,), hook="crowd", name="two")
        graph.barrier([two], (2,), hook="crowd", name="idle")
        graph.valued_pair(graph.reverse(two, [0]), x, 1)
        graph.tile_memory = TileMemory(4, 64)
        found = viewed(graph)
        assert [found.ops[i].id for i in hooked(found)] == ["one", "two"]
        free = relaxed(graph)
        assert [t.name for t in free.sinks()] == ["x", "one#", "two#", "idle#"]


def test_hooks_that_do_not_fit() -> None:
    """Errors name barrier and hook."""
    graph = Graph("unfit")
    graph.barrier([graph.sink((2,), name="x")], (3,), hook="pool", name="b")
    check_hooks(graph)  # without tiles a hook says nothing
    graph.tile_memory = TileMemory(4, 64)
    with refused("barrier 'b': hook 'pool': output shape [3] has no windows over [2]"):
        check_hooks(graph)
    with refused("barrier 'b': hook 'pool': output shape [3]"):
        viewed(graph)
