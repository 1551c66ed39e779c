"""Views, as the checker of certificates sees them, are NumPy's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

from layoutopt.certificate import views
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import Box
from layoutopt.certificate.views import VIEWS, carried, carriers, check_cut, kept_indices, shape_of
from layoutopt.io.instance import OP_TYPES
from tests.certificate.test_sums import members

Shape = tuple[int, ...]


def on(i: int, stripes: Sequence[Sequence[int]]) -> bool:
    """Return whether an index is on, walking through one stripe after the other."""
    for run, off, phase in stripes:
        i = (i - phase) % (run + off)
        if i >= run:
            return False
    return True


def random_stripes(draw: random.Random) -> list[list[int]]:
    """Return up to three stripes, each nested in what is on before."""
    found, width = [], 12
    for _ in range(draw.randint(0, 3)):
        run, off = draw.randint(1, max(1, width - 1)), draw.randint(0, 4)
        found.append([run, off, draw.randint(0, 5)])
        width = run
    return found


def random_view(draw: random.Random, kind: str) -> tuple[dict[str, Any], list[Shape], Any]:
    """Return an op, the shapes of what it carries, and what NumPy makes of arrays of these."""
    shape = tuple(draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(0, 3)))
    op: dict[str, Any] = {"type": kind, "inputs": ["x"]}
    if kind == "sum_like":
        return op | {"inputs": ["y", "x"], "unwindable_inputs": [1]}, [shape], lambda x: x
    if kind == "identity":
        return op, [shape], lambda x: x
    if kind == "flatten":
        return op, [shape], np.ravel
    if kind == "squeeze":
        return op, [shape], np.squeeze
    if kind == "reshape":
        out = tuple(draw.sample(shape, len(shape)))
        return op | {"shape": [*out]}, [shape], lambda x: x.reshape(out)
    if kind == "dim_shuffle":
        axes = draw.sample(range(len(shape)), len(shape))
        return op | {"permutation": axes}, [shape], lambda x: x.transpose(axes)
    if kind == "reverse":
        dims = [d for d in range(len(shape)) if draw.random() < 0.5]
        return op | {"dims": dims}, [shape], lambda x: np.flip(x, tuple(dims))
    if kind == "expand":
        out = tuple(n if n > 1 else draw.choice([0, 1, 3]) for n in shape)
        out = (*(draw.randint(1, 2) for _ in range(draw.randint(0, 2))), *out)
        return op | {"shape": [*out]}, [shape], lambda x: np.broadcast_to(x, out)
    if kind == "concat":
        shape = shape or (2,)
        axis = draw.randrange(len(shape))
        every = [(*shape[:axis], draw.randint(0, 3), *shape[axis + 1 :]) for _ in range(3)]
        op |= {"inputs": ["x", "y", "z"], "axis": axis}
        return op, every, lambda *x: np.concatenate(x, axis)
    return _cut(draw, op, kind)


def _cut(
    draw: random.Random, op: dict[str, Any], kind: str
) -> tuple[dict[str, Any], list[Shape], Any]:
    """Return a view that leaves elements out."""
    shape = tuple(draw.randint(1, 12) for _ in range(draw.randint(1, 2)))
    if kind == "slice":
        ends = [sorted(draw.choices(range(n + 1), k=2)) for n in shape]
        op |= {"lower": [a for a, _ in ends], "upper": [b for _, b in ends]}
        return op, [shape], lambda x: x[tuple(slice(a, b) for a, b in ends)]
    if kind == "sub_sample":
        strides = [draw.randint(1, 4) for _ in shape]
        return (
            op | {"strides": strides},
            [shape],
            lambda x: x[tuple(slice(0, None, s) for s in strides)],
        )
    setts = [random_stripes(draw) for _ in shape]
    kept = [[i for i in range(n) if on(i, own)] for n, own in zip(shape, setts, strict=True)]
    return op | {"setts": setts}, [shape], lambda x: x[np.ix_(*kept)]


def boxes_of(draw: random.Random, shape: Shape, first: int) -> list[Box]:
    """Return boxes that number all elements of a tensor: one, rows of it, or each alone."""
    steps = [prod(shape[d + 1 :]) for d in range(len(shape))]
    units = [tuple(int(d == e) for e in range(len(shape))) for d in range(len(shape))]
    loops = [(n, (s, *unit)) for n, s, unit in zip(shape, steps, units, strict=True)]
    alone = draw.randint(0, len(shape))
    found = []
    for index in np.ndindex(*shape[:alone]) if prod(shape) else ():
        at = first + sum(i * s for i, s in zip(index, steps, strict=False))
        begin = (at, *index, *[0] * (len(shape) - alone))
        found.append(Box((int(draw.random() < 0.5),), begin, tuple(loops[alone:])))
    return found


def written(boxes: Sequence[Box], shape: Shape) -> np.ndarray:
    """Return where boxes say that elements lie, each of which must be there once.

    Those of tag 1 lie 1000 further.
    """
    found = np.full(shape, -1)
    for box in boxes:
        for where, *index in members(box):
            assert found[tuple(index)] == -1
            found[tuple(index)] = where + 1000 * box.tag[0]
    assert (found >= 0).all()
    return found


@pytest.mark.parametrize("kind", sorted(VIEWS))
def test_views_are_those_of_numpy(kind: str) -> None:
    """On random small tensors shape and elements of a view's output are what NumPy makes."""
    draw = random.Random(f"seed of {kind}")
    for _ in range(150):
        op, shapes, view = random_view(draw, kind)
        starts = np.cumsum([0, *map(prod, shapes)]).tolist()
        inputs = [boxes_of(draw, s, a) for a, s in zip(starts, shapes, strict=False)]
        arrays = [written(boxes, s) for boxes, s in zip(inputs, shapes, strict=True)]
        for a, s, array in zip(starts, shapes, arrays, strict=False):
            assert np.array_equal(array % 1000, a + np.arange(prod(s)).reshape(s))
        want = view(*arrays)
        assert carriers(op) == ([1] if kind == "sum_like" else [*range(len(shapes))])
        assert shape_of(op, shapes) == want.shape
        if kind in views.CUTTING:
            alone = [Box(b.tag, m, ()) for b in inputs[0] for m in members(b)]
            own = [[*indices] for indices in kept_indices(op, shapes[0])]
            sides: tuple[list[Box], list[Box]] = ([], [])
            for box in alone:
                sides[not all(i in k for i, k in zip(box.start[1:], own, strict=True))].append(box)
            check_cut(op, shapes[0], *sides)
            inputs = [sides[0]]
        made = carried(op, shapes, inputs)
        if kind in views.SAME:
            assert written(made, shapes[0]).ravel().tolist() == want.ravel().tolist()
        else:
            assert np.array_equal(written(made, want.shape), want)


