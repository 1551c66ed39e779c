"""Nodes that compute with constants, shapes and sizes, replaced by their results.

A large result is computed only where it takes the place of as many bytes of constants that nobody
else reads, or where that spares a transpose of these: otherwise the file would grow for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.operator import FoldingEffort
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.graphs.ops import Array
from layoutopt.layout.factors import elements_of
from layoutopt.onnx.edited import EditedNetwork, Scope, identity, type_number
from layoutopt.onnx.protobuf import SMALL, captured, is_standard, onnx, set_items, type_of
from layoutopt.onnx.running import evaluate
from layoutopt.onnx.sizes import LARGEST_PRODUCT, Arrays, Known, KnownSizes, may_compute, run_alone
from layoutopt.onnx.types import shape_of, typed
from layoutopt.onnx.weights import known_values, read_values


def fold(model: onnx.ModelProto, types: Mapping[str, onnx.TypeProto | None]) -> bool:
    """Replace nodes that compute shapes by constants; return whether there were any.

    What follows for ``types``, those of all tensors of the graph, is filled in.

    A node computes shapes if it is ``Shape`` or ``Size`` of a tensor of known shape, if all that
    it computes with are such results and constants, or if its result is needed where only
    structure is: as axes, bounds or sizes.  What computes with weights alone stays.
    """
    graph, values = model.graph, known_values(model.graph)
    candidates = _structural(graph) | _of_shapes(graph, values)
    sizes, folded = KnownSizes(model, types, {}, values), dict[int, Arrays]()
    for k, node in enumerate(graph.node):
        value = sizes.add(node)
        if k in candidates:
            known = sizes.evaluated(node) if value is None else {node.output[0]: value}
            if known is not None:
                folded[k] = {name: sizes.note(name, found) for name, found in known.items()}
    if folded:
        nodes = [new for k, node in enumerate(graph.node) for new in _kept(node, folded.get(k))]
        set_items(graph.node, nodes)
    return bool(folded)


def _structural(graph: onnx.GraphProto) -> set[int]:
    """Return the nodes, by number, whose results are needed as structure."""
    needed: set[str] = set()
    found = set()
    for k in reversed(range(len(graph.node))):
        node = graph.node[k]
        known = type_facts(type_of(node))
        if not needed.isdisjoint(node.output):
            found.add(k)
            positions: Iterable[int] = set(range(len(node.input))).difference(known.unread)
        else:
            positions = [i for i in known.structural if i < len(node.input)]
        needed.update(node.input[i] for i in positions)
        needed.discard("")
    return {k for k in found if graph.node[k].op_type != "Constant"}


def _of_shapes(graph: onnx.GraphProto, values: Mapping[str, Array]) -> set[int]:
    """Return the nodes, by number, that compute with shapes and constants only."""
    derived: set[str] = set()
    found = set()
    for k, node in enumerate(graph.node):
        known = type_facts(type_of(node))
        data = {
            name
            for i, name in enumerate(node.input)
            if name and i not in known.structural and i not in known.unread
        }
        start = node.op_type in ("Shape", "Size") and is_standard(node.domain)
        if start or (data & derived and all(x in derived or x in values for x in data)):
            found.add(k)
            derived.update(node.output)
    return found


def _kept(node: onnx.NodeProto, results: Mapping[str, Array] | None) -> list[onnx.NodeProto]:
    if results is None:
        return [node]
    return [
        onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))
        for name, value in results.items()
    ]


LONGEST_PRODUCT = 2**33
"""Root of the product of the bytes of both operands and the result of a product: about eight
times its multiplications."""


@dataclass(frozen=True)
class Part:
    """Nodes that are computed at once."""

    nodes: list[onnx.NodeProto]  # each below those that it reads from
    results: list[str]  # the names of what is wanted of them


@dataclass
class Folding:
    """What is to be computed of a graph, and the nodes that then go."""

    nodes: Sequence[onnx.NodeProto]  # in order
    constants: Mapping[str, Known]  # those that nodes may read
    types: Mapping[str, onnx.TypeProto | None]
    kept: set[str]  # names that are read from outside
    barred: Container[str]  # results that could not be computed
    large: dict[str, int] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    maker: dict[str, int] = field(default_factory=dict)
    joined: dict[str, str] = field(default_factory=dict)

    def parts(self) -> tuple[list[Part], set[int]]:
        """Return what is to be computed, and the numbers of the nodes that then go."""
        nodes = self.nodes
        chosen = [k for k, node in enumerate(nodes) if self._choose(k, node)]
        if not chosen:
            return [], set()
        numbers = set(chosen)
        groups: dict[str, list[int]] = {}
        for k in chosen:
            names = self._large_names(nodes[k])
            groups.setdefault(self._root(names[0]) if names else "", []).append(k)
        outside = self._read(k for k in range(len(nodes)) if k not in numbers) | self.kept
        for group, members in groups.items():
            moved = any(nodes[k].op_type == "Transpose" for k in members)
            if group and not moved and self._grows(members, outside):
                numbers -= {k for k in members if not self.large.keys().isdisjoint(nodes[k].output)}
        outside = self._read(k for k in range(len(nodes)) if k not in numbers) | self.kept
        found = []
        for members in groups.values():
            own = [k for k in members if k in numbers]
            wanted = [x for k in own for x in nodes[k].output if x in outside]
            if wanted:
                found.append(Part([nodes[k] for k in self._ancestors(own)], wanted))
        return found, numbers

    def _choose(self, k: int, node: onnx.NodeProto) -> bool:
        """Return whether a node can be computed, and note its results."""
        names, results = [[x for x in side if x] for side in (node.input, node.output)]
        known = all(x in self.constants or x in self.maker for x in names)
        if not known or not may_compute(node) or any(x in self.barred for x in results):
            return False
        if node.op_type == "Identity" and node.output[0] in self.kept:
            return False  # an output that is a constant is made so
        kinds = [self.types.get(x) for x in results]
        if any(kind is not None and not kind.HasField("tensor_type") for kind in kinds):
            return False  # a sequence is no constant that a file could hold
        sizes = {x: elements_of(shape_of(self.types.get(x))) for x in results}
        grown = {}
        for x, n in sizes.items():
            if n is not None and n > SMALL:
                kind = self.types.get(x)
                grown[x] = n * (typed(kind).element_bytes if kind is not None else 1)
        inputs = {x: self._size(x) for x in names}
        if any(n is None for n in sizes.values()):
            facts = type_facts(node.op_type)
            unsized = facts.grows or facts.effort is FoldingEffort.WINDOW
            if unsized or any(inputs.values()) or self.unknown & set(names):
                return False
            self.unknown.update(results)
        if grown and not self._may_grow(node, sum(grown.values()), list(inputs.values())):
            return False
        self.large.update(grown)
        self.maker.update(dict.fromkeys(results, k))
        first, *others = self._large_names(node) or [""]
        for other in others:
            self.joined[self._root(other)] = self._root(first)
        return True

    def _may_grow(self, node: onnx.NodeProto, grown: int, inputs: Sequence[int]) -> bool:
        """Return whether a large result of so many bytes may be computed at all."""
        effort = type_facts(node.op_type).effort
        if effort in (FoldingEffort.PRODUCT, FoldingEffort.WINDOW):
            sizes = [max(size, SMALL) for size in inputs[:2]]
            short = isqrt(grown * prod(sizes)) <= LONGEST_PRODUCT
            return short and grown <= LARGEST_PRODUCT
        return effort is not FoldingEffort.LONG and grown <= sum(inputs)

    def _size(self, name: str) -> int:
        """Return the bytes of a large constant or result, 0 for others."""
        known = self.constants.get(name)
        if known is not None:
            return known.bytes if known.large else 0
        return self.large.get(name, 0)

    def _large_names(self, node: onnx.NodeProto) -> list[str]:
        return [x for x in (*node.input, *node.output) if x and self._size(x)]

    def _root(self, name: str) -> str:
        while name in self.joined and self.joined[name] != name:
            name = self.joined[name]
        return name

    def _read(self, numbers: Iterable[int]) -> set[str]:
        return {x for k in numbers for x in (*self.nodes[k].input, *captured(self.nodes[k]))}

    def _grows(self, members: Sequence[int], outside: set[str]) -> bool:
        """Return whether large results take more room than constants that go for them."""
        results = {x for k in members for x in self.nodes[k].output if x in self.large}
        roots = {x for k in members for x in self.nodes[k].input if x in self.constants}
        gone = (self._size(x) for x in roots - outside if self.constants[x].own)
        return sum(self.large[x] for x in results & outside) > sum(gone)

    def _ancestors(self, numbers: Iterable[int]) -> list[int]:
        found, left = set[int](), list(numbers)
        while left:
            k = left.pop()
            if k not in found:
                found.add(k)
                left.extend(self.maker[x] for x in self.nodes[k].input if x in self.maker)
        return sorted(found)


def computed(
    model: onnx.ModelProto, part: Part, values: Callable[[str], NDArray[Any]]
) -> tuple[Arrays, set[str]]:
    """Return the results of nodes by name, and the names of those that could not be computed."""
    made = {x for node in part.nodes for x in node.output}
    inputs = {x: values(x) for node in part.nodes for x in node.input if x and x not in made}
    try:
        return evaluate(model, part.nodes, inputs, part.results), set()
    except InputError:
        return _one_by_one(model, part, inputs)


def _one_by_one(model: onnx.ModelProto, part: Part, inputs: Arrays) -> tuple[Arrays, set[str]]:
    """Compute node after node, in ONNX's own words where the runtime has no such op."""
    found, failed = dict(inputs), set[str]()
    uses = Counter(x for node in part.nodes for x in node.input)
    for node in part.nodes:
        results = [x for x in node.output if x]
        own = {x: found[x] for x in node.input if x in found}
        if len(own) < len({x for x in node.input if x}):
            failed.update(results)
            continue
        try:
            found.update(evaluate(model, [node], own, results))
        except InputError:
            other = run_alone(model, node, own)
            if other is None:
                failed.update(results)
            else:
                found.update(zip(results, other, strict=True))
        for name in node.input:
            uses[name] -= 1
            if not uses[name] and name not in part.results:
                found.pop(name, None)
    return {x: found[x] for x in part.results if x in found}, failed


