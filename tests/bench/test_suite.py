from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutopt.bench.job import InstanceSource, Solve, document_hash, identity, load
from layoutopt.bench.suite import read_suite
from layoutopt.generate.families import generate
from layoutopt.io.instance import write_instance
from layoutopt.onnx.protobuf import write_proto
from tests.bench.support import pair_graph
from tests.onnx.networks import model, node
from tests.support import refused

CASES = Path(__file__).parents[1] / "cases"


def known() -> tuple[str, ...]:
    return "auto", "cpsat", "greedy0"


def suite(folder: Path, text: str, **wishes: Any) -> Any:
    path = folder / "suite.toml"
    path.write_text(text)
    return read_suite(path, known, **wishes)


def instances(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_instance(pair_graph(), path)


def test_a_folder_is_all_its_instances(tmp_path: Path) -> None:
    """Files of instances at any depth are found, others not, and named by their path."""
    instances(tmp_path, "b.json", "deep/er/a.json.gz")
    (tmp_path / "net.onnx").write_bytes(b"")
    (tmp_path / "README.md").write_text("none")
    found = read_suite(tmp_path, known)
    assert [source.name for source in found.sources] == ["b", "deep/er/a", "net"]
    assert [solve.solver for solve in found.solves] == ["auto", "greedy0"]
    assert found.solves[0] == Solve("auto", 60.0)


def test_a_single_instance_is_a_suite(tmp_path: Path) -> None:
    """A file whose name would be a pattern is taken by its name."""
    instances(tmp_path, "a[1].json", "a1.json")
    [source] = read_suite(tmp_path / "a[1].json", known).sources
    assert source.name == "a[1]"


def test_a_suite_file_says_it_all(tmp_path: Path) -> None:
    """Patterns, options, families and seeds become sources, and limits become solves."""
    instances(tmp_path, "in/x.json", "in/y.json", "z.json")
    (tmp_path / "net.onnx").write_bytes(b"")
    found = suite(tmp_path, (CASES / "whole_suite.toml").read_text())
    assert (found.name, found.grace) == ("mine", 1.5)
    assert [source.name for source in found.sources] == [
        *("in/x", "in/y", "z+adam+ipu-mk2", "net+adam+ipu-mk2"),
        *("random-seed=7-elements=4-barriers=false", "random-seed=9-elements=4-barriers=false"),
        "resnet-blocks=1,2",
    ]
    z, net = found.sources[2:4]
    assert (z.training, z.dims, z.tiles) == ("", (), "ipu-mk2")  # an instance has no such options
    assert (net.training, net.dims) == ("adam", (("batch", 2),))
    order = [(solve.repeat, solve.seed, solve.solver) for solve in found.solves]
    assert order == [(r, s, name) for r in (0, 1) for s in (3, 4) for name in ("auto", "greedy0")]
    assert set(found.solves[0].parameters.items()) == {
        *(("time_limit", 2.0), ("gap", 0.01), ("workers", 2), ("memory", 3 << 29))
    }


def test_wishes_are_checked_like_entries(tmp_path: Path) -> None:
    """A wish that no file could hold is refused, too."""
    for wishes, part in (
        ({"time_limit": 1e7}, "suite.time_limit"),
        ({"repeats": 0}, "suite.repeats"),
        ({"limit": 3}, "unknown field `limit`"),
    ):
        with refused(part):
            suite(tmp_path, FAMILY, **wishes)


def test_families_are_called_as_generate_calls_them(tmp_path: Path) -> None:
    """The name of a generated instance is known without generating it."""
    text = '[[family]]\nname = "random"\nparameters = { ops = 3, negative = true }\nseeds = "0..1"'
    for source in suite(tmp_path, text).sources:
        assert source.name == generate("random", dict(source.settings)).name


@pytest.mark.parametrize("share", ["0.5", "1"])
def test_parameters_may_be_shares(tmp_path: Path, share: str) -> None:
    """A parameter that is no whole number is taken, and may be written as one."""
    [source] = suite(tmp_path, FAMILY + f"parameters = {{ empty = {share} }}").sources
    assert source.name == f"random-empty={float(share)}"
    assert load(source).name == source.name


FAMILY = '[[family]]\nname = "random"\n'
WRONG = tomllib.loads((CASES / "suites.toml").read_text())


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_told_with_file_and_place(tmp_path: Path, case: str) -> None:
    """Each mistake is one line that names the file, the place in it, and what is allowed."""
    for name in ("m.onnx", "n.cfn"):
        (tmp_path / name).touch()
    file = "" if case == "no attractions" else str(tmp_path / "suite.toml")
    with refused(file, *WRONG[case]["told"]):
        suite(tmp_path, WRONG[case]["text"])


def test_what_is_no_suite_is_refused(tmp_path: Path) -> None:
    """A missing file, one of another kind, and an empty folder are refused by name."""
    for name in ("missing.toml", "missing", "missing.json"):
        with refused(name):
            read_suite(tmp_path / name, known)
    with refused(str(tmp_path), "no instance fits"):
        read_suite(tmp_path, known)
    (tmp_path / "notes.txt").write_text("")
    with refused("notes.txt", "a folder, a suite (.toml) and an instance"):
        read_suite(tmp_path / "notes.txt", known)


def test_the_hash_is_of_the_content() -> None:
    """The description does not matter to the hash of a graph; name, values and ops do."""
    graph = pair_graph()
    first = document_hash(graph)
    assert graph.description == "two sources"
    graph.description = "another"
    assert document_hash(graph) == first
    assert document_hash(pair_graph(name="other")) != first
    assert document_hash(pair_graph(value=4)) != first


def test_the_identity_of_a_file_is_its_content(tmp_path: Path) -> None:
    """Files of equal bytes have equal identities; other bytes, options and versions others."""
    instances(tmp_path, "a.json", "b/c.json")
    a, c = (
        InstanceSource("a", str(tmp_path / "a.json")),
        InstanceSource("c", str(tmp_path / "b/c.json")),
    )
    assert identity(a, "1") == identity(c, "1")
    others = {identity(a, "2"), identity(InstanceSource("a", a.path, tiles="ipu-mk2"), "1")}
    write_instance(pair_graph(value=7), c.path)
    others |= {identity(c, "1"), identity(InstanceSource("a", a.path, training="adam"), "1")}
    assert len(others | {identity(a, "1")}) == 5


@pytest.mark.parametrize("name", ["net", "n" * 200])
def test_the_identity_of_a_model_is_also_that_of_its_weights(name: str, tmp_path: Path) -> None:
    """Files of weights beside a model enter by their content, which may be sizes of tensors."""
    network = model([node("Add", "x w")], {"x": (2, 3)}, constants={"w": np.ones((2, 3))})
    path = tmp_path / f"{name}.onnx"
    write_proto(network, path, outside=["w"])
    source = InstanceSource("net", str(path))
    before = identity(source, "1")
    assert identity(source, "1") == before
    (tmp_path / f"{name}.onnx.data").write_bytes(bytes(24))
    assert identity(source, "1") != before


def test_the_identity_of_a_family_is_its_settings() -> None:
    """Names of tables do not matter, settings do."""
    one = InstanceSource("x", family="random", settings=(("seed", "1"),))
    assert identity(one, "1") == identity(
        InstanceSource("y", family="random", settings=(("seed", "1"),)), "1"
    )
    assert identity(one, "1") != identity(
        InstanceSource("x", family="random", settings=(("seed", "2"),)), "1"
    )


def test_sources_make_their_graphs(tmp_path: Path) -> None:
    """A source makes the graph of its file or family, on the tile memory that it names."""
    instances(tmp_path, "a.json")
    assert load(InstanceSource("a", str(tmp_path / "a.json"))).name == "pair"
    graph = load(InstanceSource("r", family="random", settings=(("seed", "5"),), tiles="ipu-mk2"))
    assert graph.name == "random-seed=5"
    assert graph.tile_memory is not None
