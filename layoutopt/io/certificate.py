"""Certificates as JSON files, format ``layoutopt/certificate/1``, and their verification."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from layoutopt.base import files
from layoutopt.base.errors import InputError
from layoutopt.certificate.unwinding import Verdict, check
from layoutopt.graphs.store import GraphStore
from layoutopt.io.instance import check_hash, instance_bytes

FORMAT = "layoutopt/certificate/1"


def document_of(graph: GraphStore) -> dict[str, Any]:
    """Return the instance document of a graph, with exact numbers."""
    found: dict[str, Any] = json.loads(instance_bytes(graph), parse_float=Decimal)
    return found


def certificate_bytes(certificate: dict[str, Any]) -> bytes:
    """Return the bytes of a certificate's file."""
    return json.dumps(certificate, separators=(",", ":")).encode() + b"\n"


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Read a certificate, packed with gzip if its name ends in ``.gz``."""
    raw = files.read_utf8(files.named(path))
    try:
        found = json.loads(raw, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        why = (
            "is nested too deep" if isinstance(error, RecursionError) else f"is not JSON ({error})"
        )
        raise InputError(why, file=str(path)) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"must be {FORMAT}", "$.format", str(path))
    return found


def check_certificate(graph: GraphStore, certificate: dict[str, Any], file: str = "") -> Verdict:
    """Verify a certificate for a graph; Refused says what is wrong with it."""
    if certificate.get("problem") != "unwinding":
        raise InputError("certifies a conversion, not unwinding", "$.problem", file)
    claimed = certificate.get("instance_hash")
    check_hash(claimed if isinstance(claimed, str) else "", graph, file)
    return check(document_of(graph), certificate)
