"""A problem without order rules: reduce, split, and close each part.

In order of cost: contraction, components, two alternatives by minimum cut, small treewidth
by dynamic programming, shared columns, isolating cuts, the relaxation by message passing; and
on what that leaves open branch and bound, HiGHS and CP-SAT, in turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from layoutopt.base.entries import Takes, load
from layoutopt.base.errors import OptionError, SolverError
from layoutopt.base.limits import Limits
from layoutopt.base.result import Result, Stopped
from layoutopt.network.components import coloured, components
from layoutopt.network.contraction import contract
from layoutopt.network.cuts import best_of_two, isolating_cuts
from layoutopt.network.elimination import eliminate
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    exact_integers,
    merge_parallel,
    split,
    with_numbers,
)
from layoutopt.network.solvers.relaxation import HOPS, Ascent, begin, field_of, fits, worth

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DEPTH = 200  # deepest branch


def branch(root: Ascent) -> int:
    """Search until nothing can exceed the goal of a climbed ascent by more than a gap.

    A node is branched at the place where the bound and the labelling differ most: a node takes its
    present label, or any other.  The root keeps the best labelling.  Return a bound on all
    labellings of the root's field; it equals the root's value unless time ran out or a gap is
    allowed.
    """
    todo = [(root, 0)]
    worst = root.goal
    quiet = replace(root.limits, tell=None)
    while todo:
        open_bound = max([worst, *(a.bound for a, _ in todo)])
        root.limits.report("branching", root.goal, min(root.bound, open_bound))
        last, node = todo.pop()
        if last is not root:
            last.cutoff = root.goal
            if last.climb(last.around(np.array([node]), HOPS)):
                worst = max(worst, last.bound)
                _take(root, last.labels)
                continue
            _take(root, last.labels)
        if root.limits.over or len(todo) > DEPTH:
            root.stopped = root.limits.stopped or root.stopped
            worst = max([worst, last.bound, *(a.bound for a, _ in todo)])
            break
        if root.limits.close(root.goal, last.bound):
            worst = max(worst, last.bound)
            continue
        todo.extend(_children(last, quiet))
    return max(root.goal, min(worst, root.bound))


def _take(root: Ascent, labels: IntArray) -> None:
    value = worth(root.field.rewards, root.field.edges, root.field.weights, labels)
    if value > root.value:
        root.labels, root.value = labels, value


def _children(parent: Ascent, limits: Limits) -> list[tuple[Ascent, int]]:
    """Return the two halves of a field: one node takes its present label, or any other."""
    field, ledger = parent.field, parent.ledger
    slack = ledger.node_slack.astype(np.float64)
    for ends in field.edges.T:
        np.add.at(slack, ends, ledger.edge_slack.astype(np.float64))
    slack[field.allowed.sum(axis=1) < 2] = -1.0
    node = int(slack.argmax())
    label = int(parent.labels[node])
    others = np.arange(field.allowed.shape[1]) != label
    never = int(field.rewards.min()) - 1
    low = -2 * int(np.abs(np.where(field.allowed, field.rewards, 0)).sum())
    low = min(never, low - 2 * int(np.abs(field.weights).sum()) - 1)
    children = []
    for gone in (others, ~others):
        rewards, allowed = field.rewards.copy(), field.allowed.copy()
        rewards[node, gone], allowed[node, gone] = low, False
        half = replace(field, rewards=rewards, allowed=allowed)
        labels = parent.labels.copy()
        if gone[label]:
            labels[node] = rewards[node].argmax()
        messages = parent.to_first.copy(), parent.to_second.copy()
        children.append((Ascent(half, *messages, labels, parent.goal, limits), node))
    return children


MANY = 64  # from so many labels on columns are shared
DISTANCES = (2, 3, 4, 6)  # how many edges apart labels of one column are, in turn

CONFLICTS_LIMIT = 3 * 10**7
"""Largest number of pairs of labels that must not share, counted once for each way they meet."""

SHARE = 0.25  # share of the time left that one distance may take
EFFORT = 15.0  # effort of one distance, see `Limits.turn`


def share_columns(part: Labelling, limits: Limits, start: IntArray) -> Result | None:
    """Bound a part by sharing columns, or return ``None`` if that is not for it.

    The labelling is the best one that came back, or ``start``.
    """
    signed = (part.weights < 0).any() or (part.rewards < 0).any() or len(part.banned)
    if part.labels < MANY or signed or not fits(part):
        return None
    best, bound = start, part.total()
    quiet = replace(limits, tell=None)
    for distance in DISTANCES:
        conflicts = _conflicts(part, distance)
        if conflicts is None:
            break
        column = np.array(coloured(conflicts.indptr, conflicts.indices), np.int64)
        if 2 * int(column.max()) > part.labels:
            break
        small = _merged(part, column)
        short = quiet.within(SHARE * limits.left).turn(EFFORT)
        field = field_of(small, min(short.left, EFFORT))
        if field is None or limits.over:
            break
        ascent = begin(field, short, _columns_of(best, column, small.nodes))
        ascent.climb(np.arange(small.nodes))
        bound = min(bound, ascent.bound)
        best = max(best, _restored(part, column, ascent.labels), key=part.value)
        limits.report("sharing columns", part.value(best), bound)
        if limits.close(part.value(best), bound):
            break
    value = part.value(best)
    stopped = Stopped.FINISHED if bound == value else limits.stopped or Stopped.GAP_LIMIT
    return Result(objective=value, bound=bound, labelling=best, stopped=stopped)


def _conflicts(part: Labelling, distance: int) -> csr_array | None:
    """Return which labels reward nodes within a distance of each other; ``None`` if too many."""
    from scipy.sparse import coo_array, csr_array, eye_array

    n = part.nodes
    owns = csr_array(
        (np.ones(len(part.reward_at), bool), tuple(part.reward_at.T)), shape=(n, part.labels)
    )
    ends = coo_array((np.ones(len(part.edges), bool), tuple(part.edges.T)), shape=(n, n)).tocsr()
    step = csr_array(ends + ends.T + eye_array(n, dtype=bool, format="csr"))
    reach = owns
    for matrix in [step] * distance + [csr_array(owns.T)]:
        if int(np.diff(reach.indptr)[matrix.indices].sum()) > CONFLICTS_LIMIT:
            return None
        reach = csr_array(matrix @ reach)
    return reach


def _merged(part: Labelling, column: IntArray) -> Labelling:
    """Return a part in which labels of one column, no two of which meet at a node, are one."""
    at = np.column_stack([part.reward_at[:, 0], column[part.reward_at[:, 1]]])
    return replace(part, labels=int(column.max()) + 1, reward_at=at)


def _columns_of(labels: IntArray, column: IntArray, nodes: int) -> IntArray:
    """Return a labelling's columns; fresh labels have none, and become unknown ones."""
    known = labels < len(column)
    return np.where(known, column[np.where(known, labels, 0)], len(column) + nodes)


