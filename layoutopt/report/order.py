"""In which order sinks can be set, and what must be known in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from layoutopt.errors import InputError, SizeError
from layoutopt.pictures import pages
from layoutopt.pictures.text import escaped
from layoutopt.program.steps import Know, Place, ProgramStep, steps
from layoutopt.result import UnwindingResult

NAMED = 12
"""How many sinks, or barriers, one step names."""

SHOWN, MOST = 20, 200
"""How many steps are shown at once, and how many in all."""


def in_order(result: UnwindingResult) -> str:
    """Return the steps of a result in words: sinks together as far as nothing must be known."""
    if not result.layouts:
        return ""
    plan = _plan(result)
    if plan is None:
        return _listed(result)
    groups = [list(group) for _, group in groupby(plan, lambda step: isinstance(step, Know))]
    if all(isinstance(step, Place) for step in plan):
        told = "No sink takes locations of a barrier's output: they can be set in any order."
        return pages.paragraph(told)
    told = (
        "A sink that takes locations of a barrier's output can be set only once that is known, "
        "and a barrier is known once all that it reads is set."
    )
    items = [f"<li>{_told(group, result)}</li>" for group in groups[:MOST]]
    first = f'<ol class="steps">{"".join(items[:SHOWN])}</ol>'
    rest = f'<ol class="steps" start="{SHOWN + 1}">{"".join(items[SHOWN:])}</ol>'
    if len(groups) > MOST:
        rest += pages.paragraph(f"... and {len(groups) - MOST:,} more steps", "soft")
    more = pages.details(f"{len(groups) - SHOWN:,} more steps", rest) if items[SHOWN:] else ""
    return pages.paragraph(told, "soft") + first + more


def _plan(result: UnwindingResult) -> tuple[ProgramStep, ...] | None:
    """Return the steps, where there is a graph that they fit."""
    if result.graph is None:
        return None
    try:
        return steps(result.graph, result)
    except (InputError, SizeError):
        return None


def _told(group: Sequence[ProgramStep], result: UnwindingResult) -> str:
    """Return what is done in one step."""
    barriers = [step.barrier for step in group if isinstance(step, Know)]
    if barriers:
        verb = "is" if len(barriers) == 1 else "are"
        return f'<span class="known">{_names(barriers)} {verb} known</span>'
    return f"set {_names(list(_sinks(group, result)))}"


def _sinks(group: Sequence[ProgramStep], result: UnwindingResult) -> Iterator[str]:
    """Yield the sinks of places, with the pieces where these are not all of a sink's."""
    placed = [step for step in group if isinstance(step, Place)]
    for sink, some in groupby(placed, lambda step: step.sink):
        count, every = len(list(some)), len((result.layouts or {})[sink])
        yield sink if count == every else f"{sink} ({count:,} of its {every:,} pieces)"


def _names(names: Sequence[str]) -> str:
    told = ", ".join(f"<strong>{escaped(name)}</strong>" for name in names[:NAMED])
    more = len(names) - NAMED
    return told + (f" and {more:,} more" if more > 0 else "")


def _listed(result: UnwindingResult) -> str:
    """Return the order as the result has it, where there is no graph."""
    if not result.order:
        return ""
    names = [
        step if isinstance(step, str) else f"{step[0]} (piece {step[1]})" for step in result.order
    ]
    return f"<p>Set {_names(names)}.</p>"
