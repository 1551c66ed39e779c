"""``layoutopt check``: verification of results and certificates without a solver."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import exact, number
from layoutopt.cli import options
from layoutopt.cli.streams import note, say

if TYPE_CHECKING:
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.store import GraphStore
    from layoutopt.io.result import ResultDocument

REFUSED = 1
"""Exit code for refused certificates."""


def read(path: Path) -> dict[str, Any]:
    """Read a certificate."""
    from layoutopt.io.certificate import read_certificate

    return read_certificate(path)


def unwinding(
    graph: GraphStore,
    result: UnwindingResult | None,
    certificate: dict[str, Any],
    path: Path | None,
    quiet: bool,
) -> int:
    """Verify a certificate of an instance and, if given, its result; print the verdict."""
    from layoutopt.certificate.refused import Refused
    from layoutopt.io.certificate import check_certificate

    try:
        found = check_certificate(graph, certificate, str(path))
        if result is not None:
            _compare(result, found.score, found.bound)
    except Refused as why:
        say(f"{path}: refused: {why}")
        return REFUSED
    if not quiet:
        word = (
            f"{found.unverified:,} of {found.classes:,} classes are unverified "
            "(a solver gave their bounds)"
            if found.unverified
            else "nothing is unverified"
        )
        best = ", which is optimal" if found.score == found.bound else ""
        say(
            f"{path}: accepted: score {exact(found.score)}, bound {exact(found.bound)}{best}; "
            f"{found.classes:,} classes of {found.copies:,} copies; {word}"
        )
    return 0


def _compare(result: UnwindingResult, score: Fraction, bound: Fraction) -> None:
    """Refuse a certificate that does not prove a result's score and bound."""
    from layoutopt.certificate.refused import Refused

    if result.score is None or Fraction(result.score) != score:
        raise Refused(f"its score is {exact(score)}, that of the result {result.score}")
    if result.bound is not None and bound > Fraction(result.bound):
        raise Refused(f"it proves the bound {exact(bound)}, the result has {result.bound}")


def conversion(
    model: Path, output: Path | None, certificate: dict[str, Any], path: Path | None, quiet: bool
) -> int:
    """Verify a certificate of a conversion; print the verdict."""
    from layoutopt.certificate.refused import Refused
    from layoutopt.certify.conversion import check_certificate

    if model.suffix != ".onnx":
        raise InputError("certifies a conversion; give its .onnx model", file=str(path))
    try:
        found = check_certificate(model, certificate, output)
    except Refused as why:
        say(f"{path}: refused: {why}")
        return REFUSED
    if not quiet:
        say(f"{path}: accepted: {found}")
    return 0


VIOLATION, UNTOLD = 1, 4
SHOWN = 20


Result = Annotated[
    Path | None,
    typer.Argument(
        metavar="RESULT", help="A result (.json, .json.gz), or a converted model (.onnx)."
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="A certificate that `solve` or `convert` wrote; proves the bound."
    ),
]


@options.grouped
def command(
    instance: options.InstancePath,
    result: Result = None,
    certificate: Certificate = None,
    *,
    reading: options.Reading,
    barriers: options.Barriers = None,
    time_limit: options.TimeLimit = None,
    memory_limit: options.MemoryLimit = None,
    quiet: options.Quiet = False,
) -> int:
    """Verify a result, and a certificate, against their instance, without a solver.

    The exit code is 1 if anything is wrong, and 4 if time or memory runs out first.
    """
    from layoutopt.base.deadline import run_with_timeout
    from layoutopt.base.limits import limited

    if result is None and certificate is None:
        raise typer.BadParameter("give RESULT or --certificate FILE")
    options.check_limits(time_limit, 0.0, 1)
    limits = limited(options.left(time_limit))
    options.limit_memory(memory_limit)

    def load() -> GraphStore:
        return reading.load(instance)[0]

    def work() -> int:
        from layoutopt.reading import is_network

        if is_network(instance):
            from layoutopt.cli.networks import check, refuse

            refuse(instance, {"barriers": barriers} | vars(reading))
            return check(instance, result, certificate, quiet)
        return _checked(instance, result, certificate, load, barriers, quiet)

    try:
        return run_with_timeout(work, lambda: limits.over)
    except TimeoutError:
        note(f"layoutopt: {certificate or result}: check not finished: {limits.stopped}")
        return UNTOLD


def _checked(
    instance: Path,
    result: Path | None,
    certificate: Path | None,
    load: Callable[[], GraphStore],
    barriers: str | None,
    quiet: bool,
) -> int:
    """Check a result, a certificate or both; return the exit code."""
    from layoutopt.graphs.tiling import apply_hook_mode
    from layoutopt.io.result import read_document

    evidence = None if certificate is None else read(certificate)
    if evidence is not None and evidence.get("problem") == "conversion":
        return conversion(instance, result, evidence, certificate, quiet)
    graph = apply_hook_mode(load(), barriers)
    claimed = None
    if result is not None:
        document = read_document(result)
        claimed = document.result()
        if not _holds(graph, document, claimed, result, quiet):
            return VIOLATION
        if evidence is None and claimed.bound is not None and not quiet:
            say(f"{result}: {_unproved(claimed)}")
    if evidence is not None:
        return unwinding(graph, claimed, evidence, certificate, quiet)
    return 0


def _holds(
    graph: GraphStore, document: ResultDocument, claimed: UnwindingResult, path: Path, quiet: bool
) -> bool:
    """Check a result of an instance, and print the violations."""
    from layoutopt.check.elements import violations
    from layoutopt.io.instance import check_hash

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
            say(f"{path}: no layouts; no claim is wrong")
        else:
            say(f"{path}: legal; the layouts score {number(claimed.score)}, as the result says")
    return not broken


def _unproved(claimed: UnwindingResult) -> str:
    """Return the claims of a result that cannot be checked without a certificate."""
    from layoutopt.base.result import Status

    what = f"bound {number(claimed.bound)}"
    if claimed.status is Status.OPTIMAL:
        what = f"status optimal and {what}"
    return f"not checked: {what}; `check` verifies certificates by `solve --certificate`"


def _infeasible(graph: GraphStore) -> str:
    """Return how far a claim of infeasibility could be checked."""
    from layoutopt.check.occupancy import overfull

    why = overfull(graph)
    if why:
        return f"infeasible, as the result says: {why}"
    return "the result says infeasible; that no packing of the sinks fits cannot be checked"
