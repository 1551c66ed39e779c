"""Results of converted networks, and the metadata that these carry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from layoutopt import __version__
from layoutopt.base.errors import InputError, printable
from layoutopt.base.files import named
from layoutopt.base.limits import Stopped
from layoutopt.base.numbers import counted, ratio, seconds
from layoutopt.base.result import Status
from layoutopt.base.table import Part, Shown, Table, Words
from layoutopt.conversion.result import NO_TRANSFORMS, Conversion, Remaining, Tally, first_gap
from layoutopt.onnx.protobuf import LoadedModel, fits_file, onnx, write_proto

BESIDE = 1024
"""New weights of so many bytes are kept beside the network, if others are or one file is full."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ConversionResult(Shown):
    """A rewritten network, and the proof's figures.

    Parameters
    ----------
    model
        The network, weights included.
    conversion
        What became of its graph.
    opaque
        Types of ops that nothing may be done to, with the number of their nodes.
    difference
        The largest relative difference of outputs that a check found; None without one.
    heuristics
        What the transforms cost that each heuristic leaves, by name; none without a comparison.
    peers
        How many transposes other optimisers leave, by name; None for one that is not installed or
        fails, as notes say.
    seconds
        Wall-clock seconds by phase.
    seed
        Seed of everything random.
    instance_hash
        The :func:`~layoutopt.conversion.graph.network_hash` of the network once simplified; empty
        where time ended before that.
    removed
        What the transposes cost that are gone as the network was simplified.
    version
        Of this package.
    source
        The network as it was given, and the files that it came from.
    notes
        What a user should know of it: which ops could not be converted, and why.
    partial
        Whether there are ops that could not be converted, or the network was not simplified.
    unmet
        Whether layouts were asked of ops that could not be converted; then nothing is optimal.
    """

    model: onnx.ModelProto
    conversion: Conversion
    opaque: Mapping[str, int] = field(default_factory=dict)
    difference: float | None
    heuristics: Mapping[str, Tally] = field(default_factory=dict)
    peers: Mapping[str, int | None] = field(default_factory=dict)
    seconds: Mapping[str, float]
    seed: int
    instance_hash: str = ""
    removed: Tally = NO_TRANSFORMS
    version: str = __version__
    source: LoadedModel = field(repr=False)
    notes: tuple[str, ...] = ()
    partial: bool = False
    unmet: bool = False

    @property
    def objectives(self) -> tuple[str, ...]:
        """What was minimised, in order: ``count``, ``bytes``."""
        return self.conversion.objectives

    @property
    def objective(self) -> tuple[int, ...]:
        """The value of each objective."""
        return self.conversion.objective

    @property
    def bound(self) -> tuple[int, ...]:
        """What no choice of layouts can fall below, compared from the first number on; proved.

        Where ops are kept as written for a defect, what is proved is not of all choices: it is 0.
        """
        if self.partial:
            return (0,) * len(self.objectives)
        return self.conversion.bound

    @property
    def status(self) -> Status:
        """What is proved; ``optimal`` only where objective and bound are equal."""
        proved = self.objective == self.bound and not self.unmet
        return Status.OPTIMAL if proved else Status.FEASIBLE

    @property
    def gap(self) -> float:
        """``(objective - bound) / max(objective, 1)`` of the first number that differs."""
        return first_gap(self.objective, self.bound)

    @property
    def stopped(self) -> Stopped:
        """Why the computation ended."""
        return self.conversion.stopped

    @property
    def before(self) -> Tally:
        """What the transforms of the network cost as it was given."""
        return self.conversion.before + self.removed

    @property
    def after(self) -> Tally:
        """What the transforms of the rewritten network cost."""
        return self.conversion.after

    @property
    def remaining(self) -> tuple[Remaining, ...]:
        """Why each transform is there that remains."""
        return self.conversion.remaining

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._verdict()[1:4])
        return f"ConversionResult({self._name!r}: {self.status}, {facts})"

    def summary(self) -> str:
        """Return a summary as text: status, objective, bound, and transforms before and after."""
        lines = [self._head(), Table((), self._verdict(), left=2).text(), "", self._counts().text()]
        lines += [f"\n  note: {note}" for note in self.notes]
        return "\n".join([*lines, *(f"\n  {remark}" for remark in self._remarks())])

    def shown_parts(self) -> Iterator[Part]:
        """Yield status, objective and bound, a table of transforms, and notes."""
        yield Words(self._head(), "title")
        facts = self._verdict()
        yield Table([name for name, _ in facts], [[value for _, value in facts]])
        yield self._counts()
        for note in (*self.notes, *self._remarks()):
            yield Words(note, "soft")

    @property
    def _name(self) -> str:
        return Path(self.source.name).stem if self.source.files else self.source.name

    def _head(self) -> str:
        return (
            f"{printable(self._name or 'unnamed')}: {counted(len(self.model.graph.node), 'node')}"
        )

    def _verdict(self) -> list[tuple[str, str]]:
        why = "" if self.stopped is Stopped.FINISHED else f" ({self.stopped})"
        facts = [("status", f"{self.status}{why}")]
        for what, values in (("objective", self.objective), ("bound", self.bound)):
            pairs = zip(self.objectives, values, strict=True)
            facts.append((what, ", ".join(f"{key} {_amount(key, value)}" for key, value in pairs)))
        facts.append(("gap", ratio(self.gap)))
        if self.difference is not None:
            facts.append(("difference", f"{self.difference:.2g}, relative"))
        return [*facts, ("seconds", seconds(self.seconds.get("total")))]

    def _counts(self) -> Table:
        both = [("before", self.before), ("after", self.after), *self.heuristics.items()]
        rows = [[name, f"{t.transforms:,}", f"{t.bytes:,}", f"{t.free:,}"] for name, t in both]
        for name, count in self.peers.items():
            rows.append([name, "-" if count is None else f"{count:,}", "-", "-"])
        return Table(["", "transforms", "bytes moved", "free"], rows)

    def _remarks(self) -> Iterator[str]:
        """Yield which ops are unknown, and how inputs and outputs are permuted."""
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(self.opaque.items()))
        if kinds:
            yield printable(f"unknown ops, kept as they are: {kinds}")
        freed = ", ".join(f"{name} {axes}" for name, axes in self.conversion.freed.items())
        if freed:
            yield printable(f"inputs and outputs permuted, as by numpy.transpose: {freed}")
        if not self.source.outside and self._outside():
            yield "weights are saved in a file beside the model, as one file cannot hold 2 GiB"

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the network, whole or not at all; weights beside it if they were, or must be.

        Parameters
        ----------
        path
            The file.
        overwrite
            Whether an existing file may be replaced; those that were read never are.

        Raises
        ------
        InputError
            If the file exists, or cannot be written.
        """
        path = named(path)
        check_output(path, self.source, overwrite)
        write_proto(self.model, path, self._outside(), overwrite=overwrite)

    def _outside(self) -> set[str]:
        """Return which weights go beside the network: those that did, and large new ones.

        All large ones do if one file cannot hold them.
        """
        large = {x.name for x in self.model.graph.initializer if len(x.raw_data) >= BESIDE}
        if not self.source.outside:
            return set() if fits_file(self.model) else large
        own = {x.name for x in self.source.model.graph.initializer}
        return {*self.source.outside, *(large - own)}


def _amount(objective: str, value: int) -> str:
    """Return the value of an objective; time in microseconds, rounded to nanoseconds."""
    if objective != "time":
        return f"{value:,}"
    whole, rest = divmod(round(Fraction(value, 10**6)), 1000)
    return f"{whole:,}.{rest:03} us"


def check_output(path: Path, source: LoadedModel, overwrite: bool) -> None:
    """Refuse to write where a network was read from, or what the user did not offer."""
    for target in (path, path.with_name(f"{path.name}.data")):
        if target.resolve() in source.files:
            raise InputError("was read, and is not replaced; give another name", file=str(target))
    if path.is_file() and not overwrite:
        raise InputError("exists already; it is not overwritten", file=str(path))


PREFIX = "layoutopt."


def describe(result: ConversionResult) -> None:
    """Write a conversion's figures into its network, in place of earlier ones."""
    names = result.objectives
    tell(
        result.model,
        {
            "version": result.version,
            "status": str(result.status),
            "objective": _numbers(names, result.objective),
            "bound": _numbers(names, result.bound),
            "transforms.before": str(result.before.transforms),
            "transforms.after": str(result.after.transforms),
            "bytes.before": str(result.before.bytes),
            "bytes.after": str(result.after.bytes),
            "freed": json.dumps(_freed(result)),
        },
    )


