"""Seconds to proof on hard cores, method by method.

``python -m benchmarks.hard_cores`` prints a table of results; ``--methods auto --largest
1000`` makes it a short one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import plain_cpsat
from benchmarks.cores import as_graph, grid, sparse
from benchmarks.measure import Measured, Timed, markdown, measure, timed
from layoutopt.base.entries import Takes, entries, load
from layoutopt.base.limits import Limits
from layoutopt.network.problem import Labelling
from layoutopt.unwinding import unwind

METHOD_NAMES = ("plain CP-SAT", *entries(Takes.LABELLING, proves=True))

PLAIN_LIMIT = 2 * 10**5
"""Nodes times labels beyond which the plain model takes longer to write than it may take."""

AUTO_TIMES = 5
"""How much longer ``auto`` may take, so that the table shows when it ends."""


@dataclass(frozen=True)
class Case:
    """One core, and how often the graph holds it."""

    title: str
    build: Callable[[int, int], Labelling]
    nodes: int
    labels: int
    copies: int = 1


CASES = (
    Case("100 x 2", sparse, 100, 2),
    Case("100 x 16", sparse, 100, 16),
    Case("1000 x 4", sparse, 1000, 4),
    Case("1000 x 16", sparse, 1000, 16),
    Case("grid 1000 x 16", grid, 1000, 16),
    Case("10,000 x 4", sparse, 10_000, 4),
    Case("10,000 x 16", sparse, 10_000, 16),
    Case("100,000 x 16", sparse, 100_000, 16),
    Case("100 copies of 1000 x 16", sparse, 1000, 16, 100),
)


def run(case: Case, method: str, seconds: float) -> Timed:
    """Solve a case by a method; the answer is whether it was proved, and the gap left."""
    problem = case.build(case.nodes, case.labels)
    if method == "plain CP-SAT":
        started = time.perf_counter()
        given = plain_cpsat.statement(problem)
        spent = time.perf_counter() - started
        return timed(lambda: plain_cpsat.proved(given, seconds - spent))
    if case.copies > 1:
        graph = as_graph(problem, case.copies)
        found = timed(lambda: unwind(graph, method, time_limit=seconds))
    else:
        limits = Limits(deadline=time.monotonic() + seconds)
        found = timed(lambda: load(method, Takes.LABELLING)(problem, limits, None))
    result = found.answer
    return Timed((result.status == "optimal", result.gap), found.seconds)


def entry(found: Measured, seconds: float) -> str:
    """Return one entry of the table: seconds to proof, or what was left open."""
    if found.failure:
        return found.failure
    proved, gap = found.answer
    if proved:
        return f"{found.seconds:.2g}" if found.seconds < 10 else f"{found.seconds:.0f}"
    return "nothing" if gap is None else f"{gap:.2g}x left" if gap > 10 else f"{gap:.1%} left"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each run")
    parser.add_argument("--methods", nargs="*", choices=METHOD_NAMES, default=METHOD_NAMES)
    parser.add_argument("--largest", type=int, default=10**9, help="nodes of the largest case")
    given = parser.parse_args()
    methods = given.methods
    rows = []
    for case in CASES:
        if case.nodes > given.largest:
            continue
        row, peak = [case.title], 0.0
        for method in methods:
            if method == "plain CP-SAT" and case.nodes * case.copies * case.labels > PLAIN_LIMIT:
                row.append("-")
                continue
            limit = given.seconds * (AUTO_TIMES if method == "auto" else 1)
            found = measure(run, case, method, limit, seconds=limit)
            peak = found.peak_mb if method == "auto" else peak
            row.append(entry(found, limit))
        rows.append([*row, f"{peak:.0f}"])
        print(" | ".join(rows[-1]), flush=True)
    print(markdown(["free elements x locations", *methods, "auto: peak MiB"], rows))


if __name__ == "__main__":
    main()
