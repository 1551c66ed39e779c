"""A labelling problem in many copies whose named labels are tiles of limited capacity.

Every class of nodes occurs ``copies[c]`` times.  With ``V_c`` the value of a configuration ``k``
of class ``c`` (labels of its nodes) and ``x_ck`` the number of its copies that take it::

    maximise    sum_ck V_c(k) x_ck
    subject to  sum_k x_ck = copies[c]                                    every class c
                sum_ck (sum_{u: k(u) = t} bytes[u]) x_ck <= capacity[t]   every tile t
                x_ck whole, not negative
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutopt.errors import InputError
from layoutopt.problem import IntArray, Labelling, exact_sum

LARGEST = 2**61
"""Sums of bytes stay below this."""


@dataclass(frozen=True, eq=False)
class CapacityProblem:
    """A labelling problem with copies, bytes and capacities; see the module's text.

    Parameters
    ----------
    problem
        Label ``t`` is tile ``t``; there are no fresh labels, bans or order rules.
    class_of
        Shape ``(nodes,)``: the class of each node.  No edge joins two classes.
    copies
        Shape ``(classes,)``: how often each class occurs.
    bytes
        Shape ``(nodes,)``: what a node of each copy takes on the tile that it chooses.
    capacity
        Shape ``(labels,)``: the bytes that each tile holds.
    home
        Shape ``(nodes,)``: the tile that a node is to take where nothing is lost by it, so that
        neighbours stay together; -1 for none.  ``None`` where that does not matter.

    Raises
    ------
    InputError
        If shapes do not agree, a number is negative, or a sum of bytes does not fit 64 bits.
    """

    problem: Labelling
    class_of: IntArray
    copies: IntArray
    bytes: IntArray
    capacity: IntArray
    home: IntArray | None = None

    def __post_init__(self) -> None:
        labelling = self.problem
        if len(labelling.banned) or labelling.precedence is not None:
            raise InputError("capacity allows neither banned labels nor order rules")
        if labelling.nodes and not labelling.labels:
            raise InputError("no tiles: nodes need at least one named label")
        shapes = (("class_of", labelling.nodes), ("bytes", labelling.nodes))
        for name, size in (*shapes, ("capacity", labelling.labels), ("copies", None)):
            _check(name, getattr(self, name), size)
        classes = len(self.copies)
        if labelling.nodes and int(self.class_of.max()) >= classes:
            raise InputError(f"class_of: {int(self.class_of.max())} is not below {classes} classes")
        ends = self.class_of[labelling.edges]
        if (ends[:, 0] != ends[:, 1]).any():
            raise InputError("an edge joins two classes: all edges must be within one class")
        sums = {
            "bytes": self.total_bytes,
            "capacity": self.total_capacity,
            "copies": exact_sum(self.copies[self.class_of].astype(object)),
        }
        for name, total in sums.items():
            if total >= LARGEST:
                raise InputError(f"{name}: {total} in all, where less than 2**61 is allowed")

    @property
    def class_bytes(self) -> IntArray:
        """The bytes of all copies of each class, shape ``(classes,)``, Python integers."""
        one = np.zeros(len(self.copies), object)
        np.add.at(one, self.class_of, self.bytes.astype(object))
        whole: IntArray = one * self.copies.astype(object)
        return whole

    @property
    def total_bytes(self) -> int:
        """The bytes of all copies of all classes."""
        return exact_sum(self.class_bytes)

    @property
    def total_capacity(self) -> int:
        """The bytes that all tiles hold."""
        return sum(self.capacity.tolist())


def _check(name: str, values: IntArray, size: int | None) -> None:
    """Refuse what is no array of whole numbers of 0 or more, of the given length."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise InputError(f"{name}: must be an array of one dimension")
    if size is not None and len(values) != size:
        raise InputError(f"{name}: has {len(values)} entries where {size} are needed")
    if len(values) and not np.issubdtype(values.dtype, np.integer):
        raise InputError(f"{name}: must hold integers of up to 64 bits, not {values.dtype}")
    if len(values) and int(values.min()) < 0:
        raise InputError(f"{name}: {int(values.min())} is negative, 0 or more is allowed")
