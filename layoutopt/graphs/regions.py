"""Which elements of a tensor come from which of another, through views.

A *region* is any set of elements of a tensor: a Boolean array of its shape, or a basic index of
NumPy such as ``numpy.s_[1:3, ::2]``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.base.memory import require
from layoutopt.graphs import indexing
from layoutopt.graphs.locations import flow
from layoutopt.graphs.ops import Array, Kind, OpError, Shape, size, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor

Mask: TypeAlias = NDArray[np.bool_]

ELEMENT_BYTES = 24
"""What is kept of an element on the way: indices, and a mask."""


def is_unwindable(graph: GraphStore, op: Tensor | str, input: int = 0, output: int = 0) -> bool:
    """Return whether an op passes locations on from one input to one output.

    Parameters
    ----------
    op
        The op's name, or a handle of an output.

    Raises
    ------
    InputError
        If there is no such op, input or output.
    """
    i = graph.op_number(op)
    for what, k, tensors in (
        ("input", input, graph.op_inputs[i]),
        ("output", output, graph.op_outputs[i]),
    ):
        if not 0 <= k < len(tensors):
            raise InputError(f"{_title(graph, i)} has {len(tensors)} {what}(s), and no {what} {k}")
    return input in graph.ops[i].carriers(len(graph.op_inputs[i]))


def in_regions(
    graph: GraphStore, op: Tensor | str, region: Any, input: int = 0, output: int = 0
) -> Mask:
    """Return which elements of an op's input the elements of an output's region come from.

    Parameters
    ----------
    op
        The op's name, or a handle of an output.
    region
        A Boolean array of the output's shape, or a basic index of the output.
    input, output
        Which input and output.

    Returns
    -------
    array
        Boolean, of the input's shape.

    Raises
    ------
    InputError
        If the op passes no locations on from that input, or the region does not fit.

    Notes
    -----
    With ``out`` for :func:`out_regions` and ``in`` for this function, ``out(in(S))`` contains
    those elements of ``S`` that come from the input: all of them, but for ``concat``.  It contains
    more where ``expand`` copies: all copies belong to their element.  ``in(out(R))`` is
    contained in ``R``, and equal where the output shows all elements of ``R``.
    """
    origins = _origins(graph, op, input, output)
    chosen = origins[_mask(origins.shape, region)]
    shape = graph.inputs(op)[input].shape
    used = np.zeros(size(shape), bool)
    used[chosen[chosen >= 0]] = True
    return used.reshape(shape)


def out_regions(
    graph: GraphStore, op: Tensor | str, region: Any, input: int = 0, output: int = 0
) -> Mask:
    """Return which elements of an op's output come from the elements of an input's region.

    Parameters
    ----------
    op
        The op's name, or a handle of an output.
    region
        A Boolean array of the input's shape, or a basic index of the input.
    input, output
        Which input and output.

    Returns
    -------
    array
        Boolean, of the output's shape; see :func:`in_regions`.

    Raises
    ------
    InputError
        If the op passes no locations on from that input, or the region does not fit.
    """
    origins = _origins(graph, op, input, output)
    inside = _mask(graph.inputs(op)[input].shape, region).reshape(-1)
    return np.asarray(np.append(inside, False)[origins])  # -1 is the last one


def index_map(
    graph: GraphStore, source: Tensor | str, destination: Tensor | str
) -> NDArray[np.int64]:
    """Return from which element of one tensor each element of another comes, through views.

    Parameters
    ----------
    source, destination
        Any two tensors.

    Returns
    -------
    array
        Flat indices of elements of ``source``, in the shape of ``destination``; -1 where an
        element does not come from there.
    """
    start, end = graph.number(source), graph.number(destination)
    _require_room(graph.shapes[start], graph.shapes[end])
    known: dict[int, Array] = {start: _numbered(graph.shapes[start])}
    todo, seen = [end], {start, end}
    while todo and start != end:
        t = todo.pop()
        producer = graph.producers[t]
        if graph.ops[producer].kind is not Kind.VIEW:
            known[t] = np.full(graph.shapes[t], -1)
        new = set(graph.carriers(producer)) - seen
        seen |= new
        todo.extend(new)
    return np.array(flow(graph, known, [end])[end])


def _origins(graph: GraphStore, op: Tensor | str, input: int, output: int) -> NDArray[np.int64]:
    """Return the flat element of an input for each element of an output, -1 for others'."""
    i = graph.op_number(op)
    if not is_unwindable(graph, op, input, output):
        title = _title(graph, i)
        raise InputError(f"{title} passes no locations on from input {input} to output {output}")
    inputs = graph.op_inputs[i]
    shapes = {k: graph.shapes[inputs[k]] for k in graph.ops[i].carriers(len(inputs))}
    _require_room(*shapes.values(), graph.shapes[graph.op_outputs[i][output]])
    arrays = [_numbered(s) if k == input else np.full(s, -1) for k, s in shapes.items()]
    return graph.ops[i].view(arrays)


def _require_room(*shapes: Shape) -> None:
    require(ELEMENT_BYTES * sum(map(size, shapes)), "an index for every element")


def _numbered(shape: Shape) -> NDArray[np.int64]:
    return np.arange(size(shape)).reshape(shape)


def _mask(shape: Shape, region: Any) -> Mask:
    """Return a region as a Boolean array of a tensor's shape."""
    if isinstance(region, np.ndarray | np.bool_):
        if region.dtype != bool or region.shape != shape:
            given = f"one of {list(region.shape)}, {region.dtype}"
            raise InputError(
                f"a region must be a Boolean array of shape {list(shape)}, not {given}"
            )
        return np.asarray(region)
    try:
        indexing.basic(shape, region)
    except OpError as error:
        raise InputError(f"a region of a tensor of shape {list(shape)}: {error}") from None
    mask = np.zeros(shape, bool)
    mask[region] = True
    return mask


def _title(graph: GraphStore, i: int) -> str:
    return f"op {graph.ops[i].id!r} ({type_name(graph.ops[i])})"
