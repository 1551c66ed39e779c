"""Tile memories, rules and hooks: what they say, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from layoutopt.tiles.blocks import Steps, TileMap, even_steps
from layoutopt.tiles.hooks import HOOKS, hook, hooked_tiles, read_elements
from layoutopt.tiles.memory import PRESETS, TileMemory
from layoutopt.tiles.rules import RULES, rule, tile_map
from tests.support import refused

# Rules by name, and rules of users


MEMORY = TileMemory(8, 1024)


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


# Hooks by name, and hooks of users


SQUARE = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])


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


def raising_of_hooks(inputs: Any, shapes: Any, memory: Any) -> None:
    """Fail with a text of two lines."""
    raise KeyError("one\ntwo")


ANSWERS_HOOKS: list[tuple[Callable[..., Any], str]] = [
    (raising_of_hooks, "failed with KeyError: "),
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


@pytest.mark.parametrize(("function", "reason"), ANSWERS_HOOKS)
def test_bad_answers_of_hooks(function: Callable[..., Any], reason: str) -> None:
    """Whatever a user's hook raises or returns wrongly becomes one line that names it."""
    hook("mine")(function)
    with refused(f"hook 'mine': {reason}"):
        hooked_tiles("mine", [SQUARE], [(2, 4)], MEMORY)


READ: list[tuple[Callable[..., Any], str]] = [
    (raising_of_hooks, "its reads failed with TypeError"),
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


# Tile memories: their numbers, and what is refused


def test_numbers_of_a_memory() -> None:
    """Widths are by tensor, then the default, then 4; a tile holds whole elements only."""
    memory = TileMemory(16, 65537, {"default": 2, "w": 8}, 4, 4)
    assert memory.total == 16 * 65537
    assert [memory.bytes_of(name) for name in ("w", "x", "default")] == [8, 2, 2]
    assert [memory.capacity(*name) for name in ([], ["w"], ["x"])] == [32768, 8192, 32768]
    assert TileMemory(1, 7, {"w": 8}).bytes_of("x") == 4
    assert TileMemory(1, 7).capacity() == 1


def test_json_form() -> None:
    """Fields have the names and the order of instance files, and defaults are left out."""
    full = (
        b'{"tiles":16,"bytes_per_tile":65536,"element_bytes":{"default":2,"w":4},"grain":8,'
        b'"exchange_bytes_per_cycle":4}'
    )
    memory = TileMemory(16, 65536, {"default": 2, "w": 4}, 8, 4)
    assert msgspec.json.encode(memory) == full
    assert msgspec.json.decode(full, type=TileMemory) == memory
    assert msgspec.json.encode(TileMemory(2, 8)) == b'{"tiles":2,"bytes_per_tile":8}'


def test_integers_of_numpy() -> None:
    """Integers of NumPy are taken, and written as plain ones."""
    memory = TileMemory(np.int64(2), np.int32(8), {"w": np.uint8(2)}, np.int64(1), np.int16(4))
    plain = TileMemory(2, 8, {"w": 2}, 1, 4)
    assert memory == plain
    assert msgspec.json.encode(memory) == msgspec.json.encode(plain)


NUMBERS = ["tiles", "bytes_per_tile", "grain", "exchange_bytes_per_cycle"]
BAD = [0, -1, 1.0, "8", True, 2**60, [1]]


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("field", [*NUMBERS, "element_bytes"])
def test_bad_numbers(field: str, value: Any) -> None:
    """Whatever is no integer in range is refused in one line, which names field and range."""
    most = "2^24" if field == "tiles" else "2^40"
    where = "element_bytes['w']" if field == "element_bytes" else field
    given = {"w": value} if field == "element_bytes" else value
    with refused(f"{where} must be an integer from 1 to {most}, got {value!r}"):
        TileMemory(**({"tiles": 4, "bytes_per_tile": 8} | {field: given}))


def test_bad_widths() -> None:
    """Widths are a dictionary by name."""
    with refused("element_bytes must be a dictionary by tensor name, not int"):
        TileMemory(4, 8, 2)  # type: ignore[arg-type]
    with refused("element_bytes: 3 is no tensor name, nor 'default'"):
        TileMemory(4, 8, {3: 2})  # type: ignore[dict-item]


def test_the_largest_memory() -> None:
    """The bounds themselves are taken."""
    assert TileMemory(2**24, 2**40).total == 2**64


@pytest.mark.parametrize(
    ("name", "tiles", "kibibytes", "mebibytes"),
    [("ipu-mk1", 1216, 256, 304), ("ipu-mk2", 1472, 624, 897)],
)
def test_presets(name: str, tiles: int, kibibytes: int, mebibytes: int) -> None:
    """The machines have the published numbers of tiles, and memories of the published size."""
    memory = PRESETS[name]
    assert (memory.tiles, memory.bytes_per_tile) == (tiles, kibibytes * 1024)
    assert memory.total == mebibytes * 2**20


BY_HAND: list[tuple[str, list[tuple[int, ...]], list[Any]]] = [
    ("same", [(2, 4)], [[[0, 1, 2, 3], [4, 5, 6, 7]]]),
    ("normalisation", [(2, 4), (2,), (2, 1)], [SQUARE.tolist(), [0, 4], [[0], [4]]]),
    (
        "reduce",
        [(2,), (4,), (1, 4), (2, 1), ()],
        [[0, 4], [0, 1, 2, 3], [[0, 1, 2, 3]], [[0], [4]], 0],
    ),
    ("broadcast", [(4,), (1,), (2, 1), ()], [[0, 1, 2, 3], [0], [[0], [4]], 0]),
    ("pool", [(1, 2), (2, 1), (1, 1), (1, 3)], [[[0, 2]], [[0], [4]], [[0]], [[0, 1, 2]]]),
]


@pytest.mark.parametrize(("name", "shapes", "expected"), BY_HAND)
def test_by_hand(name: str, shapes: list[tuple[int, ...]], expected: list[Any]) -> None:
    """Outputs lie like the input elements that the formulas name."""
    found = hooked_tiles(name, [SQUARE], shapes, MEMORY)
    assert [tiles.tolist() for tiles in found] == expected


def test_a_rule_of_a_user() -> None:
    """A function becomes a rule by its name; it gets shape, memory and parameters."""

    @rule("diagonal")
    def diagonal(shape: tuple[int, ...], memory: TileMemory, *, shift: int = 0) -> np.ndarray:
        return (np.indices(shape).sum(axis=0) + shift) % memory.tiles

    found = tile_map([2, 3], MEMORY, {"kind": "diagonal", "shift": 7})
    assert found.tiles().tolist() == [7, 0, 1, 0, 1, 2]
    assert found.at(np.array([5, 0])).tolist() == [2, 7]
    assert diagonal((1,), MEMORY).tolist() == [0]
