"""Views, boxes and layouts as operations of a target."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from layoutopt.base.result import Piece, fault, read, written
from layoutopt.graphs.ops import Array, Shape, count_kept, kept
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.lower import Loops, obstacle, parts, striped, view, viewed
from layoutopt.program.target import NumpyTarget
from tests.support import refused

# A graph's views by a target's ops


def test_each_root_is_asked_for_once() -> None:
    """Views of views, of the same tensor twice, are made once."""
    graph = Graph()
    flat = graph.flatten(graph.source((2, 3)))
    out = graph.concat([graph.reverse(flat, (0,)), flat], 0)
    asked = list[int]()

    def root(t: int) -> Array:
        asked.append(t)
        return np.arange(6).reshape(2, 3)

    first, second = viewed(graph, NumpyTarget(graph), [out.index, out.index], root)
    assert first.tolist() == [5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5]
    assert second is first
    assert asked == [0]


def random_stripes(draw: random.Random) -> list[tuple[int, int, int]]:
    """Return up to three nested stripes."""
    found = []
    for _ in range(draw.randint(1, 3)):
        on, off = draw.randint(0, 9), draw.randint(0, 4)
        found.append((on, off or (on == 0), draw.randint(-12, 12)))
    return found


def test_stripes() -> None:
    """Slices, reshapes and concats keep the indices that the op's view keeps."""
    for seed in range(4000):
        draw = random.Random(seed)
        n, stripes = draw.randint(0, 60), random_stripes(draw)
        rows, columns = draw.choice([1, 2]), draw.choice([1, 3])
        x = np.arange(rows * n * columns).reshape(rows, n, columns)
        out, count = striped(NumpyTarget(Graph()), x, (rows, n, columns), stripes)
        assert np.array_equal(out, x[:, kept(n, stripes)]), (seed, stripes)
        assert count == count_kept(n, stripes)


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


# Strided boxes as views: the right elements, windows into the tensor, and few of them


Ints = NDArray[np.int64]

TARGET = NumpyTarget(Graph())


def seen(size: int, start: int, loops: Loops) -> Ints:
    """Return the elements of a box by address arithmetic, a dimension for each loop."""
    shape = [n for n, _ in loops] or [1]
    return as_strided(np.arange(size)[start:], shape, [8 * s for _, s in loops] or [8])


