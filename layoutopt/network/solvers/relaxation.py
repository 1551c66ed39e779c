"""The relaxation's bound by message passing, with rounding: where both meet, it is a proof.

The whole part is served first.  What is left of the gap is then mostly in a few places, so
later passes serve only the *region* around them.  *Branching* closes the gap; where there are very
many labels, those that never meet *share columns*, which bounds the whole part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from layoutopt.base.limits import Limits, Stopped, available_memory
from layoutopt.base.result import Result
from layoutopt.network.components import coloured, colouring, components
from layoutopt.network.flow import expanded
from layoutopt.network.problem import (
    Floats,
    IntArray,
    Labelling,
    fresh_needed,
    merge_parallel,
    reward_table,
)
from layoutopt.network.solvers.messages import LabelField, Messages, incidence, ranks

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def worth(field: LabelField, labels: IntArray) -> int:
    """Return the value of a labelling, labels being columns of the rewards."""
    same = labels[field.edges[:, 0]] == labels[field.edges[:, 1]]
    earned = field.rewards[np.arange(len(labels)), labels]
    return int(earned.sum()) + int(field.weights[same].sum())


def best_of_both(field: LabelField, old: IntArray, new: IntArray) -> IntArray:
    """Return ``old`` with every part of ``new`` that is an improvement.

    The nodes at which the two differ fall into connected pieces; each is exchanged or not,
    for itself.
    """
    differ = old != new
    if not differ.any():
        return old
    rewards, (u, v) = field.rewards, field.edges.T
    inner = differ[u] & differ[v]
    count, piece = components(len(old), u[inner], v[inner])
    gain = np.zeros(count, np.int64)
    nodes = np.flatnonzero(differ)
    np.add.at(gain, piece[nodes], rewards[nodes, new[nodes]] - rewards[nodes, old[nodes]])
    mixed = np.where(differ, new, old)
    for near, far, alone in ((u, v, False), (v, u, True)):
        # An inner edge is counted once, at its first end.
        at = differ[near] & ~differ[far] if alone else differ[near]
        after = mixed[near[at]] == mixed[far[at]]
        before = old[near[at]] == old[far[at]]
        change = (after.astype(np.int64) - before) * field.weights[at]
        np.add.at(gain, piece[near[at]], change)
    return np.where(differ & (gain[piece] > 0), new, old)


def expand(field: LabelField, labels: IntArray, to: int) -> IntArray:
    """Return the best labelling in which some nodes change to label ``to``."""
    gain = field.rewards[:, to] - field.rewards[np.arange(len(labels)), labels]
    return expanded(field.edges, field.weights, labels, to, labels != to, gain)


def expansion(field: LabelField, labels: IntArray, limits: Limits) -> IntArray:
    """Expand each label in turn until none improves the labelling, or time is up."""
    best, unchanged, to = worth(field, labels), 0, 0
    while unchanged < field.rewards.shape[1] and not limits.over:
        changed = expand(field, labels, to)
        value = worth(field, changed)
        if value > best:
            labels, best, unchanged = changed, value, 0
        else:
            unchanged += 1
        to = (to + 1) % field.rewards.shape[1]
    return labels


SCALE_BITS = 24  # messages are rounded to multiples of `2**-24`, or coarser if sums would not fit
SUM_BITS = 60  # sums of scaled numbers stay below `2**60`
LOW = -(2**60)  # scaled rewards and edges of banned labels


class Ledger:
    """Maxima of all nodes and edges under messages, and what a labelling earns of them.

    ``node_top`` and ``edge_top`` are maxima, and ``node_slack`` and ``edge_slack`` how much less
    the labelling earns there, all in integers of which ``scale`` make one.
    """

    def __init__(self, field: LabelField) -> None:
        self.field = field
        nodes, m, labels = len(field.rewards), len(field.edges), field.rewards.shape[1]
        size = float(np.abs(np.where(field.allowed, field.rewards, 0)).sum())
        size += 4.0 * labels * float(np.abs(field.weights).sum())
        self.scale = 2 ** max(0, min(SCALE_BITS, SUM_BITS - int(np.log2(size + 1)) - 1))
        self.node_top, self.node_slack = np.zeros((2, nodes), np.int64)
        self.edge_top, self.edge_slack = np.zeros((2, m), np.int64)
        self._to_first, self._to_second = np.zeros((2, m, labels), np.int64)
        self._leaving, self._arriving = (incidence(ends, nodes) for ends in field.edges.T)
        self._rewards = np.where(field.allowed, field.rewards * self.scale, LOW)

    @property
    def scaled_bound(self) -> int:
        """The bound times the scale."""
        return int(self.node_top.sum()) + int(self.edge_top.sum())

    @property
    def bound(self) -> int:
        """No labelling is worth more."""
        return int(self.scaled_bound // self.scale)

    def update(self, edges: IntArray, to_first: Floats, to_second: Floats) -> None:
        """Take in new messages of some edges."""
        self._to_first[edges] = np.rint(to_first * self.scale)
        self._to_second[edges] = np.rint(to_second * self.scale)

    def read(self, nodes: IntArray, labels: IntArray) -> None:
        """Read off maxima and slacks of some nodes and all their edges anew."""
        inside = np.zeros(len(labels), bool)
        inside[nodes] = True
        edges = np.flatnonzero(inside[self.field.edges].any(axis=1))
        belief = self._beliefs(nodes)
        self.node_top[nodes] = belief.max(axis=1)
        at = belief[np.arange(len(nodes)), labels[nodes]]
        self.node_slack[nodes] = self.node_top[nodes] - at
        agree, one, two = self._edges(edges)
        rows = np.arange(len(edges))
        a, b = labels[self.field.edges[edges]].T
        earned = np.where(a == b, agree[rows, a], one[rows, a] + two[rows, b])
        self.edge_top[edges] = _tops(agree, one, two)
        self.edge_slack[edges] = self.edge_top[edges] - earned

    def hopeless(self, value: int) -> IntArray:
        """Return which choices cannot be part of a labelling worth more than ``value``."""
        agree, one, two = self._edges(np.arange(len(self.field.edges)))
        top = self.edge_top[:, None]
        first = top - np.maximum(agree, one + two.max(axis=1, keepdims=True))
        second = top - np.maximum(agree, two + one.max(axis=1, keepdims=True))
        loss = self.node_top[:, None] - self._beliefs(np.arange(len(self.node_top)))
        # Losses at banned labels are about 2**60 each; they must not add up beyond 2**63.
        first, second = np.minimum(first, -LOW // 64), np.minimum(second, -LOW // 64)
        loss = loss + self._leaving @ first + self._arriving @ second
        beyond = (self.scaled_bound - loss) // self.scale <= value
        return np.asarray(beyond | ~self.field.allowed)

    def _beliefs(self, nodes: IntArray) -> IntArray:
        heard = self._leaving[nodes] @ self._to_first + self._arriving[nodes] @ self._to_second
        return np.asarray(self._rewards[nodes] + heard)

    def _edges(self, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return what edges earn: agreeing in each label, and the parts of either end."""
        field = self.field
        first, second = field.edges[edges].T
        one = np.where(field.allowed[first], -self._to_first[edges], LOW)
        two = np.where(field.allowed[second], -self._to_second[edges], LOW)
        agree = one + two + (field.weights[edges] * self.scale)[:, None]
        return agree, one, two


