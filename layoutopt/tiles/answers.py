"""What rules are asked, and what they answer, checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from layoutopt.errors import InputError
from layoutopt.tiles.blocks import TileMap, tile_map_of
from layoutopt.tiles.memory import TileMemory

Rule = Callable[..., Any]
"""``(shape, memory, **parameters)``, returning a :class:`~layoutopt.tiles.blocks.TileMap`, or an
array of tiles of the tensor's shape."""


def check_parameters(function: Rule, parameters: Mapping[str, Any]) -> None:
    """Raise unless a rule takes just these parameters."""
    known = list(inspect.signature(function).parameters.values())[2:]
    if any(p.kind is p.VAR_KEYWORD for p in known):
        return
    names = [p.name for p in known if p.kind is not p.VAR_POSITIONAL]
    strange = [key for key in parameters if key not in names]
    if strange:
        allowed = ", ".join(names) or "none"
        raise InputError(f"unknown parameter {strange[0]!r}; allowed: {allowed}")
    missing = [p.name for p in known if p.default is p.empty and p.name not in parameters]
    if missing:
        raise InputError(f"parameter {missing[0]!r} is missing")


def mapped(found: Any, shape: tuple[int, ...]) -> TileMap:
    """Return a rule's answer as a map, if it is one of this shape."""
    if isinstance(found, TileMap):
        _check_map(found, shape)
        return found
    try:
        array = np.asarray(found)
    except ValueError:  # rows of different lengths
        raise InputError("must return a TileMap or an array of tiles") from None
    if array.shape != shape:
        raise InputError(f"returned shape {list(array.shape)}, {list(shape)} is needed")
    return tile_map_of(array)


def _check_map(found: TileMap, shape: tuple[int, ...]) -> None:
    """Raise unless a map is whole and has as many elements as a shape."""
    if found.size != math.prod(shape):
        raise InputError(f"maps {found.size} elements, the tensor has {math.prod(shape)}")
    if len(found.steps) != len(found.shape):
        raise InputError(f"has steps along {len(found.steps)} of {len(found.shape)} axes")
    if not found.size:
        return
    for a, (extent, steps) in enumerate(zip(found.shape, found.steps, strict=True)):
        starts, values = steps.starts, steps.values
        if not (
            starts.shape == values.shape == (len(starts),)
            and starts.dtype.kind == values.dtype.kind == "i"
            and len(starts)
            and starts[0] == 0
            and (np.diff(starts) > 0).all()
            and starts[-1] < extent
        ):
            raise InputError(f"its steps along axis {a} do not ascend from 0 below {extent}")


def check_range(found: TileMap, memory: TileMemory) -> None:
    """Raise if an element is on no tile of the machine."""
    if found.size:
        low, high = found.span()
        if low < 0 or high >= memory.tiles:
            wrong = low if low < 0 else high
            raise InputError(f"tile {wrong} is none of the {memory.tiles} tiles from 0 on")
