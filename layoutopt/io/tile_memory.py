"""Tile memories by the name of a preset, or from JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from layoutopt.errors import InputError
from layoutopt.io import files
from layoutopt.tiles.memory import PRESETS, TileMemory


def tile_memory(which: str | Path, **overrides: Any) -> TileMemory:
    """Return a machine by the name of a preset, or by a file.

    Parameters
    ----------
    which
        A name in :data:`~layoutopt.tiles.memory.PRESETS`, or the name of a JSON file with the
        object that instance files have under ``tile_memory``.
    overrides
        Fields of :class:`~layoutopt.tiles.memory.TileMemory` to be replaced.

    Raises
    ------
    InputError
        If there is neither preset nor file, or a number is wrong.

    Examples
    --------
    >>> tile_memory("ipu-mk2", element_bytes={"default": 2}).capacity()
    319488
    """
    path = Path(which)
    if which in PRESETS:
        memory = PRESETS[str(which)]
    elif not path.suffix and not path.exists():
        known = ", ".join(PRESETS)
        raise InputError(f"unknown tile memory {str(which)!r}; known: {known}, or a JSON file")
    else:
        decoder = msgspec.json.Decoder(TileMemory)
        memory = files.decode(decoder, files.read_bytes(path), str(path), {})
    strange = sorted(overrides.keys() - set(TileMemory.__struct_fields__))
    if strange:
        allowed = ", ".join(TileMemory.__struct_fields__)
        raise InputError(f"a tile memory has no {strange[0]!r}; allowed: {allowed}")
    # its own `replace` checks nothing before msgspec 0.21
    return TileMemory(**(msgspec.structs.asdict(memory) | overrides))
