"""Rules by name, and rules of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from layoutopt.tiles.blocks import Steps, TileMap, even_steps
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import BUILT_IN, RULES, rule, tile_map
from tests.support import refused

MEMORY = TileMemory(8, 1024)


@pytest.fixture(autouse=True)
def own_rules() -> Iterator[None]:
    """Take away the rules that a test adds."""
    yield
    for name in RULES.keys() - BUILT_IN:
        del RULES[name]


def test_names_that_cannot_be_taken() -> None:
    """Names of the package, and what is no name or no rule, are refused."""
    with refused("rule 'grid' is one of the package's own; take another name"):
        rule("grid")
    with refused("a rule's name must be a text, got 3"):
        rule(3)  # type: ignore[arg-type]
    with refused("rule 'mine' must be a function (shape, memory, **parameters)"):
        rule("mine")(lambda: 3)
    with refused("rule 'mine' must be a function (shape, memory, **parameters)"):
        rule("mine")("grid")  # type: ignore[type-var]
    assert "mine" not in RULES


def raising(shape: tuple[int, ...], memory: TileMemory) -> None:
    """Fail with a text of two lines."""
    raise KeyError("one\ntwo")


def steps(*starts: int, values: Any = None) -> Steps:
    """Return steps of value 0."""
    return Steps(np.array(starts), np.zeros(len(starts), int) if values is None else values)


ANSWERS: list[tuple[Callable[..., Any], str]] = [
    (raising, "rule 'mine': failed with KeyError: "),
    (lambda s, m: None, "rule 'mine': returned shape [], [2, 3] is needed"),
    (lambda s, m: np.zeros(6, int), "returned shape [6], [2, 3] is needed"),
    (lambda s, m: [[0, 1], [2]], "must return a TileMap or an array of tiles"),
    (lambda s, m: np.zeros(s), "tiles must be integers"),
    (lambda s, m: np.zeros(s, bool), "tiles must be integers"),
    (lambda s, m: np.full(s, 8), "tile 8 is out of range; there are 8 tiles, from 0"),
    (lambda s, m: np.full(s, -1), "tile -1 is out of range; there are 8 tiles, from 0"),
    (lambda s, m: np.full(s, 2**63, np.uint64), "is out of range; there are 8 tiles, from 0"),
    (lambda s, m: TileMap((5,), (even_steps(5, 2),)), "maps 5 elements, the tensor has 6"),
    (lambda s, m: TileMap((2, 3), (even_steps(2, 1),)), "has steps along 1 of 2 axes"),
    (lambda s, m: TileMap((6,), (steps(1, 2),)), "steps along axis 0 do not ascend from 0 below 6"),
    (lambda s, m: TileMap((6,), (steps(0, 6),)), "do not ascend from 0 below 6"),
    (lambda s, m: TileMap((6,), (steps(0, 3, 3),)), "do not ascend from 0 below 6"),
    (lambda s, m: TileMap((6,), (steps(),)), "do not ascend from 0 below 6"),
    (
        lambda s, m: TileMap((6,), (steps(0, values=np.zeros(1)),)),
        "do not ascend from 0 below 6",
    ),
]


@pytest.mark.parametrize(("function", "reason"), ANSWERS, ids=[reason for _, reason in ANSWERS])
def test_bad_answers(function: Callable[..., Any], reason: str) -> None:
    """What a rule may not return, or raises, becomes one line that names the rule."""
    rule("mine")(function)
    with refused("rule 'mine': ", reason):
        tile_map((2, 3), MEMORY, {"kind": "mine"})


GIVEN: list[tuple[Any, str]] = [
    ({"kind": "spiral"}, "unknown rule 'spiral'; known: linear, grid, matmul_lhs"),
    ({}, "unknown rule None; known: linear"),
    ({"kind": ["grid"]}, "unknown rule ['grid']; known: linear"),
    ("grid", "a rule must be a dictionary with a 'kind', not 'grid'"),
    ({"kind": "mine"}, "rule 'mine': parameter 'width' is missing"),
    ({"kind": "mine", "with": 3}, "rule 'mine': unknown parameter 'with'; allowed: width"),
    ({"kind": "mine", "shape": 3, "width": 1}, "unknown parameter 'shape'; allowed: width"),
]


@pytest.mark.parametrize(("given", "reason"), GIVEN, ids=[reason for _, reason in GIVEN])
def test_bad_rules(given: Any, reason: str) -> None:
    """Unknown rules, unknown and missing parameters are refused with what is allowed."""
    rule("mine")(lambda shape, memory, width: np.zeros(shape, int))
    with refused(reason):
        tile_map((2, 3), MEMORY, given)


def test_any_parameters() -> None:
    """A rule that takes any parameters gets them."""
    rule("mine")(lambda shape, memory, **rest: np.full(shape, len(rest)))
    given = {"kind": "mine", "a": 1, "b": 2}
    assert tile_map((1,), MEMORY, given).tiles().tolist() == [2]


@pytest.mark.parametrize("shape", [(2, -1), (2.0,), 3])
def test_bad_shapes(shape: Any) -> None:
    """A shape is a list of extents."""
    with refused("shape"):
        tile_map(shape, MEMORY)
