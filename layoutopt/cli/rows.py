"""Tables of what is in a store of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layoutopt.cli.text import number, ratio, table
from layoutopt.errors import printable

if TYPE_CHECKING:
    from layoutopt.bench.changes import BatchChange, Difference
    from layoutopt.bench.row import Row
    from layoutopt.bench.summary import Summary

CHANGES_SHOWN = 40


def summary_table(rows: Sequence[Row]) -> str:
    """Return a line for each solver; versions and machines only where there are several."""
    from layoutopt.bench.summary import summaries

    found = summaries(rows)
    lines = [
        ["solver", "version", "machine"]
        + ["solves", "optimal", "feasible", "infeasible", "unknown", "failed"]
        + ["mean gap", "seconds", "behind", "mean loss"],
        *map(_summary, found),
    ]
    dull = {name for name in ("version", "machine") if len({getattr(s, name) for s in found}) == 1}
    dull |= {name for name in ("infeasible", "unknown", "failed") if not _any(found, name)}
    keep = [i for i, name in enumerate(lines[0]) if name not in dull]
    left = 1 + len({"version", "machine"} - dull)
    return table([[cells[i] for i in keep] for cells in lines], left=left, indent="")


def _any(found: Sequence[Summary], name: str) -> bool:
    return any(getattr(summary, name) for summary in found)


def _summary(s: Summary) -> list[str]:
    counts = (s.solves, s.optimal, s.feasible, s.infeasible, s.unknown, s.failed)
    told = [s.solver, s.version, s.machine, *(f"{count:,}" for count in counts)]
    return [*told, ratio(s.gap), f"{s.seconds:.3f}", f"{s.behind:,}", ratio(s.loss)]


def row_table(rows: Sequence[Row]) -> str:
    """Return a line for each row, with what fails beneath."""
    from layoutopt.bench.summary import best_of, best_scores, loss

    best = best_scores(rows)
    lines = [["instance", "solver", "status", "score", "bound", "gap", "seconds", "MiB", "loss"]]
    for row in rows:
        memory = "-" if row.peak_bytes is None else f"{row.peak_bytes >> 20:,}"
        told = [row.instance, _way(row), row.status, number(row.score), number(row.bound)]
        lost = ratio(loss(row, best), best_of(row, best))
        lines.append([*told, ratio(row.gap, row.score), f"{row.seconds:.3f}", memory, lost])
    errors = [
        printable(f"{row.instance} {row.solver}: {row.error} ({row.log})")
        for row in rows
        if row.error
    ]
    return "\n".join([table(lines, left=3, indent=""), *errors])


def _way(row: Row) -> str:
    """Return a solver with seed and repetition, where these are not the first."""
    seed = f" seed {row.seed}" if row.seed else ""
    return f"{row.solver}{seed}" + (f" #{row.repeat + 1}" if row.repeat else "")


def change_table(found: Difference) -> str:
    """Return what became worse and what became better, and times on the whole."""
    worse = sum(not change.better for change in found.changes)
    lines = [
        f"{found.compared:,} tasks on both sides, {found.only_before:,} only before, "
        f"{found.only_after:,} only after: {worse:,} worse, {len(found.changes) - worse:,} better"
    ]
    if found.changes:
        shown = [_change(change) for change in found.changes[:CHANGES_SHOWN]]
        head = ["", "instance", "solver", "what", "before", "after", ""]
        lines += ["", table([head, *shown], left=4, indent="")]
    if len(found.changes) > CHANGES_SHOWN:
        lines.append(f"... and {len(found.changes) - CHANGES_SHOWN:,} more changes")
    if found.overall:
        head = ["times on the whole", "tasks", "after / before", "95 % interval", ""]
        rows = [
            [o.solver, f"{o.count:,}", f"{o.ratio:.3f}", f"{o.low:.3f} - {o.high:.3f}"]
            + ["noise" if o.noise else "slower" if o.ratio > 1 else "faster"]
            for o in found.overall
        ]
        lines += ["", table([head, *rows], indent="")]
    return "\n".join(lines)


def _change(change: BatchChange) -> list[str]:
    size = f"x {change.size:.2f}" if change.what == "seconds" else ""
    if change.what in ("score", "bound"):
        size = f"{change.size:+.2%}"
    told = [change.instance, change.solver, change.what, change.before, change.after]
    return ["better" if change.better else "worse", *told, size]
