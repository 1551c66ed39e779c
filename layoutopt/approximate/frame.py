"""What all heuristics here have in common: small numbers, barrier order, an exact value.

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
from numpy.typing import NDArray

from layoutopt.approximate.order import Choices, choices_of, in_order
from layoutopt.errors import SizeError
from layoutopt.exact.forbidden import hopeless_choices
from layoutopt.exact.methods import Method
from layoutopt.limits import Limits
from layoutopt.presolve.components import Parts, split
from layoutopt.problem import IntArray, Labelling, Precedence, WeightArray
from layoutopt.result import Result, Stopped

Choose: TypeAlias = Callable[[Labelling, Limits, IntArray], IntArray]
"""A heuristic on problems without order rules."""

LARGEST = 2**54
"""Absolute values of all numbers that a heuristic sees add up to less."""


def method(choose: Choose, *, improves: bool) -> Method:
    """Return a heuristic as a solver of any labelling problem.

    Numbers that are too large for 64 bits are scaled down, each component's for itself.
    Order rules become bans (see :mod:`layoutopt.approximate.order`).

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
    told = limits if small is problem else replace(limits, tell=None)  # their sums mean nothing
    return choose(small, told, parts.join(parts.cut(own)))


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
    choices = Choices(problem, order, parts)

    def under(forbidden: IntArray, limits: Limits = limits) -> IntArray:
        small = choices.without(forbidden)
        out = forbidden[choices_of(order, begun)]
        own = np.where(out, problem.labels + np.arange(problem.nodes), begun)
        return _chosen(choose, small, limits, own)

    wish = under(hopeless_choices(order), replace(limits, tell=None))
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


def banned(problem: Labelling, labels: IntArray) -> NDArray[np.bool_]:
    """Return which nodes have a label that they must not take: shape ``(nodes,)``."""
    node, label = problem.banned.T
    found = np.zeros(problem.nodes, bool)
    found[node[labels[node] == label]] = True
    return found


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
    stays, earns = weights != 0, rewards != 0
    return replace(
        problem,
        edges=problem.edges[stays],
        weights=weights[stays],
        reward_at=problem.reward_at[earns],
        rewards=rewards[earns],
    )


def _divided(values: WeightArray, units: WeightArray) -> WeightArray:
    """Return the quotients, rounded towards zero."""
    pairs = zip(values.tolist(), units.tolist(), strict=True)
    return np.array([abs(v) // unit * (1 if v > 0 else -1) for v, unit in pairs], np.int64)
