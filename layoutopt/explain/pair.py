"""Explanations of pairs, by parametric solves: the optimum under other values of one pair.

The numbers of matching positions of layouts do not depend on values.  So layouts found for some
values are candidates for all others, and their scores there are sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import NamedTuple, TypeAlias

from layoutopt.base import numbers
from layoutopt.base.errors import InputError, InternalError
from layoutopt.base.limits import Limits, Progress, callbacks_raise, interruptible, limited
from layoutopt.base.numbers import counted, number
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.check.elements import evaluate
from layoutopt.explain.explanation import Change, PairExplanation, listed, paired, sure
from layoutopt.explain.subject import Subject, obstacles
from layoutopt.graphs.locations import LayoutDict, check_graph
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.unwinding import unwind

STEP = 1000  # factor by which the pair's value is increased if the last increase was insufficient


def most(trials: ParametricSolves) -> TrialAnswer:
    """Return layouts that maximise the matching positions of the pair."""
    return trials.best(trials.with_value(1, [0] * len(trials.values)), "as many as can match")


def won(trials: ParametricSolves, limit: TrialAnswer, values: Sequence[int]) -> TrialAnswer:
    """Return the best layouts that win the pair, of which :func:`most` found ``limit``.

    Its value is increased until the optimum wins it.  A value above the sum of all others always
    suffices; smaller ones, tried first, keep numbers small.
    """
    own = trials.own
    rest = [0 if n == own else abs(value) for n, value in enumerate(values)]
    sufficient = 1 + sum(v * n for v, n in zip(rest, trials.elements, strict=True))
    known = limit.trial.matched[own] if limit.trial and limit.proved else None
    value = 1 + sum(rest)
    while True:
        value = min(value, sufficient)
        answer = trials.best(trials.with_value(value, values), "winning the pair")
        if answer.trial is None:
            break
        if answer.proved and (value == sufficient or answer.trial.matched[own] == known):
            return answer
        if value == sufficient:
            break
        value *= STEP
    return TrialAnswer(max(trials.found, key=lambda x: (x.matched[own], x.worth(values))), False)


@dataclass(frozen=True, eq=False)
class Trial:
    """Layouts of the whole graph, and numbers of matching positions of each pair in reach."""

    matched: tuple[int, ...]
    layouts: LayoutDict

    def worth(self, values: Sequence[int]) -> int:
        """Return the score of these pairs under other values."""
        return sum(v * m for v, m in zip(values, self.matched, strict=True))


class TrialAnswer(NamedTuple):
    """The best layouts for some values, if any were found, and whether that is proved."""

    trial: Trial | None
    proved: bool


class ParametricSolves:
    """Solves of the part of the subject that a pair can influence, under changed values.

    ``numbers`` are the subject's numbers of the pairs in reach; ``own`` (the pair itself),
    ``values`` (multiples of a unit) and ``elements`` number them from 0.  ``first`` are the
    explained layouts, ``found`` all layouts found, these first.
    """

    def __init__(self, subject: Subject, pair: int) -> None:
        self.subject, self.limits = subject, subject.limits
        self.numbers, self._sinks, self._graph = subject.reach(pair)
        self.own = self.numbers.index(pair)
        self.values = [subject.values[n] for n in self.numbers]
        self.elements = [subject.elements[n] for n in self.numbers]
        matched = tuple(subject.matched[n] for n in self.numbers)
        self.first = Trial(matched, subject.layouts)
        self.found = [self.first]
        self._answers: dict[tuple[int, ...], TrialAnswer] = {}
        if subject.optimal:
            self._answers[_key(self.values)] = TrialAnswer(self.first, True)

    def score(self, trial: Trial) -> Decimal:
        """Return the total score of layouts."""
        change = trial.worth(self.values) - self.first.worth(self.values)
        return numbers.total([self.subject.score, self.subject.amount(change)])

    def with_value(self, value: Fraction | int, values: Sequence[int] | None = None) -> list[int]:
        """Return values with another value of the pair itself, scaled to integers."""
        exact = Fraction(value)
        before = self.values if values is None else values
        found = [v * exact.denominator for v in before]
        found[self.own] = exact.numerator
        return found

    def best(self, values: Sequence[int], what: str) -> TrialAnswer:
        """Solve the graph with other values; answers are cached, and ``what`` is for progress."""
        key = _key(values)
        if key not in self._answers:
            self._answers[key] = self._solved(key, what)
        return self._answers[key]

    def _solved(self, values: Sequence[int], what: str) -> TrialAnswer:
        limits = self.limits
        if limits.over:
            return TrialAnswer(None, False)

        def tell(message: Progress) -> None:
            limits.report(f"{what}: {message.phase}")

        result = unwind(
            self._with_values(values),
            time_limit=None if limits.left == math.inf else limits.left,
            seed=limits.seed,
            workers=limits.workers,
            progress=None if limits.tell is None else tell,
        )
        if result.layouts is None:
            return TrialAnswer(None, False)
        trial = self._judged(result.layouts)
        if trial.worth(values) != result.score:
            raise InternalError(f"layouts earn {trial.worth(values)}, not {result.score}")
        self.found.append(trial)
        return TrialAnswer(trial, result.status is Status.OPTIMAL)

    def _with_values(self, values: Sequence[int]) -> GraphStore:
        """Return the graph of the pairs in reach with other values, without those of value 0."""
        found = deepcopy(self._graph)
        pairs = zip(self._graph.pairs, values, strict=True)
        found.pairs = [(a, b, Decimal(value)) for (a, b, _), value in pairs if value]
        return found

    def _judged(self, layouts: LayoutDict) -> Trial:
        """Evaluate layouts by the specification, and check them against the result's bound."""
        checked = evaluate(self._graph, layouts)
        if checked.violations:
            raise InternalError(f"the layouts break a rule: {checked.violations[0]}")
        chosen = {name: layout for name, layout in layouts.items() if name in self._sinks}
        matched = tuple(pair.matched for pair in checked.pairs)
        trial = Trial(matched, self.first.layouts | chosen)
        bound, score = self.subject.bound, self.score(trial)
        if bound is not None and bound < score:
            told = f"its bound is {number(Decimal(bound))}, but layouts that earn {number(score)}"
            raise InputError(f"the result is of another graph: {told} were found")
        return trial


