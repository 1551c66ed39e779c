"""Ops in other layouts than ONNX has, as functions that a network brings along.

An op in NHWC becomes a node of the domain ``layoutopt.nhwc``, by which a backend knows it.  The
network holds a function of the same name, transposes around the op of ONNX, by which it still
runs everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import Op, parse_operands
from layoutopt.conversion.rules.registry import operand_axes
from layoutopt.layout.layout import Block, Layout
from layoutopt.onnx.attributes import KnownLayouts
from layoutopt.onnx.protobuf import all_nodes, copied, is_standard, onnx, set_items, versions_of
from layoutopt.onnx.validate import kinds_of, schema

SINCE_WHOLE_CONSTANTS = 9
"""The operator set since which Constant gives whole numbers; before, Cast makes them."""

Step = tuple[list[Block], list[Block]]
"""What dimensions hold before and after a Transpose, or a Reshape of the last of them."""


def fits(layout: Layout, axes: str) -> bool:
    """Return whether a layout has whole axes and blocks of the axes given, and no others."""
    whole = sorted(block.axis for block in _blocks(layout) if block.size is None)
    return whole == sorted(axes) == sorted(set(axes)) and all(
        len(dim.blocks) == 1 and not dim.extensions for dim in layout.dims
    )


def _blocks(layout: Layout) -> list[Block]:
    return [block for dim in layout.dims for block in dim.blocks]


def _steps(layout: Layout, axes: str) -> list[Step]:
    """Return the steps from a layout to an order of whole axes, for tensors of any size.

    As Reshape copies sizes only in their places, blocks are joined behind all other axes.
    """
    found, at = list[Step](), _blocks(layout)
    for axis in dict.fromkeys(block.axis for block in at if block.size is not None):
        own = sorted((b for b in at if b.axis == axis), key=lambda b: b.size is not None)
        rest = [block for block in at if block.axis != axis]
        found += [(at, [*rest, *own]), ([*rest, *own], [*rest, Block(axis)])]
        at = [*rest, Block(axis)]
    found.append((at, list(map(Block, axes))))
    return [(before, after) for before, after in found if before != after]


def _nodes(
    steps: Iterable[Step], name: str, stem: str, opset: int
) -> tuple[list[onnx.NodeProto], str]:
    """Return nodes, named by ``stem``, that take steps from ``name``, and their result's name."""
    nodes: list[onnx.NodeProto] = []
    for before, after in steps:
        shape, new = f"{stem}_shape{len(nodes)}", f"{stem}_{len(nodes)}" if nodes else stem
        if len(before) == len(after):
            left, order = list(enumerate(before)), list[int]()
            for block in after:  # equal blocks of one axis keep their order
                at = next(i for i, (_, other) in enumerate(left) if other == block)
                order.append(left.pop(at)[0])
            nodes.append(onnx.helper.make_node("Transpose", [name], [new], perm=order))
        else:
            kept = min(len(before), len(after)) - 1
            sizes = [0] * kept + [block.size or -1 for block in after[kept:]]
            whole = opset >= SINCE_WHOLE_CONSTANTS
            kind, given = (
                (onnx.TensorProto.INT64, shape)
                if whole
                else (onnx.TensorProto.DOUBLE, f"{shape}_as")
            )
            value = onnx.helper.make_tensor(given, kind, [len(sizes)], sizes)
            nodes.append(onnx.helper.make_node("Constant", [], [given], value=value))
            if not whole:
                nodes.append(
                    onnx.helper.make_node("Cast", [given], [shape], to=onnx.TensorProto.INT64)
                )
            nodes.append(onnx.helper.make_node("Reshape", [name, shape], [new]))
        name = new
    return nodes, name


DOMAIN = "layoutopt"

OF = " of "
"""What stands between the type of an op and its layouts, in the text of its function."""

SINCE_FUNCTIONS = 8
"""Version of the file format since which networks hold functions."""


def known_layouts(model: onnx.ModelProto) -> KnownLayouts:
    """Return what op, in which layouts, each function of other layouts in a network stands for.

    By domain and name of the function: the type of the op, and how it is written.
    """
    found = {}
    for function in model.functions:
        kind, of, layouts = function.doc_string.partition(OF)
        if function.domain.startswith(f"{DOMAIN}.") and of:
            found[function.domain, function.name] = kind, parse_operands(layouts)
    return found


