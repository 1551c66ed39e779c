"""The page of one result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from layoutopt.pictures import pages
from layoutopt.pictures.pages import Section
from layoutopt.pictures.text import number, ratio, seconds
from layoutopt.report import words
from layoutopt.report.charts import progress_charts
from layoutopt.report.layouts import changed, drawn, sinks_by_class
from layoutopt.report.machine import occupancy
from layoutopt.report.order import in_order
from layoutopt.report.pairs import pair_tables, reasons
from layoutopt.result import UnwindingResult
from layoutopt.trace import Point

WHY_SECONDS = 5.0
"""Seconds that it may take to say why pairs lose."""


def report_html(
    result: UnwindingResult,
    trace: Sequence[Point] = (),
    command: str = "",
    *,
    why_seconds: float = WHY_SECONDS,
) -> str:
    """Return a page that tells all of a result: one file that needs no network and no scripts.

    Parameters
    ----------
    result
        A result.  Without its graph, as read from a file, there are tables only.
    trace
        How score and bound grew (:meth:`layoutopt.trace.Trace.points`); without it there are no
        charts of that.
    command
        The command line that made it.
    why_seconds
        Seconds that it may take to say why pairs lose; 0: it is not said.
    """
    lead = _lead(result)
    if changed(result):
        lead += pages.paragraph("The graph has changed since it was solved: tables only.", "soft")
        result = replace(result, graph=None)
    sections = [
        Section("layouts", "Layouts", drawn(result)),
        Section("sinks", "Where sinks lie", sinks_by_class(result)),
        Section("pairs", "Pairs", pair_tables(result.pairs) if result.layouts is not None else ""),
        Section("why", "Why pairs lose", reasons(result, why_seconds)),
        Section("order", "Order", in_order(result)),
        Section("tiles", "Tiles", occupancy(result)),
        Section("progress", "Progress", pages.charts(progress_charts(trace))),
        Section("size", "Size and time", _size(result)),
        words.origin(command, _made(result)),
    ]
    return pages.page(result.instance or "unnamed", "layoutopt · result", lead, sections)


def _lead(result: UnwindingResult) -> str:
    description = "" if result.graph is None else result.graph.description
    facts = [
        ("score", number(result.score)),
        ("bound", number(None if result.bound is None else Decimal(result.bound))),
        ("gap", ratio(result.gap, result.score)),
        ("if all matched", number(result.max_score)),
        ("seconds", seconds(result.seconds.get("total"))),
        ("solver", result.solver or "-"),
    ]
    return pages.paragraph(description, "soft") + words.verdict(result) + pages.facts(facts)


def _size(result: UnwindingResult) -> str:
    """Return counts, and what each phase took."""
    counts = [(name.replace("_", " "), f"{count:,}") for name, count in result.size.items()]
    total = result.seconds.get("total", 0.0)
    phases: list[pages.Cells] = [
        [
            name,
            seconds(spent, 3),
            pages.Cell("", pages.bar(spent / total if total else 0.0), kind="bars"),
        ]
        for name, spent in result.seconds.items()
        if name != "total"
    ]
    table = pages.table(["phase", "seconds", "share"], phases) if phases else ""
    return pages.facts(counts) + table


def _made(result: UnwindingResult) -> list[tuple[str, str]]:
    return [
        ("result", f"layoutopt {result.version or 'of an unknown version'}, seed {result.seed}"),
    ]
