"""Allocation of registers, colouring and random tables as cost networks, beside other solvers.

``python -m benchmarks.registers [--family registers] [--nodes 60] [--labels 8] [--seconds 30]``
draws a network of a family.  *registers*: values that are alive at the same time have different
registers, or are spilled at a cost, and moves want the same one.  *colouring*: neighbours of one
colour cost something, and colours do.  *tables*: neighbours have tables of random costs.
"""

from __future__ import annotations

import argparse
import random
from functools import partial
from typing import Any

from benchmarks.other_solvers import compare
from layoutopt.network import CostNetwork

SOLVERS = ["layoutopt", "CP-SAT, directly", "toulbar2"]


def registers(nodes: int, labels: int, seed: int) -> Any:
    """Return values that are alive for up to an eighth of the time; the last label is spilling."""
    draw, net = random.Random(seed), CostNetwork("registers")
    names = net.domain([*(f"r{k}" for k in range(labels - 1)), "spilled"])
    begins = [draw.randrange(2 * nodes) for _ in range(nodes)]
    alive = [(begin, begin + draw.randrange(2, max(nodes // 4, 3))) for begin in begins]
    same = range(labels - 1)
    for v in range(nodes):
        own = [draw.randrange(1, 4) if draw.random() < 0.1 else 0 for _ in same]
        net.node(f"v{v}", names, [*own, draw.randrange(5, 60)])
        for u in range(v):
            worth: int | None = -draw.randrange(1, 20)
            if alive[u][0] < alive[v][1] and alive[v][0] < alive[u][1]:
                worth = None
            elif draw.random() >= 2 / nodes:
                continue
            table = [[worth if i == j else 0 for j in (*same, -1)] for i in (*same, -2)]
            net.table(f"v{u}", f"v{v}", table)
    return net.build()


def colouring(nodes: int, labels: int, seed: int) -> Any:
    """Return nodes of which each has about 15 neighbours."""
    draw, net = random.Random(seed), CostNetwork("colouring")
    colours = net.domain(labels)
    for v in range(nodes):
        net.node(f"v{v}", colours, [draw.randrange(10) for _ in range(labels)])
        for u in range(v):
            if draw.random() < 15 / nodes:
                cost = draw.randrange(1, 30)
                table = [[cost if i == j else 0 for j in range(labels)] for i in range(labels)]
                net.table(f"v{u}", f"v{v}", table)
    return net.build()


def tables(nodes: int, labels: int, seed: int) -> Any:
    """Return nodes of which each has about 15 neighbours."""
    draw, net = random.Random(seed), CostNetwork("tables")
    every = net.domain(labels)
    for v in range(nodes):
        net.node(f"v{v}", every, [draw.randrange(30) for _ in range(labels)])
        for u in range(v):
            if draw.random() < 15 / nodes:
                rows = [[draw.randrange(30) for _ in range(labels)] for _ in range(labels)]
                net.table(f"v{u}", f"v{v}", rows)
    return net.build()


FAMILIES = {"registers": registers, "colouring": colouring, "tables": tables}


def main() -> None:
    """Solve one network by all solvers that are installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=list(FAMILIES), default="registers")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--labels", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", nargs="*", default=SOLVERS)
    asked = parser.parse_args()
    make = partial(FAMILIES[asked.family], asked.nodes, asked.labels, asked.seed)
    print(make())
    compare(make, asked.only, asked.seconds)


if __name__ == "__main__":
    main()
