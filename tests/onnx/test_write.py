"""Networks of ONNX are written from conversion graphs, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import layoutopt
from layoutopt.base.result import Status
from layoutopt.conversion.backends import BACKENDS
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import TransformedConstant
from layoutopt.conversion.rules.op import Op, parse_operands
from layoutopt.conversion.verify import verify
from layoutopt.onnx.running import Outputs
from layoutopt.onnx.source import read_model
from layoutopt.onnx.weights import transform_constant
from layoutopt.onnx.write import write_model
from tests.onnx.exports import random_export
from tests.onnx.networks import conversion, edited, kinds, network, read, values
from tests.support import refused


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_converted_is_written_as_it_was(seed: int) -> None:
    """With its own graph a network comes out byte by byte."""
    model = random_export(seed, 40)
    source = read_model(model)
    assert write_model(source, conversion(source.graph)) == model


def test_all_else_that_a_network_holds_is_kept() -> None:
    """Texts, metadata, other domains, functions, and types of tensors are there afterwards."""
    text = "g (float[N,3] x) => (float[N,3] y) { a = my.ops.Twist(x) b = Relu(a) y = Exp(b) }"
    model = network(text, {"unread": (2,)}, domains=["my.ops"])
    model.producer_name, model.doc_string, model.model_version = "maker", "about", 7
    model.metadata_props.add(key="author", value="me")
    model.graph.doc_string = "about the graph"
    model.graph.node[1].doc_string, model.graph.node[1].name = "about the node", "node b"
    model.graph.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, ["N", 3]))
    model.functions.append(
        helper.make_function(
            "my.ops",
            "Twist",
            ["x"],
            ["y"],
            [helper.make_node("Neg", ["x"], ["y"])],
            [helper.make_opsetid("", 17)],
        )
    )
    source = read_model(model)
    assert write_model(source, conversion(source.graph)) == model


CHANGED: dict[str, tuple[int, str, dict[str, Any], dict[str, Any], Any]] = {
    "attribute before 18": (17, "ReduceMean<axes=[1]>(x)", {}, {"axes": (2,)}, [2]),
    "input since 18": (18, "ReduceMean(x, a)", {"a": np.array([1])}, {"axes": (2,)}, [2]),
    "scalar stays scalar": (17, "CumSum(x, a)", {"a": np.array(1, np.int32)}, {"axis": 2}, 2),
    "one number stays of one axis": (17, "CumSum(x, a)", {"a": np.array([1])}, {"axis": 2}, [2]),
    "axes like starts": (
        17,
        "Slice(x, s, e)",
        {"s": np.array([0], np.int32), "e": np.array([1], np.int32)},
        {"axes": (2,)},
        [2],
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_parameters_are_written_as_their_version_has_them(case: str) -> None:
    """As an attribute, or as an input of the type and rank that the op takes."""
    opset, call, constants, change, expected = CHANGED[case]
    text = f"g (float[2,3,4] x) => (float[a,b,c] y) {{ y = {call} }}"
    source = read(text, constants, opset=opset)
    op = source.graph.ops[0]
    changes = {op.name: {"attributes": {**op.attributes, **change}, "output_shapes": (None,)}}
    new = write_model(source, conversion(edited(source, changes)))
    [node], [name] = new.graph.node, change
    found = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if name not in found:
        array = values(new, node.input[-1])
        assert array.dtype == next((c.dtype for c in constants.values()), array.dtype)
        found[name] = array.tolist()
    assert found[name] == expected
    onnx.checker.check_model(new)


@pytest.mark.parametrize("kind", ["node", "fill"])
def test_constants_of_nodes_are_relaid(kind: str) -> None:
    """A constant node becomes an initialiser; a node that fills a shape fills another one."""
    maker = {
        "node": "k = Constant<value = float[2,3,1,1] {1,2,3,4,5,6}>()",
        "fill": "k = ConstantOfShape<value = float[1] {2.5}>(s)",
    }
    model = network(
        f"g (float[1,3,4,4] x) => (float[a,b,c,d] y) {{ {maker[kind]} y = Add(x, k) }}",
        {"s": np.array([2, 3, 1, 1])} if kind == "fill" else {},
    )
    model.graph.node[1].name = "add"
    source = read_model(model)
    graph = ConversionGraph("g", 17)
    graph.input("x", (1, 3, 4, 4))
    graph.constant("k_last", (2, 1, 1, 3))
    graph.op("Transpose", ["x"], {"perm": (0, 2, 3, 1)}, name="x_last")
    graph.add(Op("Add", {}, ("x_last", "k_last"), ("a_last",), name="add"))
    graph.op("Transpose", ["a_last"], {"perm": (0, 3, 1, 2)}, name="y")
    graph.output("y")
    relaid = {"k_last": TransformedConstant("k", (0, 2, 3, 1), (2, 3, 1, 1))}
    new = write_model(source, conversion(graph, relaid))
    assert ("ConstantOfShape" in kinds(new)) is (kind == "fill")
    assert "k" not in {x.name for x in new.graph.initializer}
    assert Outputs(model).difference(new) == 0


def _sparse(places: list[list[int]] | list[int]) -> onnx.SparseTensorProto:
    """Return [[0, 2, 0], [0, 0, 3]] by the places of 2 and 3."""
    found = numpy_helper.from_array(np.array(places, np.int64))
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([2, 3], np.float32)), found, [2, 3]
    )


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("float", {"value_floats": [1.5, 2, 3, 4, 5, 6]}),
        ("int64", {"value_ints": [1, 2, 3, 4, 5, 6]}),
        ("float", {"sparse_value": _sparse([1, 5])}),
        ("float", {"sparse_value": _sparse([[0, 1], [1, 2]])}),
    ],
)
def test_constants_are_relaid_however_they_are_written(element: str, value: dict[str, Any]) -> None:
    """A list in the order of a Flatten, and a matrix of which only some elements are written."""
    rank = 2 if "sparse_value" in value else 1
    middle = "a = Add(t, k)" if rank == 2 else "f = Reshape(t, n) b = Add(f, k) a = Reshape(b, m)"
    model = network(
        f"g ({element}[3,2] x) => ({element}[3,2] y) {{"
        f"t = Transpose<perm=[1,0]>(x) {middle} y = Transpose<perm=[1,0]>(a) }}",
        {} if rank == 2 else {"n": np.array([6]), "m": np.array([2, 3])},
    )
    model.graph.node.insert(0, helper.make_node("Constant", [], ["k"], **value))
    new = layoutopt.convert(model).model
    assert "Transpose" not in kinds(new)
    assert "Constant" not in kinds(new)
    assert Outputs(model).difference(new) == 0


def test_what_is_told_of_a_weight_moves_with_it() -> None:
    """Texts and metadata stay; how devices share it is not told of its transpose."""
    text = """g (float[2,3,4] x) => (float[2,3,4] y) { a = Transpose<perm=[0,2,1]>(x)
    b = Add(a, w) y = Transpose<perm=[0,2,1]>(b) }"""
    model = network(text, {"w": (4, 3)}, opset=21, ir=11)
    weight = model.graph.initializer[0]
    weight.doc_string = "about the weight"
    weight.metadata_props.add(key="author", value="me")
    devices = model.graph.node[1].device_configurations.add(configuration_id="two")
    devices.sharding_spec.add(tensor_name="w", device=[0, 1])
    graph = layoutopt.convert(model).model.graph
    [new], [node] = graph.initializer, graph.node
    assert (new.doc_string, new.metadata_props) == (weight.doc_string, weight.metadata_props)
    assert [list(each.sharding_spec) for each in node.device_configurations] == [[]]


def test_a_constant_whose_bytes_are_not_there_is_refused() -> None:
    """An initialiser with fewer bytes than elements cannot be re-laid, and is named."""
    tensor = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[2, 2], raw_data=b"123")
    with refused("constant 'k' cannot be re-laid ("):
        transform_constant(tensor, TransformedConstant("k", (1, 0), (2, 2)), "k_turned")


def test_freed_inputs_and_outputs_tell_their_new_shapes() -> None:
    """Only what was freed is declared in another shape; names stay."""
    model = network("g (float[N,3,4,5] x) => (float[N,3,4,5] y) { y = Relu(x) }")
    source = read_model(model)
    name = source.graph.ops[0].name
    graph = ConversionGraph("g", 17)
    graph.input("x", ("N", 4, 5, 3))
    graph.add(Op("Relu", {}, ("x",), ("y",), name=name))
    graph.output("y")
    order = (0, 2, 3, 1)
    freed = {"x": order, "y": order}
    new = write_model(source, conversion(graph, freed=freed))
    for value in (new.graph.input[0], new.graph.output[0]):
        dims = value.type.tensor_type.shape.dim
        assert [d.dim_param or d.dim_value for d in dims] == ["N", 4, 5, 3]
    assert Outputs(model).difference(new, freed) == 0


def test_freed_axes_keep_their_meanings_through_several_conversions() -> None:
    """Denotations move with their axes; how an output is permuted is told of the first network."""
    text = "g (float[2,3,4] x) => (float[4,2,3] y) { a = Relu(x) y = Transpose<perm=[2,0,1]>(a) }"
    model = network(text)
    for dim, meaning in zip(model.graph.output[0].type.tensor_type.shape.dim, "CNH", strict=True):
        dim.denotation = meaning
    for _ in range(2):
        model = layoutopt.convert(model, free_io=True).model
        dims = model.graph.output[0].type.tensor_type.shape.dim
        assert [(dim.dim_value, dim.denotation) for dim in dims] == [(2, "N"), (3, "H"), (4, "C")]
        told = {entry.key: entry.value for entry in model.metadata_props}
        assert told["layoutopt.freed"] == '{"y": [1, 2, 0]}'
    for wrong in ("{", "[1]", '{"y": [2, null, 0]}', '{"y": [0, 0, 1], "z": [9]}'):
        model.metadata_props[-1].value = wrong
        assert model.metadata_props[-1].key == "layoutopt.freed"
        again = layoutopt.convert(model).model
        assert again.metadata_props[-1].value == "{}"


def test_nodes_of_other_types_keep_their_texts() -> None:
    """A pool that runs with channels last is a mean over axes."""
    model = network("""g (float[2,4,5,3] x) => (float[a,b,c,d] y) {
        t = Transpose<perm=[0,3,1,2]>(x) p = GlobalAveragePool(t)
        y = Transpose<perm=[0,2,3,1]>(p) }""")
    model.graph.node[1].doc_string = "pool"
    model.graph.node[1].metadata_props.add(key="from", value="me")
    [node] = layoutopt.convert(model).model.graph.node
    assert (node.op_type, node.doc_string) == ("ReduceMean", "pool")
    assert [(entry.key, entry.value) for entry in node.metadata_props] == [("from", "me")]


CONV = """g (float[1,4,6,6] x) => (float[a,b,c,d] y) {
    y = Conv<strides=[2,1], pads=[1,0,1,0]>(x, w%s) }"""


@pytest.mark.parametrize("bias", [False, True])
def test_ops_in_other_layouts_are_calls_of_functions(bias: bool) -> None:
    """The node names the layout, the network holds its function, and still computes the same."""
    constants = {"w": (8, 4, 3, 3)} | ({"b": (8,)} if bias else {})
    model = network(CONV % (", b" if bias else ""), constants)
    source = read_model(model)
    [op] = source.graph.ops
    graph = ConversionGraph("g", 17)
    graph.input("x", (1, 4, 6, 6))
    graph.constant("w_last", (3, 3, 4, 8))
    for name in constants.keys() - {"w"}:
        graph.constant(name, (8,))
    graph.op("Transpose", ["x"], {"perm": (0, 2, 3, 1)}, name="x_last")
    graph.add(
        Op(
            "Conv",
            op.attributes,
            ("x_last", "w_last", *op.inputs[2:]),
            ("y_last",),
            output_shapes=((1, 3, 4, 8),),
            name=op.name,
            layouts=parse_operands("NHWC,HWIO"),
        )
    )
    graph.op("Transpose", ["y_last"], {"perm": (0, 3, 1, 2)}, name="y")
    graph.output("y")
    relaid = {"w_last": TransformedConstant("w", (2, 3, 1, 0), (8, 4, 3, 3))}
    new = write_model(source, conversion(graph, relaid))
    assert kinds(new) == ["Transpose", "layoutopt.nhwc::Conv", "Transpose"]
    assert new.graph.node[1].metadata_props[0].value == "NHWC,HWIO->NHWC"
    onnx.checker.check_model(new, full_check=True)
    assert Outputs(model).difference(new) == 0
    again = read_model(new)
    assert again.graph.opaque() == []
    assert [str(o.layouts) for o in again.graph.ops if o.type == "Conv"] == ["NHWC,HWIO->NHWC"]
    assert write_model(again, conversion(again.graph)) == new


AGAIN: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {
    "ops of which ONNX infers no shape": (
        """g (float[2,4,9,9] x) => (float[2,4,9,9] y) {
        a = GroupNormalization<num_groups=2>(x, s, s) b = Relu(a)
        y = GroupNormalization<num_groups=2>(b, s, s) }""",
        {"s": (4,)},
        {"backend": "nhwc"},
        21,
    ),
    "blocks in old networks, in bodies": (
        """g (float[1,16,4,4] x, bool c) => (float[1,16,4,4] y) { y = If(c) <
        then_branch = t () => (float[1,16,4,4] u) { u = MaxPool<kernel_shape=[1,1]>(x) },
        else_branch = e () => (float[1,16,4,4] v) { q = Conv(x, w) v = Relu(q) }> }""",
        {"w": (16, 16, 1, 1)},
        {"backend": "blocked"},
        8,
    ),
    "one block of an op of another domain": (
        """g (uint8[1,8,4,4] x) => (uint8[1,8,4,4] y) {
        p = com.microsoft.QLinearAveragePool<kernel_shape=[1,1]>(x, s, z, s, z)
        y = com.microsoft.QLinearAveragePool<kernel_shape=[1,1]>(p, s, z, s, z) }""",
        {"s": {"float32": 0.5}, "z": {"uint8": 3}},
        {"layout": "com.microsoft::QLinearAveragePool=NCHW8c"},
        13,
    ),
    "padded data with channels last": (
        "g (float[1,3,4,4] x) => (float[1,8,4,4] y) { y = Conv(x, w) }",
        {"w": (8, 3, 1, 1)},
        {"layout": "Conv=NHWC8c", "padding": True},
        17,
    ),
    "padded biases and scales": (
        """g (float[1,3,4,4] x) => (float[1,6,4,4] y) {
        c = Conv(x, w, b) y = BatchNormalization(c, b, b, b, b) }""",
        {"w": (6, 3, 1, 1), "b": {"float32": 2.0, "shape": [6]}},
        {"layout": "default=NCHW8c", "padding": True},
        17,
    ),
}
"""Networks, their constants, how they are converted at first, and their version."""


@pytest.mark.parametrize("case", AGAIN)
def test_written_layouts_are_read_verified_and_converted_back(case: str) -> None:
    """Shapes in other layouts are known, so that nothing is left in them for another backend."""
    text, constants, asked, opset = AGAIN[case]
    ir = 10 if opset > 20 else 8
    given = network(text, constants, opset=opset, ir=ir, domains=["com.microsoft"])
    first = layoutopt.convert(given, **asked)
    if "backend" in asked:
        required = BACKENDS[asked["backend"]]
    else:
        required = parse_desired(asked["layout"], asked.get("padding", False))
    assert (first.notes, verify(read_model(first.model).graph, required)) == ((), [])
    again = layoutopt.convert(first.model, backend="nchw", check=True)
    assert (again.notes, again.objective[0], again.status) == ((), 0, Status.OPTIMAL)
    assert not again.model.functions
    assert not any(node.metadata_props for node in again.model.graph.node)
    assert verify(read_model(again.model).graph, BACKENDS["nchw"]) == []


def test_layouts_that_are_onnxs_own_need_no_function() -> None:
    """An op that is written for NCHW and OIHW is the op of ONNX."""
    source = read(CONV % "", {"w": (8, 4, 3, 3)})
    [op] = source.graph.ops
    graph = edited(source, {op.name: {"layouts": parse_operands("NCHW,OIHW")}})
    new = write_model(source, conversion(graph))
    assert kinds(new) == ["Conv"]
    assert not new.functions


def test_old_files_list_no_initialisers_as_inputs_any_more() -> None:
    """Before version 4 of the format they had to; new ones would have to be listed, too."""
    text = "g (float[2,3] x, float[3] k) => (float[2,3] y) { y = Add(x, k) }"
    model = network(text, {"k": (3,)}, ir=3)
    source = read_model(model)
    new = write_model(source, conversion(source.graph))
    assert new.ir_version == 4
    assert [value.name for value in new.graph.input] == ["x"]
    onnx.checker.check_model(new)


def test_two_functions_of_one_name_are_told_apart() -> None:
    """Convolutions with and without a bias need two functions; equal ones share theirs."""
    model = network(
        "g (float[1,4,6,6] x) => (float[a,b,c,d] y) {"
        "p = Conv(x, w) q = Conv(p, w) y = Conv(q, w, k) }",
        {"w": (4, 4, 1, 1), "k": (4,)},
    )
    source = read_model(model)
    layouts = parse_operands("NCHW,HWIO->NCHW")
    graph = ConversionGraph("g", 17)
    graph.input("x", (1, 4, 6, 6))
    graph.constant("w_last", (1, 1, 4, 4))
    graph.constant("k", (4,))
    for op in source.graph.ops:
        inputs = (op.inputs[0], "w_last", *op.inputs[2:])
        graph.add(Op("Conv", {}, inputs, op.outputs, (), op.output_shapes, op.name, 17, layouts))
    graph.output("y")
    new = write_model(
        source, conversion(graph, {"w_last": TransformedConstant("w", (2, 3, 1, 0), (4, 4, 1, 1))})
    )
    calls = ["layoutopt.nchw::Conv", "layoutopt.nchw::Conv", "layoutopt.nchw::Conv_2"]
    assert kinds(new) == calls
    assert [f.name for f in new.functions] == ["Conv", "Conv_2"]
    assert Outputs(model).difference(new) == 0


def test_new_names_are_nobodys() -> None:
    """What a conversion calls its tensors may be the name of a tensor inside a node."""
    model = network(
        """g (float[2,3] x, bool c) => (float[3,2] y) {
        r = Relu(x)
        y = If(c) < then_branch = one () => (x_to_10) { x_to_10 = Transpose<perm=[1,0]>(r) },
                    else_branch = two () => (t) { t = Transpose<perm=[1,0]>(r) } > }"""
    )
    result = layoutopt.convert(model, check=True)
    assert (result.before.transforms, result.after.transforms) == (2, 1)
    assert result.model.graph.node[0].output[0] != "x_to_10"
    onnx.checker.check_model(result.model, full_check=True)
    assert result.difference == 0


def test_new_ops_and_relaid_constants_are_written() -> None:
    """A hand-made conversion: transposes and a free reshape go in, a shared constant goes once."""
    model = network(
        "g (float[1,3,4,4] x) => (float[1,4,4,3] y) {"
        "a = Mul(x, k) b = Add(a, k) y = Transpose<perm=[0,2,3,1]>(b) }",
        {"k": (3, 4, 1)},
    )
    for node, name in zip(model.graph.node, ("mul", "add", "back"), strict=True):
        node.name = name
    gone = helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 3, 4, 4])
    model.graph.value_info.append(gone)
    source = read_model(model)
    graph = ConversionGraph("g", 17)
    graph.input("x", (1, 3, 4, 4))
    graph.constant("k_last", (4, 1, 3))
    graph.op("Transpose", ["x"], {"perm": (0, 2, 3, 1)}, name="x_last")
    graph.add(Op("Mul", {}, ("x_last", "k_last"), ("a_last",), name="mul"))
    graph.add(Op("Add", {}, ("a_last", "k_last"), ("b_last",), name="add"))
    graph.op("Reshape", ["b_last"], {"shape": (1, 4, 4, 3)}, name="y")
    graph.output("y")
    relaid = {"k_last": TransformedConstant("k", (1, -1, 0), (3, 4))}
    new = write_model(source, conversion(graph, relaid))
    assert kinds(new) == ["Transpose", "Mul", "Add", "Reshape"]
    assert not new.graph.value_info
    assert [x.name for x in new.graph.initializer] == ["k_last", "y_shape"]
    assert np.array_equal(values(new, "k_last"), values(model, "k").transpose(1, 2, 0))
    onnx.checker.check_model(new, full_check=True)
    assert Outputs(model).difference(new) == 0


def test_results_of_other_domains_tell_their_types_in_other_layouts() -> None:
    """A name of the network may go to a result whose type ONNX cannot infer, once rewritten."""
    text = """g (float[2,2,1,1] w, float[4,2,2,2] x) => (float[8,2,2] y)
        <int64[3] s = {8,2,2}, float[4,2,2,2] c> {
        c = com.microsoft.FusedConv(x, w) t = Transpose<perm=[0,2,3,1]>(c)
        u = Relu(t) y = Reshape(u, s) }"""
    given = network(text, opset=7, domains=["com.microsoft"])
    result = layoutopt.convert(given, backend="canonical", check=True)
    assert (result.notes, result.after.transforms) == ((), 1)
