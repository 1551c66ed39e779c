"""From a group to its orbits: the first half of lifting, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.dense.groups import Group
from layoutopt.graphs.mapping import mapping_of
from layoutopt.graphs.store import GraphStore
from layoutopt.lifting.digits import settle_digits
from layoutopt.lifting.families import TensorRun, system_of
from layoutopt.lifting.lowest import lowest_apart
from layoutopt.lifting.marks import marked_digits, marked_strides
from layoutopt.lifting.orbits import Orbits, find_orbits
from layoutopt.lifting.regions import cut_regions
from layoutopt.lifting.slots import find_slots
from layoutopt.tiles.blocks import TileMap


def orbits_of(
    graph: GraphStore, group: Group, free: Sequence[bool], lowest: bool = False
) -> Orbits:
    """Return the one-dimensional orbits of a group's tensors.

    Parameters
    ----------
    free
        For each tensor whether some of its elements come from a sink.
    lowest
        Whether index 0 of broadcast dimensions is told from the rest.

    Raises
    ------
    SizeError
        If views are too irregular.
    """
    system = system_of(graph, group, free)
    system = cut_regions(lowest_apart(system) if lowest else system)
    shapes = [graph.shapes[part.tensor] for part in system.parts]
    codes = [_codes(graph, part) for part in system.parts]
    marked = [() if own is None else marked_strides(own) for own in codes]
    system, chains = settle_digits(system, shapes, marked)
    together = [
        () if own is None else marked_digits(own, [1, *chain])
        for own, chain in zip(codes, chains, strict=True)
    ]
    return find_orbits(find_slots(system, chains, together), codes)


def _codes(graph: GraphStore, part: TensorRun) -> TileMap | None:
    """Return the names of a part's locations, if it has any, by number."""
    mapping = mapping_of(graph, part.tensor) if part.root else None
    return None if mapping is None else mapping.codes.part(part.start, part.size)
