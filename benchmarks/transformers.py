"""Training steps of whole transformers: build, solve, prove, check and write the result.

``python -m benchmarks.transformers [FAMILY ...]`` prints the table of the README.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Timed, markdown, measure
from layoutopt.generate.families import generate
from layoutopt.io.result import write_result
from layoutopt.unwinding import unwind

NAMES = ("gpt2-small", "gpt2-xl", "llama-7b", "llama-70b")

HEAD = (
    *("training step", "ops", "pairs", "sink elements", "classes", "status", "build s"),
    *("solve and check s", "write s", "result KiB", "peak MiB"),
)


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help="names of families")
    rows = []
    for name in parser.parse_args().names:
        found = measure(solve, name)
        row = found.answer or [name, *([""] * 4), found.failure, *([""] * 4)]
        rows.append([*row, f"{found.peak_mb:.0f}"])
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
