"""The graph of an unwinding problem: all that can be added to it, and asked of it."""

from __future__ import annotations

from layoutopt.graphs import contractions, copies, display, growers, regions
from layoutopt.graphs.builder import Builder
from layoutopt.graphs.locations import locations_of


class Graph(Builder):
    """An unwinding problem: ops over tensors, and ValuedPairs.

    A method with an op's name appends that op, checks it, and returns a handle of its output.
    Operands are handles or tensor names.  ``name`` names the new op; without it the op gets
    its type with a number.  ``sum_like``, ``call``, ``loop``, ``cond`` and the growers add ops
    together with the ValuedPairs that belong to them: all, or nothing where something is refused.
    Wrong arguments raise :class:`~layoutopt.base.errors.InputError` with a text that names op and
    operands.

    Examples
    --------
    >>> graph = Graph("transposed target")
    >>> x = graph.sink((2, 3), name="x")
    >>> target = graph.source((3, 2), name="target")
    >>> pair = graph.valued_pair(graph.dim_shuffle(x, (1, 0)), target, 7.5)
    """

    sum_like = growers.sum_like

    call = copies.call
    loop = copies.loop
    cond = copies.cond

    grow_elementwise = growers.grow_elementwise
    grow_matmul = contractions.grow_matmul
    grow_conv = contractions.grow_conv
    grow_dynamic = growers.grow_dynamic
    grow_optimizer_step = growers.grow_optimizer_step

    locations = locations_of
    is_unwindable = regions.is_unwindable
    in_regions = regions.in_regions
    out_regions = regions.out_regions
    index_map = regions.index_map
    draw = display.draw
    _repr_html_ = display.document
    __str__ = display.table
