"""Tile memories on the command line: ``--tiles``, ``--attractions cycles``, ``show --simulate``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from layoutopt import Graph, read, read_result, simulate, write_instance
from layoutopt.tiles.memory import PRESETS, TileMemory
from tests.cli.conftest import Run, unbind
from tests.cli.test_bad_input import refused
from tests.onnx.networks import model, node, save

MACHINE = TileMemory(4, 64, {"default": 2, "w": 8}, grain=2, exchange_bytes_per_cycle=16)


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """Return an instance without a tile memory: a weight with two targets, and a state."""
    graph = Graph("layer")
    w, m = graph.sink((8,), name="w"), graph.sink((8,), name="m")
    graph.sink((4,), name="bias")
    for name, tiles, value in [("s", [0, 0, 1, 1, 2, 2, 3, 3], 1), ("t", [0] * 4 + [1] * 4, 2)]:
        graph.valued_pair(w, graph.source((8,), tiles, name=name), value)
    graph.valued_pair(w, m, 1)
    path = tmp_path / "layer.json"
    write_instance(graph, path)
    return path


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a machine's file: room for six of the weight's elements on each of four tiles."""
    path = tmp_path / "machine.json"
    path.write_text(
        '{"tiles": 4, "bytes_per_tile": 64, "grain": 2, "exchange_bytes_per_cycle": 16, '
        '"element_bytes": {"default": 2, "w": 8}}'
    )
    return path


def test_solving_on_tiles(run: Run, layer: Path, machine: Path) -> None:
    """The better target and the state match everywhere, the other target at two elements."""
    ran = run("solve", layer, "--tiles", machine, "--json", "-", "--quiet")
    assert ran.code == 0
    assert json.loads(ran.out)["score"] == 8 * 2 + 8 + 2


@pytest.fixture
def solved(run: Run, layer: Path, machine: Path) -> Path:
    """Return the result of the layer on the machine, which takes the second target."""
    path = layer.with_name("result.json")
    assert run("solve", layer, "--tiles", machine, "--json", path, "--quiet").code == 0
    return path


def test_the_instances_own_memory_is_replaced(run: Run, layer: Path, machine: Path) -> None:
    """--tiles counts, also where an instance brings a machine."""
    graph = read(layer)
    graph.tile_memory = TileMemory(2, 8)
    own = layer.with_name("own.json")
    write_instance(graph, own)
    assert "tile 0 holds" not in run("solve", own, "--tiles", machine, "--quiet").err
    assert "4 of 64 bytes" in run("show", own, "--tiles", machine).out
    assert "4 of 64 bytes" in run("show", layer, "--tiles", machine).out
    assert "tiles" not in run("show", layer).out


def test_checking_needs_the_machine(run: Run, layer: Path, machine: Path, solved: Path) -> None:
    """A result is legal on its machine, and of no other; unbound, too large for a smaller one."""
    assert run("check", layer, solved, "--tiles", machine).code == 0
    machine.write_text(machine.read_text().replace('"bytes_per_tile": 64', '"bytes_per_tile": 9'))
    assert "$.instance_hash: belongs to another instance" in refused(
        run("check", layer, solved, "--tiles", machine)
    )
    unbind(solved)
    ran = run("check", layer, solved, "--tiles", machine)
    assert ran.code == 1
    assert "capacity: tile 0 holds" in ran.out


def test_values_in_cycles(run: Run, layer: Path, machine: Path) -> None:
    """An element of the weight, 8 bytes, costs half a cycle, whatever the values were."""
    words = ["--tiles", machine, "--attractions", "cycles"]
    ran = run("solve", layer, *words, "--json", "-", "--quiet")
    document = json.loads(ran.out)
    assert [pair["value"] for pair in document["pairs"]] == [0.5, 0.5, 0.5]
    assert document["score"] == 0.5 * (8 + 8 + 2)
    ran = run("compare", layer, *words, "--solver", "cpsat", "--json", "-")
    assert json.loads(ran.out)[0]["score"] == document["score"]


def test_an_instance_on_tiles(run: Run, layer: Path, machine: Path) -> None:
    """The machine, what all sinks take of it, and which weigh most."""
    ran = run("show", layer, "--tiles", machine)
    assert [" ".join(line.split()) for line in ran.out.splitlines()[4:10]] == [
        "tiles 4 of 64 bytes",
        "sinks 88 bytes of 256 (34.38%)",
        "grain 2 elements",
        "heaviest w: 64 bytes (25.00%)",
        "m: 16 bytes (6.25%)",
        "bias: 8 bytes (3.12%)",
    ]
    assert (
        f"{PRESETS['ipu-mk2'].tiles:,} of 638,976 bytes"
        in run("show", layer, "--tiles", "ipu-mk2").out
    )


def test_a_result_on_tiles(run: Run, layer: Path, machine: Path, solved: Path) -> None:
    """How full tiles are is told with the machine; --simulate adds what moves."""
    words = ["show", solved, "--instance", layer, "--tiles", machine]
    ran = run(*words)
    assert "88 bytes of 256 (34.38%), 168 free" in ran.out
    assert "22.0 bytes on average, at most" in ran.out
    assert "cycles" not in ran.out
    more = run(*words, "--simulate").out
    assert more.startswith(ran.out)
    graph = read(layer)
    graph.tile_memory = MACHINE
    found = simulate(graph, read_result(solved))
    assert found.bytes == 6 * 8
    assert f"exchanged      {found.bytes} bytes in 1 phases" in more
    assert f"cycles         {found.cycles}" in more
    assert more.count("fullest tiles") == 1
    assert "fullest tiles" not in run("show", solved).out


