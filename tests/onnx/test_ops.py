"""Ops of networks as ops of graphs: views, barriers, products, elementwise ops, and their pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.registry import OPERATORS, type_facts
from layoutopt.onnx.read import read_attractions, read_network, read_onnx
from tests.onnx.networks import graph_of, model, node, pairs, passed_on, save, types

# Views against the truth: elements of outputs are the input elements that the graph names


Case = tuple[str, Sequence[NodeProto], Mapping[str, Sequence[int]], Mapping[str, Any], int]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


END, START = 2**63 - 1, -(2**63)

CASES: list[Case] = [
    ("transpose", [node("Transpose", "x", perm=[2, 0, 1])], {"x": (2, 3, 4)}, {}, 17),
    ("transpose reversed", [node("Transpose", "x")], {"x": (2, 3, 4)}, {}, 17),
    ("reshape 0 and -1", [node("Reshape", "x s")], {"x": (2, 3, 4)}, {"s": ints(0, -1, 2)}, 17),
    ("reshape old", [node("Reshape", "x s")], {"x": (2, 6)}, {"s": ints(-1, 4)}, 6),
    ("reshape allowzero", [node("Reshape", "x s", allowzero=1)], {"x": (0, 3)},
     {"s": ints(3, 0)}, 17),
    ("flatten", [node("Flatten", "x", axis=2)], {"x": (2, 3, 4, 5)}, {}, 17),
    ("flatten all", [node("Flatten", "x", axis=0)], {"x": (2, 3)}, {}, 17),
    ("flatten negative", [node("Flatten", "x", axis=-1)], {"x": (2, 3, 4)}, {}, 17),
    ("squeeze", [node("Squeeze", "x")], {"x": (1, 3, 1)}, {}, 17),
    ("squeeze attribute", [node("Squeeze", "x", axes=[0])], {"x": (1, 3, 1)}, {}, 9),
    ("squeeze operand", [node("Squeeze", "x a")], {"x": (1, 3, 1)}, {"a": ints(-1)}, 17),
    ("unsqueeze attribute", [node("Unsqueeze", "x", axes=[0, 2])], {"x": (3, 4)}, {}, 9),
    ("unsqueeze operand", [node("Unsqueeze", "x a")], {"x": (3, 4)}, {"a": ints(-1, 0)}, 17),
    ("slice attributes", [node("Slice", "x", starts=[1, -3], ends=[3, -1], axes=[0, 1])],
     {"x": (4, 5)}, {}, 9),
    ("slice attributes, no axes", [node("Slice", "x", starts=[1], ends=[1000])],
     {"x": (4, 5)}, {}, 6),
    ("slice operands", [node("Slice", "x s e a t")], {"x": (7, 9)},
     {"s": ints(1, 8), "e": ints(6, 0), "a": ints(0, -1), "t": ints(2, -3)}, 17),
    ("slice backwards to the start", [node("Slice", "x s e a t")], {"x": (7,)},
     {"s": ints(END), "e": ints(START), "a": ints(0), "t": ints(-2)}, 17),
    ("slice backwards within", [node("Slice", "x s e - t")], {"x": (9,)},
     {"s": ints(-2), "e": ints(-8), "t": ints(-4)}, 17),
    ("slice of nothing", [node("Slice", "x s e")], {"x": (4, 3)},
     {"s": ints(3), "e": ints(1)}, 17),
    ("split alike", [node("Split", "x", "y z", axis=-1)], {"x": (2, 6)}, {}, 9),
    ("split attribute", [node("Split", "x", "y z", axis=1, split=[1, 5])], {"x": (2, 6)}, {}, 9),
    ("split operand", [node("Split", "x s", "y z")], {"x": (5, 2)}, {"s": ints(2, 3)}, 13),
    ("split uneven", [node("Split", "x", "y z w", num_outputs=3)], {"x": (7, 2)}, {}, 18),
    ("concat", [node("Concat", "x1 x2 x1", axis=-2)], {"x1": (1, 2, 3), "x2": (1, 4, 3)}, {}, 17),
    ("expand", [node("Expand", "x s")], {"x": (3, 1)}, {"s": ints(2, 1, 4)}, 17),
    ("identity", [node("Identity", "x")], {"x": (2, 3)}, {}, 17),
    ("dropout", [node("Dropout", "x", ratio=0.5)], {"x": (2, 3)}, {}, 9),
    ("dropout operands", [node("Dropout", "x r t")], {"x": (2, 3)},
     {"r": np.float32(0.5), "t": np.array(False)}, 17),
    ("cast", [node("Cast", "x", to=7)], {"x": (2, 3)}, {}, 17),
    ("cast like", [node("CastLike", "x t")], {"x": (2, 3)}, {"t": ints(1)}, 17),
    ("tile", [node("Tile", "x r")], {"x": (2, 3)}, {"r": ints(3, 2)}, 17),
    ("depth to space", [node("DepthToSpace", "x", blocksize=2)], {"x": (2, 12, 2, 3)}, {}, 17),
    ("depth to space CRD", [node("DepthToSpace", "x", blocksize=2, mode="CRD")],
     {"x": (2, 12, 2, 3)}, {}, 17),
    ("space to depth", [node("SpaceToDepth", "x", blocksize=2)], {"x": (2, 3, 4, 6)}, {}, 17),
    ("space to depth CRD", [node("SpaceToDepth", "x", blocksize=2, mode="CRD")],
     {"x": (2, 3, 4, 6)}, {}, 28),
    ("channel shuffle", [node("Reshape", "x s", "a"), node("Transpose", "a", "b",
                         perm=[0, 2, 1, 3]), node("Flatten", "b", "y", axis=1)],
     {"x": (1, 6, 5)}, {"s": ints(1, 2, 3, 5)}, 17),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_elements_come_from_where_the_graph_says(case: Case, tmp_path: Path) -> None:
    """Every input element is a different number, so equal numbers are the same element."""
    _, nodes, inputs, constants, opset = case
    if opset > defs.onnx_opset_version():
        pytest.skip("the installed onnx is older than the operator set")
    outputs = nodes[-1].output
    network = model(nodes, inputs, outputs, constants, opset)
    data, start = {}, 0
    for name, shape in inputs.items():
        size = int(np.prod(shape))
        data[name] = np.arange(start, start + size, dtype=np.float32).reshape(shape)
        start += size
    graph = read_onnx(save(network, tmp_path))
    said = passed_on(graph, data)
    for name, truth in zip(outputs, ReferenceEvaluator(network).run(None, data), strict=True):
        assert graph.tensor(name).shape == truth.shape
        np.testing.assert_array_equal(said[name], truth.reshape(-1))
    assert {sink.name for sink in graph.sinks()} == set(inputs)  # structure makes no tensors


def test_a_mask_is_a_barrier(tmp_path: Path) -> None:
    """Dropout's data passes on; its mask is made anew, of the same shape."""
    nodes = [node("Dropout", "x", "a m"), node("Cast", "m", "c", to=1), node("Mul", "a c")]
    graph = read_onnx(save(model(nodes, {"x": (2, 3)}), tmp_path))
    assert [t.name for t in graph.barriers()] == ["m"]
    assert passed_on(graph, {"x": np.arange(6)})["y"].tolist() == list(range(6))


