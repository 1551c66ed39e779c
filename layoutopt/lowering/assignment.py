"""Layouts that a search begins with: as users give them, or found and checked early.

Users give layouts whole or in part, as pieces or as arrays of locations.

What an exact method needs before it has any layouts, tracing a graph and reducing it, may take
longer than all the time there is.  So where time is limited, a heuristic's layouts are checked
first; where they are not ready soon, default layouts are, and only then does the search begin.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from layoutopt.base import result
from layoutopt.base.deadline import BUSY, LATE, run_with_timeout
from layoutopt.base.entries import ENTRIES, Takes
from layoutopt.base.errors import InputError, SizeError, errors_at
from layoutopt.base.limits import Limits, require
from layoutopt.base.numbers import unique
from layoutopt.base.result import Piece, UnwindingResult
from layoutopt.check import elements
from layoutopt.check.elements import Evaluation
from layoutopt.graphs.locations import (
    TILE,
    FixedElements,
    LayoutDict,
    Locations,
    Origins,
    check_graph,
    checked_array,
    checked_pieces,
    fresh_layouts,
    given_or_own,
    layouts_in,
    nowhere,
    own_origins,
)
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.lowering.elements.kinds import layouts_of
from layoutopt.lowering.greedy0 import greedy0

NamedLayouts: TypeAlias = Mapping[Any, Sequence[Piece] | Array]
"""Layouts by name or handle of sinks; see :data:`Assignment`."""

Assignment: TypeAlias = NamedLayouts | UnwindingResult
"""For some sinks, by name or handle, where their elements lie: pieces that cover a part of the
sink or all of it, or an array of its shape with the number that
:meth:`layoutopt.Graph.locations` gives to each location, -1 where none is given.  A result
gives all its layouts."""

ELEMENT_BYTES = 64
"""What is kept of a sink's element while layouts are read."""


def read_origins(graph: GraphStore, given: Assignment | None, what: str) -> Origins:
    """Return where the given elements lie, by tensor number of each sink that is given anything.

    That is root tensor and flat element of every location; the tensor is -1 for elements that are
    not given.  Raises ``InputError``, which calls the argument ``what``, if a sink, a piece or an
    array does not fit the graph.
    """
    layouts = {} if given is None else layouts_in(graph, given, what)
    if layouts:
        _require_room(graph, what)
    found: Origins = {}
    numbers: Locations | None = None
    for name, layout in layouts.items():
        sink = graph.tensor(name)
        with errors_at(what):
            if isinstance(layout, np.ndarray):
                numbers = numbers or Locations(graph)
                found[sink.index] = numbers.origins(checked_array(numbers, sink, layout))
            else:
                found[sink.index] = _of_pieces(graph, sink, layout)
    return found


def by_name(graph: GraphStore, given: Assignment | None, what: str) -> NamedLayouts | None:
    """Return layouts by the names of their sinks, which fit copies of the graph, too."""
    return None if given is None else layouts_in(graph, given, what)


