"""Where places of one tensor go: the outputs of the views that read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.problem import IntArray


@dataclass(frozen=True, eq=False)
class ForwardMaps:
    """A table by place, so that a piece meets only the views that it goes through.

    Parameters
    ----------
    starts
        Shape ``(places + 1,)``: the rows of each place.
    reader, image
        For each row a reader's number, and the place in its output.
    """

    starts: IntArray
    reader: IntArray
    image: IntArray

    def of(self, places: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Return for each reader, in order, its output places that come from ``places``.

        Yields
        ------
        reader, image, origin
            The reader's number, places of its output, and the origin of each.
        """
        first = self.starts[places]
        counts = self.starts[places + 1] - first
        ends = np.cumsum(counts)
        if not len(ends) or not ends[-1]:
            return
        rows = np.repeat(first - ends + counts, counts) + np.arange(ends[-1])
        order = np.argsort(self.reader[rows], kind="stable")
        rows, origin = rows[order], np.repeat(places, counts)[order]
        reader = self.reader[rows]
        cuts = np.flatnonzero(np.diff(reader)) + 1
        heads = reader[np.concatenate([[0], cuts])].tolist()
        images, origins = np.split(self.image[rows], cuts), np.split(origin, cuts)
        yield from zip(heads, images, origins, strict=True)


def routes(count: int, readers: Sequence[tuple[int, IntArray, IntArray]]) -> ForwardMaps:
    """Return the routes of a tensor of so many places.

    Parameters
    ----------
    readers
        For each reader its number, places of its output, and the origin of each.
    """
    nothing = np.zeros(0, np.int64)
    origin = np.concatenate([nothing, *(o for _, _, o in readers)])
    image = np.concatenate([nothing, *(i for _, i, _ in readers)])
    reader = np.repeat([n for n, _, _ in readers], [len(i) for _, i, _ in readers])
    order = np.argsort(origin, kind="stable")
    starts = np.searchsorted(origin[order], np.arange(count + 1))
    return ForwardMaps(starts, reader[order].astype(np.int64), image[order])
