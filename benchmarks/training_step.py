"""A training step of growing size, and the plain CP-SAT model of the same graph.

``python -m benchmarks.training_step [--quick]`` prints tables of results.  No two layers
are alike, so nothing is saved by solving one layer for several.
"""

from __future__ import annotations

import argparse
from decimal import Decimal

from benchmarks import plain_cpsat
from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.base.limits import Limits
from layoutopt.check.elements import evaluate
from layoutopt.generate.layers import training_step
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.lowering.lower import Lowered, lower
from layoutopt.network.parts import solve_parts
from layoutopt.unwinding import unwind
from models.statement import state

LARGE = ((12, 110, 1), (12, 850, 6), (12, 16384, 64), (12, 131072, 256), (96, 12288, 64))
"""Layers, width of the first, and growth: from about 0.8 million to 10^12 sink elements."""

TRACEABLE = 10**8
"""Graphs of up to so many sink elements are also solved element by element."""

NEVER = 2**62
"""Groups of so many positions there are not."""

HEAD = (
    *("sink elements", "pair positions", "classes", "status", "seconds", "peak MiB"),
    *("by elements s", "peak MiB"),
)

SMALL = tuple((1, width, 0) for width in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16))
"""Sizes for the plain model."""


def solve(layers: int, width: int, step: int, batch: int = 8) -> Timed:
    """Return sizes and proof."""
    graph = training_step(layers, width, batch, step)
    found = timed(lambda: unwind(graph))
    result = found.answer
    return Timed((result.size, str(result.status), result.score), found.seconds)


def trace(layers: int, width: int, step: int, batch: int = 8) -> Timed:
    """Return the optimum with every element looked at, which large graphs are spared."""
    graph = training_step(layers, width, batch, step)
    return timed(lambda: _score(graph, lower(graph, Limits(), lift_from=NEVER)))


def _score(graph: Graph, lowered: Lowered) -> Decimal | None:
    """Return what the best layouts of a lowered graph are worth."""
    result = solve_parts(lowered.problem, Limits())
    return evaluate(graph, lowered.layouts(result.labelling)).score


def solve_plainly(layers: int, width: int, step: int, seconds: float) -> Timed:
    """Return whether the plain model was proved, and the gap left; writing it counts too."""
    graph = training_step(layers, width, 1, step)
    given = state(instance_bytes(graph).decode())
    found = timed(lambda: plain_cpsat.proved(given, seconds))
    return Timed((len(given.elements), *found.answer), found.seconds)


def large(quick: bool) -> None:
    """Print the table of large graphs."""
    rows = []
    for shape in LARGE[:1] if quick else LARGE:
        found = measure(solve, *shape)
        if found.failure:
            rows.append([str(shape), "", "", "", "", found.failure, "", ""])
            continue
        size, status, score = found.answer
        counts = [f"{size[name]:,}" for name in ("free_elements", "edges", "classes")]
        row = [*counts, status, f"{found.seconds:.2f}", f"{found.peak_mb:.0f}"]
        if size["free_elements"] <= TRACEABLE:
            traced = measure(trace, *shape)
            if traced.answer != score:
                raise RuntimeError(f"{shape}: {traced.answer} element by element, not {score}")
            row += [f"{traced.seconds:.2f}", f"{traced.peak_mb:,.0f}"]
        rows.append([*row, *["-"] * (len(HEAD) - len(row))])
    print(markdown(HEAD, rows))


def small(seconds: float) -> None:
    """Print how far the plain model gets."""
    rows = []
    for shape in SMALL:
        plain = measure(solve_plainly, *shape, seconds, seconds=2 * seconds)
        ours = measure(solve, *shape, 1)
        if plain.failure:
            rows.append([f"width {shape[1]}", "", plain.failure, "", f"{ours.seconds:.3f}"])
            break
        elements, proved, gap = plain.answer
        left = f"{plain.seconds:.1f}" if proved else f"{gap:.0%} left"
        ratio = f"{plain.seconds / ours.seconds:.0f}" if proved else "-"
        rows.append([f"width {shape[1]}", f"{elements}", left, f"{ours.seconds:.3f}", ratio])
        if not proved:
            break
    print(markdown(["layer", "sink elements", "plain CP-SAT", "layoutopt", "ratio"], rows))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of the plain model")
    given = parser.parse_args()
    large(given.quick)
    small(given.seconds if not given.quick else 5.0)


if __name__ == "__main__":
    main()
