"""Sharding of transformers as PyTorch AutoParallel states it, beside other solvers.

``python -m benchmarks.sharding [--layers 32] [--labels 60] [--tied] [--seconds 300]`` draws a
network: in each layer weights and ops choose one of 5 to ``--labels`` strategies; a table between
neighbours says what it costs to turn one's placement into what the other wants; weights use memory,
which a row limits on both sides.  The network is solved here and, as one and the same integer
programme, by CBC through PuLP, by HiGHS and by CP-SAT; and by toulbar2.
"""

from __future__ import annotations

import argparse
import random
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from benchmarks.other_solvers import compare

SOLVERS = ["layoutopt", "toulbar2", "HiGHS", "CP-SAT", "CBC (PuLP)"]

PLACES = 9
"""Placements of a tensor on a mesh of two axes: shards on an axis, replicas, partial sums."""

OPS = (
    ("norm", ("add2",), ()),
    ("q", ("norm",), ("wq",)),
    ("k", ("norm",), ("wk",)),
    ("v", ("norm",), ("wv",)),
    ("attention", ("q", "k", "v"), ()),
    ("out", ("attention",), ("wo",)),
    ("add", ("out", "add2"), ()),
    ("norm2", ("add",), ()),
    ("gate", ("norm2",), ("w1",)),
    ("up", ("norm2",), ("w3",)),
    ("silu", ("gate",), ()),
    ("product", ("silu", "up"), ()),
    ("down", ("product",), ("w2",)),
    ("add2", ("down", "add"), ()),
)
"""Ops of a layer, what they read (``add2`` of the layer before), and weights that they use."""


def draw(layers: int, labels: int, tied: bool, seed: int) -> Any:
    """Return a network."""
    from layoutopt.network import CostNetwork

    r = random.Random(seed)
    net = CostNetwork(f"{layers} layers of {labels} labels")
    turn = [[0 if a == b else r.randint(1, 40) for b in range(PLACES)] for a in range(PLACES)]
    kinds: dict[str, tuple[Any, list[int], list[list[int]], list[int], list[int]]] = {}
    used: dict[tuple[str, int | str], int | Fraction | Decimal | float] = {}
    least = most = 0

    def node(layer: int, kind: str, reads: int, weight: bool) -> str:
        nonlocal least, most
        if kind not in kinds:
            size = r.randint(5, labels)
            makes = [r.randrange(PLACES) for _ in range(size)]
            wants = [[r.randrange(PLACES) for _ in range(size)] for _ in range(reads)]
            memory = [r.choice([1, 2, 4, 8]) * 64 // r.choice([1, 2, 4, 8]) for _ in range(size)]
            costs = [r.randint(0, 900) + (2000 // m if weight else 0) for m in memory]
            kinds[kind] = net.domain(size), makes, wants, memory, costs
        domain, _, _, memory, costs = kinds[kind]
        noise = r.randint(90, 110)
        name = net.node(f"{layer}.{kind}", domain, [cost * noise for cost in costs])
        if weight:
            used.update({(name, i): amount for i, amount in enumerate(memory)})
            least, most = least + min(memory), most + max(memory)
        return name

    def join(source: str, reader: str, slot: int, size: int) -> None:
        makes = kinds[source.split(".")[1]][1]
        wants = kinds[reader.split(".")[1]][2][slot]
        net.table(source, reader, [[turn[a][b] * size for b in wants] for a in makes])

    for layer in range(layers):
        for kind, reads, weights in OPS:
            here = node(layer, kind, len(reads) + len(weights), False)
            for slot, read in enumerate(reads):
                before = read == "add2"
                if not before or layer:
                    join(f"{layer - before}.{read}", here, slot, r.randint(20, 60))
            for slot, weight in enumerate(weights, len(reads)):
                join(node(layer, weight, 0, True), here, slot, r.randint(5, 30))
    if tied:
        for layer in range(1, layers):
            for kind in kinds:
                net.tie(f"0.{kind}", f"{layer}.{kind}")
    net.row(used, low=least, high=(3 * least + most) // 4, name="memory")
    return net.build()


def main() -> None:
    """Solve one network by all solvers that are installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", nargs="*", default=SOLVERS)
    asked = parser.parse_args()
    make = partial(draw, asked.layers, asked.labels, asked.tied, asked.seed)
    network = make()
    cells = sum(network.tables[k].costs.size for k in network.table_of.tolist())
    print(f"{network}, {int(network.sizes.sum())} labels, {cells} pairs")
    compare(make, asked.only, asked.seconds)


if __name__ == "__main__":
    main()
