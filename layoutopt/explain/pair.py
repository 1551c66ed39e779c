"""Why a pair matches where it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from layoutopt import decimals
from layoutopt.explain import words
from layoutopt.explain.obstacles import obstacles
from layoutopt.explain.smallest import fewest_in_the_way
from layoutopt.explain.subject import Subject
from layoutopt.explain.threshold import least_value
from layoutopt.explain.told import Change, PairExplanation
from layoutopt.explain.trials import Answer, Trial, Trials
from layoutopt.explain.winning import most, won
from layoutopt.graphs.layouts import check_graph
from layoutopt.graphs.store import Store
from layoutopt.graphs.tensor import Tensor
from layoutopt.limits import Progress, interruptible, limited
from layoutopt.pictures.text import number
from layoutopt.result import UnwindingResult


def explain_pair(
    graph: Store,
    result: UnwindingResult,
    a: Tensor | str,
    b: Tensor | str,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> PairExplanation:
    """Say why a pair loses, what it would cost to win it, and what would have to change for that.

    The graph is solved a few times more, with other values of its pairs, by
    :func:`~layoutopt.unwinding.unwind`; all layouts that come up are counted by
    :mod:`layoutopt.check`.  ``docs/explain.md`` states what each number means.

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
        What is not proved when time runs out says so.

    Raises
    ------
    InputError
        If there is no such pair, or the result has no layouts or is of another graph.
    SizeError
        If the graph is too irregular to be solved by classes, and too large for memory.
    """
    check_graph(graph)
    limits = limited(time_limit, seed=seed, workers=workers, progress=progress)
    with interruptible(limits):
        subject = Subject(graph, result, limits)
        return explained(subject, subject.index(a, b))


def explained(subject: Subject, pair: int) -> PairExplanation:
    """Return all that can be said of a pair, by its number, in the time that is left."""
    trials = Trials(subject, pair)
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


def _winner(trials: Trials, limit: Answer) -> Answer:
    """Return the best layouts that win the pair: the given ones, if they are optimal and do."""
    if limit.trial is None:
        return limit
    count, own = limit.trial.matched[trials.own], trials.first.matched[trials.own]
    if trials.subject.optimal and limit.proved and count == own:
        return Answer(trials.first, True)
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


def _changes(trials: Trials, winner: Trial) -> tuple[Change, ...]:
    """Return what all other pairs gain and lose, the largest losses first."""
    every = []
    for n, after in enumerate(winner.matched):
        now = trials.subject.pair_score(trials.numbers[n])
        if n != trials.own and after != now.matched and now.value:
            every.append(Change(now.a, now.b, now.value, now.matched, after))
    return tuple(sorted(every, key=lambda change: change.difference))


def _with_thresholds(trials: Trials, told: PairExplanation) -> PairExplanation:
    """Add the values at which choices change, if the pair can match at all."""
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
    trials: Trials, told: PairExplanation, limit: Answer, winner: Trial
) -> PairExplanation:
    """Add which other pairs stand in the way, if the alternative is another."""
    if told.layouts is None:
        return replace(told, smallest=(), smallest_proved=True) if told.alternative_proved else told
    found = fewest_in_the_way(trials, limit, winner)
    proved = found.proved and told.alternative_proved
    if found.pairs is None:
        return replace(told, smallest_proved=proved)
    pairs = tuple(trials.subject.pair_score(trials.numbers[n]) for n in found.pairs)
    return replace(told, smallest=pairs, smallest_proved=proved)


def _reason(told: PairExplanation) -> str:
    """Return in a sentence why a pair matches where it does."""
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
    """Return what winning a pair would earn and cost, if it is not won."""
    gained = (told.most or 0) - told.matched
    if gained <= 0:
        return "it matches wherever it can" if told.most else "it can match nowhere"
    earned = f"would earn {number(decimals.times(told.value, gained))}"
    others = decimals.total(change.difference for change in told.gains)
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
