"""Random graphs of slices, transposes, reshapes and concatenations of matrices."""

from __future__ import annotations

import random

from layoutopt.generate.sizes import at_least
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

RECENT = 6
"""New views are rather of one of so many last ones."""


def random_views(
    seed: int = 0, ops: int = 64, size: int = 8, sinks: int = 3, ties: int = 16
) -> Graph:
    """Return a random graph of views of square matrices; equal arguments give equal graphs.

    Views are slices in half and at ragged offsets, transposes, reversals, reshapes and
    concatenations, of other views rather than of sinks.  Half of the ties are to sources, the
    others between views of equal size.  No view is larger than two sinks.  Ties between views
    join elements every which way, mostly all to one component, so that large instances are hard.

    Parameters
    ----------
    seed
        Names the graph among all of its family.
    ops
        Number of views.
    size
        Rows and columns of a sink.
    sinks
        Number of sinks.
    ties
        Number of ValuedPairs.

    Raises
    ------
    InputError
        If a number is too small.
    """
    at_least(1, size=size, sinks=sinks)
    at_least(0, ops=ops, ties=ties)
    draw = random.Random(seed)
    graph = Graph(f"views-{ops}x{size}-{seed}", f"{ops} random views, size {size}, seed {seed}")
    found: list[Tensor] = [graph.sink((size, size)) for _ in range(sinks)]
    while len(found) < sinks + ops:
        x = draw.choice(found[-RECENT:] if draw.random() < 0.7 else found)
        found.append(_view(graph, draw, x, found, 2 * size * size))
    for _ in range(ties):
        x = draw.choice(found)
        alike = [y for y in found if y.size == x.size and y != x]
        if alike and draw.random() < 0.5:
            y = draw.choice(alike)
            graph.valued_pair(x, y.reshape(x.shape), draw.randint(1, 9))
        else:
            graph.valued_pair(x, graph.source(x.shape), draw.randint(1, 9))
    return graph


def _view(
    graph: Graph,
    draw: random.Random,
    x: Tensor,
    found: list[Tensor],
    largest: int,
) -> Tensor:
    """Add a view of a matrix, which is again one."""
    rows, columns = x.shape
    kind = draw.choice(["half", "ragged", "transpose", "reverse", "reshape", "concat", "concat"])
    axis = draw.randrange(2)
    if kind == "half" and x.shape[axis] > 1:
        half = x.shape[axis] // 2
        start = draw.choice([0, x.shape[axis] - half])
        return graph.slice(x, start, start + half, dim=axis)
    if kind == "ragged" and x.shape[axis] > 2:
        start = draw.randint(0, x.shape[axis] // 4)
        stop = draw.randint(start + 1 + x.shape[axis] // 2, x.shape[axis])
        return graph.slice(x, start, stop, dim=axis)
    if kind == "reverse":
        return graph.reverse(x, [axis])
    if kind == "reshape":
        divisors = [d for d in (2, 3, 4, 5, 8) if rows % d == 0]
        if divisors:
            d = draw.choice(divisors)
            return graph.reshape(x, (rows // d, columns * d))
        return graph.reshape(x, (columns, rows))
    if kind == "concat":
        fits = [
            y
            for y in found
            if y.shape[1 - axis] == x.shape[1 - axis] and x.size + y.size <= largest
        ]
        if fits:
            return graph.concat(draw.sample([x, draw.choice(fits)], 2), axis)
    return graph.dim_shuffle(x, (1, 0))
