"""Rewrite networks with provably fewest layout transforms."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from layoutopt.alarm import bounded, grace
from layoutopt.conversion.convert import SOLVERS, convert_graph
from layoutopt.conversion.hashes import network_hash
from layoutopt.conversion.result import Conversion, Tally
from layoutopt.errors import InputError, InternalError
from layoutopt.limits import Limits, Progress, interruptible, limited
from layoutopt.requirements.backends import backend_named
from layoutopt.requirements.costs import OpCosts, read_costs
from layoutopt.requirements.desired import parse_desired
from layoutopt.requirements.requirements import Requirements
from layoutopt.result import Stopped
from layoutopt.rewriting.files import Loaded, load, loaded
from layoutopt.rewriting.metadata import describe
from layoutopt.rewriting.read import read_model
from layoutopt.rewriting.result import ConversionResult, whole
from layoutopt.rewriting.running import largest_difference, peer_transposes, tolerance
from layoutopt.rewriting.source import Source
from layoutopt.rewriting.write import write_model

if TYPE_CHECKING:
    from layoutopt.rewriting.source import Model

PHASES = ("read", "solve", "write", "check", "heuristics", "peers")


def convert(
    model: Model | str | Path,
    *,
    layout: str | None = None,
    padding: bool = False,
    backend: str | Requirements | None = None,
    costs: OpCosts | str | Path | None = None,
    objective: str | None = None,
    solver: str = "auto",
    free_io: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
    check: bool = False,
    compare: bool = False,
    peers: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> ConversionResult:
    """Return an equivalent network of ONNX with provably fewest layout transforms.

    Parameters
    ----------
    model
        The network, or its file.  It is not changed.
    layout, padding, backend
        Layouts that ops must run in, by default those in which they are written:
        ``"Conv=NHWC,HWIO;default=NHWC"`` (:func:`~layoutopt.requirements.desired.parse_desired`),
        with or without padding; or the name of a backend or its requirements.
    costs
        What ops take in each layout, and transforms: a table, or its file
        (:func:`~layoutopt.requirements.costs.read_costs`).  Ops in it run in one of its layouts.
    objective
        ``"count"`` of transforms, ``"bytes"`` that they move, ``"time"`` by costs, in
        femtoseconds; or two in order.  By default ``"count,bytes"``, or ``"time,count"``.
    solver
        ``"auto"``, or a heuristic (:data:`~layoutopt.conversion.convert.SOLVERS`).
    free_io
        Whether inputs and outputs may come in other layouts.
    time_limit, seed, progress
        Seconds for the whole call, none by default; seed; called with what is being done.
    check, compare, peers
        Whether to run both networks in onnxruntime on the same random inputs, to count the
        transforms that each heuristic would leave, and the transposes that other optimisers leave.

    Raises
    ------
    InputError
        If the network is not well-formed or not read, or an option is wrong.
    InternalError
        If a check finds that outputs differ.
    TimeoutError
        If time runs out before any network can be written.
    """
    limits = limited(time_limit, seed=seed, progress=progress)
    table = read_costs(costs) if isinstance(costs, str | Path) else costs
    aim = objective or ("count,bytes" if table is None else "time,count")
    desired = _desired(layout, padding, backend)
    wanted = _Wanted(desired, table, aim, solver, free_io, check, compare, peers)
    return _in_time(model, wanted, limits)


def _in_time(model: Model | str | Path, wanted: _Wanted, limits: Limits) -> ConversionResult:
    """Read a network and convert it, or tell that there is no time for that."""
    try:
        read = partial(load, model) if isinstance(model, str | Path) else partial(loaded, model)
        given = bounded(read, lambda: limits.left == 0, grace(limits))
        work = partial(_converted, given, wanted, limits)
        return bounded(work, lambda: limits.left == 0, grace(limits))
    except InputError as error:
        raise error.located(file=_name(model)) from None
    except TimeoutError:
        why = limits.stopped or Stopped.TIME_LIMIT
        raise TimeoutError(f"{_name(model)}: {why} before there is a network to answer") from None


def _name(model: Model | str | Path) -> str:
    """Return the name of a network's file, else its own."""
    if isinstance(model, str | Path):
        return str(model)
    return str(getattr(getattr(model, "graph", None), "name", ""))


@dataclass(frozen=True)
class _Wanted:
    """What a user asks for; the fields are arguments of :func:`convert`."""

    desired: Requirements | None
    costs: OpCosts | None
    objective: str
    solver: str
    free_io: bool
    check: bool
    compare: bool
    peers: bool


def _converted(given: Loaded, wanted: _Wanted, limits: Limits) -> ConversionResult:
    marks = [limits.started]
    source = read_model(given.model)
    marks.append(time.monotonic())
    found = _conversions(source, wanted, limits)
    marks.append(time.monotonic())
    new = write_model(source, found[source], found)
    marks.append(time.monotonic())
    difference = None
    if wanted.check:
        difference = _difference(given.model, new, found[source], limits.seed)
    marks.append(time.monotonic())
    heuristics = _heuristics(source, wanted, limits) if wanted.compare else {}
    marks.append(time.monotonic())
    others = peer_transposes(given.model) if wanted.peers else {}
    marks.append(time.monotonic())
    seconds = {name: b - a for name, (a, b) in zip(PHASES, pairwise(marks), strict=True)}
    result = ConversionResult(
        model=new,
        conversions=tuple(found.values()),
        opaque=dict(Counter(op.type for op in source.opaque())),
        difference=difference,
        heuristics=heuristics,
        peers=others,
        seconds={**seconds, "total": marks[-1] - marks[0]},
        seed=limits.seed,
        instance_hash=network_hash(one.graph for one in found),
        source=given,
    )
    describe(result)
    return result


def _conversions(source: Source, wanted: _Wanted, limits: Limits) -> dict[Source, Conversion]:
    """Return what becomes of a network's graph and of all inside it, the network's own first."""
    with interruptible(limits):
        return {
            one: convert_graph(
                one.graph,
                desired=wanted.desired,
                costs=wanted.costs,
                objective=wanted.objective,
                solver=wanted.solver,
                free_io=wanted.free_io and one is source,
                limits=limits,
            )
            for one in source.every()
        }


def _heuristics(source: Source, wanted: _Wanted, limits: Limits) -> dict[str, Tally]:
    """Return what the transforms cost that each heuristic leaves."""
    found = {}
    for name in SOLVERS[1:]:
        every = _conversions(source, replace(wanted, solver=name), limits)
        found[name] = whole(conversion.after for conversion in every.values())
    return found


def _desired(
    layout: str | None, padding: bool, backend: str | Requirements | None
) -> Requirements | None:
    if padding and layout is None:
        raise InputError("padding is for layouts that are given; a backend pads as it says")
    if layout is not None and backend is not None:
        raise InputError("give layouts or a backend, not both")
    if layout is not None:
        return parse_desired(layout, padding)
    return backend_named(backend) if isinstance(backend, str) else backend


def _difference(before: Model, after: Model, conversion: Conversion, seed: int) -> float:
    """Return how much two networks differ, or say that they are not the same."""
    found = largest_difference(before, after, conversion.freed, seed)
    if found > tolerance(before):
        name = conversion.graph.name
        raise InternalError(f"graph {name!r}: rewritten, its outputs differ by {found:.2g}")
    return found
