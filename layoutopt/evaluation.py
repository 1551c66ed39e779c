"""What layouts that a user gives are worth."""

from __future__ import annotations

from dataclasses import replace

from layoutopt.assignment import Assignment, complete, whole_layouts
from layoutopt.check import elements
from layoutopt.check.elements import Evaluation
from layoutopt.graphs.layouts import check_graph, check_layouts
from layoutopt.graphs.store import GraphStore


def evaluate(graph: GraphStore, layouts: Assignment) -> Evaluation:
    """Score layouts by the specification, with no solver, and check every rule.

    Parameters
    ----------
    graph
        The graph.
    layouts
        Where sinks lie, whole or in part; see :data:`layoutopt.assignment.Assignment`.
        Elements that are left out count as lying at locations of their own, and are counted.

    Raises
    ------
    InputError
        If a sink, a piece or an array does not fit the graph.
    SizeError
        If layouts that leave elements out, or arrays, are of sinks that do not fit the memory.
    """
    check_graph(graph)
    check_layouts(layouts, "layouts")
    whole = whole_layouts(graph, layouts)
    if whole is not None:  # no array of elements is needed
        found = elements.evaluate(graph, whole)
        if found.score is not None:
            return found
    full, missing = complete(graph, layouts, "layouts")
    return replace(elements.evaluate(graph, full), missing=missing)
