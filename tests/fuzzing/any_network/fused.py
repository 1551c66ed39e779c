"""Ops of onnxruntime's own domain as its optimiser writes them, and networks as it leaves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from layoutopt.onnx.runtime import RunError, Session
from tests.fuzzing.any_network.scope import SECONDS, Scope, add, add_many

MICROSOFT = "com.microsoft"


def optimised(model: ModelProto, level: str) -> ModelProto | None:
    """Return a network as onnxruntime's optimiser writes it, None if it is refused."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "optimised.onnx"
        options = {"graph_optimization_level": level, "optimized_model_filepath": str(path)}
        try:
            with Session(model.SerializeToString(), options, SECONDS):
                return onnx.load(path)
        except (RunError, OSError):
            return None


def _one(scope: Scope, op: str, inputs: list[str], count: int = 1, **more: Any) -> bool:
    """Add a node of onnxruntime's domain, which is imported if it runs."""
    root = scope.root()
    before = MICROSOFT in root.domains
    root.domains.add(MICROSOFT)
    if count > 1:
        found = bool(add_many(scope, op, inputs, count, domain=MICROSOFT, **more))
    else:
        found = add(scope, op, inputs, domain=MICROSOFT, **more) is not None
    if not found and not before:
        root.domains.discard(MICROSOFT)
    return found


def fused_product(scope: Scope) -> bool:
    """A product with transposed operands, or with what follows it."""
    draw = scope.draw
    name = scope.pick("f", 2, 4)
    if name is None:
        return False
    data = scope[name]
    word = str(data.dtype)
    if data.ndim == 2 and draw.random() < 0.3:
        flags = {"transA": draw.choice((0, 1)), "transB": draw.choice((0, 1))}
        rows = data.shape[flags["transA"] - 1]
        w = scope.drawn((3, rows) if flags["transB"] else (rows, 3), word)
        inputs = [
            name,
            w,
            *([scope.drawn([3], word)] if draw.random() < 0.5 else []),
        ]
        return _one(scope, "FusedGemm", inputs, activation="Relu", **flags)
    flags = {word: draw.choice((0, 1)) for word in ("transA", "transB")}
    if data.ndim > 2:
        flags |= {word: draw.choice((0, 0, 1)) for word in ("transBatchA", "transBatchB")}
    shape = [*data.shape]
    if flags.get("transBatchA"):  # the axis before the last is where the first one was
        shape = [*shape[1:-1], shape[0], shape[-1]]
    if flags["transA"]:
        shape[-2:] = shape[:-3:-1]
    other = [*shape[:-2], shape[-1], draw.choice((1, 2, 3))]
    if flags["transB"]:
        other[-2:] = other[:-3:-1]
    if flags.get("transBatchB"):
        other = [other[-2], *other[:-2], other[-1]]
    if draw.random() < 0.2:
        other = other[-2:]
        flags["transBatchB"] = 0
    inputs = [name, scope.drawn(other, word)]
    return _one(scope, "FusedMatMul", inputs, alpha=draw.choice((1.0, 0.5)), **flags)


def fused_convolution(scope: Scope) -> bool:
    """A convolution with what is added behind it and its activation."""
    draw = scope.draw
    name = scope.pick("f", 3, 4)
    if name is None or scope[name].dtype != np.float32:
        return False
    data = scope[name]
    channels, ones = data.shape[1], [1] * (data.ndim - 2)
    w = scope.drawn((channels, channels, *ones))
    inputs = [name, w, scope.drawn([channels])]
    if draw.random() < 0.5:
        inputs.append(scope.drawn(data.shape))
    activation, given = draw.choice((("Relu", []), ("LeakyRelu", [0.5]), ("Clip", [0.0, 2.0])))
    more = {"activation_params": given} if given else {}
    return _one(scope, "FusedConv", inputs, activation=activation, **more)


def skipped(scope: Scope) -> bool:
    """A normalisation of the last axis of a sum, with its further results."""
    draw = scope.draw
    name = scope.pick("f", 2, 3)
    if name is None:
        return False
    data = scope[name]
    word, size = str(data.dtype), data.shape[-1]
    vectors = [scope.drawn([size], word) for _ in range(3)]
    other = name if draw.random() < 0.5 else scope.drawn(data.shape, word)
    if draw.random() < 0.3:
        order = draw.sample(range(data.ndim), data.ndim)
        held = scope.constant(np.ascontiguousarray(data.transpose(np.argsort(order))))
        other = add(scope, "Transpose", [held], perm=order) or other
    simple = draw.random() < 0.5
    op = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    inputs = [name, other, *vectors[: draw.randint(1, 2 if simple else 3)]]
    return _one(scope, op, inputs, draw.choice((1, 4)), epsilon=0.01)


