"""Graphs of unwinding problems: builder methods and queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.limits import require
from layoutopt.base.table import Part, Shown
from layoutopt.graphs import growers
from layoutopt.graphs.builder import Builder, Operand, all_or_nothing, listed, one_each
from layoutopt.graphs.locations import flow
from layoutopt.graphs.ops import Array, Kind, Shape, size, type_name
from layoutopt.graphs.store import GraphStore, Value
from layoutopt.graphs.tensor import Tensor, basic

if TYPE_CHECKING:
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.display import Layouts
    from layoutopt.pictures.svg import Picture

Mask: TypeAlias = NDArray[np.bool_]

ELEMENT_BYTES = 24
"""Bytes per element of index arrays and masks."""


def is_unwindable(graph: GraphStore, op: Tensor | str, input: int = 0, output: int = 0) -> bool:
    """Return whether elements of an op's output have the locations of elements of an input.

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
        if k not in range(len(tensors)):
            has = f"{len(tensors)} {what}(s)"
            raise InputError(f"{_title(graph, i)} has {has}, but no {what} {k!r}")
    return input in graph.ops[i].carriers(len(graph.op_inputs[i]))


def in_regions(
    graph: GraphStore, op: Tensor | str, region: Any, input: int = 0, output: int = 0
) -> Mask:
    """Return the elements of an op's input that a region of its output shows.

    Parameters
    ----------
    op
        The op's name, or a handle of an output.
    region
        A Boolean array of the output's shape, or a basic index of the output.
    input, output
        Indices of input and output.

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
    the elements of ``S`` that show the input (for ``concat``, some show other inputs), and with
    ``expand`` also their copies.  ``in(out(R))`` is a subset of ``R``, equal to it if the output
    shows all elements of ``R``.
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
    """Return the elements of an op's output that show a region of an input.

    Parameters
    ----------
    op, input, output
        As for :func:`in_regions`.
    region
        A Boolean array of the input's shape, or a basic index of the input.

    Returns
    -------
    array
        Boolean, of the output's shape.

    Raises
    ------
    InputError
        If the op passes no locations on from that input, or the region does not fit.
    """
    origins = _origins(graph, op, input, output)
    inside = _mask(graph.inputs(op)[input].shape, region).reshape(-1)
    return np.asarray(np.append(inside, False)[origins])  # index -1 is the last one


def index_map(
    graph: GraphStore, source: Tensor | str, destination: Tensor | str
) -> NDArray[np.int64]:
    """Return the element of one tensor that each element of another shows, through views.

    Parameters
    ----------
    source, destination
        Any two tensors.

    Returns
    -------
    array
        Flat indices of elements of ``source``, in the shape of ``destination``; -1 for
        elements that show none.
    """
    start, end = graph.number(source), graph.number(destination)
    _require_room(graph.shapes[start], graph.shapes[end])
    known: dict[int, Array] = {start: _numbered(graph.shapes[start])}
    for t in graph.view_order([end], known):
        if graph.op_of(t).kind is not Kind.VIEW:
            known[t] = np.full(graph.shapes[t], -1)
    return np.array(flow(graph, known, [end])[end])


def _origins(graph: GraphStore, op: Tensor | str, input: int, output: int) -> NDArray[np.int64]:
    """Return the flat element of an input that each element of an output shows; else -1."""
    i = graph.op_number(op)
    if not is_unwindable(graph, op, input, output):
        title = _title(graph, i)
        raise InputError(f"output {output} of {title} does not have locations of input {input}")
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
    with errors_at(f"a region of a tensor of shape {list(shape)}"):
        basic(shape, region)
    mask = np.zeros(shape, bool)
    mask[region] = True
    return mask


def _title(graph: GraphStore, i: int) -> str:
    return f"op {graph.ops[i].id!r} ({type_name(graph.ops[i])})"


Copies: TypeAlias = Iterable[tuple[Operand, Operand]]
"""Source and destination of each copy."""

Values: TypeAlias = Iterable[Value]
Names: TypeAlias = Iterable[str]


@all_or_nothing
def call(
    graph: Builder,
    copies_in: Copies,
    copies_out: Iterable[Operand],
    value: Value = 1,
    values_in: Values | None = None,
    values_out: Values | None = None,
    names: Names | None = None,
) -> tuple[Tensor, ...]:
    """Add one call of a subgraph that is already in the graph.

    The callee's ops exist once and serve all its calls.  Every copy into or out of it is a
    ValuedPair, which rewards equal locations of source and destination.

    Parameters
    ----------
    copies_in
        ``(caller's tensor, callee's input)`` for each tensor copied in.
    copies_out
        The callee's tensors that are copied out.
    value, values_in, values_out, names
        As for :func:`loop`.

    Returns
    -------
    tuple
        A new sink for each copy out.

    Raises
    ------
    InputError
        As for :func:`loop`; nothing is added.
    """
    return loop(graph, copies_in, (), copies_out, value, values_in, None, values_out, names)


@all_or_nothing
def loop(
    graph: Builder,
    copies_in: Copies,
    carried: Copies,
    copies_out: Iterable[Operand],
    value: Value = 1,
    values_in: Values | None = None,
    values_carried: Values | None = None,
    values_out: Values | None = None,
    names: Names | None = None,
) -> tuple[Tensor, ...]:
    """Add a loop around a body that is already in the graph.

    The body's ops exist once and serve all iterations, so each of its tensors has one layout.
    A carried value is copied from the body's end to its start after every iteration; the copy is
    free where both have equal locations.

    Parameters
    ----------
    copies_in
        ``(outside tensor, body's input)`` for each tensor copied in before the first
        iteration, initial contents of carried values included.
    carried
        ``(tensor at the body's end, body's input)`` for each value passed to the next iteration.
    copies_out
        The body's tensors that are copied out after the last iteration.
    value
        Value per element of each copy.
    values_in, values_carried, values_out
        One value per copy in, per carried value, or per copy out, instead of ``value``.
        Carried values are copied in every iteration, which their values should reflect.
    names
        Names of the new sinks, one per copy out.

    Returns
    -------
    tuple
        A new sink for each copy out.

    Raises
    ------
    InputError
        If a list does not have one entry per copy, or source and destination of a copy have
        different shapes; nothing is added.
    """
    results = [graph.tensor(x) for x in listed("copies_out", copies_out)]
    sinks = _sinks(graph, results, names)
    _tie(graph, "copies_in", copies_in, value, values_in)
    _tie(graph, "carried", carried, value, values_carried)
    _tie(graph, "copies_out", zip(results, sinks, strict=True), value, values_out)
    return sinks


@all_or_nothing
def cond(
    graph: Builder,
    copies_in: Iterable[Copies],
    copies_out: Iterable[Iterable[Operand]],
    value: Value = 1,
    values_in: Iterable[Values] | None = None,
    values_out: Iterable[Values] | None = None,
    names: Names | None = None,
) -> tuple[Tensor, ...]:
    """Add a conditional over branches that are already in the graph.

    Only one branch runs, but all have layouts.  Tensors that a branch reads are copied into its
    inputs, and those that it returns are copied to tensors common to all branches.

    Parameters
    ----------
    copies_in
        For each branch a list of ``(outside tensor, branch's input)``.
    copies_out
        For each branch a list of the tensors that it returns: equally many for all branches,
        with equal shapes at each position.
    value
        Value per element of each copy.
    values_in, values_out
        For each branch a list with one value per copy in, or per tensor that it returns,
        instead of ``value``.  Values should be larger for branches that run more often.
    names
        Names of the new sinks, one per position of the branches' lists.

    Returns
    -------
    tuple
        A new sink for each position, which forms a pair with every branch's tensor there.

    Raises
    ------
    InputError
        If corresponding lists or shapes differ; nothing is added.

    Examples
    --------
    >>> from layoutopt import Graph
    >>> graph = Graph("absolute value")
    >>> x, a, b = (graph.sink((4,), name=name) for name in ("x", "a", "b"))
    >>> minus = graph.grow_elementwise([b])
    >>> (y,) = graph.cond([[(x, a)], [(x, b)]], [[a], [minus]], names=["y"])
    """
    entries = listed("copies_in", copies_in)
    branches = range(len(entries))
    if not branches:
        raise InputError("copies_in has no branches; at least one is required")
    returned = _returned(graph, copies_out, len(branches))
    worth_in = one_each("values_in", values_in, None, len(branches), "branches")
    worth_out = one_each("values_out", values_out, None, len(branches), "branches")
    sinks = _sinks(graph, returned[0], names)
    for n in branches:
        _tie(graph, f"copies_in[{n}]", entries[n], value, worth_in[n])
    for n, tensors in enumerate(returned):
        _tie(graph, f"copies_out[{n}]", zip(tensors, sinks, strict=True), value, worth_out[n])
    return sinks


def _returned(
    graph: Builder, copies_out: Iterable[Iterable[Operand]], branches: int
) -> list[list[Tensor]]:
    """Return the tensors that each branch returns, after checking that their shapes agree."""
    given = one_each("copies_out", copies_out, (), branches, "branches")
    named = [(f"copies_out[{n}]", entries) for n, entries in enumerate(given)]
    returned = [[graph.tensor(x) for x in listed(name, entries)] for name, entries in named]
    first = returned[0]
    for (name, _), tensors in zip(named, returned, strict=True):
        if len(tensors) != len(first):
            raise InputError(
                f"{name} has {len(tensors)} entries, copies_out[0] {len(first)}; "
                f"all branches must return equally many"
            )
        for k, (x, y) in enumerate(zip(tensors, first, strict=True)):
            if x.shape != y.shape:
                raise InputError(
                    f"{name}[{k}]: {x.name!r} has shape {list(x.shape)}, but {y.name!r} of "
                    f"copies_out[0] {list(y.shape)}; all branches must return equal shapes"
                )
    return returned


def _sinks(graph: Builder, results: Sequence[Tensor], names: Names | None) -> tuple[Tensor, ...]:
    """Add a sink for each result to be copied to."""
    named = one_each("names", names, None, len(results), "copies out")
    return tuple(graph.sink(x.shape, name=n) for x, n in zip(results, named, strict=True))


def _tie(graph: Builder, name: str, copies: Copies, value: Value, values: Values | None) -> None:
    """Add the ValuedPairs of the copies of an argument."""
    given = listed(name, copies)
    worth = one_each(f"values_{name.removeprefix('copies_')}", values, value, len(given), "copies")
    for k, (copy, v) in enumerate(zip(given, worth, strict=True)):
        place = f"{name}[{k}]"
        ends = listed(place, copy)
        if len(ends) != 2:
            raise InputError(f"{place} must be two tensors, not {len(ends)}")
        with errors_at(place):
            graph.valued_pair(ends[0], ends[1], v)


class Graph(Builder, Shown):
    """An unwinding problem: ops over tensors, and ValuedPairs.

    A method with an op's name appends that op, checks it, and returns a handle of its output.
    Operands are handles or tensor names.  ``name`` is the new op's name, by default its type and
    a number.  ``sum_like``, ``call``, ``loop``, ``cond`` and the growers also add ValuedPairs; if
    anything is invalid, they add nothing.  Invalid arguments raise
    :class:`~layoutopt.base.errors.InputError`, which names op and operands.

    Examples
    --------
    >>> graph = Graph("transposed target")
    >>> x = graph.sink((2, 3), name="x")
    >>> target = graph.source((3, 2), name="target")
    >>> pair = graph.valued_pair(graph.dim_shuffle(x, (1, 0)), target, 7.5)
    """

    sum_like = growers.sum_like

    call = call
    loop = loop
    cond = cond

    grow_elementwise = growers.grow_elementwise
    grow_matmul = growers.grow_matmul
    grow_conv = growers.grow_conv
    grow_dynamic = growers.grow_dynamic
    grow_optimizer_step = growers.grow_optimizer_step

    is_unwindable = is_unwindable
    in_regions = in_regions
    out_regions = out_regions
    index_map = index_map

    def locations(
        self, layouts: Mapping[Any, Any] | UnwindingResult | None = None
    ) -> dict[str, Array]:
        """Return the location number of every element of every tensor.

        Parameters
        ----------
        layouts
            A result, or layouts by name or handle of sinks: pieces, or arrays of location numbers.
            Elements that are not given any are at fresh locations.  On a tile memory, locations
            are tiles where layouts are given, and elements are at fresh ones without.

        Returns
        -------
        dict
            For each tensor, by name, an array of its shape.  Equal numbers are equal locations;
            the numbers of locations do not depend on the pieces.

        Raises
        ------
        InputError
            If layouts do not fit the graph.
        SizeError
            If the arrays do not fit into memory.
        """
        from layoutopt.graphs.tiling import locations_of

        return locations_of(self, layouts)

    def draw(
        self,
        layouts: Layouts | UnwindingResult | None = None,
        tensors: Iterable[Tensor | str] | Tensor | str | None = None,
    ) -> Picture:
        """Draw tensors as grids, a cell for each element, coloured by location.

        Equal colours are equal locations; pale elements are at locations that nothing else shares.
        Without layouts, sinks and tensors that depend on them are white.  ValuedPairs are dashed
        lines.

        Parameters
        ----------
        layouts
            A result, or for each sink its pieces, or an array of location numbers as of
            :meth:`layoutopt.Graph.locations`.  Missing elements are at fresh locations.
        tensors
            Names or handles of the tensors to draw; all by default.

        Returns
        -------
        Picture
            Tensors of more than 256 elements are plain boxes; of more than 40 tensors, only their
            number is shown.

        Raises
        ------
        InputError
            If tensors or layouts do not fit the graph.
        """
        from layoutopt.graphs.display import draw

        return draw(self, layouts, tensors)

    def shown_parts(self) -> Iterator[Part]:
        """Yield what notebooks show: a picture, or a table of a large graph."""
        from layoutopt.graphs.display import shown_parts

        return shown_parts(self)

    def __str__(self) -> str:
        from layoutopt.graphs.display import table

        return table(self)
