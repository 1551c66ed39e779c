"""Keys by which nodes that compute the same are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from hashlib import sha256
from typing import Any

from numpy.typing import NDArray

from layoutopt.conversion.rules.registry import OPERATORS, type_facts
from layoutopt.onnx.protobuf import (
    FunctionKey,
    bodies,
    called_by,
    copied,
    copied_except,
    functions_of,
    is_standard,
    onnx,
    type_of,
)

KNOWN_DOMAINS = {"ai.onnx.ml", "com.microsoft"}
"""Domains besides ONNX's own whose ops do nothing but make results."""


class NodeKeys:
    """Keys of the nodes and constants of one network."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.functions = functions_of(model)
        self._pure: dict[FunctionKey, bool] = {}
        self._digests: dict[str, Hashable] = {}

    def is_standard(self, node: onnx.NodeProto) -> bool:
        """Return whether a node is ONNX's own op, and none that a function takes the place of."""
        return is_standard(node.domain) and called_by(node) not in self.functions

    def may_go(self, node: onnx.NodeProto) -> bool:
        """Return whether a node does nothing but make its results."""
        known = is_standard(node.domain) or node.domain in KNOWN_DOMAINS
        return known or called_by(node) in self.functions or type_of(node) in OPERATORS

    def is_pure(self, node: onnx.NodeProto, values: Mapping[str, NDArray[Any]]) -> bool:
        """Return whether equal inputs make equal results, as far as small constants tell."""
        if any(bodies(node)):
            return False
        called = called_by(node)
        if called in self.functions:
            if called not in self._pure:
                inside = self.functions[called].node
                self._pure[called] = all(self.is_pure(one, {}) for one in inside)
            return self._pure[called]
        if is_standard(node.domain):
            drops = node.op_type == "Dropout" and not only_passes(node, values)
            return not (type_facts(node.op_type).random or drops)
        return type_of(node) in OPERATORS or node.domain == "ai.onnx.ml"

    def node(
        self, node: onnx.NodeProto, keys: Mapping[str, Hashable], values: Mapping[str, NDArray[Any]]
    ) -> Hashable | None:
        """Return what nodes that compute the same have in common, None for one like no other.

        ``keys`` are those of constants by name, ``values`` the small ones.
        """
        if not node.input or not self.is_pure(node, values):
            return None
        inputs = tuple(keys.get(name, name) for name in node.input)
        domain = "" if is_standard(node.domain) else node.domain
        own = (domain, node.op_type, node.overload, len(node.output))
        return (*own, inputs, attributes_key(node))

    def tensor(self, name: str, tensor: onnx.TensorProto) -> Hashable:
        """Return what equal constants have in common; ``name`` is that in the network."""
        if name not in self._digests:
            values = tensor.raw_data
            if not values:
                own = onnx.TensorProto()
                copied_except(tensor, own, "name", "doc_string")
                values = own.SerializeToString(deterministic=True)
            digest = sha256(values).digest()
            self._digests[name] = (tensor.data_type, tuple(tensor.dims), digest)
        return self._digests[name]


def attributes_key(node: onnx.NodeProto) -> Hashable:
    """Return what nodes with equal attributes have in common."""
    found = []
    for attribute in node.attribute:
        own = copied(attribute)
        own.ClearField("doc_string")
        found.append(own.SerializeToString(deterministic=True))
    return tuple(sorted(found))


def only_passes(node: onnx.NodeProto, values: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether a Dropout drops nothing, as it does not train."""
    mode = node.input[2] if len(node.input) > 2 else ""
    value = values.get(mode)
    return not mode or (value is not None and not value.any())
