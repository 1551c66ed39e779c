"""Modes: the layouts in which an op can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, TypeAlias

from layoutopt.conversion.required import required
from layoutopt.conversion.values import Order, order_of
from layoutopt.layout.permutations import Permutation
from layoutopt.operators.op import Op, Shape
from layoutopt.operators.operands import OperandLayouts
from layoutopt.operators.operator import Category
from layoutopt.operators.registry import operator_of, remap
from layoutopt.operators.remapping import RemapError, Remapped
from layoutopt.requirements.requirements import Requirements

MOST_AXES = 6
"""Ops on more axes run as they are written: of 7 axes there are 5040 permutations."""


@dataclass(frozen=True)
class Mode:
    """One way to run an op.

    Parameters
    ----------
    remapped
        The op's attributes, and the permutation of each operand and result.
    orders
        For each operand, then each result, its axes in their new order, without those of size 1.
    layouts
        How the op is written then, where that is not ONNX's way.
    """

    remapped: Remapped
    orders: tuple[Order, ...]
    layouts: OperandLayouts | None = None


@dataclass(frozen=True)
class Modes:
    """All modes of an op; the first is that in which it is written, or which is required.

    No two of them ask for the same orders.

    Parameters
    ----------
    every
        The modes.
    """

    every: tuple[Mode, ...]

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


class ModeTable:
    """Modes of ops; equal ops share them.

    Parameters
    ----------
    requirements
        The layouts in which heavily sensitive ops, and others of which something is desired, must
        run.  None: as they are written.
    """

    def __init__(self, requirements: Requirements | None = None) -> None:
        self._requirements = requirements
        self._known: dict[Key, Modes] = {}

    def of(self, op: Op) -> Modes:
        """Return the modes of an op.

        Elementwise ops, ops whose attributes name axes, and views have one for each permutation of
        their axes that :func:`~layoutopt.operators.registry.remap` takes.  All others have one.
        """
        if self._requirements is not None:
            needed = required(op, self._requirements)
            if needed is not None:
                return Modes((_mode(op, *needed),))
        key = _key(op)
        if key not in self._known:
            self._known[key] = Modes(tuple(_distinct(op)))
        return self._known[key]


def _key(op: Op) -> Key:
    attributes = tuple(sorted((name, repr(value)) for name, value in op.attributes.items()))
    given = tuple(name != "" for name in (*op.inputs, *op.outputs))
    own = (op.type, op.opset, op.layouts, attributes, len(op.inputs), given)
    return (*own, op.input_shapes, op.output_shapes)


def _distinct(op: Op) -> Iterator[Mode]:
    seen = set()
    for remapped in _remapped(op):
        mode = _mode(op, remapped, op.layouts)
        if mode.orders not in seen:
            seen.add(mode.orders)
            yield mode


def _remapped(op: Op) -> Iterator[Remapped]:
    """Return an op as it is written, then in all other ways."""
    yield Remapped(dict(op.attributes), (None,) * len(op.inputs), (None,) * len(op.outputs))
    known = operator_of(op)
    fixed = known.category in (Category.HEAVY, Category.OPAQUE) or op.layouts is not None
    rank = None if fixed else known.rank(op)
    if rank is None or rank > MOST_AXES:
        return
    for permutation in permutations(range(rank)):
        try:
            yield remap(op, permutation)
        except RemapError:
            continue


def _mode(op: Op, remapped: Remapped, layouts: OperandLayouts | None) -> Mode:
    inputs = remapped.inputs or (None,) * len(op.inputs)
    outputs = remapped.outputs or (None,) * len(op.outputs)
    shapes = (*op.input_shapes, *op.output_shapes)
    orders = tuple(map(_order, (*inputs, *outputs), shapes))
    return Mode(Remapped(remapped.attributes, inputs, outputs), orders, layouts)


def _order(permutation: Permutation | None, shape: Shape | None) -> Order:
    if shape is None:
        return ()
    if permutation is None:
        return order_of(tuple(range(len(shape))), shape)
    front = len(permutation) - len(shape)
    return order_of(tuple(axis - front for axis in permutation), shape)
