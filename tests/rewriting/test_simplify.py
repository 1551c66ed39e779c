"""Networks lose what does nothing before layouts are chosen, and compute the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.certify.conversion import Asked, certify, check_certificate, encoded
from layoutopt.onnx.running import largest_difference
from layoutopt.rewriting.read import read_model
from layoutopt.rewriting.simplify import simplified
from tests.rewriting.exports import random_export
from tests.rewriting.networks import kinds, network, values

PAIR = "t = Transpose<perm=[0,3,1,2]>({}) {} = Conv(t, w)"

CASES: dict[str, tuple[str, dict[str, Any], list[str], tuple[int, int, int]]] = {
    "a transposed weight": (
        """g (float[2,3] x) => (float[2,4] y) {
        wt = Transpose<perm=[1,0]>(w) y = MatMul(x, wt) }""",
        {"w": (4, 3)},
        ["MatMul"],
        (0, 0, 1),
    ),
    "a large transposed weight that is read elsewhere too": (
        """g (float[2,50] x, int64[2] i) => (float[2,40] y, float[2,50] z) {
        wt = Transpose<perm=[1,0]>(w) y = MatMul(x, wt) z = Gather(w, i) }""",
        {"w": (40, 50)},
        ["MatMul", "Gather"],
        (0, 0, 1),
    ),
    "two transposes of one weight": (
        """g (float[2,50] x) => (float[2,40] y) {
        a = Transpose<perm=[1,0]>(w) b = Transpose<perm=[1,0]>(w)
        c = MatMul(x, a) d = MatMul(x, b) y = Sub(c, d) }""",
        {"w": (40, 50)},
        ["MatMul", "Sub"],
        (0, 0, 2),
    ),
    "a weight in a node that makes it": (
        """g (float[1,2] x) => (float[1,2] y) {
        w = Constant<value = float[2,2] {1,2,3,4}>()
        v = Cast<to=1>(w) wt = Transpose<perm=[1,0]>(v) y = MatMul(x, wt) }""",
        {},
        ["MatMul"],
        (1, 0, 0),
    ),
    "a transposed weight as output": (
        "g (float[2] x) => (float[3,4] y, float[2] z) { y = Transpose<perm=[1,0]>(w) z = Relu(x) }",
        {"w": (4, 3)},
        ["Identity", "Relu"],
        (0, 0, 1),
    ),
    "a filled shape that is large": (
        """g (float[20,3,30] x) => (float[20,3,30] y) {
        s = Shape(x) z = ConstantOfShape(s) y = Add(x, z) }""",
        {},
        ["ConstantOfShape", "Add"],
        (0, 0, 0),
    ),
    "a filled shape": (
        "g (float[2,3] x) => (float[2,3] y) { s = Shape(x) z = ConstantOfShape(s) y = Add(x, z) }",
        {},
        ["Add"],
        (0, 0, 0),
    ),
    "shapes of shapes": (
        """g (float[2,3,4,4] x) => (float[n,m] y, int64[k] t) {
        s = Shape(x) n = Gather(s, zero) t = Concat<axis=0>(n, rest) y = Reshape(x, t) }""",
        {"zero": np.array([0]), "rest": np.array([-1])},
        ["Constant", "Reshape"],
        (0, 0, 0),
    ),
    "a product of constants that is larger than they are": (
        """g (float[2,60] x) => (float[2,60] y) {
        a = MatMul(u, v) b = Relu(a) c = Transpose<perm=[1,0]>(b) y = MatMul(x, c) }""",
        {"u": (60, 1), "v": (1, 60)},
        ["MatMul"],
        (1, 0, 0),
    ),
    "a size that is known of an open shape": (
        """g (float[n,3,4,4] x) => (float[n,3,4,4] y) {
        s = Shape(x) a = Gather(s, one) b = Unsqueeze(a, zero) c = ConstantOfShape(b)
        d = Unsqueeze(c, ends) y = Add(x, d) }""",
        {"one": np.array(1), "zero": np.array([0]), "ends": np.array([1, 2])},
        ["Add"],
        (0, 0, 0),
    ),
    "a reshape that one size is open to": (
        """g (float[n,3,4,4] x) => (float[n,8,6] y) {
        s = Shape(x) a = Gather(s, zero) t = Concat<axis=0>(a, rest) u = Reshape(x, t)
        v = Transpose<perm=[0,2,1]>(u) r = Relu(v) y = Transpose<perm=[0,2,1]>(r) }""",
        {"zero": np.array([0]), "rest": np.array([8, 6])},
        ["Reshape", "Relu"],
        (2, 0, 0),
    ),
    "a reshape that leaves one size and copies another": (
        """g (float[n,m,6] x) => (float[n,k,3] y) {
        s = Shape(x) a = Slice(s, zero, one) t = Concat<axis=0>(a, rest) y = Reshape(x, t) }""",
        {"zero": np.array([0]), "one": np.array([1]), "rest": np.array([-1, 3])},
        ["Reshape"],
        (0, 0, 0),
    ),
    "a reshape that two sizes are open to": (
        """g (float[n,3,m] x) => (float[m,3,n] y) {
        s = Shape(x) t = Gather(s, back) y = Reshape(x, t) }""",
        {"back": np.array([2, 1, 0])},
        ["Shape", "Gather", "Reshape"],
        (0, 0, 0),
    ),
    "one value transposed twice": (
        """g (float[1,4,4,3] x) => (float[1,3,4,4] y) {
        a = Transpose<perm=[0,3,1,2]>(x) b = Transpose<perm=[0,3,1,2]>(x)
        c = Conv(a, w) d = Conv(b, v) y = Sub(c, d) }""",
        {"w": np.ones((3, 3, 1, 1), np.float32), "v": np.full((3, 3, 1, 1), 2, np.float32)},
        ["Transpose", "Conv", "Conv", "Sub"],
        (2, 1, 0),
    ),
    "equal subgraphs with equal weights": (
        """g (float[1,3,4,4] x) => (float[1,4,4,3] y) {
        a = Conv(x, w) b = Conv(x, v) c = Relu(a) d = Relu(b)
        e = Transpose<perm=[0,2,3,1]>(c) f = Transpose<perm=[0,2,3,1]>(d) y = Sub(e, f) }""",
        {"w": (3, 3, 1, 1), "v": (3, 3, 1, 1)},
        ["Conv", "Relu", "Sub", "Transpose"],
        (2, 1, 0),
    ),
    "what draws is not shared": (
        """g (float[2,3] x) => (float[2,3] y) {
        a = RandomNormalLike<seed=1.0>(x) b = RandomNormalLike<seed=1.0>(x)
        c = Sub(a, b) d = Mul(c, zero) y = Add(x, d) }""",
        {"zero": np.zeros((2, 3), np.float32)},
        ["RandomNormalLike", "RandomNormalLike", "Sub", "Mul", "Add"],
        (0, 0, 0),
    ),
    "nodes that pass on what they are given": (
        """g (float[2,3] x) => (float[2,3] y) {
        a = Identity(x) b, m = Dropout(a) c = Cast<to=1>(b) d = Relu(c) y = Identity(d) }""",
        {},
        ["Relu"],
        (0, 0, 0),
    ),
    "inputs and outputs keep their names": (
        """g (float[2,3] x) => (float[2,3] y, float[2,3] z, float[2,3] v) {
        y = Identity(x) a = Relu(x) z = Identity(a) v = Relu(x) }""",
        {},
        ["Identity", "Relu", "Identity"],
        (0, 0, 0),
    ),
    "dead nodes": (
        """g (float[2,3] x) => (float[2,3] y) {
        t = Transpose<perm=[1,0]>(x) u = MatMul(t, k) y = Relu(x) }""",
        {"k": (2, 5)},
        ["Relu"],
        (0, 0, 0),
    ),
    "no nodes are left": (
        "g (float[2,3] x) => (float[2,3] x) { t = Transpose<perm=[1,0]>(x) }",
        {},
        [],
        (0, 0, 0),
    ),
    "an initialiser as output": (
        "g (float[2] x) => (float[4] k) { y = Relu(x) }",
        {"k": (4,)},
        [],
        (0, 0, 0),
    ),
    "one tensor as two outputs": (
        """g (float[1,4,4,3] x) => (float[1,4,4,3] y, float[1,4,4,3] y) {
        t = Transpose<perm=[0,3,1,2]>(x) r = Relu(t) y = Transpose<perm=[0,2,3,1]>(r) }""",
        {},
        ["Relu"],
        (2, 0, 0),
    ),
    "nodes out of order": (
        """g (float[1,4,4,3] x) => (float[1,4,4,3] y) {
        y = Transpose<perm=[0,2,3,1]>(r) r = Relu(t) t = Transpose<perm=[0,3,1,2]>(x) }""",
        {},
        ["Relu"],
        (2, 0, 0),
    ),
    "a condition that is known": (
        """g (float[1,4,4,3] x) => (float[1,4,4,3] y, float[1,3,4,4] r) {
        c = Constant<value = bool {1}>() t = Transpose<perm=[0,3,1,2]>(x) r = Neg(t)
        y = If(c) <
            then_branch = a () => (p) { r = Relu(t) p = Transpose<perm=[0,2,3,1]>(r) },
            else_branch = b () => (q) { q = Transpose<perm=[0,2,1,3]>(x) }
        > }""",
        {},
        ["Neg", "Relu", "Transpose"],
        (3, 1, 0),
    ),
    "branches that are constant": (
        """g (float[2] x, bool c) => (float[2] y) {
        k = If(c) <
            then_branch = a () => (float[2] p) { p = Constant<value = float[2] {1,2}>() },
            else_branch = b () => (float[2] q) <float[2] q = {3,4}> { }
        >
        y = Add(x, k) }""",
        {},
        ["If", "Add"],
        (0, 0, 0),
    ),
    "a condition within a branch": (
        """g (float[2,3] x, bool c) => (float[2,3] y) {
        k = Constant<value = bool {0}>()
        y = If(c) <
            then_branch = a () => (p) {
                p = If(k) <then_branch = e () => (m) { m = Exp(x) },
                           else_branch = f () => (n) { z = Neg(x) n = Identity(z) }>
            },
            else_branch = b () => (q) { w = Identity(x) q = Relu(w) }
        > }""",
        {},
        ["If"],
        (0, 0, 0),
    ),
    "a weight that ops read in several ranks": (
        """g (float[1,4,4,3] x, float[2,3] z) => (float[1,4,4,3] y, float[2,3] u) {
        t = Transpose<perm=[0,3,1,2]>(x) r = Conv(t, w) s = Transpose<perm=[0,2,3,1]>(r)
        a = Add(s, k) v = Transpose<perm=[0,3,1,2]>(a) e = Conv(v, w)
        y = Transpose<perm=[0,2,3,1]>(e) u = Add(z, k) }""",
        {"w": (3, 3, 1, 1), "k": (3,)},
        ["Transpose", "Conv", "Add", "Conv", "Transpose", "Add"],
        (4, 2, 0),
    ),
    "a declared shape of an inner tensor": (
        """g (float[1,8,8,16] x) => (float[1,16,8,8] y) <float[1,8,8,16] r> {
        t = Transpose<perm=[0,3,1,2]>(x) r = Relu(t) y = Exp(r) }""",
        {},
        ["Relu", "Exp", "Transpose"],
        (1, 1, 0),
    ),
    "a declared shape of an output": (
        """g (float[1,8,8,16] x) => (float[1,8,8,16] y) {
        t = Transpose<perm=[0,3,1,2]>(x) y = Relu(t) }""",
        {},
        ["Relu", "Transpose"],
        (1, 1, 0),
    ),
    "a declared rank": (
        "g (int64[1] x) => (float[1] y) <float c> { c = Cast<to=1>(x) y = Exp(c) }",
        {},
        ["Cast", "Exp"],
        (0, 0, 0),
    ),
}
"""Graph, constants, types of nodes afterwards; transforms before and after, free ones before."""


@pytest.mark.parametrize("case", CASES)
def test_what_does_nothing_is_gone(case: str) -> None:
    """The network has the nodes that are left, is valid, computes the same, and is read again."""
    text, constants, types, counts = CASES[case]
    model = network(text, constants)
    given = model.SerializeToString(deterministic=True)
    result = layoutopt.convert(model)
    onnx.checker.check_model(result.model, full_check=True)
    assert sorted(kinds(result.model)) == sorted(types)
    found = result.before.transforms, result.after.transforms, result.before.free
    assert found == counts
    assert result.status == "optimal"
    assert bool(result.notes) == case.startswith("a declared")
    if "draws" not in case:
        assert largest_difference(model, result.model) <= 1e-6
    assert layoutopt.convert(result.model).after.transforms == counts[1]
    assert model.SerializeToString(deterministic=True) == given


def mutated(seed: int) -> ModelProto:
    """Return a random network with much in it that does nothing, out of order."""
    draw = np.random.default_rng(seed)
    model = random_export(seed, 20)
    graph = model.graph
    outputs = {value.name for value in graph.output}
    extra: list[Any] = []
    for k, node in enumerate(list(graph.node)):
        same = onnx.NodeProto()
        same.CopyFrom(node)
        same.name, same.output[:] = f"again_{k}", [f"{name}_again" for name in node.output]
        kind = draw.integers(4)
        if kind == 0 and node.output[0] not in outputs and len(node.output) == 1:
            extra.append(same)
            readers = [n for n in graph.node if node.output[0] in n.input]
            for reader in readers[::2]:
                places = [i for i, x in enumerate(reader.input) if x == node.output[0]]
                reader.input[places[0]] = same.output[0]
        elif kind == 1:
            name = f"{node.input[0]}_passed_{k}"
            extra.append(helper.make_node("Identity", [node.input[0]], [name]))
            node.input[0] = name
        elif kind == 2:
            extra.append(same)  # nobody reads it
    for tensor in list(graph.initializer):
        array = numpy_helper.to_array(tensor)
        if array.ndim == 4 and draw.integers(2):
            name, turned = tensor.name, np.ascontiguousarray(array.transpose(3, 0, 2, 1))
            tensor.CopyFrom(numpy_helper.from_array(turned, f"{name}_turned"))
            back = helper.make_node("Transpose", [tensor.name], [name], perm=[1, 3, 2, 0])
            extra.append(back)
    nodes = [*graph.node, *extra]
    del graph.node[:]
    graph.node.extend(nodes[k] for k in draw.permutation(len(nodes)))
    return model


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    """What does nothing changes neither results nor what remains; certificates hold."""
    plain, model = random_export(seed, 20), mutated(seed)
    result = layoutopt.convert(model)
    onnx.checker.check_model(result.model, full_check=True)
    assert largest_difference(model, result.model) <= 1e-5
    assert result.objective <= layoutopt.convert(plain).objective
    certificate = json.loads(encoded(certify(result, Asked("count,bytes"))))
    check_certificate(model, certificate, result.model)
    once = simplified(model).model
    assert simplified(model).model == once


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("made", [False, True])
def test_sparse_constants_are_constants(size: int, made: bool) -> None:
    """They are computed with; those of nodes and initialisers are alike."""
    text = """g (float[N,N] x) => (float[N,N] y)
        { a = Abs(w) b = Transpose<perm=[1,0]>(a) y = Sub(x, b) }"""
    model = network(text.replace("N", str(size)))
    entries = numpy_helper.from_array(np.array([1.5, -2], np.float32), "w")
    places = numpy_helper.from_array(np.array([1, size + 2]), "w_places")
    sparse = helper.make_sparse_tensor(entries, places, [size, size])
    if made:
        node = helper.make_node("Constant", [], ["w"], sparse_value=sparse)
        nodes = [node, *model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    else:
        model.graph.sparse_initializer.append(sparse)
    result = layoutopt.convert(model, check=True)
    assert result.after.transforms == 0
    assert result.difference == 0


def test_large_weights_are_not_copied() -> None:
    """Where nothing is done to a weight, its data is that of the network that was given."""
    model = network("g (float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }", {"w": (64, 64)})
    plain = simplified(model)
    assert not plain.model.graph.initializer[0].HasField("raw_data")
    assert plain.weights["w"].raw_data == model.graph.initializer[0].raw_data
    again = layoutopt.convert(model).model
    assert (values(again, "w") == values(model, "w")).all()


def test_what_callers_may_replace_stays() -> None:
    """An initialiser that is an input as well is no constant, and stays where nobody reads it."""
    model = network(
        "g (float[2,3] x, float[4,3] w, float[2] u) => (float[2,4] y) "
        "{ t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }",
        {"w": (4, 3), "u": (2,)},
    )
    result = layoutopt.convert(model, check=True)
    assert kinds(result.model) == ["Gemm"]
    assert [x.name for x in result.model.graph.input] == ["x", "w", "u"]
    assert {x.name for x in result.model.graph.initializer} == {"w", "u"}


def test_tensors_with_quantisation_stay() -> None:
    """A tensor that an annotation names keeps its name, and so do scale and zero point."""
    model = network(
        "g (float[2,3] x) => (float[2,3] y) { a = Identity(x) y = Relu(a) }", {"scale": (1,)}
    )
    entry = onnx.TensorAnnotation(tensor_name="a")
    entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    model.graph.quantization_annotation.append(entry)
    new = layoutopt.convert(model, check=True).model
    assert kinds(new) == ["Identity", "Relu"]
    assert [x.name for x in new.graph.initializer] == ["scale"]
    assert list(new.graph.quantization_annotation) == [entry]


def test_old_files_list_their_weights_as_inputs() -> None:
    """A weight that is gone is no input that somebody must give."""
    model = network(
        "g (float[2,3] x, float[4,3] w, float[2] u) => (float[2,4] y) "
        "{ t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }",
        {"w": (4, 3), "u": (2,)},
        ir=3,
    )
    result = layoutopt.convert(model, check=True)
    assert kinds(result.model) == ["MatMul"]
    assert [x.name for x in result.model.graph.input] == ["x"]


def test_dropout_that_trains_stays() -> None:
    """Where Dropout is told to train, it draws: two equal ones are two."""
    text = """g (float[2,3] x) => (float[2,3] y) {
        a = Dropout(x, r, t) b = Dropout(x, r, t) y = Add(a, b) }"""
    for trains, left in ((True, 3), (False, 1)):
        constants = {"r": np.float32(0.5), "t": np.array(trains)}
        assert len(layoutopt.convert(network(text, constants)).model.graph.node) == left


def test_broken_weights_are_told_in_a_line() -> None:
    """Where values do not fill the shape of what is to be computed, the line names the tensor."""
    model = network(
        "g (float[2,50] x) => (float[2,40] y) { t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }"
    )
    model.graph.initializer.append(
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[40, 50], raw_data=b"1234")
    )
    with pytest.raises(InputError, match="'w' has broken data"):
        layoutopt.convert(model)


def test_cycles_are_refused_in_a_line() -> None:
    """Nodes that wait for each other cannot be brought into order."""
    model = network("g (float[2] x) => (float[2] y) { a = Add(x, b) b = Exp(a) y = Relu(b) }")
    for read in (read_model, simplified):
        with pytest.raises(InputError, match="Add 'a': it reads 'b', and nodes there form a cycle"):
            read(model)
