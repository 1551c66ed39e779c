"""Modes: the layouts in which an op can run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from types import MappingProxyType
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError, OptionError
from layoutopt.conversion.carried import letters_of
from layoutopt.conversion.costs import OpTimes
from layoutopt.conversion.required import Forms, Required, in_order, required
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.op import Op, OperandLayouts, Shape
from layoutopt.conversion.rules.operator import Category, RemapError, Remapped
from layoutopt.conversion.rules.registry import category_of, is_unlettered, operator_of, remap
from layoutopt.layout.factors import Form, Order, order_of
from layoutopt.layout.layout import Layout
from layoutopt.layout.permutations import Permutation

MOST_AXES = 6
"""Ops on more axes run as they are written: of 7 axes there are 5040 permutations."""


@dataclass(frozen=True)
class Mode:
    """One way to run an op.

    Parameters
    ----------
    attributes
        The op's attributes then.
    inputs, outputs
        For each operand and result the form that it must come in, of its own axes; None: as it is.
    orders
        For each operand, then each result, the order of its own axes.
    layouts
        How the op is written then, where that is not ONNX's way.
    time
        What it costs, in femtoseconds.
    entries, operands, type
        As in :class:`~layoutopt.conversion.rules.operator.Remapped`.
    """

    attributes: Mapping[str, Any]
    inputs: Forms
    outputs: Forms
    orders: tuple[Order, ...]
    layouts: OperandLayouts | None = None
    time: int = 0
    entries: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    operands: Permutation | None = None
    type: str = ""


@dataclass(frozen=True)
class Modes:
    """All modes of an op; the first is that in which it is written, or which is required.

    No two of them ask for the same orders.

    Parameters
    ----------
    every
        The modes.
    priced
        Whether they are those of a table of costs: then all of them are of use.
    fixed
        Whether there is one only, whatever order others need.
    """

    every: tuple[Mode, ...]
    priced: bool = False
    fixed: bool = False

    @cached_property
    def by_order(self) -> tuple[dict[Order, list[int]], ...]:
        """For each operand and result, numbers of modes by its order."""
        found: tuple[dict[Order, list[int]], ...] = tuple({} for _ in self.every[0].orders)
        for number, mode in enumerate(self.every):
            for column, order in zip(found, mode.orders, strict=True):
                column.setdefault(order, []).append(number)
        return found

    @cached_property
    def tells(self) -> tuple[bool, ...]:
        """For each operand and result, whether its order tells the mode."""
        return tuple(len(column) == len(self.every) for column in self.by_order)

    @cached_property
    def vague(self) -> tuple[int, ...]:
        """Operands and results that have several orders, which do not tell the mode."""
        return tuple(n for n, own in enumerate(self.by_order) if 1 < len(own) < len(self.every))


Key: TypeAlias = tuple[Any, ...]


@contextmanager
def _as_option(op: Op, requirements: Requirements | None) -> Iterator[None]:
    """Tell what goes wrong with layouts that a user asks for as what the user can mend."""
    own = type(requirements).__module__.startswith("layoutopt.")
    try:
        yield
    except InputError as error:
        raise OptionError(error.reason) from None
    except Exception as error:  # whatever a user's backend raises
        if own or requirements is None:
            raise
        name = type(requirements).__name__
        raise OptionError(f"{op}: backend {name} raises {type(error).__name__}: {error}") from error


class ModeTable:
    """Modes of ops; equal ops share them.

    Parameters
    ----------
    requirements
        The layouts in which heavily sensitive ops, and others of which something is desired, must
        run.  None: as they are written.
    times
        What ops cost in each layout; these are the layouts that they may run in.
    written
        Names of ops that run as they are written, whatever is required.
    microsoft
        Whether products may become onnxruntime's own ops.
    layouts
        The layouts of tensors that are known: which axes ops without letters of their own have.
    """

    def __init__(
        self,
        requirements: Requirements | None = None,
        times: OpTimes | None = None,
        written: Collection[str] = (),
        microsoft: bool = False,
        layouts: Mapping[str, Layout] = MappingProxyType({}),
    ) -> None:
        self._layouts = layouts
        self._microsoft = microsoft
        self._requirements = requirements
        self._times = times
        self._written = written
        self._known: dict[Key, Modes] = {}

    def of(self, op: Op) -> Modes:
        """Return the modes of an op.

        Elementwise ops, ops whose attributes name axes, and views have one for each permutation of
        their axes that :func:`~layoutopt.conversion.rules.registry.remap`
        takes.  All others have one.
        """
        if op.name in self._written:
            time = 0 if self._times is None else self._times.written(op)
            return Modes((replace(as_written(op), time=time),), self._times is not None, True)
        with _as_option(op, self._requirements):
            priced = None if self._times is None else self._priced(op, self._times)
            if priced:
                return Modes(tuple(priced), True)
            if self._requirements is not None:
                needed = self._needed(op, self._requirements)
                if needed is not None:
                    return Modes((needed,), fixed=True)
        key = key_of(op)
        if key not in self._known:
            self._known[key] = Modes(tuple(_distinct(op, self._microsoft)))
        return self._known[key]

    def _needed(self, op: Op, requirements: Requirements) -> Mode | None:
        """Return the mode that is required of an op, if any."""
        if is_unlettered(op):
            remapped = in_order(op, requirements, letters_of(op, self._layouts))
            return None if remapped is None else _permuted(op, remapped)
        needed = required(op, requirements)
        return None if needed is None else _required(op, needed)

    def _priced(self, op: Op, times: OpTimes) -> list[Mode]:
        """Return the modes of a table of costs, that in which the op is written first."""
        found: dict[tuple[Order, ...], Mode] = {}
        for line, time in times.of(op):
            needed = required(op, line)
            if needed is None and category_of(op) is Category.HEAVY:
                continue  # of unknown rank
            if needed is None:
                raise OptionError(f"{op}: its axes have no letters, so no layout of it has a cost")
            mode = replace(_required(op, needed), time=time)
            other = found.get(mode.orders)
            if other is None or time < other.time:
                found[mode.orders] = mode
        written = as_written(op).orders
        return sorted(found.values(), key=lambda mode: mode.orders != written)


def as_written(op: Op) -> Mode:
    """Return the mode in which an op is written."""
    forms = (None,) * len(op.inputs), (None,) * len(op.outputs)
    return mode_of(op, dict(op.attributes), *forms, op.layouts)


def _required(op: Op, needed: Required) -> Mode:
    inputs, outputs, layouts = needed
    return mode_of(op, dict(op.attributes), inputs, outputs, layouts)


def key_of(op: Op) -> Key:
    """Return what ops that have the same modes have in common."""
    attributes = tuple(sorted((name, repr(value)) for name, value in op.attributes.items()))
    given = tuple(name != "" for name in (*op.inputs, *op.outputs))
    own = (op.type, op.element_type, op.opset, op.layouts, attributes, len(op.inputs), given)
    return (*own, op.input_shapes, op.output_shapes)


def _distinct(op: Op, extended: bool) -> Iterator[Mode]:
    seen = set()
    for remapped in _remapped(op, extended):
        if _moves_unknown(op, remapped):
            continue
        mode = _permuted(op, remapped)
        if mode.orders not in seen:
            seen.add(mode.orders)
            yield mode


def _moves_unknown(op: Op, remapped: Remapped) -> bool:
    """Return whether operands or results would be permuted whose ranks are not known."""
    orders = (*(remapped.inputs or ()), *(remapped.outputs or ()))
    shapes = (*op.input_shapes, *op.output_shapes)
    pairs = zip(orders, shapes, strict=True)
    return any(shape is None and order is not None for order, shape in pairs)


def _remapped(op: Op, extended: bool) -> Iterator[Remapped]:
    """Return an op as it is written, then in all other ways."""
    yield Remapped(dict(op.attributes), (None,) * len(op.inputs), (None,) * len(op.outputs))
    known = operator_of(op)
    fixed = known.category in (Category.HEAVY, Category.OPAQUE) or op.layouts is not None
    rank = None if fixed or known.each_alone else known.rank(op)
    few = rank if rank is not None and rank <= MOST_AXES else 0
    for permutation in permutations(range(few)) if few else ():
        try:
            yield remap(op, permutation)
        except RemapError:
            continue
    if op.layouts is None and (op.rank(0) or 0) <= MOST_AXES:
        if known.alternatives is not None:
            yield from known.alternatives(op)
        if extended and known.on_request is not None:
            yield from known.on_request(op)


def mode_of(
    op: Op,
    attributes: Mapping[str, Any],
    inputs: Forms,
    outputs: Forms,
    layouts: OperandLayouts | None = None,
) -> Mode:
    """Return a mode; the orders follow from the forms."""
    shapes = (*op.input_shapes, *op.output_shapes)
    orders = tuple(map(_order, (*inputs, *outputs), shapes))
    return Mode(attributes, inputs, outputs, orders, layouts)


def _permuted(op: Op, remapped: Remapped) -> Mode:
    inputs = remapped.inputs or (None,) * len(op.inputs)
    outputs = remapped.outputs or (None,) * len(op.outputs)
    mode = mode_of(
        op,
        remapped.attributes,
        tuple(map(_form, inputs, op.input_shapes)),
        tuple(map(_form, outputs, op.output_shapes)),
        op.layouts,
    )
    return replace(mode, entries=remapped.entries, operands=remapped.operands, type=remapped.type)


def _form(permutation: Permutation | None, shape: Shape | None) -> Form | None:
    """Return a permutation as a form; in front of the operand's axes it may have new ones."""
    if permutation is None or shape is None:
        return None
    front = len(permutation) - len(shape)
    return permutation if not front else tuple([max(axis - front, -1) for axis in permutation])


def _order(form: Form | None, shape: Shape | None) -> Order:
    if shape is None:
        return ()
    return order_of(tuple(range(len(shape))) if form is None else form, shape)