def _restored(part: Labelling, column: IntArray, columns: IntArray) -> IntArray:
    """Return labels: each connected piece of one column takes the best label of it."""
    same = part.edges[columns[part.edges[:, 0]] == columns[part.edges[:, 1]]]
    _, piece = components(part.nodes, *same.T)
    node, label = part.reward_at.T
    own = column[label] == columns[node]
    ends, earned = merge_parallel(
        np.column_stack([piece[node[own]], label[own]]), part.rewards[own]
    )
    best = part.labels + np.unique(piece, return_index=True)[1]
    order = np.argsort(earned, kind="stable")
    best[ends[order, 0]] = ends[order, 1]  # of several the last one stays, which earns most
    return np.asarray(best[piece])


class Tracker:
    """Adds up objectives and bounds of parts, whose common limits are given."""

    def __init__(
        self, limits: Limits, parts: Sequence[Labelling], starts: Sequence[IntArray]
    ) -> None:
        self._limits = limits
        self.results: list[Result] = [
            Result(objective=p.value(s), bound=p.total(), labelling=s)
            for p, s in zip(parts, starts, strict=True)
        ]
        self.stopped = Stopped.FINISHED
        self._low = sum(int(r.objective or 0) for r in self.results)
        self._high = sum(int(r.bound or 0) for r in self.results)

    def limits_for(self, part: int) -> Limits:
        """Return limits whose messages speak of the whole while a part is solved."""
        known = self.results[part]
        low, high = self._low - int(known.objective or 0), self._high - int(known.bound or 0)
        return self._limits.restated(lambda x: low + x, lambda x: high + x)

    def settle(self, part: int, result: Result) -> None:
        """Take in the result of a part."""
        known = self.results[part]
        self._low += int(result.objective or 0) - int(known.objective or 0)
        self._high += int(result.bound or 0) - int(known.bound or 0)
        self.results[part] = result
        if result.stopped is not Stopped.FINISHED:
            self.stopped = result.stopped


