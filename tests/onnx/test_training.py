"""Training steps of imported networks: gradients, what is trained, and the optimisers' states."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper

from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.protobuf import copied
from layoutopt.onnx.read import read_network, read_onnx
from tests.onnx.networks import (
    Shapes,
    added,
    model,
    network,
    node,
    pairs,
    passed_on,
    save,
    trained,
    types,
)
from tests.onnx.test_whole import FOLDER, NETWORKS
from tests.support import proved

ints = np.array


def step(
    folder: Path,
    nodes: Sequence[NodeProto],
    inputs: Shapes,
    weights: dict[str, tuple[int, ...]],
    training: str = "sgd",
    **more: Any,
) -> Graph:
    """Return a training step of a small network; the weights are its initialisers."""
    constants = {k: np.zeros(v, np.float32) for k, v in weights.items()}
    network = model(nodes, inputs, constants=constants | more.pop("constants", {}), **more)
    return read_onnx(save(network, folder), training=training)


def numbered(graph: Graph) -> dict[str, np.ndarray]:
    """Return for each view of the loss which element of it stands where; -1 in zeros."""
    data = {}
    for t in graph.fixed_points():
        if t.name == "y.loss":
            data[t.name] = np.arange(t.size)
        elif ".zeros" in t.name:
            data[t.name] = np.full(t.size, -1)
    return passed_on(graph, data)


GEMM = [node("Gemm", "x w b")], {"x": (2, 3)}, {"w": (3, 4), "b": (4,)}


@pytest.mark.parametrize(("training", "best"), [("sgd", 2000), ("momentum", 2320), ("adam", 3000)])
def test_optimum_of_one_layer(training: str, best: int, tmp_path: Path) -> None:
    """Counted by hand.

    x serves one of its products: 6 * 100.  w serves its product, and the states join it there:
    12 * (100 + 20 for the first, + 40 for the second).  b lies by its output, 50, where states
    would earn 20 and 40 more: 50, 70, 110; or with gradient and states: 20, 60, 120.
    """
    sums = {"sgd": (100, 50), "momentum": (120, 70), "adam": (160, 120)}
    w, b = sums[training]
    assert best == 6 * 100 + 12 * w + 4 * b
    assert proved(step(tmp_path, *GEMM, training)).score == best


def test_optimum_of_a_chain(tmp_path: Path) -> None:
    """Each weight serves one product, forwards or backwards, with its states: 160 by element.

    The activations between are fixed by the products that make them.
    """
    nodes = [node("MatMul", "x v", "h"), node("Relu", "h", "r"), node("MatMul", "r w")]
    graph = step(tmp_path, nodes, {"x": (2, 3)}, {"v": (3, 5), "w": (5, 4)}, "adam")
    assert proved(graph).score == 100 * 2 * 3 + 160 * (3 * 5 + 5 * 4)


@pytest.mark.parametrize("flags", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}])
def test_gemm_transposed(flags: dict[str, int], tmp_path: Path) -> None:
    """Gradients have their operands' shapes, and products read operands of the right shapes."""
    shapes = {"a": (2, 3), "b": (3, 4)}
    for name in shapes:
        if flags.get(f"trans{name.upper()}"):
            shapes[name] = shapes[name][::-1]
    graph = step(tmp_path, [node("Gemm", "a b", **flags)], {}, shapes)
    for name, (lhs, rhs) in {"a": ((2, 4), (4, 3)), "b": ((3, 2), (2, 4))}.items():
        assert graph.tensor(f"{name}.gradient.lhs.target").shape == lhs
        assert graph.tensor(f"{name}.gradient.rhs.target").shape == rhs
        (update,) = (op for op in graph.ops if op.id == f"{name}.update")
        assert [graph.tensor(x).shape for x in update.inputs] == [shapes[name]] * 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((5, 1, 2, 3), (7, 3, 4)),
        ((5, 2, 3), (3, 4)),
    ],
)
def test_matmul_by_numpys_shapes(a: tuple[int, ...], b: tuple[int, ...], tmp_path: Path) -> None:
    """Both operands get gradients of their own shape; broadcast batches are summed."""
    graph = step(tmp_path, [node("MatMul", "a b")], {}, {"a": a, "b": b})
    for name, shape in {"a": a, "b": b}.items():
        (update,) = (op for op in graph.ops if op.id == f"{name}.update")
        assert [graph.tensor(x).shape for x in update.inputs] == [shape, shape]
    reduces = {op.id for op in graph.ops if types(graph).get(op.id) == "sum_like_reduce"}
    batches = np.broadcast_shapes(a[:-2], b[:-2])
    wanted = {f"{n}.gradient2" for n, s in (("a", a), ("b", b)) if s[:-2] != batches}
    assert {name.replace(".reshaped", "") for name in reduces} == wanted


