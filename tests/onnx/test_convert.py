"""Networks that are converted: what is written, and where weights lie beside it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.base.files import read_bytes
from layoutopt.base.limits import Progress
from layoutopt.conversion.backends import BACKENDS
from layoutopt.conversion.verify import verify
from layoutopt.onnx.protobuf import copied, load, parse_model, write_proto
from layoutopt.onnx.result import ConversionResult
from layoutopt.onnx.running import Outputs
from layoutopt.onnx.source import read_model
from layoutopt.onnx.transposes import optimised_transposes, transposes
from tests.onnx.exports import channels_last, random_export
from tests.onnx.networks import kinds, network, values

# Whole networks are converted: fewest transforms, proved, and the same results


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = sorted(path.stem.removeprefix("light_") for path in LIGHT.glob("*.onnx"))


def check(model: ModelProto, result: ConversionResult) -> None:
    """Hold a result against everything that is promised of it."""
    onnx.checker.check_model(result.model, full_check=True)
    assert result.status == "optimal"
    assert transposes(result.model) == result.after.transforms
    assert transposes(result.model) <= optimised_transposes(model)
    assert result.after.transforms <= result.before.transforms
    assert len(result.remaining) == result.after.transforms
    assert Outputs(model).difference(result.model) <= 1e-5


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_random_exports(start: int) -> None:
    """The network has as many transposes as is proved, never more than onnxruntime leaves."""
    for seed in range(start, start + 20, 10):
        model = random_export(seed, 14 + seed * 107 // 200)
        check(model, layoutopt.convert(model))


def narrowed(sizes: NDArray[np.int64], whole: bool) -> NDArray[np.int64]:
    """Return sizes with multiples of 16 quartered, as wide layers only take time."""
    return np.where(whole | (sizes % 16 > 0), sizes, sizes // 4)


def light(name: str) -> ModelProto:
    """Return a network of the onnx package with random weights, its windows in transposes.

    Its outputs are logits, which tell more than what softmax makes of them.
    """
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    graph = model.graph
    whole = name == "shufflenet"  # whose groups have other sizes
    shapes = {}
    for x in graph.initializer:
        given = numpy_helper.to_array(x)
        if given.dtype == np.int64:
            shapes[x.name] = given = narrowed(given, whole)
        else:
            given = given[tuple(map(slice, narrowed(np.array(given.shape, int), whole)))]
        x.CopyFrom(numpy_helper.from_array(given, x.name))
    draw = np.random.default_rng(0)
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            weights = _weights(draw, shapes[node.input[0]].tolist())
            graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
        elif node.op_type == "Softmax":
            graph.output[0].name = node.input[0]
        else:
            nodes.append(node)
    constants = {x.name for x in graph.initializer}
    inputs = [x for x in graph.input if x.name not in constants]
    for field, kept in ((graph.node, nodes), (graph.input, inputs)):
        del field[:]
        field.extend(kept)
    del graph.value_info[:]
    graph.output[0].type.tensor_type.ClearField("shape")
    model.ir_version = 4
    wrapped = channels_last(model)
    inferred = onnx.shape_inference.infer_shapes(wrapped)
    wrapped.graph.output[0].CopyFrom(inferred.graph.output[0])
    return wrapped


def _weights(draw: np.random.Generator, shape: list[int]) -> NDArray[np.float32]:
    """Return weights that keep numbers of a size; those of one axis are positive."""
    if len(shape) == 1:
        return draw.random(shape, np.float32) + np.float32(0.5)
    return draw.standard_normal(shape, np.float32) * np.float32(2 / np.prod(shape[1:])) ** 0.5


@pytest.mark.parametrize("name", NAMES)
def test_real_networks(name: str) -> None:
    """The nine networks of the onnx package, wrapped as exporters do, lose all that was added."""
    model = light(name)
    check(model, layoutopt.convert(model))


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_real_networks_for_a_backend(name: str) -> None:
    """With the layouts of a backend the network is as this requires, and computes the same."""
    result = layoutopt.convert(light(name), backend="nhwc", check=True)
    assert result.difference is not None
    assert result.difference < 1e-4
    assert verify(read_model(result.model).graph, BACKENDS["nhwc"]) == []


@pytest.mark.parametrize("seed", range(4))
def test_converted_networks_are_converted_already(seed: int) -> None:
    """To convert a result again changes nothing that counts; nor does a detour by a backend."""
    model = random_export(seed, 40)
    result = layoutopt.convert(model)
    count, _, size = result.objective
    again = layoutopt.convert(result.model)
    assert again.objective == (count, 0, size)
    names, found = ([node.name for node in one.model.graph.node] for one in (result, again))
    assert names == found
    there = layoutopt.convert(model, layout="default=NHWC", check=True)
    assert verify(read_model(there.model).graph, BACKENDS["nhwc"]) == []
    back = layoutopt.convert(there.model, objective="count,bytes", backend="nchw", check=True)
    assert not back.model.functions
    assert back.objective == (count, size)


@pytest.mark.parametrize("opset", range(7, 23))
def test_every_version_of_the_operator_set(opset: int) -> None:
    """Pads, slices, softmax, means, squeezes: attributes or inputs, all are rewritten."""
    new = {
        "pad": "(x, p)" if opset >= 11 else "<pads=[0,1,1,0,0,1,1,0]>(x)",
        "cut": "(e, s, t, u)" if opset >= 10 else "<axes=[1,3], starts=[1,0], ends=[5,2]>(e)",
        "mean": "<keepdims=1>(f, v)" if opset >= 18 else "<axes=[1,2], keepdims=1>(f)",
        "squeeze": "(q, v)" if opset >= 13 else "<axes=[1,2]>(q)",
        "unsqueeze": "(r, v)" if opset >= 13 else "<axes=[1,2]>(r)",
    }
    numbers = {"p": [0, 1, 1, 0, 0, 1, 1, 0], "s": [1, 0], "t": [5, 2], "u": [1, 3], "v": [1, 2]}
    text = """g (float[1,4,4,3] x) => (float[a1,a2,a3,a4] y, float[b1,b2,b3,b4] z) {{
        o = Pad{pad}
        a = Transpose<perm=[0,3,1,2]>(o)
        c = Conv(a, k)
        d = Transpose<perm=[0,2,3,1]>(c)
        e = Softmax<axis=3>(d)
        f = Slice{cut}
        h = Transpose<perm=[0,3,1,2]>(f)
        i = Conv(h, l)
        y = Transpose<perm=[0,2,3,1]>(i)
        q = ReduceMean{mean}
        r = Squeeze{squeeze}
        j = Unsqueeze{unsqueeze}
        n = Transpose<perm=[0,3,1,2]>(j)
        z = Conv(n, m) }}"""
    written = text.format(**new)
    used = {
        k: np.array(v) for k, v in numbers.items() if f", {k})" in written or f", {k}," in written
    }
    weights = {"k": (4, 3, 1, 1), "l": (5, 2, 1, 1), "m": (2, 2, 1, 1)}
    model = network(written, {**weights, **used}, opset=opset)
    check(model, layoutopt.convert(model))


def test_the_network_tells_of_its_proof() -> None:
    """Metadata has status, objective, bound and version; transposes say why they are there."""
    model = random_export(3, 30)
    result = layoutopt.convert(model)
    told = {entry.key: entry.value for entry in result.model.metadata_props}
    assert told["layoutopt.status"] == "optimal"
    assert told["layoutopt.objective"] == told["layoutopt.bound"]
    assert told["layoutopt.objective"].startswith(f"count {result.after.transforms}, changed ")
    assert told["layoutopt.version"] == layoutopt.__version__
    assert told["layoutopt.freed"] == "{}"
    left = [node for node in result.model.graph.node if node.op_type == "Transpose"]
    assert left
    reasons = {line.why for line in result.remaining}
    assert {entry.value for node in left for entry in node.metadata_props} <= reasons
    again = layoutopt.convert(result.model).model.metadata_props
    assert [entry.key for entry in again] == list(told)


BETWEEN = """g (float[1,4,8,8] x) => (float[1,8,8,4] y) {
    a = Relu(x)
    b = Transpose<perm=[0,2,3,1]>(a)
    y = Relu(b)
}"""


def forever(*_: object, **__: object) -> None:
    """Go on until somebody ends it from outside."""
    while True:
        time.sleep(0.001)


@pytest.mark.parametrize("step", ["simplified", "read_model", "convert_graph", "write_model"])
def test_time_that_ends_early(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The answer is the network as it is given, of which nothing is proved."""
    model = network(BETWEEN)
    monkeypatch.setattr(f"layoutopt.converting.{step}", forever)
    result = layoutopt.convert(model, time_limit=0.2)
    assert (result.status, result.stopped) == ("feasible", "time limit")
    assert (result.objective, result.bound) == ((1, 0, 0), (0, 0, 0))
    assert result.model.graph == model.graph
    assert [transpose.op for transpose in result.remaining] == ["b"]
    assert "given one is kept" in result.notes[0]
    assert "bytes exclude 1 transposes" in result.notes[1]
    with pytest.raises(TimeoutError, match="time limit before a network was found"):
        layoutopt.convert(model, time_limit=0.2, layout="default=NHWC")


