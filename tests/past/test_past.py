"""Bugs of the past: networks that were converted wrong, and where other bugs are tested."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

import layoutopt
from layoutopt.certify.conversion import Asked, certify, check_certificate
from layoutopt.onnx.protobuf import set_items
from layoutopt.onnx.read import read_network
from layoutopt.onnx.running import run
from layoutopt.onnx.transposes import transposes
from tests.onnx.networks import network, random_array

HERE = Path(__file__).parent
ROWS = tomllib.loads((HERE / "networks.toml").read_text())
ELSEWHERE = tomllib.loads((HERE / "elsewhere.toml").read_text())["bug"]


@pytest.mark.parametrize("name", ROWS)
def test_networks_of_the_past(name: str) -> None:
    """It is valid, computes the same, and has as few transforms as are possible."""
    row = ROWS[name]
    model = network(row["text"], row.get("constants"), **row.get("given", {}))
    if "without a shape" in name:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model, **({"check": True} | row.get("asked", {})))
    assert not result.partial
    assert result.notes == ((row["note"],) if "note" in row else ())
    checker.check_model(result.model, full_check=True)
    assert result.after.transforms == row["transforms"]
    assert result.before.transforms == row.get("before", result.before.transforms)
    for value in infer_shapes(result.model).graph.output if "rank" in row else ():
        assert len(value.type.tensor_type.shape.dim) == row["rank"]
    assert transposes(result.model) <= row.get("transposes", row["transforms"])
    made = {name for node in result.model.graph.node for name in node.output}
    held = made | {x.name for x in result.model.graph.initializer}
    assert held.issuperset(x.tensor_name for x in result.model.graph.quantization_annotation)
    if row.get("asked", {}).get("check", True):
        assert result.difference is not None
        assert result.difference <= 1e-5


@pytest.mark.parametrize("bug", ELSEWHERE, ids=lambda bug: bug["broke"][:60])
def test_bugs_elsewhere(bug: dict[str, str]) -> None:
    """The test of a bug is there under the name that its row tells."""
    path, _, name = bug["test"].partition("::")
    assert f"def {name}(" in (HERE.parents[1] / path).read_text()


def test_what_is_empty_at_run_time_is_reshaped_too() -> None:
    """No size is left open beside one that is 0 only then."""
    model = network(
        "g (float[n,1,m] x) => (float[n,m,1] y) { a = Relu(x) y = Transpose<perm=[0,2,1]>(a) }"
    )
    result = layoutopt.convert(model)
    assert result.after.transforms == 0
    assert run(result.model, {"x": np.zeros((0, 1, 3), np.float32)})["y"].shape == (0, 3, 1)


def test_weights_that_are_trained_stay_what_they_are() -> None:
    """Training reads and sets them by their names."""
    model = network(
        """g (float[2,4,6,5] x) => (float[2,3,6,5] y) { t = Transpose<perm=[0,2,3,1]>(x)
        a = MatMul(t, w) y = Transpose<perm=[0,3,1,2]>(a) }""",
        {"w": (4, 3)},
    )
    training = model.training_info.add()
    training.algorithm.node.append(helper.make_node("Add", ["w", "w"], ["new"]))
    training.update_binding.add(key="w", value="new")
    result = layoutopt.convert(model, check=True)
    assert (result.after.transforms, result.partial) == (1, False)
    assert [x for x in result.model.graph.initializer if x.name == "w"] == model.graph.initializer


def test_a_permutation_tells_the_rank_of_an_input() -> None:
    """Its shape is read behind the transpose alone, so what has that shape needs none either."""
    model = network(
        """g (float[] x, float[1] w) => (float[n] y) {
        a = Transpose<perm=[0,2,1]>(x) s = Shape(a) b = Expand(w, s)
        c = Transpose<perm=[0,2,1]>(b) y = Compress(c, k) }""",
        {"k": np.array([True, False, False, True])},
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model)
    assert (result.before.transforms, result.after.transforms) == (2, 0)
    inputs = {"x": np.zeros((2, 1, 3), np.float32), "w": np.array([7], np.float32)}
    assert run(result.model, inputs)["y"].tolist() == run(model, inputs)["y"].tolist() == [7, 7]


def test_a_permutation_in_a_body_tells_the_rank_of_an_input() -> None:
    """The graph around the body knows it, too."""
    model = network(
        """g (float[] x, bool c, float[3,2] u) => (float[3,2] y) {
        t = If(c) <then_branch = a () => (float[2,3] p) { p = Transpose<perm=[1,0]>(x) },
        else_branch = b () => (float[2,3] q) { q = Transpose<perm=[1,0]>(u) }>
        y = Transpose<perm=[1,0]>(t) }"""
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert layoutopt.convert(model).after.transforms == 0


@pytest.mark.parametrize(
    ("op", "operand"),
    [
        ("ExpandDims", np.array(1, np.int32)),
        ("FusedMatMul", (2, 3, 5, 6)),
        ("GridSample", (2, 2, 6, 2)),
        ("GatherND", np.array([[1, 0], [0, 1]])),
        ("MaxpoolWithMask<kernel_shape = [2, 2]>", np.ones((2, 3, 4, 5), np.int32)),
    ],
)
@pytest.mark.parametrize("declared", ["5,4,3,2", "4,4,2,1,3"])
def test_false_shapes_of_ops_of_onnxruntime_give_way(op: str, operand: Any, declared: str) -> None:
    """What reads such a shape gets what onnxruntime gives it."""
    text = f"""g (float[2,3,4,5] x) => (int64[n] y) <float[{declared}] e> {{
    e = com.microsoft.{op}(x, k) y = Shape(e) }}"""
    model = network(text, {"k": operand}, domains=["com.microsoft"])
    inputs = {"x": random_array((2, 3, 4, 5))}
    found = run(layoutopt.convert(model).model, inputs)["y"].tolist()
    assert found == run(model, inputs)["y"].tolist()


def test_names_that_a_body_gives_to_something_of_its_own_are_not_mixed_up() -> None:
    """What is read there by another name is still what it was: -x less relu(x)."""
    model = network(
        """g (bool c, float[2,3] x) => (float[2,3] y) {
        t = Relu(x) h = Relu(x)
        y = If(c) <then_branch = a () => (float[2,3] u) { t = Neg(x) u = Sub(t, h) },
        else_branch = b () => (float[2,3] v) { v = Abs(t) } > }"""
    )
    new = layoutopt.convert(model).model
    inputs = {"c": np.array(True), "x": np.array([[1, 2, 3], [-1, -2, 0]], np.float32)}
    [found] = ReferenceEvaluator(new).run(None, inputs)
    assert found.tolist() == [[-2, -4, -6], [1, 2, 0]]
    assert run(new, inputs)["y"].tolist() == found.tolist()


def test_declared_sizes_of_minus_1_are_open() -> None:
    """Some exporters write them; ONNX's inference ends the process at a slice of them."""
    model = network(
        """g (float[n,3,m] x) => (float[a,3,b] y) {
        t = Transpose<perm=[2,1,0]>(x) s = Slice(t, zero, one) y = Transpose<perm=[2,1,0]>(s) }""",
        {"zero": np.array([0]), "one": np.array([1])},
    )
    for value in (model.graph.input[0], model.graph.output[0]):
        for axis in (0, 2):
            value.type.tensor_type.shape.dim[axis].dim_value = -1
    result = layoutopt.convert(model)
    assert (result.after.transforms, result.notes) == (0, ())
    assert run(result.model, {"x": np.zeros((2, 3, 4), np.float32)})["y"].shape == (2, 3, 1)


