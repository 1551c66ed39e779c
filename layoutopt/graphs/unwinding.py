"""The graph of an unwinding problem, with the helpers that add ops and pairs together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutopt.errors import InputError
from layoutopt.graphs import op
from layoutopt.graphs.builder import Builder, Operand, Value, integers
from layoutopt.graphs.locations import locations_of
from layoutopt.graphs.ops import SumLike
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


class Graph(Builder):
    """An unwinding problem: ops over tensors, and ValuedPairs.

    Every method below appends one op, checks it, and returns a handle of its output.
    Operands are handles or tensor names.  ``name`` names the new op; without it the op gets
    its type with a number.  Wrong arguments raise :class:`~layoutopt.errors.InputError`
    with a text that names op and operands.

    Examples
    --------
    >>> graph = Graph("transposed target")
    >>> x = graph.sink((2, 3), name="x")
    >>> target = graph.source((3, 2), name="target")
    >>> pair = graph.valued_pair(graph.dim_shuffle(x, (1, 0)), target, 7.5)
    """

    locations = locations_of

    def sum_like(
        self,
        inputs: Iterable[Operand],
        value: Value = 1,
        values: Mapping[tuple[int, int], Value] | None = None,
        unwindable: int | Iterable[int] = 0,
        name: str | None = None,
    ) -> SumLikeTensor:
        """Add an elementwise op, and the pairs that draw its operands together.

        For every two different input tensors of equal shape a ValuedPair is added.  Where
        one broadcasts to the other, a ``sum_like_reduce`` of the larger is added and tied to
        the smaller.  Where neither broadcasts to the other, nothing is.

        Parameters
        ----------
        inputs
            The operands, which broadcast together.
        value
            Value per element of each new pair.
        values
            Values for some pairs of input indices instead, in either order.
        unwindable
            Indices of inputs of the output's shape.  The first gives the output's
            locations.  With none a plain barrier is added, and no pairs.
        """
        operands = [self.tensor(x) for x in inputs]
        unwind = integers([unwindable] if isinstance(unwindable, int) else unwindable)
        attraction = _attractions(len(operands), value, values or {})
        if not unwind:
            shape = _broadcast(operands)
            return SumLikeTensor(self, self.barrier(operands, shape, name=name).slot, 0)
        out = self._one(SumLike, operands, name, unwindable_inputs=unwind)
        reduces = []
        for (i, j), attracted in attraction.items():
            x, y = operands[i], operands[j]
            if x.index == y.index:
                continue
            if x.shape == y.shape:
                self.valued_pair(x, y, attracted)
            elif op.dominates(x.shape, y.shape) or op.dominates(y.shape, x.shape):
                large, small = (x, y) if op.dominates(x.shape, y.shape) else (y, x)
                reduced = self.sum_like_reduce(large, small.shape)
                self.valued_pair(reduced, small, attracted)
                reduces.append((large, reduced, small))
        return SumLikeTensor(self, out.slot, 0, tuple(reduces))

    def call(
        self,
        copies_in: Sequence[tuple[Operand, Operand]],
        copies_out: Sequence[Operand],
        value: Value = 1,
        values_in: Sequence[Value] | None = None,
        values_out: Sequence[Value] | None = None,
        names: Sequence[str] | None = None,
    ) -> tuple[Tensor, ...]:
        """Add one call of a subgraph that is already in the graph.

        The callee's ops exist once and serve all its calls.  Every copy into or out of it
        becomes a ValuedPair, so that source and destination of the copy are drawn to the
        same locations.

        Parameters
        ----------
        copies_in
            ``(caller's tensor, callee's input)`` for each tensor copied in.
        copies_out
            The callee's tensors that are copied out.
        value
            Value per element of each copy.
        values_in, values_out
            One value per copy in, or per copy out, instead of ``value``.
        names
            Names of the new sinks, one per copy out.

        Returns
        -------
        tuple
            A new sink for each copy out.
        """
        into = _per_copy("values_in", values_in, value, len(copies_in))
        out_of = _per_copy("values_out", values_out, value, len(copies_out))
        results = [self.tensor(x) for x in copies_out]
        named = _per_copy("names", names, None, len(copies_out))
        sinks = tuple(self.sink(x.shape, name=n) for x, n in zip(results, named, strict=True))
        for (outside, inside), v in zip(copies_in, into, strict=True):
            self.valued_pair(outside, inside, v)
        for inside, outside, v in zip(results, sinks, out_of, strict=True):
            self.valued_pair(inside, outside, v)
        return sinks


def _broadcast(operands: Sequence[Tensor]) -> op.Shape:
    try:
        return op.broadcast([x.shape for x in operands])
    except op.OpError as error:
        names = ", ".join(repr(x.name) for x in operands)
        raise InputError(f"sum_like of {names or 'nothing'}: {error}") from None


def _attractions(
    inputs: int, value: Value, values: Mapping[tuple[int, int], Value]
) -> dict[tuple[int, int], Value]:
    """Return the value of every two inputs ``i < j``."""
    table = {(i, j): value for i in range(inputs) for j in range(i + 1, inputs)}
    seen = set()
    for (i, j), v in values.items():
        key = (min(i, j), max(i, j))
        if key not in table or key in seen:
            what = "is given twice" if key in seen else f"is not two of the {inputs} inputs"
            raise InputError(f"values: the pair of inputs {(i, j)} {what}")
        seen.add(key)
        table[key] = v
    return table


def _per_copy(name: str, given: Sequence[Any] | None, default: Any, copies: int) -> Sequence[Any]:
    if given is None:
        return [default] * copies
    if len(given) != copies:
        raise InputError(f"{name} has {len(given)} entries for {copies} copies")
    return given
