"""A good labelling without proof: a first one by choices, then better ones of most nodes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from layoutopt.base.limits import Limits
from layoutopt.network.costs.reductions import apply, eliminate
from layoutopt.network.costs.work import Cost, Infeasible, Work
from layoutopt.network.elimination import shrink

Wishes: TypeAlias = Sequence[Mapping[int, float]]
"""Numbers by node and label."""

ROUNDS = 40
"""Most nodes are chosen anew so often."""

PATIENCE = 4
"""Rounds in a row without gain, after which it ends."""

TABLE = 2**15
"""Largest table when nodes are chosen anew, in entries."""

SAMPLE = 4
"""Of so many nodes the one of most neighbours is held."""

BATCH = 64
"""Of so many nodes one is held at a time."""


def construct(work: Work, wishes: Wishes | None = None) -> list[int] | None:
    """Return a labelling of what is left: the rule RN of Scholz and Eckstein.

    Where no reduction applies, the node of most neighbours takes the label that is best if each
    neighbour then suits itself.

    Parameters
    ----------
    wishes
        For each node how much each of its labels is wished for; this goes first, and nodes
        are chosen before anything is reduced.

    Returns
    -------
    list or None
        ``None`` if that leads into a dead end.
    """
    trial = work.copy()
    trial.order = []
    queue = sorted(trial.left(), key=lambda u: len(trial.near[u]))
    labels = [0] * len(trial.costs)
    try:
        if wishes is None:
            apply(trial, Limits(), queue)
        while queue:
            u = queue.pop()
            if not trial.gone[u]:
                wish = wishes[u] if wishes else {}
                best = min(trial.labels(u), key=lambda i: (-wish.get(i, 0), _outlook(trial, u, i)))
                _hold(trial, u, best)
                apply(trial, Limits(), [u])
    except Infeasible:
        return None
    trial.restore(labels)
    return labels


def _outlook(work: Work, u: int, i: int) -> Cost:
    """Return what a label costs if each neighbour suits itself."""
    total = work.costs[u][i]
    for v, table in work.near[u].items():
        total += min([a + b for a, b in zip(table[i], work.costs[v], strict=True)])
    return total


def _hold(work: Work, u: int, label: int) -> None:
    """Take all labels but one from a node."""
    for i in work.labels(u):
        if i != label:
            work.forbid(u, i)


def polish(work: Work, labels: list[int], limits: Limits) -> list[int]:
    """Return an allowed labelling of what is left, made better if that is found to be possible.

    Nodes chosen at random keep their labels, so many that the others, most of all nodes, can
    be chosen exactly by elimination; then again with other nodes.
    """
    draw = random.Random(limits.seed)
    value, quiet = work.value(labels), 0
    for _ in range(ROUNDS):
        if limits.over or quiet == PATIENCE:
            break
        trial = work.copy()
        trial.order = []
        for u in _cutset(work, draw):
            _hold(trial, u, labels[u])
        apply(trial, Limits(), trial.left())
        found = eliminate(trial, limits)
        quiet += 1
        if found is not None:
            trial.restore(found)
            labels, before, value = found, value, work.value(found)
            quiet = 0 if value < before else quiet
    return labels


def _cutset(work: Work, draw: random.Random) -> list[int]:
    """Return nodes without which the others can be eliminated."""
    near = {u: set(work.near[u]) for u in work.left()}
    widths = {u: len(work.labels(u)) for u in near}
    held = []
    while near:
        shrink(near, widths, TABLE, 2**62)
        for _ in range(-(-len(near) // BATCH)):
            some = draw.sample(list(near), min(SAMPLE, len(near)))
            held.append(max(some, key=lambda u: len(near[u])))
            for v in near.pop(held[-1]):
                near[v].discard(held[-1])
    return held
