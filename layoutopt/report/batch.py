"""The page of a batch run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low
from typing import TypeAlias

from layoutopt.base import numbers
from layoutopt.base.errors import InputError
from layoutopt.base.numbers import number, ratio
from layoutopt.base.result import Result, Status
from layoutopt.base.table import Table
from layoutopt.bench.analysis import Summary, best_of, best_scores, loss, summaries
from layoutopt.bench.row import FAILED, Row, mebibytes, way
from layoutopt.pictures.chart import ChartAxis, ChartLine, chart
from layoutopt.report import pages, words
from layoutopt.report.pages import Cell, Section, parts, valued
from layoutopt.report.words import GAP, SECONDS, gaps

Instance: TypeAlias = tuple[str, str]
"""Name and hash: instances of one name may differ, and an instance may have several names."""

PROVED = (Status.OPTIMAL, Status.INFEASIBLE)


@dataclass(frozen=True, eq=False)
class RowsByInstance:
    """Rows by instance and solver, both in the rows' order.

    A solver's name has the parameters that differ if it ran with several.  The rows of one instance
    and solver are seeds and repetitions.  ``bounds`` has the lowest bound that any solver proved.
    """

    instances: tuple[Instance, ...]
    solvers: tuple[str, ...]
    rows: Mapping[tuple[Instance, str], Sequence[Row]]
    bounds: Mapping[Instance, Decimal | None]

    def seconds(self, instance: Instance, solver: str) -> float:
        """Return the median time to a proof; infinite if most solves have none."""
        return _median(
            [r.seconds if r.status in PROVED else math.inf for r in self.of(instance, solver)]
        )

    def missing(self, instance: Instance, solver: str) -> float:
        """Return the median gap to the instance's best bound, from 0 to 1.

        That is ``(bound - score) / max(|bound|, |score|)``, and 1 where the signs differ (Berthold,
        *Measuring the impact of primal heuristics*, 2013); infinite without score or bound.
        """
        bound = self.bounds[instance]
        return _median([_missing(row, bound) for row in self.of(instance, solver)])

    def gap_of(self, row: Row, instance: Instance) -> float | None:
        """Return a row's gap to the instance's best bound; 0 where it is proved infeasible."""
        if row.status == Status.INFEASIBLE:
            return 0.0
        return Result(objective=row.score, bound=self.bounds[instance]).gap

    def of(self, instance: Instance, solver: str) -> Sequence[Row]:
        """Return the rows of an instance and solver."""
        return self.rows.get((instance, solver), ())


def _missing(row: Row, bound: Decimal | None) -> float:
    if row.status == Status.INFEASIBLE or (row.score is not None and row.score == bound):
        return 0.0
    if row.score is None or bound is None:
        return math.inf
    if row.score.is_signed() != bound.is_signed() and row.score and bound:
        return 1.0
    largest = max(row.score.copy_abs(), bound.copy_abs())
    return numbers.share(numbers.difference(bound, row.score), largest)


def runs(rows: Sequence[Row]) -> RowsByInstance:
    """Group rows by instance and solver."""
    names = _names(rows)
    found: dict[tuple[Instance, str], list[Row]] = defaultdict(list)
    bounds: dict[Instance, Decimal | None] = {}
    for row, name in zip(rows, names, strict=True):
        instance = row.instance, row.instance_hash
        found[instance, name].append(row)
        known = [x for x in (row.bound, bounds.get(instance)) if x is not None]
        bounds[instance] = min(known, default=None)
    return RowsByInstance(tuple(bounds), tuple(dict.fromkeys(names)), found, bounds)


def _names(rows: Sequence[Row]) -> list[str]:
    """Return a solver's name for each row, with the parameters in which rows differ."""
    given = [{"version": row.version, "machine": row.machine, **row.parameters} for row in rows]
    keys = dict.fromkeys(key for some in given for key in some)
    differ = [key for key in keys if len({str(some.get(key)) for some in given}) > 1]
    return [
        ", ".join([row.solver, *(f"{k.replace('_', ' ')} {some[k]}" for k in differ if k in some)])
        for row, some in zip(rows, given, strict=True)
    ]