def test_helper_names_avoid_those_of_the_network(tmp_path: Path) -> None:
    """``y.slice`` is a tensor of the network here, so the helper is numbered."""
    nodes = [node("Relu", "x", "y.slice"),
             node("Slice", "y.slice s e a t")]  # fmt: skip
    constants = {"s": ints(5), "e": ints(0), "a": ints(0), "t": ints(-1)}
    graph = read_onnx(save(model(nodes, {"x": (6,)}, constants=constants), tmp_path))
    assert [op.id for op in graph.ops] == ["x", "x.linear", "y.slice", "y.slice2", "y"]


# Barriers, their parameters, and tensors that are made from nothing


def test_batch_normalisation_ties_each_parameter_to_the_data(tmp_path: Path) -> None:
    """A reduce of the output would wait for the parameter itself; one of the data does not."""
    inputs = {"x": (2, 3, 4, 4)} | dict.fromkeys("sbmv", (3,))
    graph = graph_of(tmp_path, [node("BatchNormalization", "x s b m v")], inputs)
    assert types(graph)["y"] == "barrier"
    assert pairs(graph) == [
        (f"y.parameter{i}.reduce", f"y.parameter{i}.aligned", 20) for i in range(1, 5)
    ]
    assert graph.tensor("y.parameter1.aligned").shape == (3, 1, 1)
    reduce = graph.producers[graph.tensor("y.parameter1.reduce").index]
    assert graph.op_inputs[reduce] == (graph.tensor("x").index,)


