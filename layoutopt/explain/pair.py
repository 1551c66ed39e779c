"""Explanations of pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from msgspec import structs

from layoutopt.base import numbers
from layoutopt.base.limits import Limits, Progress, interruptible, limited
from layoutopt.base.numbers import number
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.check.elements import evaluate
from layoutopt.explain import words
from layoutopt.explain.explanation import Change, Obstacle, PairExplanation
from layoutopt.explain.subject import Subject, at_one_location, views_of
from layoutopt.explain.trials import ParametricSolves, Trial, TrialAnswer, most, won
from layoutopt.graphs.locations import Given, check_graph
from layoutopt.graphs.ops import Expand, Kind, UnwindingOp, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import fix_tiles, memory_of
from layoutopt.lowering.elements.groups import free_tensors, sources_of
from layoutopt.tiles.memory import MOST
from layoutopt.unwinding import unwind

NAMED = 3
"""Largest number of ops in a reason."""


def obstacles(graph: GraphStore, a: int, b: int, most: int, limits: Limits) -> tuple[Obstacle, ...]:
    """Return the obstacles of a pair; none if it can match everywhere, or if time runs out.

    Parameters
    ----------
    a, b
        The pair's tensors, by number.
    most
        Largest possible number of matching positions.
    """
    elements = size(graph.shapes[a])
    if most == elements:
        return ()
    if graph.tile_memory is not None:
        return _on_tiles(graph, a, b, most, limits)
    views = views_of(graph, [(a, b)])
    unordered = _most(views, limits)
    if unordered is None:
        return ()
    differ = _at_home(at_one_location(views)) - _at_home(views)
    return _told(
        (differ, _why_fixed(graph, a, b)),
        (elements - unordered - differ, _why_repeated(graph, a, b)),
        (unordered - most, _why_later(graph, a, b)),
    )


def _on_tiles(graph: GraphStore, a: int, b: int, most: int, limits: Limits) -> tuple[Obstacle, ...]:
    """Return the obstacles of a pair on a tile memory without hooks."""
    roomy = fix_tiles(graph)  # rules may look at grains
    roomy.pairs = [(a, b, Decimal(1))]
    roomy.tile_memory = structs.replace(memory_of(graph), bytes_per_tile=MOST, grain=1)
    unlimited = _most(roomy, limits)
    if unlimited is None:
        return ()
    return _told(
        (size(graph.shapes[a]) - unlimited, "tiles that are given differ"),
        (unlimited - most, "tiles hold too little, or a grain would have to be torn apart"),
    )


def _told(*reasons: tuple[int, str]) -> tuple[Obstacle, ...]:
    return tuple(Obstacle(count, why) for count, why in reasons if count)


def _most(graph: GraphStore, limits: Limits) -> int | None:
    """Maximise the matching positions of a graph's only pair; ``None`` if time runs out."""
    left = None if limits.left == math.inf else limits.left
    result = unwind(graph, time_limit=left, seed=limits.seed, workers=limits.workers)
    return result.pairs[0].matched if result.status is Status.OPTIMAL else None


def _at_home(graph: GraphStore) -> int:
    """Count the matching positions of the pair with all sinks at fresh locations."""
    layouts = {
        sink.name: ((sink.name, 0, 0, ((sink.size, 1, 1),)),) if sink.size else ()
        for sink in graph.sinks()
    }
    return evaluate(graph, layouts).pairs[0].matched


def _why_fixed(graph: GraphStore, a: int, b: int) -> str:
    free = free_tensors(graph, Given(graph))
    if free[a] or free[b]:
        return "both locations are fixed and differ"
    return "no sink reaches either side, and their locations differ"


def _why_repeated(graph: GraphStore, a: int, b: int) -> str:
    why = "one element stands at several positions, which want it at different locations"
    tensors = sources_of(graph, {a, b})
    repeats = _named(graph, tensors, lambda op: isinstance(op, Expand))
    return f"{why}; {repeats} repeats elements" if repeats else why


def _why_later(graph: GraphStore, a: int, b: int) -> str:
    tensors = sources_of(graph, {a, b})
    barriers = _named(graph, tensors, lambda op: op.kind is Kind.BARRIER)
    return f"barrier order: outputs of {barriers} are known only once such elements are"


def _named(graph: GraphStore, tensors: Iterable[int], suits: Callable[[UnwindingOp], bool]) -> str:
    """Return the names of the ops that produce tensors and satisfy a condition."""
    ops = (graph.ops[i] for i in dict.fromkeys(graph.producers[t] for t in tensors))
    names = [repr(op.id) for op in ops if suits(op)]
    return ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")


class Threshold(NamedTuple):
    """A value, and whether it is proved to be the least."""

    value: Fraction
    proved: bool


