"""Networks without what does nothing, before anybody chooses layouts.

Nodes are brought into order.  Gone are those that no output needs, those that pass on what they
are given, those that compute what another one does already or what is known, and conditions that
are known.  Names of inputs and outputs, and all that a caller may replace, stay.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.modes import MOST_AXES
from layoutopt.conversion.result import Tally
from layoutopt.conversion.rules.op import NARROW
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.layout.factors import Shape, Size, numbers_of
from layoutopt.layout.reshape import written_sizes
from layoutopt.onnx.equal_nodes import NodeKeys, attributes_key, only_passes
from layoutopt.onnx.folding import (
    LARGEST_PRODUCT,
    Folding,
    Known,
    KnownSizes,
    computed,
)
from layoutopt.onnx.inference import count_from_the_first, with_shapes
from layoutopt.onnx.layout_functions import known_layouts
from layoutopt.onnx.names import NetworkNames, rename, unshadow
from layoutopt.onnx.protobuf import (
    SMALL,
    all_nodes,
    bodies,
    captured,
    copied,
    graphs,
    is_standard,
    names_read,
    onnx,
    set_items,
)
from layoutopt.onnx.source import check_network
from layoutopt.onnx.transposes import GivenTransposes
from layoutopt.onnx.types import (
    UNSQUEEZED,
    Declared,
    contradictions,
    give_back,
    shape_of,
    take_declared,
    turned_axes,
    type_name,
    typed,
    types_of,
)
from layoutopt.onnx.validate import inlined, sort_nodes
from layoutopt.onnx.weights import (
    add_nodes,
    add_weight,
    bare_model,
    dense_constants,
    known_values,
    light_model,
    overridable,
    read_values,
    sparse_value,
)

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto


MADE_OF_CONSTANTS = {("DequantizeLinear", True), ("ConstantOfShape", False)}
"""Op types whose results hold nothing but constants, and whether all that they read is known."""

OF_MANY = {"Concat", "Max", "Mean", "Min", "Sum"}
"""Op types that pass on a single operand."""


@dataclass(frozen=True)
class SimplifiedModel:
    """A network that computes the same with fewer nodes."""

    model: ModelProto  # large weights of its own graph are without their data
    weights: Mapping[str, TensorProto]  # these weights by name; their own names may be others
    removed: Tally  # the transposes that are gone
    notes: tuple[str, ...]  # what a user should know of the network as it was given; a line each


def simplified(model: ModelProto, *, copies: bool = True) -> SimplifiedModel:
    """Return a network, given with its weights, without what does nothing.

    What becomes of it depends on nothing else.  Readers get their own ``copies`` of what costs
    nothing to make.  Raises ``InputError`` if it is not read, or not well-formed; in one line.
    """
    check_network(model)
    weights: dict[str, TensorProto] = {}
    light = _inlined(light_model(model, weights), weights)
    for graph in graphs(light.graph):
        dense_constants(light, graph)
    sort_nodes(light.graph)
    return _Simplifier(light, weights).run(copies)


def _inlined(light: ModelProto, weights: dict[str, TensorProto]) -> ModelProto:
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


@dataclass
class _Outside:
    """Values that a graph may capture: constants, small ones with values, and their keys."""

    constants: dict[str, Known] = field(default_factory=dict)
    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    keys: dict[str, Hashable] = field(default_factory=dict)


class _Simplifier:
    """Simplifies a network, which is changed, in rounds, as values that are found tell shapes."""

    def __init__(self, model: ModelProto, weights: dict[str, TensorProto]) -> None:
        self.model, self.weights = model, weights
        self.names = NetworkNames(model)
        unshadow(model.graph, self.names)
        self.keys = NodeKeys(model)
        self.held = overridable(model)
        self.inputs = {value.name for value in model.graph.input}
        self.barred: set[str] = set()
        self.followed: set[str] = set()  # names of known values that readers do not use any more
        self.types: Declared = {}
        self.again = False
        self.made = Counter(name for one in graphs(model.graph) for name in _made(one))
        self.pinned = {
            name
            for one in graphs(model.graph)
            for x in one.quantization_annotation
            for name in (x.tensor_name, *(e.value for e in x.quant_parameter_tensor_names))
        }
        if model.training_info:  # reads and sets tensors of the network by their names
            self.pinned |= self.names.taken

    def run(self, copies: bool) -> SimplifiedModel:
        """Simplify until nothing changes any more."""
        graph = self.model.graph
        declared = take_declared(graph)
        self._drop_dead(graph)
        self._infer()
        given = GivenTransposes(graph, self.types, self.held)
        self._simplify(graph, _Outside())
        while self.again:
            self._infer()
            self.again = False
            self._simplify(graph, _Outside())
        for one in graphs(graph) if copies else ():
            self._separate(one)
        give_back(graph, declared, self.types)
        notes = tuple(contradictions(declared, self.types))
        return SimplifiedModel(self.model, self.weights, given.gone(graph, self.types), notes)

    def _infer(self) -> None:
        bare = bare_model(self.model)
        held = {x.name for x in bare.graph.initializer}
        every = list(bare.graph.output)
        set_items(bare.graph.output, [x for x in every if x.name not in held])
        found = with_shapes(bare).graph  # which does not read the values of outputs
        found.output.extend(x for x in every if x.name in held)
        self.types = types_of(found)
        count_from_the_first(self.model, self.types)

    def _simplify(self, graph: GraphProto, outside: _Outside) -> None:
        """Simplify a graph and those inside it, once."""
        scope = self._scope(graph, outside)
        self._merge(graph, scope)
        self._multiply_batches(graph, scope)
        self._join_reshapes(graph, scope)
        for node in graph.node:
            for body in bodies(node):
                self._simplify(body, scope)
        self._fold(graph, scope)
        self._drop_dead(graph)

    def _scope(self, graph: GraphProto, outside: _Outside) -> _Outside:
        """Return the constants of a graph, and those that it may capture."""
        scope = _Outside(
            {name: Known(x.kind, x.shape, False) for name, x in outside.constants.items()},
            {**outside.values, **known_values(graph)},
            dict(outside.keys),
        )
        tensors = {x.name: x for x in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and is_standard(node.domain):
                scope.keys[node.output[0]] = attributes_key(node)
                for attribute in node.attribute:
                    if attribute.name == "value":
                        tensors[node.output[0]] = attribute.t
                if (sparse := sparse_value(node)) is not None:
                    known = Known(sparse.values.data_type, tuple(sparse.dims), True)
                    if known.bytes <= LARGEST_PRODUCT:
                        scope.constants[node.output[0]] = known
                if node.output[0] not in tensors and node.output[0] in scope.values:
                    array = scope.values[node.output[0]]
                    scope.constants[node.output[0]] = Known(_kind(array), array.shape, True)
        if graph is self.model.graph:
            for name in self.held:
                tensors.pop(name, None)
                scope.values.pop(name, None)
        alike = Counter((x.data_type, tuple(x.dims)) for x in tensors.values())
        for name, x in tensors.items():
            if x.data_location == x.EXTERNAL:
                continue
            scope.constants[name] = Known(x.data_type, tuple(x.dims), True)
            if alike[x.data_type, tuple(x.dims)] > 1:
                scope.keys[name] = self.keys.tensor(name, self.weights.get(name, x))
        return scope

    def _merge(self, graph: GraphProto, scope: _Outside) -> None:
        """Take away what passes on its input, what is there already, and known conditions."""
        outputs = {value.name for value in graph.output}
        fixed = outputs | self.pinned
        read = names_read(graph.node)
        left, kept = deque(graph.node), list[Any]()
        same: dict[str, str] = {}
        seen: dict[Hashable, NodeProto] = {}
        turned: dict[str, NodeProto] = {}
        while left:
            node = left.popleft()
            rename(node, same)
            if node.op_type == "Transpose" and self.keys.is_standard(node):
                self._compose(node, turned, fixed)
            inlined = self._branch(graph, node, scope)
            inlined = self._as_gather(graph, node, scope) if inlined is None else inlined
            if inlined is not None:
                left.extendleft(reversed(inlined))
                continue
            left.extendleft(self._constant_keys(node, scope, read | outputs))
            source = self._passed_on(node, scope, read | outputs)
            if source is not None and node.output[0] not in self.pinned:
                same[node.output[0]] = source
                if source in scope.values and node.output[0] in read - self.followed:
                    self.followed.add(node.output[0])
                    self.again = True
                if node.output[0] not in outputs:
                    continue
            key = self.keys.node(node, scope.keys, scope.values)
            if key is not None and node.op_type == "ConstantOfShape":
                scope.keys[node.output[0]], key = key, None  # each reader has its own layout of it
            if any(name in fixed and not self._may_copy(name) for name in node.output):
                key = None
            first = seen.setdefault(key, node) if key is not None else node
            if first is node:
                kept.append(node)
                continue
            for k, name in enumerate(node.output):
                if name and not first.output[k]:
                    first.output[k] = name
                source = same.get(first.output[k], first.output[k])
                if name in fixed and name != first.output[k]:
                    kept.append(_identity(source, name))
                if name and name != first.output[k] and name not in self.pinned:
                    same.setdefault(name, source)
        renamed = _output_names(kept, outputs - self.pinned, fixed)
        self.again |= not scope.constants.keys().isdisjoint(renamed)  # which have no such name yet
        set_items(graph.node, _with_names(kept, renamed))

    def _compose(self, node: NodeProto, turned: dict[str, NodeProto], fixed: set[str]) -> None:
        """Let a Transpose of a Transpose read what that one reads; one of no axes is Identity.

        That is but for ``fixed`` results that Identity does not make.
        """
        turned[node.output[0]] = node
        first = turned.get(node.input[0])
        both = [node] if first is None or self.pinned & {*first.output} else [first, node]
        given = [list(a.ints) for one in both for a in one.attribute if a.name == "perm"]
        known = shape_of(self.types.get(node.input[0]))
        shape = given[0] if given else known
        if shape is None:
            order = [0] if len(both) > 1 else []  # reversed twice
        else:
            order = list(range(len(shape)))
            for one in both:
                order = [order[axis] for axis in turned_axes(one, len(shape))]
        node.input[0] = both[0].input[0]
        plain = node.output[0] not in fixed or self._may_copy(node.input[0])
        if order and order == sorted(order) and plain and (known is not None or not given):
            node.op_type = "Identity"
            del node.attribute[:], turned[node.output[0]]
        elif len(both) > 1:
            set_items(node.attribute, [onnx.helper.make_attribute("perm", order)])

    def _multiply_batches(self, graph: GraphProto, scope: _Outside) -> None:
        """Let products with a matrix take tensors as they are, not as a matrix of open size.

        That is where a Reshape joins axes of a tensor to rows, and another one behind the product
        splits these as they were.
        """
        made = {n.output[0]: n for n in graph.node if self.keys.is_standard(n)}
        reads = Counter(x for n in graph.node for x in (*n.input, *captured(n)))
        reads.update(value.name for value in graph.output)
        nodes = list[Any]()
        for node in graph.node:
            product = made.get(node.input[0]) if _reshapes(made.get(node.output[0])) else None
            joined = made.get(product.input[0]) if product is not None and product.input else None
            found = None
            if product is not None and joined is not None and _reshapes(joined):
                alone = reads[node.input[0]] == 1 and node.input[0] not in self.pinned
                if alone and self._multiplies_rows(product, scope):
                    found = self._batch_product(graph, joined, product, node)
            nodes += found or [node]
            self.again |= found is not None
        set_items(graph.node, nodes)

    def _multiplies_rows(self, node: NodeProto, scope: _Outside) -> bool:
        """Return whether a node multiplies rows by a matrix, and adds the same to all of them."""
        if node.op_type != "Gemm":
            return node.op_type == "MatMul"
        given = {"alpha": 1, "beta": 1} | {a.name: a.i or a.f for a in node.attribute}
        weight = scope.constants.get(node.input[1])
        turned = given.get("transB", 0) and not (weight is not None and weight.own)
        if given.get("transA", 0) or given["alpha"] != 1 or turned:
            return False
        if len(node.input) < 3 or not node.input[2]:
            return True
        known = scope.constants.get(node.input[2])
        added = known.shape if known else shape_of(self.types.get(node.input[2]))
        return given["beta"] == 1 and bool(added) and {*(added or ())[:-1]} <= {1}

    def _batch_product(
        self, graph: GraphProto, joined: NodeProto, product: NodeProto, split: NodeProto
    ) -> list[NodeProto] | None:
        """Return the nodes that compute a product between two reshapes without these, if any."""
        names = joined.input[0], joined.output[0], product.output[0], split.output[0]
        before, rows, columns, after = (shape_of(self.types.get(name)) for name in names)
        if before is None or after is None or rows is None or columns is None:
            return None
        ends = rows[-1], columns[-1]
        count = common_batch(before, after, ends) if len(rows) == len(columns) == 2 else None
        if count is None or isinstance(rows[0], int):
            return None
        steps: list[tuple[str, str, dict[str, Any]]] = []
        if len(before) > count + 1:
            steps.append(("Reshape", self._joined(graph, split, count, ends[:1]), {}))
        matrix, nodes = product.input[1], list[Any]()
        if any(a.name == "transB" and a.i for a in product.attribute):
            turned = self.names.fresh(f"{matrix}_turned")
            nodes.append(onnx.helper.make_node("Transpose", [matrix], [turned], perm=[1, 0]))
            matrix = turned
        steps.append(("MatMul", matrix, {"name": product.name}))
        if len(product.input) > 2 and product.input[2]:
            steps.append(("Add", product.input[2], {}))
        if len(after) > count + 1:
            steps.append(("Reshape", self._joined(graph, split, count, after[count:]), {}))
        source = names[0]
        for k, (kind, operand, told) in enumerate(steps, 1):
            result = names[3] if k == len(steps) else self.names.fresh(f"{names[2]}_{kind.lower()}")
            nodes.append(onnx.helper.make_node(kind, [source, operand], [result], **told))
            source = result
        return nodes

    def _joined(self, graph: GraphProto, node: NodeProto, count: int, last: Shape) -> str:
        """Return the name of a new shape that copies so many sizes, and ends with others."""
        shape = np.array([0] * count + [*last], np.int64)
        return self._new_constant(graph, f"{node.output[0]}_shape", shape)

    def _join_reshapes(self, graph: GraphProto, scope: _Outside) -> None:
        """Let reshapes to known shapes read what was there before other reshapes.

        That is where nobody else reads between them, where it comes back as it was, or where sizes
        between them are not known.
        """
        made: dict[str, NodeProto] = {}
        reads = Counter(x for n in graph.node for x in (*n.input, *captured(n)))
        reads.update(value.name for value in graph.output)
        for node in graph.node:
            if not _is_view(node) or not self.keys.is_standard(node):
                continue
            if node.op_type == "Transpose" and node.input[0] in made:
                self._reshape_instead(graph, scope, node)
            if node.op_type != "Transpose":
                made[node.output[0]] = node
            target = scope.values.get(node.input[1]) if len(node.input) > 1 else None
            if node.op_type != "Reshape" or target is None or not np.all(target):
                continue
            while (before := made.get(node.input[0])) is not None:
                known = numbers_of(shape_of(self.types.get(node.input[0]))) is not None
                same = self._same_shape(before.input[0], node.output[0])
                names = {*before.input, *before.output}
                if self.pinned & names or (known and not same and reads[node.input[0]] > 1):
                    break
                reads[node.input[0]] -= 1
                node.input[0] = before.input[0]
                reads[node.input[0]] += 1
                self.again = True

    def _reshape_instead(self, graph: GraphProto, scope: _Outside, node: NodeProto) -> None:
        """Let a Transpose that moves axes of size 1 alone be a Reshape, where one size is open."""
        shape = shape_of(self.types.get(node.input[0]))
        if shape is None or 0 in shape or numbers_of(shape) is not None:
            return
        order = turned_axes(node, len(shape))
        wide = [axis for axis in order if shape[axis] != 1]
        sizes = written_sizes([shape[axis] for axis in order])
        if wide == sorted(wide) and sizes is not None:
            target = np.array(sizes)
            name = self._new_constant(graph, f"{node.output[0]}_shape", target)
            scope.values[name] = target
            node.op_type = "Reshape"
            node.input.append(name)
            del node.attribute[:]

    def _same_shape(self, one: str, other: str) -> bool:
        """Return whether two tensors are known to have the same sizes."""
        sizes = numbers_of(shape_of(self.types.get(one)))
        return sizes is not None and sizes == shape_of(self.types.get(other))

    def _separate(self, graph: GraphProto) -> None:
        """Give readers their own copies of what costs nothing to make, in whatever order of axes.

        All readers have their own of a tensor that is filled, whose shape is permuted, of a
        constant that is dequantised, which is laid out for each, and of views of these; and of what
        is given other axes of size 1 beside a transpose.  Views in bodies have their own of what is
        outside.  Outputs that are constants have their own.  Other views stand there twice that may
        run in two modes.
        """
        constants = {x.name for x in graph.initializer if x.name not in self.held}
        constants |= {n.output[0] for n in graph.node if n.op_type == "Constant"}
        every = list(all_nodes(graph))
        taken = {value.name for value in graph.output}.union(*map(captured, graph.node))
        reads = Counter(x for n in every for x in n.input)
        reads.update(value.name for one in graphs(graph) for value in one.output)
        leading, behind = _beside_transposes(every)
        each, rooted = set[str](), set[str]()  # what all readers have their own of; constants
        twice = self._shared_views(graph)
        second: dict[str, str] = {}
        made: dict[str, NodeProto] = {}
        nodes = list[Any]()
        for node in graph.node:
            for one in (x for body in bodies(node) for x in all_nodes(body) if _is_view(x)):
                name = one.input[0]
                if one.output[0] in leading and name in each and reads[name] > 1:
                    reads[name] -= 1
                    nodes += self._separated(graph, one, 0, made, (each, rooted))
            standard = self.keys.is_standard(node)
            known = constants.issuperset({*node.input} - {""})
            own = standard or node.domain == "com.microsoft"
            result = node.output[0]
            if own and (node.op_type, known) in MADE_OF_CONSTANTS:
                made[result] = node
                rooted.add(result)
                each.add(result)
                nodes.append(node)
                continue
            if node.op_type == "Identity" and reads[node.input[0]] > 1:
                reads[node.input[0]] -= 1
                node.input[0] = self._copy_tensor(graph, node.input[0])  # made an output
            view = _is_view(node) and standard
            for k, name in enumerate(node.input):
                node.input[k] = name = second.pop(name, name)
                if name in taken and name in each:
                    reads[name] -= 1
                    nodes += self._separated(graph, node, k, made, (each, rooted))
                taken.add(node.input[k])
            moved = view and result in leading | behind and self._moves_ones(node)
            rooted.update([result] if view and node.input[0] in rooted else [])
            if moved or result in rooted or (node.op_type == "Transpose" and node.input[0] in each):
                each.add(result)
            if view and result in each:
                made[result] = node
            nodes.append(node)
            if view and result in twice - each:
                nodes.append(self._copy(node))
                second[result] = nodes[-1].output[0]
        if len(nodes) > len(graph.node):
            set_items(graph.node, nodes)

    def _shared_views(self, graph: GraphProto) -> set[str]:
        """Return the tensors that several nodes read, and are views of what several nodes read.

        Transposes and other axes of size 1 make no difference.
        """
        source: dict[str, str] = {}
        read, direct = [value.name for value in graph.output], set[str]()
        for node in graph.node:
            direct.update(node.input)
            if _is_view(node) and (node.op_type == "Transpose" or self._moves_ones(node)):
                source[node.output[0]] = source.get(node.input[0], node.input[0])
            else:
                read += [*node.input, *captured(node)]
        reads = Counter(source.get(name, name) for name in read)
        shared = {name for name, count in reads.items() if count > 1}
        return {
            node.output[0]
            for node in graph.node
            if _is_view(node)
            and source.get(node.input[0], node.input[0]) in shared
            and node.output[0] in shared & direct - self.pinned
        }

    def _separated(
        self,
        graph: GraphProto,
        node: NodeProto,
        place: int,
        made: dict[str, NodeProto],
        groups: Iterable[set[str]],
    ) -> list[NodeProto]:
        """Let a node read a copy that nobody else reads; return the nodes that make it.

        They are added to what is ``made``, and the results to the ``groups`` of the original.
        """
        name = node.input[place]
        copies = list(self._copies(graph, name, made))
        node.input[place] = copies[-1].output[0]
        made.update((copy.output[0], copy) for copy in copies)
        for group in groups:
            group.update(copy.output[0] for copy in copies if name in group)
        return copies

    def _moves_ones(self, node: NodeProto) -> bool:
        """Return whether a view only adds or takes away axes of size 1, in all orders of axes."""
        kind = self.types.get(node.input[0])
        before, after = shape_of(kind), shape_of(self.types.get(node.output[0]))
        if kind is None or before is None or after is None or node.op_type == "Transpose":
            return False
        wide = [size for size in before if size != 1]
        known = sum(isinstance(size, int) for size in wide) >= len(wide) - 1
        few = len(wide) <= MOST_AXES
        narrow = type_name(kind.tensor_type.elem_type) in UNSQUEEZED
        return wide == [size for size in after if size != 1] and known and few and not narrow

    def _copies(
        self, graph: GraphProto, name: str, made: Mapping[str, NodeProto]
    ) -> Iterator[NodeProto]:
        """Yield copies of a node that makes a tensor, and of what only it needs, that one last."""
        own = self._copy(made[name])
        if own.input[0] in made:
            for copy in self._copies(graph, own.input[0], made):
                yield copy
                own.input[0] = copy.output[0]
        yield own

    def _copy(self, node: NodeProto) -> NodeProto:
        """Return a node that makes the same under another name."""
        own, name = copied(node), node.output[0]
        own.name, own.output[0] = "", self.names.fresh(name)
        self.types[own.output[0]] = self.types.get(name)
        return own

    def _copy_tensor(self, graph: GraphProto, name: str) -> str:
        """Return the name of a copy of a constant; of what is none, its own."""
        tensors = {x.name: x for x in graph.initializer if x.name not in self.held}
        if name not in tensors:
            return name
        new = self.names.fresh(name)
        graph.initializer.add().CopyFrom(tensors[name])
        graph.initializer[-1].name = new
        if graph is self.model.graph and name in self.weights:
            self.weights[new] = self.weights[name]
        return new

    def _may_copy(self, name: str) -> bool:
        """Return whether Identity takes a value: before operator set 14, tensors alone."""
        kind = self.types.get(name)
        if kind is None or not kind.HasField("tensor_type"):
            return kind is None
        return type_name(kind.tensor_type.elem_type) not in NARROW

    def _passed_on(self, node: NodeProto, scope: _Outside, read: set[str]) -> str | None:
        """Return the name of what a node gives back as it is; None if it does something."""
        if not self.keys.is_standard(node):
            return None
        source: str = node.input[0] if node.input else ""
        if node.op_type == "Identity" or (node.op_type in OF_MANY and len(node.input) == 1):
            return source
        if node.op_type == "Reshape" and self._same_shape(source, node.output[0]):
            return source
        if node.op_type == "Expand" and self._expands_nothing(node, scope):
            return source
        if node.op_type == "Transpose":  # which alone may tell the rank of an output or an input
            perm = [axis for a in node.attribute for axis in a.ints]
            known = shape_of(self.types.get(source)) is not None or source not in self.inputs
            return source if known and perm and perm == sorted(perm) else None
        if node.op_type == "Dropout" and only_passes(node, scope.values):
            return None if read.intersection(node.output[1:2]) - {""} else source
        if node.op_type == "Cast":
            kind = self.types.get(source)
            [to] = [a.i for a in node.attribute if a.name == "to"] or [0]
            if kind is not None and kind.tensor_type.elem_type == to != 0:
                return source
        return None

    def _expands_nothing(self, node: NodeProto, scope: _Outside) -> bool:
        """Return whether each size that an Expand wants is 1, or is there already."""
        wanted = scope.values.get(node.input[1])
        shape = shape_of(self.types.get(node.input[0]))
        if wanted is None or shape is None or wanted.size > len(shape):
            return False
        pairs = zip(reversed(shape), wanted[::-1].tolist(), strict=False)
        return all(size in (1, known) for known, size in pairs)

    def _branch(
        self, graph: GraphProto, node: NodeProto, scope: _Outside
    ) -> list[NodeProto] | None:
        """Return the nodes of the branch that is taken always, if that is known."""
        if node.op_type != "If" or not self.keys.is_standard(node):
            return None
        condition = scope.values.get(node.input[0])
        if condition is None or condition.size != 1:
            return None
        wanted = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        [body] = [a.g for a in node.attribute if a.name == wanted]
        fixed = {value.name for value in graph.output} | self.pinned
        if any(name in fixed and not self._may_copy(name) for name in node.output):
            return None
        new = {
            name: self.names.fresh(name) if self.made[name] > 1 else name for name in _made(body)
        }
        for one in body.node:
            rename(one, new, results=True)
        for tensor in body.initializer:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = new[tensor.name]
        for sparse in body.sparse_initializer:
            graph.sparse_initializer.add().CopyFrom(sparse)
            graph.sparse_initializer[-1].values.name = new[sparse.values.name]
        self.again = True
        pairs = zip(body.output, node.output, strict=False)
        ends = [_identity(new.get(a.name, a.name), b) for a, b in pairs if b]
        return [*body.node, *ends]

    def _as_gather(
        self, graph: GraphProto, node: NodeProto, scope: _Outside
    ) -> list[NodeProto] | None:
        """Return a GatherND of one index each as a Gather, whose axis may be any."""
        if node.op_type != "GatherND" or not self.keys.is_standard(node):
            return None
        kind = self.types.get(node.input[0])
        if kind is not None and type_name(kind.tensor_type.elem_type) == "string":
            return None  # onnxruntime 1.32 gathers texts wrongly
        known = scope.constants.get(node.input[1])
        shape = known.shape if known else shape_of(self.types.get(node.input[1])) or ()
        sizes = numbers_of(shape)
        if sizes is None or sizes[-1:] != (1,) or any(a.i for a in node.attribute):
            return None
        indices = self.names.fresh(f"{node.input[1]}_rows")
        shape_of_rows = np.array(sizes[:-1], np.int64)
        target = self._new_constant(graph, f"{node.input[1]}_shape", shape_of_rows)
        self.again = True
        return [
            onnx.helper.make_node("Reshape", [node.input[1], target], [indices]),
            onnx.helper.make_node("Gather", [node.input[0], indices], node.output, name=node.name),
        ]

    def _constant_keys(
        self, node: NodeProto, scope: _Outside, read: set[str]
    ) -> Iterator[NodeProto]:
        """Yield Concats of keys and values that an Attention gives back, all of them constants."""
        if node.op_type != "Attention" or not self.keys.is_standard(node) or len(node.input) < 6:
            return
        for n, name in enumerate(node.output[1:3], 1):
            parts = [node.input[n + 3], node.input[n]]
            known = [scope.constants.get(part) for part in parts]
            if name in read and all(x is not None and len(x.shape) == 4 for x in known):
                node.output[n] = self.names.fresh(name)
                yield onnx.helper.make_node("Concat", parts, [name], axis=2)

    def _fold(self, graph: GraphProto, scope: _Outside) -> None:
        """Put results that are known in the place of the nodes that compute them."""
        results: dict[str, NDArray[Any]] = {}
        fixed = {value.name for value in graph.output} | self.pinned
        sizes = KnownSizes(self.model, self.types, scope.constants, dict(scope.values))
        gone = set()
        for k, node in enumerate(graph.node):
            self._settle_reshape(graph, node, sizes)
            self._settle_range(graph, node, sizes)
            value = sizes.add(node)
            if value is None:
                value = sizes.whole_number(node)
            if value is not None and self._fits(node.output[0], value):
                results[node.output[0]] = sizes.note(node.output[0], value)
                scope.constants[node.output[0]] = Known(_kind(value), value.shape, True)
                gone.add(k)
        constants = {} if self.model.training_info else scope.constants  # which it may change
        tensors = {x.name: x for x in graph.initializer}
        local = {n: x for n, x in constants.items() if x.own or n in sizes.values}
        left = [k for k in range(len(graph.node)) if k not in gone]
        nodes = [graph.node[k] for k in left]
        parts, numbers = Folding(nodes, local, self.types, fixed, self.barred).parts()

        def value_of(name: str) -> NDArray[Any]:
            if name in sizes.values:
                return sizes.values[name]
            constant = self.weights.get(name) or tensors.get(name)
            return read_values(constant or next(n for n in graph.node if name in n.output), name)

        barred = len(self.barred)
        for part in parts:
            found, failed = computed(self.model, part, value_of)
            self.barred |= failed
            for name, value in found.items():
                if self._fits(name, value):
                    results[name] = value
                else:
                    self.barred.add(name)
        if len(self.barred) > barred:  # what failed reads results that are not wanted else
            self.again = True
        else:
            gone |= {left[k] for k in numbers}
        if not gone:
            return
        self._replace(graph, gone, results)

    def _replace(self, graph: GraphProto, gone: set[int], results: dict[str, NDArray[Any]]) -> None:
        """Put constants in the place of nodes."""
        outputs, nodes = {value.name for value in graph.output}, []
        for k, node in enumerate(graph.node):
            if k not in gone:
                nodes.append(node)
                continue
            for name in node.output:
                if name in results and name in outputs:
                    source = self._new_constant(graph, f"{name}_value", results.pop(name))
                    nodes.append(_identity(source, name))
                elif name in results:
                    self._add_constant(graph, name, results.pop(name))
        set_items(graph.node, nodes)
        self.again = True

    def _settle_reshape(self, graph: GraphProto, node: NodeProto, sizes: KnownSizes) -> None:
        """Let a Reshape read a constant where at most one size is open to it."""
        target = sizes.reshape_target(node) if self.keys.is_standard(node) else None
        if target is not None:
            node.input[1] = self._new_constant(graph, f"{node.input[1]}_value", target)
            sizes.note(node.input[1], target)
            self.again = True

    def _settle_range(self, graph: GraphProto, node: NodeProto, sizes: KnownSizes) -> None:
        """Let a Range read scalars where runtimes refuse rows of one number that are constant."""
        if node.op_type != "Range" or not self.keys.is_standard(node):
            return
        for k, given in enumerate(node.input):
            value = sizes.values.get(given)
            if value is not None and value.ndim and value.size == 1:
                value = value.reshape(())
                node.input[k] = self._new_constant(graph, f"{given}_value", value)
                sizes.note(node.input[k], value)
                self.again = True

    def _fits(self, name: str, value: object) -> bool:
        """Return whether a result is what was expected of it."""
        if not isinstance(value, np.ndarray):
            return False
        kind = self.types.get(name)
        if kind is None:
            return value.size <= SMALL**2
        shape = typed(kind).shape
        same = shape is None or (
            len(shape) == value.ndim
            and all(a == b for a, b in zip(shape, value.shape, strict=True) if isinstance(a, int))
        )
        return same and kind.tensor_type.elem_type == _kind(value)

    def _new_constant(self, graph: GraphProto, wish: str, value: NDArray[Any]) -> str:
        """Return the name of a new constant."""
        name = self.names.fresh(wish)
        self._add_constant(graph, name, value)
        return name

    def _add_constant(self, graph: GraphProto, name: str, value: NDArray[Any]) -> None:
        tensor = onnx.numpy_helper.from_array(
            np.ascontiguousarray(value).reshape(value.shape), name
        )
        if graph is self.model.graph and value.size > SMALL:
            add_weight(graph, name, tensor, self.weights)
        else:
            graph.initializer.append(tensor)

    def _drop_dead(self, graph: GraphProto) -> None:
        """Take away nodes and constants that no output needs, here and in all inside it."""
        wanted = {value.name for value in graph.output} | self.pinned
        kept = []
        for node in reversed(graph.node):
            if not wanted.isdisjoint(node.output) or not self.keys.may_go(node):
                for body in bodies(node):
                    self._drop_dead(body)
                wanted.update(node.input, captured(node))
                kept.append(node)
        if len(kept) < len(graph.node):
            set_items(graph.node, kept[::-1])
        inputs = {value.name for value in graph.input}
        tensors = [x for x in graph.initializer if x.name in wanted or x.name in inputs]
        if len(tensors) < len(graph.initializer):
            for name in {x.name for x in graph.initializer} - {x.name for x in tensors}:
                if graph is self.model.graph:
                    self.weights.pop(name, None)
            set_items(graph.initializer, tensors)
        sparse = [x for x in graph.sparse_initializer if x.values.name in wanted]
        set_items(graph.sparse_initializer, sparse)


def _beside_transposes(nodes: Sequence[NodeProto]) -> tuple[set[str], set[str]]:
    """Return the tensors from which views lead to a transpose, and those that views make of one."""
    leading, behind = set[str](), set[str]()
    for node in reversed(nodes):
        if node.op_type == "Transpose" or (_is_view(node) and node.output[0] in leading):
            leading.update((node.input[0], node.output[0]))
    for node in nodes:
        if node.op_type == "Transpose" or (_is_view(node) and node.input[0] in behind):
            behind.add(node.output[0])
    return leading, behind


def common_batch(before: Shape, after: Shape, ends: tuple[Size, Size]) -> int | None:
    """Return how many leading axes two reshapes leave as they are, None if that is not known.

    The first joins axes before the last ``ends[0]`` elements to rows, which are as many as those
    that the second one splits before the last ``ends[1]`` elements.  So one size may be unknown.
    """
    if 0 in before or 0 in after:
        return None
    for count in range(min(len(before), len(after)) - 1, 1, -1):
        tails = [numbers_of(shape[count:]) for shape in (before, after)]
        if [None if tail is None else prod(tail) for tail in tails] != [*ends] or None in tails:
            continue
        pairs = zip(before[:count], after[:count], strict=True)
        unequal = [pair for pair in pairs if None in pair or pair[0] != pair[1]]
        if not unequal or (len(unequal) == 1 and numbers_of(unequal[0]) is None):
            return count
    return None


def _output_names(nodes: Sequence[NodeProto], outputs: set[str], fixed: set[str]) -> dict[str, str]:
    """Return the outputs that nodes may make themselves, by what copies are made of."""
    made = {name for node in nodes for name in node.output if name} - fixed
    found: dict[str, str] = {}
    for node in nodes:
        if node.op_type == "Identity" and is_standard(node.domain):
            name, output = node.input[0], node.output[0]
            if output in outputs and name in made:
                found.setdefault(name, output)
    return found


def _with_names(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> Iterator[NodeProto]:
    """Yield nodes with other names, without those that only gave these names to others."""
    for node in nodes:
        copies = node.op_type == "Identity" and is_standard(node.domain)
        if copies and names.get(node.input[0]) == node.output[0]:
            continue
        rename(node, names, results=True)
        yield node


def _reshapes(node: NodeProto | None) -> bool:
    return node is not None and node.op_type == "Reshape"


def _is_view(node: NodeProto) -> bool:
    """Return whether a result has the elements of the first operand in another shape."""
    return type_facts(node.op_type).category is Category.VIEW


def _identity(source: str, result: str) -> NodeProto:
    return onnx.helper.make_node("Identity", [source], [result])


def _kind(array: NDArray[Any]) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def _made(graph: GraphProto) -> Iterator[str]:
    """Yield the names of all that is made in a graph itself."""
    yield from (x.name for x in graph.initializer)
    yield from (x.values.name for x in graph.sparse_initializer)
    yield from (name for node in graph.node for name in node.output if name)
