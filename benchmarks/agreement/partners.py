"""Who answers the question: solvers, methods, models and specification, each with its share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf

from benchmarks.agreement.cases import Case, Layouts
from benchmarks.agreement.stated import kept, stated, where
from layoutopt.base.entries import ENTRIES, Takes, entries, load
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import to_integers
from layoutopt.base.result import Result, Status, UnwindingResult
from layoutopt.certify.unwinding import certify
from layoutopt.check.claims import violations
from layoutopt.graphs.locations import FixedElements, hooked
from layoutopt.graphs.tiling import tiled
from layoutopt.io.certificate import check_certificate
from layoutopt.io.instance import instance_bytes, parse_instance
from layoutopt.io.result import parse_document, result_bytes
from layoutopt.lowering.heuristics import choose, greedy0_by_boxes
from layoutopt.lowering.lower import LIFT_FROM, lower
from layoutopt.unwinding import unwind
from models import exhaustive, minizinc, textbook_mip
from models.statement import Statement
from tests.hooked import best_of_all, layouts_of
from tests.machine.crowded import tried

Number = Fraction | float
"""Exact, or infinite."""


@dataclass(frozen=True)
class Claim:
    """What a partner says of a case.

    Parameters
    ----------
    score, bound
        What can be reached, and what cannot be exceeded: infinite where nothing is said, and
        ``-inf`` as a bound where nothing is legal.
    layouts
        Those that earn the score, if there are any to look at.
    fault
        What is wrong with the answer by itself.
    """

    score: Number = -inf
    bound: Number = inf
    layouts: Layouts | None = None
    fault: str = ""


@dataclass(frozen=True)
class Partner:
    """Somebody to ask.

    Parameters
    ----------
    share
        One of so many cases of each kind is for it.
    suits
        Whether a case is for it at all.
    ask
        What it says.
    """

    share: int
    suits: Callable[[Case], bool]
    ask: Callable[[Case], Claim]


PROVED = 10**8
"""Sums of so many units are proved by every exact method, those that compute in doubles too."""

TRIED = 7
"""Graphs of up to so many free elements are tried out, and written as textbook programmes."""

FOR_CPSAT, FOR_MIP = 12, 30
"""Graphs of up to so many free elements are solved as they are written without taking long."""

EXACT = entries(Takes.LABELLING, proves=True)

EXACT_IN_DOUBLES = 2**31
"""Sums of so many units are exact in the models' solvers: MiniZinc's integers are the smallest."""


def units(case: Case) -> int:
    """Return the sum of all values at all positions, in units that all are multiples of."""
    multiples, _ = to_integers([value for _, _, value in case.graph.pairs])
    sizes = [case.graph.tensors()[a].size for a, _, _ in case.graph.pairs]
    return sum(abs(m) * n for m, n in zip(multiples, sizes, strict=True))


def _anything(case: Case) -> bool:
    return True


def _alone(case: Case) -> bool:
    """Return whether nothing is given beforehand, and no hook makes the graph special."""
    return case.fixed is None and case.start is None and not hooked(case.graph)


def _roomy(case: Case) -> bool:
    return _alone(case) and case.kind != "tiles that are full"


def _plain(case: Case) -> bool:
    return _alone(case) and case.graph.tile_memory is None


def _few(most: int, case: Case) -> bool:
    return sum(sink.size for sink in case.graph.sinks()) <= most


def _roomy_and_few(most: int, case: Case) -> bool:
    return _roomy(case) and _few(most, case)


def _tiny(case: Case) -> bool:
    return case.graph.tile_memory is None and _few(TRIED, case)


def _tiny_in_doubles(case: Case) -> bool:
    return _tiny(case) and units(case) < EXACT_IN_DOUBLES


def _small_tiles(case: Case) -> bool:
    return case.kind == "tiles that are full"


def _small_hooks(case: Case) -> bool:
    return case.kind == "hooks on tiles" and layouts_of(case.graph) is not None


def _unwound(solver: str, case: Case) -> Claim:
    """Ask the front door."""
    result = unwind(case.graph, solver, fixed=case.fixed, start=case.start)
    fault = ""
    if solver in EXACT and result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        fault = "is not proved" if units(case) < PROVED else ""
    return _claim(result, fault)


def _claim(result: UnwindingResult, fault: str) -> Claim:
    if result.status is Status.INFEASIBLE:
        return Claim(bound=-inf, fault=fault)
    score: Number = -inf if result.score is None else Fraction(result.score)
    bound: Number = inf if result.bound is None else Fraction(result.bound)
    return Claim(score, bound, result.layouts, fault)


def _through_files(case: Case) -> Claim:
    """Let instance and answer go through files, and hold these against each other."""
    graph = parse_instance(instance_bytes(case.graph))
    result = unwind(graph, fixed=case.fixed, start=case.start)
    read = parse_document(result_bytes(result))
    claimed = read.result()
    broken = list(violations(parse_instance(instance_bytes(graph)), claimed, read.status, read.gap))
    return _claim(claimed, broken[0] if broken else "")


def _by_classes(method: str, case: Case) -> Claim:
    """Ask a method on what lifting makes of the graph, however small it is."""
    graph = case.graph if case.graph.tile_memory is None else tiled(case.graph)
    lowered = lower(graph, Limits(), lift_from=0)
    result: Result = load(method, Takes.LABELLING)(lowered.problem, Limits(), None)
    if result.labelling is None:
        return Claim()
    at = [lowered.unit * (lowered.constant + int(x or 0)) for x in (result.objective, result.bound)]
    fault = "is not proved" if at[0] != at[1] and units(case) < PROVED else ""
    return Claim(at[0], at[1], lowered.layouts(result.labelling), fault)


def _certified(lift_from: int, case: Case) -> Claim:
    """Have a certificate written, and ask its checker."""
    lowered = lower(case.graph, Limits(), lift_from=lift_from)
    auto = load("auto", Takes.LABELLING)
    labels = auto(lowered.problem, Limits(), None).labelling
    try:
        certificate = certify(lowered, labels, auto, Limits())
    except SizeError:  # too irregular: there is no certificate, and nothing is claimed
        return Claim()
    found = check_certificate(case.graph, certificate)
    return Claim(found.score, found.bound)


def _on_boxes(case: Case) -> Claim:
    """Ask Greedy0 on boxes: it must choose what it chooses on elements."""
    lifted = greedy0_by_boxes(case.graph, Limits()).layouts
    traced = choose(
        case.graph, ENTRIES["greedy0", Takes.GRAPH], Limits(), FixedElements(case.graph)
    )
    given = stated(case.graph)
    alike = where(case.graph, given, lifted) == where(case.graph, given, traced or {})
    return Claim(layouts=lifted, fault="" if alike else "other locations than on elements")


def _modelled(maximum: Callable[[Statement], Fraction], case: Case) -> Claim:
    """Ask a model of ``models/``."""
    given = stated(case.graph)
    found = maximum(kept(given, where(case.graph, given, case.fixed or {})))
    return Claim(found, found)


def _tried_on_tiles(case: Case) -> Claim:
    found = tried(case.graph)
    return Claim(bound=-inf) if found is None else Claim(found, found)


def _tried_with_hooks(case: Case) -> Claim:
    layouts = layouts_of(case.graph)
    found = None if layouts is None else best_of_all(case.graph, layouts)
    return Claim(bound=-inf) if found is None else Claim(found, found)


def _partners() -> Iterator[tuple[str, Partner]]:
    yield "auto", Partner(1, _anything, partial(_unwound, "auto"))
    yield "auto, through files", Partner(20, _anything, _through_files)
    yield "auto, by classes", Partner(10, _roomy, partial(_by_classes, "auto"))
    yield "certificate", Partner(20, _plain, partial(_certified, LIFT_FROM))
    yield "certificate, by classes", Partner(20, _plain, partial(_certified, 0))
    for name, most in (("cpsat", FOR_CPSAT), ("mip", FOR_MIP)):
        yield name, Partner(50, partial(_few, most), partial(_unwound, name))
        small = partial(_roomy_and_few, most)
        yield f"{name}, by classes", Partner(100, small, partial(_by_classes, name))
    for name in entries(Takes.LABELLING, proves=False):
        yield name, Partner(100, _anything, partial(_unwound, name))
    yield "greedy0", Partner(10, _no_start, partial(_unwound, "greedy0"))
    yield "greedy0, on boxes", Partner(50, _plain, _on_boxes)
    yield "trying everything", Partner(1, _tiny, partial(_modelled, exhaustive.maximum))
    yield "trying all tiles", Partner(1, _small_tiles, _tried_on_tiles)
    yield "trying all tiles, hooks", Partner(1, _small_hooks, _tried_with_hooks)
    yield "textbook MIP", Partner(20, _tiny_in_doubles, partial(_modelled, textbook_mip.maximum))
    yield "MiniZinc", Partner(1000, _tiny_in_doubles, partial(_modelled, minizinc.maximum))


def _no_start(case: Case) -> bool:
    return case.start is None


PARTNERS = dict(_partners())
"""Everybody by name."""
