"""Subgraphs: calls, loops and conditions copy tensors into and out of ops that exist once.

A copy costs nothing where source and destination lie at the same locations.  Each becomes a
ValuedPair that draws its two ends together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.graphs.arguments import listed, one_each
from layoutopt.graphs.builder import Builder, Operand, Value, all_or_nothing
from layoutopt.graphs.tensor import Tensor

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

    Raises
    ------
    InputError
        If a list has another length than the copies that it is for, or a copy's ends have
        different shapes; nothing is added.
    """
    results = [graph.tensor(x) for x in listed("copies_out", copies_out)]
    sinks = _sinks(graph, results, names)
    _draw(graph, "copies_in", copies_in, value, values_in)
    _draw(graph, "copies_out", zip(results, sinks, strict=True), value, values_out)
    return sinks


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

    The body's ops exist once and serve all iterations, so each of its tensors has one layout
    for all of them.  A carried value is copied from the body's end back to its start after
    every iteration, which costs nothing where end and start lie alike.

    Parameters
    ----------
    copies_in
        ``(outside tensor, body's input)`` for each tensor copied in before the first
        iteration.  A carried value's first content belongs here, too.
    carried
        ``(tensor at the body's end, body's input)`` for each value that the next iteration
        goes on with.
    copies_out
        The body's tensors that are copied out after the last iteration.
    value
        Value per element of each copy.
    values_in, values_carried, values_out
        One value per copy in, per carried value, or per copy out, instead of ``value``.  A
        carried value is copied in every iteration, so it may be worth as many times more.
    names
        Names of the new sinks, one per copy out.

    Returns
    -------
    tuple
        A new sink for each copy out.

    Raises
    ------
    InputError
        If a list has another length than the copies that it is for, or a copy's ends have
        different shapes; nothing is added.
    """
    results = [graph.tensor(x) for x in listed("copies_out", copies_out)]
    sinks = _sinks(graph, results, names)
    _draw(graph, "copies_in", copies_in, value, values_in)
    _draw(graph, "carried", carried, value, values_carried)
    _draw(graph, "copies_out", zip(results, sinks, strict=True), value, values_out)
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
    """Add a choice between branches that are already in the graph.

    Only one branch runs, but all are laid out beforehand: what a branch reads is copied into
    its inputs, and what it returns to tensors that all branches have in common.

    Parameters
    ----------
    copies_in
        For each branch a list of ``(outside tensor, branch's input)``.
    copies_out
        For each branch a list of the tensors that it returns: equally many for all branches,
        and of equal shapes position by position.
    value
        Value per element of each copy.
    values_in, values_out
        For each branch a list with one value per copy in, or per tensor that it returns,
        instead of ``value``.  Copies of a branch that runs more often may be worth more.
    names
        Names of the new sinks, one per position of the branches' lists.

    Returns
    -------
    tuple
        A new sink for each position, which is drawn to every branch's tensor there.

    Raises
    ------
    InputError
        If lists or shapes that belong together differ; nothing is added.

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
        raise InputError("copies_in has no branches; a condition needs at least one")
    returned = _returned(graph, copies_out, len(branches))
    worth_in = one_each("values_in", values_in, None, len(branches), "branches")
    worth_out = one_each("values_out", values_out, None, len(branches), "branches")
    sinks = _sinks(graph, returned[0], names)
    for n in branches:
        _draw(graph, f"copies_in[{n}]", entries[n], value, worth_in[n])
    for n, tensors in enumerate(returned):
        _draw(graph, f"copies_out[{n}]", zip(tensors, sinks, strict=True), value, worth_out[n])
    return sinks


def _returned(
    graph: Builder, copies_out: Iterable[Iterable[Operand]], branches: int
) -> list[list[Tensor]]:
    """Return what each branch returns, if all return the like."""
    given = one_each("copies_out", copies_out, (), branches, "branches")
    named = [(f"copies_out[{n}]", entries) for n, entries in enumerate(given)]
    returned = [[graph.tensor(x) for x in listed(name, entries)] for name, entries in named]
    first = returned[0]
    for (name, _), tensors in zip(named, returned, strict=True):
        if len(tensors) != len(first):
            raise InputError(
                f"{name} has {len(tensors)} entries, copies_out[0] {len(first)}; "
                f"all branches return equally many"
            )
        for k, (x, y) in enumerate(zip(tensors, first, strict=True)):
            if x.shape != y.shape:
                raise InputError(
                    f"{name}[{k}]: {x.name!r} has shape {list(x.shape)}, but {y.name!r} of "
                    f"copies_out[0] {list(y.shape)}; all branches return equal shapes"
                )
    return returned


def _sinks(graph: Builder, results: Sequence[Tensor], names: Names | None) -> tuple[Tensor, ...]:
    """Add a tensor to copy each result to."""
    named = one_each("names", names, None, len(results), "copies out")
    return tuple(graph.sink(x.shape, name=n) for x, n in zip(results, named, strict=True))


def _draw(graph: Builder, name: str, copies: Copies, value: Value, values: Values | None) -> None:
    """Add the ValuedPairs of copies, whose values' argument is named like theirs."""
    given = listed(name, copies)
    worth = one_each(f"values_{name.removeprefix('copies_')}", values, value, len(given), "copies")
    for k, (copy, v) in enumerate(zip(given, worth, strict=True)):
        place = f"{name}[{k}]"
        ends = listed(place, copy)
        if len(ends) != 2:
            raise InputError(f"{place} must be two tensors, not {len(ends)}")
        try:
            graph.valued_pair(ends[0], ends[1], v)
        except InputError as error:
            raise error.located(place) from None
