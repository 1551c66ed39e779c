"""Networks of ONNX from conversion graphs."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutopt.conversion.graph import HELD, ConversionGraph
from layoutopt.conversion.result import Conversion
from layoutopt.conversion.rules.op import NARROW, Op
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.layout.factors import numbers_of, padded_axes
from layoutopt.layout.reshape import written_sizes
from layoutopt.onnx.attributes import is_attribute, set_attribute
from layoutopt.onnx.equal_nodes import attributes_key
from layoutopt.onnx.layout_functions import DOMAIN, LayoutFunctions
from layoutopt.onnx.names import NetworkNames, rename
from layoutopt.onnx.protobuf import (
    all_nodes,
    bodies,
    copied_except,
    names_read,
    onnx,
    require_copies,
    set_items,
)
from layoutopt.onnx.result import tell
from layoutopt.onnx.source import OnnxSource
from layoutopt.onnx.types import UNSQUEEZED, in_names, input_names, set_shape, typed
from layoutopt.onnx.validate import schema
from layoutopt.onnx.weights import array_of, transform_constant, transform_fill, unlist_initialisers


def fewer_reshapes(
    graph: ConversionGraph, given: Mapping[str, Op], annotated: Iterable[str] = ()
) -> list[Op]:
    """Return the ops of a graph in new layouts, without reshapes of what was reshaped before.

    Where a transpose between two reshapes is gone, or one that moves only axes of size 1 became a
    reshape, one reshape is enough, and none if the shape is the first one again.  Here Flatten,
    Squeeze and Unsqueeze are reshapes, too.  Pairs of ops that followed each other in the
    ``given`` network stay, and ``annotated`` results though nobody reads them.
    """
    wanted = {*graph.outputs, *annotated}
    made: dict[str, Op] = {}
    same: dict[str, str] = {}
    found: list[Op] = []
    for op in graph.ops:
        op = replace(op, inputs=tuple(same.get(name, name) for name in op.inputs))
        if op.type in RESHAPES and op.element_type not in UNSQUEEZED:
            wished = graph.tensors[op.outputs[0]].shape
            shape = None if wished is None or 0 in wished else written_sizes(wished)
            before = made.get(op.inputs[0])
            while before and shape is not None and not _followed(before, op, given):
                op = _reshape(op, before.inputs[0], shape)
                before = made.get(op.inputs[0])
            source = graph.tensors[op.inputs[0]].shape
            if op.name in given:  # what the network reshapes stays if a size has a name alone
                source = numbers_of(source)
            changes = source is None or None in source or source != wished
            if op.outputs[0] not in wanted and not changes:
                same[op.outputs[0]] = op.inputs[0]
                continue
            made[op.outputs[0]] = op
        found.append(op)
    return _read_views(found, wanted)


def _followed(before: Op, op: Op, given: Mapping[str, Op]) -> bool:
    """Return whether an op reads a result of another one in the given network, too."""
    first, second = given.get(before.name), given.get(op.name)
    return bool(first and second and first.outputs[0] == second.inputs[0])


def _reshape(op: Op, source: str, shape: tuple[int, ...]) -> Op:
    """Return a reshape of ``source`` with the result of another op."""
    if op.type == "Reshape":
        attributes = {**op.attributes, "shape": shape}
        return replace(op, inputs=(source, *op.inputs[1:]), attributes=attributes)
    return replace(op, type="Reshape", inputs=(source,), attributes={"shape": shape})


def _read_views(ops: list[Op], wanted: set[str]) -> list[Op]:
    """Return ops without those that nobody reads, of the types that are made once."""
    found = list[Op]()
    for op in reversed(ops):
        if op.type in MADE_ONCE and op.outputs[0] not in wanted:
            continue
        wanted.update(op.inputs)
        found.append(op)
    return found[::-1]


NUMBERS_OF_ANY_TYPE = 9
"""Version since which constant nodes hold more than floating-point numbers."""

SINCE_TWO_OPERANDS = 11
"""Version since which a Gemm need not add anything to the product."""


def write_model(source: OnnxSource, conversion: Conversion) -> onnx.ModelProto:
    """Return a network, as it was read, with its graph converted.

    Nodes keep names, texts and all attributes that are as they were.  Changed attributes that an
    op takes as inputs become new initialisers.  Constants that nobody reads any more are left out.
    All else that the network holds is kept.
    """
    model = onnx.ModelProto()
    copied_except(source.model, model, "graph")
    functions = LayoutFunctions(source.model)
    _Writer(source, conversion, functions).write("", model.graph)
    unlist_initialisers(model, source.model)
    functions.add_to(model)
    known = {x.domain for x in model.opset_import}
    used = {node.domain for node in all_nodes(model.graph)}
    if MICROSOFT in used - known:
        model.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return model


MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own ops."""