def convolutions(
    folder: Path, groups: int = 1, kind: str = "Conv", w: tuple[int, ...] = (6, 4, 3, 2)
) -> Graph:
    """Return a step of two convolutions, of which the second has a weight w and a bias."""
    channels = w[1] * groups if kind == "Conv" else w[0]
    out = w[0] if kind == "Conv" else w[1] * groups
    nodes = [node("Conv", "x v", "h"), node(kind, "h w b", group=groups)]
    weights = {"v": (channels, 3, 1, 1), "w": w, "b": (out,)}
    return step(folder, nodes, {"x": (2, 3, 8, 8)}, weights)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_turned_weights(groups: int, tmp_path: Path) -> None:
    """In each group input and output channels change places, and the kernel is turned."""
    shape = (6, 4, 3, 2)
    graph = convolutions(tmp_path, groups, w=shape)
    w = np.arange(prod(shape)).reshape(shape)
    parts = [part.swapaxes(0, 1)[:, :, ::-1, ::-1] for part in np.split(w, groups)]
    turned = graph.tensor("h.gradient.weights.turned")
    assert turned.shape == (4 * groups, 6 // groups, 3, 2)
    assert (
        passed_on(graph, {"w": w})[turned.name].tolist() == np.concatenate(parts).ravel().tolist()
    )


VIEW_CASES = [
    (node("Transpose", "w", perm=[2, 0, 1]), (2, 3, 4), {}),
    (node("Flatten", "w"), (2, 3, 4), {}),
    (node("Reshape", "w s"), (2, 6), {"s": ints([3, -1])}),
    (node("Squeeze", "w s"), (2, 1, 3), {"s": ints([1])}),
    (node("Slice", "w a b c d"), (5, 7),
     {"a": ints([1, -1]), "b": ints([5, -8]), "c": ints([0, 1]), "d": ints([1, -3])}),
    (node("Slice", "w a b c d"), (9,),
     {"a": ints([1]), "b": ints([8]), "c": ints([0]), "d": ints([2])}),
    (node("DepthToSpace", "w", blocksize=2), (1, 8, 2, 3), {}),
    (node("DepthToSpace", "w", blocksize=2, mode="CRD"), (1, 8, 2, 3), {}),
    (node("SpaceToDepth", "w", blocksize=2), (1, 2, 4, 6), {}),
    (node("Split", "w s", "- y -", axis=1), (2, 9), {"s": ints([2, 3, 4])}),
    (node("Dropout", "w"), (4,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shape", "constants"), VIEW_CASES, ids=lambda v: str(v)[:30])
def test_views_go_back(
    op: NodeProto, shape: tuple[int, ...], constants: dict, tmp_path: Path
) -> None:
    """The gradient of an element is that of where the element went, or zero if it was cut."""
    graph = step(tmp_path, [op], {}, {"w": shape}, constants=constants)
    went = passed_on(graph, {"w": np.arange(prod(shape))})["y"]
    expected = np.full(prod(shape), -1)
    expected[went] = np.arange(went.size)
    (gradient,) = graph.op("w.update").inputs[1:]
    assert graph.tensor(gradient).shape == shape
    assert numbered(graph)[gradient].tolist() == expected.tolist()


# Op type, operands, and what its gradient is read with: the output, operands, or nothing.
ELEMENTWISE = [
    ("Relu", "h", ["y"]),
    ("Sigmoid", "h", ["y"]),
    ("Gelu", "h", ["h"]),
    ("Neg", "h", []),
    ("Add", "h k", []),
    ("Mul", "h k", ["h", "k"]),
    ("Div", "h k", ["k", "y"]),
    ("Max", "h k", ["h", "k"]),
]


@pytest.mark.parametrize(("kind", "operands", "saved"), ELEMENTWISE, ids=lambda v: str(v))
def test_elementwise(kind: str, operands: str, saved: list[str], tmp_path: Path) -> None:
    """A gradient is drawn to what the derivative is computed from, and to nothing else."""
    nodes = [node("MatMul", "x v", "h"), node("MatMul", "x w", "k"), node(kind, operands)]
    graph = step(tmp_path, nodes, {"x": (2, 3)}, {"v": (3, 4), "w": (3, 4)}, opset=20)
    drawn = [b for a, b, v in added(graph) if a == "y.loss" and v == 20]
    assert sorted(drawn) == saved


def nodes_for_initialisers(given: ModelProto) -> ModelProto:
    """Return a network whose initialisers have become Constant nodes."""
    new = copied(given)
    known = given.graph
    made = [node("Constant", "", x.name, value=x) for x in known.initializer]
    made += [node("Constant", "", x.values.name, sparse_value=x) for x in known.sparse_initializer]
    del new.graph.initializer[:], new.graph.sparse_initializer[:], new.graph.node[:]
    new.graph.node.extend([*made, *known.node])
    return new


def with_sparse_weight() -> ModelProto:
    """Return a network with two weights, of which one is sparse."""
    found = network("test (float[2,3] x) => (y) { a = MatMul(x, w) y = Add(a, b) }", {"b": (4,)})
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    places = numpy_helper.from_array(ints([5]), "places")
    found.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3, 4]))
    return found


# Networks, and what of each is trained: not numbers without axes, integers, statistics, sparse
# weights, and what is computed from shapes.
SAME = [
    (network("test (float[2,3] x) => (y) { y = Gemm(x, w, b) }", {"w": (3, 4), "b": (4,)}), "w b"),
    (network("""test (float[2,3] x) => (y) {
        a = MatMul(x, w) b = Add(a, n) c = Clip(b, n, n) y = Pad(c, p, n) }""",
     {"w": (3, 4), "n": np.float32(1), "p": ints([0, 1, 0, 1])}), "w"),
    (network("""test (float[2,3,4,4] x) => (y) {
        a = Conv(x, w) b = BatchNormalization(a, g, h, m, v) y = Reshape(b, s) }""",
     {"w": (1, 3, 1, 1), **dict.fromkeys("ghmv", (1,)), "s": ints([2, -1])}), "w g h"),
    (network("""test (float[2,3] x) => (y) {
        a = MatMul(x, w) b = Shape(a) c = Cast<to = 1>(b) y = Mul(a, c) }""", {"w": (3, 2)}), "w"),
    (network("""test (float[2,3] x) => (y) {
        w = ConstantOfShape(s) a = MatMul(x, w) b = Transpose(v) y = MatMul(a, b) }""",
     {"s": ints([3, 2]), "v": (5, 2)}), "w v"),
    (network("""test (float[2,3] x, bool c) => (float[2,4] y) { a = MatMul(x, w) y = If(c) <
        then_branch = g () => (float[2,4] d) { d = Add(a, b) },
        else_branch = h () => (float[2,4] e) { e = Mul(a, b) }> }""",
     {"w": (3, 4), "b": (4,)}), "w b"),
    (with_sparse_weight(), "b"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "names"), SAME, ids=[str(k) for k in range(len(SAME))])
@pytest.mark.parametrize("training", [None, "adam"])
def test_constant_nodes_mean_initialisers(
    given: ModelProto, names: str, training: str | None, tmp_path: Path
) -> None:
    """Placement and training give the same answer, and tensors have the same names."""
    both = (given, nodes_for_initialisers(given))
    graphs = [read_onnx(save(one, tmp_path), training=training) for one in both]
    first, second = map(proved, graphs)
    assert (first.score, first.bound) == (second.score, second.bound)
    assert sorted(pairs(graphs[0])) == sorted(pairs(graphs[1]))
    assert types(graphs[0]) == types(graphs[1])
    assert trained(graphs[1]) == (set(names.split()) if training else set())


def test_constant_nodes_of_functions_are_trained(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((3, 4), np.float32))
    inside = [node("Constant", "", "w", value=weight), node("MatMul", "a w", "r")]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("my", "Layer", ["a"], ["r"], inside, opsets)
    given = model([node("Layer", "x", domain="my")], {"x": (2, 3)}, functions=[function])
    [name] = trained(read_onnx(save(given, tmp_path), training="sgd"))
    assert name.startswith("w")


def parameters(path: Path) -> int:
    """Return the elements of a light network's weights, from the shapes in the file.

    Those are small initialisers, from which constants are filled.  Mean and variance of
    batch normalisation do not count, nor does what no node reads.
    """
    graph = onnx.load(path).graph
    given = {x.name: x for x in graph.initializer}
    statistics = {x for n in graph.node if n.op_type == "BatchNormalization" for x in n.input[3:]}
    sizes = {
        n.output[0]: prod(numpy_helper.to_array(given[n.input[0]]).tolist())
        for n in graph.node
        if n.op_type == "ConstantOfShape"
    }
    sizes |= {k: prod(x.dims) for k, x in given.items() if x.data_type == onnx.TensorProto.FLOAT}
    read = {x for n in graph.node for x in n.input} - statistics
    return sum(count for name, count in sizes.items() if name in read)


PUBLISHED = {
    "bvlc_alexnet": 60_965_224,
    "resnet50": 25_557_032,
    "squeezenet": 1_235_496,
    "vgg19": 143_667_240,
}


@pytest.mark.parametrize("name", [name for name, *_ in NETWORKS])
def test_light_networks(name: str) -> None:
    """All parameters are trained, nothing is without a rule, and each has one state."""
    path = FOLDER / f"light_{name}.onnx"
    network = read_network(path, training="momentum")
    assert not network.warnings()
    graph = network.graph
    states = [t for t in graph.sinks() if t.name.endswith(".momentum")]
    total = sum(t.size for t in states)
    assert total == parameters(path) == PUBLISHED.get(name, total)
    assert {t.name.removesuffix(".momentum") for t in states} == trained(graph)


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_light_networks_are_solved(name: str) -> None:
    """Proved optimal; the check recomputes the score inside."""
    proved(read_onnx(FOLDER / f"light_{name}.onnx", training="adam"))
