"""Message passing on the relaxation: sequential tree-reweighted messages (TRW-S).

The linear relaxation of a labelling problem, one indicator per node and label and one
variable per edge and label pair, has a dual in which each edge sends a *message* (one number
per label) to either end.  With messages ``M`` the objective of every labelling is unchanged
when nodes get ``r_u(l) + sum_e M_{e,u}(l)`` and edges ``w [l = m] - M_{e,u}(l) - M_{e,v}(m)``, so
the sum of all the nodes' and edges' maxima is an upper bound.  TRW-S (Kolmogorov, IEEE PAMI
28, 2006) lowers it by passing over the nodes forwards and backwards and sharing each node's
belief evenly among the monotone chains through it.  Nodes are served
in ranks here, all nodes of one rank by one array operation.

Messages are floating-point numbers; ``ledger`` makes an exact bound of any messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.network.problem import Floats, IntArray, WeightArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGE = 2000  # from so many nodes on, passes go by distance


@dataclass(frozen=True, eq=False)
class LabelField:
    """A labelling problem, or a region of one, as arrays."""

    # shape (nodes, labels), fresh labels included; very low where not allowed
    rewards: NDArray[Any]
    allowed: NDArray[np.bool_]  # shape (nodes, labels): false for banned labels
    edges: IntArray  # shape (m, 2)
    weights: WeightArray  # shape (m,)
    colour: IntArray  # a small number for each node; the ends of an edge have different ones

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.rewards)


def ranks(field: LabelField, random: np.random.Generator) -> IntArray:
    """Return in which order to serve nodes: equal ranks are never neighbours.

    The longer the chains of ascending ranks, the farther a pass carries a message; the fewer
    ranks, the less it costs.  Large fields are served by their distance from a random node,
    small ones by colours in random order.  That the order changes from call to call helps
    passes out of where they get stuck.
    """
    colours = int(field.colour.max(initial=0)) + 1
    if field.nodes < LARGE:
        return random.permutation(colours)[field.colour]
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    ones = np.ones(len(field.edges), np.int8)
    shape = (field.nodes, field.nodes)
    graph = csr_array((ones, tuple(field.edges.T)), shape=shape)
    distance = np.full(field.nodes, -1)
    while (distance < 0).any():
        root = int(random.choice(np.flatnonzero(distance < 0)))
        found, before = breadth_first_order(graph, root, directed=False)
        steps = {root: 0}
        for u, v in zip(found[1:].tolist(), before[found[1:]].tolist(), strict=True):
            steps[u] = steps[v] + 1
        distance[found] = list(steps.values())
    rank = distance * colours + field.colour
    return np.unique(rank, return_inverse=True)[1]


def incidence(ends: IntArray, nodes: int) -> csr_array:
    """Return the matrix that adds up, for each node, the rows of the edges that end there."""
    from scipy.sparse import csr_array

    ones, numbers = np.ones(len(ends), np.int64), np.arange(len(ends))
    return csr_array((ones, (ends, numbers)), shape=(nodes, len(ends)))


class _Step:
    """The nodes of one rank and their edges.

    ``sends`` are the edges to later nodes, by first ends ``senders``; ``takes`` those from
    earlier nodes, by second ends ``takers``; both are positions in ``own``.
    """

    def __init__(self, own: IntArray, leaving: csr_array, arriving: csr_array) -> None:
        self.own, self.leaving, self.arriving = own, leaving, arriving
        numbers = np.arange(len(own))
        self.sends, self.senders = leaving.indices, np.repeat(numbers, np.diff(leaving.indptr))
        self.takes, self.takers = arriving.indices, np.repeat(numbers, np.diff(arriving.indptr))


class Messages:
    """Messages along the edges of a field, and the passes that improve them.

    ``to_first`` and ``to_second``, shape ``(m, labels)``, lead from each edge to its ends, which
    have different ranks.  Rewards of the field may be any floats.
    """

    def __init__(
        self, field: LabelField, to_first: Floats, to_second: Floats, rank: IntArray
    ) -> None:
        self.field = field
        self._turned = rank[field.edges[:, 0]] > rank[field.edges[:, 1]]
        edges = np.where(self._turned[:, None], field.edges[:, ::-1], field.edges)
        self.back, self.ahead = self._swapped(to_first, to_second)
        nodes = field.nodes
        first, second = edges.T
        self._before = first
        later, earlier = (np.bincount(ends, minlength=nodes) for ends in (first, second))
        # One part in as many chains as go through a node.
        self._share = 1.0 / np.maximum(np.maximum(later, earlier), 1)[:, None]
        self._weights = field.weights.astype(np.float64)[:, None]
        self._signed = bool((field.weights < 0).any())
        leaving, arriving = incidence(first, nodes), incidence(second, nodes)
        order = np.argsort(rank, kind="stable")
        bounds = np.flatnonzero(np.diff(rank[order])) + 1
        self._steps = [_Step(own, leaving[own], arriving[own]) for own in np.split(order, bounds)]

    def sweep(self, times: int) -> None:
        """Pass over all nodes backwards and forwards, so many times."""
        for _ in range(times):
            for step in reversed(self._steps):
                if len(step.takes):
                    reply = self._shared(step)[step.takers] - self.ahead[step.takes]
                    self.back[step.takes] = self._reply(reply, self._weights[step.takes])
            for step in self._steps:
                if len(step.sends):
                    reply = self._shared(step)[step.senders] - self.back[step.sends]
                    self.ahead[step.sends] = self._reply(reply, self._weights[step.sends])

    def decode(self, rewards: NDArray[Any]) -> IntArray:
        """Return a labelling: nodes in order, each the best given the earlier ones.

        ``rewards`` are those of the nodes without any messages.
        """
        labels = np.zeros(len(rewards), np.int64)
        for step in self._steps:
            score = rewards[step.own] + step.leaving @ self.back
            chosen = labels[self._before[step.takes]]
            at = step.takers * score.shape[1] + chosen
            np.add.at(score.reshape(-1), at, self._weights[step.takes, 0])
            labels[step.own] = score.argmax(axis=1)
        return labels

    def settled(self) -> tuple[Floats, Floats]:
        """Return messages to the first and the second ends, after a pass forwards.

        Each node's shares are moved into its later edges; the sum of the nodes' and edges'
        maxima is then the tree-reweighted bound.
        """
        for step in self._steps:
            shared = np.where(self.field.allowed[step.own], self._shared(step), 0.0)
            self.back[step.sends] -= shared[step.senders]
        return self._swapped(self.back, self.ahead)

    def _swapped(self, one: Floats, two: Floats) -> tuple[Floats, Floats]:
        turned = self._turned[:, None]
        return np.where(turned, two, one), np.where(turned, one, two)

    def _shared(self, step: _Step) -> Floats:
        heard = step.leaving @ self.back + step.arriving @ self.ahead
        return np.asarray((self.field.rewards[step.own] + heard) * self._share[step.own])

    def _reply(self, reply: Floats, weights: Floats) -> Floats:
        """Return ``max_l (reply(l) + w [l = m])`` for each ``m``, less its least value."""
        best = reply.max(axis=1, keepdims=True)
        if not self._signed:
            return np.asarray(np.maximum(reply + weights - best, 0.0))
        top = reply == best
        other = np.where(top, -np.inf, reply).max(axis=1, keepdims=True)
        alone = top & (top.sum(axis=1, keepdims=True) == 1)
        return np.asarray(np.maximum(reply + weights, np.where(alone, other, best)) - best)
