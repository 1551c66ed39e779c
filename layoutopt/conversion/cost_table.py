"""Measured costs of ops in each layout, and of transforms, in time.

::

    [transform]
    us = 2.5                # each, in microseconds
    us_per_megabyte = 60    # and per million bytes that it moves

    [[op]]
    type = "Conv"           # or name = "conv1"
    layouts = "NHWC,HWIO"   # as for desired layouts
    us = 4
    us_per_megabyte = 15    # per million bytes of its operands and results
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd
from pathlib import Path
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError, OptionError, errors_at
from layoutopt.base.files import named, parse_toml, read_utf8
from layoutopt.base.numbers import exact_decimal
from layoutopt.conversion.desired import Desired, desired_of
from layoutopt.conversion.graph import ConversionGraph, size_of
from layoutopt.conversion.required import CutError, Required, required
from layoutopt.conversion.result import NO_TRANSFORMS, Tally
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.values import transposition

PER_MICROSECOND = 10**9
"""Femtoseconds, in which times are counted, of a microsecond."""

PER_BYTE = 10**3
"""Femtoseconds a byte at one microsecond for a million bytes."""


@dataclass(frozen=True)
class CostLine:
    """Cost of an op type in some layouts."""

    desired: Desired  # the ops that it is for, and the layouts
    # `fixed`, `per_byte`: femtoseconds of each op, and per byte of its operands and results
    fixed: int
    per_byte: int

    def suits(self, op: Op) -> bool:
        """Return whether it is for an op, and its blocks divide the op's axes."""
        return self.desired.layouts(op) is not None and self.desired.divides(op)


@dataclass(frozen=True)
class OpCosts:
    """Costs of ops in each layout."""

    # in order; of an op that is named, those for its type do not count
    lines: tuple[CostLine, ...]
    fixed: int  # `fixed`, `per_byte`: femtoseconds of each transform, and per byte that it moves
    per_byte: int

    def of(self, op: Op) -> list[CostLine]:
        """Return the lines for an op."""
        suiting = [line for line in self.lines if line.suits(op)]
        named = [line for line in suiting if line.desired.is_named(op)]
        return named or suiting

    def refuse_unknown(self, names: Collection[str]) -> None:
        """Raise ``OptionError`` if a line is for an op by a name that none has."""
        for line in self.lines:
            line.desired.refuse_unknown(names, "cost")


def read_costs(path: str | Path) -> OpCosts:
    """Read a table of costs from a TOML file, as at the top of this module.

    Raises ``InputError`` if the file cannot be read, or says something else; the text names the
    place.
    """
    file = str(path)
    document = parse_toml(read_utf8(named(path)), file, Decimal)
    with errors_at(file=file):
        return costs_from(document)


def costs_from(document: Mapping[str, Any]) -> OpCosts:
    """Return the table of costs that a document of TOML holds; see :func:`read_costs`."""
    _only(document, {"transform", "op"}, "")
    transform, ops = document.get("transform", {}), document.get("op", [])
    tables = isinstance(transform, Mapping) and isinstance(ops, list)
    if not (tables and (transform or ops)):
        raise InputError("must have a table [transform], tables [[op]], or both")
    _only(transform, {"us", "us_per_megabyte"}, "transform")
    lines = tuple(_line(one, f"op {n}") for n, one in enumerate(ops, 1))
    fixed, per_byte = _times(transform, "transform") if transform else (0, 0)
    return OpCosts(lines, fixed, per_byte)


def _line(given: Any, place: str) -> CostLine:
    if not isinstance(given, Mapping):
        raise InputError("must be a table", place)
    _only(given, {"type", "name", "layouts", "us", "us_per_megabyte"}, place)
    kind, name, layouts = (given.get(key) for key in ("type", "name", "layouts"))
    known = kind or name
    if (kind is None) == (name is None) or not isinstance(known, str) or not known:
        raise InputError("needs either a type of op or the name of one", place)
    if not isinstance(layouts, str):
        raise InputError('needs layouts, as in "NHWC,HWIO"', place)
    with errors_at(place):
        desired = desired_of(known if kind else f"@{known}", layouts)
    return CostLine(desired, *_times(given, place))