def looked_at(array: Ints) -> tuple[int, list[tuple[int, int]]]:
    """Return start and loops of a NumPy view of consecutive numbers, without unit extents."""
    loops = [(n, s // 8) for n, s in zip(array.shape, array.strides, strict=True) if n > 1]
    return int(array.flat[0]), loops


def random_view(draw: random.Random) -> tuple[Ints, Ints]:
    """Return consecutive numbers as a tensor, and some view of it."""
    shape = [draw.choice([1, 2, 3, 4, 5, 7]) for _ in range(draw.randint(1, 4))]
    base = np.arange(prod(shape)).reshape(shape)
    x = base.transpose(draw.sample(range(base.ndim), base.ndim))
    for axis, n in enumerate(x.shape):
        low = draw.randrange(n)
        step = draw.choice([1, 1, 2, 3])
        index = slice(low, draw.randint(low + 1, n), step)
        x = x[(slice(None),) * axis + (index,)]
        if draw.random() < 0.3:
            x = np.flip(x, axis)
    return base, x


def random_box(draw: random.Random, size: int, stand: bool) -> tuple[int, list[tuple[int, int]]]:
    """Return a random box of a tensor; ``stand`` is whether strides may be 0."""
    while True:
        count = draw.choice([0, 1, 2, 2, 3, 3])
        strides = [draw.randint(-size // 2, size // 2) for _ in range(count)]
        loops = [(draw.randint(2, 4), s) for s in strides if s or stand]
        low = -sum((n - 1) * min(s, 0) for n, s in loops)
        high = size - 1 - sum((n - 1) * max(s, 0) for n, s in loops)
        if low <= high:
            return draw.randint(low, high), loops


def test_views_of_a_tensor_are_one_view() -> None:
    """Sliced, strided, reversed, permuted: such boxes nest, and are windows into the tensor."""
    for seed in range(3000):
        base, x = random_view(random.Random(seed))
        start, loops = looked_at(x)
        assert obstacle(base.size, loops) is None
        box = view(TARGET, base, base.shape, start, loops)
        assert np.array_equal(box, x.reshape([n for n in x.shape if n > 1] or [1]))
        assert np.shares_memory(box, base)


def test_any_box_that_nests() -> None:
    """A view has the elements of its box; what is written into it is in the tensor."""
    nested = 0
    for seed in range(5000):
        draw = random.Random(seed)
        size = draw.randint(1, 40)
        start, loops = random_box(draw, size, stand=seed % 3 == 0)
        if obstacle(size, loops) is not None:
            with pytest.raises(ValueError, match="is not nested"):
                view(TARGET, np.arange(size), (size,), start, loops)
            continue
        nested += 1
        wanted = seen(size, start, loops)
        assert np.array_equal(view(TARGET, np.arange(size), (size,), start, loops), wanted)
        if all(stride for _, stride in loops):
            written_to = np.zeros(size, np.int64)
            box = view(TARGET, written_to, (size,), start, loops)
            box[...] = np.arange(1, wanted.size + 1).reshape(wanted.shape)
            for number, element in enumerate(wanted.flat, 1):
                assert written_to[element] == number
                written_to[element] = 0
            assert not written_to.any()
    assert 1500 < nested < 4500


def fits(length: int, first: int, levels: list[tuple[int, int]]) -> bool:
    """Return whether any choice of blocks, and of where they begin, cuts a box out.

    ``levels`` are extents and strides, positive and descending, of a box that starts at
    element ``first`` of an axis.
    """
    if len(levels) < 2:
        return True
    (extent, stride), rest = levels[0], levels[1:]
    span = 1 + sum((n - 1) * s for n, s in rest)
    return any(
        stride % block == 0
        and low + (extent - 1) * stride + block <= length
        and first - low + span <= block
        and fits(block, first - low, rest)
        for block in range(1, stride + 1)
        for low in range(first + 1)
    )


def test_boxes_nest_where_any_choice_of_blocks_does() -> None:
    """The largest block is as good as every other, wherever the box starts."""
    verdicts = set()
    for size in (6, 9, 13, 18):
        for extents in product([2, 3], repeat=3):
            for strides in product(range(1, 10), repeat=3):
                if list(strides) != sorted(strides, reverse=True):
                    continue
                levels = list(zip(extents, strides, strict=True))
                last = size - 1 - sum((n - 1) * s for n, s in levels)
                for start in range(last + 1):
                    nests = obstacle(size, levels) is None
                    assert nests == fits(size, start, levels), (size, start, levels)
                    verdicts.add((nests, size))
    assert len(verdicts) == 7  # no three loops of extent 2 and more nest in 6 elements


def random_piece(draw: random.Random) -> tuple[Piece, int, int]:
    """Return a piece that sets no element twice, and the sizes of its origin and sink."""
    size = draw.randint(1, 40)
    while True:
        to, loops = random_box(draw, size, stand=False)
        origin_size = draw.randint(1, 60)
        step = max(1, origin_size // 5)
        strides = [draw.choice([0, 1, draw.randint(-step, step)]) for _ in loops]
        low = -sum((n - 1) * min(s, 0) for (n, _), s in zip(loops, strides, strict=True))
        high = origin_size - 1
        high -= sum((n - 1) * max(s, 0) for (n, _), s in zip(loops, strides, strict=True))
        if low > high:
            continue
        both = [(n, f, t) for (n, t), f in zip(loops, strides, strict=True)]
        if draw.random() < 0.3:
            both.insert(draw.randint(0, len(both)), (1, draw.randint(-9, 9), draw.randint(-9, 9)))
        piece = ("o", draw.randint(low, high), to, tuple(both))
        set_ = written(piece)
        if len(np.unique(set_)) == len(set_):
            assert fault(piece, size, origin_size) is None
            return piece, origin_size, size


def test_any_piece_can_be_copied() -> None:
    """Parts nest on both sides, say together what the piece says, and set nothing twice."""
    cut = 0
    for seed in range(4000):
        piece, origin_size, size = random_piece(random.Random(seed))
        found = list(parts(piece, origin_size, size))
        cut += len(found) > 1
        taken = np.full(size, -1)
        for part in found:
            assert part[0] == "o"
            assert all(n > 1 for n, _, _ in part[3])
            assert obstacle(origin_size, [(n, f) for n, f, _ in part[3]]) is None
            assert obstacle(size, [(n, t) for n, _, t in part[3]]) is None
            where = written(part)
            assert (taken[where] == -1).all()
            taken[where] = read(part)
        wanted = np.full(size, -1)
        wanted[written(piece)] = read(piece)
        assert np.array_equal(taken, wanted)
    assert 300 < cut < 3700


# The target of arrays: what it makes, and what it refuses


def small() -> NumpyTarget:
    """Return a target for two sinks, and four sources of which two share locations."""
    graph = Graph()
    graph.sink((2,), name="x")
    graph.sink((1,), name="y")
    graph.source((2,), name="s")
    graph.source((3,), [0, "0", 0], name="t")
    graph.source((1,), ["0"], name="u")
    graph.source((0,), [], name="v")
    return NumpyTarget(graph)


def test_own_locations() -> None:
    """Equal entries of mappings are one number, others differ; a tensor has them once."""
    target = small()
    shapes = {"s": (2,), "t": (3,), "x": (2,), "u": (1,), "v": (0,)}
    numbers = {name: target.own(name, shape).tolist() for name, shape in shapes.items()}
    (a, b, c), (d,) = numbers["t"], numbers["u"]
    assert a == c
    assert b == d
    assert len({a, b, *numbers["s"], *numbers["x"]}) == 6
    assert numbers["v"] == []
    assert target.own("s", (2,)) is target.roots["s"]
    (first, second), fresh = target.barrier("f", [], [(2,), (2, 1)]), target.own("y", (1,))
    every = [*first.flat, *second.flat, *fresh, a, b, *numbers["s"], *numbers["x"]]
    assert len(set(every)) == len(every) == 11
    assert second.shape == (2, 1)


def test_a_sink_is_set_once_and_from_known_locations() -> None:
    """Copies of unset elements, onto set ones, or of other shapes are refused; barriers wait."""
    target = small()
    x, s = target.create("x", (2,)), target.own("s", (2,))
    assert x.tolist() == [-1, -1]
    with refused("barrier 'f'", "input 1"):
        target.barrier("f", [s, x], [(1,)])
    with refused("[2]", "[1]"):
        target.copy(s, x[:1])
    with refused("source", "without"):
        target.copy(target.placeholder((2,)), x)
    target.copy(s[1:], x[:1])
    assert x.tolist() == [s[1], -1]
    with refused("source", "without"):
        target.copy(x[::-1], target.create("y", (2,)))
    with refused("destination", "is set already"):
        target.copy(s, x)
    target.copy(s[:1], x[1:])
    assert target.layouts["x"].tolist() == [s[1], s[0]]


def cut_into(loops: tuple[tuple[int, int, int], ...], origin_size: int, sink_size: int) -> int:
    """Return into how many parts a piece is cut: where it must be, and along the shorter loop."""
    piece = ("o", 0, 0, loops)
    assert fault(piece, sink_size, origin_size) is None
    return len(list(parts(piece, origin_size, sink_size)))
