"""Whose locations the elements of a tensor take, for tensors too large for a cell each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from layoutopt.graphs.locations import Locations
from layoutopt.graphs.op import Array, Kind, size
from layoutopt.integers import unique
from layoutopt.pieces import Piece, elements

ALONE, NAMED = -1, -2
"""In place of a root tensor: locations that nobody shares, and those that mappings name."""


def shares(
    numbers: Locations,
    where: Mapping[int, Array],
    given: Mapping[int, Array | Sequence[Piece]],
    chosen: Iterable[int],
    shared: Container[int],
) -> dict[int, Counter[int]]:
    """Return how many elements of each tensor lie at the locations of which root tensor.

    Parameters
    ----------
    where
        The location number of each element, by tensor number.
    given
        Layouts of sinks by tensor number; those that are in ``where`` are not looked at, and
        arrays neither.
    chosen
        Further tensors; of these what lies at its own locations is told, but for sinks.
    shared
        Locations of sinks that something else shares.
    """
    graph = numbers.graph
    roots = np.array(list(numbers.first), np.int64)
    starts = np.array(list(numbers.first.values()), np.int64)
    end = numbers.count - len(numbers.pool)
    sinks = [graph.ops[graph.producers[t]].kind is Kind.SINK for t in roots]
    found: dict[int, Counter[int]] = {}
    for t, array in where.items():
        flat = array.reshape(-1)
        own = flat[flat < end]
        owner = np.searchsorted(starts, own, "right") - 1
        alone = np.array(sinks)[owner]
        common = [n for n in unique(own[alone]).tolist() if n in shared]
        alone &= ~np.isin(own, common)
        each, counts = np.unique(np.where(alone, ALONE, roots[owner]), return_counts=True)
        found[t] = Counter(dict(zip(each.tolist(), counts.tolist(), strict=True)))
        found[t] += Counter({NAMED: len(flat) - len(own)})
    for t in chosen:
        fixed = graph.ops[graph.producers[t]].kind not in (Kind.SINK, Kind.VIEW)
        if fixed and t not in where:
            found[t] = Counter({t: size(graph.shapes[t])})
    names = {t: graph.tensor_name(t) for t in given}
    lent = {p[0] for t, layout in given.items() for p in _pieces(layout) if p[0] != names[t]}
    for t in given.keys() - where.keys():
        found[t] = Counter()
        for piece in _pieces(given[t]):
            fresh = piece[0] == names[t] and piece[0] not in lent
            found[t][ALONE if fresh else graph.number(piece[0])] += elements(piece)
    return found


def _pieces(layout: Array | Sequence[Piece]) -> Sequence[Piece]:
    return () if isinstance(layout, np.ndarray) else layout
