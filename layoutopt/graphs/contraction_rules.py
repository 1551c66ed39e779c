"""Tile rules for the operands of matrix products and convolutions, as instance files have them."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from layoutopt.graphs.contraction_shapes import matmul_shape
from layoutopt.graphs.op import Shape, broadcast

TileRule: TypeAlias = dict[str, Any]
"""What a source keeps as its ``rule``."""


def matmul_rules(lhs: Shape, rhs: Shape) -> tuple[TileRule | None, TileRule | None]:
    """Return the rules of a product's operands.

    A batch of left operands that meet one right operand is one product of many rows.  An operand
    that is broadcast along some but not all of several batch dimensions has no rule of its own.

    Parameters
    ----------
    lhs, rhs
        Shapes as ``numpy.matmul`` takes them.

    Raises
    ------
    OpError
        If the operands do not fit each other.
    """
    matmul_shape(lhs, rhs)
    left = lhs if len(lhs) > 1 else (1, *lhs)
    right = rhs if len(rhs) > 1 else (*rhs, 1)
    sizes = {"m": left[-2], "k": left[-1], "n": right[-1]}
    batch = math.prod(broadcast([left[:-2], right[:-2]]))
    leads = math.prod(left[:-2]), math.prod(right[:-2])
    if leads[1] == 1:
        sizes["m"] *= batch
        return {"kind": "matmul_lhs", **sizes}, {"kind": "matmul_rhs", **sizes}
    sizes["batch"] = batch
    kinds = ("matmul_lhs", "matmul_rhs")
    lhs_rule, rhs_rule = (
        {"kind": kind, **sizes} if lead in (1, batch) else None
        for kind, lead in zip(kinds, leads, strict=True)
    )
    return lhs_rule, rhs_rule


def conv_rules(data: Shape, weights: Shape, out: Shape, groups: int) -> tuple[TileRule, TileRule]:
    """Return the rules of a convolution's data and weights.

    Parameters
    ----------
    data, weights, out
        Shapes ``(N, C, *size)``, ``(M, C / groups, *kernel)`` and ``(N, M, *out)``.
    groups
        Into how many groups channels are divided.
    """
    sizes = {
        "batch": data[0],
        "in_channels": data[1],
        "out_channels": weights[0],
        "groups": groups,
        "size": list(data[2:]),
        "kernel": list(weights[2:]),
        "out_size": list(out[2:]),
    }
    return {"kind": "conv_data", **sizes}, {"kind": "conv_filter", **sizes}
