"""Pieces of networks as exporters of frameworks write them, and quantisers behind these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.fuzzing.any_network.scope import Array, Scope
from tests.fuzzing.any_network.steps import Found, Piece, add, add_many, reads


def _turned(scope: Scope, name: str, order: list[int]) -> str | None:
    return add(scope, "Transpose", [name], perm=order)


def _reshaped(scope: Scope, name: str, shape: list[int]) -> str | None:
    """Reshape, the shape written down, with a size left open, or computed from another shape."""
    draw = scope.draw
    if draw.random() < 0.3 and 0 not in shape:
        shape = [*shape]
        shape[draw.randrange(len(shape))] = -1
    elif draw.random() < 0.3 and shape:
        got = add(scope, "Shape", [name])
        own = scope[name].shape
        if got is not None and shape[0] == own[0]:
            first = scope.integers([0])
            batch = add(scope, "Gather", [got, first], axis=0)
            rest = scope.integers(shape[1:])
            whole = None if batch is None else add(scope, "Concat", [batch, rest], axis=0)
            if whole is not None:
                return add(scope, "Reshape", [name, whole])
    return add(scope, "Reshape", [name, scope.integers(shape)])


def _weight(scope: Scope, *shape: int, like: str) -> str:
    return scope.drawn(shape, str(scope[like].dtype))


@reads(None, 2, 4)
def rearranged(scope: Scope, name: str, data: Array) -> Found:
    """Axes split, permuted and merged: windows, shuffles of channels and of pixels, patches."""
    draw = scope.draw
    shape, split, groups = data.shape, list[int](), list[int]()
    for size in shape:
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
    made = made and _turned(scope, made, order)
    if made is None:
        return False
    for n, axis in enumerate(order):
        if n and draw.random() < 0.5:
            groups[-1] *= split[axis]
        else:
            groups.append(split[axis])
    return _reshaped(scope, made, groups)


@reads("f", 3, 5)
def channels_last(scope: Scope, name: str, data: Array) -> Found:
    """Convolutions and pools between transposes, as Keras networks have them."""
    draw = scope.draw
    rank = data.ndim
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    made: str | None = name
    if draw.random() < 0.3:
        pads = [0, *(draw.choice((0, 1)) for _ in range(rank - 2)), 0] * 2
        more: dict[str, Any] = {"pads": pads} if scope.opset < 11 else {}
        reads = [name] if scope.opset < 11 else [name, scope.integers(pads)]
        made = add(scope, "Pad", reads, **more)
    made = made and _turned(scope, made, first)
    if made is None:
        return False
    shape = scope[made].shape
    op = draw.choice(("Conv", "Conv", "depthwise", "MaxPool", "AveragePool", "GlobalAveragePool"))
    window = [draw.randint(1, min(2, max(size, 1))) for size in shape[2:]]
    if op in ("Conv", "depthwise"):
        group = max(shape[1], 1) if op == "depthwise" else 1
        weights = _weight(scope, group * draw.choice((1, 2)), shape[1] // group, *window, like=made)
        if draw.random() < 0.3:  # as the training framework has it, transposed for ONNX
            array = scope[weights]
            order = [*range(2, rank), 1, 0]
            held = scope.constant(np.ascontiguousarray(array.transpose(order)), plain=True)
            weights = _turned(scope, held, np.argsort(order).tolist()) or weights
        made = add(scope, "Conv", [made, weights], group=group)
    elif op == "GlobalAveragePool":
        made = add(scope, op, [made])
    else:
        made = add(scope, op, [made], kernel_shape=window)
    if made is not None and draw.random() < 0.4:
        channels = scope[made].shape[1]
        vectors = [_weight(scope, channels, like=made) for _ in range(3)]
        variance = np.abs(scope[vectors[0]]) + scope[made].dtype.type(0.5)
        made = add(scope, "BatchNormalization", [made, *vectors, scope.constant(variance)])
    made = made and _turned(scope, made, last)
    if made is not None and draw.random() < 0.5:
        bias = _weight(scope, scope[made].shape[-1], like=made)
        made = add(scope, "Add", [made, bias])
    return made and add(scope, "Relu", [made])


@reads("f", 3, 3)
def one_dimension(scope: Scope, name: str, data: Array) -> Found:
    """A convolution of one dimension as one of two, with an axis of size 1."""
    axis = scope.draw.choice((1, 2, 3))
    made = _unsqueezed(scope, name, axis)
    made = made and _turned(scope, made, [0, 3, 1, 2])
    if made is None:
        return False
    weights = _weight(scope, 2, scope[made].shape[1], 1, 1, like=made)
    made = add(scope, "Conv", [made, weights])
    made = made and _turned(scope, made, [0, 2, 3, 1])
    if made is None:
        return False
    one = next((n for n, size in enumerate(scope[made].shape) if size == 1), None)
    return one is not None and _squeezed(scope, made, one)


def _unsqueezed(scope: Scope, name: str, axis: int) -> str | None:
    if scope.opset < 13:
        return add(scope, "Unsqueeze", [name], axes=[axis])
    return add(scope, "Unsqueeze", [name, scope.integers([axis])])


def _squeezed(scope: Scope, name: str, axis: int) -> str | None:
    if scope.opset < 13:
        return add(scope, "Squeeze", [name], axes=[axis])
    return add(scope, "Squeeze", [name, scope.integers([axis])])


@reads("f", 3, 3, single=True)
def recurrent_batches(scope: Scope, name: str, data: Array) -> Found:
    """A recurrent net that is given batches first, and gives both directions side by side."""
    draw = scope.draw
    made = _turned(scope, name, [1, 0, 2])
    if made is None:
        return False
    kind, gates = draw.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    both, hidden = draw.choice((1, 2)), 2
    inputs = [made, *(_weight(scope, both, gates * hidden, n, like=made)
                      for n in (scope[made].shape[2], hidden))]  # fmt: skip
    names = [scope.names.new("t") for _ in range(draw.choice((1, 2)))]
    direction = "forward" if both == 1 else "bidirectional"
    node = helper.make_node(kind, inputs, names, hidden_size=hidden, direction=direction)
    if not scope.add(node):
        return False
    if both == 1 and draw.random() < 0.6:
        out = _squeezed(scope, names[0], 1)
    else:
        out = _turned(scope, names[0], [0, 2, 1, 3])
        steps, batch = scope[names[0]].shape[0], scope[names[0]].shape[2]
        out = out and _reshaped(scope, out, [steps, batch, both * hidden])
    return out and _turned(scope, out, [1, 0, 2])


@reads("f", 3, 3)
def attention_of_ops(scope: Scope, name: str, data: Array) -> Found:
    """Attention as products, scaled, masked and weighted, of heads that are split and merged."""
    draw = scope.draw
    batch, steps, features = data.shape
    heads = draw.choice([k for k in range(1, features + 1) if features % k == 0] or [1])
    sides = []
    orders = ([0, 2, 1, 3], draw.choice(([0, 2, 3, 1], [0, 2, 1, 3])), [0, 2, 1, 3])
    for order in orders:
        side: str | None = name
        if draw.random() < 0.5:
            side = add(scope, "MatMul", [name, _weight(scope, features, features, like=name)])
        side = side and _reshaped(scope, side, [batch, steps, heads, features // heads])
        sides.append(side and _turned(scope, side, order))
    q, k, v = sides
    if k is not None and orders[1] == [0, 2, 1, 3]:
        k = _turned(scope, k, [0, 1, 3, 2])
    if q is None or k is None or v is None:
        return False
    scale = scope.constant(scope.number([], data.dtype) + 1)
    if draw.random() < 0.3:
        q = add(scope, "Mul", [q, scale]) or q
    made = add(scope, "MatMul", [q, k])
    if made is not None and draw.random() < 0.6:
        made = add(scope, draw.choice(("Mul", "Div")), [made, scale]) or made
    if made is not None and draw.random() < 0.4:
        shape = draw.choice(([batch, 1, steps, steps], [steps, steps], [batch, 1, 1, steps]))
        if draw.random() < 0.5 and scope.opset >= 9:
            mask = scope.drawn(shape, "bool")
            made = add(scope, "Where", [mask, made, scale]) or made
        else:
            made = add(scope, "Add", [made, _weight(scope, *shape, like=name)]) or made
    made = made and add(scope, "Softmax", [made], axis=draw.choice((-1, 3)))
    made = made and add(scope, "MatMul", [made, v])
    made = made and _turned(scope, made, [0, 2, 1, 3])
    return made and _reshaped(scope, made, [batch, steps, features])


@reads("f", 3, 4, since=23)
def attention(scope: Scope, name: str, data: Array) -> Found:
    """ONNX's own Attention: of three axes or four, with masks, caches, and all its results."""
    draw = scope.draw
    if data.dtype not in ("float32", "float16"):
        return False
    more: dict[str, Any] = {}
    if data.ndim == 3:
        batch, steps, features = data.shape
        heads = draw.choice([k for k in range(1, features + 1) if features % k == 0] or [1])
        more |= {"q_num_heads": heads, "kv_num_heads": heads}
        size, other = features // heads, draw.choice((steps, 3))
        key = [batch, other, features]
    else:
        batch, heads, steps, size = data.shape
        groups = draw.choice([k for k in range(1, heads + 1) if heads % k == 0] or [1])
        other = draw.choice((steps, 3))
        key = [batch, groups, other, size]
        heads = groups
    made: str | None = name
    if draw.random() < 0.5:  # heads come from behind the sequence, or go there
        order = [0, 2, 1, 3] if data.ndim == 4 else [0, 1, 2]
        if data.ndim == 4:
            held = _turned(scope, name, order)
            made = held and add(scope, "Relu", [held])
            made = made and _turned(scope, made, order)
    if made is None:
        return False
    k, v = made, made
    if key != [*data.shape]:
        k, v = (scope.drawn(key, data.dtype) for _ in range(2))
    elif draw.random() < 0.4:
        k = scope.drawn(key, data.dtype)
    inputs, past = [made, k, v, "", "", ""], 0
    if draw.random() < 0.4:
        past = 2
        cache = [batch, heads, past, size]
        inputs[4:] = [scope.drawn(cache, data.dtype) for _ in range(2)]
    if draw.random() < 0.4:
        queries = heads if data.ndim == 3 else data.shape[1]
        lead = draw.choice(([], [batch, 1], [1, queries]))
        kind = draw.choice(("bool", data.dtype))
        mask = scope.number([*lead, steps, other + past], kind)
        inputs[3] = scope.constant(mask if kind != "bool" else mask | True)
    if draw.random() < 0.3:
        more["is_causal"] = 1
    if draw.random() < 0.3:
        more["scale"] = 0.5
    if draw.random() < 0.2:
        more["softcap"] = 2.0
    while not inputs[-1]:
        inputs.pop()
    outputs = [scope.names.new("t")]
    if draw.random() < 0.5 or past:
        outputs += [scope.names.new("t") for _ in range(2)]
        if draw.random() < 0.3:
            outputs.append(scope.names.new("t"))
            more["qk_matmul_output_mode"] = draw.choice((0, 1, 2, 3))
    if not scope.add(helper.make_node("Attention", inputs, outputs, **more)):
        return False
    if draw.random() < 0.5:
        last = draw.choice(outputs)
        rank = scope[last].ndim
        _turned(scope, last, [0, 2, 1, 3] if rank == 4 else [1, 0, 2])
    return True


