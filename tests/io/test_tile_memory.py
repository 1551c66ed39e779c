"""Tile memories by name and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layoutopt.io.instance import tile_memory
from layoutopt.tiles.memory import PRESETS, TileMemory
from tests.support import refused


def test_presets_and_files(tmp_path: Path) -> None:
    """A name gives the preset, a file what is in it, and overrides replace single fields."""
    assert tile_memory("ipu-mk2") == PRESETS["ipu-mk2"]
    assert tile_memory("ipu-mk1", grain=8) == TileMemory(1216, 262144, {}, 8, 4)
    path = tmp_path / "small.json"
    path.write_text('{"tiles": 4, "bytes_per_tile": 64, "element_bytes": {"w": 2}}')
    assert tile_memory(path) == TileMemory(4, 64, {"w": 2})
    assert tile_memory(str(path), element_bytes={}, tiles=3) == TileMemory(3, 64)


def test_unknown_names(tmp_path: Path) -> None:
    """A name that is neither preset nor file is answered with the presets."""
    with refused("unknown tile memory 'ipu-mk9'; known: ipu-mk1, ipu-mk2, or a JSON file"):
        tile_memory("ipu-mk9")
    with refused("gone.json: no such file"):
        tile_memory(tmp_path / "gone.json")
    with refused("a tile memory has no 'tile'; allowed: tiles, bytes_per_tile, element_bytes"):
        tile_memory("ipu-mk2", tile=3)
    with refused("tiles must be an integer from 1 to 2^24, got 0"):
        tile_memory("ipu-mk2", tiles=0)


GOOD = {"tiles": 4, "bytes_per_tile": 64}

BAD: list[tuple[Any, str]] = [
    (GOOD | {"tiles": 0}, "$.tiles: expected `int` >= 1"),
    (GOOD | {"tiles": 2.5}, "$.tiles: expected `int`, got `float`"),
    (GOOD | {"tiles": 2**25}, "$.tiles: expected `int` <= 16777216"),
    (GOOD | {"bytes_per_tile": -1}, "$.bytes_per_tile: expected `int` >= 1"),
    (GOOD | {"grain": "8"}, "$.grain: expected `int`, got `str`"),
    (GOOD | {"exchange_bytes_per_cycle": True}, "$.exchange_bytes_per_cycle: expected `int"),
    (GOOD | {"element_bytes": {"w": 0}}, "$.element_bytes[...]: expected `int` >= 1"),
    (GOOD | {"element_bytes": 2}, "$.element_bytes: expected `object`, got `int`"),
    (GOOD | {"bytes": 3}, "object contains unknown field `bytes`"),
    ({"tiles": 4}, "object missing required field `bytes_per_tile`"),
    ([4, 64], "expected `object`, got `array`"),
]


@pytest.mark.parametrize(("document", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_bad_files(tmp_path: Path, document: Any, reason: str) -> None:
    """A file is refused in one line with file, place and what is allowed."""
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with refused(f"{path}: {reason}"):
        tile_memory(path)
