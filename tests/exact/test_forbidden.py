"""What barrier order forbids, against a list of every forbidden pair."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.network import order
from layoutopt.network.order import pairs_of, with_hopeless, without
from layoutopt.network.problem import split
from tests.support import allowed, labelling, optimum, random_labels, random_problem


def test_optima_are_those_of_all_bans() -> None:
    """On 300 random problems leaving rewards out is as good as banning every single choice."""
    unlisted = 0
    for seed in range(300):
        draw = random.Random(seed)
        wide = {0: 10**30, 1: 2**58}.get(seed % 5, 1)
        kinds = {"negative": seed % 2 == 0, "bans": seed % 3 == 0}
        part = random_problem(seed, 4, 4, wide=wide, **kinds)
        barrier = np.array([draw.randint(-1, 1) for _ in range(part.labels)], np.int64)
        readers = np.array([draw.randint(0, 1) for _ in range(part.nodes)], np.int64)
        shut = [(s, b) for s in range(3) for b in range(2) if draw.random() < 0.6]
        small = without(part, shut, barrier, readers)
        every = [
            (u, label)
            for u in range(part.nodes)
            for label in range(part.labels)
            if (readers[u], barrier[label]) in shut
        ]
        listed = np.array(every, np.int64).reshape(-1, 2)
        banned = replace(part, banned=np.concatenate([part.banned, listed]))
        assert optimum(small) == optimum(banned)
        own = set(map(tuple, small.banned.tolist()))
        assert set(map(tuple, part.banned.tolist())) <= own
        for _, label in set(every) - own:  # forbidden to all, and of no use to any
            unlisted += 1
            assert all((v, label) in every for v in range(part.nodes))
            assert label not in small.reward_at[:, 1]
    assert unlisted > 100


def test_what_all_must_not_take_is_not_listed() -> None:
    """A million labels forbidden to a million nodes are no list of 10^12 pairs."""
    n = 10**6
    at = np.column_stack([np.arange(n), np.arange(n)])
    part = replace(labelling(n, n), reward_at=at, rewards=np.ones(n, np.int64))
    small = without(part, [(0, 0)], np.zeros(n, np.int64), np.zeros(n, np.int64))
    assert (len(small.banned), len(small.rewards)) == (0, 0)


def test_lists_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the nodes must not take any label: the list is measured before it is made."""
    part = labelling(4, 2, {}, {(0, 0): 1, (1, 1): 1})
    given = part, [(0, 0)], np.zeros(2, np.int64), np.array([0, 0, 1, 1])
    assert len(without(*given).banned) == 4
    monkeypatch.setattr(order, "BAN_BYTES", 2**60)
    with pytest.raises(SizeError, match="barrier order forbids"):
        without(*given)


def test_hopeless_labels_of_a_whole() -> None:
    """Without its rules a problem keeps what some order allows, part by part."""
    for seed in range(200):
        problem = random_problem(seed, 5, 3, barriers=3, negative=seed % 2 == 0)
        order = problem.precedence
        assert order is not None
        parts = split(replace(problem, precedence=None))
        free = with_hopeless(problem, order, parts)
        assert free.precedence is None
        assert optimum(problem) <= optimum(free)
        table = order.hopeless()
        hopeless = set(pairs_of(table))
        every = [
            (u, label)
            for u in range(problem.nodes)
            for label in range(problem.labels)
            if (int(order.node_readers[u]), int(order.label_barrier[label])) in hopeless
        ]
        bans = np.array(every, np.int64).reshape(-1, 2)
        listed = replace(problem, precedence=None, banned=bans)
        assert optimum(free) == optimum(listed)
        assert allowed(free, random_labels(free, seed).tolist())
