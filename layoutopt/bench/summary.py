"""Summaries of many rows, by solver."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from layoutopt.base import numbers
from layoutopt.base.result import Status
from layoutopt.bench.row import FAILED, Row

SHIFT = 1.0
"""Seconds that are added to times before their geometric mean is taken, and taken away after."""

Task: TypeAlias = tuple[str, str, str]
"""What rows have in common whose scores can be compared: instance hash, version, machine."""


@dataclass(frozen=True)
class Summary:
    """One solver on all its instances, by one version on one machine.

    Parameters
    ----------
    solves
        Number of rows.
    optimal, feasible, infeasible, unknown, failed
        How many have each status.
    gap
        Mean gap of the rows that have one, but for those whose score of 0 it cannot be relative
        to; ``None`` without any.
    seconds
        Shifted geometric mean of the wall-clock seconds (:func:`shifted_mean`); a row without
        an answer (``unknown`` or ``failed``) counts with its time limit, if that is longer.
    behind
        Number of rows whose score is below the best of any solver on their instance, or that
        have none although another solver has.
    loss
        Mean of ``(best - score) / max(|best|, 1e-9)`` over the rows with a score; what is above 1
        counts as 1, as where the best is 0.
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

    The shift keeps times near 0 from outweighing all others.
    """
    return math.exp(math.fsum(math.log(t + shift) for t in seconds) / len(seconds)) - shift


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """Return a summary for each solver, version and machine, in the order of the alphabet."""
    best = best_scores(rows)
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.solver, row.version, row.machine), []).append(row)
    return [_summary(groups[group], best) for group in sorted(groups)]


def best_scores(rows: Iterable[Row]) -> dict[Task, Decimal]:
    """Return the best score of any solver by instance, version and machine, where there is one."""
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
    silent = sum(row.score is None and _task(row) in best for row in rows)
    return Summary(
        solver=rows[0].solver,
        version=rows[0].version,
        machine=rows[0].machine,
        solves=len(rows),
        gap=_mean(gaps),
        seconds=shifted_mean([_charged(row) for row in rows]),
        behind=sum(lost > 0 for lost in losses) + silent,
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
