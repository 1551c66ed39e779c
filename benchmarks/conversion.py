"""Seconds to convert large random networks, with proof.

``python -m benchmarks.conversion [--ops N] [--layouts K] [--seed S]`` prints a table.  Some of the
ops take one layout each, between transposes as an exporter writes them; elementwise ops, sums of
two tensors and softmax between them may run in any that is of use.
"""

from __future__ import annotations

import argparse
import random

from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.base.limits import limited
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.graph import ConversionGraph

SIZES = ((1000, 4), (5000, 4), (50000, 2))
"""Ops and layouts."""

ORDERS = ((0, 1, 2, 3), (0, 2, 3, 1), (2, 3, 1, 0), (1, 2, 3, 0), (3, 2, 0, 1), (0, 3, 2, 1))
"""Orders of axes in which fixed ops take their operands."""

RECENT = 8
"""Ops read one of so many latest tensors."""


def network(ops: int, layouts: int, seed: int = 0, fixed: float = 0.2) -> ConversionGraph:
    """Return a random network.

    Parameters
    ----------
    ops
        How many ops it has, transposes not counted.
    layouts
        In how many orders fixed ops take their operands.
    seed
        Equal seeds give equal networks.
    fixed
        The share of ops that take one layout.
    """
    draw = random.Random(seed)
    graph = ConversionGraph(f"{ops} ops, {layouts} layouts")
    live = [graph.input("x", (4, 4, 4, 4))]
    for n in range(ops):
        x = draw.choice(live[-RECENT:])
        kind = draw.random()
        if kind < fixed:
            order = draw.choice(ORDERS[:layouts])
            before = x if order == ORDERS[0] else graph.op("Transpose", [x], {"perm": order})
            y = graph.op("test::Fixed", [before], shape=(4, 4, 4, 4))
            back = tuple(sorted(range(4), key=order.__getitem__))
            live.append(y if order == ORDERS[0] else graph.op("Transpose", [y], {"perm": back}))
        elif kind < 0.6:
            live.append(graph.op("Relu", [x]))
        elif kind < 0.9:
            live.append(graph.op("Add", [x, draw.choice(live[-RECENT:])]))
        else:
            live.append(graph.op("Softmax", [x], {"axis": n % 4}))
    graph.output(live[-1])
    return graph


def converted(ops: int, layouts: int, seed: int, seconds: float) -> Timed:
    """Convert a network; what counts is the time of the conversion."""
    graph = network(ops, layouts, seed)

    def run() -> tuple[str, ...]:
        found = convert_graph(graph, objective="bytes,count", limits=limited(seconds))
        phases = [f"{found.seconds[name]:.2f}" for name in PHASES]
        counts = [str(found.before.transforms), str(found.after.transforms)]
        return (*counts, str(found.status), f"{found.gap:.1%}", *phases)

    return timed(run)


PHASES = ("modes", "problem", "solve", "rewrite", "check")


def row(ops: int, layouts: int, seed: int, seconds: float) -> list[str]:
    """Return a row of the table."""
    found = measure(converted, ops, layouts, seed, seconds, seconds=seconds)
    told = [found.failure, *[""] * 8] if found.failure else list(found.answer)
    ends = [f"{found.seconds:.2f}", f"{found.peak_mb:.0f}"]
    return [f"{ops:,}", str(layouts), *told, *ends]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, help="ops of the network")
    parser.add_argument("--layouts", type=int, default=4, help="layouts that fixed ops take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each")
    given = parser.parse_args()
    sizes = SIZES if given.ops is None else ((given.ops, given.layouts),)
    rows = [row(ops, layouts, given.seed, given.seconds) for ops, layouts in sizes]
    ends = ["status", "gap", *(f"{name} s" for name in PHASES), "total s", "MiB"]
    print(markdown(["ops", "layouts", "transforms", "afterwards", *ends], rows))


if __name__ == "__main__":
    main()
