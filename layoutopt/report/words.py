"""Phrases and charts that several pages share."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from decimal import Decimal
from importlib.metadata import version

from layoutopt import __version__
from layoutopt.base.limits import Point, Stopped
from layoutopt.base.numbers import counted, number, ratio
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.pictures.chart import ChartAxis, ChartLine, chart
from layoutopt.report.pages import Cell, Section, parts

TONES: dict[str, str] = {Status.OPTIMAL: "good", Status.FEASIBLE: "fair"}
"""Colour of the text of each status; all others are bad."""

PACKAGES = ("ortools", "numpy", "scipy", "networkx")  # packages whose versions are reported


def status(name: str, given: str = "") -> Cell:
    """Return a cell with a status in its colour, and what was given."""
    return Cell(name, parts.toned(TONES.get(name, "bad"), name) + given, kind="short")


def verdict(result: UnwindingResult) -> str:
    """Return the proof status as a sentence."""
    stopped = "" if result.stopped is Stopped.FINISHED else f"Stopped: {result.stopped}."
    tone = TONES.get(result.status, "bad")
    return parts.verdict(tone, str(result.status), _proved(result), stopped)


def _proved(result: UnwindingResult) -> str:
    given = result.size.get("given", 0)
    layouts = f"layouts that keep the {counted(given, 'given element')}" if given else "layouts"
    match result.status:
        case Status.OPTIMAL:
            return f"it is proved that no {layouts} earn more."
        case Status.INFEASIBLE:
            return f"it is proved that there are no {layouts}: {result.infeasible}."
        case Status.UNKNOWN:
            if result.bound is None:
                return "neither layouts nor a bound were found."
            return f"none were found; no {layouts} earn more than {number(Decimal(result.bound))}."
    if result.bound is None:
        return "nothing is proved about better ones."
    bound = number(Decimal(result.bound))
    above = f", which is {ratio(result.gap)} above this score" if result.objective else ""
    return f"no {layouts} earn more than {bound}{above}."


def origin(command: str, made: Iterable[tuple[str, str]]) -> Section:
    """Return the section with command line, further facts, and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    here = f"layoutopt {__version__}, Python {platform.python_version()}, {packages}"
    body = parts.command_line(command) + parts.listing([*made, ("this page", here)])
    return Section("origin", "How it was made", body)


SECONDS = "seconds"

GAP = ChartAxis("gap between score and bound, relative to the score", log=True, percent=True)


def progress_charts(trace: Sequence[Point]) -> list[str]:
    """Return charts of score and bound, and of the gap, over time; none without two points."""
    known = [point for point in map(_drawable, trace) if point[1:] != (None, None)]
    if len({seconds for seconds, _, _ in known}) < 2:
        return []
    return [drawn for drawn in (_both(known), _gap(known)) if drawn]


def _drawable(point: Point) -> Point:
    """Return a point without values so large that their differences may be infinite."""
    score, bound = (x if x is not None and abs(x) < 1e150 else None for x in point[1:])
    return point[0], score, bound


def _both(known: Sequence[Point]) -> str:
    """Return a chart of score and bound: their difference from the final score, relative to it."""
    scores = [(seconds, score) for seconds, score, _ in known if score is not None]
    bounds = [(seconds, bound) for seconds, _, bound in known if bound is not None]
    (_, final), end = (scores or bounds)[-1], known[-1][0]
    unit = abs(final) or 1.0
    lines = []
    for name, points in (("score", scores), ("bound", bounds)):
        if points:
            points.append((end, points[-1][1]))
            lines.append(ChartLine(name, tuple((t, (x - final) / unit) for t, x in points)))
    what = ChartAxis(f"difference from the final {lines[0].name}", percent=bool(final))
    return chart("Score and bound", ChartAxis(SECONDS, low=0.0), what, lines)


def gaps(trace: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    """Return the gap over time, from its first known value."""
    return tuple(
        (seconds, max(0.0, (bound - score) / max(abs(score), 1e-9)))
        for seconds, score, bound in map(_drawable, trace)
        if score is not None and bound is not None and (score or bound <= 0)
    )


def _gap(known: Sequence[Point]) -> str:
    points = gaps(known)
    if not points:
        return ""
    line = ChartLine("", (*points, (known[-1][0], points[-1][1])))
    return chart("Gap over time", ChartAxis(SECONDS, low=0.0), GAP, [line])
