"""Layouts that users give: scored, kept, completed, and used as a start."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from itertools import count

import numpy as np
import pytest

from layoutopt import Status, Stopped
from layoutopt.base.errors import InputError
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.ops import Array, Kind
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.assignment import evaluate
from layoutopt.unwinding import unwind
from tests.models.instances import mixed, tangle
from tests.support import refused

LOT = 10**6
"""A value that outweighs all others of a random graph."""

Given = dict[str, Array]


def some_layouts(graph: Graph, seed: int) -> Given:
    """Return arrays that give some sink elements random locations, sinks' own ones too."""
    draw = random.Random(seed)
    own = graph.locations()
    roots = [t for t in graph.tensors() if t.kind is not Kind.VIEW and t.size]
    given = {}
    for sink in graph.sinks():
        where = np.full(sink.shape, -1)
        for i in np.ndindex(sink.shape):
            if draw.random() < 0.4:
                where[i] = draw.choice(own[draw.choice(roots).name].reshape(-1).tolist())
        if draw.random() < 0.9:
            given[sink.name] = where
    return given


def as_pairs(graph: Graph, given: Given) -> tuple[Graph, int]:
    """Return a graph in which a lot is earned by every element that lies as given.

    A location that a sink element owns becomes an element of a new source: what matters of it
    is only that it is nobody else's.
    """
    forced = graph.copy()
    element = {}
    for tensor in graph.tensors():
        if tensor.kind is not Kind.VIEW:
            for e, where in enumerate(graph.locations()[tensor.name].reshape(-1).tolist()):
                element.setdefault(where, (tensor, e))
    number, fresh = count(), {}

    def at(tensor: str, e: int):
        flat = forced.flatten(tensor, name=f"forced{next(number)}")
        return forced.slice(flat, [e], [e + 1], name=f"forced{next(number)}")

    for name, array in given.items():
        for e, where in enumerate(array.reshape(-1).tolist()):
            if where >= 0:
                origin, o = element[where]
                if origin.kind is Kind.SINK:
                    if where not in fresh:
                        fresh[where] = forced.source((1,), name=f"forced{next(number)}")
                    target = fresh[where]
                else:
                    target = at(origin.name, o)
                forced.valued_pair(at(name, e), target, LOT)
    return forced, LOT * sum(int((array >= 0).sum()) for array in given.values())


@cache
def expected(family: Callable[[int], Graph], seed: int) -> tuple[Graph, Given, Decimal | None]:
    """Return a graph, layouts of parts of it, and the best that they leave, if they can be kept."""
    graph = family(seed)
    given = some_layouts(graph, seed)
    forced, worth = as_pairs(graph, given)
    best = unwind(forced).score
    assert best is not None
    return graph, given, None if best < worth - LOT / 2 else best - worth


@pytest.mark.parametrize("solver", ["auto", "cpsat", "mip"])
@pytest.mark.parametrize("family", [mixed, tangle])
def test_fixed_equals_pairs_of_huge_value(family: Callable[[int], Graph], solver: str) -> None:
    """Keeping layouts earns what pairs that outweigh everything earn, less their own worth.

    Where these pairs cannot all be earned, barrier order is broken, and ``fixed`` is refused.
    """
    kinds = {"kept": 0, "refused": 0}
    for seed in range(20):
        graph, given, best = expected(family, seed)
        if best is None:
            kinds["refused"] += 1
            with refused("fixed: barrier order"):
                unwind(graph, solver, fixed=given)
            continue
        kinds["kept"] += 1
        result = unwind(graph, solver, fixed=given)
        assert result.status is Status.OPTIMAL
        assert result.score == best, (family.__name__, seed)
        lie = graph.locations(result.layouts)
        for name, array in given.items():
            assert (lie[name][array >= 0] == array[array >= 0]).all(), (seed, name)
    assert kinds["kept"] > 10
    assert kinds["refused"] > 2 or family is mixed


def test_greedy0_keeps_what_is_given() -> None:
    """Greedy0 lays out the rest, legally, and never better than the optimum."""
    kept = 0
    for seed in range(60):
        graph = (mixed, tangle)[seed % 2](seed)
        given = some_layouts(graph, seed)
        try:
            best = unwind(graph, fixed=given).score
        except InputError:
            continue
        result = unwind(graph, "greedy0", fixed=given)
        lie = graph.locations(result.layouts)
        for name, array in given.items():
            assert (lie[name][array >= 0] == array[array >= 0]).all(), (seed, name)
        assert result.score is not None
        assert best is not None
        assert result.score <= best
        kept += 1
    assert kept > 32


