"""Results of unwinding with certificates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from layoutopt.alarm import bounded
from layoutopt.errors import SizeError
from layoutopt.limits import Limits
from layoutopt.lowered import Lowered
from layoutopt.problem import IntArray
from layoutopt.proving.ordering import Solve
from layoutopt.proving.unwinding import certify
from layoutopt.result import Status, UnwindingResult


class Solved(NamedTuple):
    """A graph's labelling problem, and the labels that a solver found."""

    lowered: Lowered
    labels: IntArray


def certified(
    result: UnwindingResult, solved: Solved | None, solve: Solve, limits: Limits
) -> UnwindingResult:
    """Return a result with its certificate, or with the reason why there is none.

    Parameters
    ----------
    result
        What was found.
    solved
        How, if that was by a labelling problem.
    solve
        An exact method for labelling problems.
    limits
        When to stop.
    """
    why = _reason(result, solved)
    if why or solved is None:
        return replace(result, uncertified=why)
    limits.report("certificate")
    trusted = result.status is Status.OPTIMAL
    search = limits.within(limits.left / 4)  # checking what is found, twice, may take as long
    if limits.tell is not None:  # scores and bounds of parts would be taken for the whole's
        search = replace(search, tell=lambda _: limits.report("certificate"))
    work = partial(certify, solved.lowered, solved.labels, solve, search, trusted=trusted)
    try:
        certificate = bounded(work, lambda: limits.over)
    except TimeoutError:
        return replace(result, uncertified=f"there was no time for it ({limits.stopped})")
    except MemoryError:
        return replace(result, uncertified="there was no memory for it")
    except SizeError as error:
        return replace(result, uncertified=str(error))
    if result.score is None or Fraction(certificate["score"]) != Fraction(result.score):
        return replace(result, uncertified="the layouts to begin with are better than the solver's")
    return replace(result, certificate=certificate)


def _reason(result: UnwindingResult, solved: Solved | None) -> str:
    """Return why a result has no certificate, nothing if it can have one."""
    if result.layouts is None:
        return "there are no layouts"
    if result.graph is not None and result.graph.tile_memory is not None:
        return "there is none for instances with a tile memory"
    if solved is None:
        return f"{result.solver} proves no bound"
    if solved.lowered.given.count:
        return "there is none where layouts are fixed"
    return ""