def test_channels_that_come_last_need_no_alignment(tmp_path: Path) -> None:
    inputs = {"x": (2, 3)} | dict.fromkeys("sbmv", (3,))
    graph = graph_of(tmp_path, [node("BatchNormalization", "x s b m v")], inputs)
    assert pairs(graph)[0] == ("y.parameter1.reduce", "s", 20)


@pytest.mark.parametrize(
    ("nodes", "constants", "shape"),
    [
        ([node("MaxPool", "x", kernel_shape=[2, 2])], {}, (1, 4, 3, 3)),
        ([node("GlobalAveragePool", "x")], {}, (1, 4, 1, 1)),
        ([node("LRN", "x", size=3)], {}, (1, 4, 4, 4)),
        ([node("Softmax", "x", axis=1)], {}, (1, 4, 4, 4)),
        ([node("ReduceMean", "x", axes=[2, 3], keepdims=0)], {}, (1, 4)),
        ([node("ReduceSum", "x a", keepdims=0)], {"a": np.array([-1])}, (1, 4, 4)),
        ([node("Pad", "x p")], {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}, (1, 4, 6, 6)),
        ([node("Resize", "x - - s", mode="nearest")], {"s": np.array([1, 4, 8, 8])},
         (1, 4, 8, 8)),
        ([node("Upsample", "x s", mode="nearest")],
         {"s": np.array([1, 1, 2, 2], np.float32)}, (1, 4, 8, 8)),
        ([node("TopK", "x k", "y i", axis=1)], {"k": np.array([2])}, (1, 2, 4, 4)),
    ],
    ids=lambda v: v[0].op_type if isinstance(v, list) else "",
)  # fmt: skip
def test_others_are_barriers_of_their_data_alone(
    nodes: list, constants: dict, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Sizes, axes and paddings are no tensors."""
    opset = 9 if nodes[0].op_type == "Upsample" else 17 if "axes" in str(nodes) else 13
    graph = graph_of(tmp_path, nodes, {"x": (1, 4, 4, 4)}, constants=constants, opset=opset)
    assert types(graph) == {"x": "sink", "y": "barrier"}
    assert graph.tensor("y").shape == shape


def test_unknown_ops_are_barriers_and_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [
        helper.make_node("Fancy", ["x", "p"], ["h"], domain="my.ops"),
        helper.make_node("Fancy", ["h"], ["y"], domain="my.ops"),
    ]
    network = model(nodes, {"x": (2, 3), "p": (3,)})
    for name in ("h", "y"):
        network.graph.value_info.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3))
        )
    path = save(network, tmp_path)
    found = read_network(path)
    assert found.unknown_ops == {"my.ops::Fancy": 2}
    assert types(found.graph)["y"] == types(found.graph)["h"] == "barrier"
    assert pairs(found.graph) == [("h.parameter1.reduce", "p", 20)]
    assert not caplog.records
    read_onnx(path)
    text = f"{path}: unknown op types, taken for barriers: my.ops::Fancy (2)"
    assert [record.getMessage() for record in caplog.records] == [text]


# Convolutions and matrix products: targets, biases and chains


@pytest.mark.parametrize("shape", [(2, 4), (2, 1), (1, 4), (1,), ()])
def test_gemm_addend_broadcasts(shape: tuple[int, ...], tmp_path: Path) -> None:
    """An addend of the output's shape is tied to the output itself."""
    inputs = {"a": (3, 2), "b": (3, 4), "c": shape}
    graph = graph_of(tmp_path, [node("Gemm", "a b c", transA=1)], inputs)
    expected = ("y" if shape == (2, 4) else "y.bias.reduce", "c", 50)
    assert pairs(graph)[-1] == expected
    assert graph.tensor("y.lhs.transposed").shape == (2, 3)


def test_chain_of_square_products(tmp_path: Path) -> None:
    """The first output is fixed, so only the pairs of sinks can be won or lost."""
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w", "y")]
    graph = graph_of(tmp_path, nodes, {"x": (2, 2), "w": (2, 2)})
    assert [p for p in pairs(graph) if "h" in p[:2]] == [
        ("x", "h", 50),
        ("w", "h", 50),
        ("h", "y.lhs.target", 100),
        ("h", "y", 50),
    ]


def test_einsum_of_two_operands_is_a_product(tmp_path: Path) -> None:
    nodes = [node("Einsum", "a b", equation="bij,bjk->bik")]
    graph = graph_of(tmp_path, nodes, {"a": (2, 3, 4), "b": (2, 4, 5)})
    assert types(graph)["y"] == "fixed_point"
    assert [value for _, _, value in pairs(graph)] == [100, 100]


# Elementwise operations: whom they follow, and who is drawn to whom


def test_two_way_broadcast_is_a_barrier_without_pairs(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("Add", "a b")], {"a": (3, 1), "b": (1, 4)})
    assert types(graph)["y"] == "barrier"
    assert pairs(graph) == []