def _times(given: Mapping[str, Any], place: str) -> tuple[int, int]:
    """Return the femtoseconds that a table tells."""
    if "us" not in given and "us_per_megabyte" not in given:
        raise InputError("needs us, us_per_megabyte or both", place)
    found = []
    for key, scale in (("us", PER_MICROSECOND), ("us_per_megabyte", PER_BYTE)):
        value = given.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise InputError(f"{key} must be a number, not {value!r}", place)
        try:
            scaled = Fraction(exact_decimal(value)) * scale
        except InputError as error:
            raise InputError(f"{key}: {error.reason}", place) from None
        if scaled < 0 or scaled.denominator != 1:
            digits = len(str(scale)) - 1
            raise InputError(f"{key} must be 0 or more, with up to {digits} decimals", place)
        found.append(scaled.numerator)
    return found[0], found[1]


def _only(given: Mapping[str, Any], known: set[str], place: str) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"there is no {key!r}; known: {', '.join(sorted(known))}", place)


def tally(
    graph: ConversionGraph,
    padding: Mapping[str, str] | None = None,
    narrow: Mapping[str, Shape] | None = None,
) -> Tally:
    """Return what the transforms of a graph cost.

    A transpose is one transform, and moves the bytes of its tensor, unless it is free: if axes
    other than those of size 1 stay in their order, or its tensor is a constant, which is laid out
    before the graph runs.  An op that pads blocks, or cuts padding off, is one together with its
    transpose, and moves the bytes without the padding.  What runs in the rounds of a loop moves
    its bytes in each.

    ``padding`` has for each op that pads blocks, or cuts padding off, its transpose, "" without
    one; ``narrow`` the shapes of tensors that are padded, without padding, by name.
    """
    constants = {name for name, tensor in graph.tensors.items() if tensor.kind == "constant"}
    free, by_op = 0, dict[str, int]()
    pads = padding or {}
    partners = set(pads.values())
    for op in graph.ops:
        permutation = transposition(op)
        if permutation is None:
            if op.name in pads:
                ends = (op.inputs[0], op.outputs[0])
                sizes = (size_of(graph.tensors[n], (narrow or {}).get(n)) for n in ends)
                by_op[op.name] = min(sizes)
            continue
        [name], [result] = op.inputs[:1], op.outputs
        shape = graph.tensors[name].shape or ()
        if name in constants:
            constants.add(result)
            free += 1
        elif op.name in partners:
            continue
        elif (wide := [i for i in permutation if shape[i] != 1]) == sorted(wide):
            free += 1
        else:
            by_op[op.name] = size_of(graph.tensors[name], (narrow or {}).get(name))
    rounds = graph.rounds()
    runs = {op.name: rounds[op.scope] for op in graph.ops if op.name in by_op}
    by_op = {name: size * runs[name] for name, size in by_op.items()}
    return Tally(len(by_op), sum(by_op.values()), free, by_op, sum(runs.values()))


OpPrice: TypeAlias = tuple[int, int]
"""What an op costs in a mode: femtoseconds, and 1 if it counts as changed, else 0."""


class OpTimes:
    """Costs of the ops of one graph by a table."""

    def __init__(self, graph: ConversionGraph, costs: OpCosts) -> None:
        self._graph, self._costs, self._rounds = graph, costs, graph.rounds()

    def of(self, op: Op) -> Iterator[tuple[Required | None, int]]:
        """Yield how an op may run, and the femtoseconds of all its rounds.

        Layouts whose blocks cut through those in which it is written are left out.
        """
        lines = self._costs.of(op)
        names = [name for name in (*op.inputs, *op.outputs) if name] if lines else []
        size = sum(size_of(self._graph.tensors[name]) for name in names)
        for line in lines:
            with suppress(CutError):
                needed = required(op, line.desired)
                yield needed, (line.fixed + line.per_byte * size) * self._rounds[op.scope]

    def total(self) -> int:
        """Return the femtoseconds that all ops take as they are written."""
        return sum(map(self.written, self._graph.ops))

    def written(self, op: Op) -> int:
        """Return what an op takes as it is written; nothing if its layouts are not in the table."""
        fitting = (time for needed, time in self.of(op) if needed and {*needed[0]} <= {None})
        return min(fitting, default=0)