@pytest.mark.parametrize(
    ("step", "more"),
    [
        ("peer_transposes", {"peers": True}),
        ("_heuristics", {"compare": True}),
        ("Outputs", {"check": True}),
    ],
)
def test_time_that_ends_late(
    monkeypatch: pytest.MonkeyPatch, step: str, more: dict[str, bool]
) -> None:
    """What compares a network does not cost it."""
    monkeypatch.setattr(f"layoutopt.converting.{step}", forever)
    result = layoutopt.convert(network(BETWEEN), time_limit=1.0, **more)
    assert (result.status, result.after.transforms) == ("optimal", 1)
    assert "time ran out before the requested comparisons" in result.notes[-1]


@pytest.mark.parametrize("phase", ["writing", "running both networks", "asking other optimisers"])
def test_ctrl_c_after_the_proof(phase: str) -> None:
    """A network whose layouts are proved is returned, as when time runs out."""

    def interrupt(message: Progress) -> None:
        if message.phase == phase:
            signal.raise_signal(signal.SIGINT)

    result = layoutopt.convert(network(BETWEEN), progress=interrupt, check=True, peers=True)
    assert (result.status, result.after.transforms) == ("optimal", 1)


# Networks in files: weights beside them, nothing half written, nothing read is replaced


TEXT = """g (float[1,4,4,8] x) => (float[1,4,4,16] y) {
    a = Transpose<perm=[0,3,1,2]>(x)
    b = Conv<pads=[1,1,1,1]>(a, w)
    c = Transpose<perm=[0,2,3,1]>(b)
    d = Mul(c, k)
    e = Add(d, small)
    f = Transpose<perm=[0,3,1,2]>(e)
    h = Conv<pads=[1,1,1,1]>(f, v)
    y = Transpose<perm=[0,2,3,1]>(h) }"""


