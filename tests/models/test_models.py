"""The models keep to what they state, with no solver of the package involved."""

from __future__ import annotations

import re
import shutil
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from layoutopt.graphs.unwinding import Graph
from models import exhaustive, minizinc, textbook_mip
from models.statement import Statement, added, cyclic, score
from tests.models.instances import FAMILIES, stated

ROOT = Path(__file__).parents[2]


def by_definition(given: Statement, ordered: bool) -> Fraction:
    """Return the best score of all choices, all fresh locations included, nothing left out."""
    elements = range(len(given.elements))
    places = [*range(len(given.locations)), *(-1 - e for e in elements)]
    best = None
    for choice in product(places, repeat=len(elements)):
        where = dict(enumerate(choice))
        arcs = given.arcs.union(*(added(given, e, place) for e, place in where.items()))
        if not ordered or not cyclic(arcs):
            earned = score(given, where)
            best = earned if best is None else max(best, earned)
    assert best is not None
    return best


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_exhaustive_search_leaves_out_nothing(family: str, ordered: bool) -> None:
    """Giving up early, renaming fresh locations and splitting lose no optimum."""
    compared = 0
    for seed in range(200):
        if compared == 18:
            break
        given = stated(FAMILIES[family](seed))
        choices = (len(given.locations) + len(given.elements)) ** len(given.elements)
        if choices <= 4000:
            compared += 1
            assert exhaustive.maximum(given, ordered) == by_definition(given, ordered), seed
    assert compared >= 10


@pytest.mark.parametrize("ordered", [True, False])
def test_exhaustive_search_chooses_for_two_exclusive_barriers(ordered: bool) -> None:
    """``x = g(y)`` and ``y = f(x)`` are worth 3 and 2; without order both would be had."""
    graph = Graph()
    x, y = graph.sink((1,)), graph.sink((1,))
    graph.valued_pair(x, graph.barrier([y], (1,), name="g"), 3)
    graph.valued_pair(y, graph.barrier([x], (1,), name="f"), 2)
    assert exhaustive.maximum(stated(graph), ordered) == (3 if ordered else 5)


def test_exhaustive_search_follows_a_cycle_through_three_barriers() -> None:
    """Three barriers in a ring, each read by the next: the least of three pairs is lost."""
    graph = Graph()
    sinks = [graph.sink((1,)) for _ in range(3)]
    for k, value in enumerate([4, 1, 7]):
        graph.valued_pair(sinks[k], graph.barrier([sinks[k - 1]], (1,)), value)
    given = stated(graph)
    assert exhaustive.maximum(given) == 11
    assert exhaustive.maximum(given, ordered=False) == 12


def test_values_are_exact() -> None:
    """A third of a unit does not exist in decimals, but 1e-30 beside 1e30 does."""
    graph = Graph()
    x = graph.sink((1,))
    graph.valued_pair(x, graph.source((1,)), "1e30")
    graph.valued_pair(x, graph.identity(x), "1e-30")
    assert exhaustive.maximum(stated(graph)) == 10**30 + Fraction(1, 10**30)


def test_textbook_mip_gives_the_exact_score_of_its_choice() -> None:
    """Doubles choose; the score is not computed with them."""
    graph = Graph()
    x, y = graph.sink((1,)), graph.sink((1,))
    graph.valued_pair(x, y, "0.1")
    graph.valued_pair(x, graph.source((1,)), "0.2")
    assert textbook_mip.maximum(stated(graph)) == Fraction("0.3")


def test_large_values_are_counted_in_their_unit() -> None:
    """What HiGHS would take for infinity is a small number of large units."""
    graph = Graph()
    x = graph.sink((1,))
    graph.valued_pair(x, graph.source((1,)), "3e22")
    graph.valued_pair(x, graph.source((1,)), "5e22")
    assert textbook_mip.maximum(stated(graph)) == 5 * 10**22
    table, scale = minizinc.data(stated(graph))
    assert sorted(value for _, _, value in table["earn"]) == [3, 5]
    assert 3 / scale == 3 * 10**22


@pytest.mark.skipif(
    shutil.which("minizinc") is None, reason="the minizinc command is not on this machine"
)
def test_minizinc_that_fails_is_no_optimum() -> None:
    """Values beyond the solver's integers are an error, not a wrong number."""
    graph = Graph()
    graph.valued_pair(graph.sink((1,)), graph.source((1,)), "1e12")
    graph.valued_pair(graph.sink((1,)), graph.source((1,)), 1)
    with pytest.raises(RuntimeError, match="minizinc"):
        minizinc.maximum(stated(graph))


def test_example_of_the_page_prints_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of Python in the README run, and print the number beside them."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "models/README.md").read_text(), re.S)
    monkeypatch.chdir(ROOT)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.split() == re.findall(r"# (\d+)", block)