def test_annotations_name_what_is_there() -> None:
    """A result in another layout is named as it is now, and a scale is kept as it was."""
    model = network(
        """g (float[1,2,3,4] x) => (float[1,2,2,4] y) {
        t = Transpose<perm=[0,3,1,2]>(x) a = Relu(t) s = Transpose<perm=[0,2,3,1]>(a)
        y = Conv(s, w) }""",
        {"w": [2, 2, 2, 1]},
        annotated={"a": "w"},
    )
    result = layoutopt.convert(model, layout="Conv=NHWC,HWIO", check=True)
    [note] = result.model.graph.quantization_annotation
    assert [n.op_type for n in result.model.graph.node if note.tensor_name in n.output] == ["Relu"]
    assert "w" in {x.name for x in result.model.graph.initializer}


def test_branches_of_other_ranks_stay_unknown() -> None:
    """An old If is loaded only while one rank is not known: then the given network is kept."""
    model = network(
        """g (float[1] x, bool c) => (float[1] y) { y = If(c) <
        then_branch = a () => (float[1] u) { u = Relu(x) },
        else_branch = b () => (float[] v) { k = Constant<value = int64[1] {1}>()
        s = Shape(w) n = Concat<axis=0>(s, rest) r = Reshape(w, n) v = Identity(r) }> }""",
        {"w": (2, 2), "rest": np.array([-1])},
        opset=7,
    )
    inputs = {"c": np.array(True), "x": np.ones(1, np.float32)}
    assert run(layoutopt.convert(model).model, inputs)["y"].tolist() == [1]


