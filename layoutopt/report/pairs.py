"""What pairs earn and lose, and why those lose that lose most."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from decimal import Decimal

from layoutopt import decimals
from layoutopt.errors import InputError, SizeError, SolverError
from layoutopt.explain.pair import explain_pair
from layoutopt.explain.told import Change, PairExplanation
from layoutopt.explain.words import exact, listed, paired, sure
from layoutopt.pictures import pages
from layoutopt.pictures.pages import Cell, Cells
from layoutopt.pictures.text import counted, escaped, number, ratio
from layoutopt.report.classes import by_class, by_loss
from layoutopt.result import PairScore, UnwindingResult

SHOWN = 40
"""So many pairs are shown one by one; more are shown by class, and so many classes."""

EXPLAINED = 5
"""How many pairs that lose are explained."""

CHANGES = 10
"""How many pairs are named that change if one is won."""

HEAD = ["pair", "loses", "share of all losses", "value", "matched", "earns"]
HEAD_OF_CLASSES = [
    *("pairs that are alike", "number", "lose", "share of all losses"),
    *("value", "matched, each", "earn"),
]


def pair_tables(pairs: Sequence[PairScore]) -> str:
    """Return what pairs earn, those first that lose most; of many, alike ones together."""
    if not pairs:
        return pages.paragraph("The graph has no ValuedPairs: nothing can be earned.")
    lost = decimals.total(p.loss for p in pairs if p.loss > 0)
    losing = sum(p.loss > 0 for p in pairs)
    earned = decimals.total(decimals.times(p.value, p.matched) for p in pairs)
    if losing:
        verb = "loses" if losing == 1 else "lose"
        told = f"{losing:,} of {counted(len(pairs), 'pair')} {verb} {number(lost)}; "
        told += f"all together earn {number(earned)}."
    else:
        told = f"{counted(len(pairs), 'pair')}: {number(earned)} earned, nothing lost."
    if len(pairs) <= SHOWN:
        rows = [_row([pair], lost) for pair in by_loss(pairs)]
        return pages.paragraph(told) + pages.table(HEAD, rows, sortable=True)
    classes = sorted(by_class(pairs), key=lambda c: decimals.times(c[0].loss, -len(c)))
    rows = [_row(alike, lost, True) for alike in classes[:SHOWN]]
    more = len(classes) - SHOWN
    rest = f"... and {counted(more, 'more class', 'more classes')}" if more > 0 else ""
    table = pages.table(HEAD_OF_CLASSES, rows, sortable=True)
    return pages.paragraph(told) + table + pages.paragraph(rest, "soft")


def _row(alike: Sequence[PairScore], lost: Decimal, by_number: bool = False) -> Cells:
    """Return the row of one pair, or of several that are alike."""
    first, count = alike[0], len(alike)
    loss = decimals.times(first.loss, count)
    share = decimals.share(loss, lost) if lost else 0.0
    drawn = f"{pages.bar(share)} {ratio(share)}" if loss > 0 else ""
    others = pages.alike([f"{p.a}, {p.b}" for p in alike[1:]]) if count > 1 else ""
    return [
        _named(first.a, first.b, others),
        *([f"{count:,}"] if by_number else []),
        _number(loss),
        Cell("", drawn, order=f"{share}", kind="bars"),
        _number(first.value),
        Cell(f"{first.matched:,} of {first.elements:,}", order=str(first.matched)),
        _number(decimals.times(first.value, count * first.matched)),
    ]


def _named(a: str, b: str, more: str = "") -> Cell:
    return Cell(a, pages.pair(a, b) + more, kind="name")


def _number(value: Decimal) -> Cell:
    return Cell(number(value), order=f"{value:f}")


def reasons(result: UnwindingResult, seconds: float) -> str:
    """Return why the pairs lose that lose most: what it would cost to win one of each class.

    Parameters
    ----------
    seconds
        For all explanations together; none is tried with 0.
    """
    losing = _losing(result.pairs)[:EXPLAINED]
    if not losing or result.graph is None or result.layouts is None or seconds <= 0:
        return ""
    if result.size.get("given"):  # the rest of them is the best, not all
        return pages.paragraph("Not explained, as some layouts were given.", "soft")
    end = time.monotonic() + seconds
    parts = []
    for i, alike in enumerate(losing):
        left, more = end - time.monotonic(), len(losing) - i
        if left <= 0:
            parts.append(
                pages.paragraph(f"Time ran out before {more:,} more were looked at.", "soft")
            )
            break
        pair, limit = alike[0], left / more
        try:
            found = explain_pair(result.graph, result, pair.a, pair.b, time_limit=limit)
        except (InputError, SizeError, SolverError) as error:
            parts.append(pages.paragraph(f"Not explained: {error}", "soft"))
            break
        parts.append(_explained(found, len(alike) - 1))
    return "".join(parts)


def _losing(pairs: Sequence[PairScore]) -> list[list[PairScore]]:
    """Return classes of pairs that lose, each with first tensors of its own."""
    found: dict[frozenset[str], list[PairScore]] = {}
    for alike in by_class(pairs):
        if alike[0].loss > 0:
            found.setdefault(frozenset((alike[0].a, alike[0].b)), alike)
    return list(found.values())


def _explained(found: PairExplanation, others: int) -> str:
    """Return what it would take to win one pair, of which there are others like it."""
    title = f"{escaped(found.a)}, {escaped(found.b)}: loses {number(found.loses)}"
    if others:
        title += f' <span class="soft">(and {others:,} like it)</span>'
    told = [f"{found.reason[:1].upper()}{found.reason[1:]}.", *_wanting(found)]
    changes = sorted(found.changes, key=lambda change: change.difference)
    rows = [_changed(change) for change in changes[:CHANGES]]
    head = ["what else would change", "earns", "value", "matches now", "then"]
    parts = [f"<h3>{title}</h3>", pages.paragraph(" ".join(told)), pages.table(head, rows)]
    if len(changes) > CHANGES:
        parts.append(pages.paragraph(f"... and {len(changes) - CHANGES:,} more pairs", "soft"))
    return f'<div class="why">{"".join(parts)}</div>'


def _wanting(found: PairExplanation) -> Iterator[str]:
    """Yield what would have to change for the pair to be won."""
    if found.threshold is not None and found.threshold > found.value:
        worth = f"from a value of {exact(found.threshold)} on, in place of {number(found.value)}"
        yield f"It pays {worth}{sure(found.threshold_proved)}."
    if found.smallest:
        names = listed([paired(p.a, p.b) for p in found.smallest])
        verb = "was" if len(found.smallest) == 1 else "were"
        yield f"It also pays if {names} {verb} worth nothing{sure(found.smallest_proved)}."


def _changed(change: Change) -> Cells:
    difference = number(change.difference)
    earns = f"+{difference}" if change.difference > 0 else difference
    counts = [f"{change.before:,}", f"{change.after:,}"]
    return [_named(change.a, change.b), earns, number(change.value), *counts]
