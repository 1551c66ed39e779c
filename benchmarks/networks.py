"""The nine networks that the ``onnx`` wheel ships, and their training steps: import, solve, check.

``python -m benchmarks.networks [NAME ...]`` prints the tables of the README, by default for all
nine.  The weights in these files are stubs; shapes are all that layouts depend on.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.measure import Timed, markdown, measure
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.read import read_onnx
from layoutopt.result import UnwindingResult
from layoutopt.unwinding import unwind

NAMES = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)

HEAD = (
    *("network", "ops", "pairs", "sink elements", "classes", "status", "score", "all matched"),
    *("import s", "solve s", "check s", "peak MiB"),
)

TRAINING = "adam"
"""Optimiser of the training steps."""

GREEDY_LIMIT = 25_000_000
"""Most sink elements of a training step that ``greedy0``, which touches each, is run on."""


def folder() -> Path:
    """Return where the ``onnx`` wheel keeps its networks."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def solve(name: str, training: str | None = None) -> Timed:
    """Import and solve a network or its training step; ``unwind`` checks its own answer."""
    started = time.perf_counter()
    graph = read_onnx(folder() / f"light_{name}.onnx", training=training)
    imported = time.perf_counter() - started
    result = unwind(graph)
    row = [
        *(name, f"{len(graph.ops):,}", f"{len(graph.pairs):,}"),
        *(f"{result.size['free_elements']:,}", f"{result.size['classes']:,}", str(result.status)),
        *(f"{result.score:,.0f}", f"{result.max_score:,.0f}", f"{imported:.2f}"),
        *(f"{result.seconds['total']:.2f}", f"{result.seconds['check']:.2f}"),
    ]
    return Timed(row, time.perf_counter() - started)


def greedy_loss(name: str, training: str) -> Timed:
    """Return what ``greedy0`` loses on a training step against the best score."""
    graph = read_onnx(folder() / f"light_{name}.onnx", training=training)
    started = time.perf_counter()
    return Timed(_loss(graph, unwind(graph)), time.perf_counter() - started)


def _loss(graph: Graph, best: UnwindingResult) -> str:
    if best.size["free_elements"] > GREEDY_LIMIT or best.score is None:
        return "-"
    found = unwind(graph, "greedy0")
    if found.score is None:
        return found.stopped
    return f"{100 * (best.score - found.score) / best.score:.2g}%"


def _row(name: str, training: str | None = None) -> list[str]:
    found = measure(solve, name, training)
    row = found.answer or [name, *([""] * 4), found.failure, *([""] * 5)]
    return [*row, f"{found.peak_mb:.0f}"]


def main() -> None:
    """Print the tables: networks, then their training steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help="names of networks")
    names = parser.parse_args().names
    rows, steps = [], []
    for name in names:
        rows.append(_row(name))
        print(" | ".join(rows[-1]), flush=True)
    for name in names:
        greedy = measure(greedy_loss, name, TRAINING)
        steps.append([*_row(name, TRAINING), greedy.answer or greedy.failure])
        print(" | ".join(steps[-1]), flush=True)
    print(markdown(HEAD, rows))
    print()
    print(markdown((*HEAD, "greedy0 loses"), steps))


if __name__ == "__main__":
    main()
