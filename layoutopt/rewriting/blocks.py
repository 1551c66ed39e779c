"""Nodes between a layout and the order in which ONNX has axes, for tensors of any size.

An axis in blocks is joined, or cut, at the end of the tensor: ``Reshape`` copies all sizes in
front, and so no size but that of a block needs to be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layoutopt.layout.layout import Block, Layout

if TYPE_CHECKING:
    from onnx import NodeProto

Digit = tuple[str, int | None]
"""An axis, or the block of one."""

SINCE_WHOLE_CONSTANTS = 9
"""The operator set since which Constant gives whole numbers; before, Cast makes them."""


def fits(layout: Layout, axes: str) -> bool:
    """Return whether a layout has whole axes and blocks of the axes given, and no others."""
    digits = _digits(layout)
    whole = sorted(axis for axis, size in digits if size is None)
    return whole == sorted(axes) == sorted(set(axes)) and all(
        len(dim.blocks) == 1 and not dim.extensions for dim in layout.dims
    )


def to_axes(
    layout: Layout, axes: str, source: str, target: str, opset: int
) -> tuple[list[NodeProto], str]:
    """Return nodes that bring a tensor from a layout to an order of whole axes.

    Parameters
    ----------
    layout, axes
        The layout, and the letters of axes in ONNX's order.
    source, target
        Names of the tensor before, and the beginning of names after.
    opset
        The version of the operator set.

    Returns
    -------
    tuple
        The nodes, and the name of what they give.
    """
    writing = _Writing(source, target, opset)
    digits = _digits(layout)
    for axis in _blocked(layout):
        own = sorted((d for d in digits if d[0] == axis), key=lambda d: d[1] is not None)
        rest = [d for d in digits if d[0] != axis]
        writing.permute(digits, [*rest, *own])
        writing.reshape([0] * len(rest) + [-1])
        digits = [*rest, (axis, None)]
    writing.permute(digits, [(axis, None) for axis in axes])
    return writing.nodes, writing.name


def from_axes(
    layout: Layout, axes: str, source: str, target: str, opset: int
) -> tuple[list[NodeProto], str]:
    """Return nodes that bring a tensor from an order of whole axes to a layout.

    Parameters
    ----------
    layout, axes
        The layout, and the letters of axes in ONNX's order.
    source, target
        The beginning of names before, and the name of the tensor after.
    opset
        The version of the operator set.

    Returns
    -------
    tuple
        The nodes, and the name of what they start from.
    """
    writing = _Writing(source, f"{source}_moved", opset)
    digits: list[Digit] = [(axis, None) for axis in axes]
    for axis in _blocked(layout):
        rest = [d for d in digits if d[0] != axis]
        own = [d for d in _digits(layout) if d[0] == axis]
        own.sort(key=lambda d: d[1] is not None)
        writing.permute(digits, [*rest, (axis, None)])
        writing.reshape([0] * len(rest) + [-1 if size is None else size for _, size in own])
        digits = [*rest, *own]
    writing.permute(digits, _digits(layout))
    if not writing.nodes:
        return [], target
    writing.nodes[-1].output[0] = target
    return writing.nodes, source


def _digits(layout: Layout) -> list[Digit]:
    blocks: Iterator[Block] = (block for dim in layout.dims for block in dim.blocks)
    return [(block.axis, block.size) for block in blocks]


def _blocked(layout: Layout) -> list[str]:
    """Return the axes that are in blocks."""
    return list(dict.fromkeys(axis for axis, size in _digits(layout) if size is not None))


class _Writing:
    """A chain of nodes.

    Parameters
    ----------
    name
        The tensor at its end.
    stem
        The beginning of new names.
    opset
        The version of the operator set.
    """

    def __init__(self, name: str, stem: str, opset: int) -> None:
        self.nodes: list[NodeProto] = []
        self.name, self.stem, self.opset = name, stem, opset

    def permute(self, before: list[Digit], after: list[Digit]) -> None:
        """Transpose, unless nothing moves."""
        from onnx import helper

        if before == after:
            return
        left, order = list(enumerate(before)), list[int]()
        for digit in after:  # equal blocks of one axis keep their order
            at = next(i for i, (_, other) in enumerate(left) if other == digit)
            order.append(left.pop(at)[0])
        new = self._fresh()
        self.nodes.append(helper.make_node("Transpose", [self.name], [new], perm=order))
        self.name = new

    def reshape(self, sizes: list[int]) -> None:
        """Reshape, sizes as ONNX writes them."""
        from onnx import TensorProto, helper

        shape, new = f"{self.stem}_shape{len(self.nodes)}", self._fresh()
        whole = self.opset >= SINCE_WHOLE_CONSTANTS
        kind, given = (TensorProto.INT64, shape) if whole else (TensorProto.DOUBLE, f"{shape}_as")
        value = helper.make_tensor(given, kind, [len(sizes)], sizes)
        self.nodes.append(helper.make_node("Constant", [], [given], value=value))
        if not whole:
            cast = helper.make_node("Cast", [given], [shape], to=TensorProto.INT64)
            self.nodes.append(cast)
        self.nodes.append(helper.make_node("Reshape", [self.name, shape], [new]))
        self.name = new

    def _fresh(self) -> str:
        return f"{self.stem}_{len(self.nodes)}" if self.nodes else f"{self.stem}"
