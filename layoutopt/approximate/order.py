"""Barrier order for heuristics: which barriers' labels which nodes may take, settled beforehand.

A *choice* is a barrier and a set of readers: nodes with that reader set taking labels of that
barrier.  It needs an arc from the barrier to each reader.  Choices are admitted one by one, as
long as their arcs and the static ones have no cycle: first those that a given labelling makes,
what earns most first (as in greedy algorithms for acyclic subgraphs), then all others.  Whatever
is not admitted is banned.  Any labelling that keeps to that is in order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from layoutopt.memory import require
from layoutopt.presolve.components import Parts
from layoutopt.problem import IntArray, Labelling, Precedence, WeightArray
from layoutopt.solvers.formulation import reachable

BAN_BYTES = 50
"""What one node and label take while bans are looked for."""


def choices_of(order: Precedence, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return barrier and reader set of each node's choice.

    The barrier is -1 where a label is fresh, or of no barrier.
    """
    barrier = np.append(order.label_barrier, -1)
    return barrier[np.minimum(labels, len(barrier) - 1)], order.node_readers


def in_order(order: Precedence, labels: IntArray) -> bool:
    """Return whether a labelling keeps to order rules."""
    admission = _Admission(order)
    made = np.unique(np.stack(choices_of(order, labels)), axis=1)
    return all(admission.admit(b, s) for b, s in made.T.tolist() if b >= 0)


class Choices:
    """The choices of a problem with order rules.

    Parameters
    ----------
    problem, order
        The problem and its rules.
    parts
        Its components, as if there were no rules.
    """

    def __init__(self, problem: Labelling, order: Precedence, parts: Parts) -> None:
        self.problem, self.order = problem, order
        self.component = np.zeros(problem.nodes, np.int64)
        for number, nodes in enumerate(parts.nodes):
            self.component[nodes] = number
        shape = order.barriers + 1, len(order.reader_sets)
        node, label = problem.reward_at.T
        offered = np.unique([self.component[node], order.label_barrier[label]], axis=1)
        reading = np.unique([self.component, order.node_readers], axis=1)
        one, two = _matches(offered[0], reading[0])
        self.present = np.zeros(shape, bool)
        self.present[offered[1, one], reading[1, two]] = True
        self.present[-1] = False
        # Sums are exact, as they may be larger than any float.
        self.number = np.result_type(problem.weights, problem.rewards)
        self.potential = np.zeros(shape, self.number)
        at = order.label_barrier[label], order.node_readers[node]
        np.add.at(self.potential, at, np.maximum(problem.rewards, 0))

    def forbidden(self, *wishes: IntArray) -> IntArray:
        """Return the choices that are not admitted; what wishes choose is asked for first.

        Parameters
        ----------
        wishes
            Labellings, which may break order rules, the most important one first.

        Returns
        -------
        array
            Shape ``(barriers + 1, sets)``; the last row is for labels of no barrier.
        """
        admission, closed = _Admission(self.order), np.zeros_like(self.present)
        for wanted, worth in (*map(self._stakes, wishes), (self.present, self.potential)):
            pairs = np.argwhere(self.present & wanted)
            order = np.argsort(-worth[tuple(pairs.T)], kind="stable")
            for b, s in pairs[order].tolist():
                closed[b, s] = not admission.admit(b, s)
        return closed

    def without(self, forbidden: IntArray) -> Labelling:
        """Return the problem without rules, but with bans on forbidden choices.

        Labels that no node of a component earns any more are not banned there: nothing takes them.
        """
        problem, barrier = self.problem, self.order.label_barrier
        readers = self.order.node_readers
        node, label = problem.reward_at.T
        earns = ~forbidden[barrier[label], readers[node]]
        open_ = earns & forbidden[barrier[label]].any(axis=1)
        known = np.unique([self.component[node[open_]], label[open_]], axis=1)
        sizes = np.bincount(self.component)
        require(BAN_BYTES * int(sizes[known[0]].sum()), "a list of what barrier order forbids")
        one, two = _matches(known[0], self.component)
        shut = forbidden[barrier[known[1, one]], readers[two]]
        bans = np.column_stack([two[shut], known[1, one[shut]]])
        return replace(
            problem,
            reward_at=problem.reward_at[earns],
            rewards=problem.rewards[earns],
            banned=np.concatenate([problem.banned, bans]),
            precedence=None,
        )

    def _stakes(self, labels: IntArray) -> tuple[IntArray, WeightArray]:
        """Return which choices a labelling makes, and what its nodes earn by each.

        Edges count at both ends.
        """
        problem, made = self.problem, choices_of(self.order, labels)
        earned = np.zeros(problem.nodes, self.number)
        node, label = problem.reward_at.T
        got = labels[node] == label
        np.add.at(earned, node[got], problem.rewards[got])
        same = labels[problem.edges[:, 0]] == labels[problem.edges[:, 1]]
        for ends in problem.edges[same].T:
            np.add.at(earned, ends, problem.weights[same])
        wanted, worth = np.zeros_like(self.present), np.zeros(self.present.shape, self.number)
        wanted[made] = True
        np.add.at(worth, made, earned)
        return wanted, worth


class _Admission:
    """Choices that are in order together."""

    def __init__(self, order: Precedence) -> None:
        self.sets = [list(readers) for readers in order.reader_sets]
        self.before = reachable(order.barriers, order.arcs)

    def admit(self, barrier: int, readers: int) -> bool:
        """Take a choice in if that closes no cycle, and return whether it did."""
        after = self.sets[readers]
        if self.before[after, barrier].any():
            return False
        if not self.before[barrier, after].all():
            self.before |= self.before[:, barrier, None] & self.before[after].any(axis=0)
        return True


def _matches(one: IntArray, two: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places of all pairs of equal numbers, of which the first ones are in order."""
    order = np.argsort(two, kind="stable")
    begin, end = (np.searchsorted(two[order], one, side=side) for side in ("left", "right"))
    counts = end - begin
    last = np.cumsum(counts)
    at = np.repeat(begin - last + counts, counts) + np.arange(int(counts.sum()))
    return np.repeat(np.arange(len(one)), counts), order[at]
