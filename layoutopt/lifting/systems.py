"""From a group to its orbits: the first half of lifting, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.dense.groups import Group
from layoutopt.dense.numbering import mapping_of
from layoutopt.graphs.store import Store
from layoutopt.lifting.digits import settle_digits
from layoutopt.lifting.families import system_of
from layoutopt.lifting.orbits import Orbits, find_orbits
from layoutopt.lifting.regions import cut_regions
from layoutopt.lifting.slots import find_slots


def orbits_of(graph: Store, group: Group, free: Sequence[bool]) -> Orbits:
    """Return the one-dimensional orbits of a group's tensors.

    Parameters
    ----------
    free
        For each tensor whether some of its elements come from a sink.

    Raises
    ------
    SizeError
        If views are too irregular.
    """
    system = cut_regions(system_of(graph, group, free))
    shapes = [graph.shapes[part.tensor] for part in system.parts]
    system, chains = settle_digits(system, shapes)
    labelled = [mapping_of(graph, part.tensor) is not None for part in system.parts]
    return find_orbits(find_slots(system, chains), labelled)
