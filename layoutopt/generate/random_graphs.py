"""Random unwinding graphs of all op types, for tests and comparisons."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import prod

from layoutopt.base.errors import InputError
from layoutopt.generate.layers import at_least
from layoutopt.graphs.ops import Shape, dominates
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

RECENT = 6  # number of latest views among which the input of a new view is preferred


def random_views(
    seed: int = 0, ops: int = 64, size: int = 8, sinks: int = 3, ties: int = 16
) -> Graph:
    """Return a random graph of views of square matrices; equal arguments give equal graphs.

    Views are slices in half and at ragged offsets, transposes, reversals, reshapes and
    concatenations, of other views rather than of sinks.  Half of the ties are to sources, the
    others between views of equal size.  No view is larger than two sinks, of ``size`` rows and
    columns. Ties between views join elements every which way, mostly all to one component, so that
    large instances are hard.
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
    graph: Graph, draw: random.Random, x: Tensor, found: list[Tensor], largest: int
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


def random_graph(
    seed: int,
    elements: int = 6,
    ops: int = 8,
    pairs: int = 5,
    barriers: bool = True,
    negative: bool = False,
    mappings: bool = True,
    empty: float = 0.02,
) -> Graph:
    """Return a random graph; equal arguments give equal graphs.

    It has at most so many sink elements, and ``ops`` beside sinks and sources; opaque ones if
    ``barriers``, beside the reduces that sums add.  Some values may be zero or ``negative``, some
    sources share locations by ``mappings``, and a share of the sinks is ``empty``.
    """
    at_least(1, elements=elements)
    at_least(0, ops=ops, pairs=pairs)
    if not 0 <= empty <= 1:
        raise InputError(f"empty is {empty}; it must be from 0 to 1")
    return _Grower(seed, elements, barriers, negative, mappings, empty).grow(ops, pairs)


