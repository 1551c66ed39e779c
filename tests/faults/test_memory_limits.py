"""``--memory-limit``: giants are refused or solved without their elements; searches stop."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

from layoutopt import Graph, write_instance
from layoutopt.generate.random_graphs import random_graph
from layoutopt.network import CostNetwork, Network, write
from tests.cli.conftest import Run
from tests.faults.support import files, ran

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").is_file(), reason="the limit is what Linux holds"
)


def saved(graph: Graph, folder: Path) -> Path:
    path = folder / f"{graph.name}.json"
    write_instance(graph, path)
    return path


def test_a_giant_that_is_regular_is_solved(tmp_path: Path) -> None:
    """10^12 elements would take terabytes; lifted, they take a limit of 512 MiB."""
    graph, shape = Graph("regular"), (10**6, 10**6)
    x = graph.sink(shape, name="x")
    graph.valued_pair(x, graph.source(shape, name="s"), 3)
    graph.valued_pair(x.T, graph.source(shape, name="t"), 2)
    path = saved(graph, tmp_path)
    found = ran("solve", path, "--memory-limit", "512M", "--json", "-", "--quiet")
    assert (found.code, json.loads(found.out)["score"]) == (0, 3 * 10**12)


def test_a_giant_without_structure_is_answered(tmp_path: Path) -> None:
    """Views that no structure is left of are laid out by greedy0, in little memory."""
    rows, columns = 10007, 1000900
    graph = Graph("irregular")
    x = graph.sink((rows * columns,), name="x")
    y = graph.reshape(graph.reshape(x, (rows, columns)).T, (rows * columns,))
    graph.valued_pair(x, y, 3)
    graph.valued_pair(y, graph.source(y.shape, name="s"), 2)
    path = saved(graph, tmp_path)
    found = ran("solve", path, "--memory-limit", "512M", "--json", tmp_path / "a.json")
    assert found.code == 0, found.err
    document = json.loads((tmp_path / "a.json").read_bytes())
    assert document["status"] == "feasible"
    assert document["layouts"]


@pytest.mark.parametrize("megabytes", [160, 190, 240])
def test_any_limit_ends_in_plain_words(megabytes: int, tmp_path: Path, hard: Path) -> None:
    """However little there is: an answer, or one line and no traceback, and nothing half done."""
    target = tmp_path / "a.json"
    words = "solve", hard, "--time-limit", 2, "--json", target, "--quiet"
    found = ran(*words, "--memory-limit", f"{megabytes}M")
    assert found.code in (0, 2, 4), found.err
    assert len(found.err.splitlines()) <= 1
    assert found.out == ""
    assert files(tmp_path) in ([], ["a.json"])
    if found.code == 0:
        assert json.loads(target.read_bytes())["layouts"]


def test_a_search_that_takes_all_memory_leaves_its_incumbent(tmp_path: Path) -> None:
    """A solver that runs out of memory is stopped; what it began with is the answer."""
    (tmp_path / "greedy.py").write_text(
        "import layoutopt\n"
        "@layoutopt.solver('eats')\n"
        "def eats(problem, limits, start):\n"
        "    kept = []\n"
        "    while True:\n"
        "        kept.append(bytearray(1 << 24))\n"
        "def build():\n"
        "    graph = layoutopt.Graph('eaten')\n"
        "    x = graph.sink((4,), name='x')\n"
        "    graph.valued_pair(x, graph.source((4,), name='s'), 2)\n"
        "    return graph\n"
    )
    words = "solve", "greedy:build", "--solver", "eats", "--memory-limit", "400M"
    found = ran(*words, "--json", "-", "--quiet", cwd=tmp_path)
    assert found.code == 0, found.err
    document = json.loads(found.out)
    assert (document["status"], document["score"], document["bound"]) == ("optimal", 8, 8)


@pytest.mark.parametrize(
    ("limit", "what"), [("256M", "reading the weights"), ("320M", "writing the new network")]
)
def test_weights_that_do_not_fit_are_refused(limit: str, what: str, tmp_path: Path) -> None:
    """Protobuf ends the process where it gets no memory, so that it is asked for in advance."""
    size, count, nodes, weights = 2048, 4, list[NodeProto](), list[TensorProto]()
    length = 4 * size**2
    for k in range(count):
        weights.append(TensorProto(name=f"w{k}", data_type=1, dims=[size, size], data_location=1))
        place = ("location", "w"), ("offset", k * length), ("length", length)
        for key, value in place:
            weights[k].external_data.add(key=key, value=str(value))
        nodes.append(helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"]))
    ends = [helper.make_tensor_value_info(f"x{k}", 1, ["n", size]) for k in (0, count)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, ir_version=8), tmp_path / "a.onnx")
    with (tmp_path / "w").open("wb") as file:
        file.truncate(count * length)
    words = "convert", "a.onnx", "-o", "b.onnx", "--quiet", "--memory-limit", limit
    found = ran(*words, cwd=tmp_path)
    assert (found.code, len(found.err.splitlines())) == (2, 1)
    assert f"a.onnx: {what} needs about 0.0938 GiB; the memory limit leaves" in found.err


def test_labels_are_written_without_memory_for_a_hash(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solution is not lost because the network is too large to be written for its hash."""

    def large(_: Network) -> bytes:
        raise MemoryError

    net, path = CostNetwork("one"), tmp_path / "one.json"
    net.node("a", net.domain(2), [2, 1])
    write(net, path)
    monkeypatch.setattr("layoutopt.network.certify.json_bytes", large)
    for command in ("solve", "compare"):
        found = run(command, path, "--json", "-", "--quiet")
        document = json.loads(found.out)
        own = document[0] if command == "compare" else document
        assert (own["network_hash"], own["objective"]) == (None, 1)


@pytest.mark.parametrize("command", ["solve", "compare", "explain", "convert"])
def test_wrong_limits_are_refused(command: str, easy: Path, run: Run) -> None:
    """A size that is none, or too small to begin, is one line that names the option."""
    more = ["--sink", "x"] if command == "explain" else []
    for size, why in (("much", "invalid size of memory"), ("1M", "is exceeded already")):
        found = run(command, easy, *more, "--memory-limit", size)
        assert found.code == 2
        assert found.err.startswith("layoutopt: --memory-limit: ")
        assert why in found.err
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY


def test_limits_of_workers(easy: Path, tmp_path: Path, run: Run) -> None:
    """Of a batch run the limit is one of each worker, and stands in the key of its rows."""
    store = tmp_path / "b.sqlite"
    words = "bench", easy, "--store", store, "--jobs", 1, "--solver", "auto", "--quiet"
    assert run(*words, "--memory-limit", "1G").code == 0
    found = run("bench", "export", store, "--format", "json")
    [row] = json.loads(found.out)["rows"]
    assert row["parameters"]["memory"] == 2**30


def test_graphs_of_all_kinds_under_a_limit(tmp_path: Path) -> None:
    """Results do not depend on a limit that suffices."""
    path = saved(random_graph(3), tmp_path)
    answers = []
    for more in ([], ["--memory-limit", "2G"]):
        found = ran("solve", path, "--json", "-", "--quiet", *more)
        document = json.loads(found.out)
        answers.append({key: document[key] for key in ("status", "score", "bound", "layouts")})
    assert answers[0] == answers[1]
