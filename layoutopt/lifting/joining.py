"""Boxes that continue each other, written as one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from layoutopt.dense.boxes import OriginBox, fold
from layoutopt.pieces import Loop

MANY = 20_000
"""So many boxes are left as they are."""


def joined(boxes: list[OriginBox]) -> list[OriginBox]:
    """Join boxes that continue each other along a loop, as far as that goes."""
    if len(boxes) > MANY:
        return boxes
    boxes = [_flattened(box) for box in boxes]
    while True:
        count = len(boxes)
        for k in range(max((len(box.loops) for box in boxes), default=0)):
            boxes = [_flattened(box) for box in _joined_along(boxes, k)]
        depths: dict[int, list[OriginBox]] = defaultdict(list)
        for box in boxes:
            depths[len(box.loops)].append(box)
        boxes = [_flattened(box) for same in depths.values() for box in fold(same)]
        if len(boxes) == count:
            return boxes


def _joined_along(boxes: list[OriginBox], k: int) -> list[OriginBox]:
    rows: dict[object, list[OriginBox]] = defaultdict(list)
    for box in boxes:
        rest = box.loops[:k], box.loops[k][1:] if k < len(box.loops) else (), box.loops[k + 1 :]
        rows[box.origin, len(box.loops), rest].append(box)
    found = []
    for row in rows.values():
        row.sort(key=lambda box: box.to)
        last = row[0]
        for box in row[1:]:
            if k < len(box.loops) and _continues(last, box, k):
                extent, step, stride = last.loops[k]
                loop = (extent + box.loops[k][0], step, stride)
                last = replace(last, loops=(*last.loops[:k], loop, *last.loops[k + 1 :]))
            else:
                found.append(last)
                last = box
        found.append(last)
    return found


def _continues(one: OriginBox, two: OriginBox, k: int) -> bool:
    extent, step, stride = one.loops[k]
    return (two.start, two.to) == (one.start + extent * step, one.to + extent * stride)


def _flattened(box: OriginBox) -> OriginBox:
    """Write loops that follow each other evenly as one, the longest strides outside."""
    loops: list[Loop] = []
    for extent, step, stride in sorted(box.loops, key=lambda loop: -abs(loop[2])):
        if extent == 1 and (loops or len(box.loops) > 1):
            continue
        if loops and loops[-1][1:] == (extent * step, extent * stride):
            loops[-1] = (loops[-1][0] * extent, step, stride)
        else:
            loops.append((extent, step, stride))
    return replace(box, loops=tuple(loops) or ((1, 1, 1),))
