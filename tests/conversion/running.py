"""Runs conversion graphs on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Conversion
from layoutopt.operators.op import Op
from tests.conversion.drawn import WEIGH
from tests.operators.onnx_ops import Array, results


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
        for name, array in zip(op.outputs, _results(op, operands), strict=True):
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
                old = given[relaid.source]
                shaped = old if relaid.shape is None else old.reshape(relaid.shape)  # type: ignore[arg-type]
                arrays[name] = shaped.transpose(relaid.permutation)
            assert arrays[name].shape == tensor.shape
    return run(conversion.graph, arrays)


def _results(op: Op, operands: list[Array | None]) -> list[Array]:
    first = operands[0]
    assert first is not None
    if op.type == "Transpose":
        return [first.transpose(op.attributes["perm"])]
    if op.type == "Reshape":
        return [first.reshape(op.attributes["shape"])]
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
    """Run a convolution on data with channels last and weights as HWIO."""
    assert op.type == "Conv" and str(op.layouts) == "NHWC,HWIO->NHWC"
    x, w = operands
    assert x is not None and w is not None
    plain = replace(
        op,
        layouts=None,
        input_shapes=(tuple(x.transpose(0, 3, 1, 2).shape), tuple(w.transpose(3, 2, 0, 1).shape)),
    )
    return [
        y.transpose(0, 2, 3, 1)
        for y in _results(plain, [x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)])
    ]
