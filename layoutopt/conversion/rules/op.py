"""Ops as layouts see them: type, attributes, and the shapes of what goes in and comes out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.layout.factors import Shape as Shape
from layoutopt.layout.factors import Size as Size
from layoutopt.layout.layout import ANY, Block, Dim, Layout, LayoutError
from layoutopt.layout.layout import plain as plain

UNKNOWN = Layout(undefined=True)
"""The layout of a tensor of unknown rank; as a requirement, none."""


def any_layout(rank: int | None) -> Layout:
    """Return the layout of so many dimensions that may be anything."""
    return UNKNOWN if rank is None else plain(ANY * rank)


def unnamed(written: Layout | None, needed: Layout | None) -> Layout | None:
    """Return a layout in which the one axis that has no letter as it is written has none either.

    Of a RoiAlign's result, ``*CHW``, the first axis is N in ``NHWC``.
    """
    if written is None or needed is None or needed.undefined or written.undefined:
        return needed
    own = [dim.blocks for dim in written.dims]
    other = [dim.blocks for dim in needed.dims if dim.blocks not in own]
    open_axis = (Block(ANY),)
    if own.count(open_axis) != 1 or len(other) != 1 or other[0][0].size is not None:
        return needed
    dims = (Dim(open_axis, d.extensions) if d.blocks == other[0] else d for d in needed.dims)
    return Layout(tuple(dims), needed.dialect)


@dataclass(frozen=True)
class OperandLayouts:
    """Layouts of an op's operands and results, in order."""

    # one for each operand; None, or nothing at the end, for those that are not named
    inputs: tuple[Layout | None, ...] = ()
    outputs: tuple[Layout | None, ...] = ()  # the same for results

    def input(self, n: int) -> Layout | None:
        """Return the layout of an operand, None if it is not named."""
        return self.inputs[n] if n < len(self.inputs) else None

    def output(self, n: int) -> Layout | None:
        """Return the layout of a result, None if it is not named."""
        return self.outputs[n] if n < len(self.outputs) else None

    def at(self, op: Op, slot: int) -> Layout | None:
        """Return the layout of an operand or, behind all operands of an op, of a result."""
        place = slot - len(op.inputs)
        return self.input(slot) if place < 0 else self.output(place)

    def __str__(self) -> str:
        before, after = (
            ",".join("default" if layout is None else str(layout) for layout in side)
            for side in (self.inputs, self.outputs)
        )
        return f"{before}->{after}" if after else before


def parse_operands(text: str) -> OperandLayouts:
    """Read layouts of operands and results.

    ``"NHWC,HWIO"`` for operands; ``"NHWC,HWIO->NHWC"`` with results; ``"->NHWC"`` for results
    alone.  ``default`` stands for one that is not named.  Without results, the first has the
    layout of the first operand.  Raises ``LayoutError`` if a layout cannot be read, or nothing
    stands between two commas.
    """
    before, arrow, after = text.partition("->")
    before = before.strip()
    inputs = tuple(map(_layout, split_outside(before, ","))) if before or not arrow else ()
    outputs = tuple(map(_layout, split_outside(after, ","))) if arrow else inputs[:1]
    return OperandLayouts(inputs, outputs)


def split_outside(text: str, mark: str) -> list[str]:
    """Split a text at a mark, but not inside square brackets or braces."""
    parts = re.split(rf"{re.escape(mark)}(?![^\[{{]*[\]}}])", text)
    return [part.strip() for part in parts]


def _layout(text: str) -> Layout | None:
    if not text:
        raise LayoutError("a layout is missing; leave one open by writing default")
    return None if text == "default" else Layout.parse(text)


NARROW = {"float4e2m1", "int2", "int4", "uint2", "uint4"}
"""Types of elements below a byte: runtimes transpose them, but neither reshape nor copy them."""

BYTE_FLOATS = {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}
"""Floats of a byte, which runtimes do not squeeze."""

SINCE_BYTE_FLOATS = 21
"""The operator set since which Transpose takes them."""

LATEST = 22
"""The version of ONNX's operator set that ops follow where none is given."""


@dataclass(frozen=True)
class Body:
    """A graph inside an op: a branch of an If, or the body of a Loop or Scan."""

    scope: str  # its name, which its ops and tensors have as `scope`
    # `inputs`, `outputs`: how many tensors it is given, and gives back, each time it runs
    inputs: int
    outputs: int
    rounds: int = 1  # how often it runs at most each time the op runs; 2 if that is unknown


