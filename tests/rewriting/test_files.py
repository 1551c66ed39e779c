"""Networks in files: weights beside them, nothing half written, nothing read is replaced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.onnx.protobuf import load, write_proto
from layoutopt.onnx.running import largest_difference
from tests.rewriting.networks import network, values

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
    assert largest_difference(model(), read) < 1e-5


def test_weights_inside_stay_inside(tmp_path: Path) -> None:
    """A network in one file becomes one file."""
    layoutopt.convert(model()).save(tmp_path / "out.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]


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
    assert largest_difference(model(), load(tmp_path / "out.onnx").model) < 1e-5


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


def test_missing_weights_are_told_in_a_line(outside: Path) -> None:
    """The line names the network; one in memory must have its weights, too."""
    bare = onnx.load(outside, load_external_data=False)
    with pytest.raises(InputError, match="its weights are in files"):
        layoutopt.convert(bare)
    (outside.parent / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"net\.onnx: its weights cannot be read") as error:
        layoutopt.convert(outside)
    assert "\n" not in str(error.value)


def test_nothing_is_left_behind_where_writing_fails(tmp_path: Path) -> None:
    """Without a folder nothing is written, and the line says so."""
    with pytest.raises(InputError, match="cannot be written"):
        write_proto(model(), tmp_path / "none" / "out.onnx", {"w"})
    assert list(tmp_path.iterdir()) == []
