"""Views as boxes: by hand, and against the formulas that go element by element."""

from __future__ import annotations

import random
from itertools import pairwise
from math import prod

import numpy as np
import pytest

from layoutopt.base.result import outer_sum
from layoutopt.check.boxes import CheckedBox
from layoutopt.check.flow import carried
from layoutopt.check.moves import kept, moves
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Shape, UnwindingOp, count_kept
from layoutopt.graphs.ops import kept as kept_indices

BY_HAND: list[tuple[UnwindingOp, list[Shape], list[CheckedBox]]] = [
    (ops.Identity(id="v", inputs=("x",)), [(2, 3)], [CheckedBox(0, 0, 0, ((6, 1, 1),))]),
    (ops.Flatten(id="v", inputs=("x",)), [(2, 3)], [CheckedBox(0, 0, 0, ((6, 1, 1),))]),
    (ops.Squeeze(id="v", inputs=("x",)), [(2, 1, 3)], [CheckedBox(0, 0, 0, ((6, 1, 1),))]),
    (ops.Squeeze(id="v", inputs=("x",)), [(1, 1)], [CheckedBox(0, 0, 0, ())]),
    (ops.Reshape(id="v", inputs=("x",), shape=(3, 2)), [(6,)], [CheckedBox(0, 0, 0, ((6, 1, 1),))]),
    (
        ops.SumLike(id="v", inputs=("x", "y"), unwindable_inputs=(1, 0)),
        *([(2, 3), (2, 3)], [CheckedBox(0, 0, 0, ((6, 1, 1),))]),
    ),
    (
        ops.DimShuffle(id="v", inputs=("x",), permutation=(1, 0)),
        *([(4, 5)], [CheckedBox(0, 0, 0, ((4, 5, 1), (5, 1, 4)))]),
    ),
    (
        ops.DimShuffle(id="v", inputs=("x",), permutation=(2, 0, 1)),
        *([(4, 5, 6)], [CheckedBox(0, 0, 0, ((20, 6, 1), (6, 1, 20)))]),
    ),
    (
        ops.Reverse(id="v", inputs=("x",), dims=(0,)),
        *([(4, 5)], [CheckedBox(0, 15, 0, ((5, 1, 1), (4, -5, 5)))]),
    ),
    (
        ops.Reverse(id="v", inputs=("x",), dims=(1, 0)),
        *([(4, 5)], [CheckedBox(0, 19, 0, ((20, -1, 1),))]),
    ),
    (
        ops.Slice(id="v", inputs=("x",), lower=(1, 2), upper=(4, 4)),
        *([(4, 5)], [CheckedBox(0, 7, 0, ((2, 1, 1), (3, 5, 2)))]),
    ),
    (ops.Slice(id="v", inputs=("x",), lower=(1, 2), upper=(4, 2)), [(4, 5)], []),
    (
        ops.SubSample(id="v", inputs=("x",), strides=(2, 3)),
        *([(4, 5)], [CheckedBox(0, 0, 0, ((2, 3, 1), (2, 10, 2)))]),
    ),
    (
        ops.Expand(id="v", inputs=("x",), shape=(2, 3, 4)),
        *([(3, 1)], [CheckedBox(0, 0, 0, ((4, 0, 1), (3, 1, 4), (2, 0, 12)))]),
    ),
    (
        ops.Concat(id="v", inputs=("x", "y", "z", "x"), axis=1),
        [(2, 3), (2, 0), (2, 1), (2, 3)],
        [
            CheckedBox(0, 0, 0, ((3, 1, 1), (2, 3, 7))),
            CheckedBox(2, 0, 3, ((2, 1, 7),)),
            CheckedBox(3, 0, 4, ((3, 1, 1), (2, 3, 7))),
        ],
    ),
    (
        ops.SettSample(id="v", inputs=("x",), setts=((), ((2, 1, 0),))),
        *([(4, 6)], [CheckedBox(0, 0, 0, ((2, 1, 1), (8, 3, 2)))]),
    ),
    (
        ops.SettSample(id="v", inputs=("x",), setts=(((3, 1, 2),),)),
        [(12,)],  # 0 | 2 3 4 | 6 7 8 | 10 11
        [
            CheckedBox(0, 0, 0, ()),
            CheckedBox(0, 2, 1, ((3, 1, 1), (2, 4, 3))),
            CheckedBox(0, 10, 7, ((2, 1, 1),)),
        ],
    ),
    (
        ops.SettSample(id="v", inputs=("x",), setts=(((2, 3, -1),),)),
        [(9,)],  # 0 | 4 5 | 9 ...
        [CheckedBox(0, 0, 0, ()), CheckedBox(0, 4, 1, ((2, 1, 1),))],
    ),
]


