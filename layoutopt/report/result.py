"""The page of one result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from typing import Any

from layoutopt.base import numbers
from layoutopt.base.errors import InputError, SizeError, SolverError
from layoutopt.base.limits import Point
from layoutopt.base.numbers import counted, exact, more, number, ratio, seconds
from layoutopt.base.result import PairScore, UnwindingResult
from layoutopt.base.table import Table
from layoutopt.explain.explanation import Change, PairExplanation, listed, paired, sure
from layoutopt.explain.pair import explain_pair
from layoutopt.machine.simulation import Simulation, occupancy_rows, simulate
from layoutopt.program.steps import BarrierReady, Place, ProgramStep, steps
from layoutopt.report import pages, words
from layoutopt.report.layouts import by_class, by_loss, changed, drawn, sinks_by_class
from layoutopt.report.pages import Cell, Section, joined, parts, valued
from layoutopt.report.words import progress_charts

PHASES = 12  # rows of the table of exchanges


def occupancy(result: UnwindingResult) -> str:
    """Return the simulation on the graph's tile memory, if it has one."""
    if result.layouts is None or result.graph is None or result.graph.tile_memory is None:
        return ""
    try:
        return occupancy_of(simulate(result.graph, result))
    except (InputError, SizeError) as error:
        return parts.paragraph(f"Not simulated: {error}", "soft")


def occupancy_of(found: Simulation) -> str:
    """Return a simulation: numbers, tiles by bytes and by tensor, the longest exchanges."""
    rows = [*occupancy_rows(found.memory, found.always), *found.rows()]
    longest, count = found.exchanges(PHASES), len(found.phases)
    told = f"The longest of {count:,} exchanges" if count > PHASES else "Exchanges"
    by_bytes = parts.picture(str(found.draw("bytes")), shades=True)
    by_tensor = parts.picture(str(found.draw("tensor")))
    pictures = parts.beside(
        [
            ("Bytes of sinks on each tile", by_bytes),
            ("By the tensor that has most there", by_tensor),
        ]
    )
    table = parts.table(longest, caption=told, sortable=True)
    return joined([parts.listing(rows), pictures, table])


STEPS, MOST = 20, 200  # numbers of steps shown initially and in total


def in_order(result: UnwindingResult) -> str:
    """Return the steps of a result as text, with sinks grouped between barriers."""
    if not result.layouts:
        return ""
    plan = _plan(result)
    if plan is None:
        return _listed(result)
    groups = [
        list(group) for _, group in groupby(plan, lambda step: isinstance(step, BarrierReady))
    ]
    if all(isinstance(step, Place) for step in plan):
        told = "No sink takes locations of a barrier's output: they can be set in any order."
        return parts.paragraph(told)
    told = (
        "A sink that takes locations of a barrier's output can be set only once that is known, "
        "and a barrier is known once all that it reads is set."
    )
    items = [_told(group, result) for group in groups[:MOST]]
    first, rest = parts.steps(items[:STEPS]), parts.steps(items[STEPS:], STEPS + 1)
    rest += parts.paragraph(more(len(groups) - MOST, "step"), "soft")
    folded = parts.details(counted(len(groups) - STEPS, "more step"), rest if items[STEPS:] else "")
    return parts.paragraph(told, "soft") + first + folded


def _plan(result: UnwindingResult) -> tuple[ProgramStep, ...] | None:
    if result.graph is None:
        return None
    try:
        return steps(result.graph, result)
    except (InputError, SizeError):
        return None


def _told(group: Sequence[ProgramStep], result: UnwindingResult) -> str:
    barriers = [step.barrier for step in group if isinstance(step, BarrierReady)]
    if barriers:
        known = " is known" if len(barriers) == 1 else " are known"
        return parts.toned("known", parts.names(barriers) + known)
    return "set " + parts.names(list(_sinks(group, result)))


def _sinks(group: Sequence[ProgramStep], result: UnwindingResult) -> Iterator[str]:
    """Yield the sinks of placements, with numbers of pieces if incomplete."""
    placed = [step for step in group if isinstance(step, Place)]
    for sink, some in groupby(placed, lambda step: step.sink):
        count, every = len(list(some)), len((result.layouts or {})[sink])
        yield sink if count == every else f"{sink} ({count:,} of its {every:,} pieces)"


