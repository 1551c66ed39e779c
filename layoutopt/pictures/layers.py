"""In which column each box of a figure stands, and in which order from top to bottom.

This is the layered drawing of Sugiyama, Tagawa and Toda (*Methods for visual understanding of
hierarchical system structures*, 1981): longest paths give columns, lines that pass a column
get a lane in it, and barycentres sort each column so that few lines cross.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

Link: TypeAlias = tuple[int, int]

SWEEPS = 12

SWAPPED = 200
"""Up to so many links neighbours are exchanged one by one, too."""


def columns(count: int, arrows: Sequence[Link], ties: Sequence[Link]) -> list[int]:
    """Return the column of each of ``count`` boxes.

    Arrows go from left to right.  Ties have no direction, but pull boxes into which no arrow
    goes beside their partners: right of one that has arrows into it, else in the order given.

    Parameters
    ----------
    arrows
        Without cycles.
    """
    after: list[set[int]] = [set() for _ in range(count)]
    for u, v in arrows:
        after[u].add(v)
    led = {v for _, v in arrows}
    for u, v in ties:
        if u == v or after[u] & after[v] or (u in led and v in led):
            continue
        left, right = (v, u) if v in led else (u, v)
        if left not in _reached(after, right):
            after[left].add(right)
    order = _sorted(after)
    column = [0] * count
    for u in order:
        for v in after[u]:
            column[v] = max(column[v], column[u] + 1)
    led = {v for others in after for v in others}
    for u in range(count):
        if u not in led and after[u]:
            column[u] = min(column[v] for v in after[u]) - 1
    alone = [u for u in range(count) if u not in led and not after[u]]
    breadth = max(max(column, default=0) + 1, round(len(alone) ** 0.5 * 1.5))
    for i, u in enumerate(alone):
        column[u] = i % breadth
    return column


def _reached(after: Sequence[set[int]], start: int) -> set[int]:
    found, todo = {start}, [start]
    while todo:
        new = after[todo.pop()] - found
        found |= new
        todo.extend(new)
    return found


def _sorted(after: Sequence[set[int]]) -> list[int]:
    """Return boxes so that each stands before those to its right."""
    waiting = [0] * len(after)
    for others in after:
        for v in others:
            waiting[v] += 1
    order = [u for u, left in enumerate(waiting) if not left]
    for u in order:
        for v in sorted(after[u]):
            waiting[v] -= 1
            if not waiting[v]:
                order.append(v)
    return order


def lanes(column: Sequence[int], links: Iterable[Link]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the columns' boxes, and the way of each link through them.

    Returns
    -------
    layers
        For each column its boxes, in order, and after them lanes: numbers above all boxes.
    ways
        For each link its first end, its lanes and its other end.
    """
    layers: list[list[int]] = [[] for _ in range(max(column, default=-1) + 1)]
    for u, c in enumerate(column):
        layers[c].append(u)
    lane, ways = len(column), []
    for u, v in links:
        step = 1 if column[v] > column[u] else -1
        passed = range(column[u] + step, column[v], step) if column[u] != column[v] else range(0)
        for number, c in enumerate(passed, lane):
            layers[c].append(number)
        ways.append([u, *range(lane, lane + len(passed)), v])
        lane += len(passed)
    return layers, ways


def groups(boxes: Iterable[int], ways: Iterable[Sequence[int]]) -> list[set[int]]:
    """Return boxes and lanes that lines connect; those without lines are the last group."""
    home = {u: {u} for u in boxes}
    for way in ways:
        joined = set().union(*(home[u] for u in way))
        home |= dict.fromkeys(joined, joined)
    found = list({id(group): group for group in home.values()}.values())
    alone = set().union(*(group for group in found if len(group) == 1))
    return [group for group in found if len(group) > 1] + ([alone] if alone else [])


def settle(layers: list[list[int]], ways: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return the columns with boxes and lanes sorted so that few lines cross."""
    home = {u: c for c, layer in enumerate(layers) for u in layer}
    links = [link for way in ways for link in pairwise(way)]
    beside: dict[int, list[int]] = {u: [] for u in home}
    for u, v in links:
        beside[u].append(v)
        beside[v].append(u)
    best, least = [list(layer) for layer in layers], float("inf")
    order = [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        cost = _cost(order, home, links)
        if cost < least:
            best, least = [list(layer) for layer in order], cost
        forward = sweep % 2 == 0
        for c in range(len(order)) if forward else reversed(range(len(order))):
            _sort(order, c, beside, home, (c - 1 if forward else c + 1) if sweep < 8 else None)
    if len(links) <= SWAPPED:
        _swap(best, home, links)
    return best


def _sort(
    order: list[list[int]],
    c: int,
    beside: dict[int, list[int]],
    home: dict[int, int],
    side: int | None,
) -> None:
    """Sort a column by the mean place of partners: in it and on one side, or everywhere."""
    place = {u: (i + 0.5) / len(layer) for layer in order for i, u in enumerate(layer)}

    def wanted(u: int) -> float:
        near = [place[v] for v in beside[u] if side is None or home[v] in (side, c)]
        return sum(near) / len(near) if near else place[u]

    order[c].sort(key=wanted)


def _swap(order: list[list[int]], home: dict[int, int], links: Sequence[Link]) -> None:
    """Exchange neighbours in columns as long as that lowers the cost."""
    cost, before = _cost(order, home, links), -1
    while cost != before:
        before = cost
        for layer in order:
            for i in range(len(layer) - 1):
                layer[i], layer[i + 1] = layer[i + 1], layer[i]
                changed = _cost(order, home, links)
                if changed >= cost:
                    layer[i], layer[i + 1] = layer[i + 1], layer[i]
                cost = min(cost, changed)


def _cost(order: list[list[int]], home: dict[int, int], links: Sequence[Link]) -> int:
    """Return crossings between columns, and what links within a column pass."""
    place = {u: i for layer in order for i, u in enumerate(layer)}
    total = 0
    between: dict[int, list[Link]] = {}
    for u, v in links:
        if home[u] == home[v]:
            total += max(0, abs(place[u] - place[v]) - 1)
        else:
            left, right = (u, v) if home[u] < home[v] else (v, u)
            between.setdefault(home[left], []).append((place[left], place[right]))
    for ends in between.values():
        ends.sort()
        total += _inversions([right for _, right in ends])
    return total


def _inversions(numbers: Sequence[int]) -> int:
    seen: list[int] = []
    total = 0
    for x in numbers:
        total += len(seen) - bisect_right(seen, x)
        insort(seen, x)
    return total