def model() -> ModelProto:
    """Return a network with weights of 4.5 KiB, 9 KiB and 1 KiB, and a small one."""
    shapes = {"w": (16, 8, 3, 3), "v": (16, 16, 3, 3), "k": (4, 4, 16), "small": (16,)}
    return network(TEXT, shapes)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a network whose weights are in a file of their own."""
    path = tmp_path / "given" / "net.onnx"
    path.parent.mkdir()
    onnx.save(model(), path, save_as_external_data=True, location="weights.bin", size_threshold=100)
    return path


def test_weights_are_beside_a_network_that_one_file_cannot_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were inside of it, but copies in other layouts make it too large."""
    monkeypatch.setattr("layoutopt.onnx.protobuf.LARGEST", 12_000)
    result = layoutopt.convert(model())
    assert "weights are saved in a file beside the model" in result.summary()
    result.save(tmp_path / "out.onnx")
    small, large = (tmp_path / name for name in ("out.onnx", "out.onnx.data"))
    assert small.stat().st_size <= 12_000 < large.stat().st_size
    assert Outputs(model()).difference(onnx.load(small)) < 1e-5


def test_weights_that_were_beside_the_network_are_again(outside: Path, tmp_path: Path) -> None:
    """Old and re-laid weights are in the new file, each at its place; small ones are inside."""
    result = layoutopt.convert(outside)
    target = tmp_path / "out.onnx"
    result.save(target)
    bare = onnx.load(target, load_external_data=False)
    places = {
        x.name: {entry.key: entry.value for entry in x.external_data}
        for x in bare.graph.initializer
        if x.data_location == TensorProto.EXTERNAL
    }
    assert {place["location"] for place in places.values()} == {"out.onnx.data"}
    assert {"w", "v"} < places.keys()
    assert not {"small"} & places.keys()
    assert all(int(place["offset"]) % 4096 == 0 for place in places.values())
    [kernel] = places.keys() - {"w", "v"}
    read = onnx.load(target)
    turned = values(model(), "k").transpose(2, 0, 1)
    assert np.array_equal(values(read, kernel).reshape(turned.shape), turned)
    onnx.checker.check_model(str(target))
    assert Outputs(model()).difference(read) < 1e-5


