"""Operations that draw tensors together: elementwise ones, dynamic slices, optimiser steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index

from layoutopt.base.errors import InputError
from layoutopt.graphs import ops
from layoutopt.graphs.builder import (
    Builder,
    Operand,
    Value,
    all_or_nothing,
    integers,
    listed,
    part_name,
)
from layoutopt.graphs.tensor import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class SumLikeTensor(Tensor):
    """The output of a ``sum_like``, with what was made for its broadcast operands.

    Parameters
    ----------
    reduces
        ``(large, reduce, small)`` for every two operands of which one broadcasts to the
        other: ``reduce`` is the new barrier's output, tied to ``small``.
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
    """Add an elementwise op, and the pairs that draw its operands together.

    For every two different input tensors of equal shape a ValuedPair is added.  Where
    one broadcasts to the other, a ``sum_like_reduce`` of the larger is added and tied to
    the smaller.  Where neither broadcasts to the other, nothing is.  A tensor that is given
    twice is not tied to itself, but each time to every other one.

    Parameters
    ----------
    inputs
        The operands, which broadcast together.
    value
        Value per element of each new pair.
    values
        Values for some pairs of input indices instead, in either order.
    unwindable
        Indices of inputs of the output's shape.  The output lies like the first one listed,
        element by element.  All other inputs, listed or not, only attract: they do not
        change where the output lies.  With none listed a plain barrier is added, and no pairs.
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
    ways = integers(unwindable if isinstance(unwindable, Iterable) else [unwindable])
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
            large, small = (i, j) if ops.dominates(x.shape, y.shape) else (j, i)
            made[small] += 1
            role = f"{small}.reduce" + (str(made[small]) if made[small] > 1 else "")
            reduced = _reduce(graph, operands[large], operands[small], name, role)
            graph.valued_pair(reduced, operands[small], attraction)
            reduces.append((operands[large], reduced, operands[small]))
    return SumLikeTensor(graph, out.slot, 0, tuple(reduces))


def joint_shape(title: str, operands: Sequence[Tensor]) -> ops.Shape:
    """Return the shape that operands broadcast to.

    Parameters
    ----------
    title
        What wants to know, for an error's text.
    """
    try:
        return ops.broadcast([x.shape for x in operands])
    except ops.OpError as error:
        names = ", ".join(repr(x.name) for x in operands)
        raise InputError(f"{title} of {names or 'nothing'}: {error}") from None


def _reduce(graph: Builder, large: Tensor, small: Tensor, name: str | None, role: str) -> Tensor:
    return graph.sum_like_reduce(large, small.shape, name=part_name(name, role))


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
            what = "is given twice" if (i, j) in seen else f"is not two of the {inputs} inputs"
            raise InputError(f"values: the pair of inputs {given} {what}")
        seen.add((i, j))
        table[i, j] = v
    return table


@dataclass(frozen=True, eq=False, repr=False)
class DynamicTensor(Tensor):
    """The result of a ``grow_dynamic``, with the layouts that its tensors are drawn to.

    Parameters
    ----------
    part_target
        A layout for the part that follows from the sliceable's: a barrier.
    sliceable_target
        A layout for the sliceable that follows from the part's: a barrier.
    plain
        A layout for the sliceable that follows from nothing: a source.
    """

    part_target: Tensor
    sliceable_target: Tensor
    plain: Tensor


@dataclass(frozen=True)
class OptimizerStep:
    """State that a ``grow_optimizer_step`` leaves to the next step.

    Parameters
    ----------
    weights
        The updated weights, which lie like the weights.
    states
        The updated states, each of which lies like the one that it replaces.
    """

    weights: Tensor
    states: tuple[Tensor, ...]


@all_or_nothing
def grow_elementwise(
    graph: Builder, inputs: Iterable[Operand], *, value: Value = 20, name: str | None = None
) -> SumLikeTensor:
    """Add an elementwise operation of one or more operands, which broadcast together.

    An operation of one operand is an ``identity``.  Any other is a ``sum_like`` that follows
    the first operand of the output's shape; where none has that shape it is a barrier, and no
    pairs are added.

    Parameters
    ----------
    inputs
        The operands.
    value
        Value per element of each two operands, and of each broadcast one and what it is
        broadcast to.  The default is that of networks that are imported from ONNX.
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

    The part's layout can be made from the sliceable's (``part_target``, a barrier), or the other
    way round (``sliceable_target``, a barrier).  Only one of the two can be had, as one tensor
    must come first.  A layout that suits any part (``plain``, a source) needs neither.

    Parameters
    ----------
    part, sliceable
        What is read or written, and the larger tensor, of the same rank, that it belongs to.
    part_value
        Value per element of the part at its target's locations.
    sliceable_value, plain_value
        Value per element of the sliceable at its target's or at the plain locations.
    update
        Whether the part is written.
    name
        Name of the result of an update; what is added beside it is then ``name.part.target``,
        ``name.sliceable.target`` and ``name.plain``.

    Returns
    -------
    DynamicTensor
        The result: the part, or for an update the sliceable once more.

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
            f"part {x.name!r} {list(x.shape)} must fit into sliceable {whole.name!r} "
            f"{list(whole.shape)}: equally many dimensions, none of them larger"
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

    All are read and written element by element, so every two of them are drawn together:
    nothing moves where they lie alike.  What is updated stays where it was, so that the next
    step finds it there.

    Parameters
    ----------
    weights, gradient
        Of one shape.
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
