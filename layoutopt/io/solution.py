"""Solutions of cost networks as JSON files: format ``layoutopt/solution/1``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from layoutopt import __version__
from layoutopt.base import files
from layoutopt.base.errors import errors_at
from layoutopt.base.numbers import exact_decimal
from layoutopt.base.result import Status
from layoutopt.io.instance import Hash
from layoutopt.network.document import Known, exact_number, written
from layoutopt.network.pipeline import Solution

FORMAT = "layoutopt/solution/1"


class SolutionDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole solution file."""

    format: Literal["layoutopt/solution/1"]
    network: str
    network_hash: Hash | None = None
    status: Status
    objective: Known
    bound: Known
    gap: float | None = None
    solver: str = ""
    version: str = ""
    seed: int = 0
    seconds: dict[str, float] = {}
    labels: list[int] | None
    names: dict[str, str | int] = {}
    why: str = ""

    def answer(self) -> dict[str, Any]:
        """Return the claimed answer, with exact numbers."""
        numbers = {"objective": self.objective, "bound": self.bound}
        known = {
            key: None if x is None else exact_number(x, f"$.{key}") for key, x in numbers.items()
        }
        more = {"labels": self.labels, "names": self.names, "gap": self.gap, "why": self.why}
        return {"status": str(self.status), **more, **known}


def solution_document(
    solution: Solution, seconds: dict[str, float], network_hash: str | None
) -> SolutionDocument:
    """Return the document of a solution, with seconds by phase, and the network's hash."""
    return SolutionDocument(
        format="layoutopt/solution/1",
        network=solution.network.name,
        network_hash=network_hash,
        status=solution.status,
        objective=_number(solution.objective),
        bound=_number(solution.bound),
        gap=solution.gap,
        solver=solution.solver,
        version=__version__,
        seed=solution.seed,
        seconds=seconds,
        labels=None if solution.choice is None else solution.choice.tolist(),
        names=solution.labels,
        why="" if solution.why is None else str(solution.why),
    )


def solution_bytes(document: SolutionDocument) -> bytes:
    """Return the bytes of a solution's file."""
    members = {name: getattr(document, name) for name in document.__struct_fields__}
    return files.encode_lines(members)


def _number(value: Fraction | int | None) -> Any:
    if value is None:
        return None
    exact_value = Fraction(value)
    return written([exact_value.numerator], Fraction(1, exact_value.denominator))[0]


def read_solution(path: str | Path) -> SolutionDocument:
    """Read a solution, packed with gzip if its name ends in ``.gz``."""
    decoder = msgspec.json.Decoder(SolutionDocument, float_hook=exact_decimal)
    raw = files.read_bytes(files.named(path))
    found = files.decode(decoder, raw, str(path), {".format": [FORMAT], ".status": [*Status]})
    with errors_at(file=str(path)):
        found.answer()
    return found