def chain() -> Graph:
    """Return a graph of two sinks, ``x`` and ``y``, drawn to each other and to ``s`` and ``t``."""
    graph = Graph("chain")
    x, y = graph.sink((2, 2), name="x"), graph.sink((4,), name="y")
    s, t = graph.source((4,), name="s"), graph.source((4,), name="t")
    graph.valued_pair(graph.flatten(x), s, 3)
    graph.valued_pair(y, t, 2)
    graph.valued_pair(graph.flatten(x), y, 5)
    return graph


def test_a_whole_layout_is_kept() -> None:
    """With ``y`` at ``t``, ``x`` goes there too: 4 * (2 + 5), not the free optimum 4 * (3 + 5)."""
    graph = chain()
    given = {"y": [("t", 0, 0, [(4, 1, 1)])]}
    result = unwind(graph, fixed=given)
    assert (unwind(graph).score, result.score, result.status) == (32, 28, Status.OPTIMAL)
    assert result.size["given"] == unwind(graph, "greedy0", fixed=given).size["given"] == 4
    assert result.layouts is not None
    assert result.layouts["y"] == (("t", 0, 0, ((4, 1, 1),)),)


def test_part_of_a_layout_is_kept() -> None:
    """With one element of ``x`` at ``t[3]`` the first position earns only what ``y`` can."""
    graph = chain()
    result = unwind(graph, fixed={"x": [("t", 3, 0, [(1, 1, 1)])]})
    # Position 0: x lies at t[3]; y there too earns 5, at t[0] 2.  Three others earn 8.
    assert result.score == 5 + 3 * 8


def test_handles_arrays_pieces_and_results_say_the_same() -> None:
    """All forms of one layout are worth the same, and mean the same when they are kept."""
    graph = chain()
    own = graph.locations()
    pieces = [("s", 3, 0, ((4, -1, 1),))]
    forms = [
        {"x": pieces},
        {graph.tensor("x"): pieces},
        {"x": [["s", 3, 0, [[4, -1, 1]]]]},
        {"x": own["s"][::-1].reshape(2, 2)},
        {"x": [(graph.tensor("s"), 3 - i, i, [(1, 1, 1)]) for i in range(4)]},
    ]
    for form in forms:
        found = evaluate(graph, form)
        assert (found.score, found.missing, found.violations) == (0, 4, ())
        assert unwind(graph, fixed=form).score == 4 * 5
    result = unwind(graph)
    assert evaluate(graph, result).score == result.score == 32
    assert unwind(graph, fixed=result).score == 32


def test_what_is_left_out_earns_nothing_by_itself() -> None:
    """Half of ``x`` at ``s`` earns 2 * 3; the six other elements are counted as missing."""
    found = evaluate(chain(), {"x": [("s", 0, 0, ((2, 1, 1),))]})
    assert (found.score, found.missing, found.max_score) == (6, 6, 40)
    assert evaluate(chain(), {}).missing == 8


def test_pieces_that_cover_a_sink_stay_as_they_are() -> None:
    """The order that an evaluation gives counts the pieces that the user wrote."""
    graph = Graph()
    x = graph.sink((2,), name="x")
    b = graph.barrier([graph.slice(x, [0], [1])], (1,), name="b")
    graph.valued_pair(graph.slice(x, [1], [2]), b, 1)
    pieces = [(b.name, 0, 1, [(1, 1, 1)]), ("x", 0, 0, [(1, 1, 1)])]
    assert evaluate(graph, {"x": pieces}).order == (("x", 1), ("x", 0))


