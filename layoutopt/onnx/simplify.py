"""Networks without what does nothing, before anybody chooses layouts.

Nodes are brought into order.  Gone are those that no output needs, those that pass on what they
are given, those that compute what another one does already or what is known, and conditions that
are known.  Names of inputs and outputs, and all that a caller may replace, stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutopt.base.errors import InputError
from layoutopt.conversion.result import Tally
from layoutopt.onnx.copies import separate
from layoutopt.onnx.edited import EditedNetwork, Scope
from layoutopt.onnx.folding import fold_constants
from layoutopt.onnx.layout_functions import known_layouts
from layoutopt.onnx.merge import merge
from layoutopt.onnx.protobuf import bodies, captured, graphs, onnx, set_items
from layoutopt.onnx.reshapes import join_reshapes, multiply_batches
from layoutopt.onnx.source import check_network
from layoutopt.onnx.transposes import GivenTransposes
from layoutopt.onnx.types import contradictions, give_back, take_declared
from layoutopt.onnx.validate import inlined, sort_nodes
from layoutopt.onnx.weights import add_nodes, dense_constants, known_values, light_model


@dataclass(frozen=True)
class SimplifiedModel:
    """A network that computes the same with fewer nodes."""

    model: onnx.ModelProto  # large weights of its own graph are without their data
    weights: Mapping[str, onnx.TensorProto]  # these weights by name; their own names may be others
    removed: Tally  # the transposes that are gone
    notes: tuple[str, ...]  # what a user should know of the network as it was given; a line each


def simplified(model: onnx.ModelProto, *, copies: bool = True) -> SimplifiedModel:
    """Return a network, given with its weights, without what does nothing.

    What becomes of it depends on nothing else.  Readers get their own ``copies`` of what costs
    nothing to make.  Raises ``InputError`` if it is not read, or not well-formed; in one line.
    """
    check_network(model)
    weights: dict[str, onnx.TensorProto] = {}
    light = _inlined(light_model(model, weights), weights)
    for graph in graphs(light.graph):
        dense_constants(light, graph)
    sort_nodes(light.graph)
    network, graph = EditedNetwork(light, weights), light.graph
    declared = take_declared(graph)
    _drop_dead(network, graph)
    network.infer()
    given = GivenTransposes(graph, network.types, network.held)
    _simplify(network, graph, Scope())
    while network.changed:
        network.infer()
        network.changed = False
        _simplify(network, graph, Scope())
    constants = [pair for one in graphs(graph) for pair in known_values(one).items()]
    values = {name: value for name, value in constants if name not in network.held}
    for one in graphs(graph) if copies else ():
        separate(network, one, values)
    give_back(graph, declared, network.types)
    notes = tuple(contradictions(declared, network.types))
    return SimplifiedModel(light, weights, given.gone(graph, network.types), notes)


def _inlined(light: onnx.ModelProto, weights: dict[str, onnx.TensorProto]) -> onnx.ModelProto:
    """Return a network with the nodes of its functions in place of calls.

    Functions that tell layouts of ops stay, and all where calls do not fit them.
    """
    if not light.functions:
        return light
    try:
        light = inlined(light, kept=known_layouts(light))
    except InputError:
        return light
    nodes = list(light.graph.node)
    del light.graph.node[:]
    add_nodes(light.graph, nodes, weights)
    return light


def _simplify(network: EditedNetwork, graph: onnx.GraphProto, outside: Scope) -> None:
    """Run all passes over a graph and those inside it, once."""
    scope = network.scope(graph, outside)
    for run in PASSES:
        run(network, graph, scope)
    _drop_dead(network, graph)


def _simplify_bodies(network: EditedNetwork, graph: onnx.GraphProto, scope: Scope) -> None:
    for node in graph.node:
        for body in bodies(node):
            _simplify(network, body, scope)


PASSES = (merge, multiply_batches, join_reshapes, _simplify_bodies, fold_constants)
"""Passes ``(network, graph, scope)``, in order; each changes the graph in place."""


def _drop_dead(network: EditedNetwork, graph: onnx.GraphProto) -> None:
    """Take away nodes and constants that no output needs, here and in all inside it."""
    wanted = network.fixed(graph)
    kept = []
    for node in reversed(graph.node):
        if not wanted.isdisjoint(node.output) or not network.keys.may_go(node):
            for body in bodies(node):
                _drop_dead(network, body)
            wanted.update(node.input, captured(node))
            kept.append(node)
    if len(kept) < len(graph.node):
        set_items(graph.node, kept[::-1])
    inputs = {value.name for value in graph.input}
    tensors = [x for x in graph.initializer if x.name in wanted or x.name in inputs]
    if len(tensors) < len(graph.initializer):
        for name in {x.name for x in graph.initializer} - {x.name for x in tensors}:
            if graph is network.model.graph:
                network.weights.pop(name, None)
        set_items(graph.initializer, tensors)
    sparse = [x for x in graph.sparse_initializer if x.values.name in wanted]
    set_items(graph.sparse_initializer, sparse)
