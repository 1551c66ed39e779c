"""Pieces of ops that are met rarely: places and grids, sequences, cumulated and random numbers."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.fuzzing.any_network.scope import Array, Scope, kind_of
from tests.fuzzing.any_network.steps import Found, Piece, reads, transposed_weight


@reads("f", 1, 4, since=11)
def scattered(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Elements or slices that are replaced, or joined by a reduction."""
    more = dict[str, Any]()
    if scope.opset >= 16 and draw.random() < 0.6:
        ways = ("none", "add", "mul", *(("max", "min") if scope.opset >= 18 else ()))
        more["reduction"] = draw.choice(ways)
    if draw.random() < 0.5:
        axis = draw.randrange(-data.ndim, data.ndim)
        shape = [draw.randint(1, size) for size in data.shape]
        updates = scope.drawn(shape, data.dtype)
        if more.get("reduction", "none") == "none":  # no place twice, as the last is not told
            shape[axis] = 1
            updates = scope.drawn(shape, data.dtype)
        where = scope.integers(scope.indices(-data.shape[axis], data.shape[axis], shape))
        return scope.add("ScatterElements", [name, where, updates], axis=axis, **more)
    depth = draw.randint(1, data.ndim)
    count = draw.choice((1, 2)) if more.get("reduction", "none") != "none" else 1
    places = [[draw.randrange(-size, size) for size in data.shape[:depth]] for _ in range(count)]
    updates = scope.drawn([count, *data.shape[depth:]], data.dtype)
    return scope.add("ScatterND", [name, scope.integers(places), updates], **more)


