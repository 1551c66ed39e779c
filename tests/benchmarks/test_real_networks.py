"""The table of real networks, without the frameworks that export them."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import numpy as np
import onnx
import pytest

from benchmarks.real_networks import packages
from benchmarks.real_networks.export import exports
from benchmarks.real_networks.measuring import OPTIMISERS, counts, measured
from benchmarks.real_networks.table import page, summary, table

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
network (float[1, 4, 5, 3] x, bool c) => (float[1, 4, 5, 3] y) {
  a = Transpose <perm = [0, 3, 1, 2]> (x)
  b = Relu (a)
  d = Transpose <perm = [0, 2, 3, 1]> (b)
  y = If (c) <
    then_branch = then () => (float[1, 4, 5, 3] p) { p = Identity (d) },
    else_branch = other () => (float[1, 4, 5, 3] q) {
      r = Transpose <perm = [0, 3, 1, 2]> (d)
      s = Transpose <perm = [0, 2, 3, 1]> (r)
      q = Neg (s)
    }
  >
}"""

PAGE = "Above.\n\n<!-- results -->\nold\n<!-- end of results -->\n\nBelow.\n"


def row(name: str, given: int, ours: int, other: int) -> dict[str, object]:
    """Return a measurement of a network that only one other optimiser takes."""
    return {
        "name": name,
        "nodes": 1234,
        "transposes": {"given": given, "layoutopt": ours, "onnxslim": other},
        "foreign": [],
        "failures": {},
        "status": "optimal",
        "seconds": 0.5,
        "peak_mb": 100.0,
        "difference": 0.0,
        "latency": 2.0,
        "latency_after": 1.0,
        "latency_ratio": 0.5,
    }


def test_forty_networks_or_more_with_names_of_their_own() -> None:
    """Both frameworks are there, with two exporters each."""
    found = exports()
    assert len({export.name for export in found}) == len(found) >= 40
    assert len({(export.framework, export.exporter) for export in found}) == 4


def test_networks_of_wheels_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wheels that are there are not downloaded; inputs are drawn, whatever sizes are open."""
    monkeypatch.setattr(packages, "PACKAGES", ("one-two==1.0", "other==2"))
    text = NETWORK.replace("float[1, 4, 5, 3] x", "float[N, 4, 5, 3] x")
    model = onnx.parser.parse_model(text).SerializeToString()
    (tmp_path / "wheels").mkdir()
    for wheel in ("one_two-1.0-py3-none-any.whl", "other-2-py3-none-any.whl"):
        with ZipFile(tmp_path / "wheels" / wheel, "w") as files:
            files.writestr("data/a-b.onnx", model)
    [found] = packages.shipped(tmp_path)
    assert found.name == "one_two-a_b-1.0"
    packages.write(found, tmp_path)
    assert counts(tmp_path / f"{found.name}.onnx") == (8, 4)
    assert np.load(tmp_path / f"{found.name}.npz")["x"].shape[1:] == (4, 5, 3)


def test_nodes_are_counted_in_graphs_inside_nodes(tmp_path: Path) -> None:
    """An If has branches with nodes of their own."""
    path = tmp_path / "network.onnx"
    onnx.save(onnx.parser.parse_model(NETWORK), path)
    assert counts(path) == (8, 4)


def test_a_network_is_measured(tmp_path: Path) -> None:
    """Each figure is there, and an optimiser that is known already is not asked again."""
    path = tmp_path / "network.onnx"
    onnx.save(onnx.parser.parse_model(NETWORK), path)
    x = np.arange(60, dtype=np.float32).reshape(1, 4, 5, 3)
    np.savez(path.with_suffix(".npz"), x=x, c=np.array(False))
    known = {"transposes": dict.fromkeys(OPTIMISERS, 7), "foreign": ["onnxslim"]}
    found = measured(path, tmp_path / "converted.onnx", known)
    assert found["failures"] == {}
    assert found["nodes"] == 8
    assert found["foreign"] == ["onnxslim"]
    assert found["transposes"] == {**known["transposes"], "given": 4, "layoutopt": 0}
    assert found["difference"] == 0
    assert found["status"] == "optimal"
    assert (
        min(found["latency"], found["latency_after"], found["latency_ratio"], found["seconds"]) > 0
    )


def test_what_fails_is_noted(tmp_path: Path) -> None:
    """A network that nobody can read has failures instead of figures."""
    path = tmp_path / "network.onnx"
    onnx.save(onnx.parser.parse_model(NETWORK.replace("Relu", "Unknown")), path)
    found = measured(path, tmp_path / "converted.onnx", {})
    assert "onnxruntime basic" in found["failures"]
    assert "onnxruntime basic" not in found["transposes"]


def test_the_page_tells_who_leaves_fewer() -> None:
    """The text around the table stays, and networks on which we are beaten are named."""
    rows = [row("keras-a-tf2onnx-17", 10, 2, 5), row("pytorch-b-dynamo-20", 4, 3, 2)]
    text = page(PAGE, rows, "versions")
    assert text.startswith("Above.\n\n<!-- results -->\n\n- 2 of 2 networks")
    assert text.endswith("Measured with versions.\n\n<!-- end of results -->\n\nBelow.\n")
    assert "14 transposes become 5" in summary(rows)
    assert (
        "leaves 7 and layoutopt 5: more in 1, fewer in 1; fewer with standard ops in pytorch-b-"
        in text
    )
    rows[1]["latency_ratio"] = 1.0501
    assert "2 with fewer transposes" in summary(rows)
    assert "1 became at least 5 % faster, and 1 at least 5 % slower." in summary(rows)
    rows[1]["latency_ratio"] = 0.5
    rows[1]["foreign"] = ["onnxslim"]
    assert "fewer in 1; fewer with standard ops in none." in summary(rows)
    assert "| 2 † |" in table(rows)
    wanted = (
        "| keras a | tf2onnx 17 | 1,234 | 10 | **2** | failed | 5 | failed | failed | optimal |"
    )
    assert f"{wanted} 0.50 | 100 | 0 | 2.00 | 1.00 | 0.50 |" in table(rows)
    assert page(page(PAGE, rows, "versions"), rows, "versions") == page(PAGE, rows, "versions")
    with pytest.raises(ValueError, match="no place"):
        page("Nothing.", rows, "versions")
