"""The fewest other pairs that must be worth nothing for winning a pair to be optimal.

Without the pairs in a set ``S``, let ``T(X, S)`` be what layouts ``X`` earn, and ``G(S)`` the most
that layouts earn which win the pair.  ``S`` suffices if ``G(S) >= T(X, S)`` for all ``X``.  Which
sets do is found by implicit hitting sets (Karp and Moreno-Centeno, *The implicit hitting set
approach to solve combinatorial optimization problems*, Oper. Res. 61, 2013): the smallest set that
meets all demands known so far is tried, by solving the graph without its pairs, and what it fails
by is one more demand.

*Above*: for given winning layouts ``W``, a set for which ``T(W, S) >= T(X, S)``, that is::

    sum over p in S of v[p] * (m[p](X) - m[p](W)) >= T(X) - T(W)

*Below*: from any set ``Q`` tried before, as layouts earn 0 to ``v[p] * n[p]`` of each pair,
``G(S) <= G(Q) + sum over p in Q but not S of v[p] * n[p]``, and so every sufficient ``S`` has::

    sum over p in S of v[p] * m[p](X) + sum over p in Q but not S of v[p] * n[p] >= T(X) - G(Q)

with the two limits exchanged where ``v[p]`` is negative.  A set from above is proved to be the
smallest when all smaller ones are ruled out from below.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from layoutopt.explain.hitting import Demand, fewest
from layoutopt.explain.trials import Answer, Trial, Trials
from layoutopt.explain.winning import won

TRIED = 30
"""How many sets are tried from below; one if the pair's value is negative, as few suffice then."""


class Fewest(NamedTuple):
    """Pairs by number, ``None`` if no set suffices or none is known; whether that is proved."""

    pairs: tuple[int, ...] | None
    proved: bool


def fewest_in_the_way(trials: Trials, limit: Answer, winner: Trial) -> Fewest:
    """Return the fewest pairs that must be worth nothing for winning the pair to be optimal.

    Parameters
    ----------
    limit
        What :func:`~layoutopt.explain.winning.most` says.
    winner
        The best of all layouts that win the pair.
    """
    above = _for(trials, winner)
    try:
        return _from_below(trials, limit, winner, above)
    except TimeoutError:
        return Fewest(above.pairs, False)


def _for(trials: Trials, winner: Trial) -> Fewest:
    """Return the fewest pairs without which given layouts are optimal."""
    while True:
        demands = [_demand_for(trials, winner, other) for other in trials.found]
        try:
            pairs = fewest(demands, len(trials.values), trials.limits)
        except TimeoutError:
            return Fewest(None, False)
        if pairs is None:
            return Fewest(None, True)
        values = _without(trials, pairs)
        answer = trials.best(values, "without pairs in the way")
        if answer.trial is None:
            return Fewest(None, False)
        if answer.trial.worth(values) <= winner.worth(values):
            return Fewest(pairs, answer.proved)


def _from_below(trials: Trials, limit: Answer, winner: Trial, above: Fewest) -> Fewest:
    """Rule out sets smaller than a known one, or find one that suffices.

    Raises
    ------
    TimeoutError
        If that is not done in time, or takes too many tries.
    """
    tried: list[tuple[Collection[int], Trial]] = [((), winner)]
    for _ in range(TRIED if trials.values[trials.own] >= 0 else 1):
        demands = [_demand(trials, each, other) for each in tried for other in trials.found]
        pairs = fewest(demands, len(trials.values), trials.limits)
        if pairs is None:
            return Fewest(None, True)
        if above.pairs is not None and above.proved and len(pairs) == len(above.pairs):
            return above
        values = _without(trials, pairs)
        best = trials.best(values, "without fewer pairs")
        wins = won(trials, limit, values)
        if best.trial is None or wins.trial is None or not (best.proved and wins.proved):
            raise TimeoutError
        if wins.trial.worth(values) == best.trial.worth(values):
            return Fewest(pairs, True)
        tried.append((pairs, wins.trial))
    raise TimeoutError


def _without(trials: Trials, pairs: Collection[int]) -> list[int]:
    return [0 if n in pairs else value for n, value in enumerate(trials.values)]


def _demand_for(trials: Trials, winner: Trial, other: Trial) -> Demand:
    """Return what other layouts demand of a set without which given ones are optimal."""
    matched = zip(trials.values, other.matched, winner.matched, strict=True)
    amounts = [v * (there - here) for v, there, here in matched]
    target = sum(amounts)
    amounts[trials.own] = 0
    return Demand(amounts, target)


def _demand(trials: Trials, tried: tuple[Collection[int], Trial], other: Trial) -> Demand:
    """Return what other layouts demand of every sufficient set.

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
