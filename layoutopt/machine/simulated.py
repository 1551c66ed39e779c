"""Unwinding with barriers whose outputs' tiles hooks compute from their inputs' tiles.

The *master* problem lets the outputs lie anywhere, so that its optimum is a bound.  Its sinks
with the outputs that hooks compute from them are a solution.  Where these outputs are not the
master's own, a row is added for each: if the elements that it depends on are where they are
now, it is where the hook says.  There are finitely many such rows, so bound and score meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from layoutopt.check.elements import evaluate
from layoutopt.dense.layouts import Layouts
from layoutopt.errors import InputError
from layoutopt.graphs.hooking import hooked, opaque, relaxed, viewed
from layoutopt.graphs.op import size
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import TILE, memory_of, root_tiles, settled
from layoutopt.limits import Limits
from layoutopt.machine.capacitated import NO_WAY
from layoutopt.machine.hooktracing import Block, Traced, as_pieces, traced
from layoutopt.machine.rows import Row, chosen, point, programme
from layoutopt.pieces import read, written
from layoutopt.problem import IntArray
from layoutopt.result import Result, Stopped
from layoutopt.solvers import integer
from layoutopt.tiles.memory import MOST, TileMemory

VARIABLES = 200_000
"""Variables that the master problem may have."""

TABLE = 4096
"""Barriers whose inputs have up to so many layouts are written down at once."""


def solve_hooked(
    graph: Store, limits: Limits, solve: Callable[[Store], Result], table: int = TABLE
) -> Result:
    """Choose layouts for a graph whose barriers have hooks.

    Built-in hooks become views; if there are no others, that graph is solved as any other.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    solve
        Solves graphs without hooks.
    table
        Barriers whose inputs have up to so many layouts are written down at once.

    Returns
    -------
    Result
        Score and bound in the graph's values, layouts by sink.  Stopped by the limit of size
        where there are too many elements and tiles: the bound then lets outputs lie anywhere,
        and layouts are the best of those found without hooks.

    Raises
    ------
    InputError
        If a hook fails, or contradicts itself.
    """
    graph = viewed(graph)
    if not hooked(graph):
        return solve(graph)
    positions = sum(size(graph.shapes[a]) for a, _, _ in graph.pairs)
    roots = sum(map(size, graph.shapes)) + positions
    if roots * memory_of(graph).tiles > VARIABLES:
        return _beyond(graph, solve)
    known = traced(graph)
    if not integer.fits(programme(known.problem, ())):
        return _beyond(graph, solve)
    return _Search(known, limits, table).result()


def solve_unhooked(graph: Store, solve: Callable[[Store], Result]) -> Result:
    """Choose layouts for a graph as if no user's hook were there.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    solve
        Solves graphs without hooks.

    Returns
    -------
    Result
        Layouts by sink, without score and bound: hooks decide what they earn.
    """
    plain = viewed(graph)
    shut = opaque(plain) if hooked(plain) else plain
    found = solve(shut)
    layouts = None if found.labelling is None else _on_tiles(shut, found.labelling, graph)
    return replace(found, objective=None, bound=None, labelling=layouts)


class _Search:
    """Rows, the best layouts, and the bound."""

    def __init__(self, known: Traced, limits: Limits, table: int) -> None:
        self.known, self.limits = known, limits
        self.rows: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        self.best: int | None = None
        self.bound: int | None = None
        self.on: IntArray | None = None
        self.loose = np.zeros((0, known.problem.tiles), np.int64)
        for block in known.blocks:
            if _layouts_of(block, known.problem.tiles) <= table:
                self._tabulate(block)

    def result(self) -> Result:
        """Search until bound and score meet, and return what is found."""
        known, limits = self.known, self.limits
        stopped = Stopped.FINISHED
        while not self._closed():
            if limits.over:
                stopped = limits.stopped or Stopped.TIME_LIMIT
                break
            start = None if self.on is None else point(known.problem, self.on)
            found = integer.cpsat(programme(known.problem, self._all()), limits, start, self.bound)
            if found.infeasible:
                found = self._without_rows()
                if found.infeasible:
                    return Result(infeasible=NO_WAY)
            if found.values is None:
                stopped = limits.stopped or Stopped.TIME_LIMIT
                break
            if found.bound is not None:
                self.bound = found.bound if self.bound is None else min(self.bound, found.bound)
            self._learn(*chosen(known.problem, found.values))
            limits.report("hooks", *self._told())
        if stopped is Stopped.FINISHED and self.best != self.bound:
            stopped = Stopped.GAP_LIMIT
        score, bound = (None if x is None else known.worth(x) for x in (self.best, self.bound))
        layouts = None if self.on is None else known.layouts(self.on, self.loose)
        return Result(objective=score, bound=bound, labelling=layouts, stopped=stopped)

    def _without_rows(self) -> integer.Found:
        """Return whether any layout fits, hooks aside: rows rule none out, or contradict."""
        found = integer.cpsat(programme(self.known.problem, ()), self.limits)
        if found.values is not None:
            raise InputError("hooks gave different outputs for equal inputs")
        return found

    def _closed(self) -> bool:
        if self.best is None or self.bound is None:
            return False
        constant = self.known.constant
        return self.limits.close(self.best + constant, self.bound + constant)

    def _told(self) -> list[float | None]:
        both = (self.best, self.bound)
        return [None if x is None else float(self.known.worth(x)) for x in both]

    def _all(self) -> Iterator[Row]:
        for (node, conditions), tile in self.rows.items():
            yield conditions, node, tile

    def _learn(self, on: IntArray, loose: IntArray) -> None:
        """Take the master's sinks with what follows from them, and add rows.

        The first barrier whose outputs the master has elsewhere reads what it reads in the
        master, so a row for it is one that the master breaks.
        """
        really = on.copy()
        for block in self.known.blocks:
            self._add(block, really)
        value = self.known.problem.value(really)
        if self.best is None or value > self.best:
            self.best, self.on, self.loose = value, really, loose

    def _add(self, block: Block, on: IntArray) -> None:
        """Set a barrier's outputs from its inputs, and add the rows that say so."""
        on[block.outputs] = block.evaluate(on)
        for k, node in enumerate(block.outputs.tolist()):
            nodes = block.conditions if block.reads is None else block.reads[k]
            conditions = tuple(zip(nodes.tolist(), on[nodes].tolist(), strict=True))
            before = self.rows.setdefault((node, conditions), int(on[node]))
            if before != on[node]:
                raise InputError(
                    f"barrier {block.name!r}: its hook gave tiles {before} and {on[node]} for an "
                    "output element whose inputs were equal"
                )

    def _tabulate(self, block: Block) -> None:
        """Add the rows of all layouts of a barrier's inputs."""
        on = np.zeros(self.known.problem.nodes, np.int64)
        for tiles in product(range(self.known.problem.tiles), repeat=len(block.conditions)):
            on[block.conditions] = tiles
            self._add(block, on)