TURN = 20.0  # effort of the first turn of each search, see `Limits.turn`; every round doubles it

MIP_COLUMNS = 1000
"""Choices that HiGHS is given for each second of a turn: how long it takes can only be guessed."""

ROUNDED_FROM = 2**41  # numbers are rounded only where they add up to so much, then to half of that

COLUMNS_LIMIT = 2 * 10**6
"""Largest number of choices that CP-SAT is asked about; HiGHS gets a twentieth."""


def solve_parts(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
    """Solve a problem without order rules; the result has a labelling and a bound."""
    reduced = contract(problem, limits)
    parts = split(reduced.problem)
    starts = parts.cut(_given(reduced.project(start), reduced.problem))
    tracker = Tracker(limits.beside(reduced.constant), parts.parts, starts)
    for i in sorted(range(len(parts.parts)), key=lambda i: parts.parts[i].nodes):
        try:
            result = solve_part(parts.parts[i], tracker.limits_for(i), starts[i])
        except MemoryError:
            limits.exhausted()
            result = simple_answer(parts.parts[i], limits, starts[i])
        tracker.settle(i, result)
    labels = parts.join([r.labelling for r in tracker.results])
    bound = sum(int(r.bound) for r in tracker.results if r.bound is not None)
    result = Result(labelling=labels, bound=bound, stopped=tracker.stopped)
    return reduced.restore_result(result)


def _given(labels: IntArray | None, problem: Labelling) -> IntArray:
    """Return a labelling to begin with: each node its own fresh one where none is given."""
    return problem.labels + np.arange(problem.nodes) if labels is None else labels


def solve_part(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Solve one connected part that contraction leaves as it is."""
    result = best_of_two(part) or eliminate(part)
    if result is not None:
        return result
    if limits.over:
        return simple_answer(part, limits, start)
    shared = share_columns(part, limits, start)
    if shared is None:
        return _reduced(part, limits, start)
    value, bound = int(shared.objective or 0), int(shared.bound or 0)
    if limits.close(value, bound):
        return shared
    told = limits.restated(lambda x: max(value, x), lambda x: min(bound, x))
    result = _reduced(part, told, shared.labelling)
    value, bound = int(result.objective or 0), min(bound, int(result.bound or 0))
    stopped = Stopped.FINISHED if value == bound else result.stopped
    return replace(result, bound=bound, stopped=stopped)


def _reduced(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Solve a part by isolating cuts, and what these leave by the relaxation and by search."""
    fixed = isolating_cuts(part, limits)
    if fixed.problem.nodes < part.nodes:
        inner = solve_parts(fixed.problem, limits.beside(fixed.constant), fixed.project(start))
        return fixed.restore_result(inner)
    unit = math.gcd(*part.weights.tolist(), *part.rewards.tolist()) or 1
    small = _scaled(part, unit)
    close = _closed if fits(small) or small.total() < ROUNDED_FROM else _rounded
    result = close(small, limits.per(unit), start)
    value, bound = part.value(result.labelling), int(result.bound or 0) * unit
    return replace(result, objective=value, bound=bound)


def left_over(problem: Labelling) -> list[Labelling]:
    """Return the parts that no reduction closes: those that bounds and search are needed for."""
    found = []
    for part in split(contract(problem).problem).parts:
        if (best_of_two(part) or eliminate(part)) is not None:
            continue
        fixed = isolating_cuts(part).problem
        found += left_over(fixed) if fixed.nodes < part.nodes else [part]
    return found


def simple_answer(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Return a given labelling, and the bound that earns everything that can be earned."""
    value, stopped = part.value(start), limits.stopped or Stopped.SIZE_LIMIT
    return Result(objective=value, bound=part.ceiling(), labelling=start, stopped=stopped)


def _scaled(part: Labelling, unit: int) -> Labelling:
    """Return a part in a larger unit, rounded down."""
    weights = exact_integers([w // unit for w in part.weights.tolist()])
    rewards = exact_integers([r // unit for r in part.rewards.tolist()])
    return with_numbers(part, weights, rewards)


def _rounded(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Solve a part whose numbers are too large for 64 bits, rounded down.

    With ``w = q w' + s`` and ``0 <= s < q`` every labelling is worth at most ``q`` times what it
    is worth with ``w'``, plus the sum of all ``s``.
    """
    unit = part.total() // (ROUNDED_FROM // 2)
    small = _scaled(part, unit)
    rest = sum(x % unit for x in (*part.weights.tolist(), *part.rewards.tolist()))
    told = limits.per(unit).restated(lambda x: x, lambda x: x + -(-rest // unit))
    inner = solve_parts(small, told, start)
    bound = unit * int(inner.bound or 0) + rest
    value = part.value(inner.labelling)
    stopped = Stopped.SIZE_LIMIT if inner.stopped is Stopped.FINISHED else inner.stopped
    return replace(inner, objective=value, bound=max(bound, value), stopped=stopped)


def _closed(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Close a part by the relaxation and by search."""
    field = field_of(part, limits.left)
    if field is None:
        return simple_answer(part, limits, start)
    ascent = begin(field, limits, start)
    if ascent.climb(np.arange(part.nodes)) or ascent.stopped is not Stopped.FINISHED:
        return _answer(ascent, ascent.bound)
    bound, turn = ascent.bound, TURN
    while True:
        ascent.limits = limits.turn(turn)
        bound = min(bound, branch(ascent))
        small = min(int(MIP_COLUMNS * turn), COLUMNS_LIMIT // 20)
        for label, name, columns in (("HiGHS", "mip", small), ("CP-SAT", "cpsat", COLUMNS_LIMIT)):
            if bound > ascent.value and not limits.over and _columns(part, ascent) <= columns:
                limits.report(label, ascent.value, bound)
                found = _searched(name, part, ascent, bound, limits.turn(turn))
                bound = min(bound, found)
        if limits.over or limits.close(ascent.value, bound):
            ascent.stopped = limits.stopped or Stopped.GAP_LIMIT
            return _answer(ascent, bound)
        turn *= 2


def _searched(name: str, part: Labelling, ascent: Ascent, bound: int, limits: Limits) -> int:
    """Let a solver look for something better among the choices that are not hopeless."""
    hopeless = ascent.ledger.hopeless(ascent.value)
    bans = np.argwhere(hopeless[:, : part.labels])
    value = ascent.value
    told = limits.restated(lambda x: max(value, x), lambda x: min(bound, max(value, x)))
    try:
        result: Result = load(name, Takes.LABELLING)(replace(part, banned=bans), told, None)
    except (OptionError, SolverError):
        return bound  # nothing is lost: branching and the other solver go on
    except MemoryError:
        limits.exhausted()
        return bound
    if result.objective is not None and result.objective > ascent.value:
        ascent.labels, ascent.value = result.labelling, int(result.objective)
    return bound if result.bound is None else max(int(result.bound), ascent.value)


def _columns(part: Labelling, ascent: Ascent) -> int:
    """Return the number of choices that a search is left with: fresh ones stay."""
    hopeless = ascent.ledger.hopeless(ascent.value)
    return hopeless.size - int(np.count_nonzero(hopeless[:, : part.labels]))


def _answer(ascent: Ascent, bound: int) -> Result:
    done = bound <= ascent.value
    return Result(
        objective=ascent.value,
        bound=max(bound, ascent.value),
        labelling=ascent.labels,
        stopped=Stopped.FINISHED if done else ascent.stopped,
    )