@pytest.mark.parametrize("name", ["out.onnx", "out.onnx.gz", "out.onnx.xz"])
def test_weights_inside_stay_inside(name: str, tmp_path: Path) -> None:
    """A network in one file becomes one file, as protobuf writes it, packed if its name says so."""
    result = layoutopt.convert(model())
    result.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    read = parse_model(tmp_path / name)
    assert read == result.model
    assert len(read.graph.initializer) > 3
    assert read.ByteSize() == len(read_bytes(tmp_path / name))


@pytest.mark.parametrize("packing", [".gz", ".xz"])
def test_packed_networks_have_weights_beside_them(outside: Path, packing: str) -> None:
    """Both files are read again."""
    result = layoutopt.convert(outside)
    target = outside.with_name(f"out.onnx{packing}")
    result.save(target)
    again = load(target)
    assert {"w", "v"} < again.outside
    assert Outputs(model()).difference(again.model) < 1e-5


def test_existing_files_are_not_replaced_unless_allowed(outside: Path, tmp_path: Path) -> None:
    """Neither the network's file nor that of its weights; both with leave."""
    result = layoutopt.convert(outside)
    for name in ("out.onnx", "out.onnx.data"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match=f"{name}: exists already"):
            result.save(tmp_path / "out.onnx")
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    (tmp_path / "out.onnx").write_text("mine")
    result.save(tmp_path / "out.onnx", overwrite=True)
    assert Outputs(model()).difference(load(tmp_path / "out.onnx").model) < 1e-5


def test_files_that_were_read_are_never_replaced(outside: Path) -> None:
    """Neither the network itself, nor its weights by those of another name."""
    result = layoutopt.convert(outside)
    with pytest.raises(InputError, match="was read"):
        result.save(outside, overwrite=True)
    weights = outside.parent / "weights.bin"
    weights.rename(outside.parent / "net2.onnx.data")
    bare = onnx.load(outside, load_external_data=False)
    for x in bare.graph.initializer:
        for entry in x.external_data:
            if entry.key == "location":
                entry.value = "net2.onnx.data"
    outside.write_bytes(bare.SerializeToString())
    with pytest.raises(InputError, match=r"net2\.onnx\.data: was read"):
        layoutopt.convert(outside).save(outside.parent / "net2.onnx")


