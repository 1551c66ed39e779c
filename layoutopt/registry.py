"""Solvers by name.

Names are looked up among built-in solvers, then those registered in Python, then the entry points
``layoutopt.solvers`` and ``layoutopt.heuristics`` of installed packages.  A solver is loaded at
its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from layoutopt.base.entries import ENTRIES, Entry, Takes, built_in, load
from layoutopt.base.errors import InputError, SolverError
from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.numbers import unique
from layoutopt.base.result import Result
from layoutopt.graphs.locations import FixedElements, Origins
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.greedy0 import Elements, Heuristic
from layoutopt.network.problem import IntArray, Labelling, Method, split

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def guarded_method(name: str, call: Callable[..., Any], *, exact: bool) -> Method:
    """Wrap a user's solver of labelling problems so that all its results are checked.

    Bounds are dropped if it is not exact.  Faults raise SolverError, which names the solver.
    """

    def solve(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
        with _blamed(name, limits):
            found = call(_read_only(problem), limits, None if start is None else start.copy())
            fault = _fault(problem, found)
        if fault:
            raise SolverError(f"solver {name!r} {fault}")
        labels = None
        if found.labelling is not None:  # labels absent from a component are fresh there
            parts = split(replace(problem, precedence=None))
            labels = parts.join(parts.cut(np.asarray(found.labelling).astype(np.int64)))
        value = None if labels is None else problem.value(labels)
        bound = None
        if exact and found.bound is not None:
            bound = int(found.bound)
            _hold(name, problem, limits, bound, (labels, start))
        return Result(objective=value, bound=bound, labelling=labels, stopped=found.stopped)

    return solve


def guarded_heuristic(name: str, call: Callable[..., Any]) -> Heuristic:
    """Wrap a user's heuristic on graphs as :func:`guarded_method` wraps a solver."""

    def choose(
        graph: GraphStore, limits: Limits, given: FixedElements, places: Elements
    ) -> Origins:
        before = graph.copy()
        with _blamed(name, limits):
            found = call(graph, limits, given, places)
            fault = _origins_fault(graph, given, places, found)
        if before != graph or before.shapes != graph.shapes:
            fault = "must not change the graph"
        if fault:
            raise SolverError(f"solver {name!r} {fault}")
        return {t: _int64(found[t]) for t in _sinks(graph)}

    return choose


def _int64(parts: Any) -> tuple[IntArray, IntArray]:
    tensors, elements = (np.asarray(part).astype(np.int64) for part in parts)
    return tensors, elements


def _sinks(graph: GraphStore) -> list[int]:
    return [sink.index for sink in graph.sinks()]


def _origins_fault(graph: GraphStore, given: FixedElements, places: Elements, found: Any) -> str:
    """Return the first fault of the origins of sinks, or an empty string."""
    if not isinstance(found, dict) or set(found) != {*_sinks(graph)}:
        return f"must return a dict with the numbers of all sinks as keys, got {_described(found)}"
    for t in _sinks(graph):
        sink, shape = f"sink {graph.tensor_name(t)!r}", (places.count(t),)
        tensors, elements = (np.asarray(part) for part in found[t])
        for part in (tensors, elements):
            if part.dtype.kind not in "iu" or part.shape != shape:
                got = f"{part.dtype} of shape {part.shape}"
                return f"must give {sink} two arrays of integers of shape {shape}, got {got}"
        tensors, elements = _int64((tensors, elements))
        for root in unique(tensors).tolist():
            if not 0 <= root < len(graph.shapes):
                return f"gives {sink} locations of tensor number {root}, which does not exist"
            if graph.ops[graph.producers[root]].kind is Kind.VIEW:
                return f"gives {sink} locations of {graph.tensor_name(root)!r}, a view"
            taken = elements[tensors == root]
            if not (taken.min() >= 0 and taken.max() < places.count(root)):
                return f"gives {sink} locations outside {graph.tensor_name(root)!r}"
        kept = given.placed(t, (tensors, elements))
        if not (np.array_equal(kept[0], tensors) and np.array_equal(kept[1], elements)):
            return f"moves elements of {sink} whose locations are fixed"
    return ""


