"""Parametric solves: the optimum under other values of one pair.

The numbers of matching positions of layouts do not depend on values.  So layouts found for some
values are candidates for all others, and their scores there are sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from layoutopt.base import numbers
from layoutopt.base.errors import InputError, InternalError
from layoutopt.base.limits import Progress
from layoutopt.base.numbers import number
from layoutopt.base.result import Status
from layoutopt.check.elements import evaluate
from layoutopt.explain.subject import Subject
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.kinds import LayoutDict
from layoutopt.unwinding import unwind

STEP = 1000
"""Factor by which the pair's value is increased if the last increase was insufficient."""


def most(trials: ParametricSolves) -> TrialAnswer:
    """Return layouts that maximise the matching positions of the pair."""
    return trials.best(trials.with_value(1, [0] * len(trials.values)), "as many as can match")


def won(trials: ParametricSolves, limit: TrialAnswer, values: Sequence[int]) -> TrialAnswer:
    """Return the best layouts that win the pair.

    Its value is increased until the optimum wins it.  A value above the sum of all others always
    suffices; smaller ones, tried first, keep numbers small.

    Parameters
    ----------
    limit
        Result of :func:`most`.
    values
        Values of all pairs.
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
    """Solves of the part that a pair can influence, under changed values.

    Parameters
    ----------
    subject
        The explained layouts.
    pair
        The pair's number there.

    Attributes
    ----------
    numbers
        Numbers, in the subject, of the pairs in reach; other attributes number them from 0.
    own
        The pair itself.
    values, elements
        Values, as multiples of a unit, and positions of the pairs in reach.
    first
        The explained layouts.
    found
        All layouts found, the explained ones first.
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
        """Solve the graph with other values; answers are cached.

        Parameters
        ----------
        what
            Purpose of the solve, for progress messages.
        """
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
