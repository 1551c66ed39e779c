"""The steps that give sinks their locations, in an order in which they can be taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TypeAlias

from layoutopt.check import order
from layoutopt.check.elements import evaluate
from layoutopt.check.needs import dependencies
from layoutopt.check.order import Dependencies
from layoutopt.errors import InputError
from layoutopt.graphs.layouts import check_graph, given_layouts
from layoutopt.graphs.store import GraphStore
from layoutopt.pieces import Piece, elements
from layoutopt.result import UnwindingResult

Layouts: TypeAlias = Mapping[str, Sequence[Piece]]
"""The pieces that cover each sink, by sink name."""


@dataclass(frozen=True)
class Place:
    """One piece of a sink takes the locations of the piece's origin.

    Parameters
    ----------
    sink
        The sink's name.
    number
        Which of its pieces this is.
    piece
        The piece: see :mod:`layoutopt.pieces`.
    needs
        The step that makes the locations known, if the origin is a barrier's output.
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
class Know:
    """From here on the locations of a barrier's outputs must have been computed.

    All elements of its inputs have their locations by then.  The barrier itself need not
    have run: a creation that is thrown away does as well.

    Parameters
    ----------
    barrier
        The barrier op's name.
    needs
        The steps that give its inputs their locations.
    """

    barrier: str
    needs: tuple[ProgramStep, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"know {self.barrier}"


ProgramStep: TypeAlias = Place | Know
"""What is done to layouts.  ``step.needs`` are the steps that must come earlier."""


def steps(graph: GraphStore, result: UnwindingResult | Layouts) -> tuple[ProgramStep, ...]:
    """Return the steps that carry layouts out, each after those that it needs.

    Parameters
    ----------
    graph
        The graph.
    result
        A result, or layouts: pieces by sink name.

    Returns
    -------
    tuple
        Each piece of each sink once, in the result's ``order``; and each barrier that some
        piece takes locations of, and those that these need, once, just before it is needed.

    Raises
    ------
    InputError
        If there are no layouts, they break a rule, or the result's order does.
    """
    check_graph(graph)
    layouts = given_layouts(graph, result)
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
        made[node] = Know(graph.ops[~node].id, needs) if node < 0 else Place(*place[node], needs)
    return made


def with_needs(wanted: Iterable[ProgramStep], done: set[ProgramStep]) -> Iterator[ProgramStep]:
    """Yield steps, each after the steps that it needs, without those that are done.

    Parameters
    ----------
    wanted
        The steps, in the order in which they are to come.
    done
        Steps that were yielded before; grows.
    """
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
