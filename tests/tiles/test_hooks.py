"""Hooks by name, and hooks of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from layoutopt.tiles.hooks import BUILT_IN, HOOKS, READS, hook, hooked_tiles, read_elements
from layoutopt.tiles.memory import TileMemory
from tests.support import refused

MEMORY = TileMemory(8, 1024)
SQUARE = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])


@pytest.fixture(autouse=True)
def own_hooks() -> Iterator[None]:
    """Take away the hooks that a test adds."""
    yield
    for name in HOOKS.keys() - BUILT_IN:
        del HOOKS[name]
        READS.pop(name, None)


def test_what_is_empty() -> None:
    """Outputs without elements need none of the input; others do."""
    nothing = np.zeros((2, 0), int)
    for name in ("reduce", "broadcast", "pool", "normalisation", "same"):
        [tiles] = hooked_tiles(name, [nothing], [(2, 0)], MEMORY)
        assert tiles.shape == (2, 0)
    with refused("hook 'reduce': output shape [2] is no reduction of [2, 0]"):
        hooked_tiles("reduce", [nothing], [(2,)], MEMORY)
    with refused("hook 'broadcast': output shape [1] does not broadcast to [2, 0]"):
        hooked_tiles("broadcast", [nothing], [(1,)], MEMORY)


UNFIT: list[tuple[str, list[tuple[int, ...]], str]] = [
    ("same", [(8,)], "as many outputs as inputs are needed, each of its input's shape"),
    ("same", [(2, 4), (2, 4)], "as many outputs as inputs are needed"),
    ("normalisation", [(3,)], "output shape [3] is no reduction of [2, 4]"),
    ("reduce", [(2, 3)], "output shape [2, 3] is no reduction of [2, 4]"),
    ("reduce", [(4, 2, 1)], "output shape [4, 2, 1] is no reduction of [2, 4]"),
    ("broadcast", [(2,)], "output shape [2] does not broadcast to [2, 4]"),
    ("broadcast", [(1, 2, 4)], "output shape [1, 2, 4] does not broadcast to [2, 4]"),
    ("pool", [(4,)], "output shape [4] has no windows over [2, 4]"),
    ("pool", [(2, 5)], "output shape [2, 5] has no windows over [2, 4]"),
]


@pytest.mark.parametrize(("name", "shapes", "reason"), UNFIT)
def test_shapes_that_do_not_fit(name: str, shapes: list[tuple[int, ...]], reason: str) -> None:
    """Shapes that a hook is not for become one line that names it."""
    with refused(f"hook {name!r}: {reason}"):
        hooked_tiles(name, [SQUARE], shapes, MEMORY)


def test_names() -> None:
    """Unknown names are refused, and so are those of the package and what is no hook."""
    with refused("unknown hook 'softmax'; known: same, normalisation, reduce, broadcast, pool"):
        hooked_tiles("softmax", [SQUARE], [(2, 4)], MEMORY)
    with refused("hook 'pool': needs an input"):
        hooked_tiles("pool", [], [()], MEMORY)
    with refused("hook 'pool' is one of the package's own; take another name"):
        hook("pool")
    with refused("a hook's name must be a text, got 3"):
        hook(3)  # type: ignore[arg-type]
    with refused("hook 'mine' must be a function (inputs, shapes, memory)"):
        hook("mine")(lambda inputs: inputs)
    assert "mine" not in HOOKS


def raising(inputs: Any, shapes: Any, memory: Any) -> None:
    """Fail with a text of two lines."""
    raise KeyError("one\ntwo")


ANSWERS: list[tuple[Callable[..., Any], str]] = [
    (raising, "failed with KeyError: "),
    (lambda i, s, m: None, "must return a list of 1 arrays of tiles"),
    (lambda i, s, m: i[0], "must return a list of 1 arrays of tiles"),
    (lambda i, s, m: [i[0], i[0]], "must return a list of 1 arrays of tiles"),
    (lambda i, s, m: [i[0][0]], "output 0 has shape [4], [2, 4] is needed"),
    (lambda i, s, m: [[[1], [2, 3]]], "output 0 is no array of tiles"),
    (lambda i, s, m: [i[0] / 2], "output 0 holds float64, integers are needed"),
    (lambda i, s, m: [i[0] > 2], "output 0 holds bool, integers are needed"),
    (lambda i, s, m: [i[0] + 1], "output 0: tile 8 is out of range; there are 8 tiles, from 0"),
    (lambda i, s, m: [i[0] - 1], "output 0: tile -1 is out of range; there are 8 tiles, from 0"),
]


@pytest.mark.parametrize(("function", "reason"), ANSWERS)
def test_bad_answers(function: Callable[..., Any], reason: str) -> None:
    """Whatever a user's hook raises or returns wrongly becomes one line that names it."""
    hook("mine")(function)
    with refused(f"hook 'mine': {reason}"):
        hooked_tiles("mine", [SQUARE], [(2, 4)], MEMORY)


READ: list[tuple[Callable[..., Any], str]] = [
    (raising, "its reads failed with TypeError"),
    (lambda i, o: [[[0], [1]]], ""),
    (lambda i, o: [[[0], [8]]], "its reads must be an array (elements, k) for each output"),
    (lambda i, o: [[[-1], [0]]], "its reads must be an array"),
    (lambda i, o: [[0, 1]], "its reads must be an array"),
    (lambda i, o: [[[0]]], "its reads must be an array"),
    (lambda i, o: [], "its reads must be an array"),
    (lambda i, o: [[[0.5], [1]]], "its reads must be an array"),
]


@pytest.mark.parametrize(("reads", "reason"), READ)
def test_reads(reads: Callable[..., Any], reason: str) -> None:
    """What a hook says that it reads is checked; later functions of its name say it anew."""
    hook("mine", reads=reads)(lambda inputs, shapes, memory: [inputs[0][:, 0]])
    if reason:
        with refused(f"hook 'mine': {reason}"):
            read_elements("mine", [(2, 4)], [(2,)])
    else:
        found = read_elements("mine", [(2, 4)], [(2,)])
        assert found is not None
        assert [x.tolist() for x in found] == [[[0], [1]]]
    hook("mine")(lambda inputs, shapes, memory: [inputs[0][:, 0]])
    assert read_elements("mine", [(2, 4)], [(2,)]) is None
