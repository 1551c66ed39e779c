"""Networks lose what does nothing, ops run in other orders, and all compute the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.certify.conversion import Asked, certify, check_certificate
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.rules.op import Op
from layoutopt.io.certificate import certificate_bytes
from layoutopt.onnx import edited
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.running import Outputs
from layoutopt.onnx.simplify import simplified
from layoutopt.onnx.source import read_model
from layoutopt.onnx.transposes import transposes
from layoutopt.onnx.write import fewer_reshapes
from tests.onnx.exports import random_export
from tests.onnx.networks import cases, kinds, network, values

# Networks lose what does nothing before layouts are chosen, and compute the same


CASES = cases("simplified")


@pytest.mark.parametrize("case", CASES)
def test_what_does_nothing_is_gone(case: str) -> None:
    """The network has the nodes that are left, is valid, computes the same, and is read again."""
    expected = CASES[case]
    model = network(expected["text"], expected.get("constants"))
    given = model.SerializeToString(deterministic=True)
    result = layoutopt.convert(model)
    onnx.checker.check_model(result.model, full_check=True)
    assert sorted(kinds(result.model)) == sorted(expected["types"])
    found = [result.before.transforms, result.after.transforms, result.before.free]
    assert found == expected["transforms"]
    assert result.status == "optimal"
    assert bool(result.notes) == case.startswith("a declared")
    if "draws" not in case:
        assert Outputs(model).difference(result.model) <= 1e-6
    assert layoutopt.convert(result.model).after.transforms == found[1]
    assert model.SerializeToString(deterministic=True) == given


def test_copies_for_readers_leave_no_more_to_heuristics() -> None:
    """What costs nothing to make is repeated for its readers, but its transposes are not."""
    text = """g (float[4,2,2,1] x) => (float[1,1,2,2,4] y, bool[1,1,2,2,4] z) <int64[1] a = {1}> {
        u = Unsqueeze(x, a) y = Transpose(u) z = Equal(y, y) }"""
    compared = layoutopt.convert(network(text), compare=True).heuristics
    for solver, left in compared.items():
        result = layoutopt.convert(network(text), solver=solver)
        assert (result.after.transforms, left.transforms) == (1, 1)
        assert not result.partial


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
    assert Outputs(model).difference(result.model) <= 1e-5
    assert result.objective <= layoutopt.convert(plain).objective
    certificate = json.loads(certificate_bytes(certify(result, Asked("count,changed,bytes"))))
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


def test_tensors_with_quantisation_stay_in_the_branch_that_is_taken() -> None:
    """They are tensors of the network then."""
    model = network("""g (float[2,3] x) => (float[2,3] y) { c = Constant<value = bool {1}>()
    y = If(c)<then_branch = t () => (float[2,3] b) { a = Relu(x) b = Exp(a) },
    else_branch = e () => (float[2,3] d) { d = Neg(x) }> }""")
    [branch] = (a.g for a in model.graph.node[1].attribute if a.name == "then_branch")
    note = branch.quantization_annotation.add(tensor_name="a")
    new = layoutopt.convert(model, check=True).model
    assert kinds(new) == ["Relu", "Exp"]
    assert list(new.graph.quantization_annotation) == [note]


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


def test_narrow_numbers_of_unknown_rank_stay_reversed_twice() -> None:
    """No op copies them, and without a rank one Transpose cannot tell that it moves no axes."""
    text = "g (int4[] x) => (int4[] y) { a = Transpose(x) y = Transpose(a) }"
    after = layoutopt.convert(network(text, opset=21)).model
    assert [(n.op_type, len(n.attribute)) for n in after.graph.node] == [("Transpose", 0)] * 2


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


def counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows by one entry with each inference of a network being simplified."""
    asked = list[None]()

    def count(model: ModelProto) -> ModelProto:
        asked.append(None)
        return with_shapes(model)

    monkeypatch.setattr(edited, "with_shapes", count)
    return asked


def test_sizes_are_followed_through_any_number_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed with the sizes of one layer tells those of the next without inference."""
    asked = counted(monkeypatch)
    layers = " ".join(
        f"s{k} = Shape(x{k}) h{k} = Gather(s{k}, zero) d{k} = Div(h{k}, two) m{k} = Mod(h{k}, two) "
        f"v{k} = Sub(d{k}, m{k}) f{k} = Cast<to=1>(v{k}) e{k} = Ceil(f{k}) i{k} = Cast<to=7>(e{k}) "
        f"c{k} = Concat<axis=0>(i{k}, rest) r{k} = Reshape(x{k}, c{k}) x{k + 1} = Relu(r{k})"
        for k in range(6)
    )
    text = f"g (float[64,1] x) => (float[m,n] y) {{ x0 = Relu(x) {layers} y = Relu(x6) }}"
    given = {name: np.array(value) for name, value in (("zero", [0]), ("two", [2]), ("rest", [-1]))}
    left = simplified(network(text, given)).model.graph.node
    assert [node.op_type for node in left] == ["Relu", *["Reshape", "Relu"] * 6, "Relu"]
    assert len(asked) <= 3


def test_branches_are_followed_through_any_number_of_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sizes of the branch that is taken tell which branch the next condition takes."""
    asked = counted(monkeypatch)
    layers = " ".join(
        f"s{k} = Shape(x{k}) d{k} = Gather(s{k}, two) c{k} = Greater(d{k}, lim) "
        f"q{k} = Squeeze(c{k}) x{k + 1} = If(q{k}) <"
        f"then_branch = t () => (float[] a{k}) {{ a{k} = Pad(x{k}, less) }}, "
        f"else_branch = e () => (float[] b{k}) {{ b{k} = Relu(x{k}) }}>"
        for k in range(6)
    )
    text = f"g (float[1,4,9] x0) => (float[a,b,c] y) {{ {layers} y = Abs(x6) }}"
    given = {"two": np.array([2]), "lim": np.array([6]), "less": np.array([0, 0, -1, 0, 0, 0])}
    left = simplified(network(text, given)).model.graph.node
    assert [node.op_type for node in left] == [*["Pad"] * 3, *["Relu"] * 3, "Abs"]
    assert len(asked) <= 3


