"""Names of tensors, fresh ones and captured ones, and keys by which equal nodes are known."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from layoutopt.conversion.rewrite import unused
from layoutopt.conversion.rules.registry import OPERATORS, type_facts
from layoutopt.onnx.protobuf import (
    bodies,
    copied,
    copied_except,
    defined,
    graphs,
    is_standard,
    onnx,
    type_of,
)

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto


class NetworkNames:
    """The names of tensors, and of nodes, of a network and all graphs inside its nodes."""

    def __init__(self, model: ModelProto) -> None:
        self.taken = {""}
        for graph in graphs(model.graph):
            self.taken |= {x.name for x in (*graph.input, *graph.output, *graph.initializer)}
            self.taken |= {x.values.name for x in graph.sparse_initializer}
            for node in graph.node:
                self.taken.update((node.name, *node.input, *node.output))

    def fresh(self, wish: str) -> str:
        """Return a name like the one wished for, and remember that it is taken."""
        return unused(wish, self.taken)


def unshadow(graph: GraphProto, names: NetworkNames) -> None:
    """Give what graphs inside a graph make other names than what any other graph makes.

    So a value that is read in there by another name, as it is the same, is not taken for theirs,
    nor are types of one for those of another.
    """
    own = defined(graph)
    for node in graph.node:
        for body in bodies(node):
            _rename_own(body, own, names)
            unshadow(body, names)
            own |= {name for one in graphs(body) for name in defined(one)}


def rename(node: NodeProto, names: Mapping[str, str], *, results: bool = False) -> None:
    """Let a node, and the graphs inside it, read by new names, and write its ``results`` so."""
    if not names:
        return
    for n, name in enumerate(node.input):
        if name in names:
            node.input[n] = names[name]
    for n, name in enumerate(node.output if results else ()):
        if name in names:
            node.output[n] = names[name]
    for body in bodies(node):
        _rename(body, names)


def _rename_own(graph: GraphProto, hidden: Collection[str], names: NetworkNames) -> None:
    """Give what a graph, and those inside it, make under some names other ones."""
    own = {name: names.fresh(f"{name}_own") for name in sorted(defined(graph).intersection(hidden))}
    if own:
        tensors = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
        for tensor in (*tensors, *(x.values for x in graph.sparse_initializer)):
            tensor.name = own.get(tensor.name, tensor.name)
        for note in graph.quantization_annotation:
            note.tensor_name = own.get(note.tensor_name, note.tensor_name)
            for entry in note.quant_parameter_tensor_names:
                entry.value = own.get(entry.value, entry.value)
        for node in graph.node:
            rename(node, own, results=True)
    for node in graph.node:
        for body in bodies(node):
            _rename_own(body, hidden, names)


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename what a graph, and those inside it, capture."""
    own = defined(graph)
    names = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        rename(node, names)
    for value in graph.output:
        value.name = names.get(value.name, value.name)


KNOWN_DOMAINS = {"ai.onnx.ml", "com.microsoft"}
"""Domains besides ONNX's own whose ops do nothing but make results."""


class NodeKeys:
    """Keys of the nodes and constants of one network."""

    def __init__(self, model: ModelProto) -> None:
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self._pure: dict[tuple[str, str], bool] = {}
        self._digests: dict[str, Hashable] = {}

    def is_standard(self, node: NodeProto) -> bool:
        """Return whether a node is ONNX's own op, and none that a function takes the place of."""
        return is_standard(node.domain) and (node.domain, node.op_type) not in self.functions

    def may_go(self, node: NodeProto) -> bool:
        """Return whether a node does nothing but make its results."""
        known = is_standard(node.domain) or node.domain in KNOWN_DOMAINS
        return known or (node.domain, node.op_type) in self.functions or type_of(node) in OPERATORS

    def is_pure(self, node: NodeProto, values: Mapping[str, NDArray[Any]]) -> bool:
        """Return whether equal inputs make equal results, as far as small constants tell."""
        if any(bodies(node)):
            return False
        called = node.domain, node.op_type
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
        self, node: NodeProto, keys: Mapping[str, Hashable], values: Mapping[str, NDArray[Any]]
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

    def tensor(self, name: str, tensor: TensorProto) -> Hashable:
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


def attributes_key(node: NodeProto) -> Hashable:
    """Return what nodes with equal attributes have in common."""
    found = []
    for attribute in node.attribute:
        own = copied(attribute)
        own.ClearField("doc_string")
        found.append(own.SerializeToString(deterministic=True))
    return tuple(sorted(found))


def only_passes(node: NodeProto, values: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether a Dropout drops nothing, as it does not train."""
    mode = node.input[2] if len(node.input) > 2 else ""
    value = values.get(mode)
    return not mode or (value is not None and not value.any())
