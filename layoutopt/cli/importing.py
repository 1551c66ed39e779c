"""``layoutopt import``: the unwinding instance of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from layoutopt.base.errors import InputError
from layoutopt.cli import options
from layoutopt.cli.streams import write_graph


@options.grouped
def command(
    model: options.Model,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write (.json, .json.gz), - is standard output; by default beside the "
            "model.",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    quiet: options.Quiet = False,
) -> int:
    """Write an ONNX model as an unwinding instance."""
    from layoutopt.io.instance import check_name

    if model.suffix != ".onnx" and str(model) != "-":
        raise InputError("unknown file type; allowed: .onnx", file=str(model))
    own = "-".join(filter(None, (model.stem, reading.training)))
    beside = model.with_name(f"{own}.json") if str(model) != "-" else model
    target = beside if output is None else output
    options.check_target(target, overwrite)
    if str(target) != "-":
        check_name(target)
    graph, _ = reading.load(model)
    write_graph(graph, target, overwrite, quiet)
    return 0
