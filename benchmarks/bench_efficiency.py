"""What a batch run costs beside solving: ``python -m benchmarks.bench_efficiency [SUITE] [JOBS]``.

By default, 1000 small instances by five solvers on all cores.  Two shares are told.  That of the
workers' *time* is what the run's seconds times its workers went into solves; it counts as solving
what a solve waits for a core, so it means something on an otherwise idle machine only.  That of
*processor time* is how much of all that the run's processes took was taken by solves; it is lower
where cores stand idle on the contrary, but other programs do not change it.  Starting the workers,
with all imports, counts against both.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.measure import markdown, timed
from layoutopt.bench.executors import Processes
from layoutopt.bench.run import Report, batch

SUITE = Path(__file__).parent / "suites" / "small.toml"


def run(suite: Path, jobs: int) -> Report:
    """Run a suite into a new store; the workers have ended when this returns."""
    with tempfile.TemporaryDirectory() as folder, Processes(jobs) as executor:
        return batch([suite], Path(folder) / "bench.sqlite", executor)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", nargs="?", type=Path, default=SUITE)
    parser.add_argument("jobs", nargs="?", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    done = timed(lambda: run(given.suite, given.jobs))
    report: Report = done.answer
    solving = sum(row.seconds for row in report.rows)
    working = sum(row.cpu_seconds or 0.0 for row in report.rows)
    head = ("suite", "solves", "failed", "workers", "seconds", "of time", "of processor time")
    told = [given.suite.stem, f"{len(report.rows):,}", f"{report.progress.failed:,}"]
    shares = f"{solving / done.seconds / given.jobs:.1%}", f"{working / done.cpu:.1%}"
    print(markdown(head, [[*told, str(given.jobs), f"{done.seconds:.1f}", *shares]]))


if __name__ == "__main__":
    main()
