"""Minimise a sum of costs of labels and of pairs of labels, and prove it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import gcd, inf
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import InputError, InternalError, SizeError
from layoutopt.base.limits import Limits, Stopped, SumOfParts, Unlimited, available_memory
from layoutopt.network.costs.fixing import forbid, outlook, tighten
from layoutopt.network.costs.local_search import (
    Neighbourhoods,
    descend,
    part_of,
    polish,
    tabu_search,
)
from layoutopt.network.costs.reductions import (
    NEVER,
    apply,
    eliminate,
    factors_of,
    own_labels,
    reduce,
    settle,
)
from layoutopt.network.costs.work import (
    OVERTIME,
    Cost,
    Infeasible,
    Work,
    level,
    split,
    work_of,
)
from layoutopt.network.cuts import two_labels
from layoutopt.network.elimination import branch_and_bound
from layoutopt.network.network import CostAnswer, Network, Proof
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.pairwise import Message, relax, write
from layoutopt.network.solvers.programme import coarse

Wishes: TypeAlias = Sequence[Mapping[int, float]]
"""Numbers by node and label."""


def construct(work: Work, limits: Limits, wishes: Wishes | None = None) -> list[int] | None:
    """Return a labelling of what is left: the rule RN of Scholz and Eckstein.

    Where no reduction applies, the node of most neighbours takes the label that is best if each
    neighbour then suits itself.  Wishes, how much each label of each node is wished for, go first,
    and nodes are chosen before anything is reduced.  ``None`` if that leads into a dead end.
    When time is up nodes take the best labels for those that their neighbours have.
    """
    trial = work.copy()
    queue = sorted(trial.left(), key=lambda u: len(trial.near[u]))
    labels, over = [0] * len(trial.costs), limits.over
    try:
        if wishes is None and not over:
            apply(trial, limits, queue)
        while queue:
            u = queue.pop()
            if trial.gone[u]:
                continue
            wish = wishes[u] if wishes else {}
            over = over or limits.over
            cost = trial.costs[u].__getitem__ if over else partial(outlook, trial, u)
            trial.keep(u, min(trial.labels(u), key=lambda i: (-wish.get(i, 0), cost(i))))
            if not over:
                apply(trial, limits, [u])
            if not trial.gone[u]:  # time is up
                settle(trial, u)
    except Infeasible:
        return None
    trial.restore(labels)
    return labels


SCALE = 720720
"""Parts of a unit: a multiple of 1 to 16, since messages mostly are fractions with these."""

SCALED = 2**50  # scaled costs of a part add up to about this, or less

BRANCHING = 2**30  # bytes of memory that must be available for branching

WRITING = 6e-6
"""Seconds that writing a programme takes for each pair of labels."""

CELLS, MOST_CELLS = 50_000, 200_000
"""Most entries of tables that an LP solver relaxes, before dual ascent and after it."""

TURN, LONGER, SHORT = 0.25, 4.0, 0.5
"""Effort of the first turn of each search, see ``Limits.turn``, how much longer the next is, and
the effort of a short search."""

MORE = 1.2
"""CP-SAT has longer turns than branching on fewer variables than so many for each label."""

STEPS = 8 * 10**6  # steps of branching for an effort of 1

STARTED = 20  # steps of dual ascent that look for a labelling where nothing costs anything

TIGHTENED = 3.0
"""So many times as long as dual ascent prepares is reserved for its messages to be proved."""

USEFUL = 0.02
"""Messages that close a smaller share of the gap are not worth the time to prove them."""

SHARE, IMPROVED, IMPROVING = 0.4, 0.1, 0.6
"""Shares of the time that a relaxation gets, a first improvement of labels, and all others."""

TURNS = 6  # turns of improving labels, if time is limited

PART = 60
"""Labels of a part that is solved while all other nodes keep theirs, or of a half or a quarter."""

COVERED = 5_000
"""So many pairs of labels let such parts be solved for an effort of 1 before there is search."""

OWN_CELLS, SOLVED = 500, 100_000
"""Pairs of labels that are solved for an effort of 1, CP-SAT aside, and how many a part counts."""

LARGEST, ROUNDED = 2**62, 2**57
"""Costs of a part that add up to so much do not fit the solvers' 64 bits; rounded, to less."""


