"""Ops with bodies: which of their operands and results, inside and outside, share a layout.

A value that a Loop or Scan carries from round to round has one layout: as it comes, in the body, as
the body gives it back, and as a result.  So have the outputs of the branches of an If and the
result.  What is scanned has the layout of its elements beside the axis of the rounds, which may be
anywhere for a Scan, and is the first one for a Loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from layoutopt.conversion.rules.blocks import Cut, Outcome
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.operator import RemapError, Remapped
from layoutopt.layout.permutations import Permutation

TIE = "layoutopt::Tie"
"""Type of operands and results that share a layout, taken for an op of their own.

With an attribute ``axis``, one of the two has this axis and the other has not.  It stays where it
is, unless ``told`` names the attribute by which the op tells it.
"""

SINCE_SCAN_AXES = 9
"""The version of ONNX's operator set since which Scan has axes, and no batch."""


@dataclass(frozen=True)
class OpPart:
    """Operands and results of an op whose layouts do not depend on those of its others."""

    owner: Op
    op: Op  # these operands and results as an op; the owner if they are all
    inputs: Sequence[int]  # `inputs`, `outputs`: their places in the owner
    outputs: Sequence[int]


def parts(op: Op) -> list[OpPart]:
    """Return the parts of an op: first what stays as it is written, then what is tied."""
    every = range(len(op.inputs)), range(len(op.outputs))
    if not op.bodies:
        return [OpPart(op, op, *every)]
    tied = [_part(op, TIE, *tie) for tie in _ties(op)]
    inputs = [n for n in every[0] if all(n not in part.inputs for part in tied)]
    outputs = [n for n in every[1] if all(n not in part.outputs for part in tied)]
    return [_part(op, op.type, inputs, outputs, op.attributes), *tied]


def _part(
    op: Op, type: str, inputs: Sequence[int], outputs: Sequence[int], attributes: Mapping[str, Any]
) -> OpPart:
    own = replace(
        op,
        type=type,
        attributes=attributes,
        inputs=tuple(op.inputs[n] for n in inputs),
        outputs=tuple(op.outputs[n] for n in outputs),
        input_shapes=tuple(op.input_shapes[n] for n in inputs),
        output_shapes=tuple(op.output_shapes[n] for n in outputs),
        bodies=(),
    )
    return OpPart(op, own, inputs, outputs)


Tie: TypeAlias = tuple[Sequence[int], Sequence[int], Mapping[str, Any]]
"""Places of operands and of results, and attributes."""


def _ties(op: Op) -> Iterator[Tie]:
    """Yield what shares a layout; nothing if operands do not fit bodies."""
    places = list(op.places())
    _, given, returned = places[0]
    operands = len(op.inputs) - sum(len(back) for _, _, back in places)
    results = len(op.outputs) - sum(len(front) for _, front, _ in places)
    if op.type == "If" and [len(back) for _, _, back in places] == [results] * 2:
        for k in range(results):
            yield [back[k] for _, _, back in places], [k], {}
    if op.type == "Loop" and operands == len(given):
        yield from _carried(range(2, operands), results, given[2:], returned[1:])
        for n, back in zip(range(operands - 2, results), returned[operands - 1 :], strict=False):
            yield [back], [n], {"axis": 0}
    count = op.integer("num_scan_inputs", 0) if op.type == "Scan" else 0
    if op.type == "Scan" and op.opset >= SINCE_SCAN_AXES and operands == len(given):
        carried = operands - count
        yield from _carried(range(carried), results, given, returned)
        for n in range(carried, operands):
            axis = _axis(op, "scan_input_axes", n - carried, op.shape(n))
            yield [n], [given[n]], axis
        for n, back in zip(range(carried, results), returned[carried:], strict=False):
            shape = op.output_shapes[n]
            axis = _axis(op, "scan_output_axes", n - carried, shape)
            # onnxruntime divides by zero where it moves axes of results without elements
            yield [back], [n], {"axis": axis["axis"]} if 0 in (shape or ()) else axis


def _carried(
    operands: Sequence[int], results: int, given: Sequence[int], returned: Sequence[int]
) -> Iterator[Tie]:
    """Yield what is carried: the first results, as many as there are operands."""
    for k, (n, front, back) in enumerate(zip(operands, given, returned, strict=False)):
        if k < results:
            yield [n, back], [k, front], {}


def _axis(op: Op, name: str, number: int, shape: Shape | None) -> Mapping[str, Any]:
    """Return the axis of the rounds, counted from the first, and the attribute that tells it."""
    axes = op.integers(name) or ()
    axis = axes[number] if number < len(axes) else 0
    return {"axis": axis % len(shape) if shape else axis, "told": name}


def tied_rank(op: Op) -> int | None:
    """Return the largest rank of what shares a layout; None if some rank does not fit."""
    slots = zip((*op.inputs, *op.outputs), op.shapes, strict=True)
    shapes = [shape for name, shape in slots if name]
    ranks = [len(shape) for shape in shapes if shape is not None]
    most = max(ranks, default=0)
    fit = [most - 1, most] if "axis" in op.attributes else [most] * len(shapes)
    return most if sorted(ranks) == fit else None


def tied(op: Op, permutation: Permutation) -> Remapped:
    """Permute all alike; what lacks the axis of the rounds, in the order of the other axes."""
    axis, attributes = op.attributes.get("axis", -1), dict(op.attributes)
    if axis >= 0:
        attributes["axis"] = permutation.index(axis)
    if attributes != op.attributes and "told" not in attributes:
        raise RemapError(f"{op}: the axis of its rounds must stay where it is")
    bare = tuple(a - (a > axis) for a in permutation if a != axis)
    every = op.shapes
    forms = [
        None if s is None else permutation if len(s) == len(permutation) else bare for s in every
    ]
    count = len(op.inputs)
    return Remapped(attributes, tuple(forms[:count]), tuple(forms[count:]))


def tied_blocks(cut: Cut, from_result: bool) -> Outcome:
    """Change nothing; refuse to cut what is scanned."""
    return None if "axis" in cut.op.attributes else ({}, None)
