"""Conversion of ONNX networks with provably fewest layout transforms."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutopt.base.deadline import SECURED_ENDS, grace, run_with_timeout
from layoutopt.base.errors import InputError, OptionError, SizeError
from layoutopt.base.limits import Limits, Progress, Stopped, callbacks_raise, interruptible, limited
from layoutopt.conversion.backends import backend_named
from layoutopt.conversion.convert import SOLVERS, convert_graph, unconverted
from layoutopt.conversion.cost_table import NO_TIMES, OpCosts, measured, parse_objective, read_costs
from layoutopt.conversion.desired import Desired, parse_desired
from layoutopt.conversion.graph import ConversionGraph, network_hash
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.result import NO_TRANSFORMS, Conversion, PhaseTimes, Tally
from layoutopt.conversion.rules.op import Op
from layoutopt.onnx.protobuf import LoadedModel, all_nodes, copied, load, loaded
from layoutopt.onnx.result import ConversionResult, describe
from layoutopt.onnx.running import NotRun, Outputs, tolerance
from layoutopt.onnx.simplify import SimplifiedModel, simplified
from layoutopt.onnx.source import OnnxSource, read_model
from layoutopt.onnx.transposes import given_transposes, peer_transposes
from layoutopt.onnx.types import declare_outputs, open_sizes, without_declared
from layoutopt.onnx.validate import as_runtimes_read
from layoutopt.onnx.verifying import Attempt, Found, Unsound, fault, soundest
from layoutopt.onnx.write import write_model

if TYPE_CHECKING:
    from layoutopt.onnx.source import Model

OBJECTIVES = ("count,changed,bytes", "time,count")
"""What is minimised by default, without and with measured times."""

PHASES = ("read", "solve", "write", "check", "heuristics", "peers")

DEFECT = "a defect of layoutopt, not of the network; please report it"

KEPT = "the given network is kept"

MOST_NOTES = 8
"""Largest number of ops named in a note."""


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
    """Convert an ONNX network to an equivalent one with provably fewest layout transforms.

    Parameters
    ----------
    model
        The network, or its file.  It is not changed.
    layout, padding, backend
        Required layouts of ops, such as ``"Conv=NHWC,HWIO;default=NHWC"``
        (:func:`~layoutopt.conversion.desired.parse_desired`), and whether channels may be padded
        for them; or a backend's name or requirements.  By default, ops keep their layouts.
    costs
        Durations of ops in each layout and of transforms: a table, or its file
        (:func:`~layoutopt.conversion.cost_table.read_costs`).  Ops in it run in one of its layouts.
    objective
        ``"count"`` of transforms, ops ``"changed"`` although they compute along axes, ``"bytes"``
        moved by transforms, ``"time"`` in femtoseconds by ``costs``; or several in order, with
        commas.  Default: ``"count,changed,bytes"``, with costs ``"time,count"``.
    solver
        ``"auto"``, or a heuristic (:data:`~layoutopt.conversion.convert.SOLVERS`).
    free_io, microsoft
        Whether the layouts of inputs and outputs may change; whether ops may become FusedMatMul and
        QLinearConv with channels last, which only onnxruntime supports.
    time_limit, seed, progress
        Seconds for the whole call, unlimited by default; random seed; progress callback.
    check, compare, peers
        Whether to run both networks in onnxruntime on the same random inputs, to count the
        transforms left by each heuristic, and the transposes left by other optimisers.

    Raises
    ------
    InputError
        If the network is malformed or cannot be read, or an option is invalid.
    TimeoutError
        If time runs out while the file is read, or before required layouts or those of ``costs``
        are met.  Without either, the given network is returned.
    """
    limits = limited(time_limit, seed=seed, progress=progress)
    table = costs if isinstance(costs, OpCosts | None) else read_costs(costs)
    desired = _desired(layout, padding, backend)
    aim = OBJECTIVES[table is not None] if objective is None else objective
    wanted = _Wanted(desired, table, aim, solver, free_io, microsoft, check, compare, peers)
    return _in_time(model, wanted, limits)


def _in_time(model: Model | str | Path, wanted: _Wanted, limits: Limits) -> ConversionResult:
    """Read and convert a network; if time runs out, return the best network found."""
    last = limits.deadline + grace(limits)
    with callbacks_raise(limits):
        try:
            limits.report("reading")
            read = partial(load, model) if isinstance(model, str | Path) else partial(loaded, model)
            given = run_with_timeout(read, lambda: time.monotonic() >= last)
            call = _Call(given, wanted, limits)
            try:
                return run_with_timeout(
                    call.result, lambda: time.monotonic() >= min(last, call.last)
                )
            except TimeoutError:
                return call.early()
        except InputError as error:
            raise error.located(file=_name(model)) from None
        except TimeoutError:
            why = limits.stopped or Stopped.TIME_LIMIT
            raise TimeoutError(f"{_name(model)}: {why} before a network was found") from None


def _name(model: Model | str | Path) -> str:
    """Return the name of a network's file, or its own."""
    if isinstance(model, str | Path):
        return str(model)
    return str(getattr(getattr(model, "graph", None), "name", ""))


