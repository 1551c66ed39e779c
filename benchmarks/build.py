"""Building a large graph op by op, and asking it about every tensor.

``python -m benchmarks.build [--quick]`` prints a table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

OPS = (1_000, 10_000, 100_000)
"""Sizes of graphs, in ops."""


def layers(ops: int) -> Graph:
    """Return a graph of about so many ops: layers with views, sums and targets, in a chain."""
    graph = Graph(f"build-{ops}")
    x = graph.sink((8, 16))
    while len(graph.ops) < ops:
        x = _layer(graph, x)
    return graph


def _layer(graph: Graph, x: Tensor) -> Tensor:
    """Add two weights, one used in halves and turned round, with targets, and return a sum."""
    w, bias = graph.sink((8, 16)), graph.sink((16,))
    for part in (w[:4], w[4:, ::-1], w.T, w[::2, ::2].flatten()):
        graph.valued_pair(part, graph.source(part.shape), 100)
    joined = graph.concat([w[:, 8:], w[:, :8]], -1)
    y = graph.fixed_point([x, joined], (8, 16))
    return graph.sum_like([y, bias], 10) + x


def ask(graph: Graph) -> int:
    """Return how many partners and consumers all tensors have together."""
    every = graph.tensors()
    return sum(len(graph.valued_partners(x)) + len(graph.consumers(x)) for x in every)


def run(ops: int) -> Timed:
    """Return sizes, and the seconds of each thing that is done to a graph."""
    built = timed(lambda: layers(ops))
    graph: Graph = built.answer
    acts: list[Callable[[], object]] = [
        lambda: ask(graph),
        lambda: str(graph),
        graph.copy,
        lambda: graph.rename("sink0", "first"),
        lambda: graph.remove(graph.ops[-1].id),
    ]
    seconds = [built.seconds, *(timed(act).seconds for act in acts)]
    return Timed((len(graph.ops), len(graph.pairs), seconds), built.seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    rows = []
    for ops in OPS[:2] if parser.parse_args().quick else OPS:
        found = measure(run, ops)
        if found.failure:
            rows.append([f"{ops:,}", found.failure, *[""] * 7])
            continue
        made, pairs, seconds = found.answer
        figures = [f"{s:.3f}" for s in seconds]
        rows.append([f"{made:,}", f"{pairs:,}", *figures, f"{found.peak_mb:.0f}"])
    acts = ("build s", "ask all s", "print s", "copy s", "rename s", "remove s")
    print(markdown(["ops", "pairs", *acts, "peak MiB"], rows))


if __name__ == "__main__":
    main()