@reads("fiu", 1, 4)
def picked(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Elements that are picked, counted or ordered."""
    rank = data.ndim
    axis = draw.randrange(-rank, rank) if scope.opset >= 11 else draw.randrange(rank)
    kind = draw.choice(("TopK", "GatherND", "Unique", "NonZero", "OneHot", "Compress", "ArgMax",
                        "GatherElements", "ReverseSequence", "Split"))  # fmt: skip
    if kind == "TopK" and scope.opset >= 10:
        most = scope.integers([draw.randint(1, max(data.shape[axis], 1))])
        more = {"largest": draw.choice((0, 1))} if scope.opset >= 11 else {}
        return scope.add_many(kind, [name, most], 2, axis=axis, **more)
    if kind == "GatherND" and scope.opset >= 12:
        shared = draw.choice((0, 0, 1))
        depth = draw.randint(1, rank - shared) if rank > shared else 0
        if not depth:
            return False
        lead = [data.shape[0]] if shared else []
        lead += [draw.choice((1, 2)) for _ in range(draw.choice((0, 1, 2)))]
        sizes = data.shape[shared : shared + depth]
        flat = [[draw.randrange(-s, s) for s in sizes] for _ in range(int(np.prod(lead)))]
        places = scope.integers(np.reshape(flat, [*lead, depth]))
        return scope.add(kind, [name, places], batch_dims=shared)
    if kind == "Unique" and scope.opset >= 11:
        more = {"sorted": draw.choice((0, 1))} | ({"axis": axis} if draw.random() < 0.6 else {})
        return scope.add_many(kind, [name], draw.choice((1, 2, 3, 4)), **more)
    if kind == "NonZero" and scope.opset >= 9:
        made = scope.transposed(scope.add(kind, [name]), [1, 0])
        if scope.opset >= 11 and draw.random() < 0.6:
            return scope.add("GatherND", [name, made])
        return made
    if kind == "OneHot" and data.dtype.kind in "iu" and scope.opset >= 9:
        depth, values = scope.integers([3]), scope.typed([0, 1], np.float32)
        axis = draw.randrange(-rank - 1, rank + 1)
        return scope.add(kind, [name, depth, values], axis=axis)
    if kind == "Compress" and scope.opset >= 9:
        flat = draw.random() < 0.3
        size = data.size if flat else data.shape[axis]
        mask = scope.drawn([draw.randint(0, size)], "bool")
        return scope.add(kind, [name, mask], **({} if flat else {"axis": axis}))
    if kind == "ArgMax":
        more = {"axis": axis, "keepdims": draw.choice((0, 1))}
        return scope.add(draw.choice(("ArgMax", "ArgMin")), [name], **more)
    if kind == "GatherElements" and scope.opset >= 11:
        shape = [draw.randint(1, max(size, 1)) for size in data.shape]
        places = scope.integers(scope.indices(-data.shape[axis], data.shape[axis], shape))
        return scope.add(kind, [name, places], axis=axis)
    if kind == "ReverseSequence" and scope.opset >= 10 and rank > 1:
        batch = draw.choice((0, 1))
        count = data.shape[batch]
        lengths = [draw.randint(1, max(data.shape[1 - batch], 1)) for _ in range(count)]
        more = {"batch_axis": batch, "time_axis": 1 - batch}
        return scope.add(kind, [name, scope.integers(lengths)], **more)
    count = draw.choice((1, 2, 3))
    if kind == "Split" and scope.opset >= 18:
        return scope.add_all(kind, [name], count, axis=axis, num_outputs=count)
    return False


@reads("f", 1, 4)
def cumulated(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Sums and products along an axis, triangles, unit matrices, bits."""
    rank, more = data.ndim, dict[str, Any]()
    kind = draw.choice(("CumSum", "CumSum", "CumProd", "Trilu", "EyeLike", "BitCast", "Hardmax",
                        "Det", "Range", "ConstantOfShape"))  # fmt: skip
    if kind in ("CumSum", "CumProd"):
        axis = draw.randrange(-rank, rank)
        places = scope.typed(axis, draw.choice((np.int32, np.int64)))
        more = {key: 1 for key in ("exclusive", "reverse") if draw.random() < 0.5}
        return scope.add(kind, [name, places], **more)
    if kind == "Trilu":
        inputs = [name]
        inputs += [scope.integers(draw.choice((-2, -1, 0, 1)))] if draw.random() < 0.6 else []
        return scope.add(kind, inputs, upper=draw.choice((0, 1)))
    if kind == "EyeLike":
        flat = [*scope.arrays("fiu", 2, 2)]
        more = {"k": draw.choice((-1, 0, 1))} | ({"dtype": 1} if draw.random() < 0.5 else {})
        return flat and scope.add(kind, [draw.choice(flat)], **more)
    if kind == "BitCast":
        to = {2: TensorProto.INT16, 4: TensorProto.INT32, 8: TensorProto.INT64}
        made = scope.add(kind, [name], to=to[data.itemsize])
        return scope.add(kind, [made], to=kind_of(data))
    if kind == "Hardmax":
        return scope.add(kind, [name], axis=draw.randrange(rank))
    if kind == "Range":
        ends = [scope.integers(x) for x in (0, draw.choice((3, 6)), 1)]
        return scope.add("Cast", [scope.add(kind, ends)], to=TensorProto.FLOAT)
    return kind == "Det" and scope.add(kind, [name])


def sampled(scope: Scope) -> Found:
    """Grids over images and volumes, and images made of columns."""
    draw = scope.draw
    spatial = draw.choice((2, 2, 3))
    name = scope.pick("f", spatial + 2, spatial + 2)
    kind = draw.choice(("grid", "affine", "affine", "columns", "spectrum"))
    if kind == "columns" and scope.opset >= 18:
        same = [
            n for n, v in scope.arrays("f", 3, 3).items() if v.shape[1] % 4 == 0 and v.shape[2] == 4
        ]
        columns = draw.choice(same or [scope.given(scope.number((2, 8, 4)))])
        return scope.add("Col2Im", [columns, scope.integers([3, 3]), scope.integers([2, 2])])
    if kind == "spectrum" and scope.opset >= 20:
        signal = scope.pick("f", 2, 4)
        if signal is None:
            return False
        made = scope.add("Unsqueeze", [signal, scope.integers([-1])])
        axis = scope.integers(draw.choice((1, -2)))
        return scope.add("DFT", [made, "", axis], onesided=draw.choice((0, 1)))
    if name is None or scope.opset < 16 or scope[name].size == 0:
        return False
    data = scope[name]
    sizes = [draw.choice((1, 2, 3)) for _ in range(spatial)]
    grid = scope.drawn((len(data), *sizes, spatial), data.dtype)
    if kind == "affine" and scope.opset >= 20:
        theta = scope.drawn((len(data), spatial, spatial + 1), data.dtype)
        wanted = scope.integers([len(data), data.shape[1], *sizes])
        grid = scope.add("AffineGrid", [theta, wanted], align_corners=draw.choice((0, 1)))
    elif draw.random() < 0.3:
        order = [0, *draw.sample(range(1, spatial + 2), spatial + 1)]
        grid = transposed_weight(scope, scope[grid], order)
    more: dict[str, Any] = {"align_corners": draw.choice((0, 1))}
    if draw.random() < 0.5:
        modes = ("linear", "nearest", "cubic") if scope.opset >= 20 else ("bilinear", "nearest")
        more["mode"] = draw.choice(modes)
    if draw.random() < 0.5:
        more["padding_mode"] = draw.choice(("zeros", "border", "reflection"))
    return scope.add("GridSample", [name, grid], **more)


@reads("f", 1, 4, since=11)
def listed(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Sequences that are made, changed, measured and read, and given back as well."""
    alike = scope.arrays("f", data.ndim, data.ndim)
    same = [n for n, v in alike.items() if v.dtype == data.dtype]
    order = draw.sample(range(data.ndim), data.ndim)
    turned = scope.transposed(name, order)
    made = scope.add("SequenceConstruct", [draw.choice(same), turned, name])
    for _ in range(draw.choice((0, 1, 2))):
        place = scope.integers(draw.choice((0, -1)))
        if draw.random() < 0.5:
            made = scope.tried("SequenceInsert", [made, turned, place]) or made
        else:
            made = scope.tried("SequenceErase", [made, place]) or made
    if draw.random() < 0.3:
        scope.tried("SequenceLength", [made])
    if draw.random() < 0.4:
        element = scope.add("SequenceAt", [made, scope.integers(-1)])
        return scope.transposed(element, np.argsort(order))
    return scope.add("ConcatFromSequence", [made], axis=0, new_axis=draw.choice((0, 1)))


@reads("f", 1, 4, since=15)
def optional(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """An optional value that is asked for, and taken."""
    names = [scope.names.new("t") for _ in range(4)]
    order = draw.sample(range(data.ndim), data.ndim)
    nodes = [helper.make_node("Transpose", [name], names[:1], perm=order)]
    nodes.append(helper.make_node("Optional", names[:1], names[1:2]))
    nodes.append(helper.make_node("OptionalGetElement", names[1:2], names[2:3]))
    keep = [names[0], names[2]]
    if draw.random() < 0.5:
        nodes.append(helper.make_node("OptionalHasElement", names[1:2], names[3:]))
        keep.append(names[3])
    return scope.add_nodes(*nodes, keep=keep) and scope.transposed(names[2], np.argsort(order))


@reads("f", 1, 4)
def random_numbers(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Random numbers by a seed, which are others in another order of axes, or by none."""
    turned = scope.transposed(name)
    kind = draw.choice(("RandomNormalLike", "RandomUniformLike", "Bernoulli", "RandomNormal"))
    more: dict[str, Any] = {"seed": 3.0} if draw.random() < 0.8 else {}
    inputs = [turned]
    if kind == "Bernoulli":
        if scope.opset < 15:
            return False
        inputs = [scope.tried("Sigmoid", [turned]) or turned]
    elif kind == "RandomNormal":
        inputs = []
        more["shape"] = [*scope[turned].shape]
    made = scope.add(kind, inputs, **more)
    if "seed" not in more:
        scope.root().random = True
    return scope.transposed(made)


@reads("f", 2, 4, since=12, single=True)
def lost(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A loss, with classes on axis 1."""
    batch, classes, *rest = data.shape
    inputs = [name, scope.integers(scope.indices(0, classes, [batch, *rest]))]
    inputs += [scope.constant(np.abs(scope.number([classes])) + 1)] if draw.random() < 0.4 else []
    more = {"reduction": draw.choice(("none", "sum", "mean"))}
    if draw.random() < 0.5:
        return scope.add_many("SoftmaxCrossEntropyLoss", inputs, 2, **more)
    return scope.add("NegativeLogLikelihoodLoss", inputs, **more)


RARE: dict[Piece, int] = {
    scattered: 3,
    picked: 5,
    cumulated: 4,
    sampled: 3,
    listed: 2,
    optional: 1,
    random_numbers: 2,
    lost: 1,
}
"""The pieces, and how often each is tried."""
