"""What users' solvers return, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np

from layoutopt.approximate.frame import allowed
from layoutopt.approximate.methods import APPROXIMATE
from layoutopt.choosing import Heuristic
from layoutopt.errors import SolverError
from layoutopt.exact.methods import Method
from layoutopt.graphs.given import Given
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.op import Kind
from layoutopt.graphs.store import Store
from layoutopt.heuristics.places import Places
from layoutopt.integers import unique
from layoutopt.limits import Limits
from layoutopt.presolve.components import split
from layoutopt.problem import IntArray, Labelling
from layoutopt.result import Result, Stopped


def guarded_method(name: str, call: Callable[..., Any], *, exact: bool) -> Method:
    """Return a user's solver of labelling problems with all its answers checked.

    Parameters
    ----------
    exact
        Whether its bounds are proofs; those of others are left out.

    Returns
    -------
    Method
        It raises a SolverError of one line, which names the solver, if the function fails or
        returns what is no answer to the problem.
    """

    def solve(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
        with _blamed(name, limits):
            found = call(_read_only(problem), limits, None if start is None else start.copy())
            fault = _fault(problem, found)
        if fault:
            raise SolverError(f"solver {name!r} {fault}")
        labels = None
        if found.labelling is not None:  # labels that a component does not know are fresh there
            parts = split(replace(problem, precedence=None))
            labels = parts.join(parts.cut(np.asarray(found.labelling)))
        value = None if labels is None else problem.value(labels)
        bound = None
        if exact and found.bound is not None:
            bound = int(found.bound)
            _hold(name, problem, limits, bound, (labels, start))
        return Result(objective=value, bound=bound, labelling=labels, stopped=found.stopped)

    return solve


def guarded_heuristic(name: str, call: Callable[..., Any]) -> Heuristic:
    """Return a user's heuristic on graphs with its answers checked.

    Returns
    -------
    Heuristic
        It raises as :func:`guarded_method` does.
    """

    def choose(graph: Store, limits: Limits, given: Given, places: Places) -> Origins:
        before = [*graph.ops], [*graph.pairs], [*graph.shapes]
        with _blamed(name, limits):
            found = call(graph, limits, given, places)
            fault = _origins_fault(graph, given, places, found)
        if before != (graph.ops, graph.pairs, graph.shapes):
            fault = "must not change the graph"
        if fault:
            raise SolverError(f"solver {name!r} {fault}")
        return {t: (np.asarray(found[t][0]), np.asarray(found[t][1])) for t in _sinks(graph)}

    return choose


def _sinks(graph: Store) -> list[int]:
    return [sink.index for sink in graph.sinks()]


def _origins_fault(graph: Store, given: Given, places: Places, found: Any) -> str:
    """Return what is wrong with the origins of sinks, if anything."""
    if not isinstance(found, dict) or set(found) != {*_sinks(graph)}:
        return f"must return a dict by the numbers of all sinks, got {_described(found)}"
    for t in _sinks(graph):
        sink, shape = f"sink {graph.tensor_name(t)!r}", (places.count(t),)
        tensors, elements = (np.asarray(part) for part in found[t])
        for part in (tensors, elements):
            if part.dtype.kind not in "iu" or part.shape != shape:
                got = f"{part.dtype} in {part.shape}"
                return f"must give {sink} two arrays of integers in shape {shape}, got {got}"
        for root in unique(tensors).tolist():
            if not 0 <= root < len(graph.shapes):
                return f"gives {sink} locations of tensor number {root}, which does not exist"
            if graph.ops[graph.producers[root]].kind is Kind.VIEW:
                return f"gives {sink} locations of {graph.tensor_name(root)!r}, which has none"
            taken = elements[tensors == root]
            if not (taken.min() >= 0 and taken.max() < places.count(root)):
                return f"gives {sink} locations outside {graph.tensor_name(root)!r}"
        kept = given.placed(t, (tensors, elements))
        if not (np.array_equal(kept[0], tensors) and np.array_equal(kept[1], elements)):
            return f"moves elements of {sink} whose locations are given"
    return ""


@contextmanager
def _blamed(name: str, limits: Limits) -> Iterator[None]:
    """Turn whatever a user's function raises into one line that names it.

    Running out of time in time, or out of memory, is nobody's fault.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, TimeoutError) and limits.over:
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise SolverError(f"solver {name!r} failed: {reason}") from error


def _read_only(problem: Labelling) -> Labelling:
    """Return a problem whose arrays cannot be written to."""
    order = problem.precedence
    if order is not None:
        order = replace(
            order,
            arcs=_frozen(order.arcs),
            label_barrier=_frozen(order.label_barrier),
            node_readers=_frozen(order.node_readers),
        )
    return replace(
        problem,
        edges=_frozen(problem.edges),
        weights=_frozen(problem.weights),
        reward_at=_frozen(problem.reward_at),
        rewards=_frozen(problem.rewards),
        banned=_frozen(problem.banned),
        precedence=order,
    )


def _frozen(array: IntArray) -> IntArray:
    view = array.view()
    view.flags.writeable = False
    return view


def _hold(
    name: str, problem: Labelling, limits: Limits, bound: int, known: tuple[IntArray | None, ...]
) -> None:
    """Refuse a bound that a known labelling exceeds, or what local search makes of one."""
    fresh = problem.labels + np.arange(problem.nodes)
    legal = (labels for labels in known if labels is not None and allowed(problem, labels))
    best = max((fresh, *legal), key=problem.value)
    refined = APPROXIMATE["refined"](problem, replace(limits, tell=None), best)
    value = max(problem.value(best), int(refined.objective or 0))
    if value > bound:
        raise SolverError(f"solver {name!r} claims the bound {bound}, but {value} can be reached")


def _fault(problem: Labelling, found: Any) -> str:
    """Return what is wrong with a result, if anything."""
    if not isinstance(found, Result):
        return f"must return a layoutopt.Result, got {_described(found)}"
    if found.infeasible:
        return "says that there is no solution, but everything may be fresh"
    stopped: Any = found.stopped
    if not isinstance(stopped, Stopped):
        return f"must say why it stopped by a layoutopt.Stopped, got {_described(stopped)}"
    for what, number in (("objective", found.objective), ("bound", found.bound)):
        if number is not None and not _whole(number):
            return f"must give a whole number as {what}, got {_described(number)}"
    if found.labelling is None:
        return "" if found.objective is None else "gives an objective without a labelling"
    labels, count = np.asarray(found.labelling), problem.labels + problem.nodes
    if labels.dtype.kind not in "iu" or labels.shape != (problem.nodes,):
        shape = f"({problem.nodes},)"
        return (
            f"must give labels as integers in shape {shape}, got {labels.dtype} in {labels.shape}"
        )
    if problem.nodes and not (labels.min() >= 0 and labels.max() < count):
        return f"must give labels of 0..{count - 1}, got {labels.min()}..{labels.max()}"
    if not allowed(problem, labels):
        return "gives labels that are banned, or break barrier order"
    value = problem.value(labels)
    if found.objective is not None and found.objective != value:
        return f"says that its labelling is worth {found.objective}, but that is {value}"
    return ""


def _whole(number: Any) -> bool:
    try:
        return bool(index(number) == number)
    except TypeError:
        return False


def _described(thing: Any) -> str:
    return f"{str(thing)[:40]!r} of type {type(thing).__name__}"
