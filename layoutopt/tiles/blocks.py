"""Tile maps: which tile each element of a tensor is on, as sums of steps along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.base.result import outer_sum

Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Steps:
    """A function of the index along one axis that is constant from each start to the next.

    Parameters
    ----------
    starts
        Shape ``(k,)``: the first index of each step, ascending from 0.
    values
        Shape ``(k,)``: the function's value on each step.
    """

    starts: Array
    values: Array

    def at(self, index: Array) -> Array:
        """Return the values at some indices."""
        found: Array = self.values[np.searchsorted(self.starts, index, side="right") - 1]
        return found

    def merged(self) -> Steps:
        """Return the same function in as few steps as possible."""
        keep = np.r_[True, np.diff(self.values) != 0][: len(self.starts)]
        return Steps(self.starts[keep], self.values[keep])


@dataclass(frozen=True, eq=False)
class TileMap:
    """The tile of each element of a tensor.

    The element at index ``(i_0, i_1, ...)`` of the tensor, read in row-major order as an array of
    ``shape``, is on tile ``sum_a steps[a].at(i_a)``.  ``shape`` need not be the tensor's own: a
    linear rule reads any tensor as one axis.

    Parameters
    ----------
    shape
        An extent for each axis.
    steps
        The steps along each axis.
    """

    shape: tuple[int, ...]
    steps: tuple[Steps, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def key(self) -> tuple[object, ...]:
        """What two maps have in common only if they are the same."""
        return self.shape, *((s.starts.tobytes(), s.values.tobytes()) for s in self.steps)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The distance, in flat elements, of neighbours along each axis."""
        return tuple(math.prod(self.shape[a + 1 :]) for a in range(len(self.shape)))

    def at(self, flat: Array) -> Array:
        """Return the tiles of some elements, given by their flat positions."""
        total = np.zeros(np.shape(flat), np.int64)
        for extent, stride, steps in zip(self.shape, self.strides, self.steps, strict=True):
            total += steps.at(flat // stride % extent)
        return total

    def tiles(self) -> Array:
        """Return the tiles of all elements, flat."""
        rows = [
            np.repeat(steps.values, np.diff(np.r_[steps.starts, extent]))
            for extent, steps in zip(self.shape, self.steps, strict=True)
        ]
        return outer_sum(rows) if self.size else np.zeros(0, np.int64)

    def part(self, start: int, size: int) -> TileMap:
        """Return the map of ``size`` elements from flat element ``start`` on."""
        if (start, size) == (0, self.size):
            return self
        stride = self.strides[0] if self.shape else 1
        if not self.shape or start % stride or size % stride:
            return tile_map_of(self.at(np.arange(start, start + size)))
        low, high = start // stride, (start + size) // stride
        first = self.steps[0]
        inside = (first.starts < high) & (np.append(first.starts[1:], self.shape[0]) > low)
        cut = Steps(np.maximum(first.starts[inside] - low, 0), first.values[inside])
        return TileMap((high - low, *self.shape[1:]), (cut, *self.steps[1:]))

    def span(self) -> tuple[int, int]:
        """Return the lowest and the highest tile of a map with elements."""
        low = sum(int(steps.values.min()) for steps in self.steps)
        return low, sum(int(steps.values.max()) for steps in self.steps)


def even_steps(extent: int, block: int, step: int = 1) -> Steps:
    """Return steps of ``block`` indices, fewer in the last, with values 0, ``step``, and so on."""
    starts = np.arange(0, max(extent, 1), block, dtype=np.int64)
    return Steps(starts, step * np.arange(len(starts), dtype=np.int64))


def tile_map_of(tiles: Sequence[int] | Array) -> TileMap:
    """Return the map of a tensor whose elements' tiles are listed, in row-major order."""
    array = np.asarray(tiles).reshape(-1)
    if array.size and array.dtype.kind not in "iu":
        raise InputError("tiles must be integers")
    flat = array.astype(np.int64)
    starts = np.flatnonzero(np.r_[True, np.diff(flat) != 0][: len(flat)])
    return TileMap((len(flat),), (Steps(starts, flat[starts]),))
