"""``layoutopt schema``: the JSON Schema of a file format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from layoutopt.cli import options
from layoutopt.cli.options import argument, option
from layoutopt.cli.streams import write_out


def command(
    which: Annotated[
        Literal["instance", "result", "network"],
        argument("instance|result|network", "File format; instance by default."),
    ] = "instance",
    output: Annotated[
        Path | None, option("FILE", "File to write; standard output by default.", "--output", "-o")
    ] = None,
    overwrite: options.Overwrite = False,
) -> int:
    """Write the JSON Schema (2020-12) of instance, result or network files."""
    import msgspec

    from layoutopt.io.instance import InstanceDocument
    from layoutopt.io.result import ResultDocument
    from layoutopt.network.document import NetworkDocument

    options.check_target(output, overwrite)
    documents = {"instance": InstanceDocument, "result": ResultDocument, "network": NetworkDocument}
    document: type = documents[which]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    text = msgspec.json.format(msgspec.json.encode(head | msgspec.json.schema(document)), indent=2)
    write_out(text + b"\n", output or Path("-"), overwrite)
    return 0