def quantised_product(scope: Scope) -> bool:
    """A product of integers that are made of numbers, or that numbers are made of."""
    draw = scope.draw
    name = scope.pick("f", 2, 4)
    if name is None or scope[name].dtype != np.float32 or scope.opset < 11:
        return False
    inner = scope[name].shape[-1]
    columns = draw.choice((1, 2, 3))
    w = scope.drawn((inner, columns), draw.choice(("int8", "uint8")))
    sizes = draw.choice(([], [columns]))
    scale = scope.constant(np.abs(scope.number(sizes)) + np.float32(0.25))
    zero = scope.constant(np.zeros(sizes, scope[w].dtype))
    bias = scope.drawn([columns])
    if scope[name].size and draw.random() < 0.5:  # a sum of nothing is left unwritten
        inputs = [name, w, scale, draw.choice((zero, ""))]
        inputs += [bias] if draw.random() < 0.5 else []
        return _one(scope, "DynamicQuantizeMatMul", inputs)
    made = add_many(scope, "DynamicQuantizeLinear", [name], 3)
    if len(made) < 3:
        return False
    q, q_scale, q_zero = made
    if draw.random() < 0.5:
        inputs = [q, w, q_scale, scale, q_zero, zero]
        inputs += [bias] if draw.random() < 0.5 else []
        return _one(scope, "MatMulIntegerToFloat", inputs)
    got = add(scope, "MatMulInteger", [q, w, q_zero])
    return got is not None and add(scope, "Cast", [got], to=1) is not None


def heads(scope: Scope) -> bool:
    """Attention of whole heads, with its caches."""
    draw = scope.draw
    name = scope.pick("f", 3, 3)
    if name is None or scope[name].dtype != np.float32:
        return False
    batch, steps, features = scope[name].shape
    count = draw.choice([k for k in range(1, features + 1) if features % k == 0] or [1])
    if draw.random() < 0.3:
        w = scope.drawn((features, 3 * features))
        bias = scope.drawn([3 * features])
        return _one(scope, "Attention", [name, w, bias], draw.choice((1, 2)), num_heads=count)
    k = name if draw.random() < 0.5 else scope.drawn((batch, steps, features))
    turned = add(scope, "Transpose", [name], perm=[1, 0, 2])
    again = turned and add(scope, "Transpose", [turned], perm=[1, 0, 2])
    inputs = [again or name, k, k]
    if draw.random() < 0.3:
        bias = scope.drawn([3 * features])
        inputs.append(bias)
    return _one(scope, "MultiHeadAttention", inputs, draw.choice((1, 3)), num_heads=count)


def others(scope: Scope) -> bool:
    """Further ops of its domain, of which most have rules of their own nowhere."""
    draw = scope.draw
    name = scope.pick("f", 1, 4)
    if name is None:
        return False
    data = scope[name]
    word, rank = str(data.dtype), data.ndim
    last = data.shape[-1:]
    tests: dict[str, Callable[[], tuple[list[str], dict[str, Any]]]] = {
        "Unique": lambda: ([name], {}),
        "QuickGelu": lambda: ([name], {"alpha": 0.5}),
        "FastGelu": lambda: ([name, scope.drawn(last, word)], {}),
        "GatherND": lambda: ([name, scope.integers([[0], [0]])], {}),
        "Trilu": lambda: ([name, scope.integers(1)], {"upper": 1}),
        "CropAndResize": lambda: (
            [name, *(scope.constant(x) for x in (
                np.array([[0, 0, 1, 1]], word), np.zeros(1, np.int32), np.array([2, 2], np.int32)
            ))],
            {},
        ),
        "UnfoldTensor": lambda: ([name], {"dim": rank - 1, "size": 1, "step": 1}),
        "ConvTransposeWithDynamicPads": lambda: (
            [name, scope.drawn((data.shape[1], 2, 1, 1), word),
             scope.integers([0, 0, 0, 0])],
            {},
        ),
        "CDist": lambda: ([name, name], {"metric": "euclidean"}),
        "QuantizeLinear": lambda: (
            [name, scope.constant(np.array(0.25, word)), scope.constant(np.array(3, np.uint8))], {}
        ),
        "Pad": lambda: (
            [name, scope.integers([1, 0] * rank), scope.constant(np.array(1, word))],
            {"mode": draw.choice(("constant", "edge"))},
        ),
    }  # fmt: skip
    op = draw.choice(list(tests))
    inputs, more = tests[op]()
    return _one(scope, op, inputs, 1, **more)


FUSED: dict[Callable[[Scope], bool], int] = {
    fused_product: 3,
    fused_convolution: 2,
    skipped: 2,
    quantised_product: 2,
    heads: 2,
    others: 2,
}
"""The pieces, and how often each is tried."""