def fold_constants(network: EditedNetwork, graph: onnx.GraphProto, scope: Scope) -> None:
    """Put results that are known in the place of the nodes that compute them."""
    results: dict[str, NDArray[Any]] = {}
    sizes = KnownSizes(network.model, network.types, scope.constants, dict(scope.values))
    gone = set()
    for k, node in enumerate(graph.node):
        _settle_reshape(network, graph, node, sizes)
        _settle_range(network, graph, node, sizes)
        value = sizes.known_value(node)
        if value is not None and _fits(network, node.output[0], value):
            results[node.output[0]] = sizes.note(node.output[0], value)
            scope.constants[node.output[0]] = Known(type_number(value), value.shape, True)
            gone.add(k)
    constants = {} if network.model.training_info else scope.constants  # which it may change
    tensors = {x.name: x for x in graph.initializer}
    local = {n: x for n, x in constants.items() if x.own or n in sizes.values}
    left = [k for k in range(len(graph.node)) if k not in gone]
    nodes = [graph.node[k] for k in left]
    parts, numbers = Folding(
        nodes, local, network.types, network.fixed(graph), network.barred
    ).parts()

    def value_of(name: str) -> NDArray[Any]:
        if name in sizes.values:
            return sizes.values[name]
        constant = network.weights.get(name) or tensors.get(name)
        return read_values(constant or next(n for n in graph.node if name in n.output), name)

    barred = len(network.barred)
    for part in parts:
        found, failed = computed(network.model, part, value_of)
        network.barred |= failed
        for name, value in found.items():
            if _fits(network, name, value):
                results[name] = value
            else:
                network.barred.add(name)
    if len(network.barred) > barred:  # what failed reads results that are not wanted else
        network.changed = True
    else:
        gone |= {left[k] for k in numbers}
    if gone:
        _replace(network, graph, gone, results)


