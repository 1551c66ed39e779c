"""Results as JSON files: format ``layoutopt/result/1``."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from layoutopt.base import files
from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.numbers import SUM_DIGITS
from layoutopt.base.result import PairScore, Piece, Status, Step, UnwindingResult
from layoutopt.graphs.locations import TILE, check_result, checked_pieces, layout_sink
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import opaque
from layoutopt.io.instance import Hash, Number, check_hash, known_hash

FORMAT = "layoutopt/result/1"

INFEASIBLE = "the result file says so, without a reason"
"""Reason for infeasibility of a result read from a file."""

Known = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": ["number", "null"]})]
Count = Annotated[int, Meta(ge=0)]


class PairResultEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """Score of one ValuedPair: ``value * matched`` of at most ``value * elements``."""

    a: str
    b: str
    value: Number
    elements: Count
    matched: Count


class ResultDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole result file."""

    format: Literal["layoutopt/result/1"]
    instance: str
    instance_hash: Hash | None = None
    problem: Literal["unwinding"]
    status: Status
    score: Known
    bound: Known
    gap: float | None = None
    max_score: Number
    solver: str = ""
    version: str = ""
    seed: int = 0
    size: dict[str, Count] = {}
    seconds: dict[str, float] = {}
    pairs: list[PairResultEntry] = []
    layouts: dict[str, tuple[Piece, ...]] | None
    order: list[Step] = []

    def result(self) -> UnwindingResult:
        """Return the result that the document describes.

        Status and gap are recomputed from score and bound; only infeasibility is taken from a
        document without layouts.
        """
        nothing = self.status is Status.INFEASIBLE and self.layouts is None
        return UnwindingResult(
            infeasible=INFEASIBLE if nothing else "",
            objective=_known(self.score, "$.score"),
            bound=_known(self.bound, "$.bound"),
            labelling=self.layouts,
            seconds=self.seconds,
            instance=self.instance,
            instance_hash=self.instance_hash,
            solver=self.solver,
            version=self.version,
            seed=self.seed,
            max_score=_number(self.max_score, "$.max_score"),
            size=self.size,
            pairs=tuple(_pair(entry, i) for i, entry in enumerate(self.pairs)),
            order=tuple(self.order),
        )


def result_bytes(result: UnwindingResult) -> bytes:
    """Return the bytes of a result's file."""
    return files.encode_lines(result_document(result))


def result_document(result: UnwindingResult) -> dict[str, Any]:
    """Return a result as the members of its file; unknown numbers are ``None``."""
    stated = {
        "format": FORMAT,
        "problem": "unwinding",
        "status": str(result.status),
        "seconds": {phase: round(s, 6) for phase, s in result.seconds.items()},
        "pairs": [vars(pair) for pair in result.pairs],
    }
    return {
        name: stated[name] if name in stated else getattr(result, name)
        for name in ResultDocument.__struct_fields__
    }


def parse_document(raw: bytes, file: str = "") -> ResultDocument:
    """Parse the bytes of a result file, without recomputing anything; errors say where."""
    document = files.decode(
        msgspec.json.Decoder(ResultDocument),
        raw,
        file,
        {".format": [FORMAT], ".status": list(Status)},
    )
    with errors_at(file=file):
        document.result()
    return document


def read_document(path: str | Path) -> ResultDocument:
    """Read a result file, packed with gzip if its name ends in ``.gz``, without recomputation."""
    path = files.named(path)
    return parse_document(files.read_bytes(path), str(path))


def read_result(path: str | Path, graph: GraphStore | None = None) -> UnwindingResult:
    """Read a result file, packed with gzip if its name ends in ``.gz``.

    Parameters
    ----------
    graph
        The graph that was solved; required for pictures and simulations.

    Returns
    -------
    UnwindingResult
        The result that was written, with status and gap recomputed from score and bound.  These
        two are verified by ``layoutopt check`` only.

    Raises
    ------
    InputError
        If it cannot be read, is not a result, or belongs to another graph.
    """
    found = read_document(path).result()
    return found if graph is None else with_graph(found, graph, str(path))


def with_graph(result: UnwindingResult, graph: GraphStore, file: str) -> UnwindingResult:
    """Return a result with its graph, to which it must belong."""
    if graph.name != result.instance:
        raise InputError(f"belongs to {result.instance!r}, not to {graph.name!r}", file=file)
    try:
        for name, layout in (result.layouts or {}).items():
            sink = graph.tensor(name)
            with errors_at("layouts"):
                checked_pieces(graph, layout_sink(graph, sink), layout)
    except InputError as error:
        pieces = [piece for layout in (result.layouts or {}).values() for piece in layout]
        if graph.tile_memory is None and any(origin == TILE for origin, *_ in pieces):
            reason = "has tiles as origins, but the graph has no tile memory; give one by --tiles"
            raise InputError(reason, file=file) from None
        raise error.located(file=file) from None
    if result.instance_hash != known_hash(opaque(graph)):  # the hash of --barriers opaque
        check_hash(result.instance_hash, graph, file)
    return replace(result, graph=graph)


def write_result(result: UnwindingResult, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a result file, packed with gzip if its name ends in ``.gz``.

    Raises
    ------
    InputError
        If it is not a result, or the file cannot be written or exists and ``overwrite`` is false.
    """
    check_result(result)
    files.write_bytes(files.named(path), result_bytes(result), overwrite=overwrite)


def _known(raw: msgspec.Raw, place: str) -> Decimal | None:
    """Return a JSON number as an exact decimal, and ``null`` as ``None``."""
    return None if bytes(raw) == b"null" else _number(raw, place)


def _number(raw: msgspec.Raw, place: str) -> Decimal:
    with errors_at(place):
        return files.number(raw, SUM_DIGITS)


def _pair(entry: PairResultEntry, i: int) -> PairScore:
    value = _number(entry.value, f"$.pairs[{i}].value")
    return PairScore(entry.a, entry.b, value, entry.elements, entry.matched)
