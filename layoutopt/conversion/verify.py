"""Violations of the layouts that ops, or a backend, require of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from layoutopt.conversion.carried import FREE, carried, conflicts, filled
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.requirements import Requirements, may_be, mismatch
from layoutopt.conversion.rules.op import UNKNOWN, Op, Shape
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import (
    category_of,
    operand_axes,
    written_layout,
)
from layoutopt.layout.layout import Layout
from layoutopt.layout.semantics import consumed_as


@dataclass(frozen=True)
class Violation:
    """A layout that is not as required."""

    op: str  # `op`, `type`: name and type of the op that reads or makes the tensor
    type: str
    operand: str  # `input 0` or `result 0`, with the number
    tensor: str
    # `has`, `needs`: the layout that it has, as the op reads it, and the one that is required
    has: Layout
    needs: Layout
    why: str  # what is wrong with it, in one line

    def __str__(self) -> str:
        who = f"{self.type} {self.op!r}, {self.operand} {self.tensor!r}"
        return f"{who}: has {self.has}, needs {self.needs}: {self.why}"


def verify(graph: ConversionGraph, requirements: Requirements) -> list[Violation]:
    """Return every layout in a graph that is not as required.

    For each operand and result of each op, in order:

    - what is known of its axes must be what the op reads them as, so that the output of a
      convolution is not taken for weights, nor NHWC for NCHW;
    - operands of elementwise ops, and of others that join tensors, must have the same axes;
    - it must satisfy the backend's requirement, alignment included.  What is not known of its
      axes is what the op reads them as.

    Parameters
    ----------
    graph
        The graph.
    requirements
        What the backend needs.
    """
    layouts = carried(graph)
    return [one for op in graph.ops for one in _violations(graph, op, requirements, layouts)]


def _violations(
    graph: ConversionGraph, op: Op, requirements: Requirements, layouts: Mapping[str, Layout]
) -> Iterator[Violation]:
    if category_of(op) is Category.HEAVY and operand_axes(op) is None and op.layouts is None:
        name = op.inputs[0] if op.inputs else ""
        why = "its axes have no known meaning, as the op is not written for data of this rank"
        yield Violation(op.name, op.type, "input 0", name, layouts.get(name, UNKNOWN), UNKNOWN, why)
        return

    def unmet(side: str, name: str, has: Layout, needs: Layout) -> Iterator[Violation]:
        tensor = graph.tensors[name]
        if not requirements.is_satisfied_by(has, needs, tensor.shape, tensor.element_bytes):
            why = mismatch(has, needs, tensor.shape, tensor.element_bytes)
            why = why or "the backend does not take it so"
            yield Violation(op.name, op.type, side, name, has, needs, why)

    wrong = {one.operand: one for one in conflicts(op, [layouts.get(name) for name in op.inputs])}
    for n, name in enumerate(op.inputs):
        if not name:
            continue
        has, written, side = layouts[name], written_layout(op, n), f"input {n}"
        found = _misread(has, written, graph.tensors[name].shape)
        if found is None and n in wrong:
            needs, dim = wrong[n].needs, wrong[n].dim
            other = f"{has.dims[dim].name} where others have {needs.dims[dim].name}"
            found = needs, f"operands must have the same axes, and dimension {dim} is {other}"
        if found is not None:
            yield Violation(op.name, op.type, side, name, has, *found)
        needs = requirements.input_requirement(op, n)
        if found is None or needs != found[0]:
            yield from unmet(side, name, filled(has, written), needs)
    for n, name in enumerate(op.outputs):
        if name:
            has = filled(layouts[name], written_layout(op, len(op.inputs) + n))
            needs = requirements.result_requirement(op, n)
            yield from unmet(f"result {n}", name, has, needs)


def _misread(has: Layout, written: Layout | None, shape: Shape | None) -> tuple[Layout, str] | None:
    """Return what an op takes a tensor's axes for, and what they are, if these differ.

    Dimensions of size 1 may be of any axis.
    """
    if written is None or written.undefined or has.undefined:
        return None
    if len(has.dims) != len(written.dims):
        return written, f"it has {len(has.dims)} dimensions, not {len(written.dims)}"
    pairs = list(zip(has.dims, written.dims, strict=True))
    sizes = [None] * len(pairs) if shape is None else shape
    if all(size == 1 or may_be(a, b) for size, (a, b) in zip(sizes, pairs, strict=True)):
        return None
    # What is open on one side is taken to be what the other side says.
    known = [(b if a == FREE else a).name for a, b in pairs]
    wanted = [(a if b == FREE else b).name for a, b in pairs]
    return written, consumed_as(known, wanted) or "its axes are others"
