"""Why each transform of a graph is there: whose needs meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from layoutopt.conversion.carried import carried
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Remaining
from layoutopt.conversion.tally import size_of
from layoutopt.conversion.values import transposition
from layoutopt.layout.layout import ANY, Layout
from layoutopt.layout.permutations import Permutation
from layoutopt.operators.op import Op
from layoutopt.operators.registry import written_input

NAMED = 3
"""How many takers a line names."""


def remaining(
    graph: ConversionGraph, moved: Collection[str], single: Collection[str]
) -> tuple[Remaining, ...]:
    """Return why each transpose that moves elements is there.

    Parameters
    ----------
    graph
        The new graph.
    moved
        Names of transposes that are no free ones.
    single
        Names of ops that run in one mode only.
    """
    layouts = carried(graph)
    return tuple(_line(graph, op, single, layouts) for op in graph.ops if op.name in moved)


def _line(
    graph: ConversionGraph,
    op: Op,
    single: Collection[str],
    layouts: Mapping[str, Layout],
) -> Remaining:
    [source], [result] = op.inputs, op.outputs
    giver = _upstream(graph, source, single)
    takers = tuple(dict.fromkeys(_downstream(graph, result, single))) or ("nobody",)
    order = transposition(op) or ()
    before, after = _named(graph, op, layouts, order)
    who = ", ".join(takers[:NAMED]) + (", ..." if len(takers) > NAMED else "")
    why = f"{source!r} comes as {before} from {giver}, and {who} takes it as {after}"
    size = size_of(graph, source)
    return Remaining(op.name, source, before, after, size, giver, takers, why)


def _named(
    graph: ConversionGraph, op: Op, layouts: Mapping[str, Layout], order: Permutation
) -> tuple[str, str]:
    """Return two layouts by letters, where giver or taker tell them, else by numbers of axes."""
    [source], [result] = op.inputs, op.outputs
    before = _letters(layouts[source], order)
    if before is not None:
        return "".join(before), "".join(before[axis] for axis in order)
    for taker, n in graph.consumers(result):
        after = _letters(written_input(taker, n), order)
        if after is not None:
            return "".join(after[order.index(axis)] for axis in range(len(order))), "".join(after)
    return "".join(map(str, range(len(order)))), "".join(map(str, order))


def _letters(layout: Layout | None, order: Permutation) -> list[str] | None:
    """Return a letter for each dimension, None if some are not known."""
    if layout is None or len(layout.dims) != len(order):
        return None
    letters = ["".join(map(str, dim.blocks)) for dim in layout.dims]
    return None if ANY in letters else letters


def _upstream(graph: ConversionGraph, name: str, single: Collection[str]) -> str:
    """Return the nearest op before a tensor that has no choice, or the input or constant."""
    seen, waiting, last = {name}, [name], ""
    for tensor in waiting:
        op = graph.producer(tensor)
        if op is None:
            if graph.tensors[tensor].kind == "input":
                return f"input {tensor!r}"
            continue
        last = last or str(op)
        if op.name in single:
            return str(op)
        if transposition(op) is None:
            new = [other for other in op.inputs if other and other not in seen]
            seen.update(new)
            waiting += new
    return last or f"constant {name!r}"


def _downstream(graph: ConversionGraph, name: str, single: Collection[str]) -> list[str]:
    """Return the nearest ops behind a tensor that have no choice, and outputs."""
    seen, waiting, found = {name}, [name], list[str]()
    first = list[str]()
    for tensor in waiting:
        if tensor in graph.outputs:
            found.append(f"output {tensor!r}")
        for op, _ in graph.consumers(tensor):
            first.append(str(op))
            if op.name in single:
                found.append(str(op))
            elif transposition(op) is None:
                new = [other for other in op.outputs if other and other not in seen]
                seen.update(new)
                waiting += new
    return found or first[:1]