def least_value(trials: ParametricSolves, count: int, floor: int) -> Threshold:
    """Return the least value of the pair at which some optimum matches ``count`` positions.

    Parameters
    ----------
    count
        Required number of positions; layouts with it must be known.
    floor
        Least value to consider.
    """
    while True:
        value = _meeting(trials, count, Fraction(floor))
        values = trials.with_value(value)
        known = max(trial.worth(values) for trial in trials.found)
        answer = trials.best(values, "where choices change")
        if answer.trial is None or answer.trial.worth(values) <= known:
            return Threshold(value, answer.proved)


def _meeting(trials: ParametricSolves, count: int, floor: Fraction) -> Fraction:
    """Return the least value at which a line of large slope is maximal among the known ones."""
    lines = [(trial.matched[trials.own], _rest(trials, trial)) for trial in trials.found]
    steep = [line for line in lines if line[0] >= count]
    flat = [line for line in lines if line[0] < count]
    ahead = [[Fraction(r - rest, k - n) for n, r in flat] for k, rest in steep]
    return min(max([floor, *values]) for values in ahead)


def _rest(trials: ParametricSolves, trial: Trial) -> int:
    """Return the score of all other pairs."""
    return trial.worth(trials.with_value(0))


STEPS = 10**6
"""Limit of partial choices in a search."""


class Demand(NamedTuple):
    """Constraint: the amounts of chosen items, possibly negative, must reach a target."""

    amounts: Sequence[int]
    target: int


def fewest(demands: Sequence[Demand], things: int, limits: Limits) -> tuple[int, ...] | None:
    """Return the smallest set of items that meets all demands; ``None`` if there is none.

    Sizes are tried in increasing order.  The search branches on the items with positive amounts
    for an unmet demand, largest first, and excludes each item from later branches.  It prunes
    branches in which the largest remaining amounts do not suffice.

    Parameters
    ----------
    things
        Number of items.

    Raises
    ------
    TimeoutError
        If time runs out, or there are too many partial choices.
    """
    search = _Search(demands, limits)
    helpful = {i for i in range(things) if any(d.amounts[i] > 0 for d in demands)}
    for count in range(len(helpful) + 1):
        found = search.found(set(helpful), count)
        if found is not None:
            return tuple(sorted(found))
    return None


class _Search:
    """A search for sets of increasing size."""

    def __init__(self, demands: Sequence[Demand], limits: Limits) -> None:
        self.limits, self.left = limits, STEPS
        self.demands = [
            (d, sorted((i for i, x in enumerate(d.amounts) if x > 0), key=lambda i: -d.amounts[i]))
            for d in demands
        ]

    def found(self, allowed: set[int], number: int) -> list[int] | None:
        """Return at most ``number`` allowed items that meet all demands, or ``None``."""
        chosen: list[int] = []
        tried = self._to_try(chosen, allowed, number)
        stack = [] if tried is None else [(allowed, iter(tried))]
        while tried != [] and stack:
            allowed, rest = stack[-1]
            i = next(rest, None)
            if i is None:
                stack.pop()
                chosen = chosen[:-1]
                continue
            allowed.remove(i)
            tried = self._to_try([*chosen, i], allowed, number - len(chosen) - 1)
            if tried is not None:
                chosen.append(i)
                stack.append((set(allowed), iter(tried)))
        return chosen if tried == [] else None

    def _to_try(self, chosen: list[int], allowed: set[int], more: int) -> list[int] | None:
        """Return allowed items of which one must be added to the chosen ones.

        The list is empty if all demands are met; ``None`` if ``more`` items cannot meet them.
        """
        self.left -= 1
        if not self.left or self.limits.over:
            raise TimeoutError
        tried: list[int] = []
        for demand, order in self.demands:
            lack = demand.target - sum(demand.amounts[i] for i in chosen)
            helping = (demand.amounts[i] for i in order if i in allowed)
            if lack > sum(islice(helping, more)):
                return None
            if lack > 0 and not tried:
                tried = [i for i in order if i in allowed]
        return tried


TRIED = 30
"""Number of sets tried in increasing size; one if the pair's value is negative."""


class MinimumBlockers(NamedTuple):
    """Numbers of pairs, ``None`` if no set suffices or is known; and whether that is proved."""

    pairs: tuple[int, ...] | None
    proved: bool


def fewest_in_the_way(
    trials: ParametricSolves, limit: TrialAnswer, winner: Trial
) -> MinimumBlockers:
    """Return the smallest set of pairs whose removal makes winning the pair optimal.

    Parameters
    ----------
    limit
        Result of :func:`~layoutopt.explain.trials.most`.
    winner
        The best layouts that win the pair.
    """
    above = _for(trials, winner)
    try:
        return _from_below(trials, limit, winner, above)
    except TimeoutError:
        return MinimumBlockers(above.pairs, False)


