"""Steps that place sinks, in an order that respects barriers."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutopt.base.errors import InputError, printable
from layoutopt.base.result import Piece, UnwindingResult, elements
from layoutopt.check import order
from layoutopt.check.elements import dependencies, evaluate
from layoutopt.check.order import Dependencies
from layoutopt.graphs.locations import check_graph, layouts_in
from layoutopt.graphs.store import GraphStore

if TYPE_CHECKING:
    import networkx as nx

Layouts: TypeAlias = Mapping[str, Sequence[Piece]]  # the pieces that cover each sink, by sink name


@dataclass(frozen=True)
class Place:
    """Placement of one piece of a sink at the locations of its origin.

    Parameters
    ----------
    sink
        The sink's name.
    number
        Index of the piece.
    piece
        The piece: see :mod:`layoutopt.base.result`.
    needs
        The step after which the locations are known, if the origin is a barrier's output.
    """

    sink: str
    number: int
    piece: Piece
    needs: tuple[ProgramStep, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        count, origin = elements(self.piece), self.piece[0]
        where = "its own" if origin == self.sink else origin
        plural = "" if count == 1 else "s"
        return f"place {self.sink}, piece {self.number}: {count} location{plural} of {where}"


@dataclass(frozen=True)
class BarrierReady:
    """Point at which the locations of a barrier's outputs must be computed.

    All locations of its inputs are known by then.  The barrier need not run: creating its outputs
    and discarding them suffices.

    Parameters
    ----------
    barrier
        The barrier op's name.
    needs
        The steps after which the locations of its inputs are known.
    """

    barrier: str
    needs: tuple[ProgramStep, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"know {self.barrier}"


ProgramStep: TypeAlias = Place | BarrierReady
"""A step of a program.  ``step.needs`` are steps that must come earlier."""


def steps(graph: GraphStore, result: UnwindingResult | Layouts) -> tuple[ProgramStep, ...]:
    """Return the steps that implement layouts, each after those that it needs.

    Parameters
    ----------
    result
        A result, or layouts: pieces by sink name.

    Returns
    -------
    tuple
        Each piece of each sink, in the result's ``order``; and each barrier that is the origin
        of a piece, and those that these need, just before its first use.

    Raises
    ------
    InputError
        If there are no layouts, or they or the result's order violate a rule.
    """
    check_graph(graph)
    layouts = layouts_in(graph, result, "layouts", arrays=False)
    found = evaluate(graph, layouts)
    if found.violations:
        raise InputError(found.violations[0])
    given = dependencies(graph, layouts)
    entries = found.order
    if isinstance(result, UnwindingResult) and result.order:
        entries = result.order
        faults = order.faults(given, entries)
        if faults:
            raise InputError(faults[0])
    made = _made(graph, layouts, given)
    first = dict(zip(given.sinks, given.sink_pieces, strict=True))
    wanted = []
    for entry in entries:
        pieces = first[entry] if isinstance(entry, str) else [first[entry[0]][entry[1]]]
        wanted += [made[p] for p in pieces]
    return tuple(with_needs(wanted, set()))


def _made(graph: GraphStore, layouts: Layouts, given: Dependencies) -> dict[int, ProgramStep]:
    """Return a step for each piece ``p``, and for each barrier ``b`` under the number ``~b``."""
    before = {p: [] if b is None else [~b] for p, b in enumerate(given.waits_for)}
    for b, (pieces, barriers) in given.needs.items():
        before[~b] = [*sorted(pieces), *(~c for c in sorted(barriers))]
    place = {
        p: (name, number, layouts[name][number])
        for name, pieces in zip(given.sinks, given.sink_pieces, strict=True)
        for number, p in enumerate(pieces)
    }
    made: dict[int, ProgramStep] = {}
    for node in TopologicalSorter(before).static_order():
        needs = tuple(made[n] for n in before[node])
        made[node] = (
            BarrierReady(graph.ops[~node].id, needs) if node < 0 else Place(*place[node], needs)
        )
    return made


def with_needs(wanted: Iterable[ProgramStep], done: set[ProgramStep]) -> Iterator[ProgramStep]:
    """Yield steps, each after the steps that it needs, except those done; add them to these."""
    for goal in wanted:
        todo = [goal]
        while todo:
            step = todo[-1]
            missing = [] if step in done else [n for n in step.needs if n not in done]
            if missing:
                todo.extend(reversed(missing))
                continue
            todo.pop()
            if step not in done:
                done.add(step)
                yield step


@dataclass(frozen=True)
class Run:
    """Execution of one of the framework's ops."""

    op: Hashable

    def __str__(self) -> str:
        return f"run {self.op}"


Item: TypeAlias = Run | ProgramStep


@dataclass(frozen=True, eq=False)
class Schedule:
    """Ops of a framework and steps for layouts in one order; printed as a numbered list.

    Parameters
    ----------
    graph
        The graph of the steps.
    items
        The ops and steps, in order.
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
    """Merge the steps that implement layouts with the ops of a framework.

    Ops are sorted topologically, in the given order where possible.  All pieces of a sink are
    placed before the op that creates it.  Every step comes as late as possible: directly before
    the first op that needs it, also through other steps.  Steps that no op needs come at the end.

    Parameters
    ----------
    result
        A result, or layouts: pieces by sink name.
    ops
        For each op of the framework, any hashable object, the ops that must come before it; or
        a ``networkx.DiGraph`` whose edges point from earlier to later ops.  No ops by default.
    creates
        For sinks, by name, the op that creates the tensor or first sets it; by default the op
        that equals the sink's name, if any.

    Raises
    ------
    InputError
        If ``ops`` or ``creates`` refer to something unknown, or ops form a cycle; and as
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
    # A networkx.DiGraph has the same mapping as an attribute.
    given = {} if ops is None else getattr(ops, "pred", ops)
    if not isinstance(given, Mapping):
        kind = type(ops).__name__
        raise InputError(f"ops must be a mapping or a networkx.DiGraph, not a {kind}")
    before: dict[Hashable, tuple[Hashable, ...]] = {}
    for op, earlier in given.items():
        if isinstance(earlier, str) or not isinstance(earlier, Iterable):
            raise InputError(f"op {op!r}: its predecessors must be a list of ops")
        before[op] = tuple(earlier)
    for op, earlier in before.items():
        for other in earlier:
            if not _among(other, before):
                raise InputError(f"op {op!r}: its predecessor {other!r} is not an op")
    return before


def _creators(
    graph: GraphStore, before: Mapping[Hashable, Any], creates: Mapping[str, Hashable]
) -> dict[str, Hashable]:
    if not isinstance(creates, Mapping):
        raise InputError(
            f"creates must be a mapping from sinks to ops, not {type(creates).__name__}"
        )
    names = [sink.name for sink in graph.sinks()]
    for name, op in creates.items():
        if name not in names:
            raise InputError(f"creates: {name!r} is not a sink of the graph")
        if not _among(op, before):
            raise InputError(f"creates: sink {name!r}: {op!r} is not an op")
    return {name: name for name in names if name in before} | dict(creates)


def _among(op: Any, ops: Mapping[Hashable, Any]) -> bool:
    return isinstance(op, Hashable) and op in ops


def _in_order(before: Mapping[Hashable, Iterable[Hashable]]) -> Iterator[Hashable]:
    """Yield ops in topological order, in the given order where possible."""
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