def test_all_types_of_ops_are_known() -> None:
    """What the file format can say is a view, or has locations of its own, or is a sink."""
    assert {*VIEWS, *views.OWN, "sink"} == set(OP_TYPES)
    assert set(views.BARRIERS) < views.OWN


SHAPE = (12, 3)
STRIPED = {"type": "sett_sample", "setts": [[[5, 1, 1], [2, 1, 0]], []]}
"""Of 0 .. 11 it keeps 1, 2, 4, 5 and 7, 8, 10, 11."""

STEPS = {"type": "sub_sample", "strides": [3, 2]}
"""It keeps 0, 3, 6, 9, and 0, 2."""

MIDDLE = {"type": "slice", "lower": [2, 1], "upper": [9, 2]}

FIRST = {"type": "sett_sample", "setts": [[[2, 10, 0]], []]}
LAST = {"type": "sett_sample", "setts": [[[2, 10, 10]], []]}
"""They keep 0 and 1, and 10 and 11."""


def _line(start: int, n: int, step: int, other: int = 0) -> Box:
    return Box((), (0, start, other), ((n, (0, step, 0)),))


KEPT: list[tuple[dict[str, Any], Box]] = [
    (STRIPED, _line(1, 2, 1)),
    (STRIPED, _line(1, 2, 6)),
    (STRIPED, _line(1, 4, 3, 2)),
    (STRIPED, _line(11, 4, -3)),
    (STRIPED, _line(11, 1, 1)),
    (LAST, _line(11, 2, -1)),
    (STEPS, _line(0, 4, 3)),
    (STEPS, _line(9, 2, -6, 2)),
    (STEPS, _line(6, 1, 1)),
    (MIDDLE, _line(2, 7, 1, 1)),
    (MIDDLE, _line(8, 3, -3, 1)),
]

