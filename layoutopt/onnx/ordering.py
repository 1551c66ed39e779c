"""Nodes in an order in which each stands below those that it reads from."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from layoutopt.errors import InputError
from layoutopt.onnx.network import title
from layoutopt.onnx.protobuf import bodies, captured

if TYPE_CHECKING:
    from onnx import GraphProto


def is_in_order(graph: GraphProto) -> bool:
    """Return whether no node, also of graphs inside nodes, reads what is made below it."""
    made = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if not made.isdisjoint(node.input) or not made.isdisjoint(captured(node)):
            return False
        made.difference_update(node.output)
        if not all(map(is_in_order, bodies(node))):
            return False
    return True


def sort_nodes(graph: GraphProto, outside: Collection[str] = ()) -> None:
    """Bring the nodes of a graph, and of all inside it, into order; the first one first.

    Parameters
    ----------
    graph
        The graph; it is changed.
    outside
        Names that it may capture.

    Raises
    ------
    InputError
        If a name is made twice, or by nobody, or nodes form a cycle.
    """
    maker: dict[str, int] = {}
    for k, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in maker:
                raise InputError(f"{name!r} is made already", title(node))
            maker[name] = k
    known = {x.name for x in (*graph.input, *graph.initializer)}
    known |= {x.values.name for x in graph.sparse_initializer} | {"", *outside}
    readers: list[list[int]] = [[] for _ in graph.node]
    waits = [0] * len(graph.node)
    for k, node in enumerate(graph.node):
        reads = {*node.input, *captured(node)}
        for name in sorted(reads - known - maker.keys()):
            raise InputError(f"nothing above it makes {name!r}", title(node))
        for other in {maker[name] for name in reads if name in maker}:
            readers[other].append(k)
            waits[k] += 1
    found = _sorted(readers, waits)
    if len(found) < len(waits):
        stuck = next(k for k, count in enumerate(waits) if count)
        node = graph.node[stuck]
        every = (*node.input, *sorted(captured(node)))
        name = next(x for x in every if x in maker and waits[maker[x]])
        raise InputError(f"it reads {name!r}, and nodes there form a cycle", title(node))
    if found != sorted(found):
        nodes = list(graph.node)
        del graph.node[:]
        graph.node.extend(nodes[k] for k in found)
    for node in graph.node:
        for body in bodies(node):
            sort_nodes(body, {*known, *maker})


def _sorted(readers: list[list[int]], waits: list[int]) -> list[int]:
    """Return what can be done in turn, the lowest number first; ``waits`` keeps what cannot."""
    ready = [k for k, count in enumerate(waits) if not count]
    heapify(ready)
    found = []
    while ready:
        k = heappop(ready)
        found.append(k)
        for reader in readers[k]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, reader)
    return found
