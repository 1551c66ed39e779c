"""Training steps of whole transformers: build, solve, prove, check and write the result.

``python -m benchmarks.transformers [FAMILY ...]`` prints the tables of the README: what the proof
takes, and how far greedy0 is from the optimum.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Timed, markdown, measure
from layoutopt.generate.families import generate
from layoutopt.io.result import write_result
from layoutopt.result import Status
from layoutopt.unwinding import unwind

NAMES = ("gpt2-small", "gpt2-xl", "llama-7b", "llama-70b")

HEAD = (
    *("training step", "ops", "pairs", "sink elements", "classes", "status", "build s"),
    *("solve and check s", "write s", "result KiB", "peak MiB"),
)

LOSSES = ("training step", "optimum", "greedy0", "loss", "greedy0 s", "peak MiB")


def solve(name: str) -> Timed:
    """Solve a family; ``unwind`` checks its own answer."""
    started = time.perf_counter()
    graph = generate(name, {})
    built = time.perf_counter() - started
    result = unwind(graph)
    with tempfile.TemporaryDirectory() as folder:
        path, begun = Path(folder) / "result.json", time.perf_counter()
        write_result(result, path)
        written, size = time.perf_counter() - begun, path.stat().st_size
    row = [
        *(name, f"{len(graph.ops):,}", f"{len(graph.pairs):,}"),
        *(f"{result.size['free_elements']:,}", f"{result.size['classes']:,}", str(result.status)),
        *(f"{built:.2f}", f"{result.seconds['total']:.2f}", f"{written:.2f}"),
        f"{size / 1024:,.0f}",
    ]
    return Timed(row, time.perf_counter() - started)


def lose(name: str) -> Timed:
    """Compare what greedy0 earns with the optimum; it is run first, alone in its process."""
    graph = generate(name, {})
    greedy = unwind(graph, "greedy0")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    best = unwind(graph)
    if greedy.score is None or best.score is None or best.status is not Status.OPTIMAL:
        raise RuntimeError(f"{name} has no optimum to compare with")
    loss = float((best.score - greedy.score) / best.score)
    seconds = greedy.seconds["total"]
    scores = [f"{score.normalize():,f}" for score in (best.score, greedy.score)]
    return Timed([name, *scores, f"{100 * loss:.2g}%", f"{seconds:.2f}", f"{peak:.0f}"], seconds)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help="names of families")
    rows, losses = [], []
    names = parser.parse_args().names
    for name in names:
        found = measure(solve, name)
        row = found.answer or [name, *([""] * 4), found.failure, *([""] * 4)]
        rows.append([*row, f"{found.peak_mb:.0f}"])
    for name in names:
        found = measure(lose, name)
        losses.append(found.answer or [name, "", found.failure, "", "", ""])
    print(markdown(HEAD, rows))
    print()
    print(markdown(LOSSES, losses))


if __name__ == "__main__":
    main()
