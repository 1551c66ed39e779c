"""Configurations of many kinds in flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutopt.integers import unique
from layoutopt.problem import IntArray, WeightArray


@dataclass(frozen=True, eq=False)
class Columns:
    """Configurations of kinds, ordered by kind.

    Parameters
    ----------
    kind, value
        Shape ``(m,)``: whose it is, and what it is worth.
    starts
        Shape ``(m + 1,)``: where each begins in ``labels`` and ``bytes``.
    labels
        The tile of each node of the kind; ``tiles + j`` is slot ``j``.
    bytes
        The bytes of each of these nodes.
    """

    kind: IntArray
    value: WeightArray
    starts: IntArray
    labels: IntArray
    bytes: IntArray

    @property
    def column(self) -> IntArray:
        """The configuration that each entry of ``labels`` belongs to."""
        return np.repeat(np.arange(len(self.kind)), np.diff(self.starts))

    def chosen(self, which: IntArray) -> Columns:
        """Return some of the configurations, by ascending number."""
        size = np.diff(self.starts)[which]
        starts = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        at = np.repeat(self.starts[which] - starts[:-1], size) + np.arange(starts[-1])
        return Columns(self.kind[which], self.value[which], starts, self.labels[at], self.bytes[at])


def joined(parts: list[Columns]) -> Columns:
    """Put configurations together, ordered by kind, each once."""
    parts = [part for part in parts if len(part.kind)]
    if not parts:
        none = np.zeros(0, np.int64)
        return Columns(none, none, np.zeros(1, np.int64), none, none)
    size = np.concatenate([np.diff(part.starts) for part in parts])
    whole = Columns(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.bytes for part in parts]),
    )
    return whole.chosen(_distinct(whole, size))


def _distinct(columns: Columns, size: IntArray) -> IntArray:
    """Return the numbers of the configurations that differ, ordered by kind."""
    found = []
    for n in unique(size).tolist():
        at = np.flatnonzero(size == n)
        labels = columns.labels[columns.starts[at][:, None] + np.arange(n)]
        order = np.lexsort([*labels.T, columns.kind[at]])
        rows = np.column_stack([columns.kind[at], labels])[order]
        new = np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]
        found.append(at[order[new]])
    every = np.concatenate(found)
    return every[np.argsort(columns.kind[every], kind="stable")]