def test_weights_of_bodies_functions_and_sparse_ones_may_be_in_files(tmp_path: Path) -> None:
    """They are read, also by their own files' names never replaced, and missed in memory."""
    net = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 17]> g (float[2,3] x, bool c) => (float[2,3] y) {
        s = Constant() t = Add(x, s)
        y = If(c)<then_branch = a () => (float[2,3] p) { p = Add(t, b) },
        else_branch = d () => (float[2,3] r) { r = Neg(t) }> }"""
    )
    values = onnx.numpy_helper.from_array(np.array([5, 7], np.float32), "values")
    indices = onnx.numpy_helper.from_array(np.array([1, 4]), "indices")
    held = onnx.helper.make_sparse_tensor(values, indices, [2, 3])
    net.graph.node[0].attribute.append(onnx.helper.make_attribute("sparse_value", held))
    [branch] = (a.g for a in net.graph.node[2].attribute if a.name == "then_branch")
    branch.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "b"))
    default = onnx.helper.make_attribute("w", onnx.numpy_helper.from_array(np.float32(3), "w"))
    constant = onnx.helper.make_node("Constant", [], ["k"])
    constant.attribute.add(name="value", ref_attr_name="w", type=onnx.AttributeProto.TENSOR)
    inside = [constant, onnx.helper.make_node("Mul", ["u", "k"], ["v"])]
    own = [onnx.helper.make_opsetid("", 17)]
    net.functions.append(
        onnx.helper.make_function("f", "F", ["u"], ["v"], inside, own, attribute_protos=[default])
    )
    net.opset_import.append(onnx.helper.make_opsetid("f", 1))
    net.graph.node.append(onnx.helper.make_node("F", ["y"], ["z"], domain="f"))
    net.graph.output[0].name = "z"
    given = Outputs(copied(net))
    sparse = net.graph.node[0].attribute[0].sparse_tensor.values
    for x in (branch.initializer[0], sparse, net.functions[0].attribute_proto[0].t):
        (tmp_path / f"{x.name}.onnx.data").write_bytes(x.raw_data)
        x.ClearField("raw_data")
        x.data_location = x.EXTERNAL
        x.external_data.add(key="location", value=f"{x.name}.onnx.data")
    with pytest.raises(InputError, match="its weights are in files"):
        layoutopt.convert(net)
    path = tmp_path / "net.onnx"
    path.write_bytes(net.SerializeToString())
    result = layoutopt.convert(path)
    for name in ("b", "values", "w"):
        with pytest.raises(InputError, match=f"{name}.onnx.data: was read"):
            result.save(tmp_path / f"{name}.onnx", overwrite=True)
    assert given.difference(result.model) == 0


def test_missing_weights_are_told_in_a_line(outside: Path) -> None:
    """The line names the network; one in memory must have its weights, too."""
    bare = onnx.load(outside, load_external_data=False)
    with pytest.raises(InputError, match="its weights are in files"):
        layoutopt.convert(bare)
    (outside.parent / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"net\.onnx: its weights cannot be read") as error:
        layoutopt.convert(outside)
    assert "\n" not in str(error.value)


def test_overloads_of_a_function_are_functions_of_their_own() -> None:
    """Each has its own defaults; where one calls the other, calls stay."""
    net = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 17, "f" : 1]>
        g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = f.F(x) z = f.F(x) }
        <domain: "f", opset_import: ["" : 17, "f" : 1]> F <alpha: float = 0.5>(u) => (v) {
        v = LeakyRelu<alpha: float = @alpha>(u) }""")
    first, other = net.functions[0], net.functions.add()
    other.CopyFrom(first)
    other.overload = net.graph.node[1].overload = "other"
    other.attribute_proto[0].f = 0.25
    feeds = {"x": np.full((2, 3), -1, np.float32)}
    found = ReferenceEvaluator(layoutopt.convert(net).model).run(None, feeds)
    assert [y[0, 0] for y in found] == [-0.5, -0.25]
    first.node[0].domain, first.node[0].op_type, first.node[0].overload = "f", "F", "other"
    assert list(layoutopt.convert(net).model.functions) == list(net.functions)


def test_nothing_is_left_behind_where_writing_fails(tmp_path: Path) -> None:
    """Without a folder nothing is written, and the line says so."""
    with pytest.raises(InputError, match="cannot be written"):
        write_proto(model(), tmp_path / "none" / "out.onnx", {"w"})
    assert list(tmp_path.iterdir()) == []


LOOP = """g (float[1,4,4,3] x) => (float[1,4,4,3] y) {
    n = Constant<value = int64 {3}>()
    c = Constant<value = bool {1}>()
    y = Loop(n, c, x) < body = inner (int64 i, bool go, float[1,4,4,3] s)
        => (bool again, float[1,4,4,3] t) {
            again = Identity(go)
            a = Transpose<perm=[0,3,1,2]>(s)
            e = Relu(a)
            f = Transpose<perm=[0,2,3,1]>(e)
            h = Transpose<perm=[0,3,1,2]>(f)
            k = Conv(h, w)
            t = Transpose<perm=[0,2,3,1]>(k) } > }"""


def test_graphs_inside_nodes_are_converted_with_those_around_them() -> None:
    """Of the two transposes at the ends of a round, one is before the loop and one behind it."""
    model = network(LOOP, {"w": (3, 3, 1, 1)})
    result = layoutopt.convert(model, check=True)
    assert (transposes(model), transposes(result.model)) == (4, 2)
    assert result.objective == (2, 0, 2 * 192)
    assert kinds(result.model).count("Transpose") == 2
    assert result.opaque == {}
    freed = layoutopt.convert(model, free_io=True, check=True)
    assert transposes(freed.model) == 0