class TestFreshLocations:
    """Locations that sink elements own can be given as well."""

    def test_two_sinks_at_one_fresh_location_of_a_third(self) -> None:
        """Elements given one fresh location match; its free owner chooses what it likes."""
        graph = Graph()
        x, y, z = (graph.sink((2,), name=name) for name in "xyz")
        graph.valued_pair(x, y, 3)
        graph.valued_pair(y, z, -4)
        own = graph.locations()["z"]
        result = unwind(graph, fixed={"x": own, "y": own})
        assert (result.score, result.bound) == (6, 6)  # z must not lie at its own locations
        lie = graph.locations(result.layouts)
        assert (lie["x"] == own).all()
        assert (lie["z"] != own).all()

    def test_the_owner_joins_if_that_pays(self) -> None:
        """A free element may take the fresh location that another is given, its own or not."""
        graph = Graph()
        x, y = graph.sink((3,), name="x"), graph.sink((3,), name="y")
        graph.valued_pair(x, y, 1)
        own = graph.locations()
        for given in (own["y"], own["y"][::-1], own["x"][::-1]):
            assert unwind(graph, fixed={"x": given}).score == 3

    def test_chains_of_owners(self) -> None:
        """Given elements that own each other's locations leave enough for the free ones."""
        graph = Graph()
        x = graph.sink((4,), name="x")
        graph.valued_pair(x, graph.reverse(x, [0]), -1)
        graph.valued_pair(graph.slice(x, [0], [2]), graph.slice(x, [1], [3]), -1)
        given = np.array([1, 2, -1, -1])
        result = unwind(graph, fixed={"x": given})
        assert result.score == 0


class TestStart:
    """A start is never made worse."""

    def test_without_time_the_start_is_the_answer(self) -> None:
        """With no time at all a graph still gets the layouts that it began with."""
        graph = chain()
        start = {"y": [("t", 0, 0, [(4, 1, 1)])]}
        result = unwind(graph, start=start, time_limit=0)
        assert (result.score, result.stopped) == (8, Stopped.TIME_LIMIT)

    def test_answers_are_at_least_as_good(self) -> None:
        """The optimum as a start stays, whatever the limit; a poor start does no harm."""
        for seed in range(16):
            graph = random_graph(seed, elements=12, barriers=seed % 2 == 0)
            best = unwind(graph)
            poor = {s.name: graph.locations()[s.name] for s in graph.sinks()}
            for solver in ("auto", "cpsat", "mip"):
                assert unwind(graph, solver, start=poor).score == best.score
            assert unwind(graph, start=best, time_limit=1e-6).score == best.score

    def test_start_and_fixed_together(self) -> None:
        """What is fixed overrules the start; the bound is that of the fixed problem."""
        graph = chain()
        result = unwind(graph, start=unwind(graph), fixed={"y": graph.locations()["t"]})
        assert (result.score, result.bound) == (28, 28)

    def test_heuristics_take_no_start(self) -> None:
        """A heuristic that would ignore the start says so."""
        with refused("solver greedy0 does not support start; use one of auto, cpsat, mip"):
            unwind(chain(), "greedy0", start={})


def test_values_stay_exact() -> None:
    """Scores with fixed layouts are exact decimals too."""
    graph = Graph()
    x, s = graph.sink((3,), name="x"), graph.source((3,), name="s")
    graph.valued_pair(x, s, "0.1")
    assert unwind(graph, fixed={"x": [("s", 0, 0, [(2, 1, 1)])]}).score == Decimal("0.3")


def test_layouts_of_huge_graphs() -> None:
    """Whole layouts of a graph of any size are scored; what needs arrays is refused in a line."""
    graph = Graph()
    n = 2**45
    x, s = graph.sink((n,), name="x"), graph.source((n,), name="s")
    graph.valued_pair(x, s, 1)
    view = graph.reverse(x, (0,), name="view")
    whole = {"x": [("s", 0, 0, [(n, 1, 1)])]}
    assert evaluate(graph, whole).score == n
    assert evaluate(graph, unwind(graph)).score == n
    assert evaluate(graph, unwind(graph, "greedy0")).score == n
    part = {"x": [("s", 0, 0, [(n - 1, 1, 1)])]}
    for refusal, call in (
        ("layouts: an array of all elements of all sinks", lambda: evaluate(graph, part)),
        ("fixed: an array of all elements of all sinks", lambda: unwind(graph, fixed=whole)),
        ("start: an array of all elements of all sinks", lambda: unwind(graph, start=whole)),
        ("a number for every element", graph.locations),
        ("an index for every element", lambda: graph.in_regions(view, np.s_[:3])),
        ("an index for every element", lambda: graph.out_regions(view, np.s_[:3])),
        ("an index for every element", lambda: graph.index_map(x, view)),
    ):
        with refused(f"{refusal} needs about", "GiB; this machine has"):
            call()
