"""What all partners say of one case, and whether it can all be true."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.agreement.cases import KINDS, Case, Layouts, random_layouts
from benchmarks.agreement.partners import PARTNERS, Claim
from benchmarks.agreement.stated import stated, waits, where
from layoutopt.base.errors import SizeError
from layoutopt.check.elements import Evaluation, by_elements, by_pieces
from layoutopt.graphs.locations import hooked
from models.statement import score

SPECIFICATION = "check"
"""Elements, pieces and the mathematical statement, on all layouts found and on random ones."""


@dataclass(frozen=True)
class Verdict:
    """What became of one case.

    Parameters
    ----------
    claims
        What each partner said that was asked.
    who
        Those who disagree, and about what, numbers aside; empty if nobody does.
    what
        The same in a sentence.
    """

    claims: Mapping[str, Claim]
    who: tuple[str, ...] = ()
    what: str = ""


def due(case: Case, k: int) -> list[str]:
    """Return the partners that case ``k`` is for."""
    turn = k // len(KINDS)
    return [
        name
        for n, (name, partner) in enumerate(PARTNERS.items())
        if (turn + n) % partner.share == 0 and partner.suits(case)
    ]


def compare(case: Case, names: list[str]) -> Verdict:
    """Ask partners, and compare what they say."""
    claims = {name: _asked(case, name) for name in names}
    for name, claim in claims.items():
        if claim.fault:
            return Verdict(claims, (name, claim.fault.partition(":")[0]), f"{name}: {claim.fault}")
    if claims:
        most = max(claims, key=lambda name: claims[name].score)
        least = min(claims, key=lambda name: claims[name].bound)
        if claims[most].score > claims[least].bound:
            what = f"{most} has {claims[most].score}, {least} allows {claims[least].bound}"
            return Verdict(claims, (most, least), what)
    try:
        what = next(_misjudged(case, claims), "")
    except Exception as error:  # the specification must take whatever it is given
        what = f"{type(error).__name__}: {error}"
    return (
        Verdict(claims, (SPECIFICATION, what.partition(":")[0]), what) if what else Verdict(claims)
    )


def _asked(case: Case, name: str) -> Claim:
    try:
        return PARTNERS[name].ask(case)
    except Exception as error:  # whatever it is, it should not have happened
        return Claim(fault=f"{type(error).__name__}: {error}")


def _misjudged(case: Case, claims: Mapping[str, Claim]) -> Iterator[str]:
    """Name what the specification, two ways, and the statement do not agree about."""
    seen: list[Layouts] = []
    for name, claim in claims.items():
        if claim.layouts is not None and claim.layouts not in seen:
            seen.append(claim.layouts)
            found = by_elements(case.graph, claim.layouts)
            if found.violations or (claim.score != float("-inf") and found.score != claim.score):
                yield f"{name}: its layouts earn {found.score}, {found.violations}"
            yield from _judged(case, claim.layouts, found)
    any_layouts = random_layouts(case.graph, random.Random(case.graph.name), 1.0)
    for sink in case.graph.sinks():
        any_layouts.setdefault(sink.name, ())
    yield from _judged(case, any_layouts, by_elements(case.graph, any_layouts))


def _judged(case: Case, layouts: Layouts, found: Evaluation) -> Iterator[str]:
    try:
        other = by_pieces(case.graph, layouts)
    except SizeError:
        if hooked(case.graph):
            return  # hooks, and layouts that name such barriers, may be for elements only
        raise
    if (found.score, found.pairs, found.max_score) != (other.score, other.pairs, other.max_score):
        yield f"numbers by elements and by pieces: {found} and {other}"
    if bool(found.violations) != bool(other.violations):
        yield f"rules by elements and by pieces: {found.violations} and {other.violations}"
    if case.graph.tile_memory is not None or found.score is None:
        return
    given = stated(case.graph)
    choice = where(case.graph, given, layouts)
    if score(given, choice) != Fraction(found.score):
        yield f"numbers by check and by models: {found.score} and {score(given, choice)}"
    if waits(given, choice) != bool(found.violations):
        yield f"order by check and by models: {found.violations}"
