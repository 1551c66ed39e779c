"""The views of a graph, taken by a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TypeAlias

from layoutopt.graphs import ops
from layoutopt.graphs.op import Kind, Op, Shape
from layoutopt.graphs.store import Store
from layoutopt.graphs.stripes import Stripes
from layoutopt.program.strided import cut
from layoutopt.program.target import Handle, Views

Box: TypeAlias = tuple[int, int, int]


def viewed(
    graph: Store, target: Views[Handle], wanted: Sequence[int], root: Callable[[int], Handle]
) -> list[Handle]:
    """Return tensors as views of the roots that they come from.

    Parameters
    ----------
    wanted
        Tensor numbers.
    root
        Returns a root tensor (a sink, source, fixed point or barrier output) by number.
        Asked once for each root.
    """
    found: dict[int, Handle] = {}
    todo = list(wanted)
    while todo:
        t = todo[-1]
        producer = graph.producers[t]
        carriers = graph.carriers(producer)
        missing = [c for c in carriers if c not in found]
        if t in found or not missing:
            todo.pop()
        if t in found:
            continue
        if missing:
            todo.extend(missing)
        elif graph.ops[producer].kind is Kind.VIEW:
            inputs = [found[c] for c in carriers]
            shapes = [graph.shapes[c] for c in carriers]
            found[t] = _view(target, graph.ops[producer], inputs, shapes, graph.shapes[t])
        else:
            found[t] = root(t)
    return [found[t] for t in wanted]


def _view(
    target: Views[Handle], op: Op, inputs: Sequence[Handle], shapes: Sequence[Shape], out: Shape
) -> Handle:
    """Return the output of a view op, for one tensor per carrier."""
    x, shape = inputs[0], shapes[0]
    match op:
        case ops.Identity() | ops.SumLike():
            return x
        case ops.Reshape() | ops.Flatten() | ops.Squeeze():
            return target.reshape(x, out)
        case ops.DimShuffle():
            return target.dim_shuffle(x, op.permutation)
        case ops.Reverse():
            return target.reverse(x, op.dims)
        case ops.Slice():
            return target.slice(x, op.lower, op.upper)
        case ops.SubSample():
            return target.sub_sample(x, op.strides)
        case ops.SettSample():
            return _sampled(target, x, shape, op.setts)
        case ops.Concat():
            return target.concat(inputs, op.axis)
        case ops.Expand():
            return target.expand(x, out)
    raise TypeError(f"{type(op).__name__} is no view")


def _sampled(target: Views[Handle], x: Handle, shape: Shape, setts: Sequence[Stripes]) -> Handle:
    """Return the indices that nested stripes keep, one axis after the other."""
    for axis, stripes in enumerate(setts):
        if stripes:
            before, after = shape[:axis], shape[axis + 1 :]
            box = (prod(before), shape[axis], prod(after))
            x, kept = striped(target, target.reshape(x, box), box, stripes)
            shape = (*before, kept, *after)
            x = target.reshape(x, shape)
    return x


def striped(
    target: Views[Handle], x: Handle, box: Box, stripes: Stripes, first: int = 0
) -> tuple[Handle, int]:
    """Return the indices of the middle axis of three that nested stripes keep.

    Only slices, reshapes and concats are used.  All whole periods are cut out together, as
    more of the first axis, so that the number of views depends on that of stripes alone.

    Parameters
    ----------
    x, box
        A tensor and its shape, of three axes.
    stripes
        Outermost first: see :mod:`layoutopt.graphs.stripes`.
    first
        What index 0 is to the outermost stripe.

    Returns
    -------
    tuple
        The tensor, and how many indices of its middle axis are left.
    """
    rows, n, columns = box
    if not stripes:
        return x, n
    period = stripes[0][0] + stripes[0][1]
    parts: list[Handle] = []
    total = 0
    for low, periods, on, start in _runs(n, stripes[0], first):
        if periods == 1:
            part, _ = cut(target, x, box, 1, low, low + on)
        else:
            part, _ = cut(target, x, box, 1, low, low + periods * period)
            whole = (rows * periods, period, columns)
            part, _ = cut(target, target.reshape(part, whole), whole, 1, 0, on)
        part, kept = striped(target, part, (rows * periods, on, columns), stripes[1:], start)
        if periods > 1:
            part = target.reshape(part, (rows, periods * kept, columns))
        if kept:
            parts.append(part)
            total += periods * kept
    if not parts:
        return cut(target, x, box, 1, 0, 0)[0], 0
    return parts[0] if len(parts) == 1 else target.concat(parts, 1), total


def _runs(n: int, stripe: tuple[int, int, int], first: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs that a stripe keeps of the indices ``0 .. n-1``.

    Yields
    ------
    tuple
        Where a run starts, in how many periods it repeats, its length, and what its first
        index is to the next stripe.
    """
    on, off, phase = stripe
    period = on + off
    inside = (first - phase) % period
    head = min(-inside % period, n)  # what index 0 finds of the period that it is in
    whole = (n - head) // period
    tail = head + whole * period
    every = (
        (0, 1, min(head, on - inside), inside),
        (head, whole, on, 0),
        (tail, 1, min(n - tail, on), 0),
    )
    return (run for run in every if run[1] > 0 and run[2] > 0)
