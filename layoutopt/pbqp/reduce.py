"""Reductions, one after the other, until none applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from layoutopt.limits import Limits
from layoutopt.pbqp.degrees import alone, between, leaf, settle
from layoutopt.pbqp.dominance import dominate
from layoutopt.pbqp.followers import follow
from layoutopt.pbqp.normal import normalise, normalise_all
from layoutopt.pbqp.work import Work

Rule: TypeAlias = Callable[[Work, int], "list[int] | None"]
"""Tries to reduce a problem at a node; returns the nodes to look at again, or ``None``."""

LOOK = 256
"""Nodes between two looks at the limits."""


def tidy(work: Work, u: int) -> list[int] | None:
    """Bring the edges of a node that lost labels back to normal form."""
    if u not in work.shrunk:
        return None
    work.shrunk.discard(u)
    around = list(work.near[u])
    for v in around:
        normalise(work, u, v)
    return [u, *around]


RULES: tuple[tuple[Rule, ...], ...] = ((tidy, settle, alone, leaf, between), (follow,))
"""Rules by level: those of a level are tried where none of the levels before applies."""


def reduce(work: Work, limits: Limits) -> None:
    """Reduce a problem until no rule applies, or time is up.

    Raises
    ------
    Infeasible
        If there is no allowed labelling.
    """
    normalise_all(work)
    touched = work.left()
    while touched and not limits.over:
        apply(work, limits, touched)
        touched = dominate(work, touched)


def apply(work: Work, limits: Limits, nodes: Iterable[int]) -> None:
    """Apply rules at some nodes, and on wherever something changes.

    Raises
    ------
    Infeasible
        If there is no allowed labelling.
    """
    queues: list[dict[int, None]] = [dict.fromkeys(nodes) for _ in RULES]
    looks = 0
    while any(queues):
        if looks % LOOK == 0 and limits.over:
            return
        looks += 1
        level = 0
        while not queues[level]:
            level += 1
        u, _ = queues[level].popitem()
        touched = None if work.gone[u] else _first(work, u, RULES[level])
        if touched:
            for queue in queues:
                queue.update(dict.fromkeys(touched))


def _first(work: Work, u: int, rules: Sequence[Rule]) -> list[int] | None:
    """Apply the first rule that fires at a node."""
    for rule in rules:
        touched = rule(work, u)
        if touched is not None:
            return touched
    return None