@dataclass(frozen=True)
class FoundLabels:
    """A labelling of what is left, ``None`` if none was found, and a bound."""

    labels: list[int] | None
    bound: int

    def proved(self, part: Work) -> bool:
        """Return whether the labelling costs no more than the bound."""
        return self.labels is not None and part.value(self.labels) <= self.bound


def solve_parts(work: Work, limits: Limits, start: list[int] | None, stage: int = 0) -> FoundLabels:
    """Solve a problem, and label all nodes: reduce it, split it, and solve its parts.

    ``start`` may have been forbidden meanwhile; ``stage`` is where to begin in :data:`STAGES` with
    parts that are not easy.  Raises ``Infeasible`` if no labelling is allowed.
    """
    reduce(work, limits)
    if work.size() >= LARGEST and not limits.over:
        level(work)
        known = _better(work, start, construct(work, limits))
        if known is not None:
            forbid(work, int(work.value(known)))
            reduce(work, limits)
    labels = [0] * len(work.costs)
    whole, over, bound = True, False, work.constant + work.below
    hard = []
    for part, nodes in split(work):
        level(part)
        bound += part.constant
        part.constant = 0
        over = over or limits.over
        unit = 1 if over else divide(part)
        exact = None if over else eliminate(part, limits)
        if exact is None:
            hard.append((part, nodes, unit))
        else:
            bound += unit * int(part.value(exact))
            for u, label in zip(nodes, exact, strict=True):
                labels[u] = label
    hard.sort(key=lambda each: len(each[1]))
    starts = [None if start is None else [start[u] for u in nodes] for _, nodes, _ in hard]
    parts, units = [part for part, *_ in hard], [unit for *_, unit in hard]
    answers = _solve_hard(parts, units, limits.beside(bound), starts, stage)
    for (_, nodes, unit), found in zip(hard, answers, strict=True):
        bound += unit * found.bound
        whole &= found.labels is not None
        for u, label in zip(nodes, found.labels or (), strict=False):
            labels[u] = label
    if not whole:
        return FoundLabels(None, bound)
    work.restore(labels)
    return FoundLabels(labels, bound)


def _solve_hard(
    parts: Sequence[Work],
    units: Sequence[int],
    limits: Limits,
    starts: Sequence[list[int] | None],
    stage: int,
) -> list[FoundLabels]:
    """Solve parts that share the time; what is left of it in the end goes to those not proved."""
    found = [FoundLabels(own, part.bound()) for own, part in zip(starts, parts, strict=True)]

    def known(k: int) -> tuple[int | None, int]:
        worth = _worth(parts[k], found[k].labels)
        return (None if worth is None else units[k] * worth), units[k] * found[k].bound

    whole = SumOfParts(limits, map(known, range(len(parts))))
    nodes = [len(part.costs) for part in parts]
    todo = list(range(len(parts)))
    for _ in range(2):
        left = sum(nodes[k] for k in todo)
        for k in todo:
            share = whole.limits_for(k).per(units[k]).within(limits.left * nodes[k] / left)
            answer = _solve_part(parts[k], share, found[k].labels, stage)
            found[k] = FoundLabels(answer.labels, max(found[k].bound, answer.bound))
            whole.settle(k, *known(k))
            left -= nodes[k]
        if limits.over or limits.left == inf:
            break
        todo = [k for k in todo if not found[k].proved(parts[k])]
    return found