class _Writer:
    """Writes the graphs of a network; ``functions`` takes ops in other layouts than ONNX has."""

    def __init__(
        self, source: OnnxSource, conversion: Conversion, functions: LayoutFunctions
    ) -> None:
        self.source, self.conversion, self.functions = source, conversion, functions
        self.names = NetworkNames(source.model)
        graph = conversion.graph
        self.new = {
            name: self.names.fresh(name)
            for name in graph.tensors
            if name not in source.graph.tensors
        }
        self.noted = self._noted()
        noted = [op for op in graph.ops if op.name in source.ops] if self.noted else []
        noted = [op for op in noted if not self.noted.isdisjoint(source.ops[op.name].outputs)]
        self.annotated = {name for op in noted for name in op.outputs}
        self.attended = {name for op in graph.ops if op.type == "Attention" for name in op.inputs}
        left = [
            op
            for op in fewer_reshapes(graph, source.ops, self.annotated)
            if op.type != HELD and op.outputs[0] not in source.constants  # it is there as it was
        ]
        self.kinds = self._element_types()
        self.ops: dict[str, list[Op]] = {}
        # New ones by scope and value, which nodes read as axes, pads, shapes and the like.
        self.initialisers: dict[str, dict[Hashable, onnx.TensorProto]] = {}
        for op in self._with_kernels(left):
            self.ops.setdefault(op.scope, []).append(op)

    def write(
        self,
        scope: str,
        target: onnx.GraphProto,
        given: Sequence[str] = (),
        returned: Sequence[str] = (),
    ) -> None:
        """Write a graph, the body ``scope`` or the network's own for "", into an empty one.

        ``given`` and ``returned`` are the inputs and outputs of a body, as in the conversion.
        """
        conversion, proto = self.conversion, self.source.scopes[scope]
        copied_except(proto, target, "node", "initializer", "value_info")
        ops = self.ops.get(scope, [])
        nodes = [self._node(op) for op in ops]
        reasons = {line.op: line.why for line in conversion.remaining}
        for op, node in zip(ops, nodes, strict=True):
            if op.name in reasons:
                node.name = op.name
                tell(node, {"why": reasons[op.name]})
            self._write_bodies(op, node)
        if scope:
            for value, name in zip(target.input, given, strict=True):
                self._declare(value, name)
            nodes += list(self._return(proto, target, nodes, returned))
        fixed = {self.new.get(name, name) for name in self.annotated}
        nodes = list(_once(nodes, fixed.union(value.name for value in target.output)))
        read = names_read(nodes)
        read |= {value.name for value in (*target.input, *target.output)}
        self._write_constants(scope, read, target)
        target.node.extend(nodes)
        target.initializer.extend(self.initialisers.get(scope, {}).values())
        self._annotate(ops, target)
        tensors = conversion.graph.tensors
        target.value_info.extend(
            value
            for value in proto.value_info  # names keep their layouts
            if value.name in tensors and tensors[value.name].scope == scope
        )
        told = {value.name for value in (*proto.value_info, *proto.output)}
        target.value_info.extend(self._new_values(ops, told))
        for value in (*target.input, *target.output):
            order = conversion.freed.get(value.name)
            shape = tensors[value.name].shape if order else None
            if order and shape is not None:
                dims = value.type.tensor_type.shape.dim
                set_items(dims, [dims[n] for n in order] if len(dims) == len(order) else [])
                set_shape(value.type, shape)

    def _node(self, op: Op) -> onnx.NodeProto:
        """Return the node of an op: the one that it was read from, or a new one."""
        before, node = self.source.ops.get(op.name), onnx.NodeProto()
        given: Mapping[str, Any] = {}
        if before is not None:
            node.CopyFrom(self.source.nodes[op.name])
        if before is not None and before.type == op.type:
            given = before.attributes
        else:
            node.domain, _, node.op_type = op.type.rpartition("::")
            node.name = op.name
            node.ClearField("overload")
            node.ClearField("attribute")
        self._set_operands(node, op)
        if op.type == "Gemm" and op.opset < SINCE_TWO_OPERANDS and not op.has(2):
            zero = np.zeros(1, _dtype_of(op.element_type))
            node.input.append(self._initialiser(op, zero, f"{op.name}_C"))
        for name, value in op.attributes.items():
            if name in given and given[name] == value:
                continue
            if is_attribute(op, name):
                set_attribute(node, op, name, value)
            else:
                self._set_parameter(node, op, name, value)
        if op.layouts != (before.layouts if before else None):
            node.domain, _, node.op_type = op.type.rpartition("::")
            if op.layouts is not None:
                self.functions.call(node, op)
        tell(node, {"layouts": str(op.layouts)} if node.domain.startswith(f"{DOMAIN}.") else {})
        own = {*node.input, *node.output}
        for devices in getattr(node, "device_configurations", ()):  # since ONNX 1.18
            specs = [spec for spec in devices.sharding_spec if spec.tensor_name in own]
            set_items(devices.sharding_spec, specs)  # without tensors in other layouts
        return node

    def _set_operands(self, node: onnx.NodeProto, op: Op) -> None:
        """Name operands and results, without those of bodies behind them."""
        inputs, outputs = len(op.inputs), len(op.outputs)
        for body in op.bodies:
            inputs, outputs = inputs - body.outputs, outputs - body.inputs
        set_items(node.input, [self.new.get(name, name) for name in op.inputs[:inputs]])
        set_items(node.output, [self.new.get(name, name) for name in op.outputs[:outputs]])

    def _set_parameter(self, node: onnx.NodeProto, op: Op, name: str, value: Any) -> None:
        """Give a node an input that holds what older versions of its op have as attribute."""
        place = operator_of(op).parameters[name]
        old = node.input[place] if place < len(node.input) else ""
        constant = self.source.constants.get(old)
        like = None if constant is None else array_of(constant)
        kind = self.source.element_types.get(old or self._typing(node, op, place))
        array = np.asarray(value, _dtype_of(kind) if kind else np.int64)
        if old and like is not None and like.size == array.size:
            array = array.reshape(like.shape)
        while len(node.input) <= place:
            node.input.append("")
        node.input[place] = self._initialiser(op, array, f"{node.name or node.op_type}_{name}")

    def _typing(self, node: onnx.NodeProto, op: Op, place: int) -> str:
        """Return an input that must have the same type as one that is to be added."""
        known = schema(op.type, op.opset)
        formal = [] if known is None else list(known.inputs)
        for n, name in enumerate(node.input):
            same = n < len(formal) and place < len(formal) and n != place
            if name and same and formal[n].type_str == formal[place].type_str:
                return str(name)
        return ""

    def _initialiser(self, op: Op, array: Any, wish: str) -> str:
        """Return the name of a new initialiser in the graph of an op, one for equal arrays."""
        own = self.initialisers.setdefault(op.scope, {})
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in own:
            own[key] = onnx.numpy_helper.from_array(array, self.names.fresh(wish))
        return str(own[key].name)

    def _write_bodies(self, op: Op, node: onnx.NodeProto) -> None:
        """Put converted graphs into a node in place of its own.

        A Scan must know the ranks of what its body gives back, which other nodes may have told.
        """
        tensors = self.conversion.graph.tensors
        for (body, given, returned), place in zip(op.places(), bodies(node), strict=True):
            new = onnx.GraphProto()
            inputs = [op.outputs[n] for n in given]
            outputs = [op.inputs[n] for n in returned]
            self.write(body.scope, new, inputs, outputs)
            for value, name in zip(new.output, outputs, strict=True):
                shape = tensors[name].shape
                if op.type == "Scan" and shape is not None and typed(value.type).shape is None:
                    set_shape(value.type, (None,) * len(shape))
            place.CopyFrom(new)

    def _declare(self, value: onnx.ValueInfoProto, name: str) -> None:
        """Let a body's input or output be a tensor, with the sizes that are known."""
        own = self.new.get(name, name)
        if own == value.name:
            return
        value.name = own
        old, shape = typed(value.type).shape, self.conversion.graph.tensors[name].shape
        if old is not None and shape is not None:
            set_shape(value.type, in_names(shape, old) or ())

    def _return(
        self,
        proto: onnx.GraphProto,
        target: onnx.GraphProto,
        nodes: Iterable[onnx.NodeProto],
        returned: Sequence[str],
    ) -> Iterator[onnx.NodeProto]:
        """Let a body give back tensors; yield nodes that pass on those that are not made in it."""
        before = {name for node in proto.node for name in node.output}
        made = {name for node in nodes for name in node.output}
        made |= before & self.source.constants.keys()
        for value, name in zip(target.output, returned, strict=True):
            old, shape = value.name, self.conversion.graph.tensors[name].shape
            self._declare(value, name)
            if value.name in made or (value.name == old and old not in before):
                made.discard(value.name)
                before.discard(value.name)  # what is given back twice as it is may be again
                continue
            own, value.name = value.name, self.names.fresh(f"{value.name}_copy")
            if self.kinds.get(name) in NARROW and shape is not None:
                order = list(range(len(shape)))
                yield onnx.helper.make_node("Transpose", [own], [value.name], perm=order)
            else:
                yield onnx.helper.make_node("Identity", [own], [value.name])

    def _write_constants(self, scope: str, read: set[str], target: onnx.GraphProto) -> None:
        """Write constants that are read, and those that were not before."""
        source, proto, tensors = self.source, self.source.scopes[scope], self.source.graph.tensors
        own = {n: x for n, x in source.constants.items() if tensors[n].scope == scope}
        notes = proto.quantization_annotation
        read = read | {x.value for note in notes for x in note.quant_parameter_tensor_names}
        read |= self.noted
        nodes = {n: x for n, x in own.items() if isinstance(x, onnx.NodeProto)}
        for name in reversed(nodes):
            if name in read:
                read = read.union(nodes[name].input)
        given = {n.output[0] for n in proto.node if n.op_type == "Constant"}
        for name, node in nodes.items():
            if name not in read:
                continue
            early = source.graph.opset < NUMBERS_OF_ANY_TYPE and node.op_type == "Constant"
            if name in given or not early:
                target.node.append(node)
            else:
                target.initializer.add().CopyFrom(node.attribute[0].t)
                target.initializer[-1].name = name
        unread = {x.name for x in proto.initializer} - names_read(proto.node)
        read |= unread - {value.name for value in proto.output}
        kept = [x for x in proto.initializer if x.name in read]
        sizes = (len(own.get(x.name, x).raw_data) for x in kept)
        require_copies(sizes, "writing the new network")
        for tensor in kept:
            target.initializer.append(own.get(tensor.name, tensor))
            target.initializer[-1].name = tensor.name
        for name in self.conversion.relaid:
            here = self.conversion.graph.tensors[name].scope == scope
            if here and self.new.get(name, name) in read:
                self._write_relaid(name, self.new.get(name, name), target)

    def _write_relaid(self, name: str, own: str, target: onnx.GraphProto) -> None:
        """Write a constant in another layout, under a name of its own."""
        how = self.conversion.relaid[name]
        constant = self.source.constants[how.source]
        fill = isinstance(constant, onnx.NodeProto) and constant.op_type == "ConstantOfShape"
        if not fill or padded_axes(how.form, how.shape):
            target.initializer.append(transform_constant(constant, how, own))
            return
        sizes = [int(size or 0) for size in self.conversion.graph.tensors[name].shape or ()]
        shape = onnx.numpy_helper.from_array(
            np.array(sizes, np.int64), self.names.fresh(f"{own}_shape")
        )
        target.initializer.append(shape)
        target.node.append(transform_fill(constant, shape, own))

    def _element_types(self) -> dict[str, str]:
        """Return the element types of tensors of a new graph, where they are known."""
        source, conversion = self.source, self.conversion
        found = dict(source.element_types)
        found |= {name: found.get(how.source, "") for name, how in conversion.relaid.items()}
        for op in sorted(conversion.graph.ops, key=lambda op: op.name not in source.ops):
            before = source.ops.get(op.name)
            olds = [op.inputs[0]] * len(op.outputs) if before is None else before.outputs
            for name, old in zip(op.outputs, olds, strict=True):
                found[name] = found.get(old, "")
        return found

    def _with_kernels(self, ops: Sequence[Op]) -> list[Op]:
        """Return ops, those that a conversion adds as ones that runtimes have for elements."""
        graph = self.conversion.graph
        squeezed: dict[str, str] = {}
        found = list[Op]()
        for op in ops:
            kind = "" if op.name in self.source.ops else self.kinds.get(op.inputs[0], "")
            if kind in UNSQUEEZED and op.type == "Squeeze":
                squeezed[op.outputs[0]] = op.inputs[0]
            elif kind in UNSQUEEZED and op.type == "Unsqueeze":
                op = _transposing(op, squeezed.get(op.inputs[0], op.inputs[0]), graph)
            elif kind in NARROW and op.type in ("Identity", "Reshape"):
                op = _transposing(op, op.inputs[0], graph)
            found.append(op)
        read = {name for op in found for name in op.inputs} | {*graph.outputs}
        return [op for op in found if op.outputs[0] in read or op.outputs[0] not in squeezed]

    def _new_values(self, ops: Iterable[Op], told: Container[str]) -> Iterator[onnx.ValueInfoProto]:
        """Yield types of new results of ops that ONNX cannot infer the types of.

        Of what a loop carries it infers no rank, which a transpose behind the loop may have told.
        It takes unknown ranks of an Attention's operands for 0, which a type that is left out may
        tell.
        """
        source, graph = self.source, self.conversion.graph
        names = input_names(source.model.graph)
        for op in ops:
            before = source.ops.get(op.name, op)
            hidden = "::" in before.type or before.type == "Loop"
            results = len(op.outputs) - sum(body.inputs for body in op.bodies)
            for name, old in zip(op.outputs[:results], before.outputs, strict=False):
                kind = self.kinds.get(name)
                moved = hidden and (name != old or op.layouts != before.layouts)
                if (moved or name in self.attended) and name not in told and kind:
                    number = onnx.TensorProto.DataType.Value(kind.upper())
                    sizes = in_names(graph.tensors[name].shape, names)
                    yield onnx.helper.make_tensor_value_info(
                        self.new.get(name, name), number, sizes
                    )

    def _annotate(self, ops: Iterable[Op], target: onnx.GraphProto) -> None:
        """Let annotations of tensors that are there in another layout only name these."""
        made = {
            old: self.new.get(name, name)
            for op in ops
            if op.name in self.source.ops
            for old, name in zip(self.source.ops[op.name].outputs, op.outputs, strict=True)
        }
        there = {name for node in target.node for name in node.output}
        for note in target.quantization_annotation:
            names = list(self._before_transposes(note.tensor_name))
            name = next((name for name in names if name in there or name in made), names[-1])
            note.tensor_name = name if name in there else made.get(name, name)

    def _noted(self) -> set[str]:
        """Return the tensors that annotations speak of, and what these are transposed from."""
        scopes = self.source.scopes.values()
        every = (note for graph in scopes for note in graph.quantization_annotation)
        return {name for note in every for name in self._before_transposes(note.tensor_name)}

    def _before_transposes(self, name: str) -> Iterator[str]:
        """Yield a tensor, and what it is transposed from."""
        yield name
        while (op := self.source.graph.producer(name)) is not None and op.type == "Transpose":
            name = op.inputs[0]
            yield name


