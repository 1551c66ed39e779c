"""Sinks in many pieces: what a check takes grows with their number, and no faster."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from layoutopt.check.elements import Evaluation, Located, by_elements, by_pieces
from layoutopt.check.matching import Layouts
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory

PIECES, LOCATIONS = 3000, 150_000
SECONDS = 10
"""Of processor time; it takes about 1, and takes 25 where each piece reads the whole mapping."""


def single(tiles: bool) -> tuple[Graph, Layouts]:
    """Return a sink each of whose elements takes another one's place, as a piece of its own."""
    graph = Graph("pieces")
    x = graph.sink((PIECES,), name="x")
    names = [i % 64 if tiles else f"at {i % 64}" for i in range(LOCATIONS)]
    s = graph.source((LOCATIONS,), mapping=names, name="s")
    graph.valued_pair(x, graph.slice(s, (0,), (PIECES,)), 1)
    if tiles:
        graph.tile_memory = TileMemory(64, 4 * PIECES)
    turns = [(i * 7919) % LOCATIONS for i in range(PIECES)]
    return graph, {"x": tuple(("s", turns[i], i, ((1, 1, 1),)) for i in range(PIECES))}


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("way", [by_elements, by_pieces])
def test_evaluation(way: Callable[[Graph, Layouts], Evaluation], tiles: bool) -> None:
    """Where locations come from a mapping, it is read once and not for every piece."""
    graph, layouts = single(tiles)
    begun = time.process_time()
    found = way(graph, layouts)
    assert time.process_time() - begun < SECONDS
    assert found.violations == ()
    taken = [start for _, start, _, _ in layouts["x"]]
    assert found.score == sum(start % 64 == i % 64 for i, start in enumerate(taken))


def test_spread() -> None:
    """So it is where elements are counted by tile."""
    graph, layouts = single(tiles=True)
    begun = time.process_time()
    tiles, counts = Located(graph, layouts).each(graph.number("x"))
    assert time.process_time() - begun < SECONDS
    assert (len(tiles), counts.sum()) == (64, PIECES)
