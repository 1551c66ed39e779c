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
from layoutopt.certificate.views import VIEWS, carriers, kept_of, relation, runs, shape_of
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


@pytest.mark.parametrize("kind", sorted(VIEWS))
def test_views_are_those_of_numpy(kind: str) -> None:
    """On random small tensors shape and elements of a view's output are what NumPy makes."""
    draw = random.Random(f"seed of {kind}")
    for _ in range(150):
        op, shapes, view = random_view(draw, kind)
        starts = np.cumsum([0, *map(prod, shapes)]).tolist()
        arrays = [a + np.arange(prod(s)).reshape(s) for a, s in zip(starts, shapes, strict=False)]
        want = view(*arrays)
        assert carriers(op) == ([1] if kind == "sum_like" else [*range(len(shapes))])
        assert shape_of(op, shapes) == want.shape
        found = np.full(want.size, -1)
        for start, boxes in zip(starts, relation(op, shapes), strict=False):
            for box in boxes:
                for here, there in members(box):
                    assert found[there] == -1
                    found[there] = start + here
        assert found.tolist() == want.ravel().tolist()


def test_all_types_of_ops_are_known() -> None:
    """What the file format can say is a view, or has locations of its own, or is a sink."""
    assert {*VIEWS, *views.OWN, "sink"} == set(OP_TYPES)
    assert set(views.BARRIERS) < views.OWN


def test_stripes_are_few_boxes() -> None:
    """Indices of one stripe are up to five boxes, however long the dimension is; any are some."""
    draw = random.Random(7)
    for _ in range(300):
        n, stripes = draw.randint(0, 400), random_stripes(draw)
        want = [i for i in range(n) if on(i, stripes)]
        kept = kept_of(n, stripes)
        boxes = runs(kept)
        assert kept.tolist() == want
        assert sorted(m for box in boxes for m in members(box)) == [
            (x, k) for k, x in enumerate(want)
        ]
        assert len(boxes) <= (5 if len(stripes) < 2 else max(1, len(want)))
    assert len(runs(kept_of(10**6, [[3, 4, 2]]))) <= 5


def test_ops_of_too_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stripes are laid over dimensions that memory holds only, and pieces are not too many."""
    op = {"type": "sett_sample", "setts": [[[5, 1, 1], [2, 1, 0]], [[1, 1, 0]]]}
    pieces = [len(runs(kept_of(n, own))) for n, own in zip((12, 4), op["setts"], strict=True)]
    assert len(relation(op, [(12, 4)])[0]) == prod(pieces) > 1
    monkeypatch.setattr(views, "MOST_PIECES", prod(pieces) - 1)
    with pytest.raises(Refused, match=f"more than {prod(pieces) - 1} boxes"):
        relation(op, [(12, 4)])
    monkeypatch.setattr(views, "LONGEST", 11)
    with pytest.raises(Refused, match="stripes over a dimension of size 12; at most 11"):
        relation(op, [(12, 4)])
