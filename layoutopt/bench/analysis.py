"""Analyses of rows: summaries by solver, and differences between two batch runs beyond noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import TypeAlias, TypeVar

from layoutopt.base import numbers
from layoutopt.base.result import Status
from layoutopt.bench.row import FAILED, Row, canonical

Key = TypeVar("Key")

SHIFT = 1.0  # shift of geometric means of times, in seconds

Task: TypeAlias = tuple[str, str, str]
"""Key of rows with comparable scores: instance hash, version, machine."""


@dataclass(frozen=True)
class Summary:
    """Summary of one solver on all its instances, for one version and machine.

    Parameters
    ----------
    solves
        Number of rows.
    optimal, feasible, infeasible, unknown, failed
        Number of rows of each status.
    gap
        Mean gap of the rows that have one, except those of score 0; ``None`` without any.
    seconds
        Shifted geometric mean of the wall-clock seconds (:func:`shifted_mean`); a row without
        an answer (``unknown`` or ``failed``) counts with its time limit, if that is longer.
    behind
        Number of rows whose score is below the best of any solver on their instance, or that
        have none although another solver has.
    loss
        Mean of ``min(1, (best - score) / max(|best|, 1e-9))`` over the rows with a score.
    """

    solver: str
    version: str
    machine: str
    solves: int
    optimal: int
    feasible: int
    infeasible: int
    unknown: int
    failed: int
    gap: float | None
    seconds: float
    behind: int
    loss: float | None


def shifted_mean(seconds: Sequence[float], shift: float = SHIFT) -> float:
    """Return the shifted geometric mean, ``exp(mean(log(t + shift))) - shift``.

    The shift limits the weight of times near 0.
    """
    return math.exp(math.fsum(math.log(t + shift) for t in seconds) / len(seconds)) - shift


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """Return a summary for each solver, version and machine, in alphabetical order."""
    best = best_scores(rows)
    groups = _grouped(rows, lambda row: (row.solver, row.version, row.machine))
    return [_summary(groups[group], best) for group in sorted(groups)]


def _grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Return rows by key, both in their order."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def best_scores(rows: Iterable[Row]) -> dict[Task, Decimal]:
    """Return the best score of any solver by instance, version and machine, if any."""
    best: dict[Task, Decimal] = {}
    for row in rows:
        if row.score is not None:
            best[_task(row)] = max(row.score, best.get(_task(row), row.score))
    return best


def loss(row: Row, best: dict[Task, Decimal]) -> float | None:
    """Return ``(best - score) / max(|best|, 1e-9)``; ``None`` without a score."""
    top = best_of(row, best)
    if row.score is None or top is None:
        return None
    return numbers.relative(numbers.difference(top, row.score), top)


def best_of(row: Row, best: dict[Task, Decimal]) -> Decimal | None:
    """Return the best score on a row's instance; ``None`` without any."""
    return best.get(_task(row))


def _task(row: Row) -> Task:
    return row.instance_hash, row.version, row.machine


def _summary(rows: list[Row], best: dict[Task, Decimal]) -> Summary:
    count = {str(status): 0 for status in (*Status, FAILED)} | Counter(row.status for row in rows)
    gaps = [gap for row in rows if (gap := row.gap) is not None and (row.score or not gap)]
    losses = [lost for row in rows if (lost := loss(row, best)) is not None]
    unanswered = sum(row.score is None and _task(row) in best for row in rows)
    return Summary(
        solver=rows[0].solver,
        version=rows[0].version,
        machine=rows[0].machine,
        solves=len(rows),
        gap=_mean(gaps),
        seconds=shifted_mean([_charged(row) for row in rows]),
        behind=sum(lost > 0 for lost in losses) + unanswered,
        loss=_mean([min(lost, 1.0) for lost in losses]),
        **count,
    )


def _charged(row: Row) -> float:
    """Return the seconds that a row counts with."""
    if row.status not in (FAILED, Status.UNKNOWN):
        return row.seconds
    limit = row.parameters.get("time_limit")
    return max(row.seconds, limit) if isinstance(limit, float) else row.seconds


def _mean(numbers: Sequence[float]) -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


NOISE = 1.2  # smallest factor between times that counts as a change
SINGLE = 1.5  # the same if a side was measured only once, so that its spread is unknown
LEAST = 0.05  # seconds: times that differ by less are equal
SAMPLES = 2000  # number of bootstrap samples
ENOUGH = 5  # least number of instances for a mean

RANKS = {FAILED: 0, Status.UNKNOWN: 1, Status.FEASIBLE: 2, Status.INFEASIBLE: 3, Status.OPTIMAL: 3}
"""Ranks of statuses; both kinds of proof are equal."""

Same: TypeAlias = tuple[str, str, str, int]
"""Key of corresponding rows of two runs: instance hash, solver, parameters, seed."""


@dataclass(frozen=True)
class BatchChange:
    """A difference between two sides, before and after as text.

    What has changed is ``"status"``, ``"score"``, ``"bound"`` or ``"seconds"``; or it is a
    ``"contradiction"``: the bound (``before``) of one row is below the score (``after``) of
    another. Its size is the factor ``after / before`` of times, the relative difference of scores
    and bounds.
    """

    instance: str
    solver: str
    parameters: str
    seed: int
    what: str
    before: str
    after: str
    better: bool
    size: float = 0.0


@dataclass(frozen=True)
class Overall:
    """Change of all times of one solver, on ``count`` tasks with equal status on both sides.

    The ratio is the geometric mean of ``after / before``, a millisecond added to each time; 95 % of
    the means of resampled tasks (bootstrap) lie from ``low`` to ``high``.
    """

    solver: str
    count: int
    ratio: float
    low: float
    high: float

    @property
    def noise(self) -> bool:
        """Whether the interval contains 1, or there are too few tasks."""
        return self.count < ENOUGH or self.low <= 1 <= self.high