@pytest.mark.parametrize("version", [3, 8])
def test_inputs_with_sparse_defaults_stay_as_they_are(version: int) -> None:
    """Their order of axes is not free: before version 4 of the format they are constants."""
    model = network(
        "g (float[1,2,4,5] x, float[3,2,1,1] w) => (float[1,3,4,5] y) { y = Conv(x, w) }"
    )
    values, places = np.arange(1, 6, dtype=np.float32), np.arange(1, 6)
    sparse = (numpy_helper.from_array(values, "w"), numpy_helper.from_array(places))
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(*sparse, [3, 2, 1, 1]))
    model.ir_version = version
    result = layoutopt.convert(model, layout="default=NHWC", free_io=True)
    assert result.conversion.freed == {"x": (0, 2, 3, 1), "y": (0, 2, 3, 1)}
    x = random_array((1, 2, 4, 5))
    before, after = (
        run(model, {"x": x})["y"],
        run(result.model, {"x": x.transpose(0, 2, 3, 1)})["y"],
    )
    np.testing.assert_allclose(after, before.transpose(0, 2, 3, 1), rtol=1e-5)


def test_outputs_without_a_shape_need_none() -> None:
    """The only branch whose shape ONNX knows never runs."""
    model = network(
        """g (float[3,3] x, float[3,3] v) => (float[3,3] y) <bool c = {1}> {
        a = SplitToSequence<axis=1>(x) b = SequenceMap(a) <body = m (float[] p) => (float[] q) {
        q = If(c) <then_branch = t () => (float[3,3] r) { r = com.microsoft.QuickGelu(v) },
        else_branch = e () => (float[2,3] s) { s = Identity(v) }> }>
        y = ConcatFromSequence<axis=1>(b) }""",
        domains=["com.microsoft"],
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model, check=True)
    assert not result.partial
    assert [node.op_type for node in result.model.graph.node].count("SequenceMap") == 1


def test_identities_with_a_shape_are_solved_and_certified(tmp_path: Path) -> None:
    """What `convert` reads, other commands read as well."""
    row = ROWS["an Identity that is given a shape as well"]
    model = network(row["text"], row["constants"])
    found = certify(layoutopt.convert(model), Asked("count,changed,bytes"))
    assert check_certificate(model, found).bound == (0, 0, 0)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    assert read_network(path).notes == (row["note"],)


@pytest.mark.parametrize(
    "text",
    [
        """g (float[1,2,4,2] x, int64[1] w) => (float[2,4,2] y, float[2,2,4,k] z) {
        a = Squeeze(x, w)
        y, p, q, z = Attention<kv_num_heads=2, q_num_heads=2>(a, u, a, "", v, v) }""",
        """g (float[12] x, int64[3] w) => (float[2,3,2] y) {
        a = Reshape(x, w) y = Attention<kv_num_heads=2, q_num_heads=2>(a, a, a) }""",
    ],
)
def test_products_of_attention_are_neither_scalars_nor_empty(text: str) -> None:
    """ONNX infers that they are, where it does not know ranks or features."""
    model = network(text, {"u": (2, 4, 2), "v": (2, 2, 2, 1)}, opset=24)
    assert layoutopt.convert(model).notes == ()


def test_what_has_no_type_does_not_end_the_process() -> None:
    """ONNX's inference asks two ops for the type of their operand, and falls over without one."""
    model = network(
        """g (float[2,3] x) => (float[2,3] y, float[a,b] e, bool[c] r) {
        u = own.Any(x) e = EyeLike<dtype=1>(u) r = RegexFullMatch<pattern="a">(u)
        a = Transpose(x) y = Transpose(a) }""",
        domains=["own"],
        opset=20,
    )
    result = layoutopt.convert(model)
    assert (result.after.transforms, result.notes, result.partial) == (0, (), False)


