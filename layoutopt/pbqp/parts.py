"""Parts that do not interact: the connected components of what is left."""

from __future__ import annotations

from layoutopt.pbqp.work import Work


def split(work: Work) -> list[tuple[Work, list[int]]]:
    """Return the parts of a problem, each with the numbers of its nodes in the whole.

    Labels keep their numbers.  What the whole pays anyway is in no part.
    """
    place = [-1] * len(work.costs)
    parts = []
    for root in work.left():
        if place[root] < 0:
            nodes = _reached(work, root, place)
            part = Work([list(work.costs[u]) for u in nodes])
            for k, u in enumerate(nodes):
                part.near[k] = {place[v]: table for v, table in work.near[u].items()}
            parts.append((part, nodes))
    return parts


def _reached(work: Work, root: int, place: list[int]) -> list[int]:
    """Return a node's component, and note the place of each of its nodes."""
    nodes = [root]
    place[root] = 0
    for u in nodes:
        for v in work.near[u]:
            if place[v] < 0:
                place[v] = len(nodes)
                nodes.append(v)
    return nodes
