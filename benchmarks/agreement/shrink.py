"""A case on which partners disagree, made smaller as long as they do, and written down."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.agreement.cases import Case, Layouts
from benchmarks.agreement.compare import Verdict, compare
from layoutopt.base import files
from layoutopt.base.errors import InputError
from layoutopt.io.certificate import document_of
from layoutopt.io.instance import instance_bytes, parse_instance

SECONDS = 120.0
"""So long a case may be made smaller."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Shrunk:
    """The smallest case found, and what was said of it."""

    case: Case
    verdict: Verdict


def shrink(case: Case, names: list[str], verdict: Verdict) -> Shrunk:
    """Return the smallest case on which the same partners disagree about the same."""
    until = time.monotonic() + SECONDS
    best = Shrunk(case, verdict)
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(best.case):
            if time.monotonic() > until:
                return best
            found = compare(smaller, names)
            if found.who == verdict.who:
                best, progress = Shrunk(smaller, found), True
                break
    return best


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases that lack something, or are simpler in something."""
    if case.fixed is not None:
        yield from (replace(case, fixed=less) for less in _fewer(case.fixed))
    if case.start is not None:
        yield from (replace(case, start=less) for less in _fewer(case.start))
    whole = document_of(case.graph)
    for spoil in _changes(whole, _given_names(case)):
        document = deepcopy(whole)
        spoil(document)
        try:
            yield replace(case, graph=parse_instance(files.encode(document)))
        except InputError:
            continue


def _fewer(layouts: Layouts) -> Iterator[Layouts | None]:
    yield None
    for sink, pieces in layouts.items():
        for n in range(len(pieces)):
            yield layouts | {sink: (*pieces[:n], *pieces[n + 1 :])}


def _given_names(case: Case) -> set[str]:
    """Return the tensors that given layouts name."""
    given = [*(case.fixed or {}).items(), *(case.start or {}).items()]
    return {name for sink, pieces in given for name in (sink, *(piece[0] for piece in pieces))}


def _changes(document: Document, given: set[str]) -> Iterator[Callable[[Document], object]]:
    """Yield what may be done to a document."""
    if "tile_memory" in document:
        yield lambda d: d.pop("tile_memory")
    pairs = document["valued_pairs"]
    for n in reversed(range(len(pairs))):
        yield partial(_drop, "valued_pairs", n)
    used = given.union(
        *(op["inputs"] for op in document["ops"]), *((p["a"], p["b"]) for p in pairs)
    )
    needed = {name.rpartition(":")[0] or name for name in used} | used
    for n in reversed(range(len(document["ops"]))):
        if document["ops"][n]["id"] not in needed:
            yield partial(_drop, "ops", n)
    for n, pair in enumerate(pairs):
        if pair["value"] != 1:
            yield partial(_simplify, n)


def _drop(member: str, n: int, document: Document) -> None:
    del document[member][n]


def _simplify(n: int, document: Document) -> None:
    document["valued_pairs"][n]["value"] = 1


def written(shrunk: Shrunk, folder: Path) -> Path:
    """Write a case down: the instance, what was said in its description, and what was given."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = deepcopy(shrunk.case.graph)
    said = [
        f"{name}: {claim.fault or f'score {claim.score}, bound {claim.bound}'}"
        for name, claim in shrunk.verdict.claims.items()
    ]
    graph.description = f"{shrunk.verdict.what}. {'; '.join(said)}"
    path = folder / f"{graph.name}.json"
    path.write_bytes(instance_bytes(graph))
    given = {"fixed": shrunk.case.fixed, "start": shrunk.case.start}
    if any(given.values()):
        path.with_suffix(".given.json").write_text(json.dumps(given, indent=1))
    return path
