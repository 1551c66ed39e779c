"""Nodes that do nothing, or compute what another one does, taken away.

Ifs whose condition is known become the nodes of their branch, Transposes of Transposes one, and a
few ops others that have more layouts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from layoutopt.layout.factors import numbers_of
from layoutopt.onnx.edited import EditedNetwork, Scope, identity, is_view
from layoutopt.onnx.equal_nodes import only_passes
from layoutopt.onnx.names import rename
from layoutopt.onnx.protobuf import is_standard, names_read, onnx, set_items
from layoutopt.onnx.sizes import KnownSizes
from layoutopt.onnx.types import shape_of, turned_axes, type_name

OF_MANY = {"Concat", "Max", "Mean", "Min", "Sum"}
"""Op types that pass on a single operand."""


def merge(network: EditedNetwork, graph: onnx.GraphProto, scope: Scope) -> None:
    """Take away nodes that pass on their input, nodes of equal results, and known conditions."""
    outputs = {value.name for value in graph.output}
    fixed = network.fixed(graph)
    read = names_read(graph.node)
    used = read | outputs
    left, kept = deque(graph.node), list[Any]()
    sizes = KnownSizes(network.model, network.types, scope.constants, dict(scope.values))
    branches = any(node.op_type == "If" for node in graph.node)
    same: dict[str, str] = {}
    seen: dict[Hashable, onnx.NodeProto] = {}
    turned: dict[str, onnx.NodeProto] = {}
    while left:
        node = left.popleft()
        rename(node, same)
        if node.op_type == "Transpose" and network.keys.is_standard(node):
            _compose(network, node, turned, fixed)
        inlined = _branch(network, graph, node, sizes)
        inlined = _as_gather(network, graph, node, scope) if inlined is None else inlined
        if inlined is not None:
            names = names_read(inlined)
            sizes.told |= {same.get(name, name) for name in names}
            read |= names
            used |= names
            left.extendleft(reversed(inlined))
            continue
        value = sizes.known_value(node) if branches else None
        if value is not None:  # by which the next condition may be known
            sizes.note(node.output[0], value)
        left.extendleft(_constant_keys(network, node, scope, used))
        source = _passed_on(network, node, scope, used)
        if source is not None and node.output[0] not in network.pinned:
            same[node.output[0]] = source
            if source in scope.values and node.output[0] in read:
                network.changed |= node.output[0] not in network.followed
                network.followed.add(node.output[0])
            if node.output[0] not in outputs:
                continue
        key = _view_key(network, node, scope) or network.keys.node(node, scope.keys, scope.values)
        if key is not None and node.op_type == "ConstantOfShape":
            scope.keys[node.output[0]], key = key, None  # each reader has its own layout of it
        if any(name in fixed and not network.may_copy(name) for name in node.output):
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
                kept.append(identity(source, name))
            if name and name != first.output[k] and name not in network.pinned:
                same.setdefault(name, source)
    renamed = _output_names(kept, outputs - network.pinned, fixed)
    network.changed |= not scope.constants.keys().isdisjoint(renamed)  # which have no such name yet
    set_items(graph.node, _with_names(kept, renamed))


def _compose(
    network: EditedNetwork, node: onnx.NodeProto, turned: dict[str, onnx.NodeProto], fixed: set[str]
) -> None:
    """Let a Transpose of a Transpose read what that one reads, and tell its order of axes.

    One that moves no axes is Identity, but for ``fixed`` results that Identity does not make.
    """
    turned[node.output[0]] = node
    first = turned.get(node.input[0])
    both = [node] if first is None or network.pinned & {*first.output} else [first, node]
    given = [list(a.ints) for one in both for a in one.attribute if a.name == "perm"]
    known = shape_of(network.types.get(node.input[0]))
    shape, order = given[0] if given else known, list[int]()
    if shape is not None:
        order = list(range(len(shape)))
        for one in both:
            order = [order[axis] for axis in turned_axes(one, len(shape))]
    nothing = len(both) > 1 if shape is None else order == sorted(order)  # reversed twice
    plain = node.output[0] not in fixed or network.may_copy(both[0].input[0])
    if nothing and plain and (known is not None or not given):
        node.input[0], node.op_type = both[0].input[0], "Identity"
        del node.attribute[:], turned[node.output[0]]
    elif order and (len(both) > 1 or not given):
        node.input[0] = both[0].input[0]
        set_items(node.attribute, [onnx.helper.make_attribute("perm", order)])


def _branch(
    network: EditedNetwork, graph: onnx.GraphProto, node: onnx.NodeProto, sizes: KnownSizes
) -> list[onnx.NodeProto] | None:
    """Return the nodes of the branch that is taken always, if that is known."""
    if node.op_type != "If" or not network.keys.is_standard(node):
        return None
    condition = sizes.values.get(node.input[0])
    if condition is None or condition.size != 1:
        return None
    wanted = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    [body] = [a.g for a in node.attribute if a.name == wanted]
    fixed = network.fixed(graph)
    if any(name in fixed and not network.may_copy(name) for name in node.output):
        return None
    graph.initializer.extend(body.initializer)
    graph.sparse_initializer.extend(body.sparse_initializer)
    graph.quantization_annotation.extend(body.quantization_annotation)
    network.changed = True
    pairs = zip(body.output, node.output, strict=False)
    ends = [identity(a.name, b) for a, b in pairs if b]
    return [*body.node, *ends]


def _as_gather(
    network: EditedNetwork, graph: onnx.GraphProto, node: onnx.NodeProto, scope: Scope
) -> list[onnx.NodeProto] | None:
    """Return a GatherND of one index each as a Gather, whose axis may be any."""
    if node.op_type != "GatherND" or not network.keys.is_standard(node):
        return None
    kind = network.types.get(node.input[0])
    if kind is not None and type_name(kind.tensor_type.elem_type) == "string":
        return None  # onnxruntime 1.32 gathers texts wrongly
    known = scope.constants.get(node.input[1])
    shape = known.shape if known else shape_of(network.types.get(node.input[1])) or ()
    sizes = numbers_of(shape)
    if sizes is None or sizes[-1:] != (1,) or any(a.i for a in node.attribute):
        return None
    indices = network.names.fresh(f"{node.input[1]}_rows")
    shape_of_rows = np.array(sizes[:-1], np.int64)
    target = network.new_constant(graph, f"{node.input[1]}_shape", shape_of_rows)
    network.changed = True
    return [
        onnx.helper.make_node("Reshape", [node.input[1], target], [indices]),
        onnx.helper.make_node("Gather", [node.input[0], indices], node.output, name=node.name),
    ]


def _constant_keys(
    network: EditedNetwork, node: onnx.NodeProto, scope: Scope, read: set[str]
) -> Iterator[onnx.NodeProto]:
    """Yield Concats of keys and values that an Attention gives back, all of them constants."""
    if node.op_type != "Attention" or not network.keys.is_standard(node) or len(node.input) < 6:
        return
    for n, name in enumerate(node.output[1:3], 1):
        parts = [node.input[n + 3], node.input[n]]
        known = [scope.constants.get(part) for part in parts]
        if name in read and all(x is not None and len(x.shape) == 4 for x in known):
            node.output[n] = network.names.fresh(name)
            yield onnx.helper.make_node("Concat", parts, [name], axis=2)


def _passed_on(
    network: EditedNetwork, node: onnx.NodeProto, scope: Scope, read: set[str]
) -> str | None:
    """Return the name of what a node gives back as it is; None if it does something."""
    if not network.keys.is_standard(node):
        return None
    source: str = node.input[0] if node.input else ""
    if node.op_type == "Identity" or (node.op_type in OF_MANY and len(node.input) == 1):
        return source
    if node.op_type == "Reshape" and network.same_shape(source, node.output[0]):
        return source
    if node.op_type in ("Expand", "Reshape") and _keeps_sizes(network, node, scope):
        return source
    if node.op_type == "Transpose":  # which alone may tell the rank of an output or an input
        perm = [axis for a in node.attribute for axis in a.ints]
        known = shape_of(network.types.get(source)) is not None or source not in network.inputs
        return source if known and perm and perm == sorted(perm) else None
    if node.op_type == "Dropout" and only_passes(node, scope.values):
        return None if read.intersection(node.output[1:2]) - {""} else source
    if node.op_type == "Cast":
        kind = network.types.get(source)
        [to] = [a.i for a in node.attribute if a.name == "to"] or [0]
        if kind is not None and kind.tensor_type.elem_type == to != 0:
            return source
    return None


def _view_key(network: EditedNetwork, node: onnx.NodeProto, scope: Scope) -> Hashable | None:
    """Return what reshapes of one tensor to equal sizes have in common, however these are told."""
    if not is_view(node) or node.op_type == "Transpose" or not network.keys.is_standard(node):
        return None
    sizes = numbers_of(shape_of(network.types.get(node.output[0])))
    source = node.input[0]
    return None if sizes is None else (scope.keys.get(source, source), sizes)


def _keeps_sizes(network: EditedNetwork, node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether each size that an Expand or Reshape wants is there already.

    So it is of an Expand where 1 is wanted, of a Reshape where 0 is, or -1 if it keeps all others.
    """
    wanted = scope.values.get(node.input[1])
    shape = shape_of(network.types.get(node.input[0]))
    if wanted is None or shape is None or wanted.size > len(shape):
        return False
    pairs = zip(reversed(shape), wanted[::-1].tolist(), strict=False)
    if node.op_type == "Expand":
        return all(size in (1, known) for known, size in pairs)
    others = [size for known, size in pairs if size not in (0, known)]
    all_told = wanted.size == len(shape) and not any(a.i for a in node.attribute)  # allowzero
    return all_told and (not others or (others == [-1] and 0 not in shape))


def _output_names(
    nodes: Sequence[onnx.NodeProto], outputs: set[str], fixed: set[str]
) -> dict[str, str]:
    """Return the outputs that nodes may make themselves, by what copies are made of."""
    made = {name for node in nodes for name in node.output if name} - fixed
    found: dict[str, str] = {}
    for node in nodes:
        if node.op_type == "Identity" and is_standard(node.domain):
            name, output = node.input[0], node.output[0]
            if output in outputs and name in made:
                found.setdefault(name, output)
    return found


def _with_names(
    nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]
) -> Iterator[onnx.NodeProto]:
    """Yield nodes with other names, without those that only gave these names to others."""
    for node in nodes:
        copies = node.op_type == "Identity" and is_standard(node.domain)
        if copies and names.get(node.input[0]) == node.output[0]:
            continue
        rename(node, names, results=True)
        yield node
