"""Ops that come with ValuedPairs: elementwise ones, dynamic slices, optimiser steps, products."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import least
from layoutopt.graphs.builder import Builder, Operand, all_or_nothing, listed, part_name
from layoutopt.graphs.ops import Shape, broadcast, dominates
from layoutopt.graphs.store import Value
from layoutopt.graphs.tensor import Tensor, described, integers


@dataclass(frozen=True, eq=False, repr=False)
class SumLikeTensor(Tensor):
    """The output of a ``sum_like``, with the barriers for its broadcast operands.

    Parameters
    ----------
    reduces
        ``(large, reduce, small)`` for every two operands of which one broadcasts to the
        other: ``reduce`` is the new barrier's output, paired with ``small``.
    """

    reduces: tuple[tuple[Tensor, Tensor, Tensor], ...] = ()


@all_or_nothing
def sum_like(
    graph: Builder,
    inputs: Iterable[Operand],
    value: Value = 1,
    values: Mapping[tuple[int, int], Value] | None = None,
    unwindable: int | Iterable[int] = 0,
    name: str | None = None,
) -> SumLikeTensor:
    """Add an elementwise op, and ValuedPairs that reward equal layouts of its operands.

    Two different input tensors of equal shape form a pair.  If one broadcasts to the other, a
    ``sum_like_reduce`` of the larger is added, which forms a pair with the smaller.  If neither
    broadcasts to the other, there is no pair.  Inputs that are given twice are paired twice with
    every other one.

    Parameters
    ----------
    inputs
        The operands, which broadcast together.
    value
        Value per element of each new pair.
    values
        Values for some pairs of input indices instead, in either order.
    unwindable
        Indices of inputs of the output's shape.  The output has the locations of the first one
        listed; other inputs do not influence them.  If empty, the op is a plain barrier, without
        pairs.
    name
        Name of the op.  The reduces for input ``j`` are then ``name.j.reduce``,
        ``name.j.reduce2`` and so on.

    Raises
    ------
    InputError
        If the operands do not broadcast, an unwindable one has another shape than the
        output, or ``values`` names no two inputs or the same two twice; nothing is added.
    """
    operands = [graph.tensor(x) for x in listed("inputs", inputs)]
    ways = integers(unwindable)
    attractions = _attractions(len(operands), value, values or {})
    if not ways:
        shape = joint_shape("sum_like", operands)
        return SumLikeTensor(graph, graph.barrier(operands, shape, name=name).slot, 0)
    out = graph.unpaired_sum_like(operands, ways, name)
    reduces = []
    made: Counter[int] = Counter()
    for (i, j), attraction in attractions.items():
        x, y = operands[i], operands[j]
        if x == y:
            continue
        if x.shape == y.shape:
            graph.valued_pair(x, y, attraction)
        elif dominates(x.shape, y.shape) or dominates(y.shape, x.shape):
            large, small, n = (x, y, j) if dominates(x.shape, y.shape) else (y, x, i)
            made[n] += 1
            role = f"{n}.reduce" + (str(made[n]) if made[n] > 1 else "")
            reduced = graph.sum_like_reduce(large, small.shape, name=part_name(name, role))
            graph.valued_pair(reduced, small, attraction)
            reduces.append((large, reduced, small))
    return SumLikeTensor(graph, out.slot, 0, tuple(reduces))


def joint_shape(title: str, operands: Sequence[Tensor]) -> Shape:
    """Return the shape that operands broadcast to."""
    names = ", ".join(repr(x.name) for x in operands)
    with errors_at(f"{title} of {names or 'nothing'}"):
        return broadcast([x.shape for x in operands])


def _attractions(
    inputs: int, value: Value, values: Mapping[tuple[int, int], Value]
) -> dict[tuple[int, int], Value]:
    """Return the value of every two inputs ``i < j``."""
    table = {(i, j): value for i in range(inputs) for j in range(i + 1, inputs)}
    seen = set()
    if not isinstance(values, Mapping):
        raise InputError(f"values must be a dictionary, not {type(values).__name__}")
    for given, v in values.items():
        try:
            i, j = sorted(map(index, given))
        except (TypeError, ValueError):
            raise InputError(f"values: {given!r} is not a pair of input indices") from None
        if (i, j) not in table or (i, j) in seen:
            what = "is given twice" if (i, j) in seen else f"must be two of the {inputs} inputs"
            raise InputError(f"values: the pair of inputs {given} {what}")
        seen.add((i, j))
        table[i, j] = v
    return table


@dataclass(frozen=True, eq=False, repr=False)
class DynamicTensor(Tensor):
    """The result of a ``grow_dynamic``, with the target layouts of its tensors.

    Parameters
    ----------
    part_target
        A layout for the part, derived from the sliceable's: a barrier.
    sliceable_target
        A layout for the sliceable, derived from the part's: a barrier.
    plain
        A layout for the sliceable that depends on no other: a source.
    """

    part_target: Tensor
    sliceable_target: Tensor
    plain: Tensor


@dataclass(frozen=True)
class OptimizerStep:
    """State after a ``grow_optimizer_step``, the input of the next step.

    Parameters
    ----------
    weights
        The updated weights, at the weights' locations.
    states
        The updated states, each at the locations of the one that it replaces.
    """

    weights: Tensor
    states: tuple[Tensor, ...]


@all_or_nothing
def grow_elementwise(
    graph: Builder, inputs: Iterable[Operand], *, value: Value = 20, name: str | None = None
) -> SumLikeTensor:
    """Add an elementwise operation of one or more operands, which broadcast together.

    With one operand it is an ``identity``, with more a ``sum_like`` at the locations of the first
    operand of the output's shape.  If none has that shape, it is a barrier, without pairs.

    Parameters
    ----------
    inputs
        The operands.
    value
        Value per element of each pair.  The default is that of imported ONNX networks.
    name
        Name of the operation; see ``sum_like`` for those of its reduces.

    Raises
    ------
    InputError
        If there is no operand, or they do not broadcast; nothing is added.
    """
    operands = [graph.tensor(x) for x in listed("inputs", inputs)]
    if len(operands) == 1:
        return SumLikeTensor(graph, graph.identity(operands[0], name).slot, 0)
    shape = joint_shape("elementwise operation", operands)
    alike = [i for i, x in enumerate(operands) if x.shape == shape]
    return sum_like(graph, operands, value, unwindable=alike, name=name)


@all_or_nothing
def grow_dynamic(
    graph: Builder,
    part: Operand,
    sliceable: Operand,
    *,
    part_value: Value = 100,
    sliceable_value: Value = 100,
    plain_value: Value = 50,
    update: bool = False,
    name: str | None = None,
) -> DynamicTensor:
    """Add a slice that is read, or written, at an offset known only when the program runs.

    The part's layout can be derived from the sliceable's (``part_target``, a barrier), or the
    sliceable's from the part's (``sliceable_target``, a barrier); barrier order excludes both.
    A third target suits any part (``plain``, a source).

    Parameters
    ----------
    part, sliceable
        The slice that is read or written, and the tensor of the same rank that contains it.
    part_value
        Value per element of the part at its target's locations.
    sliceable_value, plain_value
        Value per element of the sliceable at its target's or at the plain locations.
    update
        Whether the part is written.
    name
        Name of the result of an update; the targets are then ``name.part.target``,
        ``name.sliceable.target`` and ``name.plain``.

    Returns
    -------
    DynamicTensor
        The result: the part, or for an update an identity of the sliceable.

    Raises
    ------
    InputError
        If the part does not fit into the sliceable; nothing is added.

    Notes
    -----
    Pairs and default values are those of ``growDynamic`` in Graphcore's poprithms
    (``DynamicAttractions``).
    """
    x, whole = graph.tensor(part), graph.tensor(sliceable)
    if x.ndim != whole.ndim or any(n > m for n, m in zip(x.shape, whole.shape, strict=True)):
        raise InputError(
            f"part {described(x)} must fit into sliceable "
            f"{described(whole)}: equally many dimensions, none of them larger"
        )
    plain = graph.source(whole.shape, name=part_name(name, "plain"))
    part_target = graph.barrier([whole], x.shape, name=part_name(name, "part.target"))
    sliceable_target = graph.barrier([x], whole.shape, name=part_name(name, "sliceable.target"))
    graph.valued_pair(whole, plain, plain_value)
    graph.valued_pair(x, part_target, part_value)
    graph.valued_pair(whole, sliceable_target, sliceable_value)
    out = graph.identity(whole, name=name) if update else x
    return DynamicTensor(graph, out.slot, out.output, part_target, sliceable_target, plain)


@all_or_nothing
def grow_optimizer_step(
    graph: Builder,
    weights: Operand,
    gradient: Operand,
    states: Iterable[Operand] = (),
    *,
    weights_value: Value = 20,
    states_value: Value = 20,
    name: str | None = None,
) -> OptimizerStep:
    """Add the update of weights by their gradient and an optimiser's states.

    The update is elementwise, so ValuedPairs reward equal layouts of every two of them.  Updated
    tensors keep their locations, where the next step reads them.

    Parameters
    ----------
    weights, gradient
        Tensors of the same shape.
    states
        Tensors of the same shape: none for plain gradient descent, one for momentum, two for
        Adam.
    weights_value
        Value per element of the weights at the gradient's and at each state's locations.
    states_value
        Value per element of each state at the gradient's and at each other state's locations.
    name
        Name of the updated weights; the updated states are then ``name.state0``,
        ``name.state1`` and so on.

    Raises
    ------
    InputError
        If the shapes differ; nothing is added.
    """
    given = [("weights", weights), ("gradient", gradient)]
    given += [(f"states[{n}]", x) for n, x in enumerate(listed("states", states))]
    operands = [graph.tensor(x) for _, x in given]
    shape = operands[0].shape
    for (role, _), x in zip(given, operands, strict=True):
        if x.shape != shape:
            raise InputError(
                f"{role} {x.name!r} has shape {list(x.shape)}, but the weights "
                f"{operands[0].name!r} {list(shape)}; all must have one shape"
            )
    own = {(0, i): weights_value for i in range(1, len(operands))}
    updated = sum_like(graph, operands, states_value, own, name=name)
    moved = [
        graph.identity(x, name=part_name(name, f"state{n}")) for n, x in enumerate(operands[2:])
    ]
    return OptimizerStep(updated, tuple(moved))


TileRule: TypeAlias = dict[str, Any]
"""The ``rule`` of a source."""


PerDim: TypeAlias = int | Iterable[int]
"""One number for all spatial dimensions, or one for each."""

Padding: TypeAlias = int | Iterable[int | tuple[int, int]]
"""One number for all spatial dimensions, or for each a number or ``(before, after)``."""


def matmul(lhs: Shape, rhs: Shape) -> tuple[Shape, TileRule | None, TileRule | None]:
    """Return the shape of ``numpy.matmul``, and the tile rules of its operands.

    A batch of left operands with one right operand is one product of many rows.  An operand that
    is broadcast along some but not all batch dimensions has no rule.
    """
    if not lhs or not rhs:
        raise InputError("both operands must have at least one dimension")
    left = lhs if len(lhs) > 1 else (1, *lhs)
    right = rhs if len(rhs) > 1 else (*rhs, 1)
    if left[-1] != right[-2]:
        raise InputError(f"the inner dimensions {left[-1]} and {right[-2]} must be equal")
    batch = broadcast([left[:-2], right[:-2]])
    shape = (*batch, *lhs[-2:-1], *(right[-1:] if len(rhs) > 1 else ()))
    sizes = {"m": left[-2], "k": left[-1], "n": right[-1]}
    products = math.prod(batch)
    leads = math.prod(left[:-2]), math.prod(right[:-2])
    if leads[1] == 1:
        sizes["m"] *= products
    else:
        sizes["batch"] = products
    lhs_rule, rhs_rule = (
        {"kind": kind, **sizes} if lead in (1, products) else None
        for kind, lead in zip(("matmul_lhs", "matmul_rhs"), leads, strict=True)
    )
    return shape, lhs_rule, rhs_rule


def _conv_shape(
    operands: Sequence[Tensor], strides: PerDim, padding: Padding, dilations: PerDim, groups: int
) -> Shape:
    """Return the shape of a convolution of data, weights and maybe a bias."""
    data, weights = (x.shape for x in operands[:2])
    rank = len(data) - 2
    if rank < 1 or len(weights) != len(data):
        raise InputError("data must have shape (N, C, *size), weights (M, C / groups, *kernel)")
    _check_channels(data[1], weights[0], weights[1], groups)
    steps = [least("strides", n) for n in _per_dim("strides", strides, rank)]
    spread = [least("dilations", n) for n in _per_dim("dilations", dilations, rank)]
    dims = zip(data[2:], weights[2:], steps, spread, _added(padding, rank), strict=True)
    shape = (data[0], weights[0], *(_out_size(d, *numbers) for d, numbers in enumerate(dims)))
    for bias in operands[2:]:
        if bias.shape != shape[1:2]:
            raise InputError(f"bias {described(bias)} must have shape {list(shape[1:2])}")
    return shape


def _out_size(d: int, size: int, kernel: int, stride: int, dilation: int, added: int) -> int:
    reach, padded = dilation * (kernel - 1) + 1, size + added
    if kernel < 1:
        raise InputError(f"spatial dimension {d}: the kernel's size must be at least 1")
    if reach > padded:
        raise InputError(
            f"spatial dimension {d}: the kernel spans {reach} elements, but the padded data "
            f"have only {padded}"
        )
    return (padded - reach) // stride + 1


def _check_channels(before: int, after: int, read: int, groups: int) -> None:
    least("groups", groups)
    if before % groups or after % groups:
        raise InputError(
            f"groups {groups} must divide the {before} channels of the data and the {after} of "
            f"the output"
        )
    if read != before // groups:
        raise InputError(
            f"the weights' dimension 1 is {read}, but {before} channels in {groups} group(s) "
            f"make {before // groups}"
        )


def _per_dim(name: str, given: Any, rank: int) -> list[Any]:
    entries = list(given) if isinstance(given, Iterable) else [given] * rank
    if len(entries) != rank:
        raise InputError(f"{name} has {len(entries)} entries for {rank} spatial dimension(s)")
    return entries


def _added(given: Padding, rank: int) -> list[int]:
    """Return the total padding of each spatial dimension."""
    entries = _per_dim("padding", given, rank)
    sides = [tuple(e) if isinstance(e, Iterable) else (e, e) for e in entries]
    if any(len(pair) != 2 for pair in sides):
        raise InputError(f"padding {entries} must contain integers or pairs (before, after)")
    return [sum(least("padding", side, 0) for side in pair) for pair in sides]


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
    with errors_at(f"matmul of {described(x)} and {described(y)}"):
        shape, left, right = matmul(x.shape, y.shape)
    out = graph.fixed_point([x, y], shape, name=name)
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
    x, w, *_ = operands = [graph.tensor(t) for t in (data, weights, bias) if t is not None]
    with errors_at(f"convolution of {described(x)} by {described(w)}"):
        shape = _conv_shape(operands, strides, padding, dilations, groups)
    out = graph.fixed_point(operands, shape, name=name)
    of_data, of_weights = _conv_rules(x.shape, w.shape, shape, groups)
    data_target = _target(graph, x, data_value, part_name(name, "data.target"), of_data)
    weights_target = _target(graph, w, weights_value, part_name(name, "weights.target"), of_weights)
    bias_target = None if bias is None else _bias_target(graph, operands[2], out, bias_value, name)
    if x.shape == shape:
        graph.valued_pair(x, out, chain_value)
    return ConvTensor(graph, out.slot, 0, data_target, weights_target, bias_target)


def _conv_rules(data: Shape, weights: Shape, out: Shape, groups: int) -> tuple[TileRule, TileRule]:
    """Return the tile rules of a convolution's data and weights."""
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
