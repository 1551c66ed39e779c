"""The nine networks that the ``onnx`` wheel ships: import, solve, check.

``python -m benchmarks.networks [NAME ...]`` prints the table of the README, by default for all
nine.  The weights in these files are stubs; shapes are all that layouts depend on.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.measure import Timed, markdown, measure
from layoutopt.onnx.read import read_onnx
from layoutopt.unwinding import unwind

NAMES = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)

HEAD = (
    *("network", "ops", "pairs", "sink elements", "classes", "status", "score", "all matched"),
    *("import s", "solve s", "check s", "peak MiB"),
)


def folder() -> Path:
    """Return where the ``onnx`` wheel keeps its networks."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def solve(name: str) -> Timed:
    """Import and solve a network; ``unwind`` checks its own answer."""
    started = time.perf_counter()
    graph = read_onnx(folder() / f"light_{name}.onnx")
    imported = time.perf_counter() - started
    result = unwind(graph)
    row = [
        *(name, f"{len(graph.ops):,}", f"{len(graph.pairs):,}"),
        *(f"{result.size['free_elements']:,}", f"{result.size['classes']:,}", str(result.status)),
        *(f"{result.score:,.0f}", f"{result.max_score:,.0f}", f"{imported:.2f}"),
        *(f"{result.seconds['total']:.2f}", f"{result.seconds['check']:.2f}"),
    ]
    return Timed(row, time.perf_counter() - started)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help="names of networks")
    rows = []
    for name in parser.parse_args().names:
        found = measure(solve, name)
        row = found.answer or [name, *([""] * 4), found.failure, *([""] * 5)]
        rows.append([*row, f"{found.peak_mb:.0f}"])
        print(" | ".join(rows[-1]), flush=True)
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