def _freed(result: ConversionResult) -> dict[str, Sequence[int]]:
    """Return how inputs and outputs are permuted, after what earlier conversions tell of them."""
    found: dict[str, Sequence[int]] = dict(result.conversion.freed)
    for entry in result.model.metadata_props:
        if entry.key == f"{PREFIX}freed":
            with suppress(msgspec.MsgspecError, IndexError, RecursionError):  # if others wrote it
                earlier = msgspec.json.decode(entry.value, type=dict[str, list[int]])
                for name, first in earlier.items():
                    order = [first[axis] for axis in found.get(name, range(len(first)))]
                    found |= {name: order} if sorted(order) == [*range(len(order))] else {}
    return {name: order for name, order in found.items() if list(order) != sorted(order)}


def tell(message: Any, entries: Mapping[str, str]) -> None:
    """Give a network or a node of ONNX entries of its metadata, in place of all earlier ones."""
    every = [(entry.key, entry.value) for entry in message.metadata_props]
    kept = [(key, value) for key, value in every if not key.startswith(PREFIX)]
    del message.metadata_props[:]
    for key, value in [*kept, *((PREFIX + key, value) for key, value in entries.items())]:
        message.metadata_props.add(key=key, value=value)


def _numbers(names: tuple[str, ...], values: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