@dataclass(frozen=True)
class Op:
    """An op of a graph, with all that rules and backends decide by."""

    type: str  # as ONNX names it, `Conv`; those of other domains as `domain::Type`
    # By the names of ONNX.  Inputs that hold axes or sizes, as those of Slice and Pad do, stand
    # here under their names where their values are known.
    attributes: Mapping[str, Any] = field(default_factory=dict)
    # `inputs`, `outputs`: names of tensors, `""` for one that is left out.  Behind the operands
    # stand the outputs of its bodies, and behind the results their inputs.
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    # `input_shapes`, `output_shapes`: their shapes; None where a tensor is left out or its rank is
    # unknown
    input_shapes: tuple[Shape | None, ...] = ()
    output_shapes: tuple[Shape | None, ...] = ()
    name: str = ""
    opset: int = LATEST  # the version of its domain's operator set
    # how its operands are written, where that is not ONNX's way
    layouts: OperandLayouts | None = None
    # the type of the elements of its first input, `float` or `int64`; one below a byte if any
    # input or result has it; "" if unknown
    element_type: str = ""
    scope: str = ""  # the body that it is in; "" for none
    bodies: tuple[Body, ...] = ()  # the graphs inside it

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}" if self.name else self.type

    @property
    def shapes(self) -> tuple[Shape | None, ...]:
        """The shapes of its inputs, then of its outputs: a slot is a place among these."""
        return (*self.input_shapes, *self.output_shapes)

    def slots(self) -> Iterator[tuple[int, Shape | None]]:
        """Yield the slots of operands that are not left out, and of results, with their shapes."""
        for slot, shape in enumerate(self.shapes):
            if slot >= len(self.inputs) or self.has(slot):
                yield slot, shape

    def places(self) -> Iterator[tuple[Body, range, range]]:
        """Yield each body with the places of its inputs among results, and outputs among inputs."""
        first = len(self.outputs) - sum(body.inputs for body in self.bodies)
        back = len(self.inputs) - sum(body.outputs for body in self.bodies)
        for body in self.bodies:
            yield (body, range(first, first + body.inputs), range(back, back + body.outputs))
            first, back = first + body.inputs, back + body.outputs

    def given(self) -> set[str]:
        """Return the inputs of its bodies."""
        return {self.outputs[n] for _, places, _ in self.places() for n in places}

    def has(self, n: int) -> bool:
        """Return whether it has an input of that number."""
        return n < len(self.inputs) and self.inputs[n] != ""

    def shape(self, n: int) -> Shape | None:
        """Return an input's shape, None if it is left out or its rank is unknown."""
        return self.input_shapes[n] if n < len(self.input_shapes) else None

    def rank(self, n: int) -> int | None:
        """Return an input's number of axes, None if it is left out or that is unknown."""
        shape = self.shape(n)
        return None if shape is None else len(shape)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute of integers, None if it is missing.

        Raises ``InputError`` if it is something else.
        """
        given = self.attributes.get(name)
        if given is None:
            return None
        values = np.atleast_1d(np.asarray(given))
        if values.ndim > 1 or (values.size and values.dtype.kind not in "iub"):
            raise InputError(f"{self}: {name} must be integers, not {given!r}")
        return tuple(map(int, values))

    def integer(self, name: str, default: int) -> int:
        """Return an attribute of one integer, the default if it is missing.

        Raises ``InputError`` if it is something else.
        """
        values = self.integers(name)
        if values is None:
            return default
        if len(values) != 1:
            raise InputError(f"{self}: {name} must be one integer, not {self.attributes[name]!r}")
        return values[0]

    def axis(self, default: int | None, rank: int, name: str = "axis") -> int:
        """Return the axis of so many that an attribute names, counted from the first.

        The default is the axis where the attribute is missing; None if it must be there.  Raises
        ``InputError`` if there is no such axis.
        """
        if default is None and name not in self.attributes:
            raise InputError(f"{self}: it has no {name}")
        [axis] = self._within(name, (self.integer(name, default or 0),), rank)
        return axis

    def axes(self, rank: int, name: str = "axes") -> tuple[int, ...] | None:
        """Return the axes that an attribute names, counted from the first, or None.

        Raises ``InputError`` if one of them is not there, or is named twice.
        """
        values = self.integers(name)
        axes = None if values is None else self._within(name, values, rank)
        if axes is not None and len(set(axes)) < len(axes):
            raise InputError(f"{self}: {name} {values} names an axis twice")
        return axes

    def _within(self, name: str, values: tuple[int, ...], rank: int) -> tuple[int, ...]:
        for value in values:
            if not -rank <= value < rank:
                raise InputError(f"{self}: {name} {value} is not in {-rank} to {rank - 1}")
        return tuple(value % rank for value in values)
