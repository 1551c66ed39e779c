"""A graph's views by a target's ops."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from layoutopt.graphs.ops import Array, Shape, Stripes, count_kept
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.lower import striped, viewed
from layoutopt.program.numpy_target import NumpyTarget

A = np.arange(24).reshape(2, 3, 4)
B = 100 + A

Case = tuple[Callable[[Graph, Tensor, Tensor], Tensor], Array]

CASES: dict[str, Case] = {
    "identity": (lambda g, a, b: g.identity(a), A),
    "sum_like": (lambda g, a, b: g.sum_like([a, b], unwindable=[1, 0]), B),
    "flatten": (lambda g, a, b: g.flatten(a), A.ravel()),
    "squeeze": (lambda g, a, b: g.squeeze(g.reshape(a, (1, 6, 1, 4))), A.reshape(6, 4)),
    "reshape": (lambda g, a, b: g.reshape(a, (4, 6)), A.reshape(4, 6)),
    "dim_shuffle": (lambda g, a, b: g.dim_shuffle(a, (2, 0, 1)), np.moveaxis(A, 2, 0)),
    "reverse": (lambda g, a, b: g.reverse(a, (2, 0)), A[::-1, :, ::-1]),
    "reverse nothing": (lambda g, a, b: g.reverse(a, ()), A),
    "slice": (lambda g, a, b: g.slice(a, (0, 1, 1), (2, 3, 2)), A[:, 1:3, 1:2]),
    "sub_sample": (lambda g, a, b: g.sub_sample(a, (1, 2, 3)), A[:, ::2, ::3]),
    "concat": (lambda g, a, b: g.concat([b, a, b], 1), np.concatenate([B, A, B], 1)),
    "expand": (lambda g, a, b: g.expand(a, (5, 2, 3, 4)), np.stack([A] * 5)),
    # Dimension 1 keeps index 1; dimension 2 keeps 0 and 3: (i - 3) mod 3 < 1.
    "sett_sample": (
        lambda g, a, b: g.sett_sample(a, [[], [(1, 2, 1)], [(1, 2, 3)]]),
        A[:, [1]][:, :, [0, 3]],
    ),
    "nothing kept": (lambda g, a, b: g.sett_sample(a, [[], [(0, 2, 1)], []]), A[:, :0]),
    # The same tensor twice, and views of views.
    "a diamond": (
        lambda g, a, b: g.concat([g.reverse(g.flatten(a), (0,)), g.flatten(a)], 0),
        np.concatenate([A.ravel()[::-1], A.ravel()]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_view(name: str) -> None:
    """The target's views give what NumPy gives, and ask for each root once."""
    build, wanted = CASES[name]
    graph = Graph()
    a, b = graph.source(A.shape), graph.source(B.shape)
    out = build(graph, a, b)
    asked = []

    def root(t: int) -> Array:
        asked.append(t)
        return A if t == a.index else B

    first, second = viewed(graph, NumpyTarget(graph), [out.index, out.index], root)
    assert np.array_equal(first, wanted)
    assert second is first
    assert len(asked) == len(set(asked))


def kept(n: int, stripes: Stripes) -> list[int]:
    """Return the indices that nested stripes keep, one by one."""

    def on(i: int, stripes: Stripes) -> bool:
        if not stripes:
            return True
        inside = (i - stripes[0][2]) % (stripes[0][0] + stripes[0][1])
        return inside < stripes[0][0] and on(inside, stripes[1:])

    return [i for i in range(n) if on(i, stripes)]


def random_stripes(draw: random.Random) -> list[tuple[int, int, int]]:
    """Return up to three nested stripes."""
    found = []
    for _ in range(draw.randint(1, 3)):
        on, off = draw.randint(0, 9), draw.randint(0, 4)
        found.append((on, off or (on == 0), draw.randint(-12, 12)))
    return found


def test_stripes() -> None:
    """Slices, reshapes and concats keep the indices that the definition keeps."""
    for seed in range(4000):
        draw = random.Random(seed)
        n, stripes = draw.randint(0, 60), random_stripes(draw)
        rows, columns = draw.choice([1, 2]), draw.choice([1, 3])
        x = np.arange(rows * n * columns).reshape(rows, n, columns)
        out, count = striped(NumpyTarget(Graph()), x, (rows, n, columns), stripes)
        assert np.array_equal(out, x[:, kept(n, stripes)]), (seed, stripes)
        assert count == len(kept(n, stripes))


class Shapes:
    """A target whose tensors are their shapes, however large, and that counts its views."""

    def __init__(self) -> None:
        self.views = 0

    def reshape(self, x: Shape, shape: Shape) -> Shape:
        """Return another shape of as many elements."""
        self.views += 1
        assert np.prod(x, dtype=object) == np.prod(shape, dtype=object)
        return shape

    def slice(self, x: Shape, lower: Sequence[int], upper: Sequence[int]) -> Shape:
        """Return the shape of a box that is inside."""
        self.views += 1
        for n, low, high in zip(x, lower, upper, strict=True):
            assert 0 <= low <= high <= n
        return tuple(high - low for low, high in zip(lower, upper, strict=True))

    def concat(self, xs: Sequence[Shape], axis: int) -> Shape:
        """Return the joint shape."""
        self.views += 1
        assert axis == 1
        assert len({(x[0], x[2]) for x in xs}) == 1
        return xs[0][0], sum(x[1] for x in xs), xs[0][2]


def test_stripes_of_huge_tensors() -> None:
    """The number of views does not grow with the tensor, only threefold with each stripe."""
    for seed in range(300):
        stripes = random_stripes(random.Random(seed))
        counts = []
        for n in (10**3, 10**9, 10**15):
            target = Shapes()
            (_, middle, _), count = striped(target, (2, n, 3), (2, n, 3), stripes)
            assert middle == count == count_kept(n, stripes)
            counts.append(target.views)
        assert max(counts) <= 8 * 3 ** (len(stripes) - 1)
