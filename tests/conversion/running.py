"""Runs conversion graphs on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Conversion
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.registry import operand_axes
from layoutopt.layout.layout import Layout
from tests.conversion.drawn import WEIGH
from tests.conversion.onnx_ops import Array, results
from tests.layout.drawn import formed


def arrays_of(graph: ConversionGraph, seed: int) -> dict[str, Array]:
    """Return small whole numbers for inputs and constants, so that sums are exact."""
    draw = np.random.default_rng(seed)
    return {
        name: _filled(draw, [int(s) for s in tensor.shape or ()], tensor.element_bytes)  # type: ignore[arg-type]
        for name, tensor in graph.tensors.items()
        if tensor.kind != "activation"
    }


def _filled(draw: np.random.Generator, shape: list[int], element_bytes: int) -> Array:
    if element_bytes == 8:  # indices
        return draw.integers(0, 2, shape).astype(np.int64)
    return draw.integers(-3, 4, shape).astype(np.float64)


def run(graph: ConversionGraph, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return all tensors of a graph."""
    found = dict(given)
    for op in graph.ops:
        operands = [found[name] if name else None for name in op.inputs]
        for name, array in zip(op.outputs, results_of(op, operands), strict=True):
            shape = graph.tensors[name].shape
            assert array.shape == shape, f"{op} gives {name} in shape {array.shape}, not {shape}"
            found[name] = array
    return found


def run_conversion(conversion: Conversion, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return all tensors of a new graph, for the arrays of the old one."""
    arrays = {}
    for name, tensor in conversion.graph.tensors.items():
        if tensor.kind == "input":
            order = conversion.freed.get(name)
            arrays[name] = given[name] if order is None else given[name].transpose(order)
        elif tensor.kind == "constant":
            relaid = conversion.relaid.get(name)
            if relaid is None:
                arrays[name] = given[name]
            else:
                arrays[name] = formed(given[relaid.source], relaid.form)
            assert arrays[name].shape == tensor.shape
    return run(conversion.graph, arrays)


def assert_same(graph: ConversionGraph, found: Conversion, seed: int) -> None:
    """Expect a conversion to give what its graph gave, in another order of axes if freed."""
    given = arrays_of(graph, seed)
    before, after = run(graph, given), run_conversion(found, given)
    assert found.graph.outputs == graph.outputs
    for name in graph.outputs:
        order = found.freed.get(name)
        expected = before[name] if order is None else before[name].transpose(order)
        np.testing.assert_allclose(after[name], expected, rtol=1e-12)


def results_of(op: Op, operands: list[Array | None]) -> list[Array]:
    first = operands[0]
    assert first is not None
    if op.type == "Transpose":
        return [first.transpose(op.attributes["perm"])]
    if op.type == "Reshape":
        sizes = op.attributes["shape"]
        return [first.reshape([first.shape[i] if s == 0 else s for i, s in enumerate(sizes)])]
    if op.type == "Slice" and "starts" in op.attributes:
        cut = {
            a: slice(0, end)
            for a, end in zip(op.attributes["axes"], op.attributes["ends"], strict=True)
        }
        return [first[tuple(cut.get(axis, slice(None)) for axis in range(first.ndim))]]
    if op.type == "Identity":
        return [first]
    if op.type == WEIGH:
        return [first * np.arange(1, first.size + 1).reshape(first.shape)]
    if op.layouts is not None:
        return _written_otherwise(op, operands)
    named = replace(
        op,
        inputs=tuple(f"x{n}" for n in range(len(op.inputs))),
        outputs=tuple(f"y{n}" for n in range(len(op.outputs))),
    )
    return results(named, operands)


def _written_otherwise(op: Op, operands: list[Array | None]) -> list[Array]:
    """Run an op on operands that are written in other layouts than ONNX's."""
    axes, layouts = operand_axes(op), op.layouts
    assert axes is not None and layouts is not None
    plain = [
        None if x is None else to_axes(x, layouts.input(n), _letters(axes.input(n)))
        for n, x in enumerate(operands)
    ]
    shapes = tuple(None if x is None else x.shape for x in plain)
    found = results_of(replace(op, layouts=None, input_shapes=shapes), plain)
    return [to_layout(y, layouts.output(n), _letters(axes.output(n))) for n, y in enumerate(found)]


def _letters(layout: Layout | None) -> str:
    return "" if layout is None else layout.letters


def to_layout(array: Array, layout: Layout | None, axes: str) -> Array:
    """Return an array whose axes have letters in a layout of blocks that divide them."""
    if layout is None or layout.undefined:
        return array
    cut, letters = array, list(axes)
    for dim in layout.dims[::-1]:
        [block] = dim.blocks
        if block.size is not None:
            at = letters.index(block.axis)
            cut = cut.reshape(*cut.shape[:at], -1, block.size, *cut.shape[at + 1 :])
            letters.insert(at + 1, str(block))
    return cut.transpose([letters.index(str(dim.blocks[0])) for dim in layout.dims])


def to_axes(array: Array, layout: Layout | None, axes: str) -> Array:
    """Return an array in a layout of blocks with its axes as their letters tell."""
    if layout is None or layout.undefined:
        return array
    sizes = [array.shape[layout.index_of(a)] * layout.factor_of(a) for a in axes]
    numbers = to_layout(np.arange(array.size).reshape(sizes), layout, axes)
    found = np.empty(array.size, array.dtype)
    found[numbers.ravel()] = array.ravel()
    return found.reshape(sizes)
