"""What the transposes of a network cost that are gone once it is simplified."""

from __future__ import annotations

from collections.abc import Container
from math import prod
from typing import TYPE_CHECKING

from layoutopt.conversion.result import Tally
from layoutopt.onnx.declared import Declared
from layoutopt.onnx.protobuf import graphs
from layoutopt.onnx.rules import is_standard
from layoutopt.operators.op import Shape
from layoutopt.rewriting.metadata import PREFIX
from layoutopt.rewriting.skeleton import typed

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

GIVEN = f"{PREFIX}given"
"""Entry of metadata by which a transpose of the network as it was given is known, meanwhile."""


class GivenTransposes:
    """The transposes of a network, those in graphs inside nodes too.

    Parameters
    ----------
    graph
        The network's graph; the nodes are marked.
    types
        What is known of its tensors.
    held
        Initialisers that a caller may replace.
    """

    def __init__(self, graph: GraphProto, types: Declared, held: Container[str]) -> None:
        self.found: dict[str, tuple[str, int, bool]] = {}
        for one in graphs(graph):
            constant = {x.name for x in one.initializer if x.name not in held}
            for node in one.node:
                if not is_standard(node.domain):
                    continue
                if node.op_type == "Constant":
                    constant.update(node.output)
                if node.op_type == "Transpose":
                    if node.input[0] in constant:
                        constant.update(node.output)
                    self._add(node, types, node.input[0] in constant)

    def _add(self, node: NodeProto, types: Declared, constant: bool) -> None:
        kind = types.get(node.input[0])
        shape = None if kind is None else typed(kind).shape
        if kind is None or shape is None:
            free, size = constant, 0
        else:
            free = constant or _stays(node, shape)
            size = prod(x for x in shape if isinstance(x, int)) * typed(kind).element_bytes
        if free or shape is not None:
            number = str(len(self.found))
            node.metadata_props.add(key=GIVEN, value=number)
            self.found[number] = (node.name or node.output[0], size, free)

    def gone(self, graph: GraphProto) -> Tally:
        """Return what those cost that a graph has no more; marks are taken away.

        A transpose moves the bytes of its tensor, unless that is a constant, or only axes of
        size 1 move.
        """
        left = dict(self.found)
        for one in graphs(graph):
            for node in one.node:
                for entry in [x for x in node.metadata_props if x.key == GIVEN]:
                    left.pop(entry.value, None)
                    node.metadata_props.remove(entry)
        moved = [(name, size) for name, size, free in left.values() if not free]
        sizes = [size for _, size in moved]
        return Tally(len(moved), sum(sizes), len(left) - len(moved), dict(moved))


def _stays(node: NodeProto, shape: Shape) -> bool:
    """Return whether a transpose moves axes of size 1 only."""
    given = [list(a.ints) for a in node.attribute if a.name == "perm"]
    order = given[0] if given else list(range(len(shape)))[::-1]
    axes = [axis for axis in order if axis >= len(shape) or shape[axis] != 1]
    return axes == sorted(axes)
