"""``layoutopt check``: a result against its instance, from the files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from layoutopt.cli import options
from layoutopt.cli.text import number

VIOLATION = 1
SHOWN = 20


def command(
    instance: options.InstancePath,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result (.json, .json.gz).")],
    attractions: options.Attractions = None,
    dim: options.Dim = None,
    quiet: options.Quiet = False,
) -> int:
    """Recompute a result's score and rules, with no solver.

    The exit code is 1 if anything in the result is not so.
    """
    from layoutopt.check.claims import violations
    from layoutopt.io.result import read_result

    document = read_result(result)
    graph, _ = options.load(instance, attractions, dim)
    claimed = document.result()
    broken = list(violations(graph, claimed, document.status, document.gap))
    for fault in broken[:SHOWN]:
        typer.echo(f"{result}: {fault}")
    if len(broken) > SHOWN:
        typer.echo(f"{result}: ... and {len(broken) - SHOWN} more")
    if broken:
        return VIOLATION
    if not quiet:
        if claimed.layouts is None:
            typer.echo(f"{result}: no layouts, and no claim is contradicted")
        else:
            typer.echo(
                f"{result}: legal; the layouts earn {number(claimed.score)}, as the result says"
            )
    return 0