def _tops(agree: IntArray, one: IntArray, two: IntArray) -> IntArray:
    """Return the most that edges earn: with equal labels, or with different ones."""
    apart = one.max(axis=1) + two.max(axis=1)
    clash = np.flatnonzero(one.argmax(axis=1) == two.argmax(axis=1))
    if one.shape[1] > 1:
        first, second = (np.sort(x[clash], axis=1)[:, -2:] for x in (one, two))
        apart[clash] = np.maximum(first[:, 1] + second[:, 0], first[:, 0] + second[:, 1])
    else:
        apart[clash] = agree[clash, 0]
    return np.asarray(np.maximum(agree.max(axis=1), apart))


SWEEPS = 16  # passes over the whole part between two looks at the gap
MOST_SWEEPS = 128  # passes over a small region between two looks
PATIENCE = 4  # looks in a row that do not shrink the gap by a fiftieth, after which passing ends
COVERED = 0.9  # share of the gap that the places of a region account for
HOPS = 3  # how far around these places a region reaches at first; doubled when it does not help

SMALL = 5000
"""Up to so many nodes, expansion moves are tried at every look."""

LARGEST = 2**56  # sums of all numbers, times eight times the labels, stay below this
CELLS_LIMIT = 10**8  # largest number of edges times labels
CELL_BYTES = 160  # what each of these takes: messages, their exact copies, and those of a pass

SWEEP_SECONDS = 4e-8
"""What each takes in one sweep; this and the next are what turns count, see ``Limits.turn``."""

PASS_SECONDS = 2e-3  # what a pass takes beside its sweeps
CELL_SECONDS = 5e-7  # what each takes outside the sweeps of a first pass


