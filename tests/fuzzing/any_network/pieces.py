"""Pieces of networks: what ops of a schema alone would hardly ever give."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from tests.fuzzing.any_network import bodies
from tests.fuzzing.any_network.exporters import EXPORTED
from tests.fuzzing.any_network.fused import FUSED, MICROSOFT, microsoft
from tests.fuzzing.any_network.ops import any_op
from tests.fuzzing.any_network.rare import RARE
from tests.fuzzing.any_network.scope import Array, Scope, info, kind_of
from tests.fuzzing.any_network.steps import Found, Piece, product_weight, reads, recurrent_weights
from tests.fuzzing.any_network.turned import TURNED

LEARNING = "ai.onnx.ml"


@reads(None, 2, 6)
def transpose(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A transpose, at times one of those that exporters write, at times without ``perm``."""
    rank = data.ndim
    order = draw.sample(range(rank), rank)
    if rank > 2 and draw.random() < 0.6:
        order = draw.choice(([0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]))
    more = {} if draw.random() < 0.1 else {"perm": order}
    return scope.add("Transpose", [name], **more)


def around(scope: Scope) -> Found:
    """A transpose, any piece, and the inverse transpose of the last value of its rank."""
    if not transpose(scope):
        return False
    last = list(scope.values)[-1]
    perm = next((a.ints for a in scope.nodes[-1].attribute if a.name == "perm"), ())
    back = np.argsort(perm).tolist() if len(perm) else None
    for _ in range(scope.draw.choice((0, 1, 1, 2))):
        piece_of(scope, PIECES)
    rank = scope.values[last].ndim
    names = [n for n, value in scope.arrays(None, rank, rank).items() if n in scope.values]
    return scope.add("Transpose", [names[-1]], **({"perm": back} if back else {}))


