"""Matrix products and convolutions: operands with target layouts, outputs as fixed points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.graphs.builder import Builder, Operand, Value, all_or_nothing, part_name
from layoutopt.graphs.ops import OpError, Shape, broadcast
from layoutopt.graphs.tensor import Tensor

TileRule: TypeAlias = dict[str, Any]
"""The ``rule`` of a source."""


def matmul_rules(lhs: Shape, rhs: Shape) -> tuple[TileRule | None, TileRule | None]:
    """Return the tile rules of a product's operands.

    A batch of left operands with one right operand is one product of many rows.  An operand that
    is broadcast along some but not all batch dimensions has no rule.

    Parameters
    ----------
    lhs, rhs
        Shapes accepted by ``numpy.matmul``.

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
    """Return the tile rules of a convolution's data and weights.

    Parameters
    ----------
    data, weights, out
        Shapes ``(N, C, *size)``, ``(M, C / groups, *kernel)`` and ``(N, M, *out)``.
    groups
        Number of groups of channels.
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


PerDim: TypeAlias = int | Iterable[int]
"""One number for all spatial dimensions, or one for each."""

Padding: TypeAlias = int | Iterable[int | tuple[int, int]]
"""One number for all spatial dimensions, or for each a number or ``(before, after)``."""


def matmul_shape(lhs: Shape, rhs: Shape) -> Shape:
    """Return the shape of ``numpy.matmul``.

    Raises
    ------
    OpError
        If the operands do not fit each other.
    """
    if not lhs or not rhs:
        raise OpError("both operands must have at least one dimension")
    left = lhs if len(lhs) > 1 else (1, *lhs)
    right = rhs if len(rhs) > 1 else (*rhs, 1)
    if left[-1] != right[-2]:
        raise OpError(f"the inner dimensions {left[-1]} and {right[-2]} must be equal")
    rows = left[-2:-1] if len(lhs) > 1 else ()
    columns = right[-1:] if len(rhs) > 1 else ()
    return (*broadcast([left[:-2], right[:-2]]), *rows, *columns)


def conv_shape(
    data: Shape,
    weights: Shape,
    strides: PerDim = 1,
    padding: Padding = 0,
    dilations: PerDim = 1,
    groups: int = 1,
) -> Shape:
    """Return the shape of a convolution.

    Parameters
    ----------
    data, weights, strides, padding, dilations, groups
        As in :func:`grow_conv`.

    Raises
    ------
    OpError
        If they are inconsistent.
    """
    rank = len(data) - 2
    if rank < 1 or len(weights) != len(data):
        raise OpError("data must have shape (N, C, *size), weights (M, C / groups, *kernel)")
    _check_channels(data[1], weights[0], weights[1], groups)
    steps = _per_dim("strides", strides, rank, least=1)
    spread = _per_dim("dilations", dilations, rank, least=1)
    added = _added("padding", padding, rank)
    dims = zip(data[2:], weights[2:], steps, spread, added, strict=True)
    return (data[0], weights[0], *(_out_size(d, *numbers) for d, numbers in enumerate(dims)))


def _out_size(d: int, size: int, kernel: int, stride: int, dilation: int, added: int) -> int:
    reach, padded = dilation * (kernel - 1) + 1, size + added
    if kernel < 1:
        raise OpError(f"spatial dimension {d}: the kernel's size must be at least 1")
    if reach > padded:
        raise OpError(
            f"spatial dimension {d}: the kernel spans {reach} elements, but the padded data "
            f"have only {padded}"
        )
    return (padded - reach) // stride + 1


def _check_channels(before: int, after: int, read: int, groups: int) -> None:
    _number("groups", groups, least=1)
    if before % groups or after % groups:
        raise OpError(
            f"groups {groups} must divide the {before} channels of the data and the {after} of "
            f"the output"
        )
    if read != before // groups:
        raise OpError(
            f"the weights' dimension 1 is {read}, but {before} channels in {groups} group(s) "
            f"make {before // groups}"
        )


def _per_dim(name: str, given: PerDim, rank: int, least: int) -> list[int]:
    entries = list(given) if isinstance(given, Iterable) else [given] * rank
    _check_count(name, len(entries), rank)
    return [_number(name, entry, least) for entry in entries]


def _added(name: str, given: Padding, rank: int) -> list[int]:
    """Return the total padding of each spatial dimension."""
    entries = list(given) if isinstance(given, Iterable) else [given] * rank
    _check_count(name, len(entries), rank)
    sides = [tuple(e) if isinstance(e, Iterable) else (e, e) for e in entries]
    if any(len(pair) != 2 for pair in sides):
        raise OpError(f"{name} {entries} must contain integers or pairs (before, after)")
    return [sum(_number(name, side, 0) for side in pair) for pair in sides]


def _check_count(name: str, entries: int, rank: int) -> None:
    if entries != rank:
        raise OpError(f"{name} has {entries} entries for {rank} spatial dimension(s)")


def _number(name: str, given: int, least: int) -> int:
    try:
        number = index(given)
    except TypeError:
        raise OpError(f"{name}: {given!r} is not an integer") from None
    if number < least:
        raise OpError(f"{name}: {number} must be at least {least}")
    return number


@dataclass(frozen=True, eq=False, repr=False)
class MatmulTensor(Tensor):
    """The output of a ``grow_matmul``, with the target layouts of its operands.

    Parameters
    ----------
    lhs_target, rhs_target
        Sources of the operands' shapes.
    """

    lhs_target: Tensor
    rhs_target: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class ConvTensor(Tensor):
    """The output of a ``grow_conv``, with the target layouts of its operands.

    Parameters
    ----------
    data_target, weights_target
        Sources of the operands' shapes.
    bias_target
        The reduced output, of shape ``(M, 1, ..., 1)``; ``None`` without a bias.
    """

    data_target: Tensor
    weights_target: Tensor
    bias_target: Tensor | None


@all_or_nothing
def grow_matmul(
    graph: Builder,
    lhs: Operand,
    rhs: Operand,
    *,
    lhs_value: Value = 100,
    rhs_value: Value = 100,
    chain_value: Value = 50,
    name: str | None = None,
) -> MatmulTensor:
    """Add a matrix product and the preferred layouts of its operands.

    The output is a fixed point: its layout does not depend on those of the operands.  A
    ValuedPair rewards each operand for matching a source, its target.  Another one rewards an
    operand of the output's shape for matching the output, so that products can be chained.  The
    targets have rules for tile memories.

    Parameters
    ----------
    lhs, rhs
        Operands of shapes accepted by ``numpy.matmul``.
    lhs_value, rhs_value
        Value per element of an operand at its target's locations.
    chain_value
        Value per element of an operand at the output's locations.
    name
        Name of the product; the targets are then ``name.lhs.target`` and ``name.rhs.target``.

    Raises
    ------
    InputError
        If ``numpy.matmul`` does not accept the shapes; nothing is added.

    Notes
    -----
    Pairs and default values are those of ``growMatmul`` in Graphcore's poprithms
    (``MatMulAttractions``), as those of imported networks are.

    Examples
    --------
    >>> from layoutopt import Graph
    >>> graph = Graph()
    >>> x, w = graph.sink((8, 5), name="x"), graph.sink((5, 3), name="w")
    >>> graph.grow_matmul(x, w, name="y")
    MatmulTensor('y', [8, 3])
    """
    x, y = graph.tensor(lhs), graph.tensor(rhs)
    try:
        shape = matmul_shape(x.shape, y.shape)
    except OpError as error:
        raise InputError(f"matmul of {_described(x)} and {_described(y)}: {error}") from None
    out = graph.fixed_point([x, y], shape, name=name)
    left, right = matmul_rules(x.shape, y.shape)
    lhs_target = _target(graph, x, lhs_value, part_name(name, "lhs.target"), left)
    rhs_target = _target(graph, y, rhs_value, part_name(name, "rhs.target"), right)
    for operand in (x, y):
        if operand.shape == shape:
            graph.valued_pair(operand, out, chain_value)
    return MatmulTensor(graph, out.slot, 0, lhs_target, rhs_target)


@all_or_nothing
def grow_conv(
    graph: Builder,
    data: Operand,
    weights: Operand,
    *,
    strides: PerDim = 1,
    padding: Padding = 0,
    dilations: PerDim = 1,
    groups: int = 1,
    bias: Operand | None = None,
    data_value: Value = 100,
    weights_value: Value = 100,
    bias_value: Value = 50,
    chain_value: Value = 50,
    name: str | None = None,
) -> ConvTensor:
    """Add a convolution and the preferred layouts of its operands.

    The output is a fixed point of shape ``(N, M, *out)``, where in each spatial dimension
    ``out = (size + before + after - dilation * (kernel - 1) - 1) // stride + 1``.  ValuedPairs
    reward data and weights for matching a source, their target, data of the output's shape for
    matching the output, and the bias for matching a ``sum_like_reduce`` of the output.  The
    targets have rules for tile memories.

    Parameters
    ----------
    data, weights, bias
        Of shapes ``(N, C, *size)``, ``(M, C / groups, *kernel)`` and ``(M,)``, with at least one
        spatial dimension.
    strides, dilations
        1 or more: one number, or one for each spatial dimension.
    padding
        0 or more: one number, or for each spatial dimension a number or ``(before, after)``.
    groups
        Number of independent groups into which ``C`` and ``M`` are divided.
    data_value, weights_value, bias_value
        Value per element of an operand at its target's locations.  The defaults are those of
        ``grow_matmul``, and half of them for the bias.
    chain_value
        Value per element of the data at the output's locations.
    name
        Name of the convolution; the other ops are then ``name.data.target``,
        ``name.weights.target``, ``name.bias.aligned`` and ``name.bias.reduce``.

    Raises
    ------
    InputError
        If shapes and numbers are inconsistent; nothing is added.
    """
    x, w = graph.tensor(data), graph.tensor(weights)
    operands = [x, w] if bias is None else [x, w, graph.tensor(bias)]
    shape = _checked_conv_shape(operands, strides, padding, dilations, groups)
    out = graph.fixed_point(operands, shape, name=name)
    rules = conv_rules(x.shape, w.shape, shape, groups)
    data_target = _target(graph, x, data_value, part_name(name, "data.target"), rules[0])
    weights_target = _target(graph, w, weights_value, part_name(name, "weights.target"), rules[1])
    bias_target = None if bias is None else _bias_target(graph, operands[2], out, bias_value, name)
    if x.shape == shape:
        graph.valued_pair(x, out, chain_value)
    return ConvTensor(graph, out.slot, 0, data_target, weights_target, bias_target)


def _checked_conv_shape(
    operands: Sequence[Tensor], strides: PerDim, padding: Padding, dilations: PerDim, groups: int
) -> Shape:
    """Return the shape of a convolution, after checking that of the bias."""
    data, weights, *bias = operands
    try:
        shape = conv_shape(data.shape, weights.shape, strides, padding, dilations, groups)
        if bias and bias[0].shape != shape[1:2]:
            raise OpError(f"bias {_described(bias[0])} must have shape {list(shape[1:2])}")
    except OpError as error:
        title = f"convolution of {_described(data)} by {_described(weights)}"
        raise InputError(f"{title}: {error}") from None
    return shape


def _target(
    graph: Builder, x: Tensor, value: Value, name: str | None, rule: TileRule | None
) -> Tensor:
    target = graph.source(x.shape, rule=rule, name=name)
    graph.valued_pair(x, target, value)
    return target


def _bias_target(
    graph: Builder, bias: Tensor, out: Tensor, value: Value, name: str | None
) -> Tensor:
    """Add the reduced output and its ValuedPair with the bias."""
    shape = (*bias.shape, *(1,) * (out.ndim - 2))
    aligned = graph.reshape(bias, shape, name=part_name(name, "bias.aligned"))
    reduced = graph.sum_like_reduce(out, shape, name=part_name(name, "bias.reduce"))
    graph.valued_pair(reduced, aligned, value)
    return reduced


def _described(x: Tensor) -> str:
    return f"{x.name!r} {list(x.shape)}"
