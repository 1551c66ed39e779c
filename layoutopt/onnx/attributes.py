"""Nodes read as ops: attributes, and inputs that hold what other versions have as attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from numpy.typing import NDArray

from layoutopt.conversion.rules.op import Op, OperandLayouts
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.onnx.protobuf import is_standard, onnx, type_of
from layoutopt.onnx.validate import kinds_of, schema

KnownLayouts: TypeAlias = Mapping[tuple[str, str], tuple[str, OperandLayouts]]
"""By domain and name of a function the type of the op that it stands for, and its layouts."""

NO_LAYOUTS: KnownLayouts = MappingProxyType({})

RULES_UP_TO = 28
"""The version of ONNX's operator set that rules are known to be true of.  Ops that a later version
changes are opaque; their type ends in its number."""


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes but graphs and tensors: numbers, texts, and tuples of these."""
    return {a.name: value for a in node.attribute if (value := _value(a)) is not None}


def as_value(array: NDArray[Any]) -> Any:
    """Return an array of up to one axis as a number or a tuple of numbers."""
    return array.item() if array.ndim == 0 else tuple(array.reshape(-1).tolist())


def is_attribute(op: Op, name: str) -> bool:
    """Return whether an op of its version has something as an attribute, and not as an input."""
    known = schema(op.type, op.opset)
    return known is None or name in known.attributes


def set_attribute(node: onnx.NodeProto, op: Op, name: str, value: Any) -> None:
    """Give a node an attribute, of the type that it had or that its op wants."""
    old = next((a for a in node.attribute if a.name == name), None)
    known = schema(op.type, op.opset)
    kind = old.type if old is not None else None
    if kind is None and known is not None and name in known.attributes:
        kind = kinds_of(known)[name]
    if old is not None:
        node.attribute.remove(old)
    listed = list(value) if isinstance(value, tuple) else value
    node.attribute.append(onnx.helper.make_attribute(name, listed, attr_type=kind))


def op_of(
    node: onnx.NodeProto,
    versions: Mapping[str, int],
    values: Mapping[str, NDArray[Any]],
    *,
    name: str = "",
    known: KnownLayouts = NO_LAYOUTS,
) -> Op:
    """Return a node as an op, without shapes.

    Inputs that hold axes, pads and the like stand among its attributes as well if ``values``, the
    small constants by name, tell them.  ``versions`` has the version of each operator set, ``""``
    for ONNX's own, and ``known`` the functions that stand for ops in other layouts than ONNX has.
    """
    type, layouts = known.get((node.domain, node.op_type), (type_of(node), None))
    domain = node.domain if layouts is None else type.rpartition("::")[0]
    version = versions.get("" if is_standard(domain) else domain, 1)
    since = getattr(schema(type, version), "since_version", 0) if is_standard(domain) else 0
    if since > RULES_UP_TO:
        type = f"{type}-{since}"
    inputs, outputs = tuple(node.input), tuple(node.output)
    op = Op(type, attributes(node), inputs, outputs, name=name, opset=version, layouts=layouts)
    told = {
        name: as_value(values[inputs[n]])
        for name, n in operator_of(op).parameters.items()
        if n < len(inputs) and inputs[n] in values
    }
    return replace(op, attributes={**op.attributes, **told}) if told else op


def _value(attribute: onnx.AttributeProto) -> Any:
    """Return a number, a text or a tuple of these, None for an attribute of something else."""
    kind = onnx.AttributeProto
    if attribute.type in (kind.FLOAT, kind.INT, kind.STRING):
        return _plain(onnx.helper.get_attribute_value(attribute))
    if attribute.type in (kind.FLOATS, kind.INTS, kind.STRINGS):
        return tuple(map(_plain, onnx.helper.get_attribute_value(attribute)))
    return None


def _plain(value: Any) -> Any:
    """Return bytes as a text, and each NaN as one object: attributes that hold it are equal."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return math.nan if value != value else value