def _listed(result: UnwindingResult) -> str:
    """Return the order of a result without a graph."""
    if not result.order:
        return ""
    names = [
        step if isinstance(step, str) else f"{step[0]} (piece {step[1]})" for step in result.order
    ]
    return parts.paragraph("Set " + parts.names(names) + ".")


SHOWN = 40  # largest number of pairs shown individually, and of classes of pairs otherwise
EXPLAINED = 5  # largest number of explained pairs
CHANGES = 10  # rows of the table of changes of an alternative

HEAD = ["pair", "loses", "share of all losses", "value", "matched", "earns"]
HEAD_OF_CLASSES = [
    *("pairs with equal value, size and matches", "number", "lose", "share of all losses"),
    *("value", "matched, each", "earn"),
]


def pair_tables(pairs: Sequence[PairScore]) -> str:
    """Return the table of pairs by loss, with many pairs grouped into classes."""
    if not pairs:
        return parts.paragraph("The graph has no ValuedPairs: nothing can be earned.")
    lost = numbers.total(p.loss for p in pairs if p.loss > 0)
    losing = sum(p.loss > 0 for p in pairs)
    earned = numbers.total(numbers.times(p.value, p.matched) for p in pairs)
    if losing:
        verb = "loses" if losing == 1 else "lose"
        told = f"{losing:,} of {counted(len(pairs), 'pair')} {verb} {number(lost)}; "
        told += f"all together earn {number(earned)}."
    else:
        paid = numbers.total(numbers.times(p.value, p.matched) for p in pairs if p.value < 0)
        worse = f"of it {number(paid)} by pairs of negative value" if paid else "nothing lost"
        told = f"{counted(len(pairs), 'pair')}: {number(earned)} earned, {worse}."
    if len(pairs) <= SHOWN:
        table = Table(HEAD, [_row([pair], lost) for pair in by_loss(pairs)])
    else:
        classes = sorted(by_class(pairs), key=lambda c: numbers.times(c[0].loss, -len(c)))
        rows = [_row(alike, lost, True) for alike in classes[:SHOWN]]
        table = Table(HEAD_OF_CLASSES, rows, hidden=len(classes) - SHOWN, noun="class")
    return parts.paragraph(told) + parts.table(table, sortable=True)


def _row(alike: Sequence[PairScore], lost: Decimal, by_number: bool = False) -> list[Any]:
    first, count = alike[0], len(alike)
    loss = numbers.times(first.loss, count)
    earned = numbers.times(first.value, count * first.matched)
    share = numbers.share(loss, lost) if lost else 0.0
    drawn = parts.bars([(share, ratio(share))]) if loss > 0 else ""
    others = parts.alike([f"{p.a}, {p.b}" for p in alike[1:]]) if count > 1 else ""
    return [
        _named(first.a, first.b, others),
        *([f"{count:,}"] if by_number else []),
        valued(number(loss), loss),
        Cell("", drawn, order=f"{share}", kind="bars"),
        valued(number(first.value), first.value),
        Cell(f"{first.matched:,} of {first.elements:,}", order=str(first.matched)),
        valued(number(earned), earned),
    ]


def _named(a: str, b: str, more: str = "") -> Cell:
    return Cell(a, parts.pair(a, b) + more, kind="name")


def reasons(result: UnwindingResult, seconds: float) -> str:
    """Explain the largest losses, one pair of each class, within so many seconds in all."""
    losing = _losing(result.pairs)[:EXPLAINED]
    if not losing or result.graph is None or result.layouts is None or seconds <= 0:
        return ""
    if result.size.get("given"):  # optimal only for the fixed layouts
        return parts.paragraph("Not explained, as some layouts were given.", "soft")
    end = time.monotonic() + seconds
    every: list[str] = []
    for i, alike in enumerate(losing):
        left, others = end - time.monotonic(), len(losing) - i
        if left <= 0:
            told = f"Time ran out before {others:,} more were looked at."
            every.append(parts.paragraph(told, "soft"))
            break
        pair, limit = alike[0], left / others
        try:
            found = explain_pair(result.graph, result, pair.a, pair.b, time_limit=limit)
        except (InputError, SizeError, SolverError) as error:
            every.append(parts.paragraph(f"Not explained: {error}", "soft"))
            break
        every.append(_explained(found, len(alike) - 1))
    return joined(every)


