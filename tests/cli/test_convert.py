"""``layoutopt convert`` and ``layoutopt verify``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Run
from tests.cli.test_bad_input import refused
from tests.rewriting.exports import random_export
from tests.rewriting.networks import network


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a network in which four transposes of 10 must remain."""
    path = tmp_path / "export.onnx"
    path.write_bytes(random_export(3, 31).SerializeToString())
    return path


def test_convert_writes_a_network_and_says_what_is_proved(run: Run, model: Path) -> None:
    """The table has both tallies, and the same number is in the file."""
    out = model.with_name("out.onnx")
    ran = run("convert", model, "-o", out, "--check", "--peers", "--explain")
    assert ran.code == 0, ran.err
    rows = {words[0]: words[1:] for line in ran.out.splitlines() if (words := line.split())}
    assert rows["status"] == ["optimal"]
    assert rows["objective"] == rows["bound"]
    assert rows["difference"][1] == "relative"
    left = sum(node.op_type == "Transpose" for node in onnx.load(out).graph.node)
    assert int(rows["after"][0]) == left > 0
    assert int(rows["before"][0]) > left
    assert int(rows["onnxruntime"][0]) >= left
    assert ran.out.count("takes it as") + ran.out.count("take it as") == left


def test_convert_as_json(run: Run, model: Path) -> None:
    """The document has all figures; nothing else is on stdout."""
    ran = run("convert", model, "--json", "-", "--objective", "bytes", "--seed", 3)
    document = json.loads(ran.out)
    assert document["format"] == "layoutopt/conversion/1"
    assert document["status"] == "optimal"
    assert document["objective"] == document["bound"] == {"bytes": document["after"]["bytes"]}
    assert len(document["remaining"]) == document["after"]["transforms"]
    assert document["seed"] == 3
    assert document["difference"] is None
    assert [path.name for path in model.parent.iterdir()] == ["export.onnx"]


def test_a_network_is_converted_for_a_backend_and_verified(run: Run, model: Path) -> None:
    """Before there are violations and exit code 1; afterwards none, and no transform."""
    before = run("verify", model, "--backend", "nhwc")
    assert before.code == 1
    assert "Conv 'n_t" in before.out
    assert "has NCHW, needs NHWC" in before.out
    out = model.with_name("out.onnx")
    assert run("convert", model, "-o", out, "--backend", "nhwc", "--check", "-q").out == ""
    after = run("verify", out, "--backend", "nhwc")
    assert (after.code, after.out) == (0, f"{out}: all layouts meet the requirements of nhwc\n")
    assert run("verify", model, "--backend", "nchw").code == 0
    told = json.loads(run("verify", model, "--backend", "nhwc", "-o", "-").out)
    assert told["format"] == "layoutopt/violations/1"
    assert [entry["why"] in before.out for entry in told["violations"]]
    other = model.with_name("other.onnx")
    assert run("convert", model, "-o", other, "--layout", "default=NHWC", "-q").code == 0
    assert run("verify", other, "--backend", "nhwc", "-q").out == ""


def test_ops_that_nothing_is_known_of_are_listed(run: Run, tmp_path: Path) -> None:
    """The summary names their types."""
    path = tmp_path / "net.onnx"
    text = "g (float[2,3] x) => (y) { a = my.Twist(x) y = my.Twist(a) }"
    path.write_bytes(network(text, domains=["my"]).SerializeToString())
    ran = run("convert", path, "--explain")
    assert "unknown ops, kept as they are: my::Twist (2)" in ran.out
    assert "no transform remains" in ran.out


def test_existing_files_are_replaced_when_asked_only(run: Run, model: Path) -> None:
    """The network itself never is."""
    out = model.with_name("out.onnx")
    out.write_text("mine")
    assert "--overwrite replaces it" in refused(run("convert", model, "-o", out))
    assert "--overwrite replaces it" in refused(run("convert", model, "--json", out))
    assert out.read_text() == "mine"
    assert run("convert", model, "-o", out, "--overwrite", "-q").code == 0
    onnx.checker.check_model(str(out))
    before = model.read_bytes()
    assert "is the model itself" in refused(run("convert", model, "-o", model, "--overwrite"))
    assert model.read_bytes() == before


