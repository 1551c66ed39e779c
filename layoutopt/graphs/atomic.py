"""Helpers that add several things add all of them, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from layoutopt.graphs.builder import Builder

Arguments = ParamSpec("Arguments")
Added = TypeVar("Added")


def all_or_nothing(
    helper: Callable[Concatenate[Builder, Arguments], Added],
) -> Callable[Concatenate[Builder, Arguments], Added]:
    """Make a helper take back the ops and pairs that it added before something was refused.

    Parameters
    ----------
    helper
        A function of a graph and any further arguments.
    """

    @wraps(helper)
    def whole(graph: Builder, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Added:
        ops, pairs = len(graph.ops), len(graph.pairs)
        try:
            return helper(graph, *args, **kwargs)
        except Exception:  # whatever it is, it is raised again
            graph.truncate(ops, pairs)
            raise

    return whole
