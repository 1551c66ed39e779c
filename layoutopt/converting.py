"""Rewrite networks with provably fewest layout transforms."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from layoutopt.base.deadline import grace, run_with_timeout
from layoutopt.base.errors import InputError, SizeError
from layoutopt.base.limits import Limits, Progress, interruptible, limited
from layoutopt.base.result import Stopped
from layoutopt.conversion.backends import backend_named
from layoutopt.conversion.convert import SOLVERS, convert_graph, unconverted
from layoutopt.conversion.cost_table import OpCosts, read_costs
from layoutopt.conversion.costs import parse_objective
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import network_hash
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.result import Conversion, Tally
from layoutopt.onnx.protobuf import Loaded, copied, load, loaded
from layoutopt.onnx.running import NotRun, Outputs, peer_transposes, tolerance
from layoutopt.rewriting.metadata import describe
from layoutopt.rewriting.read import read_model
from layoutopt.rewriting.result import ConversionResult, whole
from layoutopt.rewriting.simplify import simplified
from layoutopt.rewriting.source import OnnxSource
from layoutopt.rewriting.verifying import Attempt, Found, Key, Unsound, fault, soundest
from layoutopt.rewriting.write import write_model

if TYPE_CHECKING:
    from layoutopt.rewriting.source import Model

NOTHING = Tally(0, 0, 0)

PHASES = ("read", "solve", "write", "check", "heuristics", "peers")

MOST_NOTES = 8
"""So many ops that could not be converted are named."""


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
    microsoft: bool = False,
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
        ``"Conv=NHWC,HWIO;default=NHWC"`` (:func:`~layoutopt.conversion.desired.parse_desired`),
        with or without padding; or the name of a backend or its requirements.
    costs
        What ops take in each layout, and transforms: a table, or its file
        (:func:`~layoutopt.conversion.cost_table.read_costs`).  Ops in it run in one of its layouts.
    objective
        ``"count"`` of transforms, ``"bytes"`` that they move, ``"time"`` by costs, in
        femtoseconds; or two in order.  By default ``"count,bytes"``, or ``"time,count"``.
    solver
        ``"auto"``, or a heuristic (:data:`~layoutopt.conversion.convert.SOLVERS`).
    free_io
        Whether inputs and outputs may come in other layouts.
    microsoft
        Whether products of matrices may become FusedMatMul, an op of onnxruntime alone.
    time_limit, seed, progress
        Seconds for the whole call, none by default; seed; called with what is being done.
    check, compare, peers
        Whether to run both networks in onnxruntime on the same random inputs, to count the
        transforms that each heuristic would leave, and the transposes that other optimisers leave.

    Raises
    ------
    InputError
        If the network is not well-formed or not read, or an option is wrong.
    TimeoutError
        If time runs out before any network can be written.
    """
    limits = limited(time_limit, seed=seed, progress=progress)
    table = read_costs(costs) if isinstance(costs, str | Path) else costs
    aim = objective or ("count,bytes" if table is None else "time,count")
    desired = _desired(layout, padding, backend)
    wanted = _Wanted(desired, table, aim, solver, free_io, microsoft, check, compare, peers)
    return _in_time(model, wanted, limits)


def _in_time(model: Model | str | Path, wanted: _Wanted, limits: Limits) -> ConversionResult:
    """Read a network and convert it, or tell that there is no time for that."""
    try:
        read = partial(load, model) if isinstance(model, str | Path) else partial(loaded, model)
        given = run_with_timeout(read, lambda: limits.left == 0, grace(limits))
        work = partial(_converted, given, wanted, limits)
        return run_with_timeout(work, lambda: limits.left == 0, grace(limits))
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
    microsoft: bool
    check: bool
    compare: bool
    peers: bool


def _converted(given: Loaded, wanted: _Wanted, limits: Limits) -> ConversionResult:
    clock = _Clock(limits.started)
    plain = simplified(given.model)
    source = read_model(plain.model, plain.weights)
    clock.end("read")
    trial = _Trial(given.model, source, wanted, limits, clock)
    found = soundest(trial.ops, trial.attempt, lambda: limits.left == 0)
    attempt = found.attempt or trial.unconverted(found.error)
    heuristics = _heuristics(source, wanted, limits) if wanted.compare else {}
    clock.end("heuristics")
    others = peer_transposes(given.model) if wanted.peers else {}
    clock.end("peers")
    result = ConversionResult(
        model=attempt.model,
        conversions=tuple(attempt.conversions.values()),
        opaque=dict(Counter(op.type for op in source.opaque())),
        difference=attempt.difference,
        heuristics=heuristics,
        peers=others,
        seconds={**clock.seconds, "total": time.monotonic() - limits.started},
        seed=limits.seed,
        instance_hash=network_hash(one.graph for one in attempt.conversions),
        source=given,
        removed=plain.removed if found.attempt else NOTHING,
        notes=(*plain.notes, *_notes(found), *trial.notes),
        partial=found.error is not None,
    )
    describe(result)
    return result


