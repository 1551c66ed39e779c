"""Charts of a batch run: which solver proves how much, how fast, and how near it comes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from layoutopt.bench.row import Row
from layoutopt.errors import InputError
from layoutopt.pictures.chart import Line, chart
from layoutopt.pictures.scales import Axis
from layoutopt.report.charts import SECONDS, gaps
from layoutopt.report.runs import Instance, Runs, runs

SHORTEST = 0.01
"""Times below so many seconds count as that: their ratios say nothing."""

BEYOND = 1.15
"""Lines go on a bit beyond the largest value."""

SHARE = Axis("share of instances", percent=True, low=0.0, high=1.0)


def performance_profile(found: Runs) -> str:
    """Return for each solver which share of instances it proves within a factor of the least time.

    For a factor ``f`` that is the share of instances ``p`` with
    ``t(p, s) <= f * min_s' t(p, s')``, where ``t(p, s)`` is the time to the proof
    (Dolan and Moré, *Benchmarking optimization software with performance profiles*, 2002).
    """
    ratios: dict[str, list[float]] = {solver: [] for solver in found.solvers}
    for instance in found.instances:
        times = [max(SHORTEST, found.seconds(instance, solver)) for solver in found.solvers]
        for solver, seconds in zip(found.solvers, times, strict=True):
            ratios[solver].append(seconds / min(times) if math.isfinite(seconds) else math.inf)
    return chart(
        "Time to proof, relative to the fastest",
        Axis("factor of the least time", log=True, low=1.0),
        SHARE,
        _cumulated(ratios, 1.0),
        "Dolan and Moré 2002: the share of instances that a solver proves within a factor of the "
        f"least time that any needs.  Times below {SHORTEST} s count as that.",
    )


def time_profile(found: Runs) -> str:
    """Return for each solver which share of instances it proves within so many seconds."""
    times = {s: [found.seconds(i, s) for i in found.instances] for s in found.solvers}
    every = [t for some in times.values() for t in some if math.isfinite(t)]
    return chart(
        "Instances proved over time",
        Axis(SECONDS, log=True),
        SHARE,
        _cumulated(times, min(every, default=1.0)),
        "The share of instances that a solver proves within so many seconds.",
    )


def gap_profile(found: Runs) -> str:
    """Return for each solver on which share of instances it comes so near to the best bound."""
    each = {s: [found.missing(i, s) for i in found.instances] for s in found.solvers}
    return chart(
        "Instances by gap",
        Axis("missing to the best bound", log=True, percent=True, low=0.0, high=1.0),
        SHARE,
        _cumulated(each, 0.0, 1.0),
        "The share of instances on which at most so much is missing to the lowest bound that any "
        "solver proved.",
    )


def _cumulated(
    values: dict[str, list[float]], first: float, last: float | None = None
) -> list[Line]:
    """Return for each name the share of its values up to each value.

    Parameters
    ----------
    first, last
        Where lines begin and end; by default, somewhat beyond the largest value.
    """
    known = [x for some in values.values() for x in some if math.isfinite(x)]
    last = BEYOND * max(known, default=first) if last is None else last
    lines = []
    for name, some in values.items():
        finite = sorted(x for x in some if math.isfinite(x))
        points = [(first, sum(x <= first for x in finite) / len(some))] if some else []
        points += [(x, (i + 1) / len(some)) for i, x in enumerate(finite) if x > first]
        lines.append(Line(name, (*points, (last, points[-1][1]))))
    return lines


def gap_over_time(found: Runs, instance: Instance | None = None) -> str:
    """Return how the gap of each solver on one instance closed.

    Parameters
    ----------
    instance
        By default the one on which a gap stayed open longest.
    """
    if instance is None:
        chosen = instances_with_traces(found)
        if not chosen:
            raise InputError("no solve has a gap over time")
        instance = chosen[0]
    lines = []
    for solver in found.solvers:
        row = _traced(found.rows.get((instance, solver), ()))
        points = () if row is None else gaps(row.trace)
        if row is not None and points:
            points = (*points, (row.seconds, points[-1][1]))
        lines.append(Line(solver if points else "", points))
    gap = Axis("gap between score and bound, relative to the score", log=True, percent=True)
    return chart(f"Gap over time: {instance[0]}", Axis(SECONDS, log=True), gap, lines)


def _traced(rows: Iterable[Row]) -> Row | None:
    """Return the first row that knows a gap over time."""
    return next((row for row in rows if len(gaps(row.trace)) > 1), None)


def instances_with_traces(found: Runs) -> list[Instance]:
    """Return the instances with gaps over time, those first on which they stayed open longest."""
    last = {}
    for instance in found.instances:
        every = [_traced(found.rows.get((instance, solver), ())) for solver in found.solvers]
        if any(every):
            last[instance] = max(row.seconds for row in every if row is not None)
    return sorted(last, key=lambda instance: -last[instance])


PLOTS: dict[str, Callable[[Runs], str]] = {
    "profile": performance_profile,
    "time": time_profile,
    "gap": gap_profile,
    "trace": gap_over_time,
}
"""Charts of a batch run by name."""


def plot(rows: Sequence[Row], name: str) -> str:
    """Return a chart of a batch run as SVG.

    Parameters
    ----------
    name
        A key of :data:`PLOTS`.

    Raises
    ------
    InputError
        If there is no such chart, or nothing to show.
    """
    if name not in PLOTS:
        raise InputError(f"there is no plot {name!r}; known: {', '.join(PLOTS)}")
    if not rows:
        raise InputError("there are no results to plot")
    return PLOTS[name](runs(rows))