@pytest.mark.parametrize(("op", "shapes", "expected"), BY_HAND)
def test_by_hand(op: UnwindingOp, shapes: list[Shape], expected: list[CheckedBox]) -> None:
    """Each op alone: label of the carrier, first element there and here, loops."""
    [out] = op.infer(shapes)
    carriers = [shapes[c] for c in op.carriers(len(shapes))]
    assert moves(op, carriers, out) == expected


def test_every_view_is_in_the_table() -> None:
    """A view op that is new must be written down above."""
    views = {cls for cls in ops.AnyOp.__args__ if cls.kind is ops.Identity.kind}
    assert {type(op) for op, _, _ in BY_HAND} == views


def random_view(draw: random.Random) -> tuple[UnwindingOp, list[Shape]]:
    """Return a view op that can do with its operand's shape, and the shapes of its carriers."""
    shape = tuple(draw.choice([0, 1, 2, 3, 4, 5, 7]) for _ in range(draw.randint(1, 3)))
    order, axis = list(range(len(shape))), draw.randrange(len(shape))
    draw.shuffle(order)
    ends = [sorted((draw.randint(0, n), draw.randint(0, n))) for n in shape]
    parts = [(*shape[:axis], draw.randint(0, 3), *shape[axis + 1 :]) for _ in range(3)]
    wide = (draw.randint(0, 3), *(draw.randint(0, 3) if n == 1 else n for n in shape))
    stripes = [
        tuple((draw.randint(0, 4), draw.randint(1, 4), draw.randint(-9, 9)) for _ in range(depth))
        for depth in (draw.randint(0, 3) for _ in shape)
    ]
    x = ("x",)
    return draw.choice(
        [
            (ops.DimShuffle(id="v", inputs=x, permutation=tuple(order)), [shape]),
            (ops.Reverse(id="v", inputs=x, dims=tuple(order[: axis + 1])), [shape]),
            (ops.SubSample(id="v", inputs=x, strides=tuple(o + 1 for o in order)), [shape]),
            (ops.SettSample(id="v", inputs=x, setts=tuple(stripes)), [shape]),
            (ops.Concat(id="v", inputs=("x", "y", "z"), axis=axis), parts),
            (ops.Expand(id="v", inputs=x, shape=wide), [shape]),
            (
                ops.Slice(
                    id="v",
                    inputs=x,
                    lower=tuple(low for low, _ in ends),
                    upper=tuple(high for _, high in ends),
                ),
                [shape],
            ),
        ]
    )


@pytest.mark.parametrize("seed", range(300))
def test_against_elements(seed: int) -> None:
    """Written out, the boxes say of each output element what the elementwise formulas say."""
    op, shapes = random_view(random.Random(seed))
    [out] = op.infer(shapes)
    values = [1000 * k + np.arange(prod(shape)) for k, shape in enumerate(shapes)]
    found = np.full(prod(out), -1)
    for label, start, to, loops in moves(op, shapes, out):
        here = outer_sum([np.arange(n) * step for n, _, step in loops], to)
        assert (found[here] == -1).all()
        found[here] = values[label][outer_sum([np.arange(n) * step for n, step, _ in loops], start)]
    assert np.array_equal(found, carried(op, values, shapes, out))


def test_long_stripes() -> None:
    """Nested stripes over a million million indices are a few runs, right at every tried place."""
    n, stripes = 10**12, ((1000, 24, 5), (7, 2, 1), (3, 1, 0))
    runs = kept(0, n, stripes)
    assert len(runs) < 30
    sizes = [(to, prod(m for m, _, _ in loops)) for _, to, loops in runs]
    assert sum(count for _, count in sizes) == count_kept(n, stripes)
    small = {int(i) for i in kept_indices(3000, stripes)}
    firsts = {start for start, _, _ in runs if start < 3000}
    assert firsts <= small
    listed = kept(0, 3000, stripes)
    walks = [
        (outer_sum([np.arange(m) * t for m, _, t in loops], to), loops, start)
        for start, to, loops in listed
    ]
    places = np.concatenate([to for to, _, _ in walks])
    indices = np.concatenate(
        [outer_sum([np.arange(m) * f for m, f, _ in loops], start) for _, loops, start in walks]
    )
    assert indices[np.argsort(places)].tolist() == sorted(small)
    assert all(a < b for a, b in pairwise(np.sort(places)))


def test_barriers_move_nothing() -> None:
    """Asking where a barrier's elements come from is a mistake."""
    with pytest.raises(TypeError, match="Barrier is no view"):
        moves(ops.Barrier(id="b", inputs=("x",), shape=(2,)), [(2,)], (2,))