@pytest.mark.parametrize("by", ["bytes", "tensor"])
def test_tiles_are_drawn(run: Run, layer: Path, machine: Path, solved: Path, by: str) -> None:
    """--by chooses what the picture colours; a page has both, with all numbers."""
    words = ["show", solved, "--instance", layer, "--tiles", machine]
    graph = read(layer)
    graph.tile_memory = MACHINE
    found = simulate(graph, read_result(solved))
    assert run(*words, "--svg", "-", "--by", by).out == f"{found.draw(by)}\n"
    page = layer.with_name("page.html")
    more = ["--html", page, "--svg", layer.with_name("tiles.svg"), "--by", by]
    assert run(*words, *more).code == 0
    assert str(found.draw(by)) in page.read_text()
    assert all(f">{told}<" in page.read_text() for _, told in found.rows())


def test_elements_are_coloured_by_tile(run: Run, layer: Path, machine: Path, solved: Path) -> None:
    """The usual picture, too, knows tiles: equal ones have equal colours in all tensors."""
    ran = run("show", solved, "--instance", layer, "--tiles", machine, "--svg", "-")
    fills: dict[str, set[str]] = {}
    for rect in ElementTree.fromstring(ran.out).iter("{http://www.w3.org/2000/svg}rect"):
        for tip in rect:
            if ": at tile " in str(tip.text):
                fills.setdefault(str(tip.text).partition(": at ")[2], set()).add(
                    str(rect.get("fill"))
                )
    assert {"tile 0", "tile 1", "tile 2", "tile 3"} == fills.keys()
    assert all(len(colours) == 1 for colours in fills.values())
    assert len(set.union(*fills.values())) == 4


def test_networks_on_tiles(run: Run, tmp_path: Path, machine: Path) -> None:
    """What is imported with a machine keeps it, and values in cycles; all commands take both."""
    constants = {"w": np.zeros((3, 4), np.float32)}
    network = save(model([node("MatMul", "x w")], {"x": (2, 3)}, constants=constants), tmp_path)
    words = ["--tiles", machine, "--attractions", "cycles", "--training", "sgd"]
    assert run("import", network, *words).code == 0
    instance = read(network.with_name("net-sgd.json"))
    assert instance.tile_memory == MACHINE
    assert {str(pair.value) for pair in instance.valued_pairs()} == {"0.125", "0.5"}
    ran = run("compare", network, network.with_name("net-sgd.json"), *words, "--json", "-")
    plain, on_file = json.loads(ran.out)[1::2]
    assert plain["score"] == on_file["score"]


def test_bad_usage(run: Run, layer: Path, machine: Path, solved: Path) -> None:
    """Unknown machines, machines where none is, and pictures of what is not there."""
    on = ["--instance", layer, "--tiles", machine]
    for words, told in [
        (["solve", layer, "--tiles", "ipu"], "known: ipu-mk1, ipu-mk2, or a JSON file"),
        (["solve", layer, "--tiles", "none.json"], "none.json: no such file"),
        (["check", layer, solved, "--tiles", layer], "layer.json"),
        (["compare", layer, "--tiles", "ipu"], "known: ipu-mk1"),
        (["solve", layer, "--attractions", "cycles"], "layer.json: has no tile memory"),
        (["solve", layer, "--tiles", machine, "--attractions", "x.toml"], ".onnx"),
        (["show", layer, "--simulate", "--tiles", machine], "--simulate requires a RESULT"),
        (["show", solved, "--simulate"], "give it by --instance INSTANCE"),
        (["show", solved, "--tiles", machine], "give it by --instance INSTANCE"),
        (["show", solved, "--instance", layer], "no tile memory; give one by --tiles"),
        (["show", solved, *on, "--by", "bytes"], "--by bytes requires --svg FILE"),
        (["show", solved, *on, "--svg", "-", "--by", "size"], "'size'"),
        (["show", layer, "--tiles", machine, "--svg", "-", "--by", "tensor"], "tensor requires"),
    ]:
        assert told in refused(run(*words)), words


def test_results_without_tiles_cannot_be_simulated(run: Run, layer: Path) -> None:
    """Without a machine there is nothing to simulate."""
    path = layer.with_name("plain.json")
    assert run("solve", layer, "--json", path, "--quiet").code == 0
    line = refused(run("show", path, "--instance", layer, "--simulate"))
    assert "--simulate requires a tile memory; give one by --tiles PRESET|FILE" in line


def test_rules_that_do_not_fit(run: Run, tmp_path: Path, machine: Path) -> None:
    """A rule of another shape is one line that names the op."""
    graph = Graph("ruled")
    s = graph.source((4, 4), rule={"kind": "grid", "blocks": [2]}, name="s")
    graph.valued_pair(graph.sink((4, 4), name="x"), s, 1)
    path = tmp_path / "ruled.json"
    write_instance(graph, path)
    for command in ("solve", "show"):
        line = refused(run(command, path, "--tiles", machine))
        assert "op 's': rule 'grid': blocks has 1 entries" in line
