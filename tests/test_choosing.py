"""Where heuristics look at elements, and where not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from layoutopt.base.entries import ENTRIES, Entry, Takes
from layoutopt.base.limits import Limits
from layoutopt.check.elements import evaluate
from layoutopt.graphs.locations import FixedElements, Origins
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering import heuristics
from layoutopt.lowering.greedy0 import Elements
from layoutopt.lowering.heuristics import choose, greedy0_by_boxes
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.machine.test_capacitated import full

GREEDY0 = ENTRIES["greedy0", Takes.GRAPH]


def example() -> tuple[Graph, int, int]:
    """Return a graph whose sink greedy0 gives to s for 2 n, and the numbers of sink and t."""
    graph = Graph()
    x, s = graph.sink((6,), name="x"), graph.source((6,), name="s")
    t = graph.source((6,), name="t")
    graph.valued_pair(x, s, 2)
    graph.valued_pair(x, t, 1)
    return graph, x.index, t.index


@pytest.mark.parametrize("large", [0, 2**62])
def test_elements_and_boxes(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the limit elements are looked at and boxes are not, and the other way round."""
    graph, _, _ = example()

    def never(*_given: object) -> None:
        raise AssertionError

    monkeypatch.setattr(heuristics, "greedy0_by_boxes" if large else "Elements", never)
    layouts = choose(graph, GREEDY0, Limits(), FixedElements(graph), large)
    assert evaluate(graph, layouts).score == 12


def test_too_irregular(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes too many boxes is looked at by element if that fits the memory, else in part."""
    graph, _, _ = example()
    monkeypatch.setattr(heuristics, "greedy0_by_boxes", partial(greedy0_by_boxes, steps=0))
    layouts = choose(graph, GREEDY0, Limits(), FixedElements(graph), large=0)
    assert evaluate(graph, layouts).score == 12
    monkeypatch.setattr(heuristics, "BYTES", 2**60)
    layouts = choose(graph, GREEDY0, Limits(), FixedElements(graph), large=0)
    assert evaluate(graph, layouts).score == 0


def test_given_elements() -> None:
    """Given locations are kept, also where boxes would be looked at."""
    graph, x, t = example()
    tensors = np.where(np.arange(6) < 2, t, -1)
    given = FixedElements(graph, {x: (tensors, np.arange(6))})
    layouts = choose(graph, GREEDY0, Limits(), given, large=0)
    assert evaluate(graph, layouts).score == 2 * 1 + 4 * 2


def test_users_heuristics_look_at_elements() -> None:
    """A user's heuristic, which may tell elements of a tensor apart, never gets boxes."""
    graph, _, _ = example()
    seen = []

    def own(graph: Graph, limits: Limits, given: FixedElements, places: Elements) -> Origins:
        seen.append(type(places))
        return GREEDY0.load()(graph, limits, given, places)

    mine = Entry("mine", Takes.GRAPH, proves=False, place=own, own=True)
    layouts = choose(graph, mine, Limits(), FixedElements(graph), large=0)
    assert evaluate(graph, layouts).score == 12
    assert seen == [Elements]


def test_what_a_machine_has_no_room_for() -> None:
    """Heuristics know no capacity and no grain: layouts that break them are none."""
    for room, grain, fits in ((6, 1, True), (4, 1, False), (6, 4, False)):
        graph = full(room=room)
        graph.tile_memory = TileMemory(2, room, {"default": 1}, grain=grain)
        if grain > 1:
            graph.valued_pair(graph.sinks()[0], graph.source((6,), [0, 1] * 3), 9)
        chosen = choose(graph, GREEDY0, Limits(), FixedElements(graph))
        assert (chosen is not None) == fits
        assert unwind(graph, "greedy0").status == ("optimal" if fits else "unknown")
