"""Names that nothing in a network has yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from layoutopt.onnx.protobuf import bodies, defined, graphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


class Names:
    """The names of tensors, and of nodes, of a network.

    Parameters
    ----------
    model
        The network, with all graphs inside its nodes.
    """

    def __init__(self, model: ModelProto) -> None:
        self.taken = {""}
        for graph in graphs(model.graph):
            self.taken |= {x.name for x in (*graph.input, *graph.output, *graph.initializer)}
            self.taken |= {x.values.name for x in graph.sparse_initializer}
            for node in graph.node:
                self.taken.update((node.name, *node.input, *node.output))

    def fresh(self, wish: str) -> str:
        """Return a name like the one wished for, and remember that it is taken."""
        name, number = wish, 1
        while name in self.taken:
            number += 1
            name = f"{wish}_{number}"
        self.taken.add(name)
        return name


def recapture(node: NodeProto, captured: Mapping[str, str], names: Names) -> list[NodeProto]:
    """Let the graphs inside a node read what they capture by other names.

    A name that a graph inside gives to something of its own cannot be read there.  What it stands
    for outside gets another one.

    Parameters
    ----------
    node
        The node; its graphs are changed.
    captured
        For each name that is captured the one that it has now.
    names
        What is taken in the whole network.

    Returns
    -------
    list
        Nodes that must stand in front of it.
    """
    from onnx import helper

    others = {old: new for old, new in captured.items() if old != new}
    hidden = {name for body in bodies(node) for name in _defined_within(body)}
    added: list[NodeProto] = []
    for name in sorted(hidden.intersection(others.values())):
        copy = names.fresh(f"{name}_captured")
        added.append(helper.make_node("Identity", [name], [copy], name=names.fresh(copy)))
        others = {old: copy if new == name else new for old, new in others.items()}
    for body in bodies(node) if others else ():
        _rename(body, others)
    return added


def rename(node: NodeProto, names: Mapping[str, str], *, results: bool = False) -> None:
    """Let a node, and the graphs inside it, read by other names.

    Parameters
    ----------
    node
        The node; it is changed.
    names
        The new names by old ones.
    results
        Whether what it makes gets new names as well.
    """
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


def _defined_within(graph: GraphProto) -> Iterator[str]:
    """Yield the names that a graph, and those inside it, give to something of their own."""
    yield from defined(graph)
    for node in graph.node:
        for body in bodies(node):
            yield from _defined_within(body)


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename what a graph, and those inside it, capture."""
    own = defined(graph)
    names = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        for n, name in enumerate(node.input):
            node.input[n] = names.get(name, name)
        for body in bodies(node):
            _rename(body, names)
    for value in graph.output:
        value.name = names.get(value.name, value.name)