def complete(graph: GraphStore, given: Mapping[str, Any], what: str) -> tuple[LayoutDict, int]:
    """Return layouts of all sinks, and how many elements the given ones leave out.

    Elements that are left out get locations of their own.  Sinks that pieces cover keep these
    pieces as they are.
    """
    _require_room(graph, what)
    origins = read_origins(graph, given, what)
    missing = sum(t.size for t in graph.sinks()) - FixedElements(graph, origins).count
    layouts = layouts_of(graph, _whole(graph, origins))
    for name, layout in given.items():
        if not isinstance(layout, np.ndarray) and (origins[graph.number(name)][0] >= 0).all():
            layouts[name] = layout
    return layouts, missing


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Layouts that a computation begins with."""

    given: FixedElements  # the elements that are kept
    start: Origins | None = None  # where all elements lie at first, by sink; None without a start
    # The same as pieces, or what is kept with the rest at locations of its own, and its worth; None
    # if nothing was given.
    layouts: LayoutDict | None = None
    evaluation: Evaluation | None = None


def begin(graph: GraphStore, fixed: Assignment | None, start: Assignment | None) -> WarmStart:
    """Read what is kept, and what to begin with.

    Raises ``InputError`` if it does not fit the graph, or breaks barrier order.
    """
    if fixed is None and start is None:
        return WarmStart(FixedElements(graph))
    _require_room(graph, "fixed" if start is None else "start")
    given = FixedElements(graph, read_origins(graph, fixed, "fixed"))
    if graph.tile_memory is not None:
        _check_on_tiles(graph, given)
    told = read_origins(graph, start, "start")
    origins = {t: given.placed(t, own) for t, own in _whole(graph, told).items()}
    layouts = layouts_of(graph, origins)
    found = elements.evaluate(graph, layouts)
    broken = list(found.violations)
    if broken and all(line.startswith(("capacity", "grain")) for line in broken):
        parts = {t: given.placed(t, told.get(t, nowhere(graph, t))) for t in origins}
        if any((tensors < 0).any() for tensors, _ in parts.values()):
            broken = _crowded(graph, layouts_of(graph, parts))
            if not broken:  # the elements that are left out may lie elsewhere than by default
                return WarmStart(given)
    if broken:
        what = "fixed" if start is None else "start"
        raise InputError(f"{what}: {broken[0]}")
    return WarmStart(given, None if start is None else origins, layouts, found)


def _crowded(graph: GraphStore, parts: LayoutDict) -> list[str]:
    """Return why parts of layouts do not fit the tiles; not known where they follow a hook."""
    hooked = elements.takes_hooked(graph, parts)
    return [] if hooked else list(elements.too_full(graph, parts))


def _check_on_tiles(graph: GraphStore, given: FixedElements) -> None:
    """Refuse what is kept at fresh locations: on a tile memory these are tiles of others, too."""
    for t in given.origins:
        for origin in sorted(given.tensors(t)):
            if graph.ops[graph.producers[origin]].kind is Kind.SINK:
                raise InputError(
                    f"fixed: elements of sink {graph.tensor_name(t)!r} are given locations of sink "
                    f"{graph.tensor_name(origin)!r}; on a tile memory only those of sources, fixed "
                    "points and barriers are kept"
                )


def _whole(graph: GraphStore, origins: Origins) -> Origins:
    """Return the origins of all elements of all sinks, their own where none is given."""
    sinks = [sink.index for sink in graph.sinks()]
    return {t: given_or_own(origins.get(t), own_origins(graph, t)) for t in sinks}


def _require_room(graph: GraphStore, what: str) -> None:
    """Refuse graphs whose sinks do not fit the memory element by element."""
    elements = sum(sink.size for sink in graph.sinks())
    require(ELEMENT_BYTES * elements, f"{what}: an array of all elements of all sinks")


def _of_pieces(graph: GraphStore, sink: Tensor, layout: Sequence[Piece]) -> tuple[Array, Array]:
    if graph.tile_memory is not None and TILE in [piece[0] for piece in layout]:
        raise InputError(f"pieces of origin {TILE!r} are not read here; name a source on the tile")
    tensors, elements = nowhere(graph, sink.index)
    for n, piece in enumerate(checked_pieces(graph, sink, layout)):
        written = result.written(piece)
        if (tensors[written] >= 0).any() or _repeats(written):
            told = "sets an element that is set already"
            raise InputError(f"sink {sink.name!r}: piece {n}: {told}")
        tensors[written], elements[written] = graph.number(piece[0]), result.read(piece)
    return tensors, elements


def _repeats(elements: Array) -> bool:
    return len(unique(elements)) < len(elements)


def evaluate(graph: GraphStore, layouts: Assignment) -> Evaluation:
    """Score layouts by the specification, with no solver, and check every rule.

    Parameters
    ----------
    graph
        The graph.
    layouts
        Where sinks lie, whole or in part; see :data:`layoutopt.lowering.assignment.Assignment`.
        Elements that are left out count as lying at locations of their own, and are counted.

    Raises
    ------
    InputError
        If a sink, a piece or an array does not fit the graph.
    SizeError
        If layouts that leave elements out, or arrays, are of sinks that do not fit the memory.
    """
    check_graph(graph)
    given = layouts_in(graph, layouts, "layouts")
    arrays = any(isinstance(layout, np.ndarray) for layout in given.values())
    if not arrays and given.keys() == {sink.name for sink in graph.sinks()}:
        found = elements.evaluate(graph, given)  # no array of elements is needed
        if found.score is not None:
            return found
    full, missing = complete(graph, given, "layouts")
    return replace(elements.evaluate(graph, full), missing=missing)


START_LIMIT = 10**6
"""Graphs of up to so many elements begin with what ``greedy0`` chooses."""

SHARE = 0.2
"""Share of the time in which nothing else is done."""

POLL = 0.02
"""Seconds between two looks at the limits while waiting."""


class Secured(NamedTuple):
    """Layouts that break no rule, and what they are worth."""

    layouts: LayoutDict
    evaluation: Evaluation


class Reserve:
    """Answers in hand while better ones are sought.

    ``begun`` is what the whole computation begins with, ``limits`` are its limits.  ``best`` is the
    best answer that is checked, ``None`` while none is; ``origins`` are what ``greedy0`` chooses by
    element, if it was asked and has answered.
    """

    def __init__(self, begun: WarmStart, limits: Limits) -> None:
        self.begun, self.graph = begun, begun.given.graph
        self.limits = limits
        self.best: Secured | None = None
        if begun.layouts is not None and begun.evaluation is not None:
            self.best = Secured(begun.layouts, begun.evaluation)
        self.origins: Origins | None = None
        self._unforeseen: BaseException | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether a heuristic is still at work."""
        return self._thread is not None and self._thread.is_alive()

    def open(self, heuristic: bool) -> None:
        """Secure an answer if time is limited; return as soon as there is one, or soon anyway.

        If ``heuristic``, ``greedy0`` is asked; otherwise only default layouts are looked at.
        """
        left = self.limits.left
        asked = self.limits.started < self.limits.deadline < math.inf
        if not asked or self.limits.interrupt.is_set() or self.begun.start is not None:
            return
        short = left < LATE
        if short:
            self._plainly()
        if heuristic and self.limits.left:
            self.limits.report("securing an answer by greedy0")
            self._thread = threading.Thread(target=self._work, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the system gives none
                self._thread = None
            self._wait(SHARE * left)
        if self.best is None and not short:
            self._plainly()

    def _plainly(self) -> None:
        """Check default layouts, up to a little after the deadline."""
        self.limits.report("checking default layouts")
        self.plain(self.limits.left + LATE)

    def close(self, patience: float = 0.0) -> None:
        """End what is still at work, after so many seconds and at the deadline at the latest."""
        self._wait(min(patience, self.limits.left))
        self._closed.set()
        if self._unforeseen is not None:
            raise self._unforeseen

    def plain(self, seconds: float) -> None:
        """Secure what ``greedy0`` chose, or locations of their own for all, if that is quick.

        Nothing is known without it, so that it does not end with the limits, but for Ctrl-C.
        """
        end, interrupt = time.monotonic() + seconds, self.limits.interrupt
        late, worked = interrupt.is_set(), time.process_time()

        def over() -> bool:
            if interrupt.is_set() and not late:
                return True
            busy = time.process_time() - worked < LATE
            return time.monotonic() >= end + (BUSY if busy else 0.0)

        with suppress(TimeoutError, MemoryError, SizeError):
            run_with_timeout(self._keep_plain, over)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.running and not self.limits.over and time.monotonic() < end:
            assert self._thread is not None
            self._thread.join(POLL)

    def _work(self) -> None:
        """Ask a heuristic, and check what it says; whatever keeps it from that may do so."""
        try:
            run_with_timeout(self._ask, lambda: self._closed.is_set() or self.limits.over)
        except (TimeoutError, MemoryError, SizeError, InputError):
            pass
        except BaseException as error:  # handed to the caller
            self._unforeseen = error

    def _ask(self) -> None:
        quiet, given = self.limits.silent(), self.begun.given
        if sum(map(size, self.graph.shapes)) > START_LIMIT:
            from layoutopt.lowering.heuristics import choose

            layouts = choose(self.graph, ENTRIES["greedy0", Takes.GRAPH], quiet, given)
        else:
            origins = greedy0(self.graph, quiet, given)
            layouts, self.origins = layouts_of(self.graph, origins), origins
        if layouts is not None:
            self._keep(layouts)

    def _keep_plain(self) -> None:
        chosen, graph = self.origins, self.graph
        self._keep(fresh_layouts(graph) if chosen is None else layouts_of(graph, chosen))

    def _keep(self, layouts: LayoutDict) -> None:
        """Check layouts, and keep them if they are the best ones so far."""
        found = elements.evaluate(self.graph, layouts)
        score, best = found.score, self.best
        if found.violations or score is None:
            return
        if best is None or best.evaluation.score is None or score > best.evaluation.score:
            self.best = Secured(layouts, found)