def _for(trials: ParametricSolves, winner: Trial) -> MinimumBlockers:
    """Return the smallest set of pairs without which given layouts are optimal."""
    while True:
        demands = [_demand_for(trials, winner, other) for other in trials.found]
        try:
            pairs = fewest(demands, len(trials.values), trials.limits)
        except TimeoutError:
            return MinimumBlockers(None, False)
        if pairs is None:
            return MinimumBlockers(None, True)
        values = _without(trials, pairs)
        answer = trials.best(values, "without pairs in the way")
        if answer.trial is None:
            return MinimumBlockers(None, False)
        if answer.trial.worth(values) <= winner.worth(values):
            return MinimumBlockers(pairs, answer.proved)


def _from_below(
    trials: ParametricSolves, limit: TrialAnswer, winner: Trial, above: MinimumBlockers
) -> MinimumBlockers:
    """Exclude sets smaller than a known one, or find one that suffices.

    Raises
    ------
    TimeoutError
        If time runs out, or too many trials are needed.
    """
    tried: list[tuple[Collection[int], Trial]] = [((), winner)]
    for _ in range(TRIED if trials.values[trials.own] >= 0 else 1):
        demands = [_demand(trials, each, other) for each in tried for other in trials.found]
        pairs = fewest(demands, len(trials.values), trials.limits)
        if pairs is None:
            return MinimumBlockers(None, True)
        if above.pairs is not None and above.proved and len(pairs) == len(above.pairs):
            return above
        values = _without(trials, pairs)
        best = trials.best(values, "without fewer pairs")
        wins = won(trials, limit, values)
        if best.trial is None or wins.trial is None or not (best.proved and wins.proved):
            raise TimeoutError
        if wins.trial.worth(values) == best.trial.worth(values):
            return MinimumBlockers(pairs, True)
        tried.append((pairs, wins.trial))
    raise TimeoutError


def _without(trials: ParametricSolves, pairs: Collection[int]) -> list[int]:
    return [0 if n in pairs else value for n, value in enumerate(trials.values)]


def _demand_for(trials: ParametricSolves, winner: Trial, other: Trial) -> Demand:
    """Return the demands of other layouts on sets without which given ones are optimal."""
    matched = zip(trials.values, other.matched, winner.matched, strict=True)
    amounts = [v * (there - here) for v, there, here in matched]
    target = sum(amounts)
    amounts[trials.own] = 0
    return Demand(amounts, target)


def _demand(trials: ParametricSolves, tried: tuple[Collection[int], Trial], other: Trial) -> Demand:
    """Return the demands of other layouts on every sufficient set.

    Parameters
    ----------
    tried
        A set, and the best layouts that win the pair without it.
    """
    pairs, wins = tried
    target = other.worth(trials.values) - wins.worth(_without(trials, pairs))
    amounts = []
    each = zip(trials.values, other.matched, trials.elements, strict=True)
    for n, (value, matched, elements) in enumerate(each):
        low, high = sorted((0, value * elements))
        amounts.append(value * matched - (high if n in pairs else low))
        target -= high if n in pairs else 0
    amounts[trials.own] = 0
    return Demand(amounts, target)


