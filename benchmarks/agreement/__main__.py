"""Solvers, methods, models and specification against each other, on as many graphs as you like.

``python -m benchmarks.agreement [--graphs N] [--seed S] [--first K] [--seconds T]`` takes graphs
``K``, ``K + 1``, ... of seed ``S``, kinds in turns, and asks everybody whose turn it is.  The
table tells how many graphs each partner saw.  Where two cannot both be right, the graph is made
smaller and written to ``--folder``, and the exit code is 1.  ``--conversion`` compares conversion
graphs instead, ``--networks`` cost networks.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from pathlib import Path
from typing import TypeAlias

from benchmarks.agreement import conversion, networks, unwinding
from tests.hooked import own_hooks

EVERY = 5.0
"""Seconds between lines of progress."""


Comparison: TypeAlias = unwinding.Comparison | conversion.Comparison | networks.Comparison


def run(comparison: Comparison, given: argparse.Namespace) -> None:
    """Compare graphs until there are no more, or time is up."""
    begin = told = time.monotonic()
    for k in range(given.first, given.first + given.graphs):
        now = time.monotonic()
        if now - begin > given.seconds:
            break
        if now - told > EVERY:
            told = now
            _progress(comparison, k, now - begin)
        comparison.compare(given.seed, k, given.folder)
    _progress(comparison, given.first + comparison.graphs.total(), time.monotonic() - begin)


def _progress(comparison: Comparison, k: int, seconds: float) -> None:
    done = comparison.graphs.total()
    rate = done / seconds if seconds else 0.0
    told = f"at graph {k:,}: {done:,} compared, {rate:.0f} a second"
    print(f"{told}, {comparison.disagreements.total()} disagreements", file=sys.stderr, flush=True)


def main() -> int:
    """Compare, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--graphs", type=int, default=2800, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="which sequence of graphs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seconds", type=float, default=inf, help="stop after so many")
    parser.add_argument(
        "--folder", type=Path, default=Path("disagreements"), help="where these are written"
    )
    parser.add_argument("--conversion", action="store_true", help="compare conversion graphs")
    parser.add_argument("--networks", action="store_true", help="compare cost networks")
    given = parser.parse_args()
    other = networks.Comparison() if given.networks else unwinding.Comparison()
    comparison = conversion.Comparison() if given.conversion else other
    with own_hooks():
        run(comparison, given)
    print(comparison.tables())
    return int(comparison.disagreements.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
