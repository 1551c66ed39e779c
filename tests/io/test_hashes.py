"""Equal instances have equal hashes, however they are written; others have others."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

from layoutopt.base.files import digest
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import (
    check_hash,
    instance_bytes,
    instance_hash,
    known_hash,
    parse_instance,
    read_instance,
)
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.support import refused

MACHINE = {"tiles": 4, "bytes_per_tile": 64}
OPS: list[dict[str, Any]] = [
    {"id": "x", "type": "sink", "inputs": [], "shape": [2, 3]},
    {"id": "s", "type": "source", "inputs": [], "shape": [3, 2], "rule": {"kind": "r", "a": [1]}},
    {"id": "t", "type": "dim_shuffle", "inputs": ["x"], "permutation": [1, 0]},
    {"id": "b", "type": "barrier", "inputs": ["x:0", "s"], "shape": [2]},
]
PAIRS = [{"a": "t", "b": "s", "value": 9}]
DOCUMENT: dict[str, Any] = {
    "format": "layoutopt/unwinding/1",
    "name": "one",
    "ops": OPS,
    "valued_pairs": PAIRS,
    "tile_memory": MACHINE,
}


def hash_of(document: dict[str, Any]) -> str:
    """Return the hash of an instance by its document."""
    return instance_hash(parse_instance(json.dumps(document).encode()))


def with_op(number: int, **members: Any) -> dict[str, Any]:
    """Return the document with some members of an op set."""
    ops = [op | members if i == number else op for i, op in enumerate(OPS)]
    return DOCUMENT | {"ops": ops}


def backwards(value: Any) -> Any:
    """Return a document whose objects have their keys in the opposite order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(each) for each in value] if isinstance(value, list) else value


def test_the_hash_is_that_of_the_documented_text() -> None:
    """The digest is of the text in ``docs/reproducibility.md``, here by hand."""
    text = (
        '{"format":"layoutopt/unwinding/1","ops":['
        '["x","sink",[],[[2,3]],{}],'
        '["s","source",[],[[3,2]],{"rule":{"a":[1],"kind":"r"}}],'
        '["t","dim_shuffle",["x"],[[3,2]],{"permutation":[1,0]}],'
        '["b","barrier",["x","s"],[[2]],{}]],'
        '"tile_memory":{"bytes_per_tile":64,"element_bytes":{"default":4},'
        '"exchange_bytes_per_cycle":4,"grain":1,"tiles":4},'
        '"valued_pairs":[["t","s","9"]]}'
    )
    assert hash_of(DOCUMENT) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


OTHERS = {
    "pair order": DOCUMENT | {"valued_pairs": [{"a": "s", "b": "t", "value": 9}]},
    "pair twice": DOCUMENT | {"valued_pairs": PAIRS * 2},
    "no pair": DOCUMENT | {"valued_pairs": []},
    "op order": DOCUMENT | {"ops": [OPS[1], OPS[0], *OPS[2:]]},
    "op less": DOCUMENT | {"ops": OPS[:3]},
    "shape": with_op(3, shape=[1]),
    "type": with_op(3, type="fixed_point"),
    "hook": with_op(3, hook="reduce"),
    "inputs": with_op(3, inputs=["s", "x"]),
    "id": with_op(3, id="c"),
    "rule": with_op(1, rule={"kind": "r", "a": [2]}),
    "no rule": DOCUMENT | {"ops": [OPS[0], {k: OPS[1][k] for k in list(OPS[1])[:4]}, *OPS[2:]]},
    "no memory": {k: v for k, v in DOCUMENT.items() if k != "tile_memory"},
} | {
    name: DOCUMENT | {"tile_memory": MACHINE | {name: value}}
    for name, value in {
        "tiles": 5,
        "bytes_per_tile": 65,
        "grain": 2,
        "exchange_bytes_per_cycle": 5,
        "element_bytes": {"default": 2},
    }.items()
}


def test_other_instances_have_other_hashes() -> None:
    """Whatever changes ops, pairs or machine changes the hash."""
    found = {name: hash_of(document) for name, document in OTHERS.items()}
    found["itself"] = hash_of(DOCUMENT)
    assert len(set(found.values())) == len(found)


def test_files_hash_as_the_graphs_that_they_hold(tmp_path: Path) -> None:
    """Random graphs keep their hash through files, packed or not, and no two share one."""
    seen = set()
    for seed in range(40):
        graph = random_graph(seed, elements=12, ops=12, negative=True)
        plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
        raw = instance_bytes(graph)
        plain.write_bytes(json.dumps(json.loads(raw), indent=4).encode())
        packed.write_bytes(gzip.compress(raw))
        assert instance_hash(read_instance(packed)) == instance_hash(graph)
        if "." not in raw.decode():  # json would round long values
            assert instance_hash(read_instance(plain)) == instance_hash(graph)
        seen.add(instance_hash(graph))
    assert len(seen) == 40


def test_what_no_file_can_hold_has_no_hash() -> None:
    """A rule of one's own may take a function; such a graph is solved, and has no hash."""
    graph = Graph()
    s = graph.source((2,), rule={"kind": "linear", "how": print}, name="s")
    graph.valued_pair(graph.sink((2,), name="x"), s, 1)
    with refused("cannot be written as JSON"):
        instance_hash(graph)
    with refused("builtin_function_or_method is not supported by JSON"):
        instance_bytes(graph)
    assert known_hash(graph) is None
    result = unwind(graph)
    assert (result.score, result.instance_hash) == (2, None)
    other = digest([1])
    with refused("a.json: $.instance_hash", f"hash {other[:15]}..., expected none"):
        check_hash(other, graph, "a.json")


def test_numbers_of_numpy_are_numbers() -> None:
    """A rule that is given in Python may hold NumPy's numbers and arrays."""
    import numpy as np

    graphs = [Graph(), Graph()]
    for graph, blocks in zip(graphs, (np.array([2, 1]), [2, 1]), strict=True):
        graph.source((2, 2), rule={"kind": "grid", "blocks": blocks}, name="s")
    assert instance_hash(graphs[0]) == instance_hash(graphs[1])
    assert instance_bytes(graphs[0]) == instance_bytes(graphs[1])


def test_a_result_has_the_hash_of_what_was_solved() -> None:
    """Where hooks are ignored, the graph without them was solved."""
    graph = Graph()
    x = graph.sink((2, 2), name="x")
    graph.valued_pair(graph.barrier([x], (2,), hook="reduce"), graph.source((2,)), 1)
    graph.tile_memory = TileMemory(2, 64)
    obeyed, ignored = unwind(graph), unwind(graph, barriers="opaque")
    assert obeyed.instance_hash == instance_hash(graph)
    assert ignored.instance_hash == instance_hash(ignored.graph) != obeyed.instance_hash


def test_names_beyond_unicode_can_be_hashed() -> None:
    """A lone surrogate, which no UTF-8 can hold, is a name like any other."""
    graph = Graph()
    graph.sink((1,), name="\ud800")
    assert instance_hash(graph).startswith("sha256:")