def test_operands_that_do_not_dominate_each_other_are_left_alone(tmp_path: Path) -> None:
    inputs = {"x": (3, 4), "a": (3, 1), "b": (1, 4)}
    graph = graph_of(tmp_path, [node("Max", "x a b")], inputs)
    assert pairs(graph) == [("y.1.reduce", "a", 20), ("y.2.reduce", "b", 20)]


def test_where_follows_what_it_chooses_from(tmp_path: Path) -> None:
    """The condition has the output's shape, too, and stands first."""
    constants = {"c": np.ones((2, 2), bool)}
    nodes = [node("Where", "c a b")]
    graph = graph_of(tmp_path, nodes, {"a": (2,), "b": (2, 2)}, constants=constants)
    assert passed_on(graph, {"b": np.arange(4)})["y"].tolist() == [0, 1, 2, 3]
    assert pairs(graph) == [("y.1.reduce", "a", 20), ("c", "b", 20), ("y.1.reduce2", "a", 20)]


def test_slopes_of_old_operator_sets_are_per_channel(tmp_path: Path) -> None:
    """Three slopes for three channels, which NumPy would not broadcast to (1, 3, 4)."""
    graph = graph_of(tmp_path, [node("PRelu", "x s")], {"x": (1, 3, 4), "s": (3,)}, opset=6)
    assert graph.tensor("y.1.aligned").shape == (3, 1)
    assert pairs(graph) == [("y.1.reduce", "y.1.aligned", 20)]


def test_axis_of_old_operator_sets_places_the_second_operand(tmp_path: Path) -> None:
    nodes = [node("Add", "x b", broadcast=1, axis=1)]
    graph = graph_of(tmp_path, nodes, {"x": (2, 3, 4, 5), "b": (3, 4)}, opset=6)
    assert graph.tensor("y.1.aligned").shape == (3, 4, 1)
    assert pairs(graph) == [("y.1.reduce", "y.1.aligned", 20)]


def test_scales_of_blocks_make_a_barrier(tmp_path: Path) -> None:
    """Two scales for four rows do not broadcast."""
    constants = {"x": np.zeros((4, 3), np.uint8), "s": np.ones((2, 3), np.float32)}
    nodes = [node("DequantizeLinear", "x s", axis=0, block_size=2)]
    graph = graph_of(tmp_path, nodes, {}, constants=constants, opset=21)
    assert types(graph)["y"] == "barrier"


# The table of rules covers ONNX, and nothing else


NEWEST = 28
"""The operator set up to which the table is complete."""


def test_every_op_type_of_onnx_has_a_rule() -> None:
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    names = {s.name for s in schemas}
    first = {name: min(s.since_version for s in schemas if s.name == name) for name in names}
    assert [
        name for name, since in first.items() if since <= NEWEST and name not in OPERATORS
    ] == []
    own = {name for name in OPERATORS if "::" not in name} - {"SimplifiedLayerNormalization"}
    assert defs.onnx_opset_version() < NEWEST or own <= set(first)


