"""Boxes of several quantities: joins on one quantity, and cuts where two become equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import gcd

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.boxes import join
from layoutopt.boxes.box import VectorBox
from layoutopt.boxes.equation import Equations
from layoutopt.certificate.sums import CertifiedBox
from layoutopt.lowering.lower import Lowered
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray


class Components:
    """Division of a problem's nodes into classes.

    Parameters
    ----------
    lowered
        The problem, with one or more kinds of groups.

    Attributes
    ----------
    members
        The nodes of each class; the first one identifies copies.
    tag
        Class of each node, and its index there.
    leader
        The first node of each node's class.
    copies
        Number of copies of each class.
    """

    def __init__(self, lowered: Lowered) -> None:
        problem = lowered.problem
        count, of = components(problem.nodes, *problem.edges.T)
        order = np.argsort(of, kind="stable")
        begin = np.searchsorted(of[order], np.arange(count + 1)).tolist()
        self.members = [order[a:b].tolist() for a, b in pairwise(begin)]
        self.tag = {u: (k, j) for k, own in enumerate(self.members) for j, u in enumerate(own)}
        self.leader = order[np.array(begin[:-1], np.int64)][of] if count else of
        self._nodes = [0, *accumulate(kind.problem.nodes for kind in lowered.kinds)]
        self._labels = [0, *accumulate(kind.problem.labels for kind in lowered.kinds)]
        self._problem = problem
        self.copies = [self._copies(lowered, own[0]) for own in self.members]

    def split(self, labels: IntArray) -> list[IntArray]:
        """Return the labels of each kind of groups."""
        found = []
        for (a, b), (low, high) in zip(pairwise(self._nodes), pairwise(self._labels), strict=True):
            own, named = labels[a:b], labels[a:b] < self._problem.labels
            fresh = own - self._problem.labels - a + high - low
            found.append(np.where(named, own - low, fresh))
        return found

    def kinds(self, nodes: Iterable[int]) -> set[int]:
        """Return the kinds of groups of some nodes."""
        found = np.searchsorted(self._nodes, [*nodes], side="right") - 1
        return set(found.tolist())

    def _copies(self, lowered: Lowered, node: int) -> int:
        """Count the copies of a node's class in all groups of its kind."""
        which = int(np.searchsorted(self._nodes, node, side="right")) - 1
        kind = lowered.kinds[which]
        classes = kind.inner.classes
        component = classes.component[kind.inner.nodes[node - self._nodes[which]]]
        return kind.copies[int(classes.class_of[component])] * len(kind.groups)


def named(labels: Sequence[int], count: int) -> list[int]:
    """Return the distinct labels that are not fresh, ascending."""
    return sorted({label for label in labels if label < count})


MOST = 2 * 10**5
"""Largest number of boxes in a list."""


def join_on(
    one: Sequence[CertifiedBox],
    two: Sequence[CertifiedBox],
    shape: Sequence[int],
    equations: Equations,
) -> list[CertifiedBox]:
    """Join two lists of boxes on their first quantity.

    Parameters
    ----------
    shape
        Shape of the tensor whose flat elements are the first quantity.

    Returns
    -------
    list
        For each member of ``one`` and of ``two`` with equal first quantities: this quantity, the
        others of ``one`` and the others of ``two``; tags are concatenated.
    """
    mine = [VectorBox(*box.of(0, *range(len(box.start)))[1:]) for box in one]
    others = [VectorBox(*box[1:]) for box in two]
    found = []
    for a, b, (start, loops) in join.join_on(mine, others, tuple(shape), equations):
        found.append(
            CertifiedBox(one[a].tag + two[b].tag, start, tuple([(n, s) for n, s in loops if n > 1]))
        )
        if len(found) > MOST:
            raise SizeError(f"a certificate needs more than {MOST:,} boxes for one tensor")
    return found


def parts(box: CertifiedBox, k: int, cuts: Sequence[int]) -> list[CertifiedBox]:
    """Cut a box along one loop."""
    step = box.loops[k][1]
    found = []
    for a, b in pairwise(cuts):
        loop = ((b - a, step),) if b - a > 1 else ()
        loops = (*box.loops[:k], *loop, *box.loops[k + 1 :])
        found.append(CertifiedBox(box.tag, _plus(box.start, step, a), loops))
    return found


def _plus(start: tuple[int, ...], step: tuple[int, ...], times: int) -> tuple[int, ...]:
    return tuple([a + times * s for a, s in zip(start, step, strict=True)])


def decided(boxes: Iterable[CertifiedBox]) -> list[CertifiedBox]:
    """Cut boxes ``(element, side, side)`` until both sides are equal or different throughout."""
    found, todo = [], list(boxes)
    while todo:
        box = todo.pop()
        gaps = [(n, s[1] - s[2]) for n, s in box.loops]
        gap = CertifiedBox((), (box.start[1] - box.start[2],), tuple([(n, (s,)) for n, s in gaps]))
        low, high = gap.ends(0)
        common = gcd(*[s for _, s in gaps])
        equal = low == high == 0
        unlike = low > 0 or high < 0 or (common and gap.start[0] % common)
        if box.tag[:2] != box.tag[2:] or equal or unlike:
            found.append(box)
            if len(found) > MOST:
                raise SizeError(f"a certificate needs more than {MOST:,} boxes for one pair")
        else:
            k = max(range(len(gaps)), key=lambda k: abs(gaps[k][1]) * (gaps[k][0] - 1))
            todo += parts(box, k, [0, gaps[k][0] // 2, gaps[k][0]])
    return found