@dataclass
class _Grower:
    seed: int
    elements: int
    barriers: bool
    negative: bool
    mappings: bool
    empty: float

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.graph = Graph(f"random-{self.seed}", f"random graph, seed {self.seed}")
        self.tensors: list[Tensor] = []

    def grow(self, ops: int, pairs: int) -> Graph:
        left = self.elements
        while left > 0 and (len(self.tensors) < 3 or self.random.random() < 0.2):
            shape = self.shape(left)
            left -= prod(shape)
            self.tensors.append(self.graph.sink(shape))
        for _ in range(self.random.randint(0, 2)):
            self.tensors.append(self.source(self.random.choice(self.tensors).shape))
        for _ in range(ops):
            self.tensors.append(self.random.choice(self.makers())(self.pick()))
        for _ in range(pairs):
            self.pair()
        return self.graph

    def shape(self, limit: int) -> Shape:
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3])
        shape = tuple(self.random.choice([1, 2, 2, 3]) for _ in range(rank))
        if self.random.random() < self.empty:
            shape = (*shape, 0)
        return shape if prod(shape) <= limit else (self.random.randint(1, limit),)

    def pick(self) -> Tensor:
        """Return a random tensor that is not large, preferably a recent one."""
        small = [t for t in self.tensors if t.size <= 4 * self.elements]
        return self.random.choice(small[-4:] if self.random.random() < 0.5 else small)

    def value(self) -> Decimal:
        if self.negative and self.random.random() < 0.3:
            return Decimal(self.random.choice([0, -1, -2, -5])) / 2
        return Decimal(self.random.choice([1, 1, 2, 3, 5, 10, 25])) / self.random.choice([1, 1, 2])

    def pair(self) -> None:
        a = self.pick()
        alike = [t for t in self.tensors if t.size == a.size and t.index != a.index]
        if not alike or self.random.random() < 0.25:
            b = self.source(a.shape)
        else:
            b = self.random.choice(alike)
        if a.shape != b.shape:
            b = self.graph.reshape(b, a.shape)
        self.graph.valued_pair(a, b, self.value())

    def source(self, shape: Shape) -> Tensor:
        if not self.mappings or self.random.random() < 0.7:
            return self.graph.source(shape)
        places: list[int | str] = [0, 1, 2, "0", "a"]
        return self.graph.source(shape, [self.random.choice(places) for _ in range(prod(shape))])

    def makers(self) -> Sequence[Callable[[Tensor], Tensor]]:
        views = [
            self.graph.identity,
            self.graph.flatten,
            self.graph.squeeze,
            self.reshape,
            self.dim_shuffle,
            self.reverse,
            self.slice,
            self.sub_sample,
            self.sett_sample,
            self.concat,
            self.concat,
            self.expand,
            self.sum_like,
            self.sum_like,
        ]
        opaque = [self.barrier, self.barrier, self.barrier, self.reduce, self.fixed_point]
        return [*views, *opaque, *opaque] if self.barriers else views

    def reshape(self, x: Tensor) -> Tensor:
        shape = list(x.shape)
        self.random.shuffle(shape)
        cut = self.random.randint(0, len(shape))
        return self.graph.reshape(x, (prod(shape[:cut]), *shape[cut:]))

    def dim_shuffle(self, x: Tensor) -> Tensor:
        order = list(range(len(x.shape)))
        self.random.shuffle(order)
        return self.graph.dim_shuffle(x, order)

    def reverse(self, x: Tensor) -> Tensor:
        return self.graph.reverse(x, [d for d in range(len(x.shape)) if self.random.random() < 0.6])

    def slice(self, x: Tensor) -> Tensor:
        bounds = [sorted((self.random.randint(0, n), self.random.randint(0, n))) for n in x.shape]
        bounds = [[a, b] if a < b else [0, n] for (a, b), n in zip(bounds, x.shape, strict=True)]
        return self.graph.slice(x, [a for a, _ in bounds], [b for _, b in bounds])

    def sub_sample(self, x: Tensor) -> Tensor:
        return self.graph.sub_sample(x, [self.random.randint(1, 3) for _ in x.shape])

    def sett_sample(self, x: Tensor) -> Tensor:
        depth = [self.random.randint(0, 2) for _ in x.shape]
        draw = self.random.randint
        return self.graph.sett_sample(
            x, [[(draw(1, 3), draw(0, 2), draw(-2, 2)) for _ in range(n)] for n in depth]
        )

    def concat(self, x: Tensor) -> Tensor:
        if not x.shape:
            return self.graph.concat([self.graph.flatten(x)] * 2, 0)
        axis = self.random.randrange(len(x.shape))

        def frame(t: Tensor) -> Shape:
            return t.shape[:axis] + t.shape[axis + 1 :]

        fits = [t for t in self.tensors if len(t.shape) == len(x.shape) and frame(t) == frame(x)]
        return self.graph.concat([x, *self.random.choices(fits, k=self.random.randint(0, 2))], axis)

    def expand(self, x: Tensor) -> Tensor:
        shape = tuple(self.random.choice([1, 2]) if n == 1 else n for n in x.shape)
        return self.graph.expand(x, (2, *shape) if self.random.random() < 0.3 else shape)

    def sum_like(self, x: Tensor) -> Tensor:
        alike = [t for t in self.tensors if t.shape == x.shape]
        small = [t for t in self.tensors if dominates(x.shape, t.shape)]
        others = [self.random.choice(alike if self.random.random() < 0.6 else small)]
        inputs = [x, *others]
        self.random.shuffle(inputs)
        full = [i for i, t in enumerate(inputs) if t.shape == x.shape]
        self.random.shuffle(full)
        chosen = full[: self.random.randint(0 if self.barriers else 1, len(full))]
        return self.graph.sum_like(inputs, self.value(), unwindable=chosen)

    def barrier(self, x: Tensor) -> Tensor:
        inputs = [x] if self.random.random() < 0.7 else [x, self.pick()]
        if self.random.random() < 0.2:
            return self.random.choice(self.graph.barrier(inputs, shapes=[x.shape, (2,)]))
        return self.graph.barrier(inputs, x.shape)

    def reduce(self, x: Tensor) -> Tensor:
        shape = tuple(self.random.choice([1, n]) for n in x.shape)
        return self.graph.sum_like_reduce(x, shape)

    def fixed_point(self, x: Tensor) -> Tensor:
        return self.graph.fixed_point([x], x.shape)
