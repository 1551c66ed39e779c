"""Steps merged with the ops of a framework into one order."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutopt.errors import InputError, printable
from layoutopt.graphs.layouts import check_graph
from layoutopt.graphs.store import GraphStore
from layoutopt.program.steps import Layouts, Place, ProgramStep, steps, with_needs
from layoutopt.result import UnwindingResult

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Run:
    """One of the framework's own ops is run."""

    op: Hashable

    def __str__(self) -> str:
        return f"run {self.op}"


Item: TypeAlias = Run | ProgramStep


@dataclass(frozen=True, eq=False)
class Schedule:
    """Ops of a framework and steps for layouts in one order; printed, a numbered list.

    Parameters
    ----------
    graph
        The graph that the steps are about.
    items
        The ops and steps, first to last.
    """

    graph: GraphStore
    items: tuple[Item, ...]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        width = len(str(len(self.items)))
        lines = [printable(str(item)) for item in self.items]
        return "\n".join(f"{i:{width}}  {line}" for i, line in enumerate(lines, 1))


def schedule(
    graph: GraphStore,
    result: UnwindingResult | Layouts,
    ops: Mapping[Any, Iterable[Hashable]] | nx.DiGraph | None = None,
    creates: Mapping[str, Hashable] | None = None,
) -> Schedule:
    """Merge the steps that carry layouts out with the ops of a framework.

    An op comes after all ops that must come before it; among those that can come next, the
    first given does.  All pieces of a sink are placed before the op that creates it.  Every
    step comes as late as possible: between an op and the one before it stand exactly the
    steps that this op needs, directly or through other steps, and that no earlier op needs.
    Steps that no op needs come at the end.

    Parameters
    ----------
    graph
        The graph.
    result
        A result, or layouts: pieces by sink name.
    ops
        For each op of the framework those that must come before it; or a
        ``networkx.DiGraph`` whose edges point from earlier to later ops.  Anything hashable
        can stand for an op.  None by default: the steps alone.
    creates
        For sinks, by name, the op that creates the tensor or first sets it.  A sink that is
        not named here is created by the op that equals its name, if there is one.

    Raises
    ------
    InputError
        If ``ops`` or ``creates`` name something unknown, or ops wait for each other; and as
        :func:`~layoutopt.steps` does.
    """
    check_graph(graph)
    before = _before(ops)
    creators = _creators(graph, before, creates or {})
    plan = steps(graph, result)
    placed: dict[Hashable, list[ProgramStep]] = {}
    for step in plan:
        if isinstance(step, Place) and step.sink in creators:
            placed.setdefault(creators[step.sink], []).append(step)
    items: list[Item] = []
    done: set[ProgramStep] = set()
    for op in _in_order(before):
        items += with_needs(placed.get(op, ()), done)
        items.append(Run(op))
    return Schedule(graph, (*items, *with_needs(plan, done)))


def _before(
    ops: Mapping[Any, Iterable[Hashable]] | nx.DiGraph | None,
) -> dict[Hashable, tuple[Hashable, ...]]:
    """Return for each op those that must come before it."""
    # A networkx.DiGraph holds the same mapping as an attribute.
    given = {} if ops is None else getattr(ops, "pred", ops)
    if not isinstance(given, Mapping):
        kind = type(ops).__name__
        raise InputError(f"ops must be a mapping or a networkx.DiGraph, not a {kind}")
    before: dict[Hashable, tuple[Hashable, ...]] = {}
    for op, earlier in given.items():
        if isinstance(earlier, str) or not isinstance(earlier, Iterable):
            raise InputError(f"op {op!r}: what comes before it must be a list of ops")
        before[op] = tuple(earlier)
    for op, earlier in before.items():
        for other in earlier:
            if not _among(other, before):
                raise InputError(f"op {op!r}: {other!r}, which must come before it, is no op")
    return before


def _creators(
    graph: GraphStore, before: Mapping[Hashable, Any], creates: Mapping[str, Hashable]
) -> dict[str, Hashable]:
    """Return the op that creates each sink, where there is one."""
    if not isinstance(creates, Mapping):
        raise InputError(f"creates must map sinks to ops, not be a {type(creates).__name__}")
    names = [sink.name for sink in graph.sinks()]
    for name, op in creates.items():
        if name not in names:
            raise InputError(f"creates: {name!r} is no sink of the graph")
        if not _among(op, before):
            raise InputError(f"creates: sink {name!r}: {op!r} is no op")
    return {name: name for name in names if name in before} | dict(creates)


def _among(op: Any, ops: Mapping[Hashable, Any]) -> bool:
    return isinstance(op, Hashable) and op in ops


def _in_order(before: Mapping[Hashable, Iterable[Hashable]]) -> Iterator[Hashable]:
    """Yield ops, always the first given one of those that can come next."""
    sorter = TopologicalSorter(before)
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(map(repr, error.args[1]))
        raise InputError(f"ops wait for each other: {cycle}") from None
    ops = list(before)
    number = {op: i for i, op in enumerate(ops)}
    ready = [number[op] for op in sorter.get_ready()]
    heapq.heapify(ready)
    while ready:
        op = ops[heapq.heappop(ready)]
        yield op
        sorter.done(op)
        for other in sorter.get_ready():
            heapq.heappush(ready, number[other])
