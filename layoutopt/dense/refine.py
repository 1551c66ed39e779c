"""Colour refinement with individualisation, over many small components at once.

Nodes of one component that get different colours are told apart by their surroundings.
Where two nodes of a component stay alike (a symmetric component, usually), one of them is
singled out and refinement goes on, until every node of every component has a colour of its
own within it.  Colours depend on nothing but surroundings, so isomorphic components mostly
end with the same colours; where they do not, they merely count as different.  Colours are
hashes here: nothing exact may depend on two hashes being different, or equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.problem import IntArray

Hash = NDArray[np.uint64]

ROUNDS = 200
"""Refinement steps after which the remaining components count as unlike any other."""


def mix(values: NDArray[Any], salt: int = 0) -> Hash:
    """Return well spread 64-bit hashes (the finaliser of SplitMix64)."""
    x = values.astype(np.uint64) + np.uint64((salt * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def refine(component: IntArray, colour: IntArray, ends: IntArray, kind: IntArray) -> IntArray:
    """Return colours that tell all nodes of each component apart.

    Parameters
    ----------
    component
        Component of each node.
    colour
        What is known to tell nodes apart, the same for all components.
    ends
        Shape ``(m, 2)``: edges between nodes.
    kind
        What tells edges apart.

    Returns
    -------
    array
        A colour for each node, as small integers; no two nodes of a component share one.
    """
    hashes = mix(colour, 1)
    label = mix(kind, 2)
    alike = -1
    for step in range(ROUNDS):
        first, twins = _twins(component, hashes)
        if not len(twins):
            break
        if len(twins) == alike:  # refinement is stuck: single one node out per component
            chosen = _one_each(component[first], first)
            hashes[chosen] = mix(hashes[chosen], 3 + step)
        alike = len(twins)
        around = np.zeros_like(hashes)
        np.add.at(around, ends[:, 0], mix(hashes[ends[:, 1]] ^ label, 4))
        np.add.at(around, ends[:, 1], mix(hashes[ends[:, 0]] ^ label, 4))
        hashes = mix(hashes + around, 5)
    colours = np.unique(hashes, return_inverse=True)[1]
    _, twins = _twins(component, colours)
    left = np.isin(component, component[twins])
    colours[left] = len(colours) + np.flatnonzero(left)
    return colours


def _twins(component: IntArray, colour: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the nodes that share component and colour with a later, or an earlier, one."""
    order = np.lexsort((colour, component))
    c, h = component[order], colour[order]
    equal = np.flatnonzero((c[1:] == c[:-1]) & (h[1:] == h[:-1]))
    return order[equal], order[equal + 1]


def _one_each(component: IntArray, nodes: IntArray) -> IntArray:
    """Return one of the nodes for each of their components: the first listed."""
    _, where = np.unique(component, return_index=True)
    return nodes[where]
