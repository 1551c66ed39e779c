"""Layouts in which a backend, or a user, wants an op to run."""

from __future__ import annotations

from layoutopt.errors import InputError
from layoutopt.layout.layout import ANY, Layout
from layoutopt.layout.permutations import Permutation
from layoutopt.operators.op import Op
from layoutopt.operators.operands import OperandLayouts
from layoutopt.operators.registry import operand_axes, written_input, written_output
from layoutopt.operators.remapping import Remapped
from layoutopt.requirements.requirements import Requirements


def required(op: Op, requirements: Requirements) -> tuple[Remapped, OperandLayouts | None] | None:
    """Return how an op is to run, None if nothing is required of it.

    Parameters
    ----------
    op
        The op.
    requirements
        What is required.

    Returns
    -------
    tuple
        The permutation of each operand and result, and how the op is written then; its attributes
        stay.

    Raises
    ------
    InputError
        If the required layout is none of whole axes, or one of axes that have no known meaning.
    """
    count = len(op.inputs)
    inputs = [
        _permutation(op, written_input(op, n), requirements.input_requirement(op, n), op.rank(n))
        for n in range(count)
    ]
    outputs = [
        _permutation(
            op,
            written_output(op, n),
            requirements.result_requirement(op, n),
            None if shape is None else len(shape),
        )
        for n, shape in enumerate(op.output_shapes)
    ]
    if operand_axes(op) is None and op.layouts is None:
        return None
    before = [_moved(written_input(op, n), p) for n, p in enumerate(inputs)]
    after = [_moved(written_output(op, n), p) for n, p in enumerate(outputs)]
    layouts = op.layouts
    if any(p is not None for p in (*inputs, *outputs)):
        layouts = OperandLayouts(tuple(before), tuple(after))
    remapped = Remapped(dict(op.attributes), tuple(inputs), tuple(outputs))
    return remapped, _unless_plain(op, layouts)


def _permutation(
    op: Op, written: Layout | None, needed: Layout, rank: int | None
) -> Permutation | None:
    """Return the permutation from the layout in which an op is written; None if it stays."""
    if needed.undefined or needed.is_any or needed == written:
        return None
    if any(dim.extensions or any(b.size is not None for b in dim.blocks) for dim in needed.dims):
        raise InputError(f"{op}: {needed} is required; only orders of whole axes can be converted")
    if written is None or written.undefined:
        raise InputError(f"{op}: layout {needed} is required, but its axes have no known letters")
    if rank is not None and len(needed.dims) != rank:
        raise InputError(f"{op}: layout {needed} is required of a tensor of {rank} axes")
    letters, wanted = _letters(written), _letters(needed)
    if all(ANY in (a, b) or a == b for a, b in zip(letters, wanted, strict=False)):
        return None
    if sorted(letters) != sorted(wanted) or ANY in letters or len(set(letters)) < len(letters):
        raise InputError(f"{op}: the required {needed} is no order of its axes {written}")
    return tuple(map(letters.index, wanted))


def _letters(layout: Layout) -> list[str]:
    return ["".join(block.axis for block in dim.blocks) for dim in layout.dims]


def _moved(written: Layout | None, permutation: Permutation | None) -> Layout | None:
    if written is None or permutation is None:
        return written
    return Layout(tuple(written.dims[i] for i in permutation), written.dialect)


def _unless_plain(op: Op, layouts: OperandLayouts | None) -> OperandLayouts | None:
    """Return layouts, None if they are those in which ONNX writes the op."""
    axes = operand_axes(op)
    if layouts is None or axes is None:
        return layouts
    sides = ((layouts.inputs, axes.input), (layouts.outputs, axes.output))
    own = all(
        layout is None or "".join(_letters(layout)) == letters(n)
        for side, letters in sides
        for n, layout in enumerate(side)
    )
    return None if own else layouts
