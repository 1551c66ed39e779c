"""Shapes that files tell, leave open, tell wrong, or that only nodes tell."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from layoutopt.onnx import inference
from layoutopt.onnx.inference import infer_shapes, with_shapes
from layoutopt.onnx.protobuf import load_model, write_proto
from layoutopt.onnx.read import UnwindingModel, read_network, read_onnx
from tests.onnx.networks import graph_of, model, node, save

# Weights: in the network, beside it, and sparse


def test_data_in_other_files_is_not_needed(tmp_path: Path) -> None:
    network = model([node("MatMul", "x w")], {"x": (2, 3)}, constants={"w": np.ones((3, 4))})
    weights = network.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    entry = weights.external_data.add()
    entry.key, entry.value = "location", "missing.bin"
    network.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    assert read_onnx(save(network, tmp_path)).tensor("y").shape == (2, 4)


def test_large_weights_lose_their_data_at_once(tmp_path: Path) -> None:
    """As initialisers and as constant nodes; only their shapes matter."""
    big = np.ones((40, 50), np.float32)
    nodes = [node("Constant", "", "c", value=numpy_helper.from_array(big)), node("Add", "w c")]
    graph = graph_of(tmp_path, nodes, {}, constants={"w": big})
    assert [(s.name, s.shape) for s in graph.sinks()] == [("w", (40, 50)), ("c", (40, 50))]
    assert load_model(tmp_path / "net.onnx").ByteSize() < 1000 < 8 * big.size


def test_sparse_initialisers_are_sinks(tmp_path: Path) -> None:
    network = model([node("MatMul", "x w")], {"x": (2, 3)})
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    places = numpy_helper.from_array(np.array([5]), "w_places")
    network.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3, 4]))
    assert read_onnx(save(network, tmp_path)).tensor("w").shape == (3, 4)


# Shapes that follow from no node: measured, declared, or taken for 1; and nodes out of order


OPSETS = '"" : 17, "com.microsoft" : 1'


def written(text: str, folder: Path) -> Path:
    """Write a network in ONNX's text format."""
    return save(parser.parse_model(f"<ir_version: 8, opset_import: [{OPSETS}]> {text}"), folder)


