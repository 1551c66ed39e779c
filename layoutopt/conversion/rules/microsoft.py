"""onnxruntime's own ops that have the axes of ops of the standard: quantised and fused ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from layoutopt.conversion.rules.axes import flattened_softmax
from layoutopt.conversion.rules.elementwise import unchanged, with_bias
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import Axes, Category, Operator, RemapError, Remapped
from layoutopt.conversion.rules.spatial import channels_first_only, channels_flag
from layoutopt.layout.permutations import Permutation

DOMAIN = "com.microsoft"
"""The domain of onnxruntime's own ops."""


def largest_rank(*operands: int) -> Callable[[Op], int | None]:
    """Return a function that finds the largest rank of some operands."""

    def rank(op: Op) -> int | None:
        ranks = [op.rank(n) for n in operands if op.has(n)]
        known = [rank for rank in ranks if rank is not None]
        return max(known, default=None) if len(known) == len(ranks) else None

    return rank


def all_axes(rank: Callable[[Op], int | None]) -> Callable[[Op], tuple[Axes | None, ...]]:
    """Return a function that tells that a result has all axes that are permuted."""

    def axes(op: Op) -> tuple[Axes | None, ...]:
        count = rank(op)
        return (None if count is None else tuple(range(count)),)

    return axes


def softmax(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis as in the version of the standard that the op follows."""
    if op.integer("opset", 1) >= SINGLE_AXIS:
        return {"axis": permutation.index(op.axis(-1, len(permutation)))}
    return flattened_softmax(op, permutation)


SINGLE_AXIS = 13
"""The version of the operator set since which Softmax is along one axis."""


def concatenated_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that the result has all axes of the first tensor."""
    rank = op.rank(2)
    return (None if rank is None else tuple(range(rank)),)


def concat(op: Op, permutation: Permutation) -> Remapped:
    """Move the axis; tensors stand behind the result's scale and zero point, each with its own."""
    axis = permutation.index(op.axis(None, len(permutation)))
    inputs = (permutation if n >= 2 and n % 3 == 2 else None for n in range(len(op.inputs)))
    return Remapped({"axis": axis}, tuple(inputs))


def skip_normalisation(op: Op, permutation: Permutation) -> Remapped:
    """Keep the last axis in its place; both operands have the same shape."""
    if permutation[-1] != len(permutation) - 1:
        raise RemapError(f"{op}: it normalises the last axis, which must stay last")
    if op.shape(0) != op.shape(1):
        raise RemapError(f"{op}: its operands have other shapes")
    if any(op.outputs[1:3]):
        raise RemapError(f"{op}: its mean and variance are asked for")
    inputs = (permutation, permutation, *(None for _ in op.inputs[2:]))
    outputs = (None if n in (1, 2) else permutation for n in range(len(op.outputs)))
    return Remapped({}, inputs, tuple(outputs))


def rows(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the last axis, which is multiplied by one matrix, in its place."""
    if permutation[-1] != len(permutation) - 1:
        raise RemapError(f"{op}: its last axis is multiplied by a matrix, and must stay last")
    if op.rank(1) != 2:
        raise RemapError(f"{op}: it multiplies by more than one matrix")
    return {}


def quantised_products(op: Op) -> Iterator[Remapped]:
    """Yield a QGemm with each operand in either order; the result stays."""
    if op.rank(0) == op.rank(3) == 2:
        left, right = op.integer("transA", 0), op.integer("transB", 0)
        for a, b in product((0, 1), repeat=2):
            inputs = tuple(
                (1, 0) if (n == 0 and a) or (n == 3 and b) else None for n in range(len(op.inputs))
            )
            flags = {"transA": left ^ a, "transB": right ^ b}
            yield Remapped({**op.attributes, **flags}, inputs, (None,))


def pool_layouts(op: Op) -> Iterator[Remapped]:
    """Yield a pool in the other of the orders that ``channels_last`` tells."""
    rank = op.rank(0)
    if rank is None or rank < 3:
        return
    last = op.integer("channels_last", 0)
    order = (0, rank - 1, *range(1, rank - 1)) if last else (0, *range(2, rank), 1)
    inputs = (order, *(None for _ in op.inputs[1:]))
    yield Remapped({**op.attributes, "channels_last": 1 - last}, inputs, (order,))


def quantised(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis that scales are given along, if there are several."""
    scale = op.rank(1)
    if scale is None:
        raise RemapError(f"{op}: the rank of its scale is unknown")
    return {} if scale == 0 else {"axis": permutation.index(op.axis(1, len(permutation)))}


def _one(name: str, **other: Any) -> Operator:
    return Operator(f"{DOMAIN}::{name}", Category.LIGHT, **other)


def _broadcast(name: str, *operands: int) -> Operator:
    rank = largest_rank(*operands)
    return _one(name, rule=unchanged, operands=operands, rank=rank, follow=all_axes(rank))


def multiplied_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that a product with one matrix has all axes of its operand but the last."""
    rank = op.rank(0)
    return (None if rank is None else (*range(rank - 1), None),)


def _table() -> list[Operator]:
    kept: dict[str, Any] = {"rule": skip_normalisation, "operands": (0, 1)}
    multiplied: dict[str, Any] = {"rule": rows, "follow": multiplied_axes}
    pool: dict[str, Any] = {
        "rule": channels_first_only,
        "axes": channels_flag,
        "alternatives": pool_layouts,
    }
    return [
        _broadcast("QLinearAdd", 0, 3),
        _broadcast("QLinearMul", 0, 3),
        _broadcast("QLinearWhere", 0, 1, 4),
        _one("BiasGelu", rule=with_bias),
        _one("DequantizeLinear", rule=quantised),
        _one("DynamicQuantizeMatMul", **multiplied),
        _one("FastGelu", rule=with_bias),
        _one("MatMulIntegerToFloat", **multiplied),
        _one("QGemm", alternatives=quantised_products),
        _one("QLinearConcat", rule=concat, rank=lambda op: op.rank(2), follow=concatenated_axes),
        _one("QLinearLeakyRelu", rule=unchanged),
        _one("QLinearSigmoid", rule=unchanged),
        _one("QLinearSoftmax", rule=softmax),
        _one("QuantizeLinear", rule=quantised),
        _one("SkipLayerNormalization", **kept),
        _one("SkipSimplifiedLayerNormalization", **kept),
        *(
            Operator(f"{DOMAIN}::{name}", Category.HEAVY, **pool)
            for name in ("QLinearAveragePool", "QLinearGlobalAveragePool")
        ),
    ]


MICROSOFT = _table()
"""onnxruntime's own ops; Gelu and FusedConv, FusedGemm and FusedMatMul are with their like."""