# Reshapes that follow each other become one, or none


Shape = tuple[int | str, ...]

CASES_RESHAPES = cases("reshapes")


@pytest.mark.parametrize("case", CASES_RESHAPES)
def test_chains(case: str) -> None:
    """A chain from an input to an output keeps the reshapes that it needs, with their shapes."""
    given = CASES_RESHAPES[case]
    graph = ConversionGraph()
    last = graph.input("x", tuple(given["shape"]))
    for name, after in given["chain"]:
        last = graph.op("Reshape", [last], shape=tuple(after), name=name)
    graph.output(last)
    own = {op.name: op for op in graph.ops if op.name in given["own"]}
    ops = fewer_reshapes(graph, own)
    assert [written(op) for op in ops] == given["left"]


def written(op: Op) -> str:
    """Return an op with what it reads, and its shape if that was written anew."""
    shape = "".join(f" {size}" for size in op.attributes.get("shape", ()))
    return f"{op.name}({op.inputs[0]}){shape}"


# Graphs inside nodes read what they capture, whatever becomes of it outside


CASES_BODIES = cases("bodies")


@pytest.mark.parametrize("name", CASES_BODIES)
def test_bodies_read_what_they_capture(name: str) -> None:
    """The rewritten network is valid, and computes the same whichever branch is taken."""
    text = f"g (bool c, float[1,2,3,4] x) => (float[1,2,3,4] y) {{ {CASES_BODIES[name]} }}"
    model = network(text, {"w": (1, 2, 3, 4)} if name == "initialiser" else None)
    result = layoutopt.convert(model)
    checker.check_model(result.model, full_check=True)
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 4)).astype(np.float32)
    for taken in (True, False):
        inputs = {"c": np.array(taken), "x": x}
        assert Outputs(model, inputs=inputs).difference(result.model) <= 1e-6


# Ops run in other orders, and products take transposed operands


IN, OUT = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>"


def transposed(body: str, inputs: str, outputs: str, opset: int = 13) -> ModelProto:
    """Return a network in ONNX's text format; ``IN`` and ``OUT`` stand for transposes."""
    text = body.replace("IN(", f"{IN}(").replace("OUT(", f"{OUT}(")
    text = f"g ({inputs}) => ({outputs}) {{ {text} }}"
    return network(text, opset=opset, domains=["com.microsoft"])


ORDERS, PRODUCTS = cases("orders"), cases("products")


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_take_transposed_operands(name: str) -> None:
    """They become Gemm where that removes a transpose, and FusedMatMul on request only."""
    case = PRODUCTS[name]
    types = converted(transposed(**case["given"]), case["transposes"], case["microsoft"])
    assert types == case["types"]


@pytest.mark.parametrize("name", ORDERS)
def test_ops_run_in_other_orders(name: str) -> None:
    """Transposes and gathers that are left are as many as expected, and outputs are the same."""
    case = ORDERS[name]
    types = converted(transposed(**case["given"]), case["transposes"])
    assert types.count("Gather") == case["gathers"]


def converted(given: ModelProto, left: int, microsoft: bool = False) -> list[str]:
    """Convert a network, hold it against what it was, and return the types of its ops."""
    checker.check_model(given)
    found = layoutopt.convert(given, objective="count,changed,bytes", microsoft=microsoft)
    checker.check_model(found.model, full_check=True)
    assert transposes(found.model) == left
    assert not found.notes
    assert Outputs(given).difference(found.model) <= 1e-5
    asked = Asked("count,changed,bytes", microsoft=microsoft)
    verdict = check_certificate(
        given, json.loads(certificate_bytes(certify(found, asked))), found.model
    )
    assert verdict.score == verdict.bound
    return [node.op_type for node in found.model.graph.node]


@pytest.mark.parametrize("layout", ["GridSample=NHWC,NHWC->NHWC", "GridSample=NHWC,N*HW->NHWC"])
def test_an_axis_without_a_letter_may_be_required_by_any(layout: str) -> None:
    """The coordinates of a GridSample are its one axis without a letter, wherever they stand."""
    body = "z = GridSample(x, k) t = IN(z) y = Relu(t)"
    given = transposed(body, "float[1,3,8,8] x, float[1,4,5,2] k", "float[a,b,c,d] y", 16)
    found = layoutopt.convert(given, layout=layout)
    assert not found.notes
    [op] = [op for op in found.conversion.graph.ops if op.type == "GridSample"]
    assert str(op.layouts) == layout.replace("GridSample=", "").replace("NHWC,NHWC", "NHWC,NHW*")
    assert Outputs(given).difference(found.model) <= 1e-5
