"""``layoutopt check``: verification of results and certificates without a solver."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import exact, more, number
from layoutopt.cli import options
from layoutopt.cli.options import NO_ANSWER, WRONG, argument, option
from layoutopt.cli.streams import note, say

if TYPE_CHECKING:
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.store import GraphStore
    from layoutopt.io.result import ResultDocument

SHOWN = 20  # number of violations shown


@options.grouped
def command(
    instance: options.InstancePath,
    result: Annotated[
        Path | None, argument("RESULT", "A result (.json, .json.gz), or a converted model (.onnx).")
    ] = None,
    certificate: Annotated[
        Path | None,
        option("FILE", "A certificate that `solve` or `convert` wrote; proves the bound."),
    ] = None,
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
    if result is not None and result.suffix == ".onnx" and certificate is None:
        raise InputError("a converted model is checked with --certificate FILE", file=str(result))
    options.limit(time_limit, memory_limit)
    limits = limited(options.left(time_limit))

    def work() -> int:
        from layoutopt.network.files import is_network

        if is_network(instance):
            from layoutopt.cli.networks import check, refuse

            refuse(instance, {"barriers": barriers} | vars(reading))
            return check(instance, result, certificate, quiet)
        return _checked(instance, result, certificate, reading, barriers, quiet)

    try:
        return run_with_timeout(work, lambda: limits.over)
    except TimeoutError:
        note(f"layoutopt: {certificate or result}: check not finished: {limits.stopped}")
        return NO_ANSWER


def _checked(
    instance: Path,
    result: Path | None,
    certificate: Path | None,
    reading: options.Reading,
    barriers: str | None,
    quiet: bool,
) -> int:
    from layoutopt.graphs.tiling import apply_hook_mode
    from layoutopt.io.certificate import read_certificate
    from layoutopt.io.result import read_document

    evidence = None if certificate is None else read_certificate(certificate)
    claimed = proof = None
    if evidence is not None and evidence.get("problem") == "conversion":
        proof = partial(conversion, instance, result, evidence, certificate)
    else:
        graph = apply_hook_mode(reading.load(instance)[0], barriers)
        if result is not None:
            document = read_document(result)
            claimed = document.result()
            if not _holds(graph, document, claimed, result, quiet):
                return WRONG
            if evidence is None and claimed.bound is not None and not quiet:
                say(f"{result}: {_unproved(claimed)}")
        if evidence is not None:
            proof = partial(unwinding, graph, claimed, evidence, certificate)
    if certificate is not None and proof is not None:
        told = options.verified(certificate, proof)
        if told is None:
            return WRONG
        if not quiet:
            say(f"{certificate}: accepted: {told}")
    return 0


def unwinding(
    graph: GraphStore,
    result: UnwindingResult | None,
    certificate: dict[str, Any],
    path: Path | None,
) -> str:
    """Verify a certificate of an instance and, if given, its result; return the verdict."""
    from layoutopt.certificate.refused import Refused
    from layoutopt.io.certificate import check_certificate

    found = check_certificate(graph, certificate, str(path))
    score, bound = found.score, found.bound
    if result is not None and (result.score is None or Fraction(result.score) != score):
        raise Refused(f"its score is {exact(score)}, that of the result {result.score}")
    if result is not None and result.bound is not None and bound > Fraction(result.bound):
        raise Refused(f"it proves the bound {exact(bound)}, the result has {result.bound}")
    word = "nothing is unverified"
    if found.unverified:
        some = f"{found.unverified:,} of {found.classes:,} classes"
        word = f"{some} are unverified (a solver gave their bounds)"
    best = ", which is optimal" if score == bound else ""
    size = f"{found.classes:,} classes of {found.copies:,} copies"
    return f"score {exact(score)}, bound {exact(bound)}{best}; {size}; {word}"


def conversion(
    model: Path, output: Path | None, certificate: dict[str, Any], path: Path | None
) -> str:
    """Verify a certificate of a conversion; return the verdict."""
    from layoutopt.certify.conversion import check_certificate

    if model.suffix != ".onnx":
        raise InputError("certifies a conversion; give its .onnx model", file=str(path))
    return str(check_certificate(model, certificate, output))


def _holds(
    graph: GraphStore, document: ResultDocument, claimed: UnwindingResult, path: Path, quiet: bool
) -> bool:
    """Check a result of an instance, and print the violations."""
    from layoutopt.check.claims import violations
    from layoutopt.io.instance import check_hash

    check_hash(document.instance_hash, graph, str(path))
    broken = list(violations(graph, claimed, document.status, document.gap))
    lines = [*broken[:SHOWN], more(len(broken) - SHOWN, "violation")]
    if not broken and not quiet:
        if claimed.infeasible:
            lines = [_infeasible(graph)]
        elif claimed.layouts is None:
            lines = ["no layouts; no claim is wrong"]
        else:
            lines = [f"legal; the layouts score {number(claimed.score)}, as the result says"]
    for line in filter(None, lines):
        say(f"{path}: {line}")
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
    from layoutopt.check.elements import overfull

    why = overfull(graph)
    if why:
        return f"infeasible, as the result says: {why}"
    return "the result says infeasible; that no packing of the sinks fits cannot be checked"
