"""Names that nothing in a network has yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutopt.onnx.protobuf import graphs

if TYPE_CHECKING:
    from onnx import ModelProto


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
