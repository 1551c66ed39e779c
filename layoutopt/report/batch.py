"""The page of a batch run."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from layoutopt import decimals
from layoutopt.bench.row import FAILED, Row
from layoutopt.bench.summary import Summary, summaries
from layoutopt.pictures import pages
from layoutopt.pictures.pages import Cell, Cells, Section
from layoutopt.pictures.text import counted, escaped, number, ratio
from layoutopt.report import words
from layoutopt.report.profiles import (
    gap_over_time,
    gap_profile,
    instances_with_traces,
    performance_profile,
    time_profile,
)
from layoutopt.report.runs import PROVED, Instance, Runs, runs

SOLVES = 2000
"""So many solves are shown one by one."""

TRACES = 8
"""Of so many instances the gap over time is drawn."""

LOSSES, LOST = 20, 6
"""On how many instances it is told where solvers lose, and of how many pairs each."""


def bench_html(rows: Sequence[Row], command: str = "") -> str:
    """Return a page that tells all of a batch run: one file that needs no network and no scripts.

    Parameters
    ----------
    rows
        What the run's store holds, or a part of it.
    command
        The command line that made the page.
    """
    found = runs(rows)
    drawn = [performance_profile(found), time_profile(found), gap_profile(found)] if rows else []
    traces = [gap_over_time(found, one) for one in instances_with_traces(found)[:TRACES]]
    sections = [
        Section("solvers", "Solvers", _solvers(summaries(rows)) if rows else ""),
        Section("profiles", "Profiles", pages.charts(drawn)),
        Section("solves", "Solves", _solves(rows, found)),
        Section("losses", "Where solvers lose", _losses(found)),
        Section("progress", "Gap over time", pages.charts(traces)),
        Section("failures", "Failures", _failures(rows)),
        words.origin(command, _made(rows)),
    ]
    return pages.page("Batch run", "layoutopt · bench", _lead(rows, found), sections)


def _lead(rows: Sequence[Row], found: Runs) -> str:
    if not rows:
        return pages.paragraph("The store holds no results.", "verdict")
    facts = [
        ("instances", f"{len(found.instances):,}"),
        ("solvers", f"{len(found.solvers):,}"),
        ("solves", f"{len(rows):,}"),
        ("proved", f"{sum(row.status in PROVED for row in rows):,}"),
        ("failed", f"{sum(row.status == FAILED for row in rows):,}"),
        ("seconds in all", f"{sum(row.seconds for row in rows):,.1f}"),
    ]
    return pages.facts(facts)


def _solvers(every: Sequence[Summary]) -> str:
    several = len({(s.version, s.machine) for s in every}) > 1
    head = ["solver", *(["version", "machine"] if several else []), "solves", "optimal", "feasible"]
    head += ["infeasible", "unknown", "failed", "mean gap", "behind", "mean loss", "seconds"]
    rows: list[Cells] = []
    for s in every:
        counts = [s.solves, s.optimal, s.feasible, s.infeasible, s.unknown, s.failed]
        rows.append(
            [
                s.solver,
                *([s.version, s.machine] if several else []),
                *(f"{n:,}" for n in counts),
                _ratio(s.gap),
                f"{s.behind:,}",
                _ratio(s.loss),
                _seconds(s.seconds),
            ]
        )
    told = (
        "Behind: solves whose score is below the best on their instance.  Seconds: the geometric "
        "mean, shifted by a second; a solve without an answer counts with its time limit."
    )
    left = 3 if several else 1
    return pages.table(head, rows, left, sortable=True) + pages.paragraph(told, "soft")


def _ratio(value: float | None, whole: Decimal | None = None) -> Cell:
    return Cell(ratio(value, whole), order="" if value is None else f"{value:.17g}")


def _seconds(value: float) -> Cell:
    return Cell(f"{value:,.3f}", order=f"{value:.9g}")


def _solves(rows: Sequence[Row], found: Runs) -> str:
    """Return a table of all solves."""
    best: dict[Instance, Decimal] = {}
    for row in rows:
        if row.score is not None:
            key = row.instance, row.instance_hash
            best[key] = max(row.score, best.get(key, row.score))
    shown = [
        _solve(row, solver, instance, found, best.get(instance))
        for (instance, solver), some in found.rows.items()
        for row in some
    ]
    head = ["instance", "solver", "status", "score", "bound", "gap", "to best bound", "loss"]
    table = pages.table([*head, "seconds", "MiB"], shown[:SOLVES], 3, sortable=True)
    more = len(shown) - SOLVES
    rest = f"... and {counted(more, 'more solve')}" if more > 0 else ""
    return table + pages.paragraph(rest, "soft")


def _solve(row: Row, solver: str, instance: Instance, found: Runs, best: Decimal | None) -> Cells:
    tone = words.TONES.get(row.status, "bad")
    loss = None
    if row.score is not None and best is not None:
        loss = decimals.relative(decimals.difference(best, row.score), best)
    peak = "-" if row.peak_bytes is None else f"{row.peak_bytes / 2**20:,.0f}"
    return [
        row.instance,
        Cell(solver, kind="label"),
        Cell(row.status, f'<span class="{tone}">{escaped(row.status)}</span>', kind="short"),
        _number(row.score),
        _number(row.bound),
        _ratio(row.gap, row.score),
        _ratio(found.gap_of(row, instance), row.score),
        _ratio(loss, best),
        _seconds(row.seconds),
        Cell(peak, order="" if row.peak_bytes is None else str(row.peak_bytes)),
    ]


def _number(value: Decimal | None) -> Cell:
    return Cell(number(value), order="" if value is None else f"{value:f}")


def _losses(found: Runs) -> str:
    """Return by instance which pairs solvers match less than the best row does."""
    lost = []
    for instance in found.instances:
        rows = [(s, row) for s in found.solvers for row in found.rows.get((instance, s), ())[:1]]
        known = [(s, row, row.score) for s, row in rows if row.score is not None]
        if not known:
            continue
        _, best, top = max(known, key=lambda item: item[2])
        for solver, row, score in known:
            pairs = _lost(row, best)
            if score < top and pairs:
                lost.append((decimals.difference(top, score), instance[0], solver, pairs))
    lost.sort(key=lambda item: item[0].copy_negate())
    rows_shown: list[Cells] = [
        [name, Cell(solver, kind="label"), number(total), Cell("", "<br>".join(pairs), kind="text")]
        for total, name, solver, pairs in lost[:LOSSES]
    ]
    head = ["instance", "solver", "loses", "where most, of the pairs that both rows name"]
    more = len(lost) - LOSSES
    rest = f"... and {more:,} more" if more > 0 else ""
    return pages.table(head, rows_shown, left=2) + pages.paragraph(rest, "soft")


def _lost(row: Row, best: Row) -> list[str]:
    """Return the pairs on which a row loses most against another one."""
    there = {(a, b, value): matched for a, b, value, _, matched in best.pairs}
    found = []
    for a, b, value, _, matched in row.pairs:
        loss = decimals.times(Decimal(value), there.get((a, b, value), matched) - matched)
        if loss > 0:
            found.append((loss, f"{escaped(a)}, {escaped(b)}: {number(loss)}"))
    found.sort(key=lambda item: item[0].copy_negate())
    return [told for _, told in found[:LOST]]


def _failures(rows: Sequence[Row]) -> str:
    failed: list[Cells] = [
        [row.instance, row.solver, Cell(row.error, kind="text"), Cell(row.log, kind="text")]
        for row in rows
        if row.status == FAILED
    ]
    return pages.table(["instance", "solver", "error", "log"], failed[:SOLVES], left=2)


def _made(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return with what, where and when rows were made."""
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
