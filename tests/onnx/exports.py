"""Random networks as exporters of channels-last frameworks write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
WINDOWS = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"}
"""Types of ops that exporters wrap in transposes."""

KINDS = (
    *("conv", "conv", "conv", "unary", "pool", "residual", "concat", "split", "broadcast"),
    *("squeeze", "pad", "side", "softmax", "swap", "reshape"),
)
HEADS = ("plain", "first", "mean", "gemm", "softmax", "global")
"""What networks are made of, and end with."""

Shape = tuple[int, ...]


class Export:
    """A network as it grows; all data has its channels last, convolutions are wrapped.

    Parameters
    ----------
    seed
        Equal seeds and sizes give equal networks.
    opset
        Version of the operator set: 13 or later.
    """

    def __init__(self, seed: int, opset: int = 17) -> None:
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.initialisers: list[TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.shapes: dict[str, Shape] = {}
        self.outputs: list[str] = []

    def input(self, shape: Shape) -> str:
        """Add an input."""
        name = f"input{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.shapes[name] = shape
        return name

    def constant(self, shape: Shape) -> str:
        """Add an initialiser of random numbers."""
        scale = 1 / max(1.0, np.prod(shape[1:], initial=1.0) ** 0.5)
        return self.values(self.numbers.standard_normal(shape).astype(np.float32) * scale)

    def values(self, values: Any) -> str:
        """Add an initialiser."""
        array = np.asarray(values)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        name = f"constant{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(array, name))
        self.shapes[name] = array.shape
        return name

    def op(self, kind: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> str:
        """Add a node with one result."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"n_{name}", **attributes))
        self.shapes[name] = shape
        return name

    def turn(self, x: str, order: tuple[int, ...]) -> str:
        """Add a transpose."""
        shape = self.shapes[x]
        return self.op("Transpose", [x], tuple(shape[i] for i in order), perm=order)

    def conv(self, x: str, channels: int, size: int = 3) -> str:
        """Add a convolution that keeps height and width, between transposes."""
        n, h, w, c = self.shapes[x]
        kernel = self.constant((channels, c, size, size))
        more = [self.constant((channels,))] if self.draw.random() < 0.5 else []
        pads = [size // 2] * 4
        y = self.turn(x, TO_FIRST)
        y = self.op("Conv", [y, kernel, *more], (n, channels, h, w), pads=pads)
        return self.turn(y, TO_LAST)

    def pool(self, x: str) -> str:
        """Add a pool that keeps height and width, between transposes."""
        kind = self.draw.choice(["MaxPool", "AveragePool"])
        y = self.turn(x, TO_FIRST)
        y = self.op(kind, [y], self.shapes[y], kernel_shape=[3, 3], pads=[1] * 4)
        return self.turn(y, TO_LAST)

    def squeeze_excite(self, x: str) -> str:
        """Scale channels by what their means say."""
        n, _, _, c = self.shapes[x]
        mean = self.op("ReduceMean", [x], (n, 1, 1, c), axes=[1, 2], keepdims=1)
        less = self.op("Relu", [self.conv(mean, max(1, c // 2), 1)], (n, 1, 1, max(1, c // 2)))
        gate = self.op("Sigmoid", [self.conv(less, c, 1)], (n, 1, 1, c))
        return self.op("Mul", [x, gate], self.shapes[x])

    def block(self, x: str, side: Sequence[str]) -> str:
        """Add one of the things that networks are made of; height and width stay."""
        n, h, w, c = shape = self.shapes[x]
        kind = self.draw.choice(KINDS)
        if kind == "conv":
            return self.conv(x, self.draw.choice([2, 3, 4]), self.draw.choice([1, 3]))
        if kind == "unary":
            return self.op(self.draw.choice(["Relu", "Tanh", "Sigmoid"]), [x], shape)
        if kind == "pool":
            return self.pool(x)
        if kind == "residual":
            y = self.op("Relu", [self.conv(x, c)], shape)
            return self.op("Add", self.draw.sample([x, self.conv(y, c)], 2), shape)
        if kind == "concat":
            other = self.draw.choice([self.conv(x, 3), self.pool(x), *side])
            both = self.draw.sample([x, other], 2)
            return self.op("Concat", both, (n, h, w, c + self.shapes[other][3]), axis=3)
        if kind == "split" and c > 1:
            return self._split(x)
        if kind == "broadcast":
            other = self.draw.choice([(c,), (1, 1, c), (1, 1, 1, c), (w, 1), (h, 1, c), ()])
            return self.op(self.draw.choice(["Add", "Mul"]), [x, self.constant(other)], shape)
        if kind == "squeeze":
            return self.squeeze_excite(x)
        if kind == "pad":
            pads = self.values(np.array([0, 1, 1, 0, 0, 1, 1, 0]))
            y = self.op("Pad", [x, pads], (n, h + 2, w + 2, c))
            y = self.turn(y, TO_FIRST)
            kernel = self.constant((c, c, 3, 3))
            return self.turn(self.op("Conv", [y, kernel], (n, c, h, w)), TO_LAST)
        if kind == "side" and side:
            other = self.draw.choice(list(side))
            return self.op("Mul", [x, self.conv(other, c, 1)], shape)
        if kind == "softmax":
            return self.op("Softmax", [x], shape, axis=3)
        if kind == "swap" and h == w:
            return self.turn(x, (0, 2, 1, 3))
        if kind == "reshape":
            y = self.op("Reshape", [x, self.values(np.array([n, h * w, c]))], (n, h * w, c))
            y = self.op("Relu", [y], self.shapes[y])
            return self.op("Reshape", [y, self.values(np.array([0, h, w, -1]))], shape)
        return self.op("LeakyRelu", [x], shape, alpha=0.1)

    def _split(self, x: str) -> str:
        n, h, w, c = self.shapes[x]
        parts = [f"t{len(self.nodes)}{half}" for half in "ab"]
        sizes = (1, c - 1)
        node = helper.make_node("Split", [x, self.values(np.array(sizes))], parts, axis=3)
        self.nodes.append(node)
        self.shapes.update({p: (n, h, w, k) for p, k in zip(parts, sizes, strict=True)})
        parts[0] = self.conv(parts[0], 2)
        total = sum(self.shapes[p][3] for p in parts)
        return self.op("Concat", parts, (n, h, w, total), axis=-1)

    def head(self, x: str) -> str:
        """Add what networks end with."""
        n, h, w, c = shape = self.shapes[x]
        kind = self.draw.choice(HEADS)
        if kind == "first":
            return self.turn(x, TO_FIRST)
        if kind == "mean":
            return self.op("ReduceMean", [x], (n, c), axes=[1, 2], keepdims=0)
        if kind == "gemm":
            y = self.op("Flatten", [x], (n, h * w * c), axis=1)
            return self.op("Gemm", [y, self.constant((h * w * c, 5))], (n, 5))
        if kind == "softmax":
            return self.op("Softmax", [x], shape, axis=-1)
        if kind == "global":
            y = self.op("GlobalAveragePool", [self.turn(x, TO_FIRST)], (n, c, 1, 1))
            y = self.turn(y, TO_LAST)
            y = self.op("Reshape", [y, self.values(np.array([n, c]))], (n, c))
            return self.op("MatMul", [y, self.constant((c, 4))], (n, 4))
        return x

    def model(self) -> ModelProto:
        """Return the network."""
        outputs = [
            helper.make_tensor_value_info(x, TensorProto.FLOAT, self.shapes[x])
            for x in dict.fromkeys(self.outputs)
        ]
        graph = helper.make_graph(self.nodes, "export", self.inputs, outputs, self.initialisers)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def random_export(seed: int, ops: int) -> ModelProto:
    """Return a random network of at least so many nodes; equal arguments give equal ones."""
    export = Export(seed)
    size = export.draw.choice([4, 5, 6])
    wide = size + export.draw.choice([0, 0, 1])
    x = export.input((1, size, wide, 3))
    side = [export.input((1, size, wide, 2)) for _ in range(export.draw.choice([0, 1, 1, 2]))]
    earlier = [x]
    while len(export.nodes) < ops - 4:
        x = export.block(x if export.draw.random() < 0.8 else export.draw.choice(earlier), side)
        earlier.append(x)
        if export.draw.random() < 0.08:
            export.outputs.append(export.head(x))
    export.outputs += [export.head(y) for y in _unread(export, earlier)]
    return export.model()


def _unread(export: Export, names: Sequence[str]) -> list[str]:
    """Return the tensors that nobody reads, which are the outputs."""
    read = {name for node in export.nodes for name in node.input} | set(export.outputs)
    return [name for name in dict.fromkeys(names) if name not in read]


def channels_last(model: ModelProto) -> ModelProto:
    """Return a network in which each window op on 4 axes stands between a pair of transposes."""
    shaped = onnx.shape_inference.infer_shapes(model)
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in (*shaped.graph.value_info, *shaped.graph.input, *shaped.graph.output)
    }
    new = ModelProto()
    new.CopyFrom(model)
    del new.graph.node[:]
    for node in model.graph.node:
        if node.op_type not in WINDOWS or ranks.get(node.input[0]) != 4:
            new.graph.node.append(node)
            continue
        x, y = node.input[0], node.output[0]
        last = helper.make_node("Transpose", [x], [f"{y}_in_last"], perm=TO_LAST)
        first = helper.make_node("Transpose", [f"{y}_in_last"], [f"{y}_in"], perm=TO_FIRST)
        inner = NodeProto()
        inner.CopyFrom(node)
        inner.input[0], inner.output[0] = f"{y}_in", f"{y}_out"
        back = helper.make_node("Transpose", [f"{y}_out"], [f"{y}_out_last"], perm=TO_LAST)
        again = helper.make_node("Transpose", [f"{y}_out_last"], [y], perm=TO_FIRST)
        new.graph.node.extend([last, first, inner, back, again])
    return new
