"""Instance files, and the tile memories within."""

from __future__ import annotations

import gzip
import json
import tempfile
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from layoutopt.generate.random_graphs import random_graph
from layoutopt.io.instance import (
    OP_TYPES,
    instance_bytes,
    parse_instance,
    read_instance,
    tile_memory,
    write_instance,
)
from layoutopt.tiles.memory import PRESETS, TileMemory
from tests.faults.support import files
from tests.support import refused

# Instance files: exact round trips, and one clear line for everything that is wrong


SINK = {"id": "x", "type": "sink", "inputs": [], "shape": [2, 3]}
SOURCE = {"id": "s", "type": "source", "inputs": [], "shape": [2, 3]}


def document(*ops: dict[str, Any], pairs: Any = (), **head: Any) -> bytes:
    """Return an instance's bytes."""
    start = {"format": "layoutopt/unwinding/1", "ops": list(ops), "valued_pairs": list(pairs)}
    return json.dumps(start | head).encode()


def with_value(text: str) -> bytes:
    """Return an instance whose only value is written in the given way."""
    raw = document(SINK, SOURCE, pairs=[{"a": "x", "b": "s", "value": "HERE"}])
    return raw.replace(b'"HERE"', text.encode())


def test_random_graphs_round_trip() -> None:
    """What is written is read as the same graph, and written as the same bytes again."""
    for seed in range(150):
        graph = random_graph(seed, elements=12, ops=12, negative=seed % 2 == 0)
        raw = instance_bytes(graph)
        again = parse_instance(raw)
        assert again == graph
        assert again.shapes == graph.shapes
        assert again.op_inputs == graph.op_inputs
        assert instance_bytes(again) == raw
        assert json.loads(raw)["ops"][0]["type"] in OP_TYPES


@given(st.integers(-(10**30), 10**30), st.integers(-60, 60))
def test_values_round_trip_digit_by_digit(digits: int, places: int) -> None:
    """However a number is written, its value is kept exactly and written back exactly."""
    value = Decimal(digits).scaleb(-places)
    for text in (str(value), f"{value:f}", f"{value:e}"):
        graph = parse_instance(with_value(text))
        assert graph.pairs[0][2] == value
        assert parse_instance(instance_bytes(graph)).pairs == graph.pairs


def test_mappings_keep_their_types() -> None:
    """The integer 1 and the string "1" are two locations; large integers are exact."""
    where = [1, "1", 2**80, "", -1, 1]
    source = {"id": "s", "type": "source", "inputs": [], "shape": [6], "mapping": where}
    graph = parse_instance(document(source))
    assert list(graph.ops[0].mapping) == where
    assert parse_instance(instance_bytes(graph)) == graph


def test_files(tmp_path: Path) -> None:
    """Plain and packed files hold the same; packing is repeatable; nothing is left over."""
    graph = random_graph(3)
    plain, packed = tmp_path / "g.json", tmp_path / "g.json.gz"
    write_instance(graph, plain)
    write_instance(graph, str(packed))
    assert read_instance(plain) == read_instance(str(packed)) == graph
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes() == instance_bytes(graph)
    before = packed.read_bytes()
    write_instance(graph, packed)
    assert packed.read_bytes() == before
    with refused(f"{plain}: exists already"):
        write_instance(graph, plain, overwrite=False)
    assert files(tmp_path) == ["g.json", "g.json.gz"]


REFUSED = tomllib.loads((Path(__file__).parents[1] / "cases/instances.toml").read_text())["refused"]
BAD: list[tuple[bytes, str, str]] = [
    # bytes, place, reason
    (b"\x89PNG\r\n\x1a\n", "line 1, column 1", "is not JSON"),
    (b"[" * 10**5, "", "expected `object`, got `array`"),
    (with_value('"BAD"').replace(b"BAD", b"\xff"), "$.valued_pairs[0]", "must be a number, got"),
    (with_value("[" * 10**5 + "]" * 10**5), "", "nested too deeply"),
    (document(SINK, name="BAD").replace(b"BAD", b"\xff"), "", "is not JSON ('utf-8' codec"),
    (
        document(SOURCE | {"rule": {"kind": "k", "deep": "HERE"}}).replace(
            b'"HERE"', b"[" * 10**5 + b"]" * 10**5
        ),
        "",
        "the JSON is nested too deeply",
    ),
    *((text.encode(), place, reason) for text, place, reason in REFUSED),
]