@dataclass(frozen=True)
class _Wanted:
    """Arguments of :func:`convert`."""

    desired: Requirements | None
    costs: OpCosts | None
    objective: str
    solver: str
    free_io: bool
    microsoft: bool
    check: bool
    compare: bool
    peers: bool

    @property
    def objectives(self) -> tuple[str, ...]:
        """What is minimised, in order."""
        return parse_objective(self.objective, self.costs is not None)

    @property
    def asks(self) -> bool:
        """Whether layouts or costs are required."""
        return self.desired is not None or self.costs is not None

    def better(self, given: Tally, found: Conversion) -> bool:
        """Return whether a given network is better than a conversion, if no layout is required.

        A given network need not have the layouts that are required, nor known times of ops.
        """
        return not self.asks and measured(given, found.objectives, NO_TIMES) < found.objective


class _Call:
    """One call of :func:`convert` on a network that was read."""

    def __init__(self, given: LoadedModel, wanted: _Wanted, limits: Limits) -> None:
        model, self.notes = as_runtimes_read(given.model)
        self.given, self.wanted, self.limits = given._replace(model=model), wanted, limits
        self.times = PhaseTimes(limits.started, PHASES)
        self.trial: _Trial | None = None

    @property
    def last(self) -> float:
        """The ``time.monotonic()`` at which Ctrl-C ends what follows a conversion."""
        secured = self.trial is not None and self.trial.sound is not None
        return self.limits.interrupt.at + SECURED_ENDS if secured else math.inf

    def result(self) -> ConversionResult:
        """Convert the network, and run the requested comparisons."""
        self.limits.report("simplifying")
        try:
            ready = _ready(self.given.model)
        except (InputError, MemoryError, TimeoutError):
            raise
        except Exception as error:  # a defect of this package; the user keeps the network
            why = f"{KEPT}: reading it failed ({type(error).__name__}: {error}), {DEFECT}"
            return self._kept(why, Stopped.FINISHED)
        with interruptible(self.limits):
            return self._compared(ready)

    def _compared(self, ready: _Ready) -> ConversionResult:
        trial, attempt, found = self._converted(ready)
        if self.wanted.better(trial.given_cost(attempt.conversion), attempt.conversion):
            # not optimal, as nodes were copied for readers
            trial, attempt, found = self._converted(_ready(self.given.model, copies=False))
        compare = self.wanted.compare and found.attempt is not None
        heuristics = _heuristics(trial, self.wanted, found) if compare else {}
        self.times.end("heuristics")
        others: dict[str, int | None] = {}
        if self.wanted.peers:
            self.limits.report("asking other optimisers")
            others, unknown = peer_transposes(self.given.model)
            trial.notes += unknown
        self.times.end("peers")
        return self._whole(trial, attempt, heuristics, others)

    def _converted(self, ready: _Ready) -> tuple[_Trial, Attempt, Found]:
        self.times.end("read")
        self.trial = trial = _Trial(self, ready)
        names = {node.name for node in all_nodes(self.given.model.graph)}
        names |= {op.name for op in trial.source.graph.ops}
        for asked in (self.wanted.desired, self.wanted.costs):
            if isinstance(asked, Desired | OpCosts):
                asked.refuse_unknown(names)
        found = soundest(trial.source.ops, trial.attempt, lambda: self.limits.over)
        attempt = found.attempt or trial.unconverted(found.error)
        trial.sound = attempt
        trial.notes = [*_notes(found, trial.source.ops, self.wanted.asks), *trial.notes]
        trial.partial = ready.unsimplified or found.error is not None
        trial.unmet = self.wanted.asks and found.error is not None
        if found.attempt is None:
            trial.removed = NO_TRANSFORMS
        return trial, attempt, found

    def early(self) -> ConversionResult:
        """Return the best network found when time runs out.

        Raises ``TimeoutError`` if there is none, and layouts or costs are required.
        """
        trial = self.trial
        if trial is not None and trial.sound is not None:
            why = "interrupted" if self.limits.interrupt.is_set() else "time ran out"
            trial.notes.append(f"{why} before the requested comparisons")
            return self._whole(trial, trial.sound, {}, {})
        if self.wanted.asks:
            raise TimeoutError
        why = "time ran out before another network was found; the given one is kept"
        return self._kept(why, self.limits.stopped or Stopped.TIME_LIMIT)

    def _kept(self, why: str, stopped: Stopped) -> ConversionResult:
        """Return the given network, unread: durations of its ops are unknown."""
        names = tuple(n for n in self.wanted.objectives if n != "time") or ("count",)
        tallied, unknown = given_transposes(self.given.model)
        kept = unconverted(
            ConversionGraph(_name(self.given.model)), names, None, why, tallied, stopped
        )
        sizes = f"bytes exclude {unknown} transposes whose shapes are not declared"
        return self._result(
            Attempt(kept, copied(self.given.model), None),
            notes=(why, *([sizes] if unknown else [])),
            partial=True,
            unmet=self.wanted.asks,
        )

    def _whole(
        self,
        trial: _Trial,
        attempt: Attempt,
        heuristics: dict[str, Tally],
        peers: dict[str, int | None],
    ) -> ConversionResult:
        return self._result(
            attempt,
            opaque=dict(Counter(op.type for op in trial.source.graph.opaque())),
            heuristics=heuristics,
            peers=peers,
            instance_hash=network_hash(trial.source.graph),
            removed=trial.removed,
            notes=(*trial.plain.notes, *trial.notes),
            partial=trial.partial,
            unmet=trial.unmet,
        )

    def _result(self, attempt: Attempt, notes: tuple[str, ...], **facts: Any) -> ConversionResult:
        """Return a result; ``facts`` are further fields of it."""
        result = ConversionResult(
            model=attempt.model,
            conversion=attempt.conversion,
            difference=attempt.difference,
            seconds={**self.times.seconds, "total": time.monotonic() - self.limits.started},
            seed=self.limits.seed,
            source=self.given,
            notes=(*self.notes, *notes),
            **facts,
        )
        describe(result)
        return result


