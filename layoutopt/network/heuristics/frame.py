"""Common frame of all heuristics: small numbers, barrier order, an exact value.

A heuristic itself is a function ``(problem, limits, start) -> labels`` on problems without order
rules whose numbers fit 64 bits with room to add and to double them; it keeps to ``banned``.
``start`` is a labelling that does so, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.result import Result
from layoutopt.network.components import reachable
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    Method,
    Parts,
    Precedence,
    WeightArray,
    banned,
    matches,
    split,
    with_numbers,
    without,
)


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


class OrderChoices:
    """The choices of a problem with order rules; ``parts`` are its components without these."""

    def __init__(self, problem: Labelling, order: Precedence, parts: Parts) -> None:
        self.problem, self.order = problem, order
        self.component = np.zeros(problem.nodes, np.int64)
        for number, nodes in enumerate(parts.nodes):
            self.component[nodes] = number
        shape = order.barriers + 1, len(order.reader_sets)
        node, label = problem.reward_at.T
        offered = np.unique([self.component[node], order.label_barrier[label]], axis=1)
        reading = np.unique([self.component, order.node_readers], axis=1)
        one, two = matches(offered[0], reading[0])
        self.present = np.zeros(shape, bool)
        self.present[offered[1, one], reading[1, two]] = True
        self.present[-1] = False
        # Sums are exact, as they may be larger than any float.
        self.number = np.result_type(problem.weights, problem.rewards)
        self.potential = np.zeros(shape, self.number)
        at = order.label_barrier[label], order.node_readers[node]
        np.add.at(self.potential, at, np.maximum(problem.rewards, 0))

    def forbidden(self, *wishes: IntArray) -> IntArray:
        """Return the choices that are not admitted, shape ``(barriers + 1, sets)``.

        The last row is for labels of no barrier.  ``wishes`` are labellings, the most important one
        first, which may break order rules; what they choose is admitted first.
        """
        admission, closed = _Admission(self.order), np.zeros_like(self.present)
        for wanted, worth in (*map(self._stakes, wishes), (self.present, self.potential)):
            pairs = np.argwhere(self.present & wanted)
            order = np.argsort(-worth[tuple(pairs.T)], kind="stable")
            for b, s in pairs[order].tolist():
                closed[b, s] = not admission.admit(b, s)
        return closed

    def without(self, forbidden: IntArray) -> Labelling:
        """Return the problem without rules, but with bans on forbidden choices."""
        return without(self.problem, forbidden, self.order.label_barrier, self.order.node_readers)

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
            leading = np.flatnonzero(self.before[:, barrier])
            self.before[leading] |= self.before[after].any(axis=0)
        return True


Choose: TypeAlias = Callable[[Labelling, Limits, IntArray], IntArray]
"""A heuristic on problems without order rules."""

LARGEST = 2**54  # absolute values of all numbers that a heuristic sees add up to less


def method(choose: Choose, *, improves: bool) -> Method:
    """Return a heuristic as a solver of any labelling problem.

    Numbers that are too large for 64 bits are scaled down, each component's for itself.
    Order rules become bans (see :mod:`layoutopt.network.heuristics.frame`).

    Parameters
    ----------
    improves
        Whether the heuristic improves its start: then its answer is worth at least as much, as
        long as the start keeps to all rules.
    """

    def solve(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
        """Return a labelling that keeps to all rules, and no bound."""
        fresh = problem.labels + np.arange(problem.nodes)
        if not problem.nodes:
            return Result(objective=0, labelling=fresh)
        parts = split(replace(problem, precedence=None))
        begun = fresh if start is None or not improves else parts.join(parts.cut(start))
        try:
            if problem.precedence is None:
                labels = _chosen(choose, problem, limits, begun)
            else:
                labels = _in_order(choose, problem, problem.precedence, parts, limits, begun)
        except SizeError:
            return Result(stopped=Stopped.SIZE_LIMIT)
        if improves and allowed(problem, begun):
            labels = max(begun, labels, key=problem.value)  # rounded numbers may mislead
        stopped = limits.stopped or Stopped.FINISHED
        return Result(objective=problem.value(labels), labelling=labels, stopped=stopped)

    return solve


def _chosen(choose: Choose, problem: Labelling, limits: Limits, begun: IntArray) -> IntArray:
    """Return what a heuristic chooses, beginning with a labelling that may break bans.

    Where it has labels that nothing earns in its component, these become fresh.
    """
    own = np.where(banned(problem, begun), problem.labels + np.arange(problem.nodes), begun)
    parts = split(problem)
    small = coarse(problem, parts)
    told = limits if small is problem else limits.silent()  # their sums mean nothing
    labels = np.asarray(choose(small, told, parts.join(parts.cut(own))))
    if labels.shape != (problem.nodes,) or labels.dtype.kind not in "iu":
        got = f"{labels.dtype} of shape {labels.shape}"
        raise TypeError(f"labels must be integers of shape ({problem.nodes},), got {got}")
    return labels.astype(np.int64)


def _in_order(
    choose: Choose,
    problem: Labelling,
    order: Precedence,
    parts: Parts,
    limits: Limits,
    begun: IntArray,
) -> IntArray:
    """Return what a heuristic chooses where barriers have an order.

    What it would choose without one tells which choices matter most.  If ``begun`` is in order and
    makes choices, it is tried as well with these admitted first.
    """
    choices = OrderChoices(problem, order, parts)

    def under(forbidden: IntArray, limits: Limits = limits) -> IntArray:
        small = choices.without(forbidden)
        out = forbidden[choices_of(order, begun)]
        own = np.where(out, problem.labels + np.arange(problem.nodes), begun)
        return _chosen(choose, small, limits, own)

    wish = under(order.hopeless(), limits.silent())
    if in_order(order, wish):
        return wish
    found = [under(choices.forbidden(wish))]
    if in_order(order, begun) and (choices_of(order, begun)[0] >= 0).any():
        found.append(under(choices.forbidden(begun, wish)))
    return max(found, key=problem.value)


def allowed(problem: Labelling, labels: IntArray) -> bool:
    """Return whether a labelling keeps to bans and order rules."""
    if banned(problem, labels).any():
        return False
    if problem.precedence is None:
        return True
    return in_order(problem.precedence, labels)


def coarse(problem: Labelling, parts: Parts) -> Labelling:
    """Return a problem of numbers that fit 64 bits.

    Where they do not, each component's are divided by one number, their greatest common divisor
    or a larger one, and rounded towards zero.
    """
    small = object not in (problem.weights.dtype, problem.rewards.dtype)
    if small and problem.total() < LARGEST:
        return problem
    unit = np.ones(problem.nodes, object)
    for part, nodes in zip(parts.parts, parts.nodes, strict=True):
        own = math.gcd(*part.weights.tolist(), *part.rewards.tolist()) or 1
        unit[nodes] = max(own, part.total() * len(parts.parts) // LARGEST + 1)
    weights = _divided(problem.weights, unit[problem.edges[:, 0]])
    rewards = _divided(problem.rewards, unit[problem.reward_at[:, 0]])
    return with_numbers(problem, weights, rewards)


def _divided(values: WeightArray, units: WeightArray) -> WeightArray:
    """Return the quotients, rounded towards zero."""
    pairs = zip(values.tolist(), units.tolist(), strict=True)
    return np.array([abs(v) // unit * (1 if v > 0 else -1) for v, unit in pairs], np.int64)