def test_bad_documents_get_one_clear_line() -> None:
    """Every wrong document is refused with file, place and reason."""
    for raw, place, reason in BAD:
        with refused("some.json: " + place, reason):
            parse_instance(raw, "some.json")


def test_every_truncation_is_refused() -> None:
    """A file cut off anywhere is no instance."""
    raw = instance_bytes(random_graph(5)).rstrip()
    for end in range(0, len(raw), 3):
        with refused("cut.json: "):
            parse_instance(raw[:end], "cut.json")


@given(st.binary(max_size=60))
def test_random_bytes_are_refused(raw: bytes) -> None:
    """No bytes lead to anything but one line."""
    with refused("noise.json: "):
        parse_instance(raw, "noise.json")


@given(st.data())
def test_broken_instances_never_crash(data: st.DataObject) -> None:
    """One part of a good instance replaced by anything: a graph or one line, never more."""
    graph = json.loads(instance_bytes(random_graph(data.draw(st.integers(0, 30)))))
    junk = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=3),
        st.lists(st.integers(-3, 3), max_size=3),
        st.just({}),
    )
    entry = data.draw(st.sampled_from([*graph["ops"], *graph["valued_pairs"], graph]))
    entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(junk)
    raw = json.dumps(graph).encode()
    try:
        again = parse_instance(raw, "g.json")
    except ValueError:
        with refused("g.json: "):
            parse_instance(raw, "g.json")
    else:
        assert parse_instance(instance_bytes(again)) == again


def test_unreadable_files(tmp_path: Path) -> None:
    """Directories, missing files and broken archives are named, with what is wrong."""
    with refused(f"{tmp_path}: is a directory, not a file"):
        read_instance(tmp_path)
    with refused(f"{tmp_path / 'none.json'}: no such file"):
        read_instance(tmp_path / "none.json")
    with refused("no such file"):
        read_instance(tmp_path / "no" / "such.json")
    plain = tmp_path / "plain.json.gz"
    plain.write_bytes(instance_bytes(random_graph(1)))
    with refused(f"{plain}: is a damaged gzip file"):
        read_instance(plain)
    packed = tmp_path / "cut.json.gz"
    packed.write_bytes(gzip.compress(instance_bytes(random_graph(1)))[:-20])
    with refused(f"{packed}: is a damaged gzip file"):
        read_instance(packed)
    empty = tmp_path / "empty.json"
    empty.touch()
    with refused(f"{empty}: is empty, not JSON"):
        read_instance(empty)
    (tmp_path / "file").touch()
    with refused("cannot be read"):
        read_instance(tmp_path / "file" / "x.json")


def test_unwritable_files(tmp_path: Path) -> None:
    """Directories and places that do not exist are named."""
    for path in (tmp_path, tmp_path / "no" / "such.json"):
        with refused(f"{path}: cannot be written"):
            write_instance(random_graph(1), path)
    assert list(tmp_path.iterdir()) == []


# Tile memories by name and from files


def test_presets_and_files(tmp_path: Path) -> None:
    """A name gives the preset, a file what is in it, and overrides replace single fields."""
    assert tile_memory("ipu-mk2") == PRESETS["ipu-mk2"]
    assert tile_memory("ipu-mk1", grain=8) == TileMemory(1216, 262144, {}, 8, 4)
    path = tmp_path / "small.json"
    path.write_text('{"tiles": 4, "bytes_per_tile": 64, "element_bytes": {"w": 2}}')
    assert tile_memory(path) == TileMemory(4, 64, {"w": 2})
    assert tile_memory(str(path), element_bytes={}, tiles=3) == TileMemory(3, 64)


GOOD = {"tiles": 4, "bytes_per_tile": 64}


def memory_file(document: Any) -> TileMemory:
    """Return the tile memory of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bad.json")
        path.write_text(json.dumps(document))
        return tile_memory(path)