def _median(values: Sequence[float]) -> float:
    return median_low(values) if values else math.inf


SHORTEST = 0.01  # least time in seconds; shorter ones are rounded up, as their ratios are noise
BEYOND = 1.15  # factor by which lines exceed the largest value

SHARE = ChartAxis("share of instances", percent=True, low=0.0, high=1.0)


def performance_profile(found: RowsByInstance) -> str:
    """Return performance profiles: share of instances proved within a factor of the least time.

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
        ChartAxis("factor of the least time", log=True, low=1.0),
        SHARE,
        _cumulated(ratios, 1.0),
        "Dolan and Moré 2002: the share of instances that a solver proves within a factor of the "
        f"least time that any needs.  Times below {SHORTEST} s count as that.",
    )


def time_profile(found: RowsByInstance) -> str:
    """Return for each solver the share of instances proved over time."""
    times = {s: [found.seconds(i, s) for i in found.instances] for s in found.solvers}
    every = [t for some in times.values() for t in some if math.isfinite(t)]
    return chart(
        "Instances proved over time",
        ChartAxis(SECONDS, log=True),
        SHARE,
        _cumulated(times, min(every, default=1.0)),
        "The share of instances that a solver proves within so many seconds.",
    )


def gap_profile(found: RowsByInstance) -> str:
    """Return for each solver the share of instances over the gap to the best bound."""
    each = {s: [found.missing(i, s) for i in found.instances] for s in found.solvers}
    return chart(
        "Instances by gap",
        ChartAxis("gap to the best bound", log=True, percent=True, low=0.0, high=1.0),
        SHARE,
        _cumulated(each, 0.0, 1.0),
        "The share of instances on which at most so much is missing to the lowest bound that any "
        "solver proved.",
    )


def _cumulated(
    values: dict[str, list[float]], first: float, last: float | None = None
) -> list[ChartLine]:
    """Return for each name the share of its values up to each value, from ``first`` to ``last``.

    By default, lines end somewhat beyond the largest value.
    """
    known = [x for some in values.values() for x in some if math.isfinite(x)]
    last = BEYOND * max(known, default=first) if last is None else last
    lines = []
    for name, some in values.items():
        finite = sorted(x for x in some if math.isfinite(x))
        points = [(first, sum(x <= first for x in finite) / len(some))] if some else []
        points += [(x, (i + 1) / len(some)) for i, x in enumerate(finite) if x > first]
        lines.append(ChartLine(name, (*points, (last, points[-1][1]))))
    return lines


def gap_over_time(found: RowsByInstance, instance: Instance | None = None) -> str:
    """Return the gap of each solver over time on one instance.

    By default it is the one whose gap remained open longest.
    """
    if instance is None:
        chosen = instances_with_traces(found)
        if not chosen:
            raise InputError("no solve has a gap over time")
        instance = chosen[0]
    lines = []
    for solver in found.solvers:
        row = _traced(found.of(instance, solver))
        points = () if row is None else gaps(row.trace)
        if row is not None and points:
            points = (*points, (row.seconds, points[-1][1]))
        lines.append(ChartLine(solver if points else "", points))
    return chart(f"Gap over time: {instance[0]}", ChartAxis(SECONDS, log=True), GAP, lines)


def _traced(rows: Iterable[Row]) -> Row | None:
    """Return the first row with a gap over time that was open."""
    return next((row for row in rows if len(gaps(row.trace)) > 1 and _closed(row)), None)


def _closed(row: Row) -> float:
    """Return until when the gap of a row was open; 0 if it never was."""
    times, values = zip(*gaps(row.trace), strict=True)
    ends = zip((*times[1:], row.seconds), values, strict=True)
    return max((end for end, gap in ends if gap > 0), default=0.0)


def instances_with_traces(found: RowsByInstance) -> list[Instance]:
    """Return the instances with gaps over time, those whose gap was open longest first."""
    last = {}
    for instance in found.instances:
        every = [_traced(found.of(instance, solver)) for solver in found.solvers]
        if any(every):
            last[instance] = max(_closed(row) for row in every if row is not None)
    return sorted(last, key=lambda instance: -last[instance])


PLOTS: dict[str, Callable[[RowsByInstance], str]] = {
    "profile": performance_profile,
    "time": time_profile,
    "gap": gap_profile,
    "trace": gap_over_time,
}
"""Charts of a batch run by name."""


def plot(rows: Sequence[Row], name: str) -> str:
    """Return a chart of a batch run as SVG, by its name in :data:`PLOTS`."""
    if name not in PLOTS:
        raise InputError(f"there is no plot {name!r}; known: {', '.join(PLOTS)}")
    if not rows:
        raise InputError("there are no results to plot")
    return PLOTS[name](runs(rows))


SOLVES = 2000  # largest number of solves in a table
TRACES = 8  # largest number of charts of gaps over time
LOSSES, LOST = 20, 6  # largest numbers of instances in the table of losses, and of pairs for each


def bench_html(rows: Sequence[Row], command: str = "") -> str:
    """Return a self-contained HTML page of a batch run.

    Parameters
    ----------
    rows
        Rows of the run's store, or some of them.
    command
        The command line that made the page.
    """
    found = runs(rows)
    drawn = [performance_profile(found), time_profile(found), gap_profile(found)] if rows else []
    traces = [gap_over_time(found, one) for one in instances_with_traces(found)[:TRACES]]
    sections = [
        Section("solvers", "Solvers", _solvers(summaries(rows)) if rows else ""),
        Section("profiles", "Profiles", parts.charts(drawn)),
        Section("solves", "Solves", _solves(rows, found)),
        Section("losses", "Where solvers lose", _losses(found)),
        Section("progress", "Gap over time", parts.charts(traces)),
        Section("failures", "Failures", _failures(rows)),
        words.origin(command, _made(rows)),
    ]
    return pages.page("Batch run", "layoutopt · bench", _lead(rows, found), sections)


def _lead(rows: Sequence[Row], found: RowsByInstance) -> str:
    if not rows:
        return parts.paragraph("The store holds no results.", "verdict")
    facts = [
        ("instances", f"{len(found.instances):,}"),
        ("solvers", f"{len(found.solvers):,}"),
        ("solves", f"{len(rows):,}"),
        ("proved", f"{sum(row.status in PROVED for row in rows):,}"),
        ("failed", f"{sum(row.status == FAILED for row in rows):,}"),
        ("seconds in all", f"{sum(row.seconds for row in rows):,.1f}"),
    ]
    return parts.facts(facts)


def _solvers(every: Sequence[Summary]) -> str:
    several = len({(s.version, s.machine) for s in every}) > 1
    head = ["solver", *(["version", "machine"] if several else []), "solves", "optimal", "feasible"]
    head += ["infeasible", "unknown", "failed", "mean gap", "behind", "mean loss", "seconds"]
    rows: list[list[str | Cell]] = []
    for s in every:
        counts = [s.solves, s.optimal, s.feasible, s.infeasible, s.unknown, s.failed]
        cells = [s.solver, *([s.version, s.machine] if several else [])]
        cells += [f"{n:,}" for n in counts]
        rows.append([*cells, _ratio(s.gap), f"{s.behind:,}", _ratio(s.loss), _seconds(s.seconds)])
    told = (
        "Behind: solves whose score is below the best on their instance.  Seconds: the geometric "
        "mean, shifted by a second; a solve without an answer counts with its time limit."
    )
    table = parts.table(Table(head, rows, 3 if several else 1), sortable=True)
    return table + parts.paragraph(told, "soft")


def _ratio(value: float | None, whole: Decimal | None = None) -> Cell:
    return valued(ratio(value, whole), value)


def _seconds(value: float) -> Cell:
    return valued(f"{value:,.3f}", value)


def _solves(rows: Sequence[Row], found: RowsByInstance) -> str:
    best = best_scores(rows)
    shown = [
        [
            row.instance,
            Cell(way(row, solver), kind="label"),
            words.status(row.status),
            valued(number(row.score), row.score),
            valued(number(row.bound), row.bound),
            _ratio(row.gap, row.score),
            _ratio(found.gap_of(row, instance), row.score),
            _ratio(loss(row, best), best_of(row, best)),
            _seconds(row.seconds),
            valued(mebibytes(row), row.peak_bytes),
        ]
        for (instance, solver), some in found.rows.items()
        for row in some
    ]
    head = ["instance", "solver", "status", "score", "bound", "gap", "to best bound", "loss"]
    table = Table([*head, "seconds", "MiB"], shown[:SOLVES], 3, len(shown) - SOLVES, "solve")
    told = (
        "Scores and bounds of cost networks whose costs are minimised are these with a minus sign."
    )
    return parts.table(table, sortable=True) + parts.paragraph(shown and told, "soft")


def _losses(found: RowsByInstance) -> str:
    """Return the losses of solvers against the best row by instance and pair."""
    lost = []
    for instance in found.instances:
        rows = [(s, row) for s in found.solvers for row in found.of(instance, s)[:1]]
        known = [(s, row, row.score) for s, row in rows if row.score is not None]
        if not known:
            continue
        _, best, top = max(known, key=lambda item: item[2])
        for solver, row, score in known:
            pairs = _lost(row, best)
            if score < top and pairs:
                lost.append((numbers.difference(top, score), instance[0], solver, pairs))
    lost.sort(key=lambda item: item[0], reverse=True)
    shown = [
        [name, Cell(solver, kind="label"), number(total), Cell("", parts.lines(pairs), kind="text")]
        for total, name, solver, pairs in lost[:LOSSES]
    ]
    where = "largest losses (among the pairs that both results list)"
    head = ["instance", "solver", "loses", where]
    return parts.table(Table(head, shown, 2, len(lost) - LOSSES, "loss"))


def _lost(row: Row, best: Row) -> list[str]:
    """Return the pairs with the largest losses of a row against another one."""
    there = {(a, b, value): matched for a, b, value, _, matched in best.pairs}
    found = []
    for a, b, value, _, matched in row.pairs:
        loss = numbers.times(Decimal(value), there.get((a, b, value), matched) - matched)
        if loss > 0:
            found.append((loss, f"{a}, {b}: {number(loss)}"))
    found.sort(key=lambda item: item[0], reverse=True)
    return [told for _, told in found[:LOST]]


def _failures(rows: Sequence[Row]) -> str:
    failed = [
        [row.instance, row.solver, Cell(row.error, kind="text"), Cell(row.log, kind="text")]
        for row in rows
        if row.status == FAILED
    ]
    head = ["instance", "solver", "error", "log"]
    return parts.table(Table(head, failed[:SOLVES], 2, len(failed) - SOLVES, "failure"))


def _made(rows: Sequence[Row]) -> list[tuple[str, str]]:
    if not rows:
        return []
    started = sorted(row.started for row in rows)
    parameters = {
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in row.parameters.items())
        for row in rows
    }
    return [
        ("results", "; ".join(f"layoutopt {v}" for v in dict.fromkeys(r.version for r in rows))),
        ("machine", "; ".join(dict.fromkeys(row.machine for row in rows))),
        ("parameters", "; ".join(sorted(parameters))),
        ("from, to", f"{started[0]}, {started[-1]}"),
    ]
