"""Tile memories, rules and hooks: what they say, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from layoutopt.tiles.blocks import Steps
from layoutopt.tiles.hooks import hook, hooked_tiles, read_elements
from layoutopt.tiles.memory import PRESETS, TileMemory
from layoutopt.tiles.rules import rule, tile_map
from tests.support import refused

MEMORY = TileMemory(8, 1024)


def steps(*starts: int, values: Any = None) -> Steps:
    """Return steps of value 0."""
    return Steps(np.array(starts), np.zeros(len(starts), int) if values is None else values)


SQUARE = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])


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


def test_a_rule_of_a_user() -> None:
    """A function becomes a rule by its name; it gets shape, memory and parameters."""

    @rule("diagonal")
    def diagonal(shape: tuple[int, ...], memory: TileMemory, *, shift: int = 0) -> np.ndarray:
        return (np.indices(shape).sum(axis=0) + shift) % memory.tiles

    found = tile_map([2, 3], MEMORY, {"kind": "diagonal", "shift": 7})
    assert found.tiles().tolist() == [7, 0, 1, 0, 1, 2]
    assert found.at(np.array([5, 0])).tolist() == [2, 7]
    assert diagonal((1,), MEMORY).tolist() == [0]


def raising(*_given: object) -> None:
    """Fail with a text of two lines."""
    raise KeyError("one\ntwo")


def by_rule(function: Callable[..., Any], **parameters: Any) -> Any:
    """Return what a user's rule says of a tensor."""
    rule("mine")(function)
    return tile_map((2, 3), MEMORY, {"kind": "mine"} | parameters).tiles().tolist()


def by_hook(function: Callable[..., Any]) -> Any:
    """Return what a user's hook says of a tensor."""
    hook("mine")(function)
    return hooked_tiles("mine", [SQUARE], [(2, 4)], MEMORY)


def reading(reads: Callable[..., Any]) -> Any:
    """Return what a hook says that it reads; later functions of its name say it anew."""
    hook("mine", reads=reads)(lambda inputs, shapes, memory: [inputs[0][:, 0]])
    found = read_elements("mine", [(2, 4)], [(2,)])
    hook("mine")(lambda inputs, shapes, memory: [inputs[0][:, 0]])
    assert read_elements("mine", [(2, 4)], [(2,)]) is None
    return lists(found or [])


def lists(arrays: Sequence[Any]) -> Any:
    """Return arrays as lists."""
    return [x.tolist() for x in arrays]
