"""The choice of layouts for whole networks as a problem of pairwise costs, at random.

``python -m benchmarks.pbqp [--ops N] [--layouts K] [--seed S]`` solves a network of each family and
prints a table.  Ops read tensors in a family's pattern; each has up to ``K`` *modes*, which say in
which layout it wants what it reads and in which it produces what it makes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.base.limits import limited
from layoutopt.network import CostNetwork
from layoutopt.network import Network as Problem
from layoutopt.network.builder import CostRows
from layoutopt.network.costs.solve import solve_pbqp
from layoutopt.network.network import CostAnswer

SIZES = ((5000, 4), (50000, 2))
"""Ops and layouts."""


@dataclass(frozen=True)
class Mode:
    """The layouts that an op wants of its inputs, the one that it makes, and its cost."""

    wants: tuple[int, ...]
    makes: int
    cost: int


@dataclass(frozen=True)
class Network:
    """Ops in order; op ``t`` makes tensor ``t``.

    Parameters
    ----------
    inputs
        For each op the tensors that it reads, all made before.
    modes
        For each op its modes.
    sizes
        For each tensor what a transform of it costs.
    layouts
        Number of layouts.
    """

    inputs: tuple[tuple[int, ...], ...]
    modes: tuple[tuple[Mode, ...], ...]
    sizes: tuple[int, ...]
    layouts: int

    def cost(self, chosen: Sequence[int]) -> int:
        """Return the cost of modes: a transform for each layout wanted and not made."""
        modes = [own[i] for own, i in zip(self.modes, chosen, strict=True)]
        wanted = {
            (t, layout)
            for read, mode in zip(self.inputs, modes, strict=True)
            for t, layout in zip(read, mode.wants, strict=True)
        }
        moved = sum(self.sizes[t] for t, layout in wanted if modes[t].makes != layout)
        return moved + sum(mode.cost for mode in modes)

    def problem(self) -> Problem:
        """Return the choice of modes as a problem of pairwise costs.

        A node for each op, then one for each tensor that is read and each layout: label 1 if the
        tensor is there in that layout, which costs its size.  What is made costs nothing, so
        its maker gets the size back.
        """
        costs: list[list[int | None]] = []
        read = {t for inputs in self.inputs for t in inputs}
        for t, modes in enumerate(self.modes):
            costs.append([mode.cost - (self.sizes[t] if t in read else 0) for mode in modes])
        there = {}
        for t in sorted(read):
            for layout in range(self.layouts):
                there[t, layout] = len(costs)
                costs.append([0, self.sizes[t]])
        edges, tables = [], []
        for op, modes in enumerate(self.modes):
            ends = [(t, [mode.wants[k] for mode in modes]) for k, t in enumerate(self.inputs[op])]
            if op in read:
                ends.append((op, [mode.makes for mode in modes]))
            for t, layouts in ends:
                for layout in sorted(set(layouts)):
                    table = [(None if own == layout else 0, 0) for own in layouts]
                    edges.append((op, there[t, layout]))
                    tables.append(table)
        return stated(costs, edges, tables)


def stated(
    costs: CostRows, edges: Sequence[tuple[int, int]] = (), tables: Sequence[CostRows] = ()
) -> Problem:
    """Return a problem of costs of labels, ``None`` forbidden, and of tables, in units of 1."""
    net = CostNetwork.from_arrays(costs, edges, tables)
    net.constant(1)
    return replace(net.build(), constant=0)


class Growing:
    """Ops that read each other, as they are added."""

    def __init__(self) -> None:
        self.inputs: list[tuple[int, ...]] = [()]

    def op(self, *read: int) -> int:
        """Add an op that reads tensors; return what it makes."""
        self.inputs.append(tuple(dict.fromkeys(read)))
        return len(self.inputs) - 1


def chain(net: Growing, x: int, draw: random.Random) -> int:
    """Grow ops one after the other."""
    for _ in range(draw.randint(2, 10)):
        x = net.op(x)
    return x


def residual(net: Growing, x: int, draw: random.Random) -> int:
    """Grow blocks of three ops with a skip around each."""
    for _ in range(draw.randint(1, 6)):
        x = net.op(x, net.op(net.op(net.op(x))))
    return x


def unet(net: Growing, x: int, draw: random.Random) -> int:
    """Grow a way down and a way up, with skips from one to the other."""
    skips = []
    for _ in range(draw.randint(2, 5)):
        skips.append(net.op(net.op(x)))
        x = net.op(skips[-1])
    for skip in reversed(skips):
        x = net.op(net.op(net.op(net.op(x)), skip))
    return x


def branches(net: Growing, x: int, _: random.Random) -> int:
    """Grow four branches that meet."""
    return net.op(*[net.op(net.op(x)) for _ in range(4)])


def dense(net: Growing, x: int, draw: random.Random) -> int:
    """Grow a block in which every layer reads the outputs of all layers before it."""
    outputs = [x]
    for _ in range(draw.randint(4, 16)):
        outputs.append(net.op(net.op(net.op(*outputs))))
    return net.op(*outputs)


def tangle(net: Growing, x: int, draw: random.Random) -> int:
    """Grow ops that read one to three of the latest tensors, and one that reads all loose ends."""
    made = [x]
    used = set()
    for _ in range(draw.randint(10, 40)):
        read = [draw.choice(made[-8:]) for _ in range(draw.choice([1, 1, 2, 2, 3]))]
        used.update(read)
        made.append(net.op(*read))
    return net.op(*[t for t in made if t not in used])


def shared(net: Growing, x: int, draw: random.Random) -> int:
    """Grow a chain in which every other op reads one and the same tensor."""
    every = x
    for _ in range(draw.randint(20, 60)):
        x = net.op(net.op(x, every))
    return x


FAMILIES: dict[str, Callable[[Growing, int, random.Random], int]] = {
    grow.__name__: grow for grow in (chain, residual, unet, branches, dense, tangle, shared)
}


def network(family: str, ops: int, layouts: int, seed: int = 0) -> Network:
    """Return a random network of a family, of so many ops or a few more."""
    draw = random.Random(f"{family} {seed}")
    net = Growing()
    x = 0
    while len(net.inputs) < ops:
        x = FAMILIES[family](net, x, draw)
    return dressed(net.inputs, layouts, draw)


def dressed(inputs: Sequence[tuple[int, ...]], layouts: int, draw: random.Random) -> Network:
    """Return ops with random modes and sizes.

    The first op, and those whose tensors nobody reads, have one mode.  Of the others nine in
    twenty take any layout as it comes, six run well in one layout and badly, or not at all,
    in others, two in one only, and three turn each layout into another one.
    """
    read = {t for own in inputs for t in own}
    modes = []
    for t, own in enumerate(inputs):
        ends = t == 0 or t not in read
        modes.append(_modes(len(own), 1 if ends else layouts, draw))
    sizes = [draw.choice([1, 2, 4, 4, 8, 8, 16]) * draw.choice([1, 1, 1, 3]) for _ in inputs]
    return Network(tuple(inputs), tuple(modes), tuple(sizes), layouts)


def _modes(inputs: int, layouts: int, draw: random.Random) -> tuple[Mode, ...]:
    kind = draw.random()
    every = range(layouts)
    good = draw.choice(every)
    makes = list(every)
    cost = dict.fromkeys(every, 0)
    if 0.45 <= kind < 0.75:
        others = [layout for layout in every if layout != good and draw.random() < 0.6]
        cost = {good: 0} | {layout: draw.choice([1, 3, 10, 30]) for layout in others}
    elif 0.75 <= kind < 0.85:
        cost = {good: 0}
    elif kind >= 0.85:
        draw.shuffle(makes)
    return tuple(Mode((layout,) * inputs, makes[layout], cost[layout]) for layout in sorted(cost))


def solved(family: str, ops: int, layouts: int, seed: int, seconds: float) -> Timed:
    """Solve a network; what counts is the time of the solution."""
    problem = network(family, ops, layouts, seed).problem()
    return timed(lambda: (problem, solve_pbqp(problem, limited(seconds))))


def row(family: str, ops: int, layouts: int, seed: int, seconds: float) -> list[str]:
    """Return a row of the table."""
    found = measure(solved, family, ops, layouts, seed, seconds, seconds=seconds)
    head = [family, f"{ops:,}", str(layouts)]
    if found.failure:
        return [*head, found.failure, *[""] * 6]
    problem: Problem = found.answer[0]
    answer: CostAnswer = found.answer[1]
    size = [f"{len(problem):,}", f"{len(problem.table_edges):,}"]
    cost = [f"{answer.objective:,}", f"{answer.bound:,}"]
    return [*head, *size, answer.status, *cost, f"{found.seconds:.2f}", f"{found.peak_mb:.0f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, help="ops of each network")
    parser.add_argument("--layouts", type=int, default=4, help="layouts of each tensor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each")
    given = parser.parse_args()
    sizes = SIZES if given.ops is None else ((given.ops, given.layouts),)
    rows = [
        row(family, ops, layouts, given.seed, given.seconds)
        for ops, layouts in sizes
        for family in FAMILIES
    ]
    head = ["family", "ops", "layouts", "nodes", "edges", "status", "cost", "bound", "s", "MiB"]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