@contextmanager
def _blamed(name: str, limits: Limits) -> Iterator[None]:
    """Turn errors of a user's function, except timeouts and MemoryError, into SolverError."""
    try:
        yield
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, TimeoutError) and limits.over:
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise SolverError(f"solver {name!r} failed: {reason}") from error


def _read_only(thing: Any) -> Any:
    """Return an array, or a dataclass with arrays, of which none can be written."""
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {entry.name: _read_only(getattr(thing, entry.name)) for entry in fields(thing)}
        return replace(thing, **parts)
    if not isinstance(thing, np.ndarray):
        return thing
    view = thing.view()
    view.flags.writeable = False
    return view


def _hold(
    name: str, problem: Labelling, limits: Limits, bound: int, known: tuple[IntArray | None, ...]
) -> None:
    """Refuse a bound below the value of a known labelling, improved by local search."""
    from layoutopt.network.heuristics.frame import allowed

    fresh = problem.labels + np.arange(problem.nodes)
    legal = (labels for labels in known if labels is not None and allowed(problem, labels))
    best = max((fresh, *legal), key=problem.value)
    refined = load("refined", Takes.LABELLING)(problem, limits.silent(), best)
    value = max(problem.value(best), int(refined.objective or 0))
    if value > bound:
        raise SolverError(f"solver {name!r} claims the bound {bound}, but {value} is attainable")


def _fault(problem: Labelling, found: Any) -> str:
    if not isinstance(found, Result):
        return f"must return a layoutopt.Result, got {_described(found)}"
    if found.infeasible:
        return "claims infeasibility, but fresh labels are always feasible"
    stopped: Any = found.stopped
    if not isinstance(stopped, Stopped):
        return f"must give stopped as a layoutopt.Stopped, got {_described(stopped)}"
    for what, number in (("objective", found.objective), ("bound", found.bound)):
        if number is not None and not _whole(number):
            return f"must give an integer as {what}, got {_described(number)}"
    if found.labelling is None:
        return "" if found.objective is None else "gives an objective without a labelling"
    labels, count = np.asarray(found.labelling), problem.labels + problem.nodes
    if labels.dtype.kind not in "iu" or labels.shape != (problem.nodes,):
        got = f"{labels.dtype} of shape {labels.shape}"
        return f"must give labels as integers of shape ({problem.nodes},), got {got}"
    if problem.nodes and not (labels.min() >= 0 and labels.max() < count):
        return f"must give labels in 0..{count - 1}, got {labels.min()}..{labels.max()}"
    from layoutopt.network.heuristics.frame import allowed

    labels = labels.astype(np.int64)
    if not allowed(problem, labels):
        return "gives labels that are banned or violate barrier order"
    value = problem.value(labels)
    if found.objective is not None and found.objective != value:
        return f"claims the objective {found.objective}, but its labelling has {value}"
    return ""


def _whole(number: Any) -> bool:
    try:
        return bool(index(number) == number)
    except TypeError:
        return False


def _described(thing: Any) -> str:
    return f"{str(thing)[:40]!r} of type {type(thing).__name__}"


Function = TypeVar("Function", bound=Callable[..., Any])


HEAVY = (
    "layoutopt.unwinding",
    "layoutopt.certify.unwinding",
    "layoutopt.lowering.heuristics",
    "layoutopt.lowering.classes.kinds",
    "layoutopt.machine.simulated",
    "layoutopt.machine.whatif",
    "networkx",
    "scipy.optimize",
    "scipy.sparse.csgraph",
)
"""Modules that are imported lazily."""

ORTOOLS = (
    "ortools.graph.python.max_flow",
    "ortools.graph.python.min_cost_flow",
    "ortools.sat.python.cp_model",
)
"""Lazily imported modules of OR-Tools."""

GROUPS = {"layoutopt.solvers": "solver", "layoutopt.heuristics": "heuristic"}
"""Groups of entry points, and the word for their members in errors."""

ALL = "all"  # stands for every built-in solver in commands; not allowed as a solver's name

_registered: dict[str, Entry] = {}


def load_all() -> None:
    """Import all lazily imported modules, before limits of time or memory apply."""
    for module in HEAVY:
        import_module(module)
    with suppress(ImportError):
        for module in ORTOOLS:
            import_module(module)
    for entry in ENTRIES.values():
        entry.load()


