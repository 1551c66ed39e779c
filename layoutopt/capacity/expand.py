"""From counts of kinds back to configurations of classes, and their exact value."""

from __future__ import annotations

import numpy as np

from layoutopt.capacity.answer import Placement
from layoutopt.capacity.columns import Columns
from layoutopt.capacity.fill import Filling
from layoutopt.capacity.pool import Pool
from layoutopt.integers import unique
from layoutopt.problem import IntArray, WeightArray


def worth(pool: Pool, columns: Columns) -> WeightArray:
    """Return what configurations without slots are worth, exactly, shape ``(columns,)``."""
    total = np.zeros(len(columns.kind), object)
    for number, group in enumerate(pool.groups):
        low, high = pool.first[number], pool.first[number + 1]
        at = np.flatnonzero((columns.kind >= low) & (columns.kind < high))
        _, n, own = group.rewards.shape
        labels = columns.labels[columns.starts[at][:, None] + np.arange(n)]
        kind = columns.kind[at] - low
        for j in range(own):
            hit = labels == group.tiles[kind, j, None]
            total[at] += (group.rewards[kind, :, j] * hit).sum(axis=1)
        for u in range(n):
            for v in range(u + 1, n):
                total[at] += group.weights[kind, u, v] * (labels[:, u] == labels[:, v])
    for i in np.flatnonzero(columns.kind >= pool.first[-1]).tolist():
        large = pool.large[int(columns.kind[i]) - pool.first[-1]]
        total[i] = large.problem.value(columns.labels[columns.starts[i] : columns.starts[i + 1]])
    return total


def placement(pool: Pool, filling: Filling) -> Placement:
    """Share configurations of kinds out among the classes.

    All copies of all components of a kind stand in one row, and so do its configurations;
    where either changes, an interval begins.  Then the components of each class stand side by
    side, cut wherever one of them changes.
    """
    columns, parts = filling.columns, pool.parts
    order = np.argsort(columns.kind, kind="stable")
    member = np.argsort(pool.kind_of, kind="stable")
    ends = np.cumsum(filling.counts[order])  # configurations in the row of all kinds
    part_ends = np.cumsum(pool.part_copies[member])  # components in the same row
    begin = np.zeros(len(member), np.int64)
    begin[member] = part_ends - pool.part_copies[member]
    part_class = pool.problem.class_of[parts.nodes[parts.starts[:-1]]]
    copies = pool.problem.copies
    offset = np.cumsum(copies) - copies  # classes in a row of their own
    used = np.bincount(part_class, minlength=len(copies)) > 0
    # Where a configuration ends within a component, its class is cut.
    inside = np.searchsorted(part_ends, ends, side="left")
    cut_part = member[inside]
    cuts = offset[part_class[cut_part]] + (ends - begin[cut_part])
    edges = unique(np.concatenate([cuts, (offset + copies)[used & (copies > 0)]]))
    of = np.searchsorted(offset + copies, edges, side="left")
    starts_at = np.maximum(np.concatenate([[0], edges[:-1]])[: len(edges)], offset[of])
    counts = edges - starts_at
    # Every interval holds all nodes of its class; each looks its own configuration up.
    by_class = np.argsort(pool.problem.class_of, kind="stable")
    node_starts = np.searchsorted(pool.problem.class_of[by_class], np.arange(len(copies) + 1))
    size = np.diff(node_starts)[of]
    starts = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    row = np.repeat(np.arange(len(edges)), size)
    nodes = by_class[node_starts[of[row]] + np.arange(len(row)) - starts[row]]
    part = parts.of[nodes]
    position = begin[part] + starts_at[row] - offset[of[row]]
    config = order[np.searchsorted(ends, position, side="right")]
    labels = columns.labels[columns.starts[config] + parts.place[nodes]]
    return Placement(of, counts, starts, nodes, labels)


def bytes_used(problem_bytes: IntArray, found: Placement, tiles: int) -> IntArray:
    """Return the bytes on each tile."""
    counts = np.repeat(found.counts, np.diff(found.starts))
    used = np.zeros(tiles, np.int64)
    np.add.at(used, found.labels, counts * problem_bytes[found.nodes])
    return used
