"""Which fixed tensors have locations that are named, so that two of them may be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Lookup
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from layoutopt.graphs.op import Array, Kind, OpError, Shape, UnwindingOp, size
from layoutopt.graphs.ops import Source
from layoutopt.graphs.store import GraphStore
from layoutopt.pieces import outer_sum
from layoutopt.tiles.blocks import TileMap, tile_map_of


@dataclass(frozen=True, eq=False)
class Mapping:
    """The names of a tensor's locations.

    Parameters
    ----------
    codes
        A number for each element.
    names
        The name that each number stands for.
    """

    codes: TileMap
    names: Sequence[int | str]

    def used(self) -> list[int | str]:
        """Return the names that occur, each once."""
        if not self.codes.size:
            return []
        combined = outer_sum([steps.values for steps in self.codes.steps])
        _, first = np.unique(combined, return_index=True)
        return [self.names[code] for code in combined[np.sort(first)].tolist()]

    def firsts(self, start: int, size: int) -> Iterator[tuple[int | str, int]]:
        """Yield the names of a run of elements, each with an element that has it.

        Parameters
        ----------
        start, size
            First flat element, and how many.
        """
        if size:
            codes = self.codes.part(start, size)
            strides = zip(codes.steps, codes.strides, strict=True)
            elements = outer_sum([steps.starts * stride for steps, stride in strides])
            combined = outer_sum([steps.values for steps in codes.steps])
            for code, at in zip(*np.unique(combined, return_index=True), strict=True):
                yield self.names[int(code)], start + int(elements[at])

    def places(self, place: Lookup[int | str, int], flat: Array | None = None) -> Array:
        """Return what a table has for the names of elements, -1 for names it does not have.

        Parameters
        ----------
        place
            A number for some names.
        flat
            Flat elements; all by default.
        """
        codes = self.codes.tiles() if flat is None else self.codes.at(flat)
        known, of = np.unique(codes, return_inverse=True)
        found = [place.get(self.names[code], -1) for code in known.tolist()]
        return np.array(found, np.int64)[of].reshape(codes.shape)


class Tiled(UnwindingOp, frozen=True, kw_only=True):
    """Tensors that lie on tiles; made from graphs, never read from files.

    Parameters
    ----------
    shapes
        The shape of each output.
    tiles
        The tile of each element, by output.
    count
        How many tiles there are.
    """

    shapes: tuple[Shape, ...]
    tiles: tuple[TileMap, ...]
    count: int

    kind = Kind.SOURCE
    arity = 0

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shapes, if the maps fit them."""
        if [tiles.size for tiles in self.tiles] != [*map(size, self.shapes)]:
            raise OpError("a tile map is of another size")
        return self.shapes


def mapping_of(graph: GraphStore, t: int) -> Mapping | None:
    """Return the names of a root tensor's locations, if it has any."""
    producer = graph.producers[t]
    op = graph.ops[producer]
    if isinstance(op, Tiled):
        return Mapping(op.tiles[t - graph.op_outputs[producer][0]], range(op.count))
    if isinstance(op, Source) and op.mapping is not None:
        return _coded(op.mapping)
    return None


@lru_cache(maxsize=256)
def _coded(values: tuple[int | str, ...]) -> Mapping:
    names: dict[int | str, int] = {}
    codes = [names.setdefault(value, len(names)) for value in values]
    return Mapping(tile_map_of(np.array(codes, np.int64)), tuple(names))