def explain_pair(
    graph: GraphStore,
    result: UnwindingResult,
    a: Tensor | str,
    b: Tensor | str,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> PairExplanation:
    """Explain why a pair loses, the cost of winning it, and the changes that would win it.

    The graph is solved again a few times with modified values of pairs by
    :func:`~layoutopt.unwinding.unwind`; all layouts are evaluated by :mod:`layoutopt.check`.
    ``docs/explain.md`` defines all numbers.

    Parameters
    ----------
    graph
        The graph.
    result
        What is explained: layouts, and whether they are proved to be optimal.
    a, b
        The pair's tensors, in either order.
    time_limit
        Seconds for the whole call, none by default.
    seed, workers, progress
        As for :func:`~layoutopt.unwinding.unwind`.

    Returns
    -------
    PairExplanation
        With flags for numbers that are not proved.

    Raises
    ------
    InputError
        If there is no such pair, or the result has no layouts or belongs to another graph.
    SizeError
        If the graph is too irregular to be solved by classes, and too large by elements.
    """
    check_graph(graph)
    limits = limited(time_limit, seed=seed, workers=workers, progress=progress)
    with interruptible(limits):
        subject = Subject(graph, result, limits)
        return explained(subject, subject.index(a, b))


def explained(subject: Subject, pair: int) -> PairExplanation:
    """Explain a pair, by its number, within the limits."""
    trials = ParametricSolves(subject, pair)
    limit = most(trials)
    winner = _winner(trials, limit)
    told = _begun(subject, pair)
    if winner.trial is None:
        return replace(told, reason="time ran out before it was known how often it can match")
    if winner.trial is not trials.first:
        subject.confirm(winner.trial.layouts, trials.score(winner.trial))
    proved = limit.proved or winner.proved
    count = winner.trial.matched[trials.own]
    told = replace(
        told,
        most=count,
        most_proved=proved,
        alternative_score=trials.score(winner.trial),
        alternative_proved=winner.proved,
        changes=_changes(trials, winner.trial),
        layouts=None if winner.trial is trials.first else winner.trial.layouts,
    )
    if proved:
        found = obstacles(subject.graph, *subject.ends[pair], count, subject.limits)
        told = replace(told, obstacles=found)
    told = replace(told, reason=_reason(told))
    told = _with_thresholds(trials, told)
    return _with_smallest(trials, told, limit, winner.trial)


def _winner(trials: ParametricSolves, limit: TrialAnswer) -> TrialAnswer:
    """Return the best layouts that win the pair; the given ones if optimal and winning."""
    if limit.trial is None:
        return limit
    count, own = limit.trial.matched[trials.own], trials.first.matched[trials.own]
    if trials.subject.optimal and limit.proved and count == own:
        return TrialAnswer(trials.first, True)
    return won(trials, limit, trials.values)


def _begun(subject: Subject, pair: int) -> PairExplanation:
    now = subject.pair_score(pair)
    return PairExplanation(
        a=now.a,
        b=now.b,
        value=now.value,
        elements=now.elements,
        matched=now.matched,
        score=subject.score,
        status=subject.result.status,
    )


def _changes(trials: ParametricSolves, winner: Trial) -> tuple[Change, ...]:
    """Return gains and losses of all other pairs, largest losses first."""
    every = []
    for n, after in enumerate(winner.matched):
        now = trials.subject.pair_score(trials.numbers[n])
        if n != trials.own and after != now.matched and now.value:
            every.append(Change(now.a, now.b, now.value, now.matched, after))
    return tuple(sorted(every, key=lambda change: change.difference))


def _with_thresholds(trials: ParametricSolves, told: PairExplanation) -> PairExplanation:
    """Add the threshold values, if the pair can match at all."""
    proved, most_matched = told.alternative_proved, told.most or 0
    if not most_matched:
        return replace(told, threshold_proved=proved)
    own, unit = trials.values[trials.own], trials.subject.unit
    if most_matched > told.matched:
        more = least_value(trials, told.matched + 1, own)
        told = replace(told, threshold_more=more.value * unit)
        proved = proved and more.proved
    found = least_value(trials, most_matched, min(0, own))
    return replace(told, threshold=found.value * unit, threshold_proved=proved and found.proved)


def _with_smallest(
    trials: ParametricSolves, told: PairExplanation, limit: TrialAnswer, winner: Trial
) -> PairExplanation:
    """Add the smallest set of blocking pairs, if the alternative differs."""
    if told.layouts is None:
        return replace(told, smallest=(), smallest_proved=True) if told.alternative_proved else told
    found = fewest_in_the_way(trials, limit, winner)
    proved = found.proved and told.alternative_proved
    if found.pairs is None:
        return replace(told, smallest_proved=proved)
    pairs = tuple(trials.subject.pair_score(trials.numbers[n]) for n in found.pairs)
    return replace(told, smallest=pairs, smallest_proved=proved)


def _reason(told: PairExplanation) -> str:
    """Return the reason for a pair's matches as a sentence."""
    if not told.elements:
        return "it has no positions"
    if told.matched == told.elements:
        return "it matches everywhere"
    barred = [f"at {words.positions(x.positions)} {x.why}" for x in told.obstacles]
    reason = "; ".join([_balance(told), *barred])
    if not told.most and len(told.obstacles) == 1:
        reason = f"it can match nowhere: {told.obstacles[0].why}"
    return reason + words.sure(told.most_proved and told.alternative_proved)


def _balance(told: PairExplanation) -> str:
    """Return gain and cost of winning a pair that is not won."""
    gained = (told.most or 0) - told.matched
    if gained <= 0:
        return "it matches wherever it can" if told.most else "it can match nowhere"
    earned = f"would earn {number(numbers.times(told.value, gained))}"
    others = numbers.total(change.difference for change in told.gains)
    if others:
        earned += f", with {number(others)} of other pairs,"
    lost = [
        (change.difference.copy_negate(), words.paired(change.a, change.b))
        for change in told.losses
    ]
    more = words.positions(gained, more=bool(told.matched))
    ending = "; that would be as good" if told.cost == 0 else ""
    if told.cost is not None and told.cost < 0:
        ending = "; that would be better, these layouts are not optimal"
    return f"winning {more} {earned} and {words.costs(lost)}{ending}"
