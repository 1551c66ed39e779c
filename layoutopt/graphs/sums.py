"""Elementwise ops, with the pairs that draw their operands together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index

from layoutopt.errors import InputError
from layoutopt.graphs import op
from layoutopt.graphs.arguments import integers, listed, part_name
from layoutopt.graphs.atomic import all_or_nothing
from layoutopt.graphs.builder import Builder, Operand, Value
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
        elif op.dominates(x.shape, y.shape) or op.dominates(y.shape, x.shape):
            large, small = (i, j) if op.dominates(x.shape, y.shape) else (j, i)
            made[small] += 1
            role = f"{small}.reduce" + (str(made[small]) if made[small] > 1 else "")
            reduced = _reduce(graph, operands[large], operands[small], name, role)
            graph.valued_pair(reduced, operands[small], attraction)
            reduces.append((operands[large], reduced, operands[small]))
    return SumLikeTensor(graph, out.slot, 0, tuple(reduces))


def joint_shape(title: str, operands: Sequence[Tensor]) -> op.Shape:
    """Return the shape that operands broadcast to.

    Parameters
    ----------
    title
        What wants to know, for an error's text.
    """
    try:
        return op.broadcast([x.shape for x in operands])
    except op.OpError as error:
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
