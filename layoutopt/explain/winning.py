"""Winning a pair: at how many positions it can match, and the best that can be done then."""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.explain.trials import Answer, Trials

STEP = 1000
"""By how much the pair's value is raised where one raise was too little."""


def most(trials: Trials) -> Answer:
    """Return layouts in which the pair matches at as many positions as it can."""
    return trials.best(trials.with_value(1, [0] * len(trials.values)), "as many as can match")


def won(trials: Trials, limit: Answer, values: Sequence[int]) -> Answer:
    """Return the best of all layouts in which the pair matches at as many positions as it can.

    Its value is raised until the optimum does.  Raised above all that other pairs can earn and
    cost, it comes first whatever they are worth; a smaller value that does is as good, and keeps
    numbers small.

    Parameters
    ----------
    limit
        What :func:`most` says.
    values
        What all pairs are worth.
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
    return Answer(max(trials.found, key=lambda x: (x.matched[own], x.worth(values))), False)
