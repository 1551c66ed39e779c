"""Single ops of ONNX, and runs of them: the independent word on what an op does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from layoutopt.conversion.rules.op import LATEST, Op, Shape, parse_operands
from layoutopt.conversion.rules.registry import operator_of

Array = NDArray[Any]


def op(
    op_type: str,
    *shapes: Shape | None,
    outputs: int = 1,
    opset: int = 22,
    layouts: str = "",
    out: Shape | None = None,
    **attributes: Any,
) -> Op:
    """Return an op with inputs ``x0``, ``x1``, ... of some shapes; maybe that of its result."""
    return Op(
        op_type,
        attributes,
        tuple(f"x{n}" for n in range(len(shapes))),
        tuple(f"y{n}" for n in range(outputs)),
        shapes,
        () if out is None else (out,),
        name="it",
        opset=opset,
        layouts=parse_operands(layouts) if layouts else None,
    )


def op_of(
    op_type: str,
    arrays: Sequence[Array | None],
    attributes: dict[str, Any] | None = None,
    opset: int = LATEST,
    outputs: int = 1,
    kinds: bool = False,
) -> Op:
    """Return an op for given operands; None for one that is left out.

    With ``kinds`` it is told the type of its elements.
    """
    kind = arrays[0].dtype if kinds and arrays and arrays[0] is not None else None
    return Op(
        op_type,
        attributes or {},
        tuple("" if array is None else f"x{n}" for n, array in enumerate(arrays)),
        tuple(f"y{n}" for n in range(outputs)),
        tuple(None if array is None else array.shape for array in arrays),
        opset=opset,
        element_type="float" if kind == np.float32 else str(kind or ""),
    )


def results(op: Op, arrays: Sequence[Array | None], runtime: str = "onnx") -> list[Array]:
    """Run an op.

    Attributes that ONNX takes as inputs in the op's version are given as such.

    Parameters
    ----------
    runtime
        ``onnx`` for its reference evaluator, ``ort`` for onnxruntime.
    """
    model, feeds = _model(op, arrays)
    if runtime == "onnx":
        return list(ReferenceEvaluator(model).run(None, feeds))
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, feeds))


def _model(op: Op, arrays: Sequence[Array | None]) -> tuple[onnx.ModelProto, dict[str, Array]]:
    domain, _, plain_type = op.type.rpartition("::")
    names = [
        name if array is not None else "" for name, array in zip(op.inputs, arrays, strict=True)
    ]
    feeds = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
    attributes = dict(op.attributes)
    for name, place in operator_of(op).parameters.items():
        known = onnx.defs.get_schema(plain_type, op.opset, domain).attributes
        if name in attributes and name not in known:
            names += [""] * (place + 1 - len(names))
            names[place] = name
            feeds[name] = _parameter(plain_type, name, attributes.pop(name))
    node = helper.make_node(plain_type, names, list(op.outputs), domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in op.outputs]
    opsets = [helper.make_opsetid("", op.opset)]
    if domain:
        opsets = [helper.make_opsetid("", LATEST), helper.make_opsetid(domain, 1)]
    graph = helper.make_graph([node], "one op", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def _parameter(op_type: str, name: str, values: Any) -> Array:
    if name in ("scales", "roi"):
        return np.array(values, np.float32)
    scalar = name == "k" or (op_type in ("CumSum", "CumProd") and name == "axis")
    return np.array(values, np.int64).reshape(() if scalar else -1)
