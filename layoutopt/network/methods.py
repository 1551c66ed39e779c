"""Solvers of labelling problems by name.

A method is a callable ``(problem, limits, start) -> Result``.  To add one, write it in a module
of ``solvers`` or ``heuristics`` and name its place here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from layoutopt.base.lazy import LazyTable
from layoutopt.base.limits import Limits
from layoutopt.base.result import Result
from layoutopt.network.problem import IntArray, Labelling

Method: TypeAlias = Callable[[Labelling, Limits, IntArray | None], Result]

METHODS = LazyTable[Method](
    {
        "auto": "layoutopt.network.order:solve",
        "cpsat": "layoutopt.network.solvers.formulation:by_cpsat",
        "mip": "layoutopt.network.solvers.formulation:by_highs",
    }
)
"""Exact methods."""

APPROXIMATE = LazyTable[Method](
    {
        "refined": "layoutopt.network.heuristics.methods:refined",
        "isolating-cuts": "layoutopt.network.heuristics.methods:isolating_cuts",
        "alpha-expansion": "layoutopt.network.heuristics.methods:alpha_expansion",
        "rounded": "layoutopt.network.heuristics.methods:rounded",
        "random-greedy": "layoutopt.network.heuristics.methods:random_greedy",
    }
)
"""Heuristics."""
