"""Phrases and charts that several pages share."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from importlib.metadata import version

from layoutopt import __version__
from layoutopt.base.limits import Point
from layoutopt.base.numbers import number, ratio
from layoutopt.base.result import Result, Status, Stopped
from layoutopt.pictures.chart import ChartAxis, ChartLine, chart
from layoutopt.report import pages
from layoutopt.report.pages import Section

TONES: dict[str, str] = {
    Status.OPTIMAL: "good",
    Status.FEASIBLE: "fair",
    Status.INFEASIBLE: "bad",
    Status.UNKNOWN: "bad",
}
"""Colour of the text of each status."""

PACKAGES = ("ortools", "numpy", "scipy", "networkx")
"""Packages whose versions are reported."""


def verdict(result: Result) -> str:
    """Return the proof status as a sentence."""
    stopped = "" if result.stopped is Stopped.FINISHED else f"Stopped: {result.stopped}."
    return pages.verdict(TONES[result.status], str(result.status), _proved(result), stopped)


def _proved(result: Result) -> str:
    match result.status:
        case Status.OPTIMAL:
            return "it is proved that no layouts earn more."
        case Status.INFEASIBLE:
            return f"it is proved that there are no layouts: {result.infeasible}."
        case Status.UNKNOWN:
            if result.bound is None:
                return "neither layouts nor a bound were found."
            return f"no layouts were found; any earn {number(Decimal(result.bound))} at most."
    if result.bound is None:
        return "nothing is proved about better ones."
    bound = number(Decimal(result.bound))
    above = f", which is {ratio(result.gap)} above this score" if result.objective else ""
    return f"no layouts earn more than {bound}{above}."


def origin(command: str, made: Iterable[tuple[str, str]]) -> Section:
    """Return the section with command line and versions.

    Parameters
    ----------
    made
        Further facts.
    """
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    here = f"layoutopt {__version__}, Python {platform.python_version()}, {packages}"
    body = pages.command_line(command) + pages.listing([*made, ("this page", here)])
    return Section("origin", "How it was made", body)


SECONDS = "seconds"


def progress_charts(trace: Sequence[Point]) -> list[str]:
    """Return charts of score and bound, and of the gap, over time; none without two points."""
    known = list(_steady(trace))
    if len({seconds for seconds, _, _ in known}) < 2:
        return []
    return [drawn for drawn in (_both(known), _gap(known)) if drawn]


def _steady(trace: Sequence[Point]) -> Iterator[Point]:
    """Yield the points with the best score and bound so far."""
    score: float | None = None
    bound: float | None = None
    for seconds, x, y in trace:
        score = x if score is None or (x is not None and x > score) else score
        bound = y if bound is None or (y is not None and y < bound) else bound
        if score is not None or bound is not None:
            yield seconds, score, bound


def _both(known: Sequence[Point]) -> str:
    """Return a chart of score and bound: their distance from the last score, relative to it."""
    scores = [(seconds, score) for seconds, score, _ in known if score is not None]
    bounds = [(seconds, bound) for seconds, _, bound in known if bound is not None]
    (_, final), end = (scores or bounds)[-1], known[-1][0]
    unit = abs(final) or 1.0
    lines = []
    for name, points in (("score", scores), ("bound", bounds)):
        if points:
            points.append((end, points[-1][1]))
            lines.append(ChartLine(name, tuple((t, (x - final) / unit) for t, x in points)))
    what = ChartAxis(f"distance from the last {lines[0].name}", percent=bool(final))
    return chart("Score and bound", ChartAxis(SECONDS, low=0.0), what, lines)


def gaps(trace: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    """Return the gap over time, from its first known value."""
    found = []
    for seconds, score, bound in _steady(trace):
        gap = _ratio(score, bound)
        if gap is not None:
            found.append((seconds, gap))
    return tuple(found)


def _ratio(score: float | None, bound: float | None) -> float | None:
    if score is None or bound is None or (score == 0 and bound > 0):
        return None
    return max(0.0, (bound - score) / max(abs(score), 1e-9))


def _gap(known: Sequence[Point]) -> str:
    points = gaps(known)
    if not points:
        return ""
    points = (*points, (known[-1][0], points[-1][1]))
    gap = ChartAxis("gap between score and bound, relative to the score", log=True, percent=True)
    return chart("Gap over time", ChartAxis(SECONDS, low=0.0), gap, [ChartLine("", points)])
