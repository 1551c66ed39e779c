"""Matrix products and convolutions: operands with target layouts, outputs as fixed points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutopt.errors import InputError
from layoutopt.graphs.arguments import part_name
from layoutopt.graphs.atomic import all_or_nothing
from layoutopt.graphs.builder import Builder, Operand, Value
from layoutopt.graphs.contraction_rules import TileRule, conv_rules, matmul_rules
from layoutopt.graphs.contraction_shapes import Padding, PerDim, conv_shape, matmul_shape
from layoutopt.graphs.op import OpError, Shape
from layoutopt.graphs.tensor import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class MatmulTensor(Tensor):
    """The output of a ``grow_matmul``, with the layouts that its operands are drawn to.

    Parameters
    ----------
    lhs_target, rhs_target
        Sources of the operands' shapes.
    """

    lhs_target: Tensor
    rhs_target: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class ConvTensor(Tensor):
    """The output of a ``grow_conv``, with the layouts that its operands are drawn to.

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
    """Add a matrix product, with the layouts that it wants its operands in.

    The output is a fixed point: a matrix product chooses its output's layout itself,
    whatever its operands' layouts are.  Each operand is drawn to a source, its target.  An
    operand of the output's shape is drawn to the output, too, because products whose operands
    lie like their outputs can be chained.  The targets have rules for tile memories.

    Parameters
    ----------
    lhs, rhs
        Operands of the shapes that ``numpy.matmul`` takes: of rank 1 or more, leading
        dimensions broadcast.
    lhs_value, rhs_value
        Value per element of an operand at its target's locations.
    chain_value
        Value per element of an operand at the output's locations.
    name
        Name of the product; the targets are then ``name.lhs.target`` and ``name.rhs.target``.

    Raises
    ------
    InputError
        If ``numpy.matmul`` would not take the shapes; nothing is added.

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
    """Add a convolution, with the layouts that it wants its operands in.

    The output is a fixed point of shape ``(N, M, *out)``, where in each spatial dimension
    ``out = (size + before + after - dilation * (kernel - 1) - 1) // stride + 1``.  Data and
    weights are each drawn to a source, their target, and data of the output's shape to the
    output, too.  The targets have rules for tile memories.  The bias is drawn to a
    ``sum_like_reduce`` of the output.

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
        Into how many groups, which do not see each other, ``C`` and ``M`` are divided.
    data_value, weights_value, bias_value
        Value per element of an operand at its target's locations.  The defaults are those of
        ``grow_matmul``, and half of them for the bias.
    chain_value
        Value per element of the data at the output's locations.
    name
        Name of the convolution; what is added beside it is then ``name.data.target``,
        ``name.weights.target``, ``name.bias.aligned`` and ``name.bias.reduce``.

    Raises
    ------
    InputError
        If shapes and numbers do not fit each other; nothing is added.
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
    """Return the shape of a convolution, if the bias fits it, too."""
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
    """Draw a bias to the reduced output, and return that."""
    shape = (*bias.shape, *(1,) * (out.ndim - 2))
    aligned = graph.reshape(bias, shape, name=part_name(name, "bias.aligned"))
    reduced = graph.sum_like_reduce(out, shape, name=part_name(name, "bias.reduce"))
    graph.valued_pair(reduced, aligned, value)
    return reduced


def _described(x: Tensor) -> str:
    return f"{x.name!r} {list(x.shape)}"
