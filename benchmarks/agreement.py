"""Classes against elements against trying everything, on very many random graphs.

``python -m benchmarks.agreement [--graphs N] [--first SEED]`` solves N graphs of each family three
ways: by classes whatever their size, element by element, and, where there are few enough
possibilities, by trying all.  Layouts of the first two are scored by the specification.  It
prints a table, and ends with an error at the first disagreement.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

from benchmarks.measure import markdown
from layoutopt.check.elements import by_elements
from layoutopt.exact.methods import METHODS
from layoutopt.generate.random_graphs import random_graph
from layoutopt.generate.random_views import random_views
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import tiled
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.limits import Limits
from layoutopt.lowering import lower
from layoutopt.tiles.memory import TileMemory
from models.exhaustive import maximum
from models.statement import state

NEVER = 2**62

TRIED = 6
"""Graphs of up to so many sink elements are tried out."""


def on_tiles(seed: int) -> Graph:
    """Return random views on a machine of a few tiles with ample room."""
    graph = random_views(seed=seed, ops=8, size=5)
    graph.tile_memory = TileMemory(2 + seed % 9, 10**9)
    return graph


FAMILIES: dict[str, Callable[[int], Graph]] = {
    "all ops": lambda seed: random_graph(seed, elements=12, ops=12, pairs=6),
    "negative values": lambda seed: random_graph(seed, elements=12, ops=8, pairs=6, negative=True),
    "no barriers": lambda seed: random_graph(seed, elements=60, ops=10, pairs=8, barriers=False),
    "tiny": lambda seed: random_graph(seed, elements=4, ops=6, pairs=5),
    "ragged views": lambda seed: random_views(seed=seed, ops=8, size=6),
    "on tiles": on_tiles,
}


def best(graph: Store, lift_from: int) -> Decimal:
    """Return the optimum one way, which the layouts must earn."""
    lowered = lower(tiled(graph), Limits(), lift_from=lift_from)
    result = METHODS["auto"](lowered.problem, Limits(), None)
    if result.objective is None or result.objective != result.bound:
        raise RuntimeError(f"{graph.name}: not proved")
    found = by_elements(graph, lowered.layouts(result.labelling))
    if found.violations or found.score is None:
        raise RuntimeError(f"{graph.name}: {found.violations}")
    if found.score != lowered.unit * (lowered.constant + int(result.objective)):
        raise RuntimeError(f"{graph.name}: the layouts are not worth what is claimed")
    return found.score


def compare(name: str, first: int, graphs: int) -> list[str]:
    """Return a row of the table."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + graphs):
        graph = FAMILIES[name](seed)
        elements = sum(sink.size for sink in graph.sinks())
        by_classes, traced = best(graph, 0), best(graph, NEVER)
        if by_classes != traced:
            raise RuntimeError(f"{name}, seed {seed}: {by_classes} by classes, {traced} traced")
        seen["elements"] += elements
        if elements <= TRIED and graph.tile_memory is None:
            tried = maximum(state(instance_bytes(graph).decode()))
            if tried != traced:
                raise RuntimeError(f"{name}, seed {seed}: {tried} by trying all, not {traced}")
            seen["tried"] += 1
    return [name, f"{graphs:,}", f"{seen['elements']:,}", f"{seen['tried']:,}", "0"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=400, help="graphs of each family")
    parser.add_argument("--first", type=int, default=0, help="their first seed")
    given = parser.parse_args()
    rows = [compare(name, given.first, given.graphs) for name in FAMILIES]
    head = ["family", "graphs", "sink elements", "tried out", "disagreements"]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