UNKNOWN = {
    "an If": (
        """g (float[2,3] x, bool c) => (float[a,b] y) { h = If(c) <
        then_branch = one () => (t) { t = Transpose<perm=[1,0]>(x) },
        else_branch = two () => (u) { u = Concat<axis=0>(x, x) } > y = Relu(h) }""",
        "If (1)",
        {(3, 2), (4, 3)},
    ),
    "a Loop": (
        """g (float[2,3] x, int64 n, bool c) => (float[a,b] y) { h, s = Loop(n, c, x) <
        body = one (int64 i, bool d, float[2,3] u) => (bool e, float[2,3] v, float[2,3] w) {
        e = Identity(d) v = Relu(u) w = Relu(u) } > y = Relu(s) }""",
        "Loop (1)",
        {(0, 2, 3), (1, 2, 3)},
    ),
    "a NonMaxSuppression": (
        """g (float[1,4,4] x, float[1,1,4] s) => (int64[a,b] y) {
        n = Constant<value = int64 {9}>() h = NonMaxSuppression(x, s, n) y = Abs(h) }""",
        "NonMaxSuppression (1)",
        {(k, 3) for k in range(5)},
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_shapes_that_only_a_run_can_tell(name: str, tmp_path: Path) -> None:
    """A run tells them, and what follows from them, and a line says from where on."""
    text, origin, shapes = UNKNOWN[name]
    network = read_network(written(text, tmp_path))
    assert network.graph.tensor("y").shape in shapes
    assert any(
        line == f"shapes that are those of one run on random inputs, from these ops on: {origin}"
        for line in network.warnings()
    )


def test_weights_beside_the_network_are_read_for_the_run(tmp_path: Path) -> None:
    """They tell a size, though they are not needed for anything else."""
    nodes = [node("NonZero", "w", "h"), node("Relu", "x", "z"), node("Transpose", "h")]
    network = model(nodes, {"x": (2,)}, ["y", "z"], {"w": np.eye(40, dtype=np.float32)})
    write_proto(network, tmp_path / "net.onnx", {"w"})
    assert read_network(tmp_path / "net.onnx").graph.tensor("y").shape == (40, 2)


def without_a_run(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> UnwindingModel:
    """Read a network where onnxruntime is not installed."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    return read_network(written(text, folder))


def test_sizes_are_taken_for_one_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors of known rank become results of barriers; the line says why there was no run."""
    text = "g (float[2,3] x) => (int64[a,b] y) { h = NonZero(x) y = Transpose<perm=[1,0]>(h) }"
    network = without_a_run(text, tmp_path, monkeypatch)
    assert network.graph.tensor("h").shape == (2, 1)
    assert network.graph.tensor("y").shape == (1, 2)
    [line] = network.warnings()
    assert line.startswith("sizes that nothing tells, taken for 1 (running a network needs onnxr")
    assert line.endswith("): NonZero (1)")


def test_ops_that_sizes_of_one_do_not_fit_become_barriers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view of 1 element cannot have the 12 that its shape says."""
    text = """g (float[2,3] x) => (int64[3,4] y) { s = Constant<value = int64[2] {3,4}>()
        h = NonZero(x) y = Reshape(h, s) }"""
    network = without_a_run(text, tmp_path, monkeypatch)
    assert network.graph.tensor("y").shape == (3, 4)
    assert (
        network.warnings()[-1] == "ops that sizes of 1 do not fit, taken for barriers: Reshape (1)"
    )


def test_inference_leaves_the_versions_of_operator_sets() -> None:
    """It hides a Resize that ONNX misreads, and an EyeLike at which it would end, meanwhile."""
    given = parser.parse_model("""<ir_version: 8, opset_import: ["own" : 1, "" : 17]>
    g (float[1,2,5] x, float[3,3] u) => (float[a,b,c] y, float[d,e] z) {
    s = Constant<value = float[3] {1.0,1.0,1.4}>() y = Resize<mode="nearest">(x, , s)
    k = own.Op(u) z = EyeLike<dtype=1>(k) }""")
    found = with_shapes(given)
    for one in (given, found):
        assert [(x.domain, x.version) for x in one.opset_import] == [("own", 1), ("", 17)]
    assert [dim.dim_value for dim in found.graph.output[0].type.tensor_type.shape.dim] == [1, 2, 7]


@pytest.mark.parametrize("sizes", ["1,4,8,8", "n,4,h,w"])
def test_what_rules_tell_is_followed_in_one_round(
    sizes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of inferences does not grow with that of ops that ONNX does not know."""
    asked = list[None]()

    def counted(model: ModelProto, **options: bool) -> ModelProto:
        asked.append(None)
        return infer_shapes(model, **options)

    monkeypatch.setattr(inference, "infer_shapes", counted)
    layers = " ".join(
        f"q{k} = com.microsoft.QuantizeLinear(x{k}, s, z) "
        f"d{k} = com.microsoft.DequantizeLinear(q{k}, s, z) "
        f"x{k + 1} = Conv<pads=[1,1,1,1]>(d{k}, w)"
        for k in range(6)
    )
    given = parser.parse_model(f"""<ir_version: 8, opset_import: [{OPSETS}]>
    g (float[{sizes}] x0, float[4,4,3,3] w) => (float[a,b,c,d] y) {{
    s = Constant<value = float {{0.1}}>() z = Constant<value = int16 {{0}}>() {layers}
    y = Relu(x6) }}""")
    found = with_shapes(given)
    assert len(asked) <= 3
    assert found.graph.output[0].type.tensor_type.shape.dim[1].dim_value == 4