Amounts: TypeAlias = tuple[int, ...]
"""A number for each objective, the first one first."""

OBJECTIVES = ("count", "changed", "bytes", "time")
"""How many transforms there are; ops that compute along axes and run otherwise than they are
written; bytes that transforms move; femtoseconds of transforms and ops."""

NO_TIMES = OpCosts((), 0, 0)


def parse_objective(text: str, timed: bool = False) -> tuple[str, ...]:
    """Return the objectives that a text names, in order: names of :data:`OBJECTIVES` with commas.

    There is no ``time`` unless ``timed`` by a table of costs.  Raises ``OptionError`` if it names
    others, or one twice.
    """
    names = tuple(part.strip() for part in text.split(",")) if isinstance(text, str) else ()
    known = OBJECTIVES if timed else OBJECTIVES[:-1]
    if not names or len(set(names)) < len(names) or not set(names) <= set(known):
        allowed = f"{', '.join(known[:-1])} and {known[-1]}"
        less = "; time needs a table of costs" if "time" in names and not timed else ""
        raise OptionError(
            f"objective must be different names of {allowed}, with commas; got {text!r}{less}"
        )
    return names


def measured(
    tally: Tally, objectives: tuple[str, ...], times: OpCosts, ops: int = 0, changed: int = 0
) -> Amounts:
    """Return the value of each objective.

    ``ops`` is what the graph's ops take, in femtoseconds, ``changed`` how many ops compute along
    axes and run otherwise than they are written.
    """
    time = ops + tally.runs * times.fixed + tally.bytes * times.per_byte
    every = {"count": tally.transforms, "changed": changed, "bytes": tally.bytes, "time": time}
    return tuple(every[name] for name in objectives)


@dataclass(frozen=True)
class Costs:
    """The weight of transforms and ops; exact in order of the objectives.

    All objectives make one number: each is multiplied by a factor that is larger than all later
    ones together can become.  Each is counted in units that divide all that it adds up.
    """

    objectives: tuple[str, ...]
    times: OpCosts  # what transforms cost in time
    units: tuple[int, ...]  # of each objective
    # what each objective is multiplied by, once counted in its units; the last one's is 1
    factors: tuple[int, ...]

    def weight(self, move: Tally) -> int:
        """Return the cost of a transform."""
        return self._number(measured(move, self.objectives, self.times))

    def op(self, price: OpPrice) -> int:
        """Return the cost of an op in a mode."""
        return self._number(measured(NO_TRANSFORMS, self.objectives, self.times, *price))

    def _number(self, values: Amounts) -> int:
        every = zip(values, self.units, self.factors, strict=True)
        return sum(value // unit * factor for value, unit, factor in every)

    def split(self, cost: int) -> Amounts:
        """Return the value of each objective; of a bound, what they are at least, in order."""
        found = []
        for unit, factor in zip(self.units, self.factors, strict=True):
            number, cost = divmod(cost, factor)
            found.append(unit * number)
        return tuple(found)


def costs(
    objectives: tuple[str, ...],
    moves: Iterable[Tally],
    times: OpCosts = NO_TIMES,
    ops: Iterable[Collection[OpPrice]] = (),
) -> Costs:
    """Return the weights for objectives, which are minimised in order.

    ``moves`` are all transforms that there may be, ``times`` what these cost in time, ``ops`` for
    each op the different prices of its modes.
    """
    paid = [measured(move, objectives, times) for move in moves]
    runs = [[measured(NO_TRANSFORMS, objectives, times, *price) for price in own] for own in ops]
    every = [*paid, *(values for own in runs for values in own)]
    units = tuple(gcd(*(values[i] for values in every)) or 1 for i in range(len(objectives)))
    factors = [1]
    for i in range(len(objectives) - 1, 0, -1):
        most = sum(values[i] for values in paid) + sum(max(p[i] for p in own) for own in runs)
        factors.append(factors[-1] * (most // units[i] + 1))
    return Costs(objectives, times, units, tuple(factors[::-1]))
