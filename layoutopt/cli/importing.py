"""``layoutopt import``: the unwinding instance of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from layoutopt.base.errors import InputError
from layoutopt.cli import options
from layoutopt.cli.options import option


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
    options.check_instance(target, overwrite)
    options.write_instance(reading.load(model)[0], target, overwrite, quiet)
    return 0
