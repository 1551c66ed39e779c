"""Rules that look at whole classes: all nodes of one label.

*Dominated label*: if a component has no negative edge and ``r_u(l) <= r_u(m)`` at every node
``u``, nothing is lost by taking ``m`` wherever ``l`` was taken (moving a whole class
keeps its agreements), so ``l`` need not be earned.

*Strong set*: if a component has no negative number and no ban, any ``k`` classes can become
one.  The label that can earn most of theirs is kept, so ``k - 1`` others are lost, each of
which earns at most the second largest of all sums ``sum_u r_u(l)``.  If every partition
of a set of nodes into ``k`` sets cuts at least ``k - 1`` times that much, some optimal
labelling has one label on all of it (:mod:`layoutopt.presolve.strength`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile

Numbers = Mapping[int, int]


def dominated_labels(
    near: Sequence[Numbers], earns: Sequence[Numbers], bans: Sequence[Collection[int]]
) -> dict[int, list[int]]:
    """Return labels whose rewards can be dropped, and where they have some.

    Parameters
    ----------
    near
        For each node its neighbours and the weights of the edges to them.
    earns
        For each node its labels with rewards.
    bans
        For each node the labels that it must not take.
    """
    columns: dict[int, dict[int, int]] = {}
    for u, rewards in enumerate(earns):
        for label, r in rewards.items():
            columns.setdefault(label, {})[u] = r
    banned: dict[int, set[int]] = {}
    for u, labels in enumerate(bans):
        for label in labels:
            banned.setdefault(label, set()).add(u)
    signed = _with_negative_edges(near)
    punished = {label for label, column in columns.items() if min(column.values()) < 0}
    ranked: dict[int, list[int]] = {}
    dropped = {}
    for label, column in list(columns.items()):
        if not signed.isdisjoint(column):
            continue
        place = min(column, key=lambda u: len(earns[u]))
        if place not in ranked:
            ranked[place] = _ranked(earns[place])
        rivals = _at_least(ranked[place], earns[place], column[place])
        if max(column.values()) <= 0 or any(
            _behind(column, columns[rival], rival in punished)
            and banned.get(rival, set()) <= banned.get(label, set())
            for rival in rivals
            if rival != label and rival in columns
        ):
            del columns[label]
            dropped[label] = list(column)
    return dropped


def _ranked(rewards: Numbers) -> list[int]:
    """Return labels, the best first, and of equal ones those first that are looked at last."""
    last_first = list(rewards)[::-1]
    return sorted(last_first, key=lambda label: -rewards[label])


def _at_least(ranked: Sequence[int], rewards: Numbers, r: int) -> Iterator[int]:
    return takewhile(lambda label: rewards[label] >= r, ranked)


def _behind(column: Numbers, rival: Numbers, punished: bool) -> bool:
    """Return whether a label's rewards are nowhere above a rival's; absent ones are 0."""
    return all(rival.get(u, 0) >= r for u, r in column.items()) and (
        not punished or all(r >= 0 or u in column for u, r in rival.items())
    )


def _with_negative_edges(near: Sequence[Numbers]) -> set[int]:
    """Return the nodes of all components that have a negative edge."""
    todo = [u for u, around in enumerate(near) if any(w < 0 for w in around.values())]
    found = set(todo)
    while todo:
        for v in near[todo.pop()]:
            if v not in found:
                found.add(v)
                todo.append(v)
    return found


def losses(
    near: Sequence[Numbers], earns: Sequence[Numbers], bans: Sequence[Collection[int]]
) -> Iterator[tuple[list[int], int]]:
    """Yield each component of several nodes with what a class that becomes one of another loses.

    Only components without negative numbers and bans.
    """
    seen = [False] * len(near)
    for start in range(len(near)):
        if seen[start] or not near[start]:
            continue
        seen[start] = True
        component = [start]
        for u in component:  # grows meanwhile
            for v in near[u]:
                if not seen[v]:
                    seen[v] = True
                    component.append(v)
        sums: dict[int, int] = {}
        for u in component:
            for label, r in earns[u].items():
                sums[label] = sums.get(label, 0) + r
        if not any(
            bans[u] or min(near[u].values()) < 0 or min(earns[u].values(), default=0) < 0
            for u in component
        ):
            yield component, sorted([0, 0, *sums.values()])[-2]