def test_structure_names_operands_that_exist() -> None:
    for schema in defs.get_all_schemas():
        if schema.domain == "":
            facts = type_facts(schema.name)
            assert not set(facts.structural) & set(facts.unread)
            # Tile and Upsample had more operands, or had them elsewhere, in older sets.
            assert max((*facts.structural, *facts.unread), default=0) < max(schema.max_input, 1)


# The table of values, and a user's changes to it


def test_shipped_values() -> None:
    """Targets are worth more than chains, and the linear spread least of all."""
    values = read_attractions()
    assert values["matmul.lhs"] == values["matmul.rhs"] == 100
    assert values["convolution.data"] == values["convolution.weights"] == 100
    assert values["matmul.chain"] == values["convolution.chain"] == 50
    others = [value for key, value in values.items() if key != "sink.linear"]
    assert 0 < values["sink.linear"] < min(others) / 10


def test_values_reach_the_pairs(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text("[matmul]\nlhs = 3\nrhs = 4\nchain = 5\n[sink]\nlinear = 0.25\n")
    path = save(model([node("MatMul", "a b")], {"a": (2, 3), "b": (3, 3)}), tmp_path)
    graph = read_onnx(path, attractions=table)
    assert pairs(graph) == [("a", "y.lhs.target", 3), ("b", "y.rhs.target", 4), ("a", "y", 5)]
    assert [v for _, v in graph.valued_partners("a")] == [Decimal("0.25"), 3, 5]


def test_zero_leaves_pairs_out(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(
        "[matmul]\nlhs = 0\nchain = 0\n[sink]\nlinear = 0.0\n[elementwise]\nbroadcast = 0\n"
    )
    nodes = [node("MatMul", "a b", "h"), node("Add", "h c")]
    path = save(model(nodes, {"a": (2, 3), "b": (3, 3), "c": (3,)}), tmp_path)
    graph = read_onnx(path, attractions=table)
    assert pairs(graph) == [("b", "h.rhs.target", 100)]
    assert (
        set(types(graph)) == {"a", "b", "c", "h", "h.rhs.target", "y"} == {x.id for x in graph.ops}
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[matmul]\nlsh = 1\n", "matmul.lsh: there is no such entry; known: convolution.data, "),
        ("[matmull]\nlhs = 1\n", "matmull.lhs: there is no such entry"),
        ("[matmul]\nlhs = inf\n", "matmul.lhs: value Infinity is not finite"),
        ("[matmul]\nlhs = nan\n", "matmul.lhs: value NaN is not finite"),
        ("[matmul]\nlhs = true\n", "matmul.lhs: value True is not a decimal number"),
        ('[matmul]\nlhs = "1"\n', "matmul.lhs: value '1' is not a decimal number"),
        ("[matmul]\nlhs = [1]\n", "matmul.lhs: value [1] is not a decimal number"),
        ("[matmul]\nlhs = 1979-05-27\n", "matmul.lhs: value datetime.date(1979, 5, 27) is not a"),
        ("[matmul]\nlhs = 1e999\n", "matmul.lhs: value has more than 400 digits"),
        ("lhs = 1\n", "lhs: must stand in a table, as in [matmul]"),
        ("[matmul\n", "is not TOML ("),
        ("[matmul]\nlhs = 1\nlhs = 2\n", "is not TOML ("),
        ("\xff", "is not TOML ("),
        ("a = " + "[" * 100_000, "the TOML is nested too deeply"),
    ],
)
def test_bad_tables_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_attractions(table)
    assert str(caught.value).startswith(f"{table}: {reason}")
    assert "\n" not in str(caught.value)


def test_einsum_of_one_operand_is_a_barrier(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("Einsum", "a", equation="ij->i")], {"a": (2, 3)})
    assert types(graph)["y"] == "barrier"
    assert pairs(graph) == []


def test_only_the_parts_that_are_read_are_cut_out(tmp_path: Path) -> None:
    nodes = [node("Split", "x", "a b", axis=0), node("Relu", "b")]
    graph = read_onnx(save(model(nodes, {"x": (4, 2)}), tmp_path))
    assert [op.id for op in graph.ops] == ["x", "x.linear", "b", "y"]
    assert passed_on(graph, {"x": np.arange(8)})["y"].tolist() == [4, 5, 6, 7]