def _dtype_of(element_type: str) -> Any:
    """Return NumPy's type of elements, by what ONNX calls it."""
    return onnx.helper.tensor_dtype_to_np_dtype(
        onnx.TensorProto.DataType.Value(element_type.upper())
    )


def _once(nodes: Iterable[onnx.NodeProto], outputs: Container[str]) -> Iterator[onnx.NodeProto]:
    """Yield nodes, of those that fill or reshape the same in the same way the first, and outputs.

    Their readers were given one each, as they might have wanted other orders of axes.
    """
    first: dict[Hashable, str] = {}
    same: dict[str, str] = {}
    for node in nodes:
        rename(node, same)
        if node.op_type in MADE_ONCE and node.output[0] not in outputs:
            key = node.domain, node.op_type, tuple(node.input), attributes_key(node)
            same[node.output[0]] = first.setdefault(key, node.output[0])
            if same[node.output[0]] != node.output[0]:
                continue
        yield node


RESHAPES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
"""Op types that give elements in the same order in another shape."""

MADE_ONCE = ("ConstantOfShape", "DequantizeLinear", *RESHAPES)
"""Op types that the simplification makes copies of."""


def _transposing(op: Op, source: str, graph: ConversionGraph) -> Op:
    """Return an op that moves axes of size 1 only as a Transpose of ``source``, if it can be one.

    It is a Reshape, an Identity, or an Unsqueeze.
    """
    before, after = (graph.tensors[name].shape for name in (source, op.outputs[0]))
    if before is None or after is None or len(before) != len(after):
        return op
    ones = iter([axis for axis, size in enumerate(before) if size == 1])
    others = iter([axis for axis, size in enumerate(before) if size != 1])
    if before.count(1) != after.count(1):
        return op
    perm = tuple(next(ones if size == 1 else others) for size in after)
    return replace(op, type="Transpose", attributes={"perm": perm}, inputs=(source,))
