"""Labelling problems: reduce, split, close each part; with order rules, put together in between.

A problem without order rules is solved in order of cost: contraction, components, two alternatives
by minimum cut, small treewidth by dynamic programming, shared columns, the relaxation by message
passing; and on what that leaves open branch and bound, HiGHS and CP-SAT, in turns.  Local search
goes before the relaxation, and before all where time is limited and the problem large.

With order rules, parts where no cycle can arise are solved alone.  The others are *coupled*: an arc
between two barriers is open or closed for all of them alike.  A master problem proposes an order of
the barriers, which opens the arcs that agree with it; every part is solved under it; and
what a part loses by closed arcs goes back to the master as a cut (logic-based Benders
decomposition, Hooker and Ottosson, 2003).  Master bound and best order found meet at the
optimum.  A part is first solved with all arcs open, then with those closed that its answer
used and must not use, and so on: so cuts name few arcs, and hold wherever those are closed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from layoutopt.base.entries import Takes, load
from layoutopt.base.errors import OptionError, SolverError
from layoutopt.base.limits import Limits, Stopped, SumOfParts
from layoutopt.base.numbers import unique
from layoutopt.base.result import Result
from layoutopt.network.components import strong_components
from layoutopt.network.contraction import contract
from layoutopt.network.cuts import best_of_two
from layoutopt.network.elimination import eliminate
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    Parts,
    Precedence,
    exact_integers,
    restored_names,
    split,
    take,
    with_numbers,
    without,
)
from layoutopt.network.solvers.relaxation import (
    Ascent,
    begin,
    branch,
    field_of,
    fits,
    share_columns,
)

TURN = 20.0  # effort of the first turn of each search, see `Limits.turn`; every round doubles it

MIP_COLUMNS = 1000
"""Choices that HiGHS is given for each second of a turn: how long it takes can only be guessed."""

QUICK = 256  # up to so many nodes contraction is quick
REFINING = 0.4  # largest share of the time left for local search

ROUNDED_FROM = 2**41  # numbers are rounded only where they add up to so much, then to half of that

COLUMNS_LIMIT = 2 * 10**6
"""Largest number of choices that CP-SAT is asked about; HiGHS gets a twentieth."""


def solve_parts(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
    """Solve a problem without order rules; the result has a labelling and a bound."""
    reduced = contract(problem, limits)
    parts = split(reduced.problem)
    own = reduced.project(start)
    if own is None:  # each node its own fresh label
        own = reduced.problem.labels + np.arange(reduced.problem.nodes)
    starts = parts.cut(own)
    each = zip(parts.parts, starts, strict=True)
    known = [(part.value(start), part.total()) for part, start in each]
    whole = SumOfParts(limits.beside(reduced.constant), known)
    labels, bound, stopped = list(starts), 0, Stopped.FINISHED
    for i in sorted(range(len(starts)), key=lambda i: parts.parts[i].nodes):
        part = parts.parts[i]
        try:
            result = solve_part(part, whole.limits_for(i), starts[i])
        except MemoryError:
            limits.full.set()
            result = simple_answer(part, limits, starts[i])
        labels[i], least = result.labelling, int(result.bound or 0)
        whole.settle(i, int(result.objective or 0), least)
        bound += least
        if result.stopped is not Stopped.FINISHED:
            stopped = result.stopped
    result = Result(labelling=parts.join(labels), bound=bound, stopped=stopped)
    return reduced.restore_result(result)


def solve_part(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Solve one connected part that contraction leaves as it is."""
    result = best_of_two(part) or eliminate(part)
    if result is not None:
        return result
    if limits.over:
        return simple_answer(part, limits, start)
    shared = share_columns(part, limits, start)
    if shared is None:
        return _in_units(part, limits, start)
    value, bound = int(shared.objective or 0), int(shared.bound or 0)
    if limits.close(value, bound):
        return shared
    result = _in_units(part, limits, shared.labelling)
    value, bound = int(result.objective or 0), min(bound, int(result.bound or 0))
    stopped = Stopped.FINISHED if value == bound else result.stopped
    return replace(result, bound=bound, stopped=stopped)


