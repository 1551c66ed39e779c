"""The curated instances and what is known of them: ``python -m benchmarks.instances``.

Writes the files of the sets that are made here, solves what the store (``--store FILE``) does not
know yet, one solve at a time, and writes each table that follows ``<!-- results: NAME -->`` in the
pages of ``instances/`` anew.  A best known score or bound may come from any solver.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from onnx import ModelProto

from benchmarks.cores import as_graph, dense
from benchmarks.measure import markdown
from benchmarks.results import SUITES, written
from benchmarks.tiled import TILED
from benchmarks.transposed import NETWORKS
from layoutopt.base.files import write_bytes
from layoutopt.base.numbers import number
from layoutopt.bench.executors import JobExecutor, Processes
from layoutopt.bench.row import Row
from layoutopt.bench.run import batch
from layoutopt.converting import convert
from layoutopt.generate.families import generate
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import write_instance

FOLDER = Path(__file__).parents[1] / "instances"

OVERRIDES = {"solvers": ("auto", "greedy0"), "time_limit": 300.0}

LARGE = ("networks", "transformers")
"""Suites of instances that are no files here."""

HEAD = ("instance", "sink elements", "classes", "greedy0", "best known", "bound")


@dataclass(frozen=True)
class Entry:
    """A file of a set: what stands beside it in the table, and who builds it."""

    told: str
    build: Callable[[], Graph]


def _family(family: str, **settings: str) -> Entry:
    words = [f" --set {name}={value}" for name, value in settings.items()]
    return Entry(f"`{family}{''.join(words)}`", partial(generate, family, settings))


def _core(nodes: int, labels: int, seed: int, *, signed: bool = False) -> Entry:
    told = f"{nodes} elements, {labels} locations, {'signed' if signed else 'positive'} values"

    def build() -> Graph:
        graph = as_graph(dense(nodes, labels, seed, signed=signed))
        graph.description = f"{told}, all pairs, seed {seed}"
        return graph

    return Entry(told, build)


def _sizes(name: str, seed: int, ops: int, size: int) -> Entry:
    return _family(name, seed=str(seed), ops=str(ops), size=str(size))


SETS: dict[str, dict[str, Entry]] = {
    "hard": {
        "dense-12x4.json": _core(12, 4, 0),
        "dense-16x4.json": _core(16, 4, 0),
        "dense-20x5.json": _core(20, 5, 0),
        "dense-24x6.json": _core(24, 6, 0),
        "dense-32x8.json": _core(32, 8, 0),
        "signed-12x3.json": _core(12, 3, 0, signed=True),
        "signed-12x4.json": _core(12, 4, 1, signed=True),
        "signed-16x4.json": _core(16, 4, 2, signed=True),
    },
    "random_views": {
        "views-16x8.json": _sizes("random-views", 0, 16, 8),
        "views-16x16.json": _sizes("random-views", 1, 16, 16),
        "views-64x8.json": _sizes("random-views", 2, 64, 8),
        "views-64x16.json": _sizes("random-views", 1, 64, 16),
        "views-128x8.json": _sizes("random-views", 0, 128, 8),
    },
    "training": {
        "gpt2-small-1.json.gz": _family("gpt2-small", layers="1"),
        "llama-7b-1.json.gz": _family("llama-7b", layers="1"),
        "resnet-50.json.gz": _family("resnet-50"),
        "transformer-flat.json.gz": _family("transformer", layers="4", width="64", flat="true"),
        "dense-layers.json.gz": _family("dense-layers", layers="4", width="64"),
    },
    "tiles": {
        f"{name}.json{'.gz' if name == 'transformer' else ''}": Entry(build().description, build)
        for name, build in TILED.items()
    },
}
"""The sets whose files are written here."""


def write_files(folder: Path) -> None:
    """Write the files of all sets."""
    for name, entries in SETS.items():
        (folder / name).mkdir(exist_ok=True)
        for file, entry in entries.items():
            write_instance(entry.build(), folder / name / file)
    (folder / "conversion").mkdir(exist_ok=True)
    for name, build in NETWORKS.items():
        write_bytes(folder / "conversion" / f"{name}.onnx", serialised(build()))


def serialised(model: ModelProto) -> bytes:
    """Return a network's bytes, equal ones for equal networks."""
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def known(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return by instance its cells under :data:`HEAD`: the best score and bound of any row."""
    every: dict[str, list[Row]] = {}
    for row in rows:
        every.setdefault(row.instance, []).append(row)
    return {name: _known(name, own) for name, own in every.items()}


def _known(name: str, rows: Sequence[Row]) -> list[str]:
    greedy = [row.score for row in rows if row.solver == "greedy0"]
    scores = [row.score for row in rows if row.score is not None]
    bounds = [row.bound for row in rows if row.bound is not None]
    sizes = [max(row.size.get(key, 0) for row in rows) for key in ("free_elements", "classes")]
    told = (greedy[0] if greedy else None, max(scores, default=None), min(bounds, default=None))
    return [
        name,
        *(f"{size:,}" for size in sizes),
        *("-" if x is None else number(x) for x in told),
    ]


def set_table(name: str, cells: Mapping[str, Sequence[str]]) -> str:
    """Return the table of a set whose files are written here."""
    lines = []
    for file, entry in SETS[name].items():
        _, *own = cells[f"{name}/{file.partition('.json')[0]}"]
        lines.append([f"`{file}`", entry.told, *own])
    return markdown(("file", "what", *HEAD[1:]), lines, left=2)


def conversions() -> str:
    """Return the table of networks with transposes."""
    head = ("file", "what", "nodes", "transforms", "bytes", "fewest", "their bytes", "status")
    lines = []
    for name, build in NETWORKS.items():
        model = build()
        result = convert(model)
        before, after = result.before, result.after
        told = (build.__doc__ or "").removeprefix("Return ").rstrip(".")
        counts = (len(model.graph.node), before.transforms, before.bytes)
        numbers = [f"{count:,}" for count in (*counts, after.transforms, after.bytes)]
        lines.append([f"`{name}.onnx`", told, *numbers, str(result.status)])
    return markdown(head, lines, left=2)


def tables(store: Path, executor: JobExecutor) -> dict[tuple[str, str], str]:
    """Return tables by folder and name, from a store that is completed first."""
    own = known(_rows([FOLDER], store, executor))
    large = {name: _rows([SUITES / f"{name}.toml"], store, executor) for name in LARGE}
    found = {(name, name): set_table(name, own) for name in SETS}
    found["conversion", "conversion"] = conversions()
    found["onnx", "networks"] = _plain(known(large["networks"]))
    found["training", "transformers"] = _plain(known(large["transformers"]))
    found["", "all"] = _plain(own | known([row for rows in large.values() for row in rows]))
    return found


def _rows(suites: Sequence[Path], store: Path, executor: JobExecutor) -> list[Row]:
    report = batch(suites, store, executor, overrides=OVERRIDES)
    if report.interrupted:
        raise KeyboardInterrupt
    return report.rows


def _plain(cells: Mapping[str, Sequence[str]]) -> str:
    return markdown(HEAD, [cells[name] for name in sorted(cells)])


def main() -> None:
    """Write files and tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("instances.sqlite"))
    given = parser.parse_args()
    write_files(FOLDER)
    with Processes(1) as executor:
        found = tables(given.store, executor)
    for (folder, name), table in found.items():
        page = FOLDER / folder / "README.md"
        page.write_text(written(page.read_text("utf-8"), name, table), encoding="utf-8")


if __name__ == "__main__":
    main()
