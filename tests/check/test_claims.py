"""Claims that nothing fits, against trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

from layoutopt.check.claims import violations
from layoutopt.check.occupancy import overfull, sure_to_fit
from layoutopt.graphs.unwinding import Graph
from layoutopt.result import Status, UnwindingResult
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.machine.test_capacitated import full, tried
from tests.machine.test_whatif import crowds


def nothing(graph: Graph) -> UnwindingResult:
    """Return the claim that a graph's sinks do not fit."""
    found = unwind(graph)
    empty = {"objective": None, "bound": None, "labelling": None, "order": (), "pairs": ()}
    return replace(found, **empty, infeasible="so it is said")


def claimed(graph: Graph, result: UnwindingResult) -> list[str]:
    """Return what is wrong with such a claim."""
    return list(violations(graph, result, Status.INFEASIBLE, None))


def test_what_is_seen_is_true() -> None:
    """Too many bytes never fit; what is sure to fit does; a true claim is not contradicted."""
    seen: Counter[tuple[bool, bool, bool]] = Counter()
    for graph in crowds(150):
        fits = tried(graph) is not None
        too_much, sure = bool(overfull(graph)), sure_to_fit(graph)
        assert not (too_much and (sure or fits))
        assert fits or not sure
        wrong = claimed(graph, nothing(graph))
        assert wrong == (["status: the sinks fit the tiles, the result says infeasible"] * sure)
        seen[fits, too_much, sure] += 1
    assert seen[False, True, False] > 10
    assert seen[True, False, True] > 50
    assert seen[True, False, False] > 0


def test_what_cannot_be_seen() -> None:
    """Two of 3 bytes and one of 2 on two tiles of 4 need a search; 2 in 3 bytes is arithmetic."""
    graph = Graph("odd")
    graph.tile_memory = TileMemory(2, 4, {"x": 3, "y": 2})
    graph.sink((2,), name="x")
    graph.sink((1,), name="y")
    assert unwind(graph).status is Status.INFEASIBLE
    assert (overfull(graph), sure_to_fit(graph)) == ("", False)
    assert claimed(graph, nothing(graph)) == []
    assert "2 more than all 2 tiles hold in multiples of 2; " in overfull(full(room=3, grain=2))
    assert sure_to_fit(full(tiles=3, room=3, grain=2))
    assert overfull(full(room=2)).startswith("sinks need 6 bytes, 2 more than all 2 tiles hold; ")


def test_contradictions() -> None:
    """A solution or a bound beside the claim, and the claim without a tile memory, are wrong."""
    graph = full(room=2)
    empty = nothing(graph)
    assert claimed(graph, empty) == []
    beside = "status: the result says infeasible, but has layouts, a score or a bound"
    assert claimed(graph, replace(empty, bound=Decimal(1))) == [beside]
    roomy = full(room=6)
    wrong = claimed(roomy, unwind(roomy))
    assert wrong[:2] == [beside, "status: the sinks fit the tiles, the result says infeasible"]
    graph.tile_memory = None
    [line] = claimed(graph, empty)
    assert (
        line == "status: every instance without a tile memory has a solution, the result has none"
    )