def _in_units(part: Labelling, limits: Limits, start: IntArray) -> Result:
    """Solve a part in a unit that divides all numbers, rounded where they are too large still."""
    unit = math.gcd(*part.weights.tolist(), *part.rewards.tolist()) or 1
    small = _scaled(part, unit)
    close = _closed if fits(small) or small.total() < ROUNDED_FROM else _rounded
    result = close(small, limits.per(unit), start)
    value, bound = part.value(result.labelling), int(result.bound or 0) * unit
    return replace(result, objective=value, bound=bound)


def left_over(problem: Labelling) -> list[Labelling]:
    """Return the parts that no reduction closes: those that bounds and search are needed for."""
    parts = split(contract(problem).problem).parts
    return [part for part in parts if (best_of_two(part) or eliminate(part)) is None]


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
    start = _refined(part, limits, start)
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


def _refined(problem: Labelling, limits: Limits, start: IntArray | None) -> IntArray:
    """Return what local search makes of a labelling, long before bounds are there."""
    refined = load("refined", Takes.LABELLING)
    found = refined(problem, limits.within(REFINING * limits.left).silent(), start)
    limits.report("refining", found.objective, problem.total())
    return np.asarray(found.labelling)


def _searched(name: str, part: Labelling, ascent: Ascent, bound: int, limits: Limits) -> int:
    """Let a solver look for something better among the choices that are not hopeless."""
    hopeless = ascent.ledger.hopeless(ascent.value)
    bans = np.argwhere(hopeless[:, : part.labels])
    value = ascent.value  # nothing worse is left, and nothing better may be
    told = limits.restated(lambda x: x, lambda x: max(value, x))
    try:
        result: Result = load(name, Takes.LABELLING)(replace(part, banned=bans), told, None)
    except (OptionError, SolverError):
        return bound  # nothing is lost: branching and the other solver go on
    except MemoryError:
        limits.full.set()
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


Arc = tuple[int, int]

LARGEST = 2**55  # the sum of all tops stays below this, if need be in a coarser unit


@dataclass(frozen=True)
class OrderCut:
    """A part earns at most ``value`` while all arcs of ``closed`` are closed."""

    part: int
    closed: frozenset[Arc]
    value: int


