"""The integer programme of a labelling problem, and its solution as it is written.

``x[u,l]`` says that node ``u`` takes label ``l``, for every label that may be useful there::

    maximise    sum r[u,l] x[u,l] + sum w[e] y[e,l]
    subject to  sum_l x[u,l] = 1                          every node u
                y[e,l] <= x[u,l],  y[e,l] <= x[v,l]       w[e] > 0, e = (u, v)
                y[e,l] >= x[u,l] + x[v,l] - 1             w[e] < 0
                x[u,l] <= z[b,c]                          l is of barrier b, c reads u
                t[b] + 1 <= t[c] + n (1 - z[b,c])         order of n barriers
                t[b] + 1 <= t[c]                          c reads an output of b
                x, z in {0, 1},  y in [0, 1],  t in [0, n-1]

One variable per matched label is the local polytope of the pair; its relaxation is far
tighter than one with a single variable per edge.  Labels that no node of a component earns
have no indicators there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, Stopped, require
from layoutopt.base.numbers import lookup, ranges, unique
from layoutopt.base.result import Result
from layoutopt.network.components import components
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    Precedence,
    WeightArray,
    fresh_enough,
    no_pairs,
)
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.programme import (
    LARGEST,
    Programme,
    ProgrammeResult,
    ProgrammeWriter,
    coarse,
)

COLUMN_SECONDS = 1e-5
"""Seconds that it takes, at least, to write a variable and its rows down for a solver."""

CPSAT_BYTES, HIGHS_BYTES = 2000, 6000  # what each solver takes for a variable and its rows


@dataclass(frozen=True, eq=False)
class Indicators:
    """Variables of a labelling problem, and what joins them."""

    nodes: int  # number of nodes
    node: IntArray  # node of each indicator `x`, ascending
    label: IntArray  # its label, ascending for each node
    rewards: WeightArray  # what each indicator earns
    match: IntArray  # shape (y, 2): the two indicators of each match variable
    weights: WeightArray  # what each match variable earns
    arcs: IntArray  # shape (z, 2): arcs between barriers that indicators need
    gates: IntArray  # shape (g, 2): an indicator, and the arc that it needs
    static: IntArray  # shape (s, 2): arcs that are always there
    barriers: int  # number of barriers

    def programme(self) -> Programme:
        """Write the programme down; ``x`` first, then ``y``, ``z`` and ``t``."""
        to, n = ProgrammeWriter(), self.barriers
        x = to.block(self.rewards)
        bounds = np.searchsorted(self.node, np.arange(self.nodes + 1))
        width = np.diff(bounds)
        for size in unique(width).tolist():  # exactly one label
            to.family(bounds[:-1][width == size][:, None] + np.arange(size), [1] * size, 1, 1)
        to.agree(self.match, self.weights)
        z = to.block(np.zeros(len(self.arcs), np.int64))
        time = to.block(np.zeros(n, np.int64), max(n - 1, 0), free=True)
        to.family(np.stack([x[self.gates[:, 0]], z[self.gates[:, 1]]], axis=1), (1, -1), high=0)
        to.family(np.column_stack([time[self.arcs], z]), (-1, 1, -n), low=1 - n)
        to.family(time[self.static], (-1, 1), low=1)
        return to.finished()

    def point(self, labels: IntArray) -> IntArray:
        """Return a labelling as a point: ``x``, ``y``, and -1 for the others."""
        values = (self.label == labels[self.node]).astype(np.int64)
        match = values[self.match].all(axis=1)
        others = np.full(len(self.arcs) + self.barriers, -1)
        return np.concatenate([values, match, others])

    def labelling(self, chosen: IntArray) -> IntArray:
        """Return the labelling in which the indicators of the given numbers hold."""
        labels = np.zeros(self.nodes, np.int64)
        labels[self.node[chosen]] = self.label[chosen]
        return labels


def by_cpsat(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
    """Solve a labelling problem, order rules included, by CP-SAT.

    There is no objective if the numbers are too large for CP-SAT, or its model for the memory.
    """
    if problem.total() >= LARGEST:
        return Result(bound=problem.ceiling(), stopped=Stopped.SIZE_LIMIT)

    def search(given: Indicators, limits: Limits, gap: float) -> tuple[ProgrammeResult, int]:
        def found(value: int | None, bound: int) -> None:
            limits.report("CP-SAT", value, min(bound, problem.total()))

        hint = None if start is None else given.point(start)
        return cpsat.solve(given.programme(), limits, hint, gap=gap, found=found), 1

    return _solved(problem, limits, CPSAT_BYTES, search)


def by_highs(problem: Labelling, limits: Limits, _start: IntArray | None = None) -> Result:
    """Solve a labelling problem, order rules included, by HiGHS, which begins from nothing.

    There is no objective if the numbers are too large for doubles, or the model for the memory.
    """

    def search(given: Indicators, limits: Limits, gap: float) -> tuple[ProgrammeResult, int]:
        small, unit = coarse(given.programme())
        if small.total() >= highs.LARGEST:
            raise SizeError("numbers that doubles do not hold")
        return highs.solve(small, limits, gap), unit

    return _solved(problem, limits, HIGHS_BYTES, search)


Search = Callable[[Indicators, Limits, float], tuple[ProgrammeResult, int]]
"""Searches for the best point, until a relative gap; the bound counts so many units each."""


def _solved(problem: Labelling, limits: Limits, column_bytes: int, search: Search) -> Result:
    """Return what a search finds, in terms of the problem."""
    most = problem.ceiling()
    if not problem.nodes:
        return Result(objective=0, bound=0, labelling=np.zeros(0, np.int64))
    if limits.over:
        return Result(bound=most, stopped=limits.stopped or Stopped.TIME_LIMIT)
    try:
        _check_size(problem, limits, column_bytes)
        given = indicators(problem)
        found, unit = search(given, limits, 0.0 if limits.debt else limits.gap)
    except TimeoutError:
        return Result(bound=most, stopped=limits.stopped or Stopped.TIME_LIMIT)
    except SizeError:
        return Result(bound=most, stopped=Stopped.SIZE_LIMIT)
    bound = most if found.bound is None else min(most, found.bound * unit)
    if found.values is None:
        return Result(bound=bound, stopped=limits.stopped or Stopped.TIME_LIMIT)
    labels = given.labelling(np.flatnonzero(found.values[: len(given.node)]))
    value = problem.value(labels)
    stopped = Stopped.FINISHED
    if bound > value:
        stopped = limits.stopped or (Stopped.GAP_LIMIT if limits.gap > 0 else Stopped.TIME_LIMIT)
    return Result(objective=value, bound=max(bound, value), labelling=labels, stopped=stopped)


def _check_size(problem: Labelling, limits: Limits, column_bytes: int) -> None:
    """Refuse to state a problem as an integer programme where it is too large for that.

    Counting its variables, those of banned labels too, takes no room.  Raises ``SizeError`` if the
    programme does not fit the memory, and ``TimeoutError`` if writing it takes longer than there
    is.
    """
    component = components(problem.nodes, *problem.edges.T)[1]
    width = np.bincount(_useful(problem, component)[:, 0])[component]
    columns = int(width.sum()) + int(width[problem.edges[:, 0]].sum())
    require(column_bytes * columns, f"an integer programme of {columns:,} variables")
    if columns * COLUMN_SECONDS > limits.left:
        raise TimeoutError


def indicators(problem: Labelling) -> Indicators:
    """Return the variables of a labelling problem."""
    component = components(problem.nodes, *problem.edges.T)[1]
    useful = _useful(problem, component)
    width = np.bincount(useful[:, 0])
    node = np.repeat(np.arange(problem.nodes), width[component])
    label = useful[ranges((np.cumsum(width) - width)[component], width[component]), 1]
    span, none = np.int64(problem.labels + problem.nodes), np.zeros(problem.nodes, np.int64)
    order = problem.precedence or Precedence(0, no_pairs(), none[:0], ((),), none)
    barrier = np.full(span, -1)
    barrier[: len(order.label_barrier)] = order.label_barrier
    keep = ~np.isin(node * span + label, problem.banned @ np.array([span, 1]))
    keep &= ~order.hopeless()[barrier[label], order.node_readers[node]]
    node, label = node[keep], label[keep]
    key = node * span + label
    rewards = np.zeros(len(node), problem.rewards.dtype)
    at, found = lookup(key, problem.reward_at @ np.array([span, 1]))
    rewards[at[found]] = problem.rewards[found]
    # Each label of the first end, where the second end has it too.
    width = np.bincount(node, minlength=problem.nodes)
    u, v = problem.edges.T
    edge = np.repeat(np.arange(len(u)), width[u])
    first = ranges((np.cumsum(width) - width)[u], width[u])
    second, both = lookup(key, v[edge] * span + label[first])
    match, weights = np.stack([first[both], second[both]], axis=1), problem.weights[edge[both]]
    arcs, gates = _gates(order, node, barrier[label])
    rest = arcs, gates, order.arcs, order.barriers
    return Indicators(problem.nodes, node, label, rewards, match, weights, *rest)


def _useful(problem: Labelling, component: IntArray) -> IntArray:
    """Return each component with each label that may be useful there, in order, shape ``(m, 2)``.

    These are the labels that its nodes earn, and as many fresh ones as it may need (see
    :func:`layoutopt.network.problem.fresh_needed`); each component has one at least.
    """
    size = np.bincount(component)
    earned = np.column_stack([component[problem.reward_at[:, 0]], problem.reward_at[:, 1]])
    earned = np.unique(earned, axis=0)
    negative = component[problem.edges[problem.weights < 0, 0]]
    signed = np.bincount(negative, minlength=len(size))
    wants = (np.bincount(earned[:, 0], minlength=len(size)) == 0) | (signed > 0)
    wants[component[problem.banned[:, 0]]] = True
    wants[component[problem.reward_at[problem.rewards < 0, 0]]] = True
    if problem.precedence is not None:
        readers = np.array([len(s) for s in problem.precedence.reader_sets])
        wants[component[readers[problem.precedence.node_readers] > 0]] = True
    fresh = np.where(wants, np.minimum(fresh_enough(signed), size), 0)
    owners = np.argsort(component, kind="stable")[ranges(np.cumsum(size) - size, fresh)]
    pairs = np.concatenate([earned, np.column_stack([component[owners], problem.labels + owners])])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _gates(order: Precedence, node: IntArray, barrier: IntArray) -> tuple[IntArray, IntArray]:
    """Return the arcs that indicators need, and which indicator needs which."""
    needs: list[IntArray] = [np.zeros((0, 3), np.int64)]
    static = {(int(b), int(c)) for b, c in order.arcs}
    for s, readers in enumerate(order.reader_sets):
        here = np.flatnonzero((order.node_readers[node] == s) & (barrier >= 0))
        for c in readers:
            moved = [b for b in range(order.barriers) if (b, c) not in static]
            gated = here[np.isin(barrier[here], moved)]
            needs.append(np.stack([gated, barrier[gated], np.full(len(gated), c)], axis=1))
    table = np.concatenate(needs)
    arcs, of = np.unique(table[:, 1:], axis=0, return_inverse=True)
    return arcs, np.stack([table[:, 0], of.reshape(-1)], axis=1)
