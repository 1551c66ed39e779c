"""``layoutopt check``: a result against its instance, from the files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import options
from layoutopt.cli.text import number

if TYPE_CHECKING:
    from layoutopt.graphs.store import Store

VIOLATION = 1
SHOWN = 20


def command(
    instance: options.InstancePath,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result (.json, .json.gz).")],
    attractions: options.Attractions = None,
    dim: options.Dim = None,
    training: options.Training = None,
    tiles: options.Tiles = None,
    barriers: options.Barriers = None,
    quiet: options.Quiet = False,
) -> int:
    """Recompute a result's score and rules, with no solver.

    The exit code is 1 if anything in the result is not so.
    """
    from layoutopt.check.claims import violations
    from layoutopt.graphs.hooking import heeded
    from layoutopt.io.result import read_result

    document = read_result(result)
    loaded, _ = options.load(instance, attractions, dim, training, tiles)
    claimed, graph = document.result(), heeded(loaded, barriers)
    broken = list(violations(graph, claimed, document.status, document.gap))
    for fault in broken[:SHOWN]:
        typer.echo(f"{result}: {fault}")
    if len(broken) > SHOWN:
        typer.echo(f"{result}: ... and {len(broken) - SHOWN} more")
    if broken:
        return VIOLATION
    if not quiet:
        if claimed.infeasible:
            typer.echo(f"{result}: {_infeasible(graph)}")
        elif claimed.layouts is None:
            typer.echo(f"{result}: no layouts, and no claim is contradicted")
        else:
            typer.echo(
                f"{result}: legal; the layouts earn {number(claimed.score)}, as the result says"
            )
    return 0


def _infeasible(graph: Store) -> str:
    """Return what can be seen of a claim that nothing fits."""
    from layoutopt.check.occupancy import overfull

    why = overfull(graph)
    if why:
        return f"infeasible, as the result says: {why}"
    return (
        "the result says infeasible; that no way to pack the sinks fits cannot be seen from files"
    )
