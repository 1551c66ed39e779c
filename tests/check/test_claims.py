"""Claims that nothing fits, against trying everything."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from layoutopt.base.result import PairScore, Status, UnwindingResult
from layoutopt.check.claims import violations
from layoutopt.check.elements import overfull, sure_to_fit
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


def wrong(change: dict[str, Any], status: str = "", gap: float | None = None) -> list[str]:
    """Return what is wrong with a right result in which something is changed.

    Without a status, status and gap are those of score and bound.
    """
    graph = dynamic()
    result = replace(unwind(graph), **change)
    if not status:
        return list(violations(graph, result, result.status, result.gap))
    return list(violations(graph, result, Status(status), gap))
