"""Layouts of graphs with barrier hooks, scored by the specification."""

from __future__ import annotations

import pytest

from layoutopt.base.errors import SizeError
from layoutopt.check.claims import violations
from layoutopt.check.elements import by_elements, by_pieces, evaluate
from layoutopt.graphs.tiling import memory_of
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.hooks import hook
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.hooked import random_hooked
from tests.support import refused

pytestmark = pytest.mark.usefixtures("hooks")


def chained(name: str = "ascending") -> Graph:
    """Return two sinks; a hook of the first gives tiles that the second may take."""
    graph = Graph("chained")
    x, y = graph.sink((3,), name="x"), graph.sink((3,), name="y")
    b = graph.barrier([x], (3,), hook=name, name="b")
    c = graph.barrier([y], (3,), hook="same", name="c")
    graph.valued_pair(b, y, 2)
    graph.valued_pair(c, graph.source((3,), [0, 1, 1], name="s"), 1)
    graph.tile_memory = TileMemory(3, 16)
    return graph


X = {"x": [("tile", 2, 0, ((3, -1, 1),))]}
"""Tiles 2, 1, 0; sorted 0, 1, 2."""


def test_parts_of_a_sink() -> None:
    """One part of a sink may take the tile of a barrier that reads the other part alone."""
    graph = Graph()
    x = graph.sink((2,), name="x")
    b = graph.barrier([graph.slice(x, (1,), (2,))], (1,), hook="same", name="b")
    graph.valued_pair(b, graph.slice(x, (0,), (1,)), 1)
    graph.tile_memory = TileMemory(3, 16)
    found = by_elements(graph, {"x": [("b", 0, 0, ()), ("tile", 2, 1, ())]})
    assert (found.violations, found.score) == ((), 1)
    assert found.order == (("x", 1), ("x", 0))


def test_capacity_and_grain() -> None:
    """Tiles that are too full, and grains that are torn, are told of tiles that hooks give, too."""
    graph = chained("crowd")
    graph.tile_memory = TileMemory(3, 12, grain=2)
    layouts = X | {"y": [("b", 0, 0, ((3, 1, 1),))]}  # all on tile (2 + 1 + 0) % 3
    assert by_elements(graph, layouts).violations == (
        "capacity: tile 0 holds 16 of 12 bytes; 4 bytes too many in all",
        "grain: 1 elements of sink 'x' are not on the tile of the first element of their grain "
        "of 2",
    )


def test_by_pieces() -> None:
    """Views stand for built-in hooks; hooks of users are refused in one line."""
    graph = chained("same")
    layouts = X | {"y": X["x"]}
    found, other = by_pieces(graph, layouts), by_elements(graph, layouts)
    assert (found.score, found.pairs, found.violations) == (7, other.pairs, other.violations)
    with pytest.raises(SizeError, match="users' hooks are evaluated element by element; 15 are"):
        by_pieces(chained(), layouts)
    with pytest.raises(SizeError, match="pieces with origins in barriers with hooks are evaluated"):
        by_pieces(graph, X | {"y": [("b", 0, 0, ((3, 1, 1),))]})


def test_too_many_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that does not fit the memory is refused before it is begun."""
    monkeypatch.setattr("layoutopt.check.elements.ELEMENT_BYTES", 2**60)
    with pytest.raises(SizeError, match="evaluating hooks for every element needs"):
        evaluate(chained(), X | {"y": X["x"]})


def test_hooks_that_fail() -> None:
    """What a hook raises becomes one line that names barrier and hook."""
    hook("ascending")(lambda inputs, shapes, memory: [inputs[0] + 5])
    with refused(
        "barrier 'b': hook 'ascending': output 0: tile 7 is out of range; there are 3 tiles"
    ):
        evaluate(chained(), X | {"y": X["x"]})
    graph = chained("nothing")
    with refused("barrier 'b': unknown hook 'nothing'; known: same, "):
        evaluate(graph, X | {"y": X["x"]})


def test_greedy_layouts_are_legal() -> None:
    """Layouts that a heuristic names by barriers are scored with what their hooks compute."""
    for seed in range(15):
        graph = random_hooked(seed)
        memory = memory_of(graph)
        graph.tile_memory = TileMemory(memory.tiles, 1024)
        result, best = unwind(graph, "greedy0"), unwind(graph)
        assert result.score is not None
        assert best.score is not None
        assert result.score <= best.score
        assert not list(violations(graph, result, result.status, result.gap))
    graph = chained()
    graph.valued_pair("x", graph.source((3,), [2, 1, 0], name="t"), 1)
    result = unwind(graph, "greedy0")
    assert [piece[0] for piece in (result.layouts or {})["y"]] == ["b"]
    assert (result.score, result.order) == (3 + 6 + 2, ("x", "y"))