def test_a_scan_knows_the_ranks_of_what_its_body_gives_back() -> None:
    """The transposes that told one are gone."""
    model = network(
        """g (float[2,2,1] x, float[1,3] w) => (float[3,2,2,1] y) {
        t, y = Scan(w) <num_scan_inputs=1, scan_input_axes=[1], body = s (float[1] v) =>
        (float[] d, float[2,2,1] u) <float[1,2,2] c> {
        a = SplitToSequence<axis=0, keepdims=0>(x) b = ConcatFromSequence<axis=0, new_axis=1>(a)
        c = Transpose<perm=[2,0,1]>(b) d = Transpose<perm=[1,2,0]>(c) u = Identity(d) }> }"""
    )
    [body] = (a.g for a in model.graph.node[0].attribute if a.name == "body")
    body.output[0].type.tensor_type.ClearField("shape")
    inputs = {"x": random_array((2, 2, 1)), "w": random_array((1, 3))}
    result = layoutopt.convert(model)
    assert result.after.transforms == 0
    assert run(result.model, inputs)["y"].tolist() == run(model, inputs)["y"].tolist()


def test_sizes_that_only_defaults_tell_are_open() -> None:
    """ONNX's inference follows them where it is asked to, and a caller may replace them."""
    model = network(
        """g (float[1,3,4,3] x, int64[1] w, float[1] z) => (float[37] y, int64[n] w)
        <int64[1] w = {0}, int64[1] e = {-1}, bool c = {0}> {
        s = Concat<axis=0>(w, e) a = Reshape(x, s) y = If(c) <
        else_branch = p () => (float[36] u) { o = Constant<value_int=0>() u = Gather(a, o) },
        then_branch = q () => (float[1] v) { v = Identity(z) }> }"""
    )
    new = layoutopt.convert(model).model
    assert infer_shapes(new, check_type=True, strict_mode=True, data_prop=True).graph.output


def test_sizes_of_a_resize_that_a_caller_may_replace_are_a_vector() -> None:
    """Runtimes take an input without a shape for none, once they know what rank is resized."""
    model = network(
        """g (int64[] s, float[4,1,2,2] x) => (float[4,2,2,4] y)
        <int64 n = {2}, int64[4] s = {4,2,2,4}> { a = Loop(n, "", x)
        <body = l (int64 i, bool c, float[p,q,r,t] v) => (bool d, float[4,1,2,3] u) {
        e = Transpose<perm=[2,1,3,0]>(v) f = Concat<axis=2>(e, w) d = Identity(c)
        u = Transpose<perm=[3,1,0,2]>(f) }> y = Resize(a, "", "", s) }""",
        {"w": (2, 1, 1, 4)},
        opset=14,
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model, backend="canonical")
    x = random_array((4, 1, 2, 2))
    assert run(result.model, {"x": x})["y"].tolist() == run(model, {"x": x})["y"].tolist()


def test_outputs_of_four_bits_that_are_inputs_are_no_copies() -> None:
    """Runtimes transpose them in no other order, but have no Identity."""
    text = """g (int4[4,3] x) => (int4[4,3] y, int4[4,3] z) {
    a = Transpose(x) y = Transpose(a) z = Transpose(a) }"""
    result = layoutopt.convert(network(text, opset=24, ir=10))
    assert result.after.transforms == 0
    assert [node.op_type for node in result.model.graph.node] == ["Transpose", "Transpose"]


@pytest.mark.parametrize("op", ["SimplifiedLayerNormalization", "LayerNormalization"])
def test_a_normalisation_of_onnxruntime_in_the_domain_of_onnx(op: str) -> None:
    """The networks that its optimiser writes have it, and ONNX (till set 16) knows no such op."""
    model = network(
        f"""g (float[2,3,4] x) => (float[2,3,4] y) {{ a = Transpose<perm=[1,0,2]>(x)
        b = {op}<axis=-1, epsilon=0.01>(a, w)
        c = Relu(b) y = Transpose<perm=[1,0,2]>(c) }}""",
        {"w": (4,)},
        opset=11,
    )
    result = layoutopt.convert(model, check=True)
    assert (result.after.transforms, result.partial) == (0, False)


@pytest.mark.parametrize("told", [0, 2])
def test_operator_sets_told_twice_or_not_at_all(told: int) -> None:
    """Converters of trees write such networks, and an Identity becomes one of two equal results."""
    model = network(
        """g (float[2,3] x) => (float[2,3] y, float[2,3] z)
        { y = ai.onnx.ml.Normalizer(x) z = ai.onnx.ml.Normalizer(x) }""",
        domains=["ai.onnx.ml"],
    )
    standard, other = model.opset_import
    set_items(model.opset_import, [standard] * told + [other])
    result = layoutopt.convert(model, check=True)
    assert (result.notes, result.difference) == ((), 0)
    assert [node.op_type for node in result.model.graph.node] == ["Normalizer", "Identity"]
