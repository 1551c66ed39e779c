"""Why some positions of a pair cannot match, whatever all other pairs are worth.

How many positions the reasons account for is found by taking the reasons away: a graph of the
pair's own views in which no barrier has to wait, and one in which all fixed tensors lie at one
location.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal

from msgspec.structs import replace

from layoutopt.check.elements import evaluate
from layoutopt.dense.groups import free_tensors, sources_of
from layoutopt.explain.told import Obstacle
from layoutopt.explain.views import at_one_location, views_of
from layoutopt.graphs.given import Given
from layoutopt.graphs.op import Kind, Op, size
from layoutopt.graphs.ops import Expand
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import memory_of, settled
from layoutopt.limits import Limits
from layoutopt.result import Status
from layoutopt.tiles.memory import MOST
from layoutopt.unwinding import unwind

NAMED = 3
"""How many ops a reason names."""


def obstacles(graph: Store, a: int, b: int, most: int, limits: Limits) -> tuple[Obstacle, ...]:
    """Return why a pair cannot match everywhere; nothing if it can, or if time runs out.

    Parameters
    ----------
    a, b
        The pair's tensors, by number.
    most
        At how many positions it can match.
    """
    elements = size(graph.shapes[a])
    if most == elements:
        return ()
    if graph.tile_memory is not None:
        return _on_tiles(graph, a, b, most, limits)
    views = views_of(graph, [(a, b)])
    unordered = _most(views, limits)
    if unordered is None:
        return ()
    differ = _at_home(at_one_location(views)) - _at_home(views)
    return _told(
        (differ, _why_fixed(graph, a, b)),
        (elements - unordered - differ, _why_repeated(graph, a, b)),
        (unordered - most, _why_later(graph, a, b)),
    )


def _on_tiles(graph: Store, a: int, b: int, most: int, limits: Limits) -> tuple[Obstacle, ...]:
    """Return why a pair cannot match everywhere on a tile memory, where no barrier waits."""
    roomy = settled(graph)  # rules may look at grains
    roomy.pairs = [(a, b, Decimal(1))]
    roomy.tile_memory = replace(memory_of(graph), bytes_per_tile=MOST, grain=1)
    unlimited = _most(roomy, limits)
    if unlimited is None:
        return ()
    return _told(
        (size(graph.shapes[a]) - unlimited, "tiles that are given differ"),
        (unlimited - most, "tiles hold too little, or a grain would have to be torn apart"),
    )


def _told(*reasons: tuple[int, str]) -> tuple[Obstacle, ...]:
    return tuple(Obstacle(count, why) for count, why in reasons if count)


def _most(graph: Store, limits: Limits) -> int | None:
    """Return at how many positions a graph's only pair can match; ``None`` if time runs out."""
    left = None if limits.left == math.inf else limits.left
    result = unwind(graph, time_limit=left, seed=limits.seed, workers=limits.workers)
    return result.pairs[0].matched if result.status is Status.OPTIMAL else None


def _at_home(graph: Store) -> int:
    """Return at how many positions it matches where all sinks lie at locations of their own."""
    layouts = {
        sink.name: ((sink.name, 0, 0, ((sink.size, 1, 1),)),) if sink.size else ()
        for sink in graph.sinks()
    }
    return evaluate(graph, layouts).pairs[0].matched


def _why_fixed(graph: Store, a: int, b: int) -> str:
    free = free_tensors(graph, Given(graph))
    if free[a] or free[b]:
        return "both locations are fixed and differ"
    return "no sink reaches either side, and their locations differ"


def _why_repeated(graph: Store, a: int, b: int) -> str:
    why = "one element stands at several positions, which want it at different locations"
    tensors = sources_of(graph, {a, b})
    repeats = _named(graph, tensors, lambda op: isinstance(op, Expand))
    return f"{why}; {repeats} repeats elements" if repeats else why


def _why_later(graph: Store, a: int, b: int) -> str:
    tensors = sources_of(graph, {a, b})
    barriers = _named(graph, tensors, lambda op: op.kind is Kind.BARRIER)
    return f"barrier order: outputs of {barriers} are known only once such elements are"


def _named(graph: Store, tensors: Iterable[int], suits: Callable[[Op], bool]) -> str:
    """Return the names of the ops that make tensors, of those that suit."""
    ops = (graph.ops[i] for i in dict.fromkeys(graph.producers[t] for t in tensors))
    names = [repr(op.id) for op in ops if suits(op)]
    return ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
