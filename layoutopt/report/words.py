"""What several pages say."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from decimal import Decimal
from importlib.metadata import version

from layoutopt import __version__
from layoutopt.pictures import pages
from layoutopt.pictures.pages import Section
from layoutopt.pictures.text import escaped, number, ratio
from layoutopt.result import Result, Status, Stopped

TONES: dict[str, str] = {
    Status.OPTIMAL: "good",
    Status.FEASIBLE: "fair",
    Status.INFEASIBLE: "bad",
    Status.UNKNOWN: "bad",
}
"""By status, the colour of the words that tell it."""

PACKAGES = ("ortools", "numpy", "scipy", "networkx")
"""Whose versions matter for results."""


def verdict(result: Result) -> str:
    """Return in a sentence what is proved."""
    told = f'<strong class="{TONES[result.status]}">{str(result.status).capitalize()}</strong>'
    return f'<p class="verdict">{told}: {escaped(_proved(result))}{_why(result)}</p>'


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


def _why(result: Result) -> str:
    if result.stopped is Stopped.FINISHED:
        return ""
    return f' <span class="soft">Stopped: {escaped(result.stopped)}.</span>'


def origin(command: str, made: Iterable[tuple[str, str]]) -> Section:
    """Return how a page was made: command line, versions.

    Parameters
    ----------
    made
        What else there is to say of it.
    """
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    here = f"layoutopt {__version__}, Python {platform.python_version()}, {packages}"
    body = pages.command_line(command) + pages.listing([*made, ("this page", here)])
    return Section("origin", "How it was made", body)
