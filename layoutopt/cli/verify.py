"""``layoutopt verify``: a network's layouts that do not meet a backend's requirements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.base.errors import errors_at
from layoutopt.cli import options
from layoutopt.cli.streams import say, write_out

if TYPE_CHECKING:
    from layoutopt.conversion.requirements import Requirements
    from layoutopt.conversion.verify import Violation

FORMAT = "layoutopt/violations/1"
VIOLATION = 1


def command(
    model: options.Model,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="Backend: canonical, nchw, nhwc or blocked.")
    ],
    output: options.Output = None,
    json: options.Json = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> int:
    """List the layouts of a network that violate a backend's requirements.

    The exit code is 1 if there are any.
    """
    from layoutopt.base.files import encode_lines
    from layoutopt.conversion.backends import backend_named

    targets = {"--json": json}
    options.place_output(output, targets)
    options.check_targets(targets, overwrite)
    found = _violations(model, backend_named(backend))
    path = targets["--json"]
    if path is not None:
        rows = [{name: str(value) for name, value in vars(one).items()} for one in found]
        head = {"format": FORMAT, "model": str(model), "backend": backend}
        write_out(encode_lines({**head, "violations": rows}), path, overwrite)
    if not quiet and str(path) != "-":
        for violation in found:
            say(f"{model}: {violation}")
        if not found:
            say(f"{model}: all layouts meet the requirements of {backend}")
    return VIOLATION if found else 0


def _violations(model: Path, needs: Requirements) -> list[Violation]:
    from layoutopt.conversion.verify import verify
    from layoutopt.onnx.protobuf import parse_model
    from layoutopt.onnx.source import read_model

    with errors_at(file=str(model)):
        every = list(read_model(parse_model(model)).every())
    return [violation for one in every for violation in verify(one.graph, needs)]