LEFT: list[tuple[dict[str, Any], Box]] = [
    (STRIPED, _line(0, 4, 3)),
    (STRIPED, _line(3, 1, 1)),
    (STEPS, _line(1, 4, 3)),
    (STEPS, _line(0, 12, 1, 1)),
    (STEPS, _line(8, 3, -3)),
    (MIDDLE, _line(0, 2, 1, 1)),
    (MIDDLE, _line(11, 3, -1, 1)),
    (MIDDLE, _line(0, 12, 1, 0)),
    ({"type": "slice", "lower": [4, 0], "upper": [4, 3]}, _line(0, 12, 1)),
]

NEITHER: list[tuple[dict[str, Any], Box]] = [
    (STRIPED, _line(1, 3, 1)),
    (STRIPED, _line(2, 2, 1)),
    (STRIPED, _line(3, 2, 1)),
    (STRIPED, _line(1, 4, 1)),  # all are kept but the third
    (STRIPED, Box((), (0, 4, 0), ((2, (0, -2, 0)), (2, (0, 1, 0))))),
    (STEPS, _line(0, 2, 1)),
    (STEPS, _line(0, 3, 2)),
    (STEPS, _line(1, 3, 1)),
    (STEPS, _line(1, 2, 2)),
    (FIRST, _line(0, 12, 1)),
    (FIRST, _line(0, 3, 1)),
    (LAST, _line(11, 12, -1)),
    (STEPS, Box((), (0, 0, 0), ((2, (0, 3, 1)),))),
    (STEPS, Box((), (0, 3, 0), ((3, (0, 0, 1)),))),
    (MIDDLE, _line(1, 2, 1, 1)),
    (MIDDLE, _line(8, 2, 1, 1)),
    (MIDDLE, _line(9, 2, -1, 1)),
]


def test_what_a_cut_keeps_and_leaves() -> None:
    """A box is kept if all of its elements are, is left if none is, and can be nothing else."""
    op: dict[str, Any]
    for op, box in KEPT:
        check_cut(op, SHAPE, [box], [])
        [out] = carried(op, [SHAPE], [[box]])
        kept = [[*own] for own in kept_indices(op, SHAPE)]
        back = [(w, *(own[i] for own, i in zip(kept, at, strict=True))) for w, *at in members(out)]
        assert back == members(box)
    for op, box in LEFT:
        check_cut(op, SHAPE, [], [box])
    for op, box in [*LEFT, *NEITHER]:
        with pytest.raises(Refused, match="a cut keeps has elements that its op leaves out"):
            carried(op, [SHAPE], [[box]])
    for op, box in [*KEPT, *NEITHER]:
        with pytest.raises(Refused, match="a cut leaves out has elements that its op may keep"):
            check_cut(op, SHAPE, [], [box])


@pytest.mark.parametrize("start", [(0, -1, 0), (0, 12, 0), (0, 0, -1), (0, 0, 3)])
def test_boxes_outside_of_their_tensor(start: tuple[int, ...]) -> None:
    """A cut's boxes are of elements that its tensor has."""
    for sides in ([[Box((), start, ())], []], [[], [Box((), start, ())]]):
        with pytest.raises(Refused, match="outside"):
            check_cut(MIDDLE, SHAPE, *sides)


def test_stripes_over_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stripes are laid over dimensions that memory holds only, and boxes go through these."""
    monkeypatch.setattr(views, "MOST_STRIPED", 12)
    monkeypatch.setattr(views, "MOST_WALKED", 12 + 1)
    check_cut(STRIPED, SHAPE, [], [_line(0, 4, 3), _line(3, 1, 1)])
    again = Box((), (0, 0, 0), ((2, (0, 1, 0)),) * 4)
    for sides in ([[again], []], [[], [again]]):
        with pytest.raises(Refused, match="go through its stripes too often"):
            check_cut(STRIPED, SHAPE, *sides)
    monkeypatch.setattr(views, "MOST_STRIPED", 11)
    with pytest.raises(Refused, match="stripes over a dimension of 12; at most 11"):
        kept_indices(STRIPED, SHAPE)
