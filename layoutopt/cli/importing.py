"""``layoutopt import``: the unwinding instance of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from layoutopt.base.errors import InputError
from layoutopt.cli import options
from layoutopt.cli.options import option
from layoutopt.cli.streams import say, write_out

if TYPE_CHECKING:
    from layoutopt.graphs.unwinding import Graph


@options.grouped
def command(
    model: options.Model,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "File to write (.json, .json.gz), - is standard output; by default beside the model.",
            "--output",
            "-o",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    quiet: options.Quiet = False,
) -> int:
    """Write an ONNX model as an unwinding instance."""
    if model.suffix != ".onnx" and str(model) != "-":
        raise InputError("unknown file type; allowed: .onnx", file=str(model))
    own = "-".join(filter(None, (model.stem, reading.training)))
    beside = model.with_name(f"{own}.json") if str(model) != "-" else model
    target = beside if output is None else output
    check_graph_target(target, overwrite)
    write_graph(reading.load(model)[0], target, overwrite, quiet)
    return 0


def check_graph_target(target: Path, overwrite: bool) -> None:
    """Refuse instance files that cannot or must not be written."""
    from layoutopt.io.instance import check_name

    options.check_target(target, overwrite)
    if str(target) != "-":
        check_name(target)


def write_graph(graph: Graph, target: Path, overwrite: bool, quiet: bool) -> None:
    """Write an instance file, and print its size unless the file is standard output."""
    from layoutopt.io.instance import instance_bytes, write_instance

    if str(target) == "-":
        write_out(instance_bytes(graph), target, overwrite)
        return
    write_instance(graph, target, overwrite=overwrite)
    if not quiet:
        free = sum(t.size for t in graph.sinks())
        say(f"{target}: {len(graph.ops):,} ops, {len(graph.pairs):,} pairs, {free:,} free")
