"""Claims that nothing fits, against trying everything."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from layoutopt.base.result import PairScore, Status, UnwindingResult
from layoutopt.check.elements import violations
from layoutopt.check.occupancy import overfull, sure_to_fit
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.check.test_elements import dynamic
from tests.machine.test_capacitated import full


def nothing(graph: Graph) -> UnwindingResult:
    """Return the claim that a graph's sinks do not fit."""
    found = unwind(graph)
    empty = {"objective": None, "bound": None, "labelling": None, "order": (), "pairs": ()}
    return replace(found, **empty, infeasible="so it is said")


def claimed(graph: Graph, result: UnwindingResult) -> list[str]:
    """Return what is wrong with such a claim."""
    return list(violations(graph, result, Status.INFEASIBLE, None))


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
    assert claimed(graph, replace(empty, labelling={}))[-1:] == [beside]
    roomy = full(room=6)
    wrong = claimed(roomy, unwind(roomy))
    assert wrong[:2] == [beside, "status: the sinks fit the tiles, the result says infeasible"]
    graph.tile_memory = None
    [line] = claimed(graph, empty)
    assert (
        line == "status: instances without a tile memory are feasible, the result says infeasible"
    )


UP, DOWN = PairScore("up", "x", Decimal(100), 4, 4), PairScore("down", "y", Decimal(100), 2, 0)

NONE: dict[str, Any] = {"objective": None, "bound": None, "labelling": None}


def wrong(change: dict[str, Any]) -> list[str]:
    """Return what is wrong with a right result in which something is changed."""
    graph = dynamic()
    result = replace(unwind(graph), **change)
    return list(violations(graph, result, result.status, result.gap))


def test_status_and_gap() -> None:
    """They must be those of score and bound; a gap is a binary number, rounded a little."""
    graph = dynamic()
    right = unwind(graph)
    weak = replace(right, bound=Decimal(500))  # a gap of 100 / 400
    far = replace(right, bound=Decimal(2400))
    for result, status, gap, line in [
        (right, Status.OPTIMAL, None, ""),
        (right, Status.OPTIMAL, 1e-10, ""),
        (right, Status.OPTIMAL, 1e-8, "gap: score and bound give 0.0, the result says 1e-08"),
        (right, Status.FEASIBLE, 0.0, "mean optimal, the result says feasible"),
        (weak, Status.FEASIBLE, 0.25, ""),
        (weak, Status.FEASIBLE, 0.5, "gap: score and bound give 0.25, the result says 0.5"),
        (weak, Status.FEASIBLE, 0.25 + 1.5e-9, "gap: score and bound give 0.25"),
        (far, Status.FEASIBLE, 5 + 4e-9, ""),  # by the size of the gap
        (far, Status.FEASIBLE, 5 + 6e-9, "gap: score and bound give 5.0"),
        (weak, Status.FEASIBLE, 0.25 - 1e-8, "gap: score and bound give 0.25"),
        (weak, Status.OPTIMAL, 0.25, "mean feasible, the result says optimal"),
        (replace(right, bound=None), Status.FEASIBLE, None, ""),
        (replace(right, bound=None), Status.FEASIBLE, 0.0, "gap: score and bound give None"),
        (replace(right, **NONE), Status.UNKNOWN, None, ""),
        (replace(right, **NONE), Status.UNKNOWN, 0.5, "gap: score and bound give None"),
        (replace(right, **NONE), Status.FEASIBLE, None, "mean unknown, the result says feasible"),
    ]:
        found = list(violations(graph, result, status, gap))
        assert len(found) == bool(line)
        assert line in "".join(found)
