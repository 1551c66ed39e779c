"""Tiles of limited capacity: classes in many copies, placed with a proof.

``python -m benchmarks.capacity [--quick]`` prints a table of results.  Every class has a home
tile, a second one, and two that are worth less; every other tile is worth nothing.  Copies that
stay whole are one node; copies that may be divided are two or three, which earn more together.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.base.limits import Limits
from layoutopt.network.capacity.problem import CapacityProblem
from layoutopt.network.capacity.solve import solve_capacity
from layoutopt.network.problem import Labelling

SIZES = ((1_000, 64), (10_000, 1_472), (100_000, 1_472))
LOADS = (1.1, 1.02)
KINDS = ("whole", "divided", "uneven")

WORTH = (18, 15, 8, 8)
"""What a whole copy earns on its home, its second tile, and two others."""

COPIES = 1_024
"""Most copies of a class."""

BYTES = 3
"""Of a whole copy."""


def instance(classes: int, tiles: int, load: float, kind: str, seed: int = 0) -> CapacityProblem:
    """Return classes of 1 to 1024 copies, on tiles that hold ``load`` times the mean load.

    Parameters
    ----------
    kind
        ``"whole"``: a node of 3 bytes.  ``"divided"``: three nodes of 1 byte.  ``"uneven"``: two
        nodes of 1 and 2 bytes or three of 1 to 3 bytes.  The nodes of a copy earn in proportion to
        their number on each tile, and 1 for each neighbour on the same tile, so that a divided copy
        loses 1 or 2.
    """
    rng = np.random.default_rng(seed)
    size = {"whole": np.full(classes, 1), "divided": np.full(classes, 3)}.get(kind)
    if size is None:
        size = rng.integers(2, 4, classes)
    class_of = np.repeat(np.arange(classes), size)
    nodes = len(class_of)
    grains = np.full(nodes, BYTES if kind == "whole" else 1)
    if kind == "uneven":
        grains = np.where(size[class_of] == 2, 1 + np.arange(nodes) % 2, rng.integers(1, 4, nodes))
    wanted = rng.random((classes, tiles if tiles < 100 else 100)).argsort(axis=1)[:, : len(WORTH)]
    wanted = (wanted + rng.integers(0, tiles, classes)[:, None]) % tiles
    at = np.stack([np.repeat(np.arange(nodes), len(WORTH)), wanted[class_of].reshape(-1)], axis=1)
    share = (np.array(WORTH) * 6 // size[class_of][:, None]).reshape(-1)
    follows = np.flatnonzero(class_of[1:] == class_of[:-1])
    edges = np.column_stack([follows, follows + 1])
    labelling = Labelling(nodes, tiles, edges, np.full(len(edges), 6), at, share)
    copies = rng.integers(1, COPIES + 1, classes)
    total = int((grains * copies[class_of]).sum())
    capacity = np.full(tiles, int(total * load / tiles))
    return CapacityProblem(labelling, class_of, copies, grains, capacity)


def run(classes: int, tiles: int, load: float, kind: str, seconds: float) -> Timed:
    """Return status, objective, bound and gap."""
    problem = instance(classes, tiles, load, kind)
    found = timed(lambda: solve_capacity(problem, Limits().within(seconds)))
    answer = found.answer
    told = str(answer.status), answer.objective, answer.bound, answer.gap
    return Timed(told, found.seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each run")
    given = parser.parse_args()
    rows = []
    for kind in KINDS:
        for classes, tiles in SIZES[:1] if given.quick else SIZES:
            for load in LOADS:
                found = measure(
                    run, classes, tiles, load, kind, given.seconds, seconds=given.seconds
                )
                title = f"{kind}, {classes:,} classes x {tiles:,} tiles, load x {load}"
                if found.failure:
                    rows.append([title, "", "", "", "", found.failure])
                    continue
                status, objective, bound, gap = found.answer
                row = [title, status, f"{objective:,}", f"{bound:,}", f"{gap:.1e}"]
                rows.append([*row, f"{found.seconds:.1f}", f"{found.peak_mb:.0f}"])
    head = ["copies", "status", "value", "bound", "gap", "seconds", "peak MiB"]
    print(markdown(head, rows), flush=True)


if __name__ == "__main__":
    main()
