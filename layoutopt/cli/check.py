"""``layoutopt check``: results and certificates against their instance, from files alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutopt.cli import clock, options, proofs
from layoutopt.cli.streams import note, say
from layoutopt.cli.text import number

if TYPE_CHECKING:
    from layoutopt.graphs.store import GraphStore
    from layoutopt.io.result import ResultDocument
    from layoutopt.result import UnwindingResult

VIOLATION, UNTOLD = 1, 4
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
    time_limit: options.TimeLimit = None,
    memory_limit: options.MemoryLimit = None,
    quiet: options.Quiet = False,
) -> int:
    """Recompute a result's score and rules, and what a certificate proves, with no solver.

    The exit code is 1 if anything in them is not so, and 4 if time or memory runs out before that
    can be told.
    """
    from layoutopt.alarm import bounded
    from layoutopt.limits import limited

    if result is None and certificate is None:
        raise typer.BadParameter("a RESULT is needed, or --certificate FILE")
    options.check_limits(time_limit, 0.0, 1)
    limits = limited(clock.left(time_limit))
    options.limit_memory(memory_limit)

    def load() -> GraphStore:
        return options.load(instance, attractions, dim, training, tiles)[0]

    def work() -> int:
        return _checked(instance, result, certificate, load, barriers, quiet)

    try:
        return bounded(work, lambda: limits.over)
    except TimeoutError:
        note(f"layoutopt: {certificate or result}: not checked to the end: {limits.stopped}")
        return UNTOLD


def _checked(
    instance: Path,
    result: Path | None,
    certificate: Path | None,
    load: Callable[[], GraphStore],
    barriers: str | None,
    quiet: bool,
) -> int:
    """Check a result and a certificate, whichever there is; return the exit code."""
    from layoutopt.graphs.hooking import heeded
    from layoutopt.io.result import read_document

    evidence = None if certificate is None else proofs.read(certificate)
    if evidence is not None and evidence.get("problem") == "conversion":
        return proofs.conversion(instance, result, evidence, certificate, quiet)
    graph = heeded(load(), barriers)
    claimed = None
    if result is not None:
        document = read_document(result)
        claimed = document.result()
        if not _holds(graph, document, claimed, result, quiet):
            return VIOLATION
        if evidence is None and claimed.bound is not None and not quiet:
            say(f"{result}: {_unproved(claimed)}")
    if evidence is not None:
        return proofs.unwinding(graph, claimed, evidence, certificate, quiet)
    return 0


def _holds(
    graph: GraphStore, document: ResultDocument, claimed: UnwindingResult, path: Path, quiet: bool
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


def _unproved(claimed: UnwindingResult) -> str:
    """Return which claims of a result cannot be checked without a certificate."""
    from layoutopt.result import Status

    what = f"bound {number(claimed.bound)}"
    if claimed.status is Status.OPTIMAL:
        what = f"status optimal and {what}"
    return f"not checked: {what}; what `solve --certificate` writes lets `check` prove that"


def _infeasible(graph: GraphStore) -> str:
    """Return what can be seen of a claim that nothing fits."""
    from layoutopt.check.occupancy import overfull

    why = overfull(graph)
    if why:
        return f"infeasible, as the result says: {why}"
    return (
        "the result says infeasible; that no way to pack the sinks fits cannot be seen from files"
    )
