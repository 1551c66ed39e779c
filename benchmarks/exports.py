"""Networks as channels-last exporters write them: their transposes, and what optimisers leave.

``python -m benchmarks.exports`` prints tables of results: the nine networks of the
``onnx`` wheel with each convolution and pool between transposes, and random exports.  Each answer
is run beside the original in onnxruntime, optimisation off.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import onnx

from benchmarks.measure import Timed, markdown, measure
from benchmarks.networks import files
from layoutopt.converting import convert
from layoutopt.onnx.transposes import optimised_transposes, transposes
from tests.onnx.exports import channels_last, random_export

HEAD = (
    *("network", "nodes", "transposes", "proved minimum", "onnxruntime leaves"),
    *("status", "seconds", "peak MiB"),
)

RANDOM_HEAD = (
    *("nodes", "exports", "transposes", "proved minimum", "onnxruntime leaves"),
    *("onnxruntime optimal", "largest difference", "median s"),
)

SIZES, SEEDS = (14, 40, 120), 20


def network(name: str, path: Path) -> Timed:
    """Convert one of the nine networks."""
    model = channels_last(onnx.load(path))
    started = time.perf_counter()
    result = convert(model)
    seconds = time.perf_counter() - started
    row = [
        *(name, f"{len(model.graph.node):,}", f"{transposes(model):,}"),
        *(f"{transposes(result.model):,}", f"{optimised_transposes(model):,}"),
        *(str(result.status), f"{seconds:.2f}"),
    ]
    return Timed(row, seconds)


def exports(size: int) -> list[str]:
    """Convert random exports of some size, and return a row of totals."""
    before = after = left = best = 0
    differences, seconds = [], []
    for seed in range(SEEDS):
        model = random_export(seed, size)
        started = time.perf_counter()
        result = convert(model, check=True)
        seconds.append(time.perf_counter() - started)
        peer, own = optimised_transposes(model), transposes(result.model)
        before, after, left = before + transposes(model), after + own, left + peer
        best += peer == own
        differences.append(result.difference or 0.0)
    median = sorted(seconds)[SEEDS // 2]
    return [
        *(f"{size:,}", f"{SEEDS}", f"{before:,}", f"{after:,}", f"{left:,}"),
        *(f"{best} of {SEEDS}", f"{max(differences):.0e}", f"{median:.2f}"),
    ]


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows = []
    for name, path in files().items():
        found = measure(network, name, path)
        row = found.answer or [name, found.failure, *[""] * (len(HEAD) - 3)]
        rows.append([*row, f"{found.peak_mb:,.0f}"])
    print(markdown(HEAD, rows))
    print()
    print(markdown(RANDOM_HEAD, [exports(size) for size in SIZES]))


if __name__ == "__main__":
    main()