def convolution(scope: Scope) -> Found:
    """A convolution or its transpose, plain, by groups, or of integers."""
    draw = scope.draw
    kind = draw.choice(("Conv", "Conv", "Conv", "ConvTranspose", "ConvInteger"))
    name = scope.pick("f" if kind != "ConvInteger" else "iu", 3, 5)
    if name is None:
        return False
    data = scope[name]
    channels = data.shape[1]
    group = draw.choice((1, 1, channels)) or 1
    window = [draw.randint(1, min(3, max(size, 1))) for size in data.shape[2:]]
    shape = [draw.choice((1, 2, 4)) * group, max(channels // group, 1), *window]
    if kind == "ConvTranspose":
        shape[:2] = [channels, draw.choice((1, 2))]
    inputs = [name, scope.drawn(shape, data.dtype)]
    outputs = shape[1] * group if kind == "ConvTranspose" else shape[0]
    if kind != "ConvInteger" and draw.random() < 0.4:
        inputs.append(scope.drawn([outputs], data.dtype))
    more: dict[str, Any] = {"group": group} if draw.random() < 0.9 or group > 1 else {}
    if draw.random() < 0.4:
        more["pads"] = [draw.choice((0, 1)) for _ in window] * 2
    elif draw.random() < 0.2:
        more["auto_pad"] = draw.choice(("SAME_UPPER", "VALID"))
    more |= {"strides": [draw.choice((1, 2)) for _ in window]} if draw.random() < 0.3 else {}
    more |= {"kernel_shape": window} if draw.random() < 0.5 else {}
    return scope.add(kind, inputs, **more)


@reads("f", 1, 5)
def product(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A MatMul, a Gemm or an Einsum, of two values or of one with a weight, transposed at times."""
    inner = data.shape[-1]
    if data.ndim == 2 and draw.random() < 0.5:
        w, flags = product_weight(scope, data)
        inputs = [name, w]
        if scope.opset < 11 or draw.random() < 0.5:
            bias = draw.choice(([3], [1, 3], [], [data.shape[1 - flags["transA"]], 1]))
            inputs.append(scope.drawn(bias, data.dtype))
        more: dict[str, Any] = {k: v for k, v in flags.items() if v or draw.random() < 0.3}
        return scope.add("Gemm", inputs, alpha=draw.choice((1.0, 0.5)), **more)
    if data.ndim == 3 and draw.random() < 0.2 and scope.opset >= 12:
        equation = draw.choice(("bij,bkj->bik", "bij->bji", "bij,bjk->bik", "bij,bij->b"))
        inputs = [name] if "," not in equation else [name, name]
        if equation == "bij,bjk->bik":
            inputs[1] = scope.drawn((data.shape[0], inner, 2), data.dtype)
        return scope.add("Einsum", inputs, equation=equation)
    if draw.random() < 0.4 and data.ndim > 1:
        other = scope.transposed(name, [*range(data.ndim - 2), data.ndim - 1, data.ndim - 2])
    else:
        lead = data.shape[: -2 if data.ndim > 2 and draw.random() < 0.3 else 0]
        other = scope.drawn((*lead, inner, draw.choice((1, 2, 3))), data.dtype)
    inputs = [name, other] if draw.random() < 0.8 else [other, name]
    return scope.add("MatMul", inputs)


def weight(scope: Scope) -> bool:
    """A weight that is read behind a transpose, maybe by two."""
    draw = scope.draw
    name = scope.drawn([draw.choice((1, 2, 3)) for _ in range(draw.randint(2, 4))])
    turned = scope.transposed(name)
    for read in draw.choice(((turned,), (turned, name))):
        same = [n for n, v in scope.arrays("f", 1).items() if v.shape == scope[read].shape]
        scope.tried(draw.choice(("Add", "Mul")), [draw.choice(same), read])
    return True


@reads(None, 1, 5)
def sliced(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A Slice as all versions write it: any axes in any order, negative ends and steps."""
    shape = data.shape
    axes = draw.sample(range(len(shape)), draw.randint(1, len(shape)))
    starts = [draw.choice((0, 0, 1, -1, -2, shape[a])) for a in axes]
    ends = [draw.choice((shape[a], 2**31 - 1, -1, 1, 2**62)) for a in axes]
    steps = [draw.choice((1, 1, 2)) for _ in axes]
    if draw.random() < 0.3:
        starts = [draw.choice((-1, shape[a] - 1, 2**31 - 1)) for a in axes]
        ends = [draw.choice((0, -(2**31), -shape[a] - 1)) for a in axes]
        steps = [draw.choice((-1, -2)) for _ in axes]
    written = [a - len(shape) if draw.random() < 0.3 else a for a in axes]
    if scope.opset < 10:
        more = {} if axes == [*range(len(shape))] and draw.random() < 0.5 else {"axes": written}
        return scope.add("Slice", [name], starts=starts, ends=ends, **more)
    kind = draw.choice(("int64", "int64", "int32"))
    if kind == "int32":
        ends = [max(min(e, 2**31 - 1), -(2**31)) for e in ends]
    lists: list[list[int] | None] = [starts, ends, written, steps]
    if axes == [*range(len(axes))] and draw.random() < 0.3:
        lists[2] = None
    if all(step == 1 for step in steps) and draw.random() < 0.5:
        lists.pop()
    inputs = ["" if x is None else scope.typed(x, kind) for x in lists]
    return scope.add("Slice", [name, *inputs])


@reads(None, 1, 5)
def shapes(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A shape that is computed from another value's, and what is made with it."""
    got = scope.add("Shape", [name])
    kind = draw.choice(("fill", "expand", "same", "turned", "merge", "grow", "size", "slice"))
    if kind == "fill" and scope.opset >= 9:
        value = helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5])
        made = scope.add("ConstantOfShape", [got], value=value)
        return scope.add("Add", [name, made]) if data.dtype == np.float32 else made
    if kind == "expand" and scope.opset >= 8:
        one = scope.drawn([1], data.dtype if data.dtype != object else "str")
        return scope.add("Expand", [one, got])
    if kind == "same":
        other = [n for n, v in scope.arrays().items() if v.size == data.size]
        return scope.add("Reshape", [draw.choice(other), got])
    if kind == "turned":
        order = draw.sample(range(data.ndim), data.ndim)
        turned = scope.add("Gather", [got, scope.integers(order)], axis=0)
        return scope.add("Reshape", [name, turned])
    if kind == "merge":
        axis = draw.randrange(data.ndim)
        size = scope.add("Gather", [got, scope.integers([axis])], axis=0)
        rest = scope.integers([-1])
        parts = [size, rest] if draw.random() < 0.6 else [rest, size]
        shape = scope.add("Concat", parts, axis=0)
        return scope.add("Reshape", [name, shape])
    if kind == "grow":
        same = scope.add("Mul", [got, scope.integers([1] * data.ndim)])
        return scope.add("Reshape", [name, same])
    if kind == "slice" and scope.opset >= 10:
        ends = [scope.integers([n]) for n in (draw.randrange(2), data.ndim)]
        size = scope.add("Slice", [got, *ends])
    else:
        size = scope.add("Size", [name])
    return scope.add("Cast", [size], to=TensorProto.FLOAT)


@reads(None, 2, 4)
def reshaped(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Transpose, reshape, transpose: heads of attention, channel shuffles, merged axes."""
    if not transpose(scope):
        return False
    last = list(scope.values)[-1]
    shape = list(scope.values[last].shape)
    n = draw.randrange(len(shape) - 1)
    new = [*shape[:n], shape[n] * shape[n + 1], *shape[n + 2 :]]
    merged = scope.add("Reshape", [last, scope.integers(new)])
    if draw.random() < 0.6:
        split = scope.tried("Reshape", [merged, scope.integers(shape)])
        order = draw.sample(range(len(shape)), len(shape))
        return split and scope.transposed(split, order)
    return merged


def again(scope: Scope) -> bool:
    """A node that is there already, once more, under other names."""
    found = [n for n in scope.nodes if n.op_type not in ("If", "Loop", "Scan", "Dropout")]
    if not found:
        return False
    copy = NodeProto()
    copy.CopyFrom(scope.draw.choice(found))
    copy.name = ""
    for n, name in enumerate(copy.output):
        copy.output[n] = scope.names.new("t") if name else ""
    return scope.add_nodes(copy)


@reads("f", 2, 4, varying=True, since=10, single=True)
def quantised(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A quantised op between QuantizeLinear and DequantizeLinear, the standard's or Microsoft's."""
    kind = draw.choice((np.uint8, np.int8))
    by = [scope.typed(0.25, np.float32), scope.typed(draw.choice((0, 3)), kind)]
    made = scope.add("QuantizeLinear", [name, *by])
    if draw.random() < 0.5:
        made = scope.transposed(made)
    return scope.add("DequantizeLinear", [_on_integers(scope, made, by), *by])


def _on_integers(scope: Scope, q: str, by: list[str]) -> str:
    """Add an op on integers, whose scale and zero point are also those of its result, or none."""
    draw, data = scope.draw, scope[q]
    one, more = [q, *by], dict[str, Any]()

    def other(kind: Any = data.dtype) -> str:
        return scope.drawn(data.shape[draw.choice((0, 1)) :], kind)

    op = draw.choice(("none", "conv", "matmul", "add", "mul", "act", "pool", "concat", "softmax",
                      "where", "gemm", "conv"))  # fmt: skip
    if op == "none":
        return q
    if op == "conv" and data.ndim == 4:
        if draw.random() < 0.6:
            scope.root().domains.add(MICROSOFT)
            more = {"domain": MICROSOFT, "channels_last": draw.choice((0, 1))}
        channels = data.shape[3 if more.get("channels_last") else 1]
        w = scope.drawn((2, channels, 1, 1), data.dtype)
        return scope.add("QLinearConv", [*one, w, *by, *by], **more)
    if op == "matmul":
        w = scope.drawn((data.shape[-1], 2), data.dtype)
        return scope.add("QLinearMatMul", [*one, w, *by, *by])
    scope.root().domains.add(MICROSOFT)
    inputs = [*one, *by]
    if op in ("add", "mul"):
        kind, inputs = f"QLinear{op.title()}", [*one, other(), *by, *by]
    elif op == "act":
        kind = draw.choice(("QLinearLeakyRelu", "QLinearSigmoid"))
    elif op == "where":
        kind, inputs = "QLinearWhere", [other("bool"), *one, *one, *by]
    elif op == "gemm":
        w, more = product_weight(scope, data)
        kind, inputs = "QGemm", [*one, w, *by, "", *by]
    elif op == "pool":
        more["channels_last"] = draw.choice((0, 1))
        kind = draw.choice(("QLinearGlobalAveragePool", "QLinearAveragePool"))
        more |= {"kernel_shape": [1, 2]} if kind == "QLinearAveragePool" else {}
    elif op == "concat":
        kind, inputs = "QLinearConcat", [*by, *one, *one]
        more["axis"] = draw.randrange(data.ndim)
    else:
        kind, more["opset"] = "QLinearSoftmax", scope.opset
        more["axis"] = draw.randrange(-data.ndim, data.ndim)
    return scope.add(kind, inputs, domain=MICROSOFT, **more)


@reads("f", 1, 4, varying=True, since=13, single=True)
def scaled(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Numbers quantised and back by scales of an axis or of blocks of it, of 8 or 16 bits."""
    axis = draw.randrange(data.ndim)
    kinds = ["uint8", "int8", *(["uint16", "int16"] if scope.opset >= 21 else [])]
    shape, more = [data.shape[axis]], {"axis": draw.choice((axis, axis - data.ndim))}
    if scope.opset >= 21 and draw.random() < 0.5 and data.shape[axis] % 2 == 0:
        shape = [size // 2 if n == axis else size for n, size in enumerate(data.shape)]
        more["block_size"] = 2
    parameters = scope.scale_and_zero(shape, kinds)
    made = scope.add("QuantizeLinear", [name, *parameters], **more)
    if draw.random() < 0.5:
        order = draw.sample(range(data.ndim), data.ndim)
        made = scope.transposed(made, order)
        if "block_size" in more:
            made = scope.transposed(made, np.argsort(order))
        else:
            more["axis"] = order.index(axis)
    return scope.add("DequantizeLinear", [made, *parameters], **more)


@reads("f", 1, 4, since=12)
def summed(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """An Einsum of any letters, of one operand or two, with dots, and without a result."""
    letters = draw.sample("ijklmn", data.ndim)
    sizes = dict(zip(letters, data.shape, strict=True))
    first, second, inputs = "".join(letters), "", [name]
    if draw.random() < 0.6:
        other = draw.sample([*letters, "z"], draw.randint(1, len(letters)))
        second = "".join(other)
        inputs.append(scope.drawn([sizes.get(x, 2) for x in other], data.dtype))
    every = sorted({*first, *second})
    result = "".join(draw.sample(every, draw.randint(0, len(every))))
    if not second and draw.random() < 0.3:
        cut = draw.randint(0, len(first))
        first, result = first[:cut] + "...", "..." + "".join(reversed(first[:cut]))
    equation = ",".join(filter(None, (first, second)))
    if draw.random() < 0.8:
        equation += f"{draw.choice(('->', ' -> '))}{result}"
    return scope.add("Einsum", inputs, equation=equation)


@reads("f", 3, 3)
def recurrent(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """An LSTM, GRU or RNN with some of its optional operands and results."""
    kind, gates = draw.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    direction = draw.choice(("forward", "reverse", "bidirectional"))
    both, hidden = 1 + (direction == "bidirectional"), 2
    more: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    steps, batch, _ = data.shape
    state = [both, batch, hidden]
    if scope.opset >= 14 and draw.random() < 0.4:
        batch, steps, _ = data.shape
        more["layout"], state = 1, [batch, both, hidden]
    inputs = [name, *recurrent_weights(scope, data, (both, gates * hidden), hidden)]
    options = [
        scope.number((both, 2 * gates * hidden), data.dtype),
        np.full((batch,), steps, np.int32),
        scope.number(state, data.dtype),
    ]
    if kind == "LSTM":
        options += [options[2], scope.number((both, 3 * hidden), data.dtype)]
        more |= {"input_forget": 1} if draw.random() < 0.2 else {}
    elif kind == "GRU" and draw.random() < 0.4:
        more["linear_before_reset"] = 1
    more |= {"clip": 1.5} if draw.random() < 0.2 else {}
    inputs += [scope.constant(x) if draw.random() < 0.4 else "" for x in options]
    count = 3 if kind == "LSTM" else 2
    outputs = [scope.names.new("t") if draw.random() < 0.6 else "" for _ in range(count)]
    if not any(outputs):
        outputs[0] = scope.names.new("t")
    return scope.add_named(kind, inputs, outputs, **more)


@reads("f", 2, 5, since=10)
def resized(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A Resize as all versions write it, with empty operands."""
    rank = data.ndim
    mode = draw.choice(("nearest", "nearest", "linear", "linear", "cubic"))
    scales = np.array([1.0] * rank, np.float32)
    for axis in draw.sample(range(rank), min(rank, draw.choice((1, 2)))):
        scales[axis] = draw.choice((2.0, 0.5, 1.5))
    if scope.opset == 10:
        return scope.add("Resize", [name, scope.constant(scales)], mode=mode)
    more: dict[str, Any] = {"mode": mode}
    if draw.random() < 0.6:
        how = ("asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel")
        more["coordinate_transformation_mode"] = draw.choice(how)
    if mode == "nearest" and draw.random() < 0.3:
        more["nearest_mode"] = draw.choice(("floor", "ceil", "round_prefer_ceil"))
    if mode == "cubic" and draw.random() < 0.5:
        more["cubic_coeff_a"], more["exclude_outside"] = -0.5, draw.choice((0, 1))
    if scope.opset >= 18 and mode != "nearest" and draw.random() < 0.2:
        more["antialias"] = 1
    if draw.random() < 0.5:
        axes = [*range(rank)]
        if scope.opset >= 18 and draw.random() < 0.6:
            axes = draw.sample(axes, draw.randint(1, rank))
            more["axes"] = axes
        inputs = ["", scope.constant(scales[axes])]
    else:
        sizes = [max(round(s * k), 1) for s, k in zip(data.shape, scales, strict=True)]
        inputs = ["", "", scope.integers(sizes)]
        if scope.opset >= 18 and draw.random() < 0.3:
            more["keep_aspect_ratio_policy"] = draw.choice(("not_larger", "not_smaller"))
    if scope.opset < 13:
        empty = scope.constant(np.zeros(0, np.float32))
        inputs = [x or empty for x in inputs]
    return scope.add("Resize", [name, *inputs], **more)


@reads("f", 2, 5, since=13)
def narrow(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Ops on elements that NumPy does not have: bfloat16, of 8 and of 4 bits."""
    types = {13: TensorProto.BFLOAT16, 19: TensorProto.FLOAT8E4M3FN, 21: TensorProto.INT4}
    to = draw.choice([kind for since, kind in types.items() if scope.opset >= since])
    names = [scope.names.new("t") for _ in range(4)]
    order = draw.sample(range(data.ndim), data.ndim)
    nodes = [helper.make_node("Cast", [name], names[:1], to=to)]
    op = draw.choice(("Transpose", "Identity", "Reshape", "Transpose"))
    inputs = [names[0]]
    if op == "Reshape":
        inputs.append(scope.integers([-1, 1]))
    more: dict[str, Any] = {"perm": order} if op == "Transpose" else {}
    nodes.append(helper.make_node(op, inputs, names[1:2], **more))
    if op == "Transpose" and draw.random() < 0.5:
        back = np.argsort(order).tolist()
        nodes.append(helper.make_node("Transpose", names[1:2], names[2:3], perm=back))
    last = nodes[-1].output[0]
    nodes.append(helper.make_node("Cast", [last], names[3:], to=TensorProto.FLOAT))
    return scope.add_nodes(*nodes, keep=names[3:])


@reads("fiu")
def half(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A value in another type of number or text, that others may go on with."""
    kind = draw.choice(("float16", "float64", "int8", "uint8", "int32", "bool", "str"))
    if kind == "str":
        return scope.drawn(data.shape, kind)
    return scope.add("Cast", [name], to=kind_of(np.zeros(0, kind)))


@reads("f", 2, 4, since=11)
def sequence(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Tensors made a sequence, and made a tensor again."""
    axis, keep = draw.randrange(data.ndim), draw.choice((0, 1))
    made = scope.add("SplitToSequence", [name], axis=axis, keepdims=keep)
    if scope.opset >= 17 and draw.random() < 0.4:
        body = bodies.inner_scope(scope)
        element = scope.names.new("v")
        body.values[element] = scope[made][0]
        grow(body, draw.choice((1, 2)))
        new = [n for n in body.arrays("f") if any(n in x.output for x in body.nodes)]
        if not new:
            return False
        ends = [info(draw.choice(new), None, None)]
        ends[0].type.tensor_type.elem_type = kind_of(body.values[ends[0].name])
        inputs = [info(element, body.values[element], None)]
        graph = helper.make_graph(body.nodes, "map", inputs, ends, body.initialisers)
        made = scope.add("SequenceMap", [made], body=graph)
    if draw.random() < 0.5:
        return scope.add("SequenceAt", [made, scope.integers(0)])
    return scope.add("ConcatFromSequence", [made], axis=axis, new_axis=1 - keep)


@reads("f", 1, 4)
def empty(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A constant without elements behind a value, that others may read too."""
    shape = [*data.shape]
    axis = draw.randrange(len(shape))
    shape[axis] = 0
    nothing = scope.drawn(shape, data.dtype)
    inputs = [name, nothing] if draw.random() < 0.7 else [nothing, name]
    return scope.add("Concat", inputs, axis=axis)


def learned(scope: Scope) -> Found:
    """An op of ONNX's domain of machine learning."""
    name = scope.pick("f", 1, 4)
    kind = scope.draw.choice(("Binarizer", "Scaler", "Normalizer", "Imputer"))
    root = scope.root()
    if name is None:
        return False
    more: dict[str, Any] = {"Scaler": {"offset": [1.0], "scale": [2.0]}, "Binarizer": {}}
    more |= {"Normalizer": {"norm": "MAX"}, "Imputer": {"imputed_value_floats": [1.0]}}
    before = LEARNING in root.domains
    root.domains.add(LEARNING)
    found = scope.tried(kind, [name], domain=LEARNING, **more[kind])
    if found is None and not before and scope.draw.random() < 0.5:
        root.domains.discard(LEARNING)  # else it is imported only
    return found


@reads("f", 4, 4)
def located(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Ops that look at places of images: regions, grids, boxes, windows for unpooling."""
    kind = draw.choice(("RoiAlign", "MaxRoiPool", "GridSample", "Unpool", "NMS", "Deform"))
    boxes = np.array([[0, 0, 1, 1], [0, 0, 2, 1]], data.dtype)
    if kind == "RoiAlign" and scope.opset >= 10:
        inputs = [name, scope.constant(boxes), scope.integers([0, 0])]
        sizes: dict[str, Any] = {"output_height": 2, "output_width": draw.choice((1, 2))}
        sizes |= {"mode": draw.choice(("avg", "max"))} if draw.random() < 0.5 else {}
        if draw.random() < 0.4 and scope.opset >= 16:
            sizes["coordinate_transformation_mode"] = "output_half_pixel"
        return scope.add(kind, inputs, **sizes)
    if kind == "MaxRoiPool":
        rois = scope.constant(np.concatenate([np.zeros((2, 1), data.dtype), boxes], 1))
        return scope.add(kind, [name, rois], pooled_shape=[1, 2])
    if kind == "GridSample" and scope.opset >= 16:
        grid = scope.drawn((len(data), 2, 3, 2), data.dtype)
        how: dict[str, Any] = {"align_corners": draw.choice((0, 1))}
        if draw.random() < 0.5:
            how["padding_mode"] = draw.choice(("zeros", "border", "reflection"))
        return scope.add(kind, [name, grid], **how)
    if kind == "Unpool":
        more = {"kernel_shape": [1, 2], "strides": [1, 2]}
        pooled = scope.add_all("MaxPool", [name], 2, **more)
        return pooled and scope.add("MaxUnpool", pooled, **more)
    if kind == "NMS" and scope.opset >= 10:
        every = scope.constant(boxes.astype(np.float32)[None])
        scores = scope.constant(np.abs(scope.number((1, 2, 2))))
        return scope.add("NonMaxSuppression", [every, scores, scope.integers([2])])
    if kind == "Deform" and scope.opset >= 19:
        weights = scope.drawn((2, data.shape[1], 1, 1), data.dtype)
        offset = scope.drawn((len(data), 2, *data.shape[2:]), data.dtype)
        return scope.add("DeformConv", [name, weights, offset])
    return False


PIECES: dict[Piece, int] = {
    **EXPORTED,
    **FUSED,
    **RARE,
    any_op: 45,
    transpose: 34,
    around: 24,
    convolution: 5,
    product: 7,
    weight: 3,
    sliced: 6,
    shapes: 8,
    reshaped: 5,
    again: 3,
    quantised: 4,
    scaled: 2,
    summed: 2,
    microsoft: 3,
    recurrent: 2,
    resized: 3,
    narrow: 1,
    half: 3,
    sequence: 1,
    located: 2,
    empty: 1,
    learned: 1,
    bodies.if_node: 4,
    bodies.loop_node: 3,
    bodies.scan_node: 2,
    bodies.scan_of_many: 2,
    bodies.nested_ifs: 2,
    **TURNED,
    bodies.function: 3,
}
"""All kinds of pieces, and how often each is tried."""


def piece_of(scope: Scope, pieces: Mapping[Piece, int]) -> bool:
    """Add one of some pieces; return whether it was found to run."""
    piece = scope.draw.choices([*pieces], [*pieces.values()])[0]
    try:
        return bool(piece(scope))
    except (IndexError, ValueError, TypeError, KeyError):  # not for values of these shapes
        return False


def grow(scope: Scope, count: int) -> None:
    """Add pieces until so many have been found to run, or many more were tried."""
    for _ in range(5 * count):
        if count <= 0:
            return
        count -= piece_of(scope, PIECES)