def _losing(pairs: Sequence[PairScore]) -> list[list[PairScore]]:
    """Return classes of pairs that lose, each with first tensors of its own."""
    found: dict[frozenset[str], list[PairScore]] = {}
    for alike in by_class(pairs):
        if alike[0].loss > 0:
            found.setdefault(frozenset((alike[0].a, alike[0].b)), alike)
    return list(found.values())


def _explained(found: PairExplanation, others: int) -> str:
    """Return the explanation of a pair that represents a class."""
    title = f"{found.a}, {found.b}: loses {number(found.loses)}"
    like = f"(and {others:,} like it)" if others else ""
    told = [f"{found.reason[:1].upper()}{found.reason[1:]}.", *_wanting(found)]
    changes = sorted(found.changes, key=lambda change: change.difference)
    rows = [_changed(change) for change in changes[:CHANGES]]
    head = ["what else would change", "earns", "value", "matches now", "then"]
    table = parts.table(Table(head, rows, hidden=len(changes) - CHANGES, noun="pair"))
    return parts.why(title, like, " ".join(told), table)


def _wanting(found: PairExplanation) -> Iterator[str]:
    """Yield the changes that would make winning the pair optimal."""
    if found.threshold is not None and found.threshold > found.value:
        worth = f"at least {exact(found.threshold)} (now {number(found.value)})"
        yield f"It would be optimal if its value were {worth}{sure(found.threshold_proved)}."
    if found.smallest:
        names = listed([paired(p.a, p.b) for p in found.smallest])
        so = sure(found.smallest_proved)
        yield f"It would also be optimal if {names} were worth nothing{so}."


def _changed(change: Change) -> list[Any]:
    difference = number(change.difference)
    earns = f"+{difference}" if change.difference > 0 else difference
    counts = [f"{change.before:,}", f"{change.after:,}"]
    return [_named(change.a, change.b), earns, number(change.value), *counts]


WHY_SECONDS = 5.0  # time limit of explanations in seconds


def report_html(
    result: UnwindingResult,
    trace: Sequence[Point] = (),
    command: str = "",
    *,
    why_seconds: float = WHY_SECONDS,
) -> str:
    """Return a self-contained HTML page of a result.

    Parameters
    ----------
    result
        A result.  Without its graph, as read from a file, there are tables only.
    trace
        Score and bound over time (:meth:`layoutopt.base.limits.Trace.points`); without it, no
        charts of these.
    command
        The command line that made it.
    why_seconds
        Time limit of explanations in seconds; 0 for none.
    """
    lead, version = _lead(result), result.version or "of an unknown version"
    if changed(result):
        lead += parts.paragraph("The graph has changed since it was solved: tables only.", "soft")
        result = replace(result, graph=None)
    sections = [
        Section("layouts", "Layouts", drawn(result)),
        Section("sinks", "Where sinks lie", sinks_by_class(result)),
        Section("pairs", "Pairs", pair_tables(result.pairs) if result.layouts is not None else ""),
        Section("why", "Why pairs lose", reasons(result, why_seconds)),
        Section("order", "Order", in_order(result)),
        Section("tiles", "Tiles", occupancy(result)),
        Section("progress", "Progress", parts.charts(progress_charts(trace))),
        Section("size", "Size and time", _size(result)),
        words.origin(command, [("result", f"layoutopt {version}, seed {result.seed}")]),
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
    return parts.paragraph(description, "soft") + words.verdict(result) + parts.facts(facts)


LABELS = {
    "edges": "pair positions",
    "unconstrained": "free elements in no pair",
    "groups": "groups of tensors",
    "group_kinds": "distinct groups",
    "components": "independent problems",
    "classes": "distinct problems",
    "secure": "first answer",
    "trace": "follow elements",
    "restore": "write layouts",
}
"""Counts and phases as pages call them, where not by their names."""


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def _size(result: UnwindingResult) -> str:
    counts = [(_label(name), f"{count:,}") for name, count in result.size.items()]
    total = result.seconds.get("total", 0.0)
    phases = []
    for name, spent in result.seconds.items():
        if name != "total":
            bar = parts.bar(spent / total if total else 0.0)
            phases.append([_label(name), seconds(spent, 3), Cell("", bar, kind="bars")])
    return parts.facts(counts) + parts.table(Table(["phase", "seconds", "share"], phases))