WRONG = {
    "no file": (["convert", "none.onnx"], ["none.onnx", "no such file"]),
    "no network": (["convert", "{text}"], ["no ONNX model"]),
    "unknown backend": (["convert", "{model}", "--backend", "gpu"], ["'gpu'", "nhwc"]),
    "unknown layout": (["convert", "{model}", "--layout", "Conv=QQ"], ["Conv=QQ"]),
    "unknown objective": (["convert", "{model}", "--objective", "time"], ["time", "bytes"]),
    "both": (["convert", "{model}", "--backend", "nhwc", "--layout", "Conv=NHWC"], ["not both"]),
    "time": (["convert", "{model}", "--time-limit", "-1"], ["--time-limit"]),
    "folder": (["convert", "{model}", "-o", "none/out.onnx"], ["directory"]),
    "verify without a backend": (["verify", "{model}"], ["--backend"]),
    "verify for an unknown one": (["verify", "{model}", "--backend", "gpu"], ["'gpu'"]),
    "verify no network": (["verify", "{text}", "--backend", "nhwc"], ["no ONNX model"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_one_line(run: Run, model: Path, case: str) -> None:
    """Exit code 2 and a line that names what is wrong."""
    words, said = WRONG[case]
    text = model.with_name("text.onnx")
    text.write_text("no network")
    line = refused(run(*(word.format(model=model, text=text) for word in words)))
    assert all(word in line for word in said), line


def test_a_network_that_is_not_well_formed_is_one_line(run: Run, model: Path) -> None:
    """The line names the file, the node and the tensor."""
    broken = onnx.load(model)
    broken.graph.node[4].input[0] = "nobody"
    model.write_bytes(broken.SerializeToString())
    for words in (["convert", model], ["verify", model, "--backend", "nchw"]):
        line = refused(run(*words))
        assert all(word in line for word in ("export.onnx", broken.graph.node[4].name, "'nobody'"))


def test_a_certificate_is_written_and_accepted(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for the network and what came of it; one digit more in its bound is refused."""
    out, path = model.with_name("out.onnx"), model.with_name("certificate.json")
    layouts = ("--layout", "Conv=NHWC,HWIO", "--free-io", "--objective", "count")
    ran = run("convert", model, "-o", out, "--certificate", path, *layouts)
    assert ran.code == 0, ran.err
    certificate = json.loads(path.read_text())
    assert certificate["asked"] == {
        "objective": "count",
        "layout": "Conv=NHWC,HWIO",
        "padding": False,
        "backend": None,
        "costs": None,
        "free_io": True,
    }
    least = certificate["graphs"][0]["claim"]["score"][0]
    for output in ((), (out,)):
        checked = run("check", model, *output, "--certificate", path)
        assert checked.code == 0, checked.err
        assert f"accepted: count {least} is optimal, proved without a solver" in checked.out
    again = run("convert", model, "--certificate", path)
    assert again.code == 2
    assert "exists already" in again.err
    with monkeypatch.context() as patch:  # known before anything is loaded
        patch.setitem(sys.modules, "layoutopt.converting", None)
        assert "exists already" in run("convert", model, "-o", path).err
    certificate["graphs"][0]["claim"]["bound"] = [least + 1]
    path.write_text(json.dumps(certificate))
    wrong = run("check", model, "--certificate", path)
    assert wrong.code == 1
    assert f"the bound [{least + 1}] is claimed, but [{least}] is proved" in wrong.out


def test_a_table_of_costs_is_in_the_certificate(run: Run, model: Path) -> None:
    """The text of the file is what was asked, so that the certificate can be checked alone."""
    costs, path = model.with_name("costs.toml"), model.with_name("certificate.json")
    costs.write_text('[transform]\nus = 3\n[[op]]\ntype = "Conv"\nlayouts = "NHWC,HWIO"\nus = 4\n')
    ran = run("convert", model, "--costs", costs, "--certificate", path, "-q")
    assert ran.code == 0, ran.err
    assert json.loads(path.read_text())["asked"]["costs"] == costs.read_text()
    checked = run("check", model, "--certificate", path)
    assert checked.code == 0, checked.err
    assert "accepted: time " in checked.out


def test_ops_without_letters_run_as_desired(run: Run, tmp_path: Path) -> None:
    """Also where an operand has fewer axes, and where an attribute names one."""
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        onnx.helper.make_node("Add", ["c", "b"], ["d"], name="add"),
        onnx.helper.make_node("Softmax", ["d"], ["y"], name="soft", axis=1),
    ]
    shapes = {"x": (1, 3, 8, 8), "w": (4, 3, 3, 3), "b": (4, 1, 1), "y": (1, 4, 6, 6)}
    x, w, b, y = (
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape)
        for n, shape in shapes.items()
    )
    graph = onnx.helper.make_graph(nodes, "sum", [x, w, b], [y])
    path, out = tmp_path / "sum.onnx", tmp_path / "out.onnx"
    onnx.save(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
        ),
        path,
    )
    ran = run(
        "convert", path, "-o", out, "--layout", "Add=NHWC", "--layout", "Softmax=NHWC", "--check"
    )
    assert ran.code == 0, ran.err
    ops = [node.op_type for node in onnx.load(out).graph.node]
    assert ops == ["Conv", "Transpose", "Reshape", "Add", "Softmax", "Transpose"]
