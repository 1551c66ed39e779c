"""How far heuristics are from the proved optimum, family by family.

``python -m benchmarks.heuristics`` prints the tables of ``docs/solvers.md``; with names of groups
only these are run.  A gap is what is lost against the optimum that ``auto`` proves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.cores import as_graph, grid, sparse
from benchmarks.measure import markdown, measure
from benchmarks.traps import TRAPS
from layoutopt.base.entries import Takes, entries
from layoutopt.base.limits import Stopped
from layoutopt.base.result import Status
from layoutopt.generate.families import FAMILIES, generate
from layoutopt.generate.random_graphs import random_graph, random_views
from layoutopt.graphs.unwinding import Graph
from layoutopt.unwinding import unwind

SECONDS = 120.0
"""Limit of each run."""

APPROXIMATE = tuple(entries(Takes.LABELLING, proves=False))

SOLVERS = ("greedy0", *APPROXIMATE)

HEAD = ("family", "solver", "median gap", "worst gap", "optimal", "median s")


@dataclass(frozen=True)
class Group:
    """Instances of one kind: a function of a number builds each."""

    name: str
    build: Callable[[int], Graph]
    count: int = 1


def _trap(number: int) -> Graph:
    return [*TRAPS.values()][number]()


def _family(name: str, _number: int) -> Graph:
    return generate(name, {})


def _random(number: int, *, negative: bool, barriers: bool) -> Graph:
    return random_graph(number, elements=60, ops=20, pairs=12, negative=negative, barriers=barriers)


def _views(number: int) -> Graph:
    return random_views(seed=number, ops=64, size=16)


def _sparse(number: int, *, nodes: int, labels: int) -> Graph:
    return as_graph(sparse(nodes, labels, number))


def _grid(number: int) -> Graph:
    return as_graph(grid(1000, 16, number))


GROUPS = (
    Group("traps", _trap, len(TRAPS)),
    *(Group(name, partial(_family, name)) for name in FAMILIES if not name.startswith("random")),
    Group("random", partial(_random, negative=False, barriers=False), 50),
    Group("random, barriers", partial(_random, negative=False, barriers=True), 50),
    Group("random, negative values", partial(_random, negative=True, barriers=True), 50),
    Group("random views", _views, 10),
    Group("sparse 100 x 4", partial(_sparse, nodes=100, labels=4), 10),
    Group("sparse 1000 x 4", partial(_sparse, nodes=1000, labels=4), 5),
    Group("sparse 1000 x 16", partial(_sparse, nodes=1000, labels=16), 5),
    Group("grid 1000 x 16", _grid, 5),
    Group("sparse 10,000 x 16", partial(_sparse, nodes=10_000, labels=16), 1),
)


@dataclass(frozen=True)
class Line:
    """What one solver did on one group: what it lost, and how long it took, by instance.

    ``stopped`` says of each instance why it ended.
    """

    solver: str
    gaps: list[float]
    seconds: list[float]
    stopped: list[Stopped]

    def row(self, group: str) -> list[str]:
        """Return the line of the table."""
        best = sum(gap == 0 for gap in self.gaps)
        large = self.stopped.count(Stopped.SIZE_LIMIT)
        told = f"{best} of {len(self.gaps)}" + (f", {large} too large" if large else "")
        gaps = percent(median(self.gaps)), percent(max(self.gaps))
        return [group, self.solver, *gaps, told, f"{median(self.seconds):.2g}"]


def percent(gap: float) -> str:
    """Return a gap as text; only nothing is 0."""
    if gap == 0:
        return "0"
    return "< 0.01%" if gap < 5e-5 else f"{gap:.2%}"


def run(number: int) -> list[Line]:
    """Solve a group by ``auto`` and all heuristics; instances that are not proved are left out."""
    group = GROUPS[number]
    lines = [Line(solver, [], [], []) for solver in ("auto", *SOLVERS)]
    unwind(_trap(0), "rounded")  # imports what solvers need
    for instance in range(group.count):
        graph = group.build(instance)
        results = [unwind(graph, line.solver, time_limit=SECONDS) for line in lines]
        best = results[0].score
        if results[0].status is not Status.OPTIMAL or best is None:
            continue
        for line, result in zip(lines, results, strict=True):
            if result.score is None:
                raise SystemExit(f"{line.solver} found nothing on {graph.name}")
            line.gaps.append(float((best - result.score) / (abs(best) or 1)))
            line.seconds.append(result.seconds["total"])
            line.stopped.append(result.stopped)
    return lines if lines[0].gaps else []


def main() -> None:
    """Print the table of families on which others than greedy0 lose, and name the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [group.name for group in GROUPS]
    parser.add_argument("groups", nargs="*", default=names, help="names of families")
    chosen = parser.parse_args().groups
    rows, easy = [], []
    for number, group in enumerate(GROUPS):
        if group.name not in chosen:
            continue
        found = measure(run, number)
        lines: list[Line] = found.answer or []
        for line in lines:
            print(" | ".join(line.row(group.name)), flush=True)
        if not lines:
            print(f"{group.name}: {found.failure or 'nothing is proved'}", flush=True)
        elif any(gap for line in lines if line.solver in APPROXIMATE for gap in line.gaps):
            rows += [line.row(group.name) for line in lines[1:]]
        else:
            easy.append(f"{group.name} ({percent(max(lines[1].gaps))})")
    print(markdown(HEAD, rows))
    print(f"Only greedy0 loses, at most as much as stands in brackets: {', '.join(easy)}.")


if __name__ == "__main__":
    main()