def field_of(problem: Labelling, seconds: float = math.inf) -> LabelField | None:
    """Return a part as arrays, or ``None`` if it, or its numbers, are too large for them.

    What takes longer to begin with than the seconds that are left is too large, too.
    """
    fresh = fresh_needed(problem)
    size = max(problem.nodes, len(problem.edges)) * (problem.labels + fresh)
    free = available_memory()
    if size > CELLS_LIMIT or not fits(problem) or CELL_SECONDS * size > seconds:
        return None
    if free is not None and CELL_BYTES * size > free:
        return None
    table = reward_table(problem, fresh)
    allowed = np.ones(table.shape, bool)
    allowed[tuple(problem.banned.T)] = False
    colour = colouring(problem.nodes, problem.edges)
    return LabelField(table, allowed, problem.edges, problem.weights, colour)


def fits(problem: Labelling) -> bool:
    """Return whether a problem's numbers are small enough for messages and their sums."""
    exact = object in (problem.weights.dtype, problem.rewards.dtype)
    return not exact and problem.total() * 8 * (problem.labels + fresh_needed(problem)) < LARGEST


@dataclass(eq=False)
class Ascent:
    """Message passing on one field."""

    field: LabelField
    to_first: Floats  # settled messages from each edge to its first end; changed in place
    to_second: Floats  # messages to its second end
    labels: IntArray  # a labelling to begin with; the best one found afterwards
    cutoff: int  # only labellings worth more than this are of interest
    limits: Limits  # when to stop

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.field)
        self.ledger.update(np.arange(len(self.field.edges)), self.to_first, self.to_second)
        self.ledger.read(np.arange(len(self.labels)), self.labels)
        self.value = worth(self.field, self.labels)
        self.stopped = Stopped.FINISHED
        self._expands = not (self.field.weights < 0).any()
        self._looks = 0
        self._random = np.random.default_rng(self.limits.seed % 2**31)

    @property
    def bound(self) -> int:
        """No labelling of the field is worth more."""
        return self.ledger.bound

    @property
    def goal(self) -> int:
        """What a labelling must exceed to be of interest."""
        return max(self.value, self.cutoff)

    def climb(self, region: IntArray) -> bool:
        """Alternate passing, rounding and a look at the gap, beginning with a region.

        Return whether it is proved that nothing exceeds the goal.
        """
        smallest, quiet, hops = float("inf"), 0, HOPS
        while True:
            self._pass(region)
            ledger = self.ledger
            self.limits.report("message passing", self.goal, max(self.goal, ledger.bound))
            gap = ledger.scaled_bound / ledger.scale - self.goal
            if ledger.bound <= self.goal:
                return True
            if gap <= 0.98 * smallest:
                quiet = 0
            else:
                quiet, hops = quiet + 1, 2 * hops
            smallest = min(smallest, gap)
            if quiet >= PATIENCE:
                return False
            if self.limits.close(self.goal, ledger.bound):
                self.stopped = Stopped.GAP_LIMIT
                return False
            if self.limits.stopped is not None:
                self.stopped = self.limits.stopped
                return False
            region = self._open(hops)

    def _open(self, hops: int) -> IntArray:
        """Return the nodes around the places that make up most of the gap."""
        nodes, ledger = len(self.labels), self.ledger
        slack = np.concatenate([ledger.node_slack, ledger.edge_slack])
        order = np.argsort(-slack)
        total = np.cumsum(slack[order] / ledger.scale)
        places = order[: int(np.searchsorted(total, COVERED * total[-1])) + 1]
        inside = np.zeros(nodes, bool)
        inside[places[places < nodes]] = True
        inside[self.field.edges[places[places >= nodes] - nodes]] = True
        return self.around(np.flatnonzero(inside), hops)

    def around(self, nodes: IntArray, hops: int) -> IntArray:
        """Return the nodes within so many edges of some; all if that is most."""
        inside = np.zeros(len(self.labels), bool)
        inside[nodes] = True
        for _ in range(hops):
            inside[self.field.edges[inside[self.field.edges].any(axis=1)]] = True
        if 2 * int(inside.sum()) > len(inside):
            inside[:] = True
        return np.flatnonzero(inside)

    def _pass(self, region: IntArray) -> None:
        """Serve a region: better messages there, and perhaps a better labelling."""
        inner, held, part = self._cut_out(region)
        served = replace(part, rewards=held)
        rank = ranks(served, self._random)
        messages = Messages(served, self.to_first[inner], self.to_second[inner], rank)
        self._sweep(messages, len(region), max(len(region), len(inner)) * held.shape[1])
        new = messages.decode(part.rewards)
        self.to_first[inner], self.to_second[inner] = settled = messages.settled()
        self.ledger.update(inner, *settled)
        self._take_better(region, part, new)
        self.ledger.read(region, self.labels)

    def _cut_out(self, region: IntArray) -> tuple[IntArray, Floats, LabelField]:
        """Return a region's inner edges, what it hears from outside, and the region itself.

        The second counts messages among the rewards, the third what agreeing with the labels
        outside earns.
        """
        field = self.field
        place = np.full(len(self.labels), -1)
        place[region] = np.arange(len(region))
        ends = place[field.edges]
        inner = np.flatnonzero((ends >= 0).all(axis=1))
        rewards = field.rewards[region]
        held = rewards.astype(np.float64)
        for near, far, message in ((0, 1, self.to_first), (1, 0, self.to_second)):
            cut = np.flatnonzero((ends[:, near] >= 0) & (ends[:, far] < 0))
            here = ends[cut, near]
            held += incidence(here, len(region)) @ message[cut]
            at = here * rewards.shape[1] + self.labels[field.edges[cut, far]]
            np.add.at(rewards.reshape(-1), at, field.weights[cut])
        part = LabelField(
            rewards, field.allowed[region], ends[inner], field.weights[inner], field.colour[region]
        )
        return inner, held, part

    def _sweep(self, messages: Messages, size: int, cells: int) -> None:
        sweeps = min(MOST_SWEEPS, SWEEPS * len(self.labels) // size)
        self.limits.spend(PASS_SECONDS)
        for _ in range(-(-sweeps // SWEEPS) * SWEEPS):
            messages.sweep(1)
            self.limits.spend(SWEEP_SECONDS * cells)
            if self.limits.over:
                break

    def _take_better(self, region: IntArray, part: LabelField, new: IntArray) -> None:
        """Improve a region's labels with the help of others, all else unchanged."""
        old = self.labels[region]
        # Cuts take longer than passes on large regions: look 1, 2, 4, 8, ... there.
        self._looks += len(region) == len(self.labels)
        often = len(region) < SMALL or self._looks & (self._looks - 1) == 0
        expands = self._expands and often and not self.limits.over
        moved = expansion(part, new, self.limits) if expands else new
        joint = best_of_both(part, old, moved)
        if not np.array_equal(joint, old):
            self.labels = self.labels.copy()
            self.labels[region] = expansion(part, joint, self.limits) if expands else joint
            self.value = worth(self.field, self.labels)

    def offer(self, labels: IntArray) -> None:
        """Keep a labelling of the field if it is better."""
        value = worth(self.field, labels)
        if value > self.value:
            self.labels, self.value = labels, value


def begin(field: LabelField, limits: Limits, start: IntArray | None = None) -> Ascent:
    """Return an ascent that has not begun, from a given labelling or a simple one."""
    labels = field.rewards.argmax(axis=1)
    if start is not None:
        known = (start >= 0) & (start < field.rewards.shape[1])
        labels = np.where(known, start, labels)
    to_first, to_second = np.zeros((2, len(field.edges), field.rewards.shape[1]))
    return Ascent(field, to_first, to_second, labels, -(2**62), limits)


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
    quiet = root.limits.silent()
    while todo:
        open_bound = max([worst, *(a.bound for a, _ in todo)])
        root.limits.report("branching", root.goal, min(root.bound, open_bound))
        last, node = todo.pop()
        if last is not root:
            last.cutoff = root.goal
            closed = last.climb(last.around(np.array([node]), HOPS))
            root.offer(last.labels)
            if closed:
                worst = max(worst, last.bound)
                continue
        if root.limits.over or len(todo) > DEPTH:
            root.stopped = root.limits.stopped or root.stopped
            worst = max([worst, last.bound, *(a.bound for a, _ in todo)])
            break
        if root.limits.close(root.goal, last.bound):
            worst = max(worst, last.bound)
            continue
        todo.extend(_children(last, quiet))
    return max(root.goal, min(worst, root.bound))


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
    quiet = limits.silent()
    for distance in DISTANCES:
        conflicts = _conflicts(part, distance)
        if conflicts is None:
            break
        column = coloured(conflicts.indptr, conflicts.indices)
        if 2 * int(column.max()) > part.labels:
            break
        # Labels of one column, no two of which meet at a node, are one.
        at = np.column_stack([part.reward_at[:, 0], column[part.reward_at[:, 1]]])
        small = replace(part, labels=int(column.max()) + 1, reward_at=at)
        short = quiet.within(SHARE * limits.left).turn(EFFORT)
        field = field_of(small, min(short.left, EFFORT))
        if field is None or limits.over:
            break
        ascent = begin(field, short, np.append(column, -1)[np.minimum(best, part.labels)])
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