@dataclass(frozen=True)
class Difference:
    """Differences between two sets of rows, by task: instance, solver, parameters and seed.

    Changes for worse stand before those for better, large ones first.
    """

    compared: int
    only_before: int
    only_after: int
    changes: tuple[BatchChange, ...]
    overall: tuple[Overall, ...]


def difference(before: Sequence[Row], after: Sequence[Row], noise: float = NOISE) -> Difference:
    """Compare two sets of rows, each of one version on one machine.

    Repetitions of a solve are taken together, as one task.  A **status** is that of the worst
    repetition.  A **score** or **bound** has changed if all repetitions of one side are above all
    of the other.  A **time** has changed if the medians differ by more than :data:`LEAST` seconds
    and by more than a factor: the largest of ``noise`` and of the spreads (longest by shortest
    time) of both sides, and at least :data:`SINGLE` where a side was measured once only.  Times are
    compared where both sides answered, with equal status.
    """
    old, new = _grouped(before, _same), _grouped(after, _same)
    both = [same for same in old if same in new]
    changes = list(contradictions([*before, *after]))
    for same in both:
        changes += _changes(old[same], new[same], noise)
    changes.sort(key=lambda change: (change.better, -_weight(change)))
    return Difference(
        compared=len(both),
        only_before=len(old) - len(both),
        only_after=len(new) - len(both),
        changes=tuple(changes),
        overall=tuple(_overall([(old[same], new[same]) for same in both])),
    )


def contradictions(rows: Iterable[Row]) -> Iterator[BatchChange]:
    """Yield a change for each instance with a score above a bound of any solver."""
    for own in _grouped(rows, lambda row: row.instance_hash).values():
        scores = [(row.score, row) for row in own if row.score is not None]
        bounds = [(row.bound, row) for row in own if row.bound is not None]
        if not scores or not bounds:
            continue
        score, by = max(scores, key=lambda each: each[0])
        bound, of = min(bounds, key=lambda each: each[0])
        if score > bound:
            solvers = " / ".join((of.solver, by.solver))
            task = by.instance, solvers, canonical(by.parameters), by.seed
            yield BatchChange(*task, "contradiction", str(bound), str(score), better=False)


def _same(row: Row) -> Same:
    return row.instance_hash, row.solver, canonical(row.parameters), row.seed


def _changes(old: list[Row], new: list[Row], noise: float) -> Iterator[BatchChange]:
    """Yield the changes between the repetitions of one task on both sides."""
    row = new[0]
    task = row.instance, row.solver, canonical(row.parameters), row.seed
    a, b = worst_status(old), worst_status(new)
    if RANKS[a] != RANKS[b]:
        yield BatchChange(*task, "status", a, b, RANKS[b] > RANKS[a])
    for what, upwards in (("score", True), ("bound", False)):
        moved = _moved([getattr(row, what) for row in old], [getattr(row, what) for row in new])
        if moved is not None:
            low, high = moved
            size = numbers.relative(numbers.difference(high, low), low)
            yield BatchChange(*task, what, str(low), str(high), (high > low) == upwards, size)
    if a == b and a != FAILED:
        times = [row.seconds for row in old], [row.seconds for row in new]
        was, now = (max(median(own), 1e-6) for own in times)
        if abs(now - was) > LEAST and max(was / now, now / was) > noise_factor(*times, noise):
            yield BatchChange(*task, "seconds", f"{was:.3f}", f"{now:.3f}", now < was, now / was)


def worst_status(rows: Iterable[Row]) -> str:
    """Return the status of the worst repetition."""
    return min((row.status for row in rows), key=lambda status: RANKS[status])


def noise_factor(before: Sequence[float], after: Sequence[float], noise: float = NOISE) -> float:
    """Return the factor between medians of times that counts as a change."""
    spreads = [max(times) / max(min(times), 1e-9) for times in (before, after)]
    single = SINGLE if min(len(before), len(after)) == 1 else 1.0
    return max(noise, single, *spreads)


def _moved(
    old: Sequence[Decimal | None], new: Sequence[Decimal | None]
) -> tuple[Decimal, Decimal] | None:
    """Return the closest values of two groups that lie apart; ``None`` if they do not."""
    was, now = ([value for value in values if value is not None] for values in (old, new))
    if not was or not now:
        return None
    if max(was) < min(now):
        return max(was), min(now)
    return (min(was), max(now)) if min(was) > max(now) else None


def _weight(change: BatchChange) -> float:
    if change.what == "contradiction":
        return 1e12
    if change.what == "status":
        return 1e9 + abs(RANKS[change.after] - RANKS[change.before])
    return abs(math.log(change.size)) if change.what == "seconds" else 1e6 + abs(change.size)


def _overall(tasks: Iterable[tuple[list[Row], list[Row]]]) -> Iterator[Overall]:
    import numpy as np

    logs: dict[str, list[float]] = {}
    for old, new in tasks:
        if worst_status(old) == worst_status(new) != FAILED:
            was, now = (median(row.seconds for row in rows) + 0.001 for rows in (old, new))
            logs.setdefault(old[0].solver, []).append(math.log(now / was))
    random = np.random.default_rng(0)
    for solver in sorted(logs):
        found = np.array(logs[solver])
        means = [random.choice(found, len(found)).mean() for _ in range(SAMPLES)]
        ends = np.exp([found.mean(), *np.quantile(means, (0.025, 0.975))])
        yield Overall(solver, len(found), *map(float, ends))