def _conversions(
    source: OnnxSource, wanted: _Wanted, limits: Limits, written: Collection[Key] = ()
) -> dict[OnnxSource, Conversion]:
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
                microsoft=wanted.microsoft,
                written={name for graph, name in written if graph is one},
                limits=limits,
            )
            for one in source.every()
        }


class _Trial:
    """Conversions of one network; the arguments are those of :func:`_converted`."""

    def __init__(
        self, model: Model, source: OnnxSource, wanted: _Wanted, limits: Limits, clock: _Clock
    ) -> None:
        self.model, self.source, self.wanted, self.limits = model, source, wanted, limits
        self.clock = clock
        self.ops = [(one, op.name) for one in source.every() for op in one.graph.ops]
        self.notes: list[str] = []

    def attempt(self, written: frozenset[Key]) -> Attempt:
        """Convert with some ops as they are written.

        Raises
        ------
        Unsound
            If what comes out is not sound, or nothing does.
        """
        before = self._before if self.wanted.check else None
        found: dict[OnnxSource, Conversion] = {}
        difference = None
        try:
            found = _conversions(self.source, self.wanted, self.limits, written)
            self.clock.end("solve")
            new = write_model(self.source, found[self.source], found)
            why = fault(self.model, new)
            self.clock.end("write")
            if before is not None and not why:
                difference = before.difference(new, found[self.source].freed)
                self.clock.end("check")
        except (MemoryError, TimeoutError, SizeError):
            raise
        except InputError as error:
            if self.wanted.desired is not None or self.wanted.costs is not None:
                raise
            raise Unsound(str(error), found) from error
        except Exception as error:  # a defect of this package, which costs a user no network
            raise Unsound(f"{type(error).__name__}: {error}", found) from error
        if difference is not None and difference > tolerance(self.model):
            why = f"outputs differ by {difference:.2g}"
        if why:
            raise Unsound(why, found)
        return Attempt(found, new, difference)

    def unconverted(self, error: Unsound | None) -> Attempt:
        """Return the network as it was given, or raise what a user can mend of it."""
        assert error is not None
        if isinstance(error.__cause__, InputError) and not error.conversions:
            raise error.__cause__
        names = parse_objective(self.wanted.objective, self.wanted.costs is not None)
        why = "the network is kept as it is given"
        found = {
            one: unconverted(one.graph, names, self.wanted.costs, why)
            for one in read_model(self.model).every()
        }
        self.notes.append(f"{why}; rewritten, {error.reason}")
        return Attempt(found, copied(self.model), None)

    @cached_property
    def _before(self) -> Outputs | None:
        """The outputs of the network as it is given; None if it does not run."""
        try:
            found = Outputs(self.model, self.limits.seed)
        except NotRun as error:
            self.notes.append(
                f"outputs could not be compared; of the given network, {error.reason}"
            )
            return None
        if found.random:
            names = ", ".join(map(repr, found.random))
            self.notes.append(f"outputs that depend on random numbers are not compared: {names}")
        return found


def _notes(found: Found) -> Iterator[str]:
    """Yield what a user should know of ops that could not be converted."""
    for (source, name), why in list(found.written.items())[:MOST_NOTES]:
        op = source.ops[name]
        yield (
            f"{op} stays as it is written, as the network would not be sound otherwise ({why}); "
            "so fewer transforms may be possible, and the bound is 0"
        )
    if len(found.written) > MOST_NOTES:
        yield f"so do {len(found.written) - MOST_NOTES} other ops"


class _Clock:
    """Seconds by phase, from a moment on."""

    def __init__(self, begin: float) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._last = begin

    def end(self, phase: str) -> None:
        """Count what has passed since the last phase ended."""
        now = time.monotonic()
        self.seconds[phase] += now - self._last
        self._last = now


def _heuristics(source: OnnxSource, wanted: _Wanted, limits: Limits) -> dict[str, Tally]:
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
