"""``layoutopt check``: results and certificates against their instance, from files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import options, proofs
from layoutopt.cli.streams import say
from layoutopt.cli.text import number

if TYPE_CHECKING:
    from layoutopt.graphs.store import Store
    from layoutopt.io.result import ResultDocument
    from layoutopt.result import UnwindingResult

VIOLATION = 1
SHOWN = 20


Result = Annotated[
    Path | None,
    typer.Argument(metavar="[RESULT]", help="A result (.json, .json.gz), or a converted network."),
]
Certificate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A certificate of `solve` or `convert`: prove the bound."),
]


def command(
    instance: options.InstancePath,
    result: Result = None,
    certificate: Certificate = None,
    attractions: options.Attractions = None,
    dim: options.Dim = None,
    training: options.Training = None,
    tiles: options.Tiles = None,
    barriers: options.Barriers = None,
    quiet: options.Quiet = False,
) -> int:
    """Recompute a result's score and rules, and what a certificate proves, with no solver.

    The exit code is 1 if anything in them is not so.
    """
    from layoutopt.graphs.hooking import heeded
    from layoutopt.io.result import read_result

    if result is None and certificate is None:
        raise typer.BadParameter("a RESULT is needed, or --certificate FILE")
    evidence = None if certificate is None else proofs.read(certificate)
    if evidence is not None and evidence.get("problem") == "conversion":
        return proofs.conversion(instance, result, evidence, certificate, quiet)
    loaded, _ = options.load(instance, attractions, dim, training, tiles)
    graph = heeded(loaded, barriers)
    claimed = None
    if result is not None:
        document = read_result(result)
        claimed = document.result()
        if not _holds(graph, document, claimed, result, quiet):
            return VIOLATION
    if evidence is not None:
        return proofs.unwinding(graph, claimed, evidence, certificate, quiet)
    return 0


def _holds(
    graph: Store, document: ResultDocument, claimed: UnwindingResult, path: Path, quiet: bool
) -> bool:
    """Hold a result against its instance, and tell what is found."""
    from layoutopt.check.claims import violations
    from layoutopt.io.hashes import check_hash

    check_hash(document.instance_hash, graph, str(path))
    broken = list(violations(graph, claimed, document.status, document.gap))
    for fault in broken[:SHOWN]:
        say(f"{path}: {fault}")
    if len(broken) > SHOWN:
        say(f"{path}: ... and {len(broken) - SHOWN} more")
    if not broken and not quiet:
        if claimed.infeasible:
            say(f"{path}: {_infeasible(graph)}")
        elif claimed.layouts is None:
            say(f"{path}: no layouts, and no claim is contradicted")
        else:
            say(f"{path}: legal; the layouts earn {number(claimed.score)}, as the result says")
    return not broken


def _infeasible(graph: Store) -> str:
    """Return what can be seen of a claim that nothing fits."""
    from layoutopt.check.occupancy import overfull

    why = overfull(graph)
    if why:
        return f"infeasible, as the result says: {why}"
    return (
        "the result says infeasible; that no way to pack the sinks fits cannot be seen from files"
    )
