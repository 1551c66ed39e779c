"""What ``layoutopt check`` says of certificates."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutopt.cli.streams import say
from layoutopt.cli.text import exact
from layoutopt.errors import InputError

if TYPE_CHECKING:
    from layoutopt.graphs.store import GraphStore
    from layoutopt.result import UnwindingResult

REFUSED = 1
"""The exit code where a certificate is not accepted."""


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
    """Hold a certificate against its instance, and perhaps a result; tell what it proves."""
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
            f"{found.on_word:,} of {found.classes:,} classes rest on a solver's word"
            if found.on_word
            else "nothing rests on a solver's word"
        )
        best = ", which is optimal" if found.score == found.bound else ""
        say(
            f"{path}: accepted: score {exact(found.score)}, bound {exact(found.bound)}{best}; "
            f"{found.classes:,} classes of {found.copies:,} copies; {word}"
        )
    return 0


def _compare(result: UnwindingResult, score: Fraction, bound: Fraction) -> None:
    """Refuse a certificate that does not prove what a result says."""
    from layoutopt.certificate.refused import Refused

    if result.score is None or Fraction(result.score) != score:
        raise Refused(f"it is of a score of {exact(score)}, the result has {result.score}")
    if result.bound is not None and bound > Fraction(result.bound):
        raise Refused(f"it proves a bound of {exact(bound)}, the result has {result.bound}")


def conversion(
    model: Path, output: Path | None, certificate: dict[str, Any], path: Path | None, quiet: bool
) -> int:
    """Hold a certificate against a network, and a converted one; tell what it proves."""
    from layoutopt.certificate.refused import Refused
    from layoutopt.proving.conversion import check_certificate

    if model.suffix != ".onnx":
        raise InputError("is a certificate of a conversion; a network is needed", file=str(path))
    try:
        found = check_certificate(model, certificate, output)
    except Refused as why:
        say(f"{path}: refused: {why}")
        return REFUSED
    if not quiet:
        say(f"{path}: accepted: {found}")
    return 0