@dataclass(frozen=True)
class _Ready:
    """A network that was read, with valid declared shapes only, and simplified where possible."""

    model: Model
    plain: SimplifiedModel
    source: OnnxSource
    unsimplified: bool = False


def _ready(model: Model, *, copies: bool = True) -> _Ready:
    """Simplify and read a network, ignoring declared shapes if they are all that is invalid.

    Shapes of results of custom ops, and shapes known only at run time, cannot be inferred;
    runtimes ignore their declarations.
    """
    try:
        return _simplified_or_not(model, copies)
    except InputError as error:
        for unknown in (True, False):
            other, types = without_declared(model, unknown)
            if not types:
                continue
            try:
                found = _simplified_or_not(other, copies)
            except InputError:
                continue
            names = ", ".join(types[:MOST_NOTES])
            note = f"declared shapes of results of {names} are wrong ({error.reason})"
            return replace(found, plain=replace(found.plain, notes=(note, *found.plain.notes)))
        raise


def _simplified_or_not(model: Model, copies: bool) -> _Ready:
    """Read a network after simplifying it, or as given if simplification fails."""
    try:
        plain = simplified(model, copies=copies)
        return _Ready(model, plain, read_model(plain.model, plain.weights))
    except (InputError, MemoryError, TimeoutError):
        raise
    except Exception as error:  # a defect of this package; the user keeps the network
        note = (
            f"the network is converted without being simplified ({type(error).__name__}: {error}), "
            f"{DEFECT}. Fewer transforms may be possible, and the bound is 0"
        )
    plain = SimplifiedModel(model, {}, NO_TRANSFORMS, (note,))
    return _Ready(model, plain, read_model(model), unsimplified=True)


