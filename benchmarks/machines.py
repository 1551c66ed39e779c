"""Training steps of whole transformers on a tile memory: 1472 tiles, ragged blocks.

``python -m benchmarks.machines [FAMILY ...]`` prints the table of the README.  Every operand of a
product lies by the rule that is made for it on this machine, forward and backward by different
partitions, and everything else by the linear rule.  The tiles have ample room, so that the first
answer is proved; :mod:`benchmarks.capacity` is about those that have not.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.measure import Timed, markdown, measure
from layoutopt.generate.families import generate
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind

NAMES = ("gpt2-small", "gpt2-xl", "llama-7b", "llama-70b")

TILES, ROOM = 1472, 2**40

HEAD = (
    *("training step", "sink elements", "classes", "status", "of all matched"),
    *("trace s", "restore s", "check s", "total s", "pieces", "peak MiB"),
)


def solve(name: str) -> Timed:
    """Solve a family on the machine."""
    graph = generate(name, {})
    graph.tile_memory = TileMemory(TILES, ROOM, element_bytes={"default": 2})
    started = time.perf_counter()
    result = unwind(graph)
    seconds = time.perf_counter() - started
    phases = [f"{result.seconds.get(phase, 0):.2f}" for phase in ("trace", "restore", "check")]
    share = float((result.score or 0) / result.max_score)
    pieces = sum(map(len, (result.layouts or {}).values()))
    row = [
        *(name, f"{result.size['free_elements']:,}", f"{result.size['classes']:,}"),
        *(str(result.status), f"{share:.1%}", *phases, f"{seconds:.2f}", f"{pieces:,}"),
    ]
    return Timed(row, seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=NAMES)
    rows = []
    for name in parser.parse_args().families:
        found = measure(solve, name)
        row = found.answer or [name, found.failure, *[""] * (len(HEAD) - 3)]
        rows.append([*row, f"{found.peak_mb:,.0f}"])
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
