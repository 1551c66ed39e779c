"""Sizes of a graph before and after reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutopt.base.limits import Limits
from layoutopt.check.elements import counts
from layoutopt.graphs.locations import hooked
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import relaxed, tiled, viewed
from layoutopt.lowering.lower import lower
from layoutopt.network.parts import left_over
from layoutopt.network.problem import Labelling


def outline(graph: GraphStore) -> dict[str, dict[str, int]]:
    """Return counts of a graph, by name, at each step of its reduction.

    Outputs of barriers with users' hooks are treated as sinks.  The labelling problem has one
    representative of each class, and ``contested_barriers``, whose order must be chosen;
    reductions ignore that order.
    """
    plain = relaxed(viewed(graph)) if hooked(graph) else graph
    lowered = lower(plain if graph.tile_memory is None else tiled(plain), Limits())
    problem, order = lowered.problem, lowered.problem.precedence
    left = left_over(replace(problem, precedence=None))
    barriers = 0 if order is None else order.barriers
    return {
        "the graph": counts(graph),
        "tied by pairs": lowered.size,
        "one of each class": _sizes([problem]) | {"contested_barriers": barriers},
        "left by reductions": {"parts": len(left)} | _sizes(left),
    }


def _sizes(problems: Sequence[Labelling]) -> dict[str, int]:
    return {
        "nodes": sum(p.nodes for p in problems),
        "labels": sum(p.labels for p in problems),
        "edges": sum(len(p.edges) for p in problems),
        "rewards": sum(len(p.rewards) for p in problems),
    }
