"""At which height each box of a figure stands, so that lines are nearly level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SWEEPS = 30

STIFF = 8.0
"""How much more a lane minds bends than a box does."""


def levels(
    layers: Sequence[Sequence[int]],
    heights: Mapping[int, tuple[float, float]],
    links: Sequence[tuple[int, int]],
    gap: float,
    boxes: int,
) -> dict[int, float]:
    """Return the height of every box and lane, told by a point in it.

    Parameters
    ----------
    layers
        For each column its boxes and lanes from top to bottom.
    heights
        How far each box and lane reaches above and below its point, in pixels.
    links
        Whose points should stand at one level.
    gap
        The least distance of two neighbours in a column.
    boxes
        Numbers below are boxes, the others are lanes.

    Returns
    -------
    dict
        Columns keep their order, and nothing overlaps.
    """
    beside: dict[int, list[tuple[int, float]]] = {u: [] for layer in layers for u in layer}
    for u, v in links:
        weight = STIFF if min(u, v) >= boxes else 1.0
        beside[u].append((v, weight))
        beside[v].append((u, weight))
    middle: dict[int, float] = {}
    for layer in filter(None, layers):
        offsets = _offsets(layer, heights, gap)
        first = -offsets[-1] / 2 if links else heights[layer[0]][0]
        middle |= {u: first + offset for u, offset in zip(layer, offsets, strict=True)}
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for u in layer:
                near = [(middle[v], w) for v, w in beside[u] if v not in layer]
                total = sum(w for _, w in near)
                wanted.append(sum(y * w for y, w in near) / total if near else middle[u])
            middle |= zip(layer, _packed(wanted, layer, heights, gap), strict=True)
    return middle


def _offsets(
    layer: Sequence[int], heights: Mapping[int, tuple[float, float]], gap: float
) -> list[float]:
    """Return how far each point is below the first one if all stand as close as they may."""
    offsets = [0.0] * len(layer)
    for i in range(1, len(layer)):
        offsets[i] = offsets[i - 1] + heights[layer[i - 1]][1] + gap + heights[layer[i]][0]
    return offsets


def _packed(
    wanted: Sequence[float],
    layer: Sequence[int],
    heights: Mapping[int, tuple[float, float]],
    gap: float,
) -> list[float]:
    """Return the points nearest to wanted ones, by least squares, at which nothing overlaps.

    Without the distances that neighbours need, they must not fall: isotonic
    regression, which pools neighbours that would (Barlow et al., 1972).
    """
    offsets = _offsets(layer, heights, gap)
    pools: list[tuple[float, int]] = []
    for y, offset in zip(wanted, offsets, strict=True):
        mean, count = y - offset, 1
        while pools and pools[-1][0] > mean:
            above, many = pools.pop()
            mean, count = (above * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    return [y + offset for y, offset in zip(flat, offsets, strict=True)]
