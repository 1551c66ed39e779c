"""Sizes of a graph before and after reductions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutopt.base.limits import Limits
from layoutopt.check.elements import counts
from layoutopt.graphs.ops import type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import hooked, relaxed, tiled, viewed
from layoutopt.lowering.lower import lower
from layoutopt.network.parts import left_over
from layoutopt.network.problem import Labelling


@dataclass(frozen=True)
class Outline:
    """Sizes of a graph before and after reduction.

    Parameters
    ----------
    ops
        Number of ops by type, most frequent first.
    graph
        Counts of the graph: see :func:`layoutopt.check.elements.counts`.
    lowered
        Counts after tracing: see :class:`layoutopt.lowering.lower.Lowered`.
    problem
        ``nodes``, ``labels``, ``edges`` and ``rewards`` of the labelling problem of one
        representative of each class, and its ``contested_barriers``, whose order must be chosen.
    left
        The same counts, and the number of ``parts``, after reductions without barrier order.
    """

    ops: dict[str, int]
    graph: dict[str, int]
    lowered: dict[str, int]
    problem: dict[str, int]
    left: dict[str, int]


def outline(graph: GraphStore) -> Outline:
    """Return the sizes of a graph before and after reductions.

    Outputs of barriers with users' hooks are treated as sinks.

    Raises
    ------
    SizeError
        If the graph's tensors do not fit into memory.
    """
    plain = relaxed(viewed(graph)) if hooked(graph) else graph
    lowered = lower(tiled(plain), Limits())
    problem = lowered.problem
    order = problem.precedence
    left = left_over(replace(problem, precedence=None))
    barriers = 0 if order is None else order.barriers
    return Outline(
        dict(Counter(type_name(op) for op in graph.ops).most_common()),
        counts(graph),
        lowered.size,
        _sizes([problem]) | {"contested_barriers": barriers},
        {"parts": len(left)} | _sizes(left),
    )


def _sizes(problems: Sequence[Labelling]) -> dict[str, int]:
    return {
        "nodes": sum(p.nodes for p in problems),
        "labels": sum(p.labels for p in problems),
        "edges": sum(len(p.edges) for p in problems),
        "rewards": sum(len(p.rewards) for p in problems),
    }