class LayoutFunctions:
    """The functions of ops in other layouts, each once; those that a network has stay."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.versions = versions_of(model)
        self.taken = {(f.domain, f.name) for f in model.functions}
        self.known = {_nameless(f): f for f in model.functions if f.domain.startswith(f"{DOMAIN}.")}

    def call(self, node: onnx.NodeProto, op: Op) -> None:
        """Turn a node of ONNX into a call of the function for its op's layouts.

        It stays as it is if these are ONNX's own.  Raises ``InputError`` if they are none of the
        op's axes in another order.
        """
        function = self._function(node, op)
        if len(function.node) == 1:
            return
        own, number = function.name, 1
        known = self.known.setdefault(_nameless(function), function)
        while known is function and (function.domain, function.name) in self.taken:
            number += 1
            function.name = f"{own}_{number}"
        node.domain, node.op_type = known.domain, known.name
        self.taken.add((known.domain, known.name))

    def add_to(self, model: onnx.ModelProto) -> None:
        """Give a network the functions that its nodes call, and take away those that none does."""
        called = {(node.domain, node.op_type) for node in all_nodes(model.graph)}
        mine = [f for f in self.known.values() if (f.domain, f.name) in called]
        others = [f for f in model.functions if not f.domain.startswith(f"{DOMAIN}.")]
        if [*others, *mine] == list(model.functions):
            return
        set_items(model.functions, [*others, *mine])
        model.ir_version = max(model.ir_version, SINCE_FUNCTIONS)
        known = {x.domain for x in model.opset_import}
        for domain in sorted({function.domain for function in mine} - known):
            model.opset_import.append(onnx.helper.make_opsetid(domain, 1))

    def _function(self, node: onnx.NodeProto, op: Op) -> onnx.FunctionProto:
        inputs = [f"input{n}" for n in range(len(op.inputs))]
        outputs = [f"output{n}" for n in range(len(op.outputs))]
        domain = "" if is_standard(node.domain) else node.domain
        inner = onnx.helper.make_node(op.type.rpartition("::")[2], inputs, outputs, domain=domain)
        inner.attribute.extend(references(node, op))
        before: list[onnx.NodeProto] = []
        after: list[onnx.NodeProto] = []
        inner.input[:] = [name if op.has(n) else "" for n, name in enumerate(inputs)]
        for n, layout, axes in _moved(op, len(inputs), False):
            steps, opset = _steps(layout, axes), self.versions[""]
            nodes, inner.input[n] = _nodes(steps, inputs[n], f"written{n}", opset)
            before += nodes
        for n, layout, axes in _moved(op, len(outputs), True):
            back = [(to, start) for start, to in reversed(_steps(layout, axes))]
            nodes, _ = _nodes(back, f"found{n}", f"found{n}_moved", self.versions[""])
            if nodes:
                nodes[-1].output[0], inner.output[n] = outputs[n], f"found{n}"
            after += nodes
        data = (op.layouts and op.layouts.input(0)) or (op.layouts and op.layouts.output(0))
        letters = "".join(c for c in str(data).lower() if c.isalnum())
        return onnx.helper.make_function(
            f"{DOMAIN}.{letters}",
            inner.op_type,
            inputs,
            outputs,
            [*before, inner, *after],
            [onnx.helper.make_opsetid(d, self.versions[d]) for d in sorted({domain, ""})],
            attributes=[a.name for a in inner.attribute],
            doc_string=f"{op.type}{OF}{op.layouts}",
        )


def references(node: onnx.NodeProto, op: Op) -> Iterator[onnx.AttributeProto]:
    """Yield attributes that take their values from those of a function's call."""
    known = schema(op.type, op.opset)
    kinds = {} if known is None else kinds_of(known)
    kinds.update((a.name, a.type) for a in node.attribute)
    for name, kind in sorted(kinds.items()):
        yield onnx.AttributeProto(name=name, ref_attr_name=name, type=kind)


def _nameless(function: onnx.FunctionProto) -> tuple[str, bytes]:
    """Return what tells two functions apart, whatever their names."""
    copy = copied(function)
    copy.ClearField("name")
    return function.domain, copy.SerializeToString(deterministic=True)


def _moved(op: Op, count: int, outputs: bool) -> Iterator[tuple[int, Layout, str]]:
    """Yield the operands, or results, in other layouts than ONNX's, with the axes that it has."""
    axes = operand_axes(op)
    for n in range(count):
        layouts = op.layouts
        layout = layouts and (layouts.output(n) if outputs else layouts.input(n))
        if not layout or not (outputs or op.has(n)):
            continue
        plain = axes and (axes.output(n) if outputs else axes.input(n))
        written = plain.letters if plain else ""
        if not fits(layout, written):
            side = "result" if outputs else "input"
            raise InputError(f"{op}: {side} {n} cannot be in {layout}; its axes are {written!r}")
        if str(layout) != written:
            yield n, layout, written
