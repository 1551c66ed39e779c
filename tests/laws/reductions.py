"""Random labelling problems for reductions, and what every reduction promises."""

from __future__ import annotations

from collections.abc import Iterator

from layoutopt.network.problem import Labelling, Reduction
from tests.support import Edges, allowed, optimum, random_labels, random_problem

TRIANGLE: Edges = {(0, 1): 1, (1, 2): 1, (0, 2): 1}
APART: Edges = {(0, 0): 1, (1, 1): 1, (2, 2): 1}
"""Each node of the triangle wants a label of its own, too little for any rule."""


def problems(count: int) -> Iterator[Labelling]:
    """Yield random problems with all mixtures of negative numbers, bans and wide numbers."""
    for seed in range(count):
        wide = 10**30 if seed % 7 == 0 else 1
        yield random_problem(seed, negative=seed % 2 == 0, bans=seed % 3 == 0, wide=wide)


def sound(reduced: Reduction, labellings: int = 4) -> None:
    """Check a reduction's promises: equal optima, and no labelling loses by coming back."""
    whole, small = reduced.whole, reduced.problem
    assert reduced.constant + optimum(small) == optimum(whole)
    for seed in range(labellings):
        labels = random_labels(small, seed)
        back = reduced.restore(labels)
        assert allowed(whole, back.tolist())
        assert whole.value(back) >= reduced.constant + small.value(labels)
        assert reduced.project(None) is None
        projected = reduced.project(random_labels(whole, seed))
        assert projected is not None
        assert allowed(small, projected.tolist())


def rewards_of(problem: Labelling) -> Edges:
    """Return ``{(node, label): reward}``."""
    at = map(tuple, problem.reward_at.tolist())
    return dict(zip(at, problem.rewards.tolist(), strict=True))
