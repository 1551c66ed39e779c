"""Constants in another layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.result import TransformedConstant
from layoutopt.layout.factors import steps
from layoutopt.onnx.protobuf import copied, is_standard

if TYPE_CHECKING:
    from onnx import NodeProto, SparseTensorProto, TensorProto

    from layoutopt.onnx.source import Constant


def is_filled(constant: NodeProto) -> bool:
    """Return whether a constant node fills a shape with one value."""
    return constant.op_type == "ConstantOfShape"


def relaid_tensor(constant: Constant, how: TransformedConstant, name: str) -> TensorProto:
    """Return a constant in another layout, as an initialiser.

    Raises
    ------
    InputError
        If its values cannot be read.
    """
    from onnx import TensorProto, numpy_helper

    try:
        values = array_of(constant)
        if values.size == 1:  # that of each element, where a shape is filled
            values = np.broadcast_to(values, [int(size or 0) for size in how.shape])
        for step in steps(tuple(range(values.ndim)), how.form, values.shape):
            values = step.apply(values)
        tensor = numpy_helper.from_array(np.ascontiguousarray(values))
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"constant {how.source!r} cannot be re-laid ({error})") from None
    if isinstance(constant, TensorProto) and tensor.data_type != constant.data_type:
        raise InputError(f"constant {how.source!r} cannot be re-laid: its type is not read")
    tensor.name = name
    return tensor


def relaid_fill(node: NodeProto, shape: TensorProto, name: str) -> NodeProto:
    """Return a node that fills another shape with the same value."""
    new = copied(node)
    new.name = name if node.name else ""
    new.input[0], new.output[0] = shape.name, name
    return new


def sparse_value(node: NodeProto) -> SparseTensorProto | None:
    """Return the value of a node that makes a sparse constant, else None."""
    if node.op_type == "Constant" and is_standard(node.domain):
        for attribute in node.attribute:
            if attribute.name == "sparse_value":
                sparse: SparseTensorProto = attribute.sparse_tensor
                return sparse
    return None


def array_of(constant: Constant | SparseTensorProto) -> NDArray[Any]:
    """Return the values of an initialiser, sparse or not, or of a constant node."""
    from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

    if isinstance(constant, TensorProto):
        return np.asarray(numpy_helper.to_array(constant))
    if isinstance(constant, SparseTensorProto):
        return _filled(constant)
    [attribute] = constant.attribute
    if attribute.name == "value":
        return np.asarray(numpy_helper.to_array(attribute.t))
    if attribute.name == "sparse_value":
        return _filled(attribute.sparse_tensor)
    kinds = {"f": np.float32, "i": np.int64, "s": np.object_}
    kind = kinds[attribute.name.removeprefix("value_")[0]]
    return np.array(helper.get_attribute_value(attribute), kind)


def _filled(sparse: SparseTensorProto) -> NDArray[Any]:
    """Return a sparse tensor with its zeros; places are flat, or a row of indices each."""
    from onnx import numpy_helper

    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    found = np.zeros(tuple(sparse.dims), values.dtype)
    if places.ndim == 2:
        found[tuple(places.T)] = values
    else:
        found.reshape(-1)[places] = values
    return found