def _replace(
    network: EditedNetwork, graph: onnx.GraphProto, gone: set[int], results: dict[str, NDArray[Any]]
) -> None:
    """Put constants in the place of nodes."""
    outputs, nodes = {value.name for value in graph.output}, []
    for k, node in enumerate(graph.node):
        if k not in gone:
            nodes.append(node)
            continue
        for name in node.output:
            if name in results and name in outputs:
                source = network.new_constant(graph, f"{name}_value", results.pop(name))
                nodes.append(identity(source, name))
            elif name in results:
                network.add_constant(graph, name, results.pop(name))
    set_items(graph.node, nodes)
    network.changed = True


def _settle_reshape(
    network: EditedNetwork, graph: onnx.GraphProto, node: onnx.NodeProto, sizes: KnownSizes
) -> None:
    """Let a Reshape read a constant where at most one size is open to it."""
    target = sizes.reshape_target(node) if network.keys.is_standard(node) else None
    if target is not None:
        node.input[1] = network.new_constant(graph, f"{node.input[1]}_value", target)
        sizes.note(node.input[1], target)
        network.changed = True


def _settle_range(
    network: EditedNetwork, graph: onnx.GraphProto, node: onnx.NodeProto, sizes: KnownSizes
) -> None:
    """Let a Range read scalars where runtimes refuse rows of one number that are constant."""
    if node.op_type != "Range" or not network.keys.is_standard(node):
        return
    for k, given in enumerate(node.input):
        value = sizes.values.get(given)
        if value is not None and value.ndim and value.size == 1:
            value = value.reshape(())
            node.input[k] = network.new_constant(graph, f"{given}_value", value)
            sizes.note(node.input[k], value)
            network.changed = True


def _fits(network: EditedNetwork, name: str, value: object) -> bool:
    """Return whether a result is what was expected of it."""
    if not isinstance(value, np.ndarray):
        return False
    kind = network.types.get(name)
    if kind is None:
        return value.size <= SMALL**2
    shape = typed(kind).shape
    same = shape is None or (
        len(shape) == value.ndim
        and all(a == b for a, b in zip(shape, value.shape, strict=True) if isinstance(a, int))
    )
    return same and kind.tensor_type.elem_type == type_number(value)
