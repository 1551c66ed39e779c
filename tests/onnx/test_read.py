"""Networks of ONNX become ops that run in layouts."""

from __future__ import annotations

import pytest
from onnx import TensorProto, defs, helper

import layoutopt
from layoutopt.onnx import attributes
from layoutopt.onnx.source import HELD, read_model
from tests.onnx.networks import cases, kinds, network, read
from tests.support import refused

PARAMETERS = cases("parameters")


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_stand_in_attributes(case: str) -> None:
    """Axes, pads and the like are attributes of ops, whichever way a version has them."""
    row = PARAMETERS[case]
    opset = row.get("opset", 17)
    [op] = read(row["text"], row.get("constants"), opset=opset).graph.ops
    lists = {key: list(x) if isinstance(x, tuple) else x for key, x in op.attributes.items()}
    assert (lists, op.opset) == (row["attributes"], opset)


def test_what_callers_may_replace_is_held() -> None:
    """An initialiser that is an input as well is no constant, unless the file format is old."""
    text = "g (float[2,3] x, float[3] k) => (float[2,3] y) { y = Add(x, k) }"
    new, old = read(text, {"k": (3,)}), read(text, {"k": (3,)}, ir=3)
    assert [op.type for op in new.graph.ops] == [HELD, "Add"]
    assert new.graph.opaque() == []
    assert [op.type for op in old.graph.ops] == ["Add"]
    assert old.graph.tensors["k"].kind == "constant"


def test_sparse_initialisers_are_held() -> None:
    """A sparse initialiser can be read, and must stay as it is."""
    model = network("g (float[2,3] x) => (float[2,3] y) { y = Add(x, k) }")
    data = helper.make_tensor("k", TensorProto.FLOAT, [1], [5.0])
    places = helper.make_tensor("k_places", TensorProto.INT64, [1], [4])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(data, places, [2, 3]))
    source = read_model(model)
    assert [op.type for op in source.graph.ops] == [HELD, "Add"]
    assert source.graph.tensors["k"].shape == (2, 3)


WRONG = {
    "cycle": ("float[3,2] y", "a = Relu(y) y = Neg(a)", ["Relu 'a'", "'y'", "cycle"]),
    "missing": (
        "float[3,2] y",
        "a = Relu(none) y = Neg(a)",
        ["Relu 'a'", "nothing above it makes 'none'"],
    ),
    "no type": ("float[3,2] y", "y = Neg(x)", ["input 'x'", "no type"]),
    "no version": ("float[3,2] y", "y = Neg(x)", ["operator set"]),
    "twice": ("float[3,2] y", "a = Relu(x) a = Neg(a)", ["'a'"]),
    "no output": ("float[3,2] none", "y = Neg(x)", ["no node makes", "'none'"]),
    "no outputs": ("", "y = Neg(x)", ["no outputs"]),
    "no nodes": ("float[3,2] y", "", ["no graph"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_networks_that_are_not_well_formed_are_refused_in_a_line(case: str) -> None:
    """The line says which node and tensor are wrong, and why."""
    outputs, nodes, words = WRONG[case]
    model = network(f"g (float[2,3] x) => ({outputs}) {{ {nodes} }}")
    if case == "no type":
        model.graph.input[0].ClearField("type")
    elif case == "no version":
        del model.opset_import[:]
    with refused(*words):
        read_model(model)


@pytest.mark.parametrize("opset", [6, 99])
def test_other_versions_are_refused(opset: int) -> None:
    """The line says which versions are read."""
    model = network("g (float[2] x) => (float[2] y) { y = Relu(x) }", opset=opset)
    with refused(f"version {opset}; 7 to {defs.onnx_opset_version()}"):
        read_model(model)


@pytest.mark.parametrize("opset", range(7, defs.onnx_opset_version() + 1))
def test_all_versions_that_are_installed_are_read(opset: int) -> None:
    """A plain network of any version, as the onnx package makes them today, loses its pair."""
    text = """g (float[2,3] x) => (float[2,3] y)
        { a = Transpose<perm=[1,0]>(x) b = Relu(a) y = Transpose<perm=[1,0]>(b) }"""
    result = layoutopt.convert(network(text, opset=opset, ir=13), check=True)
    assert (result.after.transforms, result.difference, result.notes) == (0, 0, ())


def test_inputs_may_have_no_shape() -> None:
    """What is computed from one of unknown rank stays as it is, the rest is converted."""
    text = """g (float[2,3] x, float[] s) => (float[2,3] y, float[] z) {
        a = Transpose(x)
        b = Relu(a)
        y = Transpose(b)
        z = Transpose(s) }"""
    assert sorted(kinds(layoutopt.convert(network(text)).model)) == ["Relu", "Transpose"]


def test_ops_of_versions_without_rules_are_opaque(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what a later version of an op does with its axes."""
    monkeypatch.setattr(attributes, "RULES_UP_TO", 13)
    text = """g (float[2,3] x) => (float[2,3] y)
        { a = Transpose<perm=[1,0]>(x) b = %s(a) y = Transpose<perm=[1,0]>(b) }"""
    for call, left in (("Relu", 2), ("Neg", 0)):
        result = layoutopt.convert(network(text % call))
        assert result.after.transforms == left
        assert result.opaque == ({"Relu-14": 1} if left else {})


def test_a_network_is_not_changed_by_reading() -> None:
    """The network that is read is the same afterwards."""
    text = """g (float[1,4,4,3] x, bool c) => (float[a,b,d,e] y) { r = Relu(x) y = If(c) <
        then_branch = first () => (t1) { k = Transpose<perm=[0,3,1,2]>(r) t1 = Relu(k) },
        else_branch = second () => (t2) { t2 = Transpose<perm=[0,3,1,2]>(w) } > }"""
    model = network(text, {"w": (1, 4, 4, 3)})
    before = model.SerializeToString(deterministic=True)
    read_model(model)
    assert model.SerializeToString(deterministic=True) == before
