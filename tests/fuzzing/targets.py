"""What is fuzzed: each target takes the bytes of a file as far as the package takes them."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

from layoutopt.base.errors import InputError
from layoutopt.bench.analysis import contradictions, difference, summaries
from layoutopt.bench.row import EXPORTS
from layoutopt.bench.store import reading, writing
from layoutopt.bench.suite import read_suite
from layoutopt.certificate.conversion import verify
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.unwinding import check
from layoutopt.check.claims import violations
from layoutopt.cli import layouts as layout_commands
from layoutopt.conversion.cost_table import read_costs
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.rules.op import parse_operands
from layoutopt.converting import convert
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.certificate import document_of, read_certificate
from layoutopt.io.instance import instance_bytes, known_hash, parse_instance, tile_memory
from layoutopt.io.result import parse_document, result_bytes
from layoutopt.layout.descriptor import Descriptor
from layoutopt.layout.layout import DIALECTS, Layout
from layoutopt.layout.mapping import tile_mapping
from layoutopt.layout.permutations import parse_permutation
from layoutopt.lowering.assignment import evaluate
from layoutopt.onnx import read as reader
from layoutopt.onnx.read import read_attractions, read_network
from layoutopt.report.batch import bench_html
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import SOLVERS, unwind
from tests.fuzzing import seeds
from tests.fuzzing.mutations import Mutation, spoil_bytes, spoil_store, spoil_tree, spoil_words
from tests.fuzzing.networks import spoil_network

Run: TypeAlias = Callable[[bytes, Path], None]

LONGEST = 2000
"""Characters of the longest line that tells what is wrong."""

LIMIT = 0.5
"""Seconds that what can be read is solved for."""


@dataclass(frozen=True)
class Target:
    """What reads a file, and where files for it come from.

    Parameters
    ----------
    run
        Takes a file's bytes and a folder of its own.  It raises
        :class:`~layoutopt.base.errors.InputError` for bad input; anything else is a finding.
    seeds
        Returns good files.
    mutations
        How these are spoilt.
    """

    run: Run
    seeds: Callable[[], Iterable[bytes]]
    mutations: tuple[Mutation, ...]


@contextmanager
def refusals() -> Iterator[None]:
    """Take bad input for granted if one clear line says what is wrong."""
    try:
        yield
    except InputError as error:
        text = str(error)
        assert text.strip(), "the error says nothing"
        assert len(text.splitlines()) == 1, f"the error is more than a line: {text!r}"
        assert len(text) <= LONGEST, f"the error is {len(text)} characters long: {text[:200]}..."
        assert all(map(str.isprintable, text)), f"the error cannot be shown: {text!r}"


def instance(raw: bytes, folder: Path) -> None:
    """An instance: what is read is written and read again, solved, and its result checked."""
    graph = parse_instance(raw, "instance.json")
    written = instance_bytes(graph)
    assert instance_bytes(parse_instance(written)) == written
    _solve(graph)


def _solve(graph: Graph) -> None:
    result = unwind(graph, time_limit=LIMIT)
    document = parse_document(result_bytes(result))
    assert not list(violations(graph, document.result(), document.status, document.gap))


def result(raw: bytes, folder: Path) -> None:
    """A result: it is checked, and its layouts are scored, kept and improved."""
    document = parse_document(raw, "result.json")
    known: list[Graph] = [g for g in seeds.graphs() if g.name == document.instance]
    graph: GraphStore = [*known, *seeds.graphs()][0]
    found = document.result()
    with refusals():
        list(violations(graph, found, document.status, document.gap))
    if document.layouts is not None:
        with refusals():
            evaluate(graph, document.layouts)
        with refusals():
            unwind(graph, fixed=document.layouts, time_limit=LIMIT)
        with refusals():
            unwind(graph, start=document.layouts, time_limit=LIMIT)


def settings(raw: bytes, folder: Path) -> None:
    """Costs, attractions, a tile memory and a suite: every file is read as each of them."""
    path = folder / "settings.toml"
    path.write_bytes(raw)
    (folder / "a.json").write_bytes(seeds.any_instance())
    with refusals():
        read_attractions(path)
    with refusals():
        read_suite(path, lambda: SOLVERS)
    with refusals():
        costs = read_costs(path)
        (folder / "model.onnx").write_bytes(seeds.any_network())
        convert(folder / "model.onnx", costs=costs, time_limit=LIMIT)
    with refusals():
        graph = parse_instance(seeds.any_instance())
        graph.tile_memory = tile_memory(path)
        _solve(graph)


def store(raw: bytes, folder: Path) -> None:
    """A store of results: it is read, told, compared with itself, and added to."""
    path = folder / "store.sqlite"
    path.write_bytes(raw)
    with refusals(), reading(path) as opened:
        rows = opened.rows()
        opened.keys()
        opened.instances()
        summaries(rows)
        bench_html(rows)
        difference(rows, rows)
        list(contradictions(rows))
        for write in EXPORTS.values():
            write(rows)
    with refusals(), writing(path) as opened:
        opened.add(seeds.outcome())
        opened.rows()


def layout(raw: bytes, folder: Path) -> None:
    """Two layouts and a shape: all commands and all readers of layouts take them."""
    text, other, shape = (os.fsdecode(line) for line in (*raw.split(b"\n"), b"", b"")[:3])
    for read in (parse_desired, parse_operands, parse_permutation):
        with refusals():
            read(text)
    for dialect in (None, *DIALECTS):
        with refusals(), _utf8():
            layout_commands.parse(text, dialect)
        with refusals(), _utf8():
            layout_commands.convert(text, "tvm", dialect, other)
    with refusals(), _utf8():
        layout_commands.offsets(text, shape)
    with refusals(), _utf8():
        layout_commands.transform(text, other, shape)
    with refusals():
        sizes = [int(n) for n in shape.split(",") if n.isascii() and n.isdigit() and len(n) < 40]
        tile_mapping(text, sizes, TileMemory(16, 1024))
        Descriptor.from_layout(sizes, Layout.parse(text)).offsets()


@contextmanager
def _utf8() -> Iterator[None]:
    """Take what is printed as a terminal does that knows all characters."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield


def network(raw: bytes, folder: Path) -> None:
    """A network: it is read with and without training, and solved; nobody runs what it says."""
    path = _placed(raw, folder)
    with patch.object(reader, "MOST_ELEMENTS", -1):
        with refusals():
            read_network(path, training="momentum")
        _solve(read_network(path).graph)


def conversion(raw: bytes, folder: Path) -> None:
    """A network: it is converted, written, and read again with as much to do."""
    path, out = _placed(raw, folder), folder / "out.onnx"
    found = convert(path, time_limit=LIMIT)
    found.save(out, overwrite=True)
    again = convert(out, time_limit=LIMIT)
    assert again.before.transforms <= found.after.transforms


def _placed(raw: bytes, folder: Path) -> Path:
    """Write a network into a folder, with data beside it, and links that lead out of it."""
    inside, outside = folder / "inside", folder / "outside"
    path = inside / "model.onnx"
    if not inside.is_dir():
        inside.mkdir()
        outside.mkdir()
        (outside / "secret.bin").write_bytes(bytes(64))
        (inside / "weights.bin").write_bytes(bytes(64))
        (inside / "link.bin").symlink_to(outside / "secret.bin")
        (inside / "linked").symlink_to(outside)
    path.write_bytes(raw)
    return path


def certificate(raw: bytes, folder: Path) -> None:
    """A certificate: what it is accepted for is so, of an instance and of a small network."""
    path = folder / "certificate.json"
    path.write_bytes(raw)
    found = read_certificate(path)
    known = [g for g in seeds.graphs() if found.get("instance_hash") == known_hash(g)]
    graph = [*known, *seeds.graphs()][0]
    with suppress(Refused):
        verdict = check(document_of(graph), found)
        best = seeds.solved(graph).score
        assert best is not None
        assert verdict.score <= best <= verdict.bound
    with suppress(Refused):
        verify(seeds.network_stated(), found)
        assert found["bound"] <= seeds.network_claim()["score"] <= found["score"]


TEXT = (spoil_words, spoil_bytes)
JSON = (spoil_tree, *TEXT)


NETWORK = (spoil_network, spoil_bytes)

TARGETS: dict[str, Target] = {
    "instance": Target(instance, seeds.instances, JSON),
    "result": Target(result, seeds.results, JSON),
    "settings": Target(settings, seeds.settings, JSON),
    "store": Target(store, seeds.stores, (spoil_store, spoil_bytes)),
    "layout": Target(layout, seeds.layouts, TEXT),
    "network": Target(network, seeds.networks, NETWORK),
    "conversion": Target(conversion, seeds.networks, NETWORK),
    "certificate": Target(certificate, seeds.certificates, JSON),
}
"""Targets by name.  One more is one function and one line here."""
