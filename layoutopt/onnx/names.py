"""Names of tensors: fresh ones, and those that bodies of nodes read from outside."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from layoutopt.conversion.rewrite import unused
from layoutopt.onnx.protobuf import bodies, defined, graphs, onnx


class NetworkNames:
    """The names of tensors, and of nodes, of a network and all graphs inside its nodes."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.taken = {""}
        for graph in graphs(model.graph):
            self.taken |= {x.name for x in (*graph.input, *graph.output, *graph.initializer)}
            self.taken |= {x.values.name for x in graph.sparse_initializer}
            for node in graph.node:
                self.taken.update((node.name, *node.input, *node.output))

    def fresh(self, wish: str) -> str:
        """Return a name like the one wished for, and remember that it is taken."""
        return unused(wish, self.taken)


def unshadow(graph: onnx.GraphProto, names: NetworkNames) -> None:
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


def rename(node: onnx.NodeProto, names: Mapping[str, str], *, results: bool = False) -> None:
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


def _rename_own(graph: onnx.GraphProto, hidden: Collection[str], names: NetworkNames) -> None:
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


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename what a graph, and those inside it, capture."""
    own = defined(graph)
    names = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        rename(node, names)
    for value in graph.output:
        value.name = names.get(value.name, value.name)
