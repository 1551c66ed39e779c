"""Ops of onnxruntime's own domain as its optimiser writes them, and networks as it leaves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from layoutopt.onnx.runtime import RunError, Session
from tests.fuzzing.any_network.scope import SECONDS, Array, Scope
from tests.fuzzing.any_network.steps import Found, Piece, product_weight, reads, transposed_weight

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


def add_own(
    scope: Scope, op: str, inputs: list[str], count: int = 1, domain: str = MICROSOFT, **more: Any
) -> Found:
    """Add a node of another domain than the standard's, which is imported if it runs."""
    root = scope.root()
    before = domain in root.domains
    root.domains.add(domain)
    if count > 1:
        found: Found = scope.add_many(op, inputs, count, domain=domain, **more)
    else:
        found = scope.tried(op, inputs, domain=domain, **more)
    if not found and not before:
        root.domains.discard(domain)
    return found


@reads("f", 2, 4)
def fused_product(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A product with transposed operands, or with what follows it."""
    if data.ndim == 2 and draw.random() < 0.3:
        w, flags = product_weight(scope, data)
        bias = [scope.drawn([3], data.dtype)] if draw.random() < 0.5 else []
        return add_own(scope, "FusedGemm", [name, w, *bias], activation="Relu", **flags)
    flags = {key: draw.choice((0, 1)) for key in ("transA", "transB")}
    if data.ndim > 2:
        flags |= {key: draw.choice((0, 0, 1)) for key in ("transBatchA", "transBatchB")}
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
    inputs = [name, scope.drawn(other, data.dtype)]
    return add_own(scope, "FusedMatMul", inputs, alpha=draw.choice((1.0, 0.5)), **flags)


@reads("f", 3, 4, single=True)
def fused_convolution(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A convolution with what is added behind it and its activation."""
    channels, ones = data.shape[1], [1] * (data.ndim - 2)
    inputs = [name, scope.drawn((channels, channels, *ones)), scope.drawn([channels])]
    inputs += [scope.drawn(data.shape)] if draw.random() < 0.5 else []
    activation, given = draw.choice((("Relu", []), ("LeakyRelu", [0.5]), ("Clip", [0.0, 2.0])))
    more: dict[str, Any] = {"activation_params": given} if given else {}
    return add_own(scope, "FusedConv", inputs, activation=activation, **more)


@reads("f", 2, 3)
def skipped(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A normalisation of the last axis of a sum, with its further results."""
    vectors = [scope.drawn(data.shape[-1:], data.dtype) for _ in range(3)]
    other = name if draw.random() < 0.5 else scope.drawn(data.shape, data.dtype)
    if draw.random() < 0.3:
        order = draw.sample(range(data.ndim), data.ndim)
        other = transposed_weight(scope, data, order)
    simple = draw.random() < 0.5
    op = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    inputs = [name, other, *vectors[: draw.randint(1, 2 if simple else 3)]]
    return add_own(scope, op, inputs, draw.choice((1, 4)), epsilon=0.01)


@reads("f", 2, 4, single=True, since=11)
def quantised_product(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """A product of integers that are made of numbers, or that numbers are made of."""
    columns = draw.choice((1, 2, 3))
    w = scope.drawn((data.shape[-1], columns), draw.choice(("int8", "uint8")))
    sizes = draw.choice(([], [columns]))
    scale = scope.scale(sizes)
    zero = scope.constant(np.zeros(sizes, scope[w].dtype))
    bias = scope.drawn([columns])
    if data.size and draw.random() < 0.5:  # a sum of nothing is left unwritten
        inputs = [name, w, scale, draw.choice((zero, ""))]
        inputs += [bias] if draw.random() < 0.5 else []
        return add_own(scope, "DynamicQuantizeMatMul", inputs)
    made = scope.add_many("DynamicQuantizeLinear", [name], 3)
    if len(made) < 3:
        return False
    q, q_scale, q_zero = made
    if draw.random() < 0.5:
        inputs = [q, w, q_scale, scale, q_zero, zero]
        inputs += [bias] if draw.random() < 0.5 else []
        return add_own(scope, "MatMulIntegerToFloat", inputs)
    return scope.add("Cast", [scope.add("MatMulInteger", [q, w, q_zero])], to=1)


@reads("f", 3, 3, single=True)
def heads(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Attention of whole heads, with its caches."""
    features = data.shape[2]
    count = scope.divisor(features)
    if draw.random() < 0.3:
        inputs = [name, scope.drawn((features, 3 * features)), scope.drawn([3 * features])]
        return add_own(scope, "Attention", inputs, draw.choice((1, 2)), num_heads=count)
    k = name if draw.random() < 0.5 else scope.drawn(data.shape)
    inputs = [scope.twice_transposed(name, [1, 0, 2]), k, k]
    inputs += [scope.drawn([3 * features])] if draw.random() < 0.3 else []
    return add_own(scope, "MultiHeadAttention", inputs, draw.choice((1, 3)), num_heads=count)


Rest = Callable[[], tuple[list[str], dict[str, Any]]]
"""Gives the operands of an op behind its first one, and its attributes."""


@reads("f", 1, 4)
def microsoft(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """An op of onnxruntime's own domain, some of which have the names of ONNX's own."""
    last = data.shape[-1:]

    def drawn(*shape: int) -> list[str]:
        return [scope.drawn(shape, data.dtype)]

    rests: dict[str, Rest] = {
        "Gelu": lambda: ([], {}),
        "QuickGelu": lambda: ([], {"alpha": 1.0}),
        "FastGelu": lambda: ([], {}),
        "BiasGelu": lambda: (drawn(*last), {}),
        "FusedMatMul": lambda: (drawn(*last, 2), {"alpha": 0.5}),
        "TransposeMatMul": lambda: ([name], {"transB": 1}),
        "Inverse": lambda: ([], {}),
        "Trilu": lambda: ([], {"upper": draw.choice((0, 1))}),
        "Pad": lambda: ([scope.integers([1, 0] * data.ndim)], {}),
        "ExpandDims": lambda: ([scope.typed(1, np.int32)], {}),
        "SkipLayerNormalization": lambda: ([name, *drawn(*last)], {}),
        "FusedConv": lambda: (drawn(2, data.shape[1], 1, 1), {"activation": "Relu"}),
        "GridSample": lambda: ([scope.constant(np.zeros((len(data), 2, 2, 2), data.dtype))], {}),
        "Rfft": lambda: ([], {"signal_ndim": 1, "normalized": 0, "onesided": 1}),
    }
    op = draw.choice(list(rests))
    if op in ("FusedConv", "GridSample") and data.ndim != 4:
        return False
    inputs, more = rests[op]()
    return add_own(scope, op, [name, *inputs], **more)


@reads("f", 1, 4)
def others(scope: Scope, draw: Random, name: str, data: Array) -> Found:
    """Further ops of its domain, of which most have rules of their own nowhere."""

    def given(value: Any, kind: Any = data.dtype) -> str:
        return scope.typed(value, kind)

    def region() -> list[str]:
        return [given([[0, 0, 1, 1]]), given([0], np.int32), given([2, 2], np.int32)]

    def pads() -> list[str]:
        return [scope.integers([1, 0] * data.ndim), given(1)]

    def upsampling() -> list[str]:
        return [scope.drawn((data.shape[1], 2, 1, 1), data.dtype), scope.integers([0] * 4)]

    rests: dict[str, Rest] = {
        "Unique": lambda: ([], {}),
        "QuickGelu": lambda: ([], {"alpha": 0.5}),
        "FastGelu": lambda: ([scope.drawn(data.shape[-1:], data.dtype)], {}),
        "GatherND": lambda: ([scope.integers([[0], [0]])], {}),
        "Trilu": lambda: ([scope.integers(1)], {"upper": 1}),
        "CropAndResize": lambda: (region(), {}),
        "UnfoldTensor": lambda: ([], {"dim": data.ndim - 1, "size": 1, "step": 1}),
        "ConvTransposeWithDynamicPads": lambda: (upsampling(), {}),
        "CDist": lambda: ([name], {"metric": "euclidean"}),
        "QuantizeLinear": lambda: ([given(0.25), given(3, np.uint8)], {}),
        "Pad": lambda: (pads(), {"mode": draw.choice(("constant", "edge"))}),
    }
    op = draw.choice(list(rests))
    inputs, more = rests[op]()
    return add_own(scope, op, [name, *inputs], **more)


FUSED: dict[Piece, int] = {
    fused_product: 3,
    fused_convolution: 2,
    skipped: 2,
    quantised_product: 2,
    heads: 2,
    others: 2,
}
"""The pieces, and how often each is tried."""
