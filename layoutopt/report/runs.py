"""Rows of a batch run, put together by instance and solver."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low
from typing import TypeAlias

from layoutopt import decimals
from layoutopt.bench.row import Row
from layoutopt.result import Result, Status

Instance: TypeAlias = tuple[str, str]
"""Name and hash: instances of one name may differ, and an instance may have several names."""

PROVED = (Status.OPTIMAL, Status.INFEASIBLE)


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows by instance and solver.

    Parameters
    ----------
    instances
        In the rows' order.
    solvers
        Names, in the rows' order; where one solver ran in several ways, with what differs.
    rows
        The solves of one instance by one solver: seeds and repetitions.
    bounds
        The lowest bound that any solver proved, by instance; ``None`` where there is none.
    """

    instances: tuple[Instance, ...]
    solvers: tuple[str, ...]
    rows: Mapping[tuple[Instance, str], Sequence[Row]]
    bounds: Mapping[Instance, Decimal | None]

    def seconds(self, instance: Instance, solver: str) -> float:
        """Return the median time to a proof; infinite where most solves have none."""
        return _median(
            [r.seconds if r.status in PROVED else math.inf for r in self._of(instance, solver)]
        )

    def missing(self, instance: Instance, solver: str) -> float:
        """Return the median of what is missing to the instance's best bound, from 0 to 1.

        That is ``(bound - score) / max(|bound|, |score|)``, and 1 where the signs differ (Berthold,
        *Measuring the impact of primal heuristics*, 2013); infinite without score or bound.
        """
        bound = self.bounds[instance]
        return _median([_missing(row, bound) for row in self._of(instance, solver)])

    def gap_of(self, row: Row, instance: Instance) -> float | None:
        """Return a row's gap to the instance's best bound; 0 where it is proved infeasible."""
        if row.status == Status.INFEASIBLE:
            return 0.0
        return Result(objective=row.score, bound=self.bounds[instance]).gap

    def _of(self, instance: Instance, solver: str) -> Sequence[Row]:
        return self.rows.get((instance, solver), ())


def _missing(row: Row, bound: Decimal | None) -> float:
    if row.status == Status.INFEASIBLE or (row.score is not None and row.score == bound):
        return 0.0
    if row.score is None or bound is None:
        return math.inf
    if row.score.is_signed() != bound.is_signed() and row.score and bound:
        return 1.0
    largest = max(row.score.copy_abs(), bound.copy_abs())
    return decimals.share(decimals.difference(bound, row.score), largest)


def runs(rows: Sequence[Row]) -> Runs:
    """Put rows together."""
    names = _names(rows)
    found: dict[tuple[Instance, str], list[Row]] = defaultdict(list)
    bounds: dict[Instance, Decimal | None] = {}
    for row, name in zip(rows, names, strict=True):
        instance = row.instance, row.instance_hash
        found[instance, name].append(row)
        known = [x for x in (row.bound, bounds.get(instance)) if x is not None]
        bounds[instance] = min(known, default=None)
    return Runs(tuple(bounds), tuple(dict.fromkeys(names)), found, bounds)


def _names(rows: Sequence[Row]) -> list[str]:
    """Return a solver's name for each row, with its parameters as far as rows differ in them."""
    given = [{"version": row.version, "machine": row.machine, **row.parameters} for row in rows]
    keys = dict.fromkeys(key for some in given for key in some)
    differ = [key for key in keys if len({str(some.get(key)) for some in given}) > 1]
    return [
        ", ".join([row.solver, *(f"{k.replace('_', ' ')} {some[k]}" for k in differ if k in some)])
        for row, some in zip(rows, given, strict=True)
    ]


def _median(values: Sequence[float]) -> float:
    return median_low(values) if values else math.inf
