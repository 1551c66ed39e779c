"""A smaller problem with the same optimum, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layoutopt.base.result import Result
from layoutopt.network.problem import IntArray, Labelling


@dataclass(frozen=True, eq=False)
class Reduction:
    """What a reduction makes of a problem.

    Every labelling ``y`` of the small problem gives ``x = restore(y)`` of the large one with
    ``large.value(x) >= constant + small.value(y)``, and the optima satisfy this with
    equality.  So ``constant`` plus a bound of the small problem is one of the large.

    Parameters
    ----------
    whole
        The large problem.
    problem
        The small problem; both have the same named labels.
    constant
        What is earned outside the small problem.
    kept
        For each node of the small problem the one of the large that it comes from.
    restore
        Labels of the large problem from labels of the small one.
    """

    whole: Labelling
    problem: Labelling
    constant: int
    kept: IntArray
    restore: Callable[[IntArray], IntArray]

    def project(self, labels: IntArray | None) -> IntArray | None:
        """Return labels of the small problem as they are in a labelling of the large one."""
        if labels is None:
            return None
        own = labels[self.kept]
        _, first, group = np.unique(own, return_index=True, return_inverse=True)
        return np.where(own < self.problem.labels, own, self.problem.labels + first[group])

    def restore_result(self, result: Result) -> Result:
        """Return the result of the large problem that one of the small problem gives."""
        labels = self.restore(result.labelling)
        bound = None if result.bound is None else self.constant + int(result.bound)
        value = self.whole.value(labels)
        return Result(objective=value, bound=bound, labelling=labels, stopped=result.stopped)


def restored_names(labels: IntArray, kept: IntArray, named: int) -> IntArray:
    """Return labels of a small problem's nodes as labels of the large problem."""
    return np.where(labels < named, labels, named + kept[np.maximum(labels - named, 0)])
