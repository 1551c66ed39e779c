"""Random graphs of views that join elements every which way: seconds to proof, by size.

``python -m benchmarks.random_views`` prints the table of the README.
"""

from __future__ import annotations

import argparse
from collections import Counter
from statistics import median

from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.generate.random_views import random_views
from layoutopt.unwinding import unwind

HEAD = ("ops", "size", "sink elements", "classes", "statuses", "median s", "max s", "peak MiB")


def solve(ops: int, size: int, seed: int, seconds: float) -> Timed:
    """Solve one graph; the answer is its status, its sink elements and its classes."""
    graph = random_views(seed=seed, ops=ops, size=size)
    found = timed(lambda: unwind(graph, time_limit=seconds))
    counts = found.answer.size
    answer = str(found.answer.status), counts["free_elements"], counts.get("classes", 0)
    return Timed(answer, found.seconds)


def row(ops: int, size: int, seeds: int, seconds: float) -> list[str]:
    """Return one row of the table."""
    runs = [measure(solve, ops, size, seed, seconds, seconds=seconds) for seed in range(seeds)]
    statuses = Counter(run.failure or run.answer[0] for run in runs)
    answers = [run.answer for run in runs if not run.failure]
    return [
        *(str(ops), str(size)),
        f"{max((free for _, free, _ in answers), default=0):,}",
        f"{max((classes for _, _, classes in answers), default=0):,}",
        ", ".join(f"{count} {status}" for status, count in statuses.most_common()),
        *(f"{pick(run.seconds for run in runs):.2f}" for pick in (median, max)),
        f"{max(run.peak_mb for run in runs):.0f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, nargs="*", default=[16, 64, 128])
    parser.add_argument("--sizes", type=int, nargs="*", default=[8, 16, 32, 64])
    parser.add_argument("--seeds", type=int, default=5, help="graphs of each kind")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each run")
    given = parser.parse_args()
    rows = []
    for ops in given.ops:
        for size in given.sizes:
            rows.append(row(ops, size, given.seeds, given.seconds))
            print(" | ".join(rows[-1]), flush=True)
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