def _key(values: Sequence[int]) -> tuple[int, ...]:
    """Return values divided by their greatest common divisor."""
    common = math.gcd(*values) or 1
    return tuple(value // common for value in values)


def least_value(trials: ParametricSolves, count: int, floor: int) -> tuple[Fraction, bool]:
    """Return the least value from ``floor`` on at which some optimum matches ``count`` positions.

    Also return whether that is proved.  Layouts that match the pair at so many positions must be
    known: each is a line ``matched * value + rest``, and the first value is sought at which a line
    of such a slope is not below the others; solves there add lines.
    """
    while True:
        lines = [
            (trial.matched[trials.own], trial.worth(trials.with_value(0))) for trial in trials.found
        ]
        steep = [line for line in lines if line[0] >= count]
        flat = [line for line in lines if line[0] < count]
        ahead = [[Fraction(r - rest, k - n) for n, r in flat] for k, rest in steep]
        value = min(max([Fraction(floor), *values]) for values in ahead)
        values = trials.with_value(value)
        known = max(trial.worth(values) for trial in trials.found)
        answer = trials.best(values, "where choices change")
        if answer.trial is None or answer.trial.worth(values) <= known:
            return value, answer.proved


STEPS = 10**6  # limit of partial choices in a search


class Demand(NamedTuple):
    """Constraint: the amounts of chosen items, possibly negative, must reach a target."""

    amounts: Sequence[int]
    target: int


def fewest(demands: Sequence[Demand], things: int, limits: Limits) -> tuple[int, ...] | None:
    """Return the smallest set of items that meets all demands; ``None`` if there is none.

    Sizes are tried in increasing order, of sets with all items that no demand can do without.  The
    search branches on the items with positive amounts
    for an unmet demand, largest first, and excludes each item from later branches.  It prunes
    branches in which the largest remaining amounts do not suffice.  TimeoutError ends it.
    """
    forced = _forced(demands)
    if forced is None:
        return None
    search = _Search(demands, limits)
    helpful = {i for i in range(things) if any(d.amounts[i] > 0 for d in demands)} - forced
    for count in range(len(helpful) + 1):
        found = search.found(sorted(forced), set(helpful), count)
        if found is not None:
            return tuple(sorted(found))
    return None


def _forced(demands: Sequence[Demand]) -> set[int] | None:
    """Return items that are in every set that meets all demands; ``None`` if there is no set."""
    forced, before = set[int](), -1
    while before < len(forced):
        before = len(forced)
        for amounts, target in demands:
            lack = target - sum(amounts[i] for i in forced)
            free = [i for i, x in enumerate(amounts) if x > 0 and i not in forced]
            most = sum(amounts[i] for i in free)
            if most < lack:
                return None
            if lack > 0:
                forced.update(i for i in free if most - amounts[i] < lack)
    return forced


class _Search:
    """A search for sets of increasing size."""

    def __init__(self, demands: Sequence[Demand], limits: Limits) -> None:
        self.limits, self.left = limits, STEPS
        self.demands = [
            (d, sorted((i for i, x in enumerate(d.amounts) if x > 0), key=lambda i: -d.amounts[i]))
            for d in demands
        ]

    def found(self, forced: list[int], allowed: set[int], number: int) -> list[int] | None:
        """Return at most ``number`` allowed items that meet all demands with the forced ones."""
        chosen, number = list(forced), number + len(forced)
        tried = self._to_try(chosen, allowed, number - len(chosen))
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


TRIED = 30  # number of sets tried in increasing size; one if the pair's value is negative


Blockers: TypeAlias = tuple[tuple[int, ...] | None, bool]
"""Numbers of pairs, ``None`` if no set suffices or is known; and whether that is proved."""


def fewest_in_the_way(trials: ParametricSolves, limit: TrialAnswer, winner: Trial) -> Blockers:
    """Return the smallest set of pairs whose removal makes winning the pair optimal.

    ``limit`` is by :func:`most`, ``winner`` by :func:`won`.
    """
    above = _for(trials, winner)
    try:
        return _from_below(trials, limit, winner, above)
    except TimeoutError:
        return above[0], False


def _for(trials: ParametricSolves, winner: Trial) -> Blockers:
    """Return the smallest set of pairs without which given layouts are optimal."""
    while True:
        demands = [_demand_for(trials, winner, other) for other in trials.found]
        try:
            pairs = fewest(demands, len(trials.values), trials.limits)
        except TimeoutError:
            return None, False
        if pairs is None:
            return None, True
        values = _without(trials, pairs)
        answer = trials.best(values, "without pairs in the way")
        if answer.trial is None:
            return None, False
        if answer.trial.worth(values) <= winner.worth(values):
            return pairs, answer.proved


def _from_below(
    trials: ParametricSolves, limit: TrialAnswer, winner: Trial, above: Blockers
) -> Blockers:
    """Exclude sets smaller than a known one, or find one that suffices; or raise TimeoutError."""
    tried: list[tuple[Collection[int], Trial]] = [((), winner)]
    for _ in range(TRIED if trials.values[trials.own] >= 0 else 1):
        demands = [_demand(trials, each, other) for each in tried for other in trials.found]
        pairs = fewest(demands, len(trials.values), trials.limits)
        if pairs is None:
            return None, True
        known, proved = above
        if known is not None and proved and len(pairs) == len(known):
            return above
        values = _without(trials, pairs)
        best = trials.best(values, "without fewer pairs")
        wins = won(trials, limit, values)
        if best.trial is None or wins.trial is None or not (best.proved and wins.proved):
            raise TimeoutError
        if wins.trial.worth(values) == best.trial.worth(values):
            return pairs, True
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

    A set was tried, and the best layouts that win the pair without it are known.
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
    with callbacks_raise(limits), interruptible(limits):
        subject = Subject(graph, result, limits)
        return explained(subject, subject.index(a, b))


def explained(subject: Subject, pair: int) -> PairExplanation:
    """Explain a pair, by its number, within the limits."""
    trials = ParametricSolves(subject, pair)
    limit = most(trials)
    winner = _winner(trials, limit)
    now = subject.pair_score(pair)
    told = PairExplanation(**vars(now), score=subject.score, status=subject.result.status)
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


def _changes(trials: ParametricSolves, winner: Trial) -> tuple[Change, ...]:
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
        more, sure_more = least_value(trials, told.matched + 1, own)
        told = replace(told, threshold_more=more * unit)
        proved = proved and sure_more
    earned = sum(abs(v) * n for v, n in zip(trials.values, trials.elements, strict=True))
    floor = -1 - earned if own < 0 else 0  # below 0, where as few positions as possible match
    least, sure_least = least_value(trials, most_matched, floor)
    threshold = None if least == floor < 0 else least * unit
    return replace(told, threshold=threshold, threshold_proved=proved and sure_least)


def _with_smallest(
    trials: ParametricSolves, told: PairExplanation, limit: TrialAnswer, winner: Trial
) -> PairExplanation:
    """Add the smallest set of blocking pairs, if the alternative differs."""
    if told.layouts is None:
        return replace(told, smallest=(), smallest_proved=True) if told.alternative_proved else told
    found, proved = fewest_in_the_way(trials, limit, winner)
    smallest = None
    if found is not None:
        smallest = tuple(trials.subject.pair_score(trials.numbers[n]) for n in found)
    proved = proved and told.alternative_proved
    return replace(told, smallest=smallest, smallest_proved=proved)


def _reason(told: PairExplanation) -> str:
    if not told.elements:
        return "it has no positions"
    if told.matched == told.elements:
        return "it matches everywhere"
    barred = [f"at {counted(x.positions, 'position')} {x.why}" for x in told.obstacles]
    reason = "; ".join([_balance(told), *barred])
    if not told.most and len(told.obstacles) == 1:
        reason = f"it can match nowhere: {told.obstacles[0].why}"
    return reason + sure(told.most_proved and told.alternative_proved)


def _balance(told: PairExplanation) -> str:
    """Return gain and cost of winning a pair that is not won."""
    gained = (told.most or 0) - told.matched
    if gained <= 0:
        return "it matches wherever it can" if told.most else "it can match nowhere"
    gain = f"would gain {number(numbers.times(told.value, gained))}"
    others = numbers.total(change.difference for change in told.gains)
    if others:
        gain += f", and {number(others)} on other pairs,"
    more = counted(gained, "more position" if told.matched else "position")
    ending = "; that would be as good" if told.cost == 0 else ""
    if told.cost is not None and told.cost < 0:
        ending = "; that would be better, these layouts are not optimal"
    return f"matching {more} {gain} {_costs(told.losses)}{ending}"


def _costs(losses: Sequence[Change]) -> str:
    """Return the total loss, and the losses by pair, as text."""
    if not losses:
        return "and lose nothing"
    lost = [(change.difference.copy_negate(), paired(change.a, change.b)) for change in losses]
    total = number(numbers.total(loss for loss, _ in lost))
    if len(lost) == 1:
        return f"but lose {total} on {lost[0][1]}"
    return f"but lose {total}: {listed([f'{number(loss)} on {pair}' for loss, pair in lost])}"