def _layouts_of(block: Block, tiles: int) -> float:
    """Return how many layouts the inputs of a barrier have."""
    return float(tiles) ** len(block.conditions)


def _beyond(graph: Store, solve: Callable[[Store], Result]) -> Result:
    """Return a bound, and the best layouts that are found without hooks."""
    memory = memory_of(graph)
    # Rules may look at the machine, so what is fixed stays where this machine has it.
    free, shut = settled(relaxed(graph)), opaque(graph)
    free.tile_memory = TileMemory(memory.tiles, MOST)
    top = solve(free)
    found = Result(bound=top.bound, stopped=Stopped.SIZE_LIMIT)
    tried = solve(shut)
    if tried.infeasible:
        return tried
    for solved, result in ((free, top), (shut, tried)):
        if result.labelling is None:
            continue
        layouts = _on_tiles(solved, result.labelling, graph)
        checked = evaluate(graph, layouts)
        if checked.violations or checked.score is None:
            continue
        if found.objective is None or checked.score > found.objective:
            found = replace(found, objective=checked.score, labelling=layouts)
    return found


def _on_tiles(solved: Store, layouts: Layouts, graph: Store) -> Layouts:
    """Return layouts of a graph's sinks, written as tiles, from those of one without hooks."""
    found: Layouts = {}
    for sink in graph.sinks():
        tiles = np.zeros(sink.size, np.int64)
        for piece in layouts[sink.name]:
            where = read(piece)
            if piece[0] != TILE:
                where = root_tiles(solved, solved.number(piece[0])).at(where)
            tiles[written(piece)] = where
        found[sink.name] = as_pieces(tiles)
    return found
