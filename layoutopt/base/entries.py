"""Table of all solvers and heuristics, imported at their first use.

Reading the names imports nothing.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def imported(place: str) -> Any:
    """Import ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


class LazyTable(UserDict[str, T]):
    """Functions by name, defined by ``module:attribute``; reading the names imports nothing."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self.data: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> T:
        entry = self.data[name]
        found: T = imported(entry) if isinstance(entry, str) else entry
        return found


class Takes(StrEnum):
    """Signatures of solvers."""

    LABELLING = "labelling problem"
    """``(problem, limits, start) -> Result``, see :mod:`layoutopt.network.problem`."""
    TABLES = "tables of costs"
    """``(network, limits, start) -> CostAnswer``, see :mod:`layoutopt.network.costs.solve`."""
    GRAPH = "graph"
    """``(graph, limits, given, places) -> origins``, see :mod:`layoutopt.lowering.greedy0`."""
    MODES = "modes of ops"
    """``(task) -> numbers of modes``, see :mod:`layoutopt.conversion.heuristics`."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A solver by name; ``place`` is ``module:function`` in this package, or a user's function."""

    name: str
    takes: Takes
    proves: bool
    place: str | Callable[..., Any]
    own: bool = False

    def load(self) -> Callable[..., Any]:
        """Import and return the function."""
        if not isinstance(self.place, str):
            return self.place
        call: Callable[..., Any] = imported(f"layoutopt.{self.place}")
        return call


LABELLING, TABLES, GRAPH, MODES = Takes

ENTRIES: dict[tuple[str, Takes], Entry] = {
    (name, takes): Entry(name, takes, proves, place)
    for name, takes, proves, place in (
        ("auto", LABELLING, True, "network.parts:solve"),
        ("cpsat", LABELLING, True, "network.solvers.formulation:by_cpsat"),
        ("mip", LABELLING, True, "network.solvers.formulation:by_highs"),
        ("refined", LABELLING, False, "network.heuristics.methods:refined"),
        ("isolating-cuts", LABELLING, False, "network.heuristics.methods:isolating_cuts"),
        ("alpha-expansion", LABELLING, False, "network.heuristics.methods:alpha_expansion"),
        ("rounded", LABELLING, False, "network.heuristics.methods:rounded"),
        ("random-greedy", LABELLING, False, "network.heuristics.methods:random_greedy"),
        ("greedy0", GRAPH, False, "lowering.greedy0:greedy0"),
        ("auto", TABLES, True, "network.costs.solve:solve_pbqp"),
        ("forward", MODES, False, "conversion.heuristics:forward"),
        ("push-through", MODES, False, "conversion.heuristics:push_through"),
        ("one-layout", MODES, False, "conversion.heuristics:one_layout"),
        ("chains", MODES, False, "conversion.heuristics:chains"),
        ("pbqp", TABLES, False, "network.costs.solve:heuristic_pbqp"),
    )
}
"""Built-in solvers: for labelling problems (unwinding, cost networks), graphs (unwinding), tables
of costs (conversion, cost networks) and modes (conversion)."""


def entries(*takes: Takes, proves: bool | None = None) -> dict[str, Entry]:
    """Return the built-in solvers of some signatures by name, with proved bounds or without."""
    return {
        entry.name: entry
        for entry in ENTRIES.values()
        if entry.takes in takes and proves in (None, entry.proves)
    }


def built_in() -> dict[str, Entry]:
    """Return the built-in solvers of graphs by name: exact ones, then heuristics."""
    return entries(LABELLING, GRAPH)


def load(name: str, takes: Takes) -> Callable[..., Any]:
    """Return a built-in solver by name and signature."""
    return ENTRIES[name, takes].load()