def divide(part: Work) -> int:
    """Divide a part's costs by what divides all of them, and return that.

    What then is still too large is divided by more and rounded down, so that bounds hold.
    """
    shared = {id(table): table for _, _, table in part.edges()}
    own = (part.costs[u] for u in part.left())
    unit = 0
    for costs in chain(own, *shared.values()):
        unit = gcd(unit, *[int(cost) for cost in costs if cost < inf])
        if unit == 1:
            break
    unit = max(unit, 1)
    size = part.size() // unit
    if size >= LARGEST:
        unit <<= (size // ROUNDED).bit_length()
    if unit == 1:
        return 1

    def divided(costs: Iterable[Cost]) -> list[Cost]:
        return [cost if cost == inf else cost // unit for cost in costs]

    tables = {k: tuple(tuple(divided(row)) for row in table) for k, table in shared.items()}
    for u in part.left():
        part.costs[u] = divided(part.costs[u])
    for u, v, table in list(part.edges()):
        part.put(u, v, tables[id(table)])
    return unit


def _solve_part(part: Work, limits: Limits, start: list[int] | None, stage: int) -> FoundLabels:
    """Solve a part by a stage, which goes on with the next one."""
    if limits.over:
        more = Limits(time.monotonic() + OVERTIME)  # haste may lead into a dead end
        given = _better(part, start) or construct(part, limits) or construct(part, more)
        return FoundLabels(given, part.bound())
    return STAGES[stage](part, limits, start)


def _better(work: Work, *candidates: list[int] | None) -> list[int] | None:
    """Return the first of the best of some labellings, ``None`` if none of them is allowed."""
    allowed = [labels for labels in candidates if labels and work.value(labels) < inf]
    return min(allowed, key=work.value, default=None)


def _worth(work: Work, labels: list[int] | None) -> int | None:
    """Return the cost of a labelling, ``None`` if there is none, or it is not allowed."""
    value = inf if labels is None else work.value(labels)
    return None if value == inf else int(value)


def _ascend(part: Work, limits: Limits, start: list[int] | None) -> FoundLabels:
    """Approach the linear relaxation by dual ascent, unless it is solved, and go on.

    There is a labelling before that, unless haste leads into a dead end.
    """
    hasty = None if _better(part, start) else construct(part, limits.within(0))
    best, bound = start if hasty is None else descend(part, hasty), part.bound()
    if not FoundLabels(best, bound).proved(part):
        best = _better(part, best, _unpaid(part, limits))
    if FoundLabels(best, bound).proved(part):
        return FoundLabels(best, bound)
    small = part.cells() <= CELLS
    if small and (found := _relaxed(part, limits, best)) is not None:
        return found
    from layoutopt.network.ascent import PricedRows, RowAscent

    begun = time.monotonic()

    def offer(labels: list[int]) -> float:
        nonlocal best
        best = _better(part, best, labels)
        return inf if best is None else part.value(best) - part.constant

    worth = inf if best is None else part.value(best) - part.constant
    limits.report("dual ascent", _worth(part, best), part.bound())
    try:
        ascent = RowAscent(part, PricedRows(), limits)
    except TimeoutError:
        return _solve_part(part, limits, best, 1)
    after = TIGHTENED * (time.monotonic() - begun)
    ascent.run(limits.within(min(SHARE * limits.left, limits.left - after)), offer, worth)
    worth = inf if best is None else part.value(best) - part.constant
    least = part.bound() - part.constant
    if worth < inf and ascent.bound - least < USEFUL * (worth - least):
        return _solve_part(part, limits, best, 2)
    return _continue(part, ascent.relaxed().messages, best, limits, 2 if small else 1)


def _unpaid(part: Work, limits: Limits) -> list[int] | None:
    """Search for a labelling that costs no more than the bound; ``None`` if none is found.

    The search is short where there are costs; without any a relaxation would prove nothing, but
    the first steps of dual ascent often find a labelling.
    """
    if not part.size():
        found = _first_ascended(part, limits)
        return solve_parts(part.copy(), limits, None, 3).labels if found is None else found
    if part.cells() > MOST_CELLS:  # search fails on larger ones
        return None
    allowed, turn = part.copy(), limits.silent().within(IMPROVED * limits.left).turn(SHORT)
    try:
        forbid(allowed, part.bound())
        return solve_parts(allowed, turn, None, 3).labels
    except Infeasible:
        return None


def _first_ascended(part: Work, limits: Limits) -> list[int] | None:
    """Return the first labelling that a few steps of dual ascent find, if any."""
    from layoutopt.network.ascent import PricedRows, RowAscent

    best: list[int] | None = None

    def offer(labels: list[int]) -> float:
        nonlocal best
        best = _better(part, best, labels)
        return inf if best is None else -inf  # it ends with the first one

    with suppress(TimeoutError):
        ascent = RowAscent(part, PricedRows(), limits)
        ascent.run(limits.within(IMPROVED * limits.left), offer, inf, STARTED)
    return best


def _relax(part: Work, limits: Limits, start: list[int] | None) -> FoundLabels:
    """Solve the linear relaxation, unless it is too large, and go on with what may be better."""
    found = _relaxed(part, limits, start) if part.cells() <= MOST_CELLS else None
    return _solve_part(part, limits, start, 2) if found is None else found


def _relaxed(part: Work, limits: Limits, start: list[int] | None) -> FoundLabels | None:
    """Go on from the solved relaxation; ``None`` if it is not solved in time, or infeasible."""
    limits.report("relaxation", _worth(part, start), part.bound())
    written = write(part)
    relaxed = relax(written.given, limits.within(SHARE * limits.left))
    if relaxed is None:
        return None
    wishes: list[dict[int, float]] = [{} for _ in part.costs]
    for u, own, shares in zip(written.nodes, written.labels, relaxed.point, strict=True):
        wishes[u] = dict(zip(own, [round(share, 6) for share in shares], strict=True))
    best = _better(part, start, construct(part, limits, wishes))
    return _continue(part, relaxed.messages, best, limits, 2)


def _continue(
    part: Work, messages: Sequence[Message], best: list[int] | None, limits: Limits, stage: int
) -> FoundLabels:
    """Forbid what messages prove to be worse than the best labelling, and solve the rest."""
    scale = max(1, min(SCALE, SCALED // (part.size() + 1)))
    try:
        tight = tighten(part, scale, messages, limits)
    except TimeoutError:
        return _solve_part(part, limits, best, stage)
    bound = -(-tight.constant // scale)
    if best is not None:
        if part.value(best) == bound:
            return FoundLabels(best, bound)
        forbid(tight, int(part.value(best)) * scale)
    limits.report("reductions", _worth(part, best), bound)
    told = limits.restated(lambda x: -(-x // scale), lambda x: -(-x // scale))
    found = solve_parts(tight, told, best, stage)
    return FoundLabels(_better(part, best, found.labels), max(bound, -(-found.bound // scale)))


def _polish(part: Work, limits: Limits, start: list[int] | None) -> FoundLabels:
    """Improve a labelling, and search for less.

    Outside turns, a short search comes first, as it often proves that nothing costs less; only then
    is the labelling improved at length.
    """
    best = _better(part, start)
    if best is None:
        return _search(part, limits, start)
    best = polish(part, best, limits.within(IMPROVED * limits.left))
    if limits.counted < inf:
        return _search_less(part, limits, best)
    tried = FoundLabels(best, part.bound())
    if part.cells() <= MOST_CELLS:  # search fails on larger ones
        tried = _search_less(part, limits.within(IMPROVED * limits.left).turn(SHORT), best)
        if limits.over or tried.proved(part):
            return tried
    best = tried.labels or best
    best = _improve(part, best, limits)
    found = _search_less(part, limits, best)
    return FoundLabels(found.labels, max(tried.bound, found.bound))


def _search_less(part: Work, limits: Limits, best: list[int]) -> FoundLabels:
    """Search for a labelling that costs less than the best one."""
    bound = part.bound()
    if limits.over or part.value(best) == bound:
        return FoundLabels(best, bound)
    smaller = part.copy()
    forbid(smaller, int(part.value(best)))
    found = solve_parts(smaller, limits, best, 3)
    return FoundLabels(_better(part, best, found.labels), found.bound)


def _improve(part: Work, labels: list[int], limits: Limits) -> list[int]:
    """Relabel nodes one by one and in parts, in turns, until neither finds less in its time."""
    share = IMPROVING if part.cells() <= MOST_CELLS else 1.0
    limits = limits.within(share * limits.left)
    length = limits.left / TURNS
    while not limits.over:
        before = part.value(labels)
        labels = tabu_search(part, labels, limits.within(length))
        turn = limits.within(length)
        labels = rebuild(part, labels, turn)
        if part.value(labels) == before and not turn.over:
            break
        limits = replace(limits, seed=limits.seed + 1)
    return labels


def rebuild(work: Work, labels: list[int], limits: Limits) -> list[int]:
    """Solve small parts, all other nodes keeping their labels; return the labels then."""
    labels, pairs = list(labels), work.cells()
    nearby, effort = Neighbourhoods(work, limits, size=PART), pairs / COVERED
    while effort > 0 and not limits.over and (nodes := nearby.next()):
        part, own = part_of(work, nodes, labels), [labels[u] for u in nodes]
        turn = limits.silent().turn(TURN)
        found = solve_parts(part.copy(), turn, own, 2).labels
        effort -= TURN - turn.counted + (OWN_CELLS + part.cells()) / SOLVED
        if found is not None and part.value(found) < part.value(own):
            nearby.better()
            for u, label in zip(nodes, found, strict=True):
                labels[u] = label
            limits.report("local search", int(work.value(labels)), work.bound())
    return labels


def _search(part: Work, limits: Limits, start: list[int] | None) -> FoundLabels:
    """Search by branching and CP-SAT in turns, if there is time to write a programme.

    CP-SAT has longer ones where most tables only forbid pairs of labels, as in graph colouring.
    """
    limits.report("search", _worth(part, start), part.bound())
    if limits.left < WRITING * part.cells():
        return FoundLabels(_better(part, start), part.bound())
    from layoutopt.network.solvers.cpsat import solve_programme

    written, best, bound = write(part, sparse=True), _better(part, start), int(part.bound())
    small, unit = coarse(written.given.programme)
    free = available_memory()
    effort, branches = TURN, limits.counted > TURN and (free is None or free > BRANCHING)
    few = len(small.upper) < MORE * written.given.first[-1]  # variables of pairs
    longer = LONGER if few else 1
    while True:  # where there is no branching, CP-SAT has a single turn without end
        turn, found = limits, None
        if branches:
            found = _branch(part, limits, best, int(STEPS * effort))
        if found is not None:
            best, bound = _better(part, best, found.labels), max(bound, found.bound)
            if limits.over or FoundLabels(best, bound).proved(part):
                return FoundLabels(best, bound)
            turn = limits.turn(effort * longer)
        last = turn.counted == limits.counted
        answer = solve_programme(small, turn, written.point(best), found=written.told(limits, unit))
        if answer.infeasible:
            raise Infeasible
        best = _better(part, best, written.chosen(answer.values))
        if answer.bound is not None:
            proved = written.cost(answer.bound, unit)
            bound = max(bound, proved)
            # branching whose bound is worse, and which found nothing, is over
            branches &= found is not None and (found.labels is not None or proved < found.bound)
        solved = answer.values is not None and answer.bound == small.value(answer.values)
        if solved or last or limits.over:
            return FoundLabels(best, bound)
        effort *= LONGER


def _branch(part: Work, limits: Limits, best: list[int] | None, most: int) -> FoundLabels | None:
    """Branch under bounds of mini-buckets; return a better labelling, and a bound.

    ``None`` if the part is too large.
    """
    if 2 * part.size() >= NEVER:
        return None
    factors, paid = factors_of(part)
    value = part.constant + part.size() + 1 if best is None else int(part.value(best))
    try:
        widths = {u: len(part.labels(u)) for u in part.left()}
        found = branch_and_bound(widths, factors, value - paid, limits.beside(paid), most)
    except SizeError:
        return None
    if found.complete and found.chosen is None and best is None:
        raise Infeasible
    labels = None if found.chosen is None else own_labels(part, found.chosen)
    return FoundLabels(labels, paid + found.bound)


STAGES = (_ascend, _relax, _polish, _search)
"""What is tried on parts that are not easy, one after the other."""


def solve_pbqp(
    network: Network, limits: Limits | None = None, start: IntArray | None = None
) -> CostAnswer:
    """Return a labelling of least cost, or the proof that none is allowed.

    The network has closed domains, no rows and no ties, and costs are minimised.  Where every node
    has two labels a minimum cut decides most; reductions, elimination on narrow parts, the linear
    relaxation and search solve the rest.  The answer is never worse than ``start``.  The gap of the
    limits is not used: small parts are proved one by one.
    """
    limits = limits or Limits()
    if start is not None and (why := network.fault(start)):
        raise InputError(f"the labelling to begin with is not allowed: {why}")
    try:
        found = _solve(network, limits, start)
    except Infeasible:
        if start is not None:
            raise InternalError("an allowed labelling contradicts infeasibility") from None
        return CostAnswer(infeasible=True)
    given = None if start is None else start.tolist()
    each = [labels for labels in (given, found.labels) if labels is not None]
    labels = min((np.array(own, np.int64) for own in each), key=network.cost, default=None)
    return answered(network, labels, found.bound, limits)


def answered(
    network: Network,
    labels: IntArray | None,
    bound: int,
    limits: Limits,
    proof: Proof | None = None,
) -> CostAnswer:
    """Return the answer of a labelling, if there is one, and a bound."""
    objective = None if labels is None else network.cost(labels)
    if objective is not None and objective < bound:
        raise InternalError(f"a labelling costs {objective}, less than the bound {bound}")
    stopped = Stopped.FINISHED
    if objective != bound:
        timed = limits.deadline < inf  # parts get shares of the time
        stopped = limits.stopped or (Stopped.TIME_LIMIT if timed else Stopped.SIZE_LIMIT)
    return CostAnswer(
        objective=objective, bound=bound, labelling=labels, stopped=stopped, proof=proof
    )


def _solve(network: Network, limits: Limits, start: IntArray | None) -> FoundLabels:
    cut = two_labels(network)
    if cut is None:
        begin = None if start is None else start.tolist()
        return solve_parts(work_of(network, Unlimited()), limits, begin)
    labels, left = cut.labels.copy(), np.flatnonzero(cut.labels < 0)
    if not len(left):
        return FoundLabels(labels.tolist(), cut.bound)
    rest = solve_parts(cut.rest, limits, None if start is None else start[left].tolist())
    bound = max(cut.bound, rest.bound)
    if rest.labels is None:
        return FoundLabels(None, bound)
    labels[left] = rest.labels
    return FoundLabels(labels.tolist(), bound)


def heuristic_pbqp(
    network: Network, limits: Limits | None = None, _start: IntArray | None = None
) -> CostAnswer:
    """Return a good labelling and a weak bound, or a bound alone, in short time."""
    limits = limits or Limits()
    try:
        work = work_of(network, Unlimited())
        reduce(work, limits)
    except Infeasible:
        return CostAnswer(infeasible=True)
    level(work)
    bound, labels = work.bound(), construct(work, limits)
    if labels is None:
        return CostAnswer(bound=bound)
    labels = polish(work, labels, limits)
    work.restore(labels)
    found = np.array(labels, np.int64)
    return CostAnswer(objective=network.cost(found), bound=bound, labelling=found)
