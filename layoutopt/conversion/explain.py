"""Why each transform of a graph is there: whose needs meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from layoutopt.conversion.carried import carried
from layoutopt.conversion.costs import size_of
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Remaining
from layoutopt.conversion.rewrite import Moved
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.registry import written_input
from layoutopt.conversion.values import Value, Values, transposition
from layoutopt.layout.factors import Form, items_of, names_of
from layoutopt.layout.layout import ANY, Layout

NAMED = 3
"""How many takers a line names."""


def remaining(
    old: ConversionGraph,
    new: ConversionGraph,
    values: Values,
    moved: Mapping[str, Moved],
    costly: Collection[str],
    single: Collection[str],
) -> tuple[Remaining, ...]:
    """Return why each transpose that moves elements is there.

    Parameters
    ----------
    old, new
        The graph as it was given, and the new one.
    values
        The values of the old one.
    moved
        What transposes of the new graph do, by name.
    costly
        Names of those that move elements.
    single
        Names of ops that run in one mode only.
    """
    layouts = carried(old)
    found = []
    for op in new.ops:
        if op.name in costly and op.name in moved:
            how = moved[op.name]
            letters = _letters(old, values, values.every[how.value], layouts)
            found.append(_line(new, op, single, values.every[how.value], how, letters))
    return tuple(found)


def _line(
    graph: ConversionGraph,
    op: Op,
    single: Collection[str],
    value: Value,
    how: Moved,
    letters: list[str] | None,
) -> Remaining:
    source = _origin(graph, op.inputs[0])
    giver = _upstream(graph, source, single)
    takers = tuple(dict.fromkeys(_downstream(graph, op.outputs[0], single))) or ("nobody",)
    before, after = (_text(form, value, letters) for form in (how.source, how.target))
    who = ", ".join(takers[:NAMED]) + (", ..." if len(takers) > NAMED else "")
    why = f"{source!r} comes as {before} from {giver}, and {who} takes it as {after}"
    size = size_of(graph, source)
    return Remaining(op.name, source, before, after, size, giver, takers, why)


def _origin(graph: ConversionGraph, name: str) -> str:
    """Return the tensor that one was made of by reshapes that were added."""
    op = graph.producer(name)
    while op is not None and op.name == f"reshape_{name}":
        name = op.inputs[0]
        op = graph.producer(name)
    return name


def _text(form: Form, value: Value, letters: list[str] | None) -> str:
    """Return a form in letters, ``NCHW16c``, else in numbers of axes."""
    names = [str(axis) for axis in range(len(value.shape))] if letters is None else letters
    return "".join(names_of(tuple(items_of(form)), names))


def _letters(
    graph: ConversionGraph, values: Values, value: Value, layouts: Mapping[str, Layout]
) -> list[str] | None:
    """Return a letter for each axis of a value, None if some are not known."""
    for name in value.tensors:
        readers = [written_input(op, n) for op, n in graph.consumers(name)]
        for layout in (layouts[name], *readers):
            found = _by_axis(layout, values.frame[name])
            if found is not None:
                return found
    return None


def _by_axis(layout: Layout | None, frame: tuple[int, ...]) -> list[str] | None:
    if layout is None or len(layout.dims) != len(frame):
        return None
    found = [""] * len(frame)
    for axis, dim in zip(frame, layout.dims, strict=True):
        found[axis] = dim.name
    return None if ANY in found or len(set(found)) < len(found) else found


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
