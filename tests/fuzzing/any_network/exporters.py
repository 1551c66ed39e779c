"""Pieces of networks as exporters of frameworks write them, and quantisers behind these."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.fuzzing.any_network.scope import Array, Scope, needed
from tests.fuzzing.any_network.steps import Found, Piece, reads, recurrent_weights


def _reshaped(scope: Scope, name: str, shape: list[int]) -> str | None:
    """Reshape, the shape written down, with a size left open, or computed from another shape."""
    draw = scope.draw
    if draw.random() < 0.3 and 0 not in shape:
        shape = [*shape]
        shape[draw.randrange(len(shape))] = -1
    elif draw.random() < 0.3 and shape:
        got = scope.add("Shape", [name])
        if shape[0] == scope[name].shape[0]:
            batch = scope.add("Gather", [got, scope.integers([0])], axis=0)
            whole = scope.add("Concat", [batch, scope.integers(shape[1:])], axis=0)
            return scope.tried("Reshape", [name, whole])
    return scope.tried("Reshape", [name, scope.integers(shape)])


@reads(None, 2, 4)
def rearranged(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Axes split, permuted and merged: windows, shuffles of channels and of pixels, patches."""
    split, groups = list[int](), list[int]()
    for size in data.shape:
        factors = [k for k in range(2, size) if size % k == 0]
        if factors and draw.random() < 0.6:
            k = draw.choice(factors)
            split += [k, size // k]
        else:
            split.append(size)
        if draw.random() < 0.1:
            split.append(1)
    if len(split) > 6:
        return False
    made = _reshaped(scope, name, split)
    order = draw.sample(range(len(split)), len(split))
    made = scope.transposed(needed(made), order)
    for n, axis in enumerate(order):
        if n and draw.random() < 0.5:
            groups[-1] *= split[axis]
        else:
            groups.append(split[axis])
    return _reshaped(scope, made, groups)


@reads("f", 3, 5)
def channels_last(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Convolutions and pools between transposes, as Keras networks have them."""
    rank = data.ndim
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    made = name
    if draw.random() < 0.3:
        pads = [0, *(draw.choice((0, 1)) for _ in range(rank - 2)), 0] * 2
        more: dict[str, Any] = {"pads": pads} if scope.opset < 11 else {}
        inputs = [name] if scope.opset < 11 else [name, scope.integers(pads)]
        made = scope.add("Pad", inputs, **more)
    made = scope.transposed(made, first)
    shape = scope[made].shape
    op = draw.choice(("Conv", "Conv", "depthwise", "MaxPool", "AveragePool", "GlobalAveragePool"))
    window = [draw.randint(1, min(2, max(size, 1))) for size in shape[2:]]
    if op in ("Conv", "depthwise"):
        group = max(shape[1], 1) if op == "depthwise" else 1
        filters = [group * draw.choice((1, 2)), shape[1] // group, *window]
        weights = scope.drawn(filters, data.dtype)
        if draw.random() < 0.3:  # as the training framework has it, transposed for ONNX
            order = [*range(2, rank), 1, 0]
            array = np.ascontiguousarray(scope[weights].transpose(order))
            held = scope.constant(array, plain=True)
            weights = scope.transposed(held, np.argsort(order))
        made = scope.add("Conv", [made, weights], group=group)
    elif op == "GlobalAveragePool":
        made = scope.add(op, [made])
    else:
        made = scope.add(op, [made], kernel_shape=window)
    if draw.random() < 0.4:
        channels = scope[made].shape[1]
        vectors = [scope.drawn([channels], data.dtype) for _ in range(3)]
        variance = np.abs(scope[vectors[0]]) + data.dtype.type(0.5)
        made = scope.add("BatchNormalization", [made, *vectors, scope.constant(variance)])
    made = scope.transposed(made, last)
    if draw.random() < 0.5:
        made = scope.add("Add", [made, scope.drawn(scope[made].shape[-1:], data.dtype)])
    return scope.add("Relu", [made])


@reads("f", 3, 3)
def one_dimension(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A convolution of one dimension as one of two, with an axis of size 1."""
    made = needed(_over_axis(scope, "Unsqueeze", name, draw.choice((1, 2, 3))))
    made = scope.transposed(made, [0, 3, 1, 2])
    weights = scope.drawn((2, scope[made].shape[1], 1, 1), data.dtype)
    made = scope.transposed(scope.add("Conv", [made, weights]), [0, 2, 3, 1])
    one = next((n for n, size in enumerate(scope[made].shape) if size == 1), None)
    return one is not None and _over_axis(scope, "Squeeze", made, one)


def _over_axis(
    scope: Scope, op: str, name: str, axis: int, since: int = 13, **more: Any
) -> str | None:
    """Add an op over an axis, which is an attribute, but an operand since some version."""
    if scope.opset < since:
        return scope.tried(op, [name], axes=[axis], **more)
    return scope.tried(op, [name, scope.integers([axis])], **more)


@reads("f", 3, 3, single=True)
def recurrent_batches(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A recurrent net that is given batches first, and gives both directions side by side."""
    made = scope.transposed(name, [1, 0, 2])
    kind, gates = draw.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    both, hidden = draw.choice((1, 2)), 2
    inputs = [made, *recurrent_weights(scope, data, (both, gates * hidden), hidden)]
    count = draw.choice((1, 2))
    direction = "forward" if both == 1 else "bidirectional"
    more = {"hidden_size": hidden, "direction": direction}
    names = scope.add_all(kind, inputs, count, **more)
    if not names:
        return False
    if both == 1 and draw.random() < 0.6:
        out = needed(_over_axis(scope, "Squeeze", names[0], 1))
    else:
        out = scope.transposed(names[0], [0, 2, 1, 3])
        batch, steps, _ = data.shape
        out = needed(_reshaped(scope, out, [steps, batch, both * hidden]))
    return scope.transposed(out, [1, 0, 2])


@reads("f", 3, 3)
def attention_of_ops(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Attention as products, scaled, masked and weighted, of heads that are split and merged."""
    batch, steps, features = data.shape
    heads = scope.divisor(features)
    sides = []
    orders = ([0, 2, 1, 3], draw.choice(([0, 2, 3, 1], [0, 2, 1, 3])), [0, 2, 1, 3])
    for order in orders:
        side: str | None = name
        if draw.random() < 0.5:
            side = scope.tried("MatMul", [name, scope.drawn([features] * 2, data.dtype)])
        side = side and _reshaped(scope, side, [batch, steps, heads, features // heads])
        sides.append(side and scope.transposed(side, order))
    q, k, v = sides
    if k and orders[1] == [0, 2, 1, 3]:
        k = scope.transposed(k, [0, 1, 3, 2])
    if not (q and k and v):
        return False
    scale = scope.constant(scope.number([], data.dtype) + 1)
    if draw.random() < 0.3:
        q = scope.tried("Mul", [q, scale]) or q
    made = scope.add("MatMul", [q, k])
    if draw.random() < 0.6:
        made = scope.tried(draw.choice(("Mul", "Div")), [made, scale]) or made
    if draw.random() < 0.4:
        shape = draw.choice(([batch, 1, steps, steps], [steps, steps], [batch, 1, 1, steps]))
        if draw.random() < 0.5 and scope.opset >= 9:
            made = scope.tried("Where", [scope.drawn(shape, "bool"), made, scale]) or made
        else:
            made = scope.tried("Add", [made, scope.drawn(shape, data.dtype)]) or made
    made = scope.add("Softmax", [made], axis=draw.choice((-1, 3)))
    made = scope.transposed(scope.add("MatMul", [made, v]), [0, 2, 1, 3])
    return _reshaped(scope, made, [batch, steps, features])


@reads("f", 3, 4, since=23)
def attention(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """ONNX's own Attention: of three axes or four, with masks, caches, and all its results."""
    if data.dtype not in ("float32", "float16"):
        return False
    more: dict[str, Any] = {}
    if data.ndim == 3:
        batch, steps, features = data.shape
        heads = scope.divisor(features)
        queries = heads
        more |= {"q_num_heads": heads, "kv_num_heads": heads}
        size, other = features // heads, draw.choice((steps, 3))
        key = [batch, other, features]
    else:
        batch, queries, steps, size = data.shape
        heads, other = scope.divisor(queries), draw.choice((steps, 3))
        key = [batch, heads, other, size]
    made = name
    if draw.random() < 0.5 and data.ndim == 4:  # heads come from behind the sequence, or go there
        made = scope.add("Relu", [scope.transposed(name, [0, 2, 1, 3])])
        made = scope.transposed(made, [0, 2, 1, 3])
    k, v = made, made
    if key != [*data.shape]:
        k, v = (scope.drawn(key, data.dtype) for _ in range(2))
    elif draw.random() < 0.4:
        k = scope.drawn(key, data.dtype)
    inputs, past = [made, k, v, "", "", ""], 0
    if draw.random() < 0.4:
        past = 2
        inputs[4:] = [scope.drawn((batch, heads, past, size), data.dtype) for _ in range(2)]
    if draw.random() < 0.4:
        lead = draw.choice(([], [batch, 1], [1, queries]))
        kind = draw.choice(("bool", data.dtype))
        mask = scope.number([*lead, steps, other + past], kind)
        inputs[3] = scope.constant(mask if kind != "bool" else mask | True)
    more |= {"is_causal": 1} if draw.random() < 0.3 else {}
    more |= {"scale": 0.5} if draw.random() < 0.3 else {}
    more |= {"softcap": 2.0} if draw.random() < 0.2 else {}
    outputs = [scope.names.new("t")]
    if draw.random() < 0.5 or past:
        outputs += [scope.names.new("t") for _ in range(2)]
        if draw.random() < 0.3:
            outputs.append(scope.names.new("t"))
            more["qk_matmul_output_mode"] = draw.choice((0, 1, 2, 3))
    if not scope.add_named("Attention", inputs, outputs, **more):
        return False
    if draw.random() < 0.5:
        last = draw.choice(outputs)
        scope.transposed(last, [0, 2, 1, 3] if scope[last].ndim == 4 else [1, 0, 2])
    return True


@reads("f", 3, 3, since=27, single=True)
def with_state(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Linear attention, a causal convolution, or a gate: ops that recurrent models decode by."""
    batch, steps, features = data.shape
    kind = draw.choice(("LinearAttention", "CausalConvWithState", "SwiGLU"))
    if kind == "SwiGLU":
        return scope.add(kind, [name, scope.twice_transposed(name, [0, 2, 1])])
    if kind == "CausalConvWithState":
        inputs = [name, scope.drawn((steps, 1, 3))]
        if draw.random() < 0.5:
            inputs += [scope.drawn([steps]), scope.drawn((batch, steps, 2))]
        return scope.add_many(kind, inputs, 2)
    heads = scope.divisor(features)
    k = scope.drawn(data.shape)
    rule = draw.choice(("linear", "delta"))
    inputs = [name, k, k, "", "", scope.drawn((batch, steps, heads))]
    if rule == "linear":
        del inputs[3:]
    more = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": rule}
    made = scope.add_many(kind, inputs, 2, **more)
    return made and scope.transposed(made[0], draw.sample(range(3), 3))


@reads("f", 3, 4, since=23)
def rotated(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A RotaryEmbedding, ONNX's or onnxruntime's, and updates of a cache of keys."""
    if draw.random() < 0.4 and scope.opset >= 24:
        axis = draw.choice((-2, 1, 2)[: data.ndim - 1])
        shape = [*data.shape]
        shape[axis] = 1
        inputs = [name, scope.drawn(shape, data.dtype)]
        inputs += [scope.integers([0] * len(data))] if draw.random() < 0.6 else []
        mode = draw.choice(("linear", "circular"))
        return scope.add("TensorScatter", inputs, axis=axis, mode=mode)
    if data.ndim == 3:
        batch, steps, size = data.shape
        even = [k for k in range(1, size + 1) if size % (2 * k) == 0]
        heads = draw.choice(even or [max(size, 1)])
        size //= heads
    else:
        batch, heads, steps, size = data.shape
    if size % 2:
        return False  # then onnxruntime leaves elements as they are in memory
    more: dict[str, Any] = {"interleaved": draw.choice((0, 1))}
    if data.ndim == 3 or draw.random() < 0.3:
        more["num_heads"] = heads
    chosen = draw.random() < 0.5  # rows of tables are chosen by indices
    shape = [5, size // 2] if chosen else [batch, steps, size // 2]
    inputs = [name, *(scope.drawn(shape, data.dtype) for _ in range(2))]
    if chosen:
        inputs.append(scope.integers(np.arange(batch * steps).reshape(batch, steps) % 5))
    if data.ndim == 4 and draw.random() < 0.4:
        inputs[0] = scope.twice_transposed(name, [0, 2, 1, 3])
    return scope.add("RotaryEmbedding", inputs, **more)


@reads("f", 2, 5)
def normalised(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A normalisation: by one op, with its further results, or as exporters decompose it."""
    rank = data.ndim
    kinds = ("layer", "layer", "rms", "group", "group of ops", "layer of ops", "norm of ops", "lp")
    kind = draw.choice((*kinds, "simplified"))
    if kind in ("layer", "rms", "simplified"):
        axis = draw.randrange(rank)
        shape = [1 if draw.random() < 0.1 else size for size in data.shape[axis:]]
        op = {"layer": "LayerNormalization", "rms": "RMSNormalization"}.get(kind, "")
        if scope.opset < {"layer": 17, "rms": 23}.get(kind, 7):
            return False
        inputs = [name, scope.drawn(shape, data.dtype)]
        if kind == "layer" and draw.random() < 0.6:
            inputs.append(scope.drawn(shape, data.dtype))
        outputs = [scope.names.new("t")]
        if kind == "layer" and draw.random() < 0.4:
            outputs.append(scope.names.new("t") if draw.random() < 0.6 else "")
            outputs.append(scope.names.new("t"))
        op = op or "SimplifiedLayerNormalization"
        axis = draw.choice((axis, axis - rank))
        return scope.add_named(op, inputs, outputs, axis=axis, epsilon=0.01)
    if kind == "lp":
        axis = draw.randrange(-rank, rank)
        return scope.add("LpNormalization", [name], axis=axis, p=draw.choice((1, 2)))
    if kind.startswith("group") and rank > 2 and data.size:
        channels = data.shape[1]
        groups = scope.divisor(channels)
        if kind == "group":
            if scope.opset < 18:
                return False
            count = groups if scope.opset < 21 else channels
            vectors = [scope.drawn([count], data.dtype) for _ in range(2)]
            return scope.add("GroupNormalization", [name, *vectors], num_groups=groups)
        made = _reshaped(scope, name, [data.shape[0], groups, data.size // len(data) // groups])
        vectors = [scope.drawn([groups], data.dtype) for _ in range(2)]
        found = made and scope.tried("InstanceNormalization", [made, *vectors])
        found = found and scope.add("Reshape", [found, scope.add("Shape", [name])])
        scale = scope.drawn([channels, *[1] * (rank - 2)], data.dtype)
        return found and scope.add("Mul", [found, scale])
    if kind == "layer of ops":
        axis = draw.choice((-1, 1))
        mean = _reduced(scope, "ReduceMean", name, axis)
        apart = mean and scope.tried("Sub", [name, mean])
        two = scope.typed(2, data.dtype)
        square = apart and scope.tried("Pow", [apart, two])
        spread = square and _reduced(scope, "ReduceMean", square, axis)
        small = scope.typed(0.25, data.dtype)
        spread = spread and scope.tried("Add", [spread, small])
        spread = spread and scope.tried("Sqrt", [spread])
        found = spread and scope.tried("Div", [str(apart), spread])
        ones = [1] * (rank - 2 if axis == 1 else 0)
        scale = scope.drawn([data.shape[axis], *ones], data.dtype)
        return found and scope.add("Mul", [found, scale])
    length = _reduced(scope, "ReduceL2", name, draw.choice((-1, 1)))
    small = scope.typed(0.25, data.dtype)
    length = scope.add("Max", [needed(length), small])
    if draw.random() < 0.5 and scope.opset >= 8:
        got = scope.add("Shape", [name])
        length = scope.tried("Expand", [length, got]) or length
    return scope.add("Div", [name, length])


def _reduced(scope: Scope, op: str, name: str, axis: int) -> str | None:
    if scope.opset < 11:
        axis %= scope[name].ndim
    return _over_axis(scope, op, name, axis, 18, keepdims=1)


Quantised = tuple[str, list[str], dict[str, Any]]
"""Integers, their scale and zero point, and the attributes that both ops have."""


def _quantise(scope: Scope, name: str, axis: int | None = None) -> Quantised:
    """Quantise a value, by one scale or by those of an axis."""
    draw = scope.draw
    value = scope[name]
    shape = [] if axis is None else [value.shape[axis]]
    parameters = scope.scale_and_zero(shape, ("uint8", "int8"))
    more = {} if axis is None else {"axis": draw.choice((axis, axis - value.ndim))}
    made = scope.add("QuantizeLinear", [name, *parameters], **more)
    return made, parameters, more


@reads("f", 2, 4, varying=True, since=13, single=True)
def around_quantised(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """An op between a DequantizeLinear and a QuantizeLinear, by scales of axes, and transposes."""
    rank = data.ndim
    q, parameters, more = _quantise(scope, name, draw.choice((None, draw.randrange(rank))))
    order = draw.sample(range(rank), rank)
    if draw.random() < 0.4 and not more:
        q = scope.transposed(q, order)
    x = scope.add("DequantizeLinear", [q, *parameters], **more)
    if draw.random() < 0.6:
        x = scope.transposed(x)
    shape = scope[x].shape
    ones = [1] * (rank - 2)

    def read(op: str, *others: str, **more: Any) -> str:
        return scope.add(op, [x, *others], **more)

    ops: tuple[Callable[[], str], ...] = (
        lambda: x,
        lambda: read("Relu"),
        lambda: read("Conv", *_held(scope, (2, shape[1], *ones), 0)),
        lambda: read("ConvTranspose", *_held(scope, (shape[1], 2, *ones), 1)),
        lambda: read("MatMul", *_held(scope, (shape[-1], 2), 1)),
        lambda: read("Gemm", *_held(scope, (2, shape[-1]), 0), transB=1),
        lambda: read("MaxPool", kernel_shape=ones),
        lambda: read("Concat", x, axis=draw.randrange(rank)),
        lambda: read("Softmax", axis=draw.randrange(-rank, rank)),
        lambda: needed(_reduced(scope, "ReduceMean", x, draw.randrange(rank))),
        lambda: needed(_reshaped(scope, x, [shape[0] * shape[1], *shape[2:]])),
        lambda: read("Add", *_held(scope, shape[1:], None)),
        lambda: read("Gather", scope.integers([0, -1]), axis=draw.randrange(rank)),
        lambda: read("Resize", "", scope.typed([1, 1, 2, 2][:rank], np.float32)),
        lambda: needed(_over_axis(scope, "Unsqueeze", x, draw.randint(0, rank))),
        lambda: read("GlobalAveragePool"),
    )
    y = draw.choice(ops)()
    if draw.random() < 0.5 and scope[y].ndim > 1:
        y = scope.transposed(y)
    axis = draw.choice((None, draw.randrange(scope[y].ndim)))
    q, parameters, more = _quantise(scope, y, axis)
    return scope.add("DequantizeLinear", [q, *parameters], **more)


def _held(scope: Scope, shape: tuple[int, ...], axis: int | None) -> list[str]:
    """Return a weight that is held as integers, with a scale for each entry of an axis or one."""
    integers = scope.drawn(shape, "int8")
    sizes = [] if axis is None else [shape[axis]]
    inputs = [integers, scope.scale(sizes)]
    if scope.draw.random() < 0.6:
        inputs.append(scope.constant(np.zeros(sizes, np.int8)))
    more = {} if axis is None else {"axis": axis}
    found = scope.tried("DequantizeLinear", inputs, **more)
    return [found] if found else []


@reads("f", 1, 5)
def activated(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Activations and gates as they are decomposed, which optimisers fuse."""
    kind = draw.choice(("gelu", "swish", "hardswish", "gate", "biased"))
    if kind == "gelu":
        made = scope.add("Erf", [scope.add("Div", [name, scope.typed(1.5, data.dtype)])])
        made = scope.add("Add", [made, scope.typed(1, data.dtype)])
        return scope.add("Mul", [scope.add("Mul", [name, made]), scope.typed(0.5, data.dtype)])
    if kind == "swish":
        return scope.add("Mul", [name, scope.add("Sigmoid", [name])])
    if kind == "hardswish":
        return scope.add("Mul", [name, scope.add("HardSigmoid", [name], alpha=0.25)])
    if kind == "biased":
        made = scope.add("MatMul", [name, scope.drawn((data.shape[-1], 3), data.dtype)])
        return scope.add("Relu", [scope.add("Add", [made, scope.drawn([3], data.dtype)])])
    mean = name
    for axis in range(2, data.ndim):
        mean = needed(_reduced(scope, "ReduceMean", mean, axis))
    return scope.add("Mul", [name, scope.add("Sigmoid", [mean])])


def embedded(scope: Scope) -> Found:
    """Rows of a table, whose axes are then brought into another order."""
    draw = scope.draw
    table = scope.drawn((5, draw.choice((2, 3))))
    shape = [draw.choice((1, 2, 3)) for _ in range(draw.choice((1, 2)))]
    places = scope.given(scope.indices(-5, 5, shape))
    made = scope.transposed(scope.add("Gather", [table, places]))
    if draw.random() < 0.5:
        made = scope.tried("MatMul", [made, table]) or made  # a tied table, if sizes allow
    return scope.add("Cast", [made], to=TensorProto.FLOAT)


EXPORTED: dict[Piece, int] = {
    rearranged: 5,
    channels_last: 4,
    one_dimension: 1,
    recurrent_batches: 1,
    attention_of_ops: 2,
    attention: 4,
    rotated: 3,
    with_state: 1,
    normalised: 5,
    around_quantised: 5,
    activated: 3,
    embedded: 1,
}
"""The pieces, and how often each is tried."""