def best_order(
    barriers: int,
    static: Sequence[Arc],
    tops: Sequence[int],
    cuts: Sequence[OrderCut],
    limits: Limits,
) -> tuple[int, list[int] | None]:
    """Solve the master problem: choose an order that the parts like best.

    ``static`` arcs are always there.  ``tops`` are what each part earns at most; cuts are what is
    known besides.  Return what no order lets the parts earn more than, as far as the cuts tell, and
    a rank for each barrier, ``None`` if time ran out before any order was found.
    """
    unit = math.gcd(*(top - cut.value for cut in cuts for top in [tops[cut.part]])) or 1
    losses = [-(-(tops[cut.part] - cut.value) // unit) for cut in cuts]
    while sum(losses) >= LARGEST:  # rounding losses down keeps the bound true
        unit, losses = 2 * unit, [loss // 2 for loss in losses]
    from layoutopt.network.solvers.cpsat import solve_programme
    from layoutopt.network.solvers.programme import ProgrammeWriter

    to = ProgrammeWriter()
    rank = to.block(np.zeros(barriers, np.int64), barriers - 1).tolist()
    for b, c in static:
        to.row([rank[b], rank[c]], [-1, 1], low=1)
    opened = {arc: to.variable() for arc in sorted({arc for cut in cuts for arc in cut.closed})}
    for (b, c), z in opened.items():  # z = 1 makes b come before c
        to.row([rank[b], rank[c], z], [-1, 1, -barriers], low=1 - barriers)
    worst: dict[int, int] = {}
    for cut, loss in zip(cuts, losses, strict=True):
        worst[cut.part] = max(worst.get(cut.part, 0), loss)
    lost = {part: to.variable(-1, most) for part, most in worst.items()}
    for cut, loss in zip(cuts, losses, strict=True):  # that much is lost unless one is open
        arcs = [opened[arc] for arc in cut.closed]
        to.row([lost[cut.part], *arcs], [1] + [loss] * len(arcs), low=loss)
    found = solve_programme(to.finished(), limits)
    least = 0 if found.bound is None else max(0, -found.bound)
    chosen = None if found.values is None else found.values[:barriers].tolist()
    return sum(tops) - least * unit, chosen


Arcs = frozenset[Arc]


def solve(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
    """Solve a labelling problem exactly, by whatever pays.

    The result has a labelling and a bound; ``start`` may break order rules.
    """
    order = problem.precedence
    if order is None:
        if limits.left < math.inf and problem.nodes > QUICK:  # contraction may take all the time
            start = _refined(problem, limits, start)
        return solve_parts(problem, limits, start)
    parts = split(replace(problem, precedence=None))
    coupled = _coupled(order, parts)
    inside = np.zeros(problem.nodes, bool)
    for part in coupled:
        inside[part.nodes] = True
    alone = np.flatnonzero(~inside)
    readers = order.node_readers[alone]
    rest = without(take(problem, alone), order.hopeless(), order.label_barrier, readers)
    hope = sum(part.problem.total() for part in coupled)
    free = solve_parts(rest, limits.restated(lambda x: x, lambda x: x + hope))
    low, high = int(free.objective or 0), int(free.bound or 0)
    told = limits.restated(lambda x: x + low, lambda x: x + high)
    found = _Decomposition(order, coupled, told)
    bound, stopped = found.run()
    labels = np.zeros(problem.nodes, np.int64)
    labels[alone] = restored_names(free.labelling, alone, problem.labels)
    for part, result in zip(coupled, found.best, strict=True):
        table = np.concatenate([part.labels, problem.labels + part.nodes])
        labels[part.nodes] = table[result.labelling]
    if free.stopped is not Stopped.FINISHED:
        stopped = free.stopped
    value = problem.value(labels)
    return Result(objective=value, bound=high + bound, labelling=labels, stopped=stopped)


@dataclass(eq=False)
class _Part:
    """A component in which some labels need arcs that may close a cycle.

    ``needs[s][b]`` are the contested arcs that a node with reader set ``s`` needs for a label
    of barrier ``b``; ``choices`` is the shape of tables of barriers and reader sets.
    """

    problem: Labelling
    nodes: IntArray
    labels: IntArray
    barrier: IntArray
    readers: IntArray
    needs: dict[tuple[int, int], Arcs]
    choices: tuple[int, int]
    solved: dict[Arcs, Result] = field(default_factory=dict)

    def solve(self, closed: Arcs, limits: Limits) -> Result:
        """Return the best labelling that needs no closed arc."""
        if closed not in self.solved:
            shut = np.zeros(self.choices, bool)
            for (s, b), arcs in self.needs.items():
                shut[b, s] = not arcs.isdisjoint(closed)
            problem = without(self.problem, shut, self.barrier, self.readers)
            self.solved[closed] = solve_parts(problem, limits)
        return self.solved[closed]

    def used(self, labels: IntArray) -> Arcs:
        """Return the contested arcs that a labelling needs."""
        barrier = np.append(self.barrier, np.full(self.problem.nodes, -1))[labels]
        pairs = set(zip(self.readers.tolist(), barrier.tolist(), strict=True))
        return frozenset().union(*(self.needs.get(pair, frozenset()) for pair in pairs))


class _Decomposition:
    """Master problem and parts, in turns."""

    def __init__(self, order: Precedence, parts: Sequence[_Part], limits: Limits) -> None:
        self.order, self.parts = order, parts
        self.limits = limits
        self.static: list[Arc] = [(int(b), int(c)) for b, c in order.arcs]
        self.cuts: set[OrderCut] = set()
        self.best: list[Result] = []
        self.value = 0

    def run(self) -> tuple[int, Stopped]:
        """Find the best results of the parts; return a bound on all orders, and why it ended."""
        quiet = self.limits.silent()
        tops = [part.solve(frozenset(), quiet) for part in self.parts]
        bounds = [int(top.bound or 0) for top in tops]
        used = [part.used(top.labelling) for part, top in zip(self.parts, tops, strict=True)]
        rank = self._ranked([*self.static, *frozenset().union(*used)])
        self._try(rank or self._ranked(self.static) or [])
        bound = sum(bounds)
        stopped = Stopped.FINISHED
        while bound > self.value:
            self.limits.report("barrier order", self.value, bound)
            if self.limits.close(self.value, bound):
                stopped = Stopped.GAP_LIMIT
                break
            known = len(self.cuts)
            cuts = sorted(self.cuts, key=lambda c: (c.part, c.value, sorted(c.closed)))
            most, rank = best_order(self.order.barriers, self.static, bounds, cuts, quiet)
            bound = min(bound, most)
            if rank is not None:
                self._try(rank)
            if self.limits.stopped is not None or len(self.cuts) == known:
                # Without a new cut some part was not solved to its end, or numbers are rounded.
                reasons = (result.stopped for result in self.best)
                halted = next((r for r in reasons if r is not Stopped.FINISHED), Stopped.SIZE_LIMIT)
                stopped = self.limits.stopped or halted
                break
        return max(bound, self.value), stopped

    def _ranked(self, arcs: Iterable[Arc]) -> list[int] | None:
        """Return a rank for each barrier that agrees with arcs; ``None`` if they are cyclic."""
        order = TopologicalSorter(dict.fromkeys(range(self.order.barriers), ()))
        for b, c in sorted(set(arcs)):
            order.add(c, b)
        try:
            rank = {b: place for place, b in enumerate(order.static_order())}
        except CycleError:
            return None
        return [rank[b] for b in range(self.order.barriers)]

    def _try(self, rank: list[int]) -> None:
        """Solve every part under an order, and keep what is learnt."""
        results = [self._under(p, rank) for p in range(len(self.parts))]
        value = sum(int(result.objective or 0) for result in results)
        if not self.best or value > self.value:
            self.best, self.value = results, value

    def _under(self, number: int, rank: list[int]) -> Result:
        """Solve a part under an order, closing only arcs that it would use against it."""
        part = self.parts[number]
        quiet = self.limits.silent()
        closed: Arcs = frozenset()
        while True:
            result = part.solve(closed, quiet)
            if closed:
                self.cuts.add(OrderCut(number, closed, int(result.bound or 0)))
            against = {(b, c) for b, c in part.used(result.labelling) if rank[b] >= rank[c]}
            if not against:
                return result
            closed |= against


def _coupled(order: Precedence, parts: Parts) -> list[_Part]:
    """Return the components that need arcs which could be part of a cycle."""
    hopeless = order.hopeless()
    needs: list[dict[tuple[int, int], set[Arc]]] = []
    links: list[Arc] = [(b, c) for b, c in order.arcs.tolist()]
    for nodes, labels in zip(parts.nodes, parts.labels, strict=True):
        own: dict[tuple[int, int], set[Arc]] = {}
        for s in unique(order.node_readers[nodes]).tolist():
            for b in unique(order.label_barrier[labels]).tolist():
                if b >= 0 and not hopeless[b, s]:
                    own[s, b] = {(b, c) for c in order.reader_sets[s]}
                    links += own[s, b]
        needs.append(own)
    knot = strong_components(order.barriers, np.array(links, np.int64).reshape(-1, 2))
    found = []
    for i, (part, own) in enumerate(zip(parts.parts, needs, strict=True)):
        contested = {
            key: frozenset((b, c) for b, c in arcs if knot[b] == knot[c])
            for key, arcs in own.items()
        }
        contested = {key: arcs for key, arcs in contested.items() if arcs}
        if contested:
            barrier = order.label_barrier[parts.labels[i]]
            readers = order.node_readers[parts.nodes[i]]
            found.append(
                _Part(
                    without(part, hopeless, barrier, readers),
                    parts.nodes[i],
                    parts.labels[i],
                    barrier,
                    readers,
                    contested,
                    hopeless.shape,
                )
            )
    return found
