"""Layouts of an op's operands and results, written in one line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from layoutopt.layout.layout import ANY, Block, Dim, Layout, LayoutError

UNKNOWN = Layout(undefined=True)
"""The layout of a tensor of unknown rank; as a requirement, none."""


@cache
def plain(axes: str) -> Layout:
    """Return the layout of whole axes in an order, outermost first."""
    return Layout(tuple(Dim((Block(axis),)) for axis in axes))


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
    """Layouts of an op's operands and results, in order.

    Parameters
    ----------
    inputs
        One for each operand; None, or nothing at the end, for those that are not named.
    outputs
        The same for results.
    """

    inputs: tuple[Layout | None, ...] = ()
    outputs: tuple[Layout | None, ...] = ()

    def input(self, n: int) -> Layout | None:
        """Return the layout of an operand, None if it is not named."""
        return self.inputs[n] if n < len(self.inputs) else None

    def output(self, n: int) -> Layout | None:
        """Return the layout of a result, None if it is not named."""
        return self.outputs[n] if n < len(self.outputs) else None

    def __str__(self) -> str:
        before, after = (
            ",".join("default" if layout is None else str(layout) for layout in side)
            for side in (self.inputs, self.outputs)
        )
        return f"{before}->{after}" if after else before


def parse_operands(text: str) -> OperandLayouts:
    """Read layouts of operands and results.

    Parameters
    ----------
    text
        ``"NHWC,HWIO"`` for operands; ``"NHWC,HWIO->NHWC"`` with results; ``"->NHWC"`` for results
        alone.  ``default`` stands for one that is not named.  Without results, the first has the
        layout of the first operand.

    Raises
    ------
    LayoutError
        If a layout cannot be read, or nothing stands between two commas.
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
