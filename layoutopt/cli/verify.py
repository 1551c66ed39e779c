"""``layoutopt verify``: a network's layouts that do not meet a backend's requirements."""

from __future__ import annotations

from typing import Annotated

from layoutopt.base.errors import errors_at
from layoutopt.cli import options
from layoutopt.cli.options import OutputFiles, option

FORMAT = "layoutopt/violations/1"


def command(
    model: options.Model,
    backend: Annotated[str, option("NAME", "Backend: canonical, nchw, nhwc or blocked.")],
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
    from layoutopt.conversion.verify import verify
    from layoutopt.onnx.protobuf import parse_model
    from layoutopt.onnx.source import read_model

    outputs = OutputFiles({"--json": json}, overwrite, quiet, output, [model])
    needs = backend_named(backend)
    with errors_at(file=str(model)):
        graph = read_model(parse_model(model)).graph
    found = verify(graph, needs)

    def document() -> bytes:
        rows = [{name: str(value) for name, value in vars(one).items()} for one in found]
        head = {"format": FORMAT, "model": str(model), "backend": backend}
        return encode_lines({**head, "violations": rows})

    lines = [*map(str, found)] or [f"all layouts meet the requirements of {backend}"]
    outputs.write({"--json": document}, lambda: "\n".join(f"{model}: {line}" for line in lines))
    return options.WRONG if found else 0
