"""Training steps of whole transformers on a tile memory: 1472 tiles, ragged blocks.

``python -m benchmarks.machines [FAMILY[:LOAD] ...]`` prints a table of results.  Every operand
of a product lies by the rule that is made for it on this machine, forward and backward by different
partitions, and everything else by the linear rule.  ``LOAD`` is what a tile holds, as a multiple of
what it would hold if all tiles held as much; without it there is ample room.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.measure import Timed, markdown, measure
from layoutopt.generate.families import generate
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind

NAMES = ("gpt2-small", "gpt2-xl", "gpt2-small:1.1", "gpt2-small:1.02")

TILES, ROOM = 1472, 2**40

WIDTH = 2
"""Bytes of an element."""

HEAD = (
    *("training step", "room", "sink elements", "classes", "status", "gap", "of all matched"),
    *("trace s", "place s", "check s", "total s", "pieces", "peak MiB"),
)


def solve(asked: str) -> Timed:
    """Solve a family on the machine."""
    name, _, load = asked.partition(":")
    graph = generate(name, {})
    room = ROOM
    if load:
        room = int(float(load) * WIDTH * sum(sink.size for sink in graph.sinks()) / TILES)
    graph.tile_memory = TileMemory(TILES, room, element_bytes={"default": WIDTH})
    started = time.perf_counter()
    result = unwind(graph)
    seconds = time.perf_counter() - started
    phases = [f"{result.seconds.get(phase, 0):.2f}" for phase in ("trace", "place", "check")]
    share = float((result.score or 0) / result.max_score)
    pieces = sum(map(len, (result.layouts or {}).values()))
    row = [
        *(name, f"{load} x mean" if load else "ample"),
        *(f"{result.size['free_elements']:,}", f"{result.size['classes']:,}", str(result.status)),
        *("" if result.gap is None else f"{result.gap:.1e}", f"{share:.1%}", *phases),
        *(f"{seconds:.2f}", f"{pieces:,}"),
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
