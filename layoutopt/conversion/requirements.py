"""Layout requirements of a backend on operands and results."""

from __future__ import annotations

from collections.abc import Mapping

from layoutopt.conversion.rules.op import Op, Shape, Size, any_layout, plain
from layoutopt.conversion.rules.registry import operand_axes, written_layout
from layoutopt.layout.layout import ANY, Block, Dim, Layout
from layoutopt.layout.parts import renamed

OPEN = (Block(ANY),)
"""The blocks of a dimension that may be of any axis."""


class Requirements:
    """Layout requirements of a backend.  This one is Glow's canonical: 4-D tensors in NHWC.

    A backend derives from it and says otherwise where it differs: in :meth:`default_layout` for
    all tensors of a rank, in :meth:`operand_layout` for operands of ops to which axes have
    meanings, in :meth:`input_requirement` and :meth:`result_requirement` for any op.
    """

    def default_layout(self, rank: int) -> Layout:
        """Return the layout that data of a rank must have.

        Parameters
        ----------
        rank
            The number of axes.
        """
        return Layout.parse({1: "N", 4: "NHWC"}.get(rank, ANY * rank))

    def operand_layout(self, op: Op, axes: str, sizes: Mapping[str, Size]) -> Layout:
        """Return the layout in which an op takes an operand or gives a result.

        By default it is :meth:`default_layout` with the operand's own letters: where that has
        NHWC, weights have OHWI.  Where it has axes that the operand lacks, it is ONNX's order.

        Parameters
        ----------
        op
            An op that is heavily sensitive.
        axes
            The axes of the operand in ONNX's order: ``"NCHW"``, ``"OIHW"``, ``"O"``.
        sizes
            The size of each axis that has a letter.
        """
        own = {**dict(zip("NC", axes, strict=False)), **{axis: axis for axis in axes[2:]}}
        layout = self.default_layout(len(axes))
        if not set(layout.axes) <= {ANY, *own}:
            return plain(axes)
        names = {axis: own.get(axis, axis) for axis in layout.axes}
        return Layout(renamed(layout.dims, names), layout.dialect)

    def input_requirement(self, op: Op, n: int) -> Layout:
        """Return the layout that an op needs of its ``n``-th input: any, unless axes matter."""
        return self._requirement(op, n, op.shape(n))

    def result_requirement(self, op: Op, n: int) -> Layout:
        """Return the layout that an op's ``n``-th result must have: any, unless axes matter."""
        shape = op.output_shapes[n] if n < len(op.output_shapes) else None
        return self._requirement(op, len(op.inputs) + n, shape)

    def _requirement(self, op: Op, slot: int, shape: Shape | None) -> Layout:
        """Return what is needed of an operand or, after these, a result of some shape.

        What may have its axes in any order is in no blocks.
        """
        axes, written = operand_axes(op), written_layout(op, slot)
        plain = axes.at(op, slot) if axes else None
        if plain is None or written is None:
            return any_layout(None if shape is None else len(shape))
        needed = self.operand_layout(op, plain.letters, axis_sizes(written, shape))
        return plain if needed.is_any and written.has_blocks else needed

    def is_satisfied_by(
        self, carried: Layout, required: Layout, shape: Shape | None, element_bytes: int
    ) -> bool:
        """Return whether a tensor with one layout is as another requires.

        It is if :func:`mismatch` finds nothing.

        Parameters
        ----------
        carried
            The tensor's layout.
        required
            What is needed.
        shape
            The size of each physical dimension, None if their number is unknown.
        element_bytes
            Bytes of an element.
        """
        return mismatch(carried, required, shape, element_bytes) is None


def mismatch(
    carried: Layout, required: Layout, shape: Shape | None, element_bytes: int
) -> str | None:
    """Return in one line why a layout is not as another requires, None if it is.

    Each dimension must be of the same axis, in the same blocks, and have what the other has in
    brackets; ``*`` is any axis, on either side, and so is a dimension of size 1.  Strides must be
    multiples of the alignments required, in bytes, as they follow from the shape and the tensor's
    own alignments.
    """
    if required.undefined or (required.is_any and carried.undefined):
        return None
    if shape is None or carried.undefined:
        return "the rank is unknown"
    if len(shape) != len(required.dims) or len(carried.dims) != len(required.dims):
        return f"it has {len(shape)} dimensions, not {len(required.dims)}"
    for d, (has, needs) in enumerate(zip(carried.dims, required.dims, strict=True)):
        if shape[d] != 1 and not may_be(has, needs):
            return f"dimension {d} is {has.name}, not {needs.name}"
        if has.extensions or has.blocks != OPEN:
            for extension in needs.extensions:
                if ":" in extension and extension not in has.extensions:
                    return f"dimension {d} ({has.name}) lacks [{extension}]"
    strides = carried.byte_strides(shape, element_bytes)
    for d, (needed, (stride, exact)) in enumerate(zip(required.alignments, strides, strict=True)):
        if stride % needed:
            what = f"{stride} bytes" if exact else f"known to be a multiple of {stride} bytes only"
            name = carried.dims[d].name
            return f"the stride of dimension {d} ({name}) is {what}, not a multiple of {needed}"
    return None


def may_be(has: Dim, needs: Dim) -> bool:
    """Return whether two dimensions are of the same axis in the same blocks, or one of any."""
    return has.blocks == needs.blocks or OPEN in (has.blocks, needs.blocks)


def axis_sizes(layout: Layout | None, shape: Shape | None) -> dict[str, Size]:
    """Return the size of each axis of a tensor, whole blocks where it is blocked.

    The shape has the size of each physical dimension; no sizes are found without a layout.
    """
    if layout is None or shape is None or len(layout.dims) != len(shape):
        return {}
    found: dict[str, Size] = {}
    for dim, size in zip(layout.dims, shape, strict=True):
        axis = dim.blocks[0].axis
        if len(dim.blocks) == 1 and dim.blocks[0].size is None and axis != ANY:
            factor = layout.factor_of(axis)
            whole = size * factor if isinstance(size, int) else None
            found[axis] = size if factor == 1 else whole
    return found