@reads("f", 3, 3, since=27, single=True)
def with_state(scope: Scope, name: str, data: Array) -> Found:
    """Linear attention, a causal convolution, or a gate: ops that recurrent models decode by."""
    draw = scope.draw
    batch, steps, features = data.shape
    kind = draw.choice(("LinearAttention", "CausalConvWithState", "SwiGLU"))
    if kind == "SwiGLU":
        turned = _turned(scope, name, [0, 2, 1])
        again = turned and _turned(scope, turned, [0, 2, 1])
        return again and add(scope, kind, [name, again])
    if kind == "CausalConvWithState":
        inputs = [name, _weight(scope, steps, 1, 3, like=name)]
        if draw.random() < 0.5:
            inputs += [_weight(scope, steps, like=name), _weight(scope, batch, steps, 2, like=name)]
        return add_many(scope, kind, inputs, 2)
    heads = draw.choice([k for k in range(1, features + 1) if features % k == 0] or [1])
    k = _weight(scope, batch, steps, features, like=name)
    rule = draw.choice(("linear", "delta"))
    inputs = [name, k, k, "", "", _weight(scope, batch, steps, heads, like=name)]
    if rule == "linear":
        del inputs[3:]
    more = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": rule}
    made = add_many(scope, kind, inputs, 2, **more)
    return made and _turned(scope, made[0], draw.sample(range(3), 3))


