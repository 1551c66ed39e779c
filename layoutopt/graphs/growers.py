"""Ops that come with ValuedPairs: elementwise ones, dynamic slices, optimiser steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index

from layoutopt.base.errors import InputError, errors_at
from layoutopt.graphs import ops
from layoutopt.graphs.builder import Builder, Operand, Value, all_or_nothing, listed, part_name
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
        elif ops.dominates(x.shape, y.shape) or ops.dominates(y.shape, x.shape):
            large, small, n = (x, y, j) if ops.dominates(x.shape, y.shape) else (y, x, i)
            made[n] += 1
            role = f"{n}.reduce" + (str(made[n]) if made[n] > 1 else "")
            reduced = graph.sum_like_reduce(large, small.shape, name=part_name(name, role))
            graph.valued_pair(reduced, small, attraction)
            reduces.append((large, reduced, small))
    return SumLikeTensor(graph, out.slot, 0, tuple(reduces))


def joint_shape(title: str, operands: Sequence[Tensor]) -> ops.Shape:
    """Return the shape that operands broadcast to."""
    names = ", ".join(repr(x.name) for x in operands)
    with errors_at(f"{title} of {names or 'nothing'}"):
        return ops.broadcast([x.shape for x in operands])


def _attractions(
    inputs: int, value: Value, values: Mapping[tuple[int, int], Value]
) -> dict[tuple[int, int], Value]:
    """Return the value of every two inputs ``i < j``."""
    table = {(i, j): value for i in range(inputs) for j in range(i + 1, inputs)}
    seen = set()
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
            f"part {described(x.name, x.shape)} must fit into sliceable "
            f"{described(whole.name, whole.shape)}: equally many dimensions, none of them larger"
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