class _Trial:
    """Attempts to convert one network."""

    def __init__(self, call: _Call, ready: _Ready) -> None:
        self.given, self.wanted, self.limits = call.given.model, call.wanted, call.limits
        self.times = call.times
        self.model, self.source, self.plain = ready.model, ready.source, ready.plain
        self.removed = ready.plain.removed
        self.sound: Attempt | None = None  # returned if time runs out
        self.partial = ready.unsimplified
        self.unmet = False
        self.notes: list[str] = []

    def attempt(self, written: frozenset[str]) -> Attempt:
        """Convert the network, with some ops kept as they are written.

        Raises ``Unsound`` if the conversion fails, or its network is invalid or computes otherwise.
        """
        attempt = self._rewritten(written)
        if not written:
            self.sound = attempt
        if not self.wanted.check:
            return attempt
        self.limits.report("running both networks")
        if (before := self._before) is None:
            return attempt
        found = attempt.conversion
        try:
            difference = before.difference(attempt.model, found.freed)
            why = f"outputs differ by {difference:.2g}"
        except InputError as error:
            difference, why = math.inf, error.reason
        except (MemoryError, TimeoutError):
            raise
        except Exception as error:  # a defect of this package; the user keeps the network
            difference, why = math.inf, f"{type(error).__name__}: {error}"
        self.times.end("check")
        if difference > tolerance(self.given):
            self.sound = None
            raise Unsound(why, found)
        return replace(attempt, difference=difference)

    def _rewritten(self, written: frozenset[str]) -> Attempt:
        """Return the network rewritten; raises ``Unsound`` if that fails, or it is invalid."""
        found: Conversion | None = None
        try:
            self.limits.report("choosing layouts")
            found = self.conversion(self.wanted.solver, written)
            self.times.end("solve")
            self.limits.report("writing")
            new = write_model(self.source, found)
            known = {name: tensor.shape for name, tensor in found.graph.tensors.items()}
            declare_outputs(new, self.given, found.freed, known)
            why = fault(self.given, new)
            if why:
                open_sizes((*new.graph.value_info, *new.graph.output), known)
                why = fault(self.given, new)
            self.times.end("write")
        except (MemoryError, TimeoutError, SizeError, OptionError):
            raise
        except InputError as error:
            raise Unsound(error.reason, found) from error
        except Exception as error:  # a defect of this package; the user keeps the network
            raise Unsound(f"{type(error).__name__}: {error}", found) from error
        if why:
            raise Unsound(why, found)
        return Attempt(found, new, None)

    def conversion(self, solver: str, written: Collection[str]) -> Conversion:
        """Return the conversion of the network's graph by a solver."""
        wanted = self.wanted
        return convert_graph(
            self.source.graph,
            desired=wanted.desired,
            costs=wanted.costs,
            objective=wanted.objective,
            solver=solver,
            free_io=wanted.free_io,
            microsoft=wanted.microsoft,
            written=written,
            limits=self.limits,
        )

    def unconverted(self, error: Unsound | None) -> Attempt:
        """Return the given network."""
        assert error is not None
        wanted = self.wanted
        found = unconverted(read_model(self.model).graph, wanted.objectives, wanted.costs, KEPT)
        self.notes.append(f"{KEPT}: the converted one is invalid ({error.reason}), {DEFECT}")
        return Attempt(found, copied(self.given), None)

    def given_cost(self, found: Conversion) -> Tally:
        """Return the cost of the transforms of the network that a conversion was given."""
        return found.before + self.removed

    @cached_property
    def _before(self) -> Outputs | None:
        """The outputs of the given network; None if it does not run."""
        try:
            found = Outputs(self.given, self.limits.seed)
        except NotRun as error:
            self.notes.append(f"outputs of the given network could not be computed: {error.reason}")
            return None
        if found.random:
            names = ", ".join(map(repr, found.random))
            self.notes.append(f"outputs that depend on random numbers are not compared: {names}")
        return found


def _notes(found: Found, ops: Mapping[str, Op], asked: bool) -> Iterator[str]:
    """Yield notes on ops, given by name, that could not be converted.

    ``asked`` tells whether layouts are required.
    """
    unmet = "; layouts required of it are not met" if asked else ""
    for name, why in list(found.written.items())[:MOST_NOTES]:
        op = ops[name]
        yield (
            f"{op} is kept as written, as converting it makes the network invalid ({why}), "
            f"{DEFECT}{unmet}. Fewer transforms may be possible, and the bound is 0"
        )
    if len(found.written) > MOST_NOTES:
        yield f"so do {len(found.written) - MOST_NOTES} other ops"


def _heuristics(trial: _Trial, wanted: _Wanted, sound: Found) -> dict[str, Tally]:
    """Return the costs of the transforms left by each heuristic, or given if these are lower."""
    found = {}
    for name in SOLVERS[1:]:
        one = trial.conversion(name, sound.written)
        before = trial.given_cost(one)
        found[name] = before if wanted.better(before, one) else one.after
    return found


def _desired(
    layout: str | None, padding: bool, backend: str | Requirements | None
) -> Requirements | None:
    if padding and layout is None:
        raise InputError("padding requires layout; backends have their own rules for padding")
    if layout is not None and backend is not None:
        raise InputError("give layout or backend, not both")
    if layout is not None and not (isinstance(layout, str) and layout.strip("; \n")):
        raise InputError(f"layout must be text such as Conv=NHWC,HWIO, not {layout!r}")
    if layout is not None:
        return parse_desired(layout, padding)
    return backend_named(backend) if isinstance(backend, str) else backend