def solver(name: str, *, exact: bool = False) -> Callable[[Function], Function]:
    """Register a function as a solver of labelling problems in this process; a decorator.

    ``(problem, limits, start) -> Result``; see :class:`~layoutopt.Labelling`,
    :class:`~layoutopt.Limits` and :class:`~layoutopt.Result`.  A solver registered earlier under
    the same name is replaced.

    Parameters
    ----------
    name
        Name for :func:`~layoutopt.unwind`.
    exact
        Whether its bounds are proved; otherwise they are dropped.  Stored as the attribute
        ``exact`` of the function, which entry points of packages set as well.

    Raises
    ------
    InputError
        If the name is invalid, or that of a built-in solver.
    """
    _check_name(name)

    def register(function: Function) -> Function:
        _check_callable(name, function)
        with suppress(AttributeError, TypeError):  # methods accept no attributes
            function.exact = exact  # type: ignore[attr-defined]
        _registered[name] = _solver_of(name, function, exact=exact)
        return function

    return register


def heuristic(name: str) -> Callable[[Function], Function]:
    """Register a function as a heuristic on graphs in this process; a decorator.

    ``(graph, limits, given, places) -> origins``; see ``docs/solvers.md``.  A solver registered
    earlier under the same name is replaced.

    Parameters
    ----------
    name
        Name for :func:`~layoutopt.unwind`.

    Raises
    ------
    InputError
        If the name is invalid, or that of a built-in solver.
    """
    _check_name(name)

    def register(function: Function) -> Function:
        _check_callable(name, function)
        _registered[name] = _heuristic_of(name, function)
        return function

    return register


def names() -> tuple[str, ...]:
    """Return the names of all solvers, users' own last, without loading them."""
    own = {*_registered, *(entry.name for entry in _entries()[0])}
    return *built_in(), *sorted(own - {*built_in()})


def find(name: str) -> Entry:
    """Return a solver by its name."""
    known = built_in() | _registered
    if isinstance(name, str) and name in known:
        return known[name]
    offers, unreadable = _entries()
    found = [entry for entry in offers if entry.name == name]
    if not found:
        more = f"; entry points not readable: {', '.join(unreadable)}" if unreadable else ""
        raise InputError(f"unknown solver {name!r}; known: {', '.join(names())}{more}")
    if len(found) > 1:
        offered = ", ".join(f"{_package(entry)} ({entry.group})" for entry in found)
        raise InputError(f"solver {name!r} is ambiguous: it is defined by {offered}")
    return _loaded(found[0])


def _loaded(entry: EntryPoint) -> Entry:
    what = f"{GROUPS[entry.group]} {entry.name!r} of package {_package(entry)}"
    try:
        call = entry.load()
    except (Exception, SystemExit) as error:
        raise InputError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(call):
        raise InputError(f"{what} is not callable: {entry.value} is a {type(call).__name__}")
    if GROUPS[entry.group] == "heuristic":
        return _heuristic_of(entry.name, call)
    return _solver_of(entry.name, call, exact=bool(getattr(call, "exact", False)))


def _solver_of(name: str, call: Callable[..., Any], *, exact: bool) -> Entry:
    guarded = guarded_method(name, call, exact=exact)
    return Entry(name, Takes.LABELLING, exact, guarded, own=True)


def _heuristic_of(name: str, call: Callable[..., Any]) -> Entry:
    return Entry(name, Takes.GRAPH, proves=False, place=guarded_heuristic(name, call), own=True)


def _entries() -> tuple[list[EntryPoint], list[str]]:
    """Return the entry points of installed packages, and packages with malformed ones."""
    from importlib.metadata import distributions

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
        found.setdefault(name, own)  # the first on the path is imported
    return [entry for own in found.values() for entry in own], unreadable


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _check_callable(name: str, function: Any) -> None:
    if not callable(function):
        raise InputError(f"solver {name!r} must be a function, not {type(function).__name__}")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name or name.split() != [name]:
        raise InputError(f"a solver's name must be a nonempty string without spaces, got {name!r}")
    if name in (ALL, *built_in()):
        taken = ", ".join((*built_in(), ALL))
        raise InputError(f"the solver name {name!r} is reserved; reserved: {taken}")
