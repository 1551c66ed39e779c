"""Layouts of a graph's tensors, as far as its ops determine them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.requirements import OPEN, may_be
from layoutopt.conversion.rules.op import Op, any_layout, plain
from layoutopt.conversion.rules.operator import SPATIAL_AXES, Axes, Category, Operator
from layoutopt.conversion.rules.registry import operator_of, written_layout
from layoutopt.layout.layout import Dim, Layout

FREE = Dim(OPEN)
"""A dimension of which nothing is known."""


@dataclass(frozen=True)
class Conflict:
    """An operand whose axes are not those of the operands before it."""

    operand: int  # its number
    needs: Layout  # the layout that the others have
    dim: int  # the first of the operand's dimensions that differs


def carried(graph: ConversionGraph) -> dict[str, Layout]:
    """Return the layout of each tensor, from inputs on.

    A sensitive op gives its results in the layout in which it is written.  Those of agnostic ops
    have the layout of their operands; ops that move axes take the letters along, axes that are
    new or split are ``*``, and so are all axes of a reshape and of opaque ops.  What is in
    brackets, alignment for example, is known of results of agnostic ops only, or if the op is
    written so.
    """
    found = {name: tensor.layout for name, tensor in graph.tensors.items()}
    for op in graph.ops:
        results = _results(op, [found[name] if name else None for name in op.inputs])
        found.update({n: layout for n, layout in zip(op.outputs, results, strict=True) if n})
    return found


def conflicts(op: Op, layouts: Sequence[Layout | None]) -> list[Conflict]:
    """Return the operands that disagree with those before them about what an axis is.

    Of an op whose operands need not have the same axes, nothing is wrong.  There is a layout for
    each input, None for one that is left out.
    """
    return _merged(op, operator_of(op), layouts)[1]


def letters_of(op: Op, layouts: Mapping[str, Layout]) -> Layout | None:
    """Return the axes that an op works on as it is written, None if its rank is unknown.

    It is an op whose axes have no letters of their own; ``layouts`` are those of tensors that are
    known, as of :func:`carried`.  What operands do not tell is taken by position: N, C, then the
    spatial axes, or the one letter of these that is left.  Axes of which that tells nothing are
    ``*``.
    """
    known = operator_of(op)
    rank = known.rank(op)
    if rank is None:
        return None
    told, _ = _merged(op, known, [layouts.get(name) if name else None for name in op.inputs])
    dims = [FREE] * rank if told is None else [Dim(dim.blocks) for dim in told]
    usual = plain(f"NC{SPATIAL_AXES[rank - 2]}" if 2 <= rank <= 5 else "N" * (rank == 1)).dims
    if len(usual) == rank and FREE in dims:
        left = [dim for dim in usual if dim not in dims]
        if all(map(may_be, dims, usual)):
            dims = list(usual)
        elif dims.count(FREE) == len(left) == 1:
            dims[dims.index(FREE)] = left[0]
    return Layout(tuple(dims))


def filled(layout: Layout, written: Layout | None) -> Layout:
    """Return a layout with its open dimensions as an op reads them that is ``written`` so."""
    if written is None or len(layout.dims) != len(written.dims):
        return layout
    pairs = zip(layout.dims, written.dims, strict=True)
    dims = (Dim(w.blocks, d.extensions) if d.blocks == OPEN else d for d, w in pairs)
    return Layout(tuple(dims), layout.dialect)


def _results(op: Op, layouts: Sequence[Layout | None]) -> list[Layout]:
    known = operator_of(op)
    follow = known.follow(op) if known.category is not Category.HEAVY else ()
    merged = _merged(op, known, layouts)[0]
    results = []
    for n, shape in enumerate(op.output_shapes):
        axes = follow[n] if n < len(follow) else None
        layout = any_layout(None if shape is None else len(shape))
        if axes is not None and merged is not None and len(axes) == len(layout.dims):
            dims = [_taken(merged, axes, a) for a in axes]
            if known.category is not Category.AGNOSTIC:
                dims = [Dim(dim.blocks) for dim in dims]
            layout = Layout(tuple(dims))
        written = written_layout(op, len(op.inputs) + n)
        fits = written is not None and shape is not None and len(written.dims) == len(shape)
        results.append(written if fits and written is not None else layout)
    return results


def _taken(merged: Sequence[Dim], axes: Axes, axis: int | None) -> Dim:
    """Return the dimension of a result that is an axis of the operands.

    Of several axes that take the place of one, nothing is known.  Spatial axes are named by how
    many there are: what is H among two would be W alone.
    """
    if axis is None or axes.count(axis) > 1:
        return FREE
    spatial = any(block.axis in SPATIAL_AXES[3] for block in merged[axis].blocks)
    return FREE if spatial and len(axes) != len(merged) else merged[axis]


def _merged(
    op: Op, known: Operator, layouts: Sequence[Layout | None]
) -> tuple[list[Dim] | None, list[Conflict]]:
    """Return what all operands together tell of the axes, and who disagrees.

    Operands of lower rank are aligned at the last axis; their axes of size 1 tell nothing.
    """
    rank = known.rank(op)
    if rank is None or known.category is Category.HEAVY:
        return None, []
    merged, wrong = [FREE] * rank, list[Conflict]()
    thin = list[tuple[int, Dim]]()
    for n, layout in enumerate(layouts):
        shape = op.shape(n)
        if layout is None or shape is None or len(layout.dims) != len(shape):
            continue
        front = rank - len(shape)
        if front < 0 or not (known.operands is None or n in known.operands):
            continue
        dims = layout.dims if not front else [Dim(dim.blocks) for dim in layout.dims]
        told = [(front + d, dim) for d, dim in enumerate(dims) if shape[d] != 1]
        thin += [(front + d, dim) for d, dim in enumerate(dims) if shape[d] == 1]
        bad = [d - front for d, dim in told if not may_be(dim, merged[d])]
        if bad:
            wrong.append(Conflict(n, Layout(tuple(merged[front:]), layout.dialect), bad[0]))
        else:
            _tell(merged, told)
    _tell(merged, [(d, dim) for d, dim in thin if dim.blocks not in {m.blocks for m in merged}])
    return merged, wrong


def _tell(merged: list[Dim], told: Sequence[tuple[int, Dim]]) -> None:
    for d, dim in told:
        if merged[d].blocks == OPEN:
            merged[d] = dim