@reads("f", 3, 4, since=23)
def rotated(scope: Scope, name: str, data: Array) -> Found:
    """A RotaryEmbedding, ONNX's or onnxruntime's, and updates of a cache of keys."""
    draw = scope.draw
    if draw.random() < 0.4 and scope.opset >= 24:
        axis = draw.choice((-2, 1, 2)[: data.ndim - 1])
        shape = [*data.shape]
        shape[axis] = 1
        update = scope.drawn(shape, data.dtype)
        inputs = [name, update]
        if draw.random() < 0.6:
            inputs.append(scope.integers([0] * len(data)))
        mode = draw.choice(("linear", "circular"))
        return add(scope, "TensorScatter", inputs, axis=axis, mode=mode)
    heads = 1
    if data.ndim == 3:
        batch, steps, size = data.shape
        even = [k for k in range(1, size + 1) if size % (2 * k) == 0]
        heads = draw.choice(even or [max(size, 1)])
        size //= heads
    else:
        batch, _, steps, size = data.shape
    if size % 2:
        return False  # then onnxruntime leaves elements as they are in memory
    more: dict[str, Any] = {"interleaved": draw.choice((0, 1))}
    if data.ndim == 3 or draw.random() < 0.3:
        more["num_heads"] = heads if data.ndim == 3 else data.shape[1]
    if draw.random() < 0.5:
        tables = [scope.drawn((5, size // 2), data.dtype) for _ in range(2)]
        places = np.arange(batch * steps).reshape(batch, steps) % 5
        inputs = [name, *tables, scope.constant(places)]
    else:
        inputs = [name]
        inputs += [scope.drawn((batch, steps, size // 2), data.dtype) for _ in range(2)]
    made = name
    if data.ndim == 4 and draw.random() < 0.4:
        made = _turned(scope, name, [0, 2, 1, 3]) or name
        inputs[0] = _turned(scope, made, [0, 2, 1, 3]) or name
    return add(scope, "RotaryEmbedding", inputs, **more)


@reads("f", 2, 5)
def normalised(scope: Scope, name: str, data: Array) -> Found:
    """A normalisation: by one op, with its further results, or as exporters decompose it."""
    draw = scope.draw
    rank = data.ndim
    kinds = ("layer", "layer", "rms", "group", "group of ops", "layer of ops", "norm of ops", "lp")
    kind = draw.choice((*kinds, "simplified"))
    if kind in ("layer", "rms", "simplified"):
        axis = draw.randrange(rank)
        tail = data.shape[axis:]
        shape = [1 if draw.random() < 0.1 else size for size in tail]
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
        return scope.add(helper.make_node(op, inputs, outputs, axis=axis, epsilon=0.01))
    if kind == "lp":
        axis = draw.randrange(-rank, rank)
        return add(scope, "LpNormalization", [name], axis=axis, p=draw.choice((1, 2)))
    if kind.startswith("group") and rank > 2 and data.size:
        channels = data.shape[1]
        groups = draw.choice([k for k in range(1, channels + 1) if channels % k == 0] or [1])
        if kind == "group":
            if scope.opset < 18:
                return False
            count = groups if scope.opset < 21 else channels
            vectors = [scope.drawn([count], data.dtype) for _ in range(2)]
            return add(scope, "GroupNormalization", [name, *vectors], num_groups=groups)
        made = _reshaped(scope, name, [data.shape[0], groups, data.size // len(data) // groups])
        vectors = [scope.drawn([groups], data.dtype) for _ in range(2)]
        made = made and add(scope, "InstanceNormalization", [made, *vectors])
        got = made and add(scope, "Shape", [name])
        made = got and add(scope, "Reshape", [str(made), got])
        scale = scope.drawn([channels, *[1] * (rank - 2)], data.dtype)
        return made and add(scope, "Mul", [made, scale])
    if kind == "layer of ops":
        axis = draw.choice((-1, 1))
        mean = _reduced(scope, "ReduceMean", name, axis)
        apart = mean and add(scope, "Sub", [name, mean])
        two = scope.constant(np.array(2, data.dtype))
        square = apart and add(scope, "Pow", [apart, two])
        spread = square and _reduced(scope, "ReduceMean", square, axis)
        small = scope.constant(np.array(0.25, data.dtype))
        spread = spread and add(scope, "Add", [spread, small])
        spread = spread and add(scope, "Sqrt", [spread])
        made = spread and add(scope, "Div", [str(apart), spread])
        tail = [data.shape[axis], *[1] * (rank - 2 if axis == 1 else 0)]
        scale = scope.drawn(tail, data.dtype)
        return made and add(scope, "Mul", [made, scale])
    length = _reduced(scope, "ReduceL2", name, draw.choice((-1, 1)))
    small = scope.constant(np.array(0.25, data.dtype))
    length = length and add(scope, "Max", [length, small])
    if length is None:
        return False
    if draw.random() < 0.5 and scope.opset >= 8:
        got = add(scope, "Shape", [name])
        length = (got and add(scope, "Expand", [length, got])) or length
    return add(scope, "Div", [name, length])


def _reduced(scope: Scope, op: str, name: str, axis: int) -> str | None:
    since = 13 if op == "ReduceSum" else 18
    if scope.opset < 11:
        axis %= scope[name].ndim
    if scope.opset < since:
        return add(scope, op, [name], axes=[axis], keepdims=1)
    return add(scope, op, [name, scope.integers([axis])], keepdims=1)


Quantised = tuple[str, list[str], dict[str, Any]]
"""Integers, their scale and zero point, and the attributes that both ops have."""


def _quantise(scope: Scope, name: str, axis: int | None = None) -> Quantised | None:
    """Quantise a value, by one scale or by those of an axis."""
    draw = scope.draw
    value = scope[name]
    shape = [] if axis is None else [value.shape[axis]]
    scale = scope.constant(np.abs(scope.number(shape)) + np.float32(0.25))
    zero = scope.constant(np.abs(scope.number(shape, draw.choice(("uint8", "int8")))))
    given = draw.choice((axis, axis - value.ndim)) if axis is not None else None
    more = {} if given is None else {"axis": given}
    made = add(scope, "QuantizeLinear", [name, scale, zero], **more)
    return None if made is None else (made, [scale, zero], more)


@reads("f", 2, 4, varying=True, since=13, single=True)
def around_quantised(scope: Scope, name: str, data: Array) -> Found:
    """An op between a DequantizeLinear and a QuantizeLinear, by scales of axes, and transposes."""
    draw = scope.draw
    rank = data.ndim
    got = _quantise(scope, name, draw.choice((None, draw.randrange(rank))))
    if got is None:
        return False
    q, parameters, more = got
    order = draw.sample(range(rank), rank)
    if draw.random() < 0.4 and not more:
        q = _turned(scope, q, order) or q
    x = add(scope, "DequantizeLinear", [q, *parameters], **more)
    if x is None:
        return False
    if draw.random() < 0.6:
        x = _turned(scope, x, draw.sample(range(rank), rank)) or x
    shape = scope[x].shape
    ops: dict[str, Callable[[], str | None]] = {
        "none": lambda: x,
        "Relu": lambda: add(scope, "Relu", [x]),
        "Conv": lambda: add(scope, "Conv", [x, *_held(scope, (2, shape[1], *[1] * (rank - 2)), 0)]),
        "ConvTranspose": lambda: add(
            scope, "ConvTranspose", [x, *_held(scope, (shape[1], 2, *[1] * (rank - 2)), 1)]
        ),
        "MatMul": lambda: add(scope, "MatMul", [x, *_held(scope, (shape[-1], 2), 1)]),
        "Gemm": lambda: add(scope, "Gemm", [x, *_held(scope, (2, shape[-1]), 0)], transB=1),
        "MaxPool": lambda: add(scope, "MaxPool", [x], kernel_shape=[1] * (rank - 2)),
        "Concat": lambda: add(scope, "Concat", [x, x], axis=draw.randrange(rank)),
        "Softmax": lambda: add(scope, "Softmax", [x], axis=draw.randrange(-rank, rank)),
        "ReduceMean": lambda: _reduced(scope, "ReduceMean", x, draw.randrange(rank)),
        "Reshape": lambda: _reshaped(scope, x, [shape[0] * shape[1], *shape[2:]]),
        "Add": lambda: add(scope, "Add", [x, *_held(scope, shape[1:], None)]),
        "Gather": lambda: add(
            scope, "Gather", [x, scope.integers([0, -1])], axis=draw.randrange(rank)
        ),
        "Resize": lambda: add(
            scope, "Resize", [x, "", scope.constant(np.array([1, 1, 2, 2][:rank], np.float32))]
        ),
        "Unsqueeze": lambda: _unsqueezed(scope, x, draw.randint(0, rank)),
        "GlobalAveragePool": lambda: add(scope, "GlobalAveragePool", [x]),
    }
    y = ops[draw.choice(list(ops))]()
    if y is None:
        return False
    wide = scope[y].ndim
    if draw.random() < 0.5 and wide > 1:
        y = _turned(scope, y, draw.sample(range(wide), wide)) or y
    got = _quantise(scope, y, draw.choice((None, draw.randrange(wide))))
    if got is None:
        return False
    q, parameters, more = got
    return add(scope, "DequantizeLinear", [q, *parameters], **more)


def _held(scope: Scope, shape: tuple[int, ...], axis: int | None) -> list[str]:
    """Return a weight that is held as integers, with a scale for each entry of an axis or one."""
    integers = scope.drawn(shape, "int8")
    sizes = [] if axis is None else [shape[axis]]
    scale = scope.constant(np.abs(scope.number(sizes)) + np.float32(0.25))
    inputs = [integers, scale]
    if scope.draw.random() < 0.6:
        inputs.append(scope.constant(np.zeros(sizes, np.int8)))
    more = {} if axis is None else {"axis": axis}
    found = add(scope, "DequantizeLinear", inputs, **more)
    return [] if found is None else [found]


@reads("f", 1, 5)
def activated(scope: Scope, name: str, data: Array) -> Found:
    """Activations and gates as they are decomposed, which optimisers fuse."""
    draw = scope.draw

    def number(value: float) -> str:
        return scope.constant(np.array(value, data.dtype))

    kind = draw.choice(("gelu", "swish", "hardswish", "gate", "biased"))
    if kind == "gelu":
        made = add(scope, "Div", [name, number(1.5)])
        made = made and add(scope, "Erf", [made])
        made = made and add(scope, "Add", [made, number(1)])
        made = made and add(scope, "Mul", [name, made])
        return made and add(scope, "Mul", [made, number(0.5)])
    if kind == "swish":
        made = add(scope, "Sigmoid", [name])
        return made and add(scope, "Mul", [name, made])
    if kind == "hardswish":
        made = add(scope, "HardSigmoid", [name], alpha=0.25)
        return made and add(scope, "Mul", [name, made])
    size = data.shape[-1]
    if kind == "biased":
        made = add(scope, "MatMul", [name, _weight(scope, size, 3, like=name)])
        made = made and add(scope, "Add", [made, _weight(scope, 3, like=name)])
        return made and add(scope, "Relu", [made])
    axes = [n for n in range(data.ndim) if n > 1]
    mean: str | None = name
    for axis in axes:
        mean = mean and _reduced(scope, "ReduceMean", mean, axis)
    made = mean and add(scope, "Sigmoid", [mean])
    return made and add(scope, "Mul", [name, made])


def embedded(scope: Scope) -> bool:
    """Rows of a table, whose axes are then brought into another order."""
    draw = scope.draw
    table = scope.drawn((5, draw.choice((2, 3))))
    shape = [draw.choice((1, 2, 3)) for _ in range(draw.choice((1, 2)))]
    places = np.random.default_rng(draw.randrange(99)).integers(-5, 5, shape)
    ids = scope.given(places)
    made = add(scope, "Gather", [table, ids])
    if made is None:
        return False
    rank = scope[made].ndim
    made = _turned(scope, made, draw.sample(range(rank), rank))
    if made is not None and draw.random() < 0.5:
        again = add(scope, "MatMul", [made, table])  # a tied table, if sizes allow
        made = again or made
    return made and add(scope, "Cast", [made], to=TensorProto.FLOAT)


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
