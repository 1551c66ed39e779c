"""Solvers by name.

A name that is not built in is looked for among the solvers that were registered in Python, then
among the entry points of installed packages, in the groups ``layoutopt.solvers`` and
``layoutopt.heuristics``.  Nothing is loaded before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, distributions
from typing import Any, TypeVar

from layoutopt.approximate.methods import APPROXIMATE
from layoutopt.choosing import HEURISTICS
from layoutopt.errors import InputError
from layoutopt.exact.methods import METHODS
from layoutopt.plugins.guard import guarded_heuristic, guarded_method

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(StrEnum):
    """What a solver promises, and what it works on."""

    EXACT = "exact"
    """A labelling problem; its bounds are proofs."""
    APPROXIMATE = "approximate"
    """A labelling problem, without proof."""
    GRAPH = "graph"
    """A graph, without proof."""


@dataclass(frozen=True, eq=False)
class Solver:
    """A solver by name.

    Parameters
    ----------
    name, kind
        Its name and kind.
    call
        ``(problem, limits, start) -> Result``, or for kind ``graph`` ``(graph, limits, given,
        places) -> origins``.
    own
        Whether it is a user's.
    """

    name: str
    kind: Kind
    call: Callable[..., Any]
    own: bool = False


GROUPS = {"layoutopt.solvers": "solver", "layoutopt.heuristics": "heuristic"}
"""Groups of entry points, and what their members are called in errors."""

ALL = "all"
"""What commands take for every built-in solver, so that no solver is called so."""

_registered: dict[str, Solver] = {}


def built_in() -> tuple[str, ...]:
    """Return the names of this package's own solvers: exact ones, then heuristics."""
    return *METHODS, *APPROXIMATE, *HEURISTICS


def solver(name: str, *, exact: bool = False) -> Callable[[Function], Function]:
    """Register a function as a solver of labelling problems, for as long as Python runs.

    ``(problem, limits, start) -> Result``; see :class:`~layoutopt.Labelling`,
    :class:`~layoutopt.Limits` and :class:`~layoutopt.Result`.  Used as a decorator; a later one of
    the same name replaces it.

    Parameters
    ----------
    name
        What :func:`~layoutopt.unwind` calls it.
    exact
        Whether its bounds are proofs.  Bounds of other solvers are left out.  The function gets an
        attribute of this name, by which a package's entry point tells the same.

    Raises
    ------
    InputError
        If the name is taken by a built-in solver.
    """
    _check_name(name)

    def register(function: Function) -> Function:
        with suppress(AttributeError):  # methods have none, and are no entry points either
            function.exact = exact  # type: ignore[attr-defined]
        _registered[name] = _solver_of(name, function, exact=exact)
        return function

    return register


def heuristic(name: str) -> Callable[[Function], Function]:
    """Register a function as a heuristic on graphs, for as long as Python runs.

    ``(graph, limits, given, places) -> origins``; ``docs/solvers.md`` tells what these are.  Used
    as a decorator; a later one of the same name replaces it.

    Parameters
    ----------
    name
        What :func:`~layoutopt.unwind` calls it.

    Raises
    ------
    InputError
        If the name is taken by a built-in solver.
    """
    _check_name(name)

    def register(function: Function) -> Function:
        _registered[name] = _heuristic_of(name, function)
        return function

    return register


def names() -> tuple[str, ...]:
    """Return all names that :func:`find` knows, users' own last; nothing is loaded."""
    own = {*_registered, *(entry.name for entry in _entries()[0])}
    return *built_in(), *sorted(own - {*built_in()})


def find(name: str) -> Solver:
    """Return a solver by its name.

    Raises
    ------
    InputError
        If there is none, or a package's cannot be loaded.
    """
    for kind, table in ((Kind.EXACT, METHODS), (Kind.APPROXIMATE, APPROXIMATE)):
        if name in table:
            return Solver(name, kind, table[name])
    if name in HEURISTICS:
        return Solver(name, Kind.GRAPH, HEURISTICS[name])
    if name in _registered:
        return _registered[name]
    entries, unreadable = _entries()
    found = [entry for entry in entries if entry.name == name]
    if not found:
        more = f"; not readable: what {', '.join(unreadable)} offers" if unreadable else ""
        raise InputError(f"unknown solver {name!r}; known: {', '.join(names())}{more}")
    if len(found) > 1:
        offered = ", ".join(f"{_package(entry)} ({entry.group})" for entry in found)
        raise InputError(f"solver {name!r} is offered more than once: by {offered}")
    return _loaded(found[0])


def _loaded(entry: EntryPoint) -> Solver:
    """Load the solver of an installed package."""
    what = f"{GROUPS[entry.group]} {entry.name!r} of package {_package(entry)}"
    try:
        call = entry.load()
    except (Exception, SystemExit) as error:
        raise InputError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(call):
        raise InputError(f"{what} is no function: {entry.value} is of type {type(call).__name__}")
    if GROUPS[entry.group] == "heuristic":
        return _heuristic_of(entry.name, call)
    return _solver_of(entry.name, call, exact=getattr(call, "exact", False) is True)


def _solver_of(name: str, call: Callable[..., Any], *, exact: bool) -> Solver:
    kind = Kind.EXACT if exact else Kind.APPROXIMATE
    return Solver(name, kind, guarded_method(name, call, exact=exact), own=True)


def _heuristic_of(name: str, call: Callable[..., Any]) -> Solver:
    return Solver(name, Kind.GRAPH, guarded_heuristic(name, call), own=True)


def _entries() -> tuple[list[EntryPoint], list[str]]:
    """Return what installed packages offer, and the packages whose entry points are malformed."""
    found: dict[str, list[EntryPoint]] = {}
    unreadable = []
    for package in distributions():
        name = "a package without a name"
        try:
            name = str(package.name)
            own = [entry for entry in package.entry_points if entry.group in GROUPS]
        except Exception:
            unreadable.append(name)
            continue
        found.setdefault(name, own)  # the first one on the path is the one that is imported
    return [entry for own in found.values() for entry in own], unreadable


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name or name.split() != [name]:
        raise InputError(f"a solver's name must be a text without spaces, got {name!r}")
    if name in (ALL, *built_in()):
        taken = ", ".join((*built_in(), ALL))
        raise InputError(f"the name {name!r} is taken; so are {taken}")
