"""Isolating cuts against all sets of nodes, and the limits of minimum cuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network import cuts
from layoutopt.network.cuts import best_of_two, cuttable, isolating_cuts
from layoutopt.network.problem import Labelling
from tests.presolve.test_reductions import APART, TRIANGLE, rewards_of, sound
from tests.support import labelling, random_problem


def gains(problem: Labelling, label: int) -> list[int | None]:
    """Return what each node gains by a label instead of its next best, ``None`` if banned."""
    rewards, banned = rewards_of(problem), set(map(tuple, problem.banned.tolist()))
    found: list[int | None] = []
    for u in range(problem.nodes):
        others = [rewards.get((u, m), 0) for m in range(problem.labels) if m != label]
        best = max([0, *others])
        found.append(None if (u, label) in banned else rewards.get((u, label), 0) - best)
    return found


def best_nodes(problem: Labelling, label: int) -> set[int]:
    """Return the nodes of all sets that gain most by a label, less the edges that leave."""
    gain = gains(problem, label)
    if all(g is None or g <= 0 for g in gain) and any(g is None or g < 0 for g in gain):
        return set()  # such labels are passed over
    worths: dict[frozenset[int], int] = {}
    ends = list(zip(problem.edges.tolist(), problem.weights.tolist(), strict=True))
    for inside in subsets([u for u, g in enumerate(gain) if g is not None]):
        kept = sum(gain[u] or 0 for u in inside)
        worths[inside] = kept - sum(w for (u, v), w in ends if (u in inside) != (v in inside))
    top = max(worths.values())
    return {u for inside, worth in worths.items() if worth == top for u in inside}


def subsets(nodes: list[int]) -> Iterator[frozenset[int]]:
    """Yield all sets of some nodes."""
    for bits in range(2 ** len(nodes)):
        yield frozenset(u for k, u in enumerate(nodes) if bits >> k & 1)


def test_all_best_sets_are_fixed() -> None:
    """Isolating cuts fix the nodes of every label's best sets, no more and no fewer."""
    some = 0
    for seed in range(300):
        given = random_problem(seed, 5, 3, negative=True, bans=seed % 2 == 0)
        problem = replace(given, weights=np.abs(given.weights))
        for u, label in problem.banned.tolist():  # what is banned earns nothing
            at = (problem.reward_at != (u, label)).any(axis=1)
            problem = replace(problem, reward_at=problem.reward_at[at], rewards=problem.rewards[at])
        fixed = set().union(*(best_nodes(problem, label) for label in range(problem.labels)))
        reduced = isolating_cuts(problem)
        assert set(range(problem.nodes)) - set(reduced.kept.tolist()) == fixed
        some += 0 < len(fixed) < problem.nodes
    assert some > 20


@pytest.mark.parametrize(("more", "kept"), [(3, [0]), (4, [])])
def test_rewards_that_floats_do_not_tell_apart(more: int, kept: list[int]) -> None:
    """A reward of 2^54 + 3 instead of 2^54 does not weigh up an edge of 4; one more does."""
    rewards = {(0, 0): 2**54 + more, (0, 1): 2**54, (1, 2): 10}
    assert isolating_cuts(labelling(2, 3, {(0, 1): 4}, rewards)).kept.tolist() == kept


def test_labels_that_earn_most_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """With work for one label only, that is label 2, which earns 5; label 0 earns 2 + 2."""
    problem = labelling(3, 3, {(0, 1): 1}, {(0, 0): 2, (2, 0): 2, (1, 2): 5})
    for work, kept in [(4, [0, 1, 2]), (5, [0, 2]), (10, []), (15, [])]:
        monkeypatch.setattr(cuts, "WORK", work)
        reduced = isolating_cuts(problem)
        assert reduced.kept.tolist() == kept
        sound(reduced)


def test_without_time_nothing_is_fixed() -> None:
    """Time is looked at before each label."""
    reduced = isolating_cuts(labelling(3, 3, TRIANGLE, APART | {(0, 0): 9}), Limits(deadline=0.0))
    assert (reduced.problem.nodes, reduced.constant) == (3, 0)


def test_without_rewards_any_label_will_do() -> None:
    """Where no label earns or costs anything, all nodes take one; where it is banned, none."""
    assert isolating_cuts(labelling(3, 2, TRIANGLE)).problem.nodes == 0
    assert isolating_cuts(labelling(3, 1, TRIANGLE, {}, [(1, 0)])).problem.nodes == 3


def test_numbers_up_to_the_limit() -> None:
    """Eight times all numbers must stay below 2^60."""
    most = 2**57 - 1
    for total in (most, most + 1):
        problem = labelling(2, 2, {(0, 1): total - 4}, {(0, 0): 3, (1, 1): 1})
        assert cuttable(problem) == (total == most)


def test_labels_are_integers() -> None:
    """Labels are numbers to look up, also where there is nothing to choose."""
    for problem in (labelling(2, 1, {(0, 1): 1}), labelling(2, 2, {(0, 1): 1}, {(1, 1): 1})):
        result = best_of_two(problem)
        assert result is not None
        assert result.labelling.dtype.kind == "i"
