"""Classes earn what they say, and no labels earn more than their evidence proves."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from layoutopt.certificate import classes
from layoutopt.certificate.classes import Class
from layoutopt.certificate.refused import Refused

Banned = frozenset[tuple[int, int]]


def labellings(own: Class) -> Any:
    """Return all labels of a class's nodes: a terminal, or the location of a node up to itself."""
    terminals = range(len(own.terminals))
    return product(*([*terminals, *(-1 - i for i in range(j + 1))] for j in range(own.nodes)))


def earned(own: Class, labels: Any) -> int:
    """Return what labels earn, edge for edge."""
    found = sum(w for i, j, w in own.edges if labels[i] == labels[j])
    return found + sum(w for i, m, w in own.rewards if labels[i] == m)


def best(own: Class, banned: Banned = frozenset()) -> int:
    """Return the most that labels earn, by trying all."""
    return max(earned(own, x) for x in labellings(own) if banned.isdisjoint(enumerate(x)))


def random_class(draw: random.Random, negative: bool) -> Class:
    """Return a small class, with labels drawn as well."""
    nodes, count = draw.randint(1, 4), draw.randint(0, 3)
    low = -6 if negative else 0
    pairs = [(i, j) for i in range(nodes) for j in range(i) if draw.random() < 0.7]
    ends = [(i, m) for i in range(nodes) for m in range(count) if draw.random() < 0.6]
    given = {
        "labels": [draw.choice([*range(count), -1 - draw.randint(0, i)]) for i in range(nodes)],
        "terminals": [[]] * count,
        "edges": [[i, j, draw.randint(low, 9)] for i, j in pairs],
        "rewards": [[i, m, draw.randint(low, 9)] for i, m in ends],
    }
    return Class(given, "class 0")


def random_flow(draw: random.Random, own: Class, banned: Banned) -> dict[str, Any]:
    """Return a flow: paths over edges from terminal 0 to others, as much as fits."""
    rewards = [(i, m, w) for i, m, w in own.rewards if (i, m) not in banned]
    through, ends = [0] * len(own.edges), [0] * len(rewards)
    for _ in range(12):
        starts = [k for k, (_, m, w) in enumerate(rewards) if m == 0 and ends[k] < w]
        if not starts:
            break
        first = draw.choice(starts)
        at, path = rewards[first][0], []
        for _ in range(draw.randint(0, 3)):
            steps = []
            for k, (i, j, w) in enumerate(own.edges):
                if at in (i, j):
                    sign = 1 if at == i else -1
                    if sign * through[k] < w and k not in [k for k, *_ in path]:
                        steps.append((k, sign, j if at == i else i))
            if steps:
                path.append(draw.choice(steps))
                at = path[-1][2]
        last = [k for k, (i, m, w) in enumerate(rewards) if i == at and m and ends[k] < w]
        for k in draw.sample(last, min(1, len(last))):
            ends[k], ends[first] = ends[k] + 1, ends[first] + 1
            for edge, sign, _ in path:
                through[edge] += sign
    return {"kind": "flow", "edges": through, "rewards": ends}


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("kind", ["earned", "flow", "exhaustive", "table", "dual"])
def test_no_labels_earn_more_than_a_bound(kind: str, negative: bool) -> None:
    """Every kind of evidence gives a bound that no labels exceed; tables give the best there is."""
    draw, tight = random.Random(f"{kind} {negative}"), 0
    for _ in range(150):
        own = random_class(draw, negative)
        assert own.score() == earned(own, own.labels)
        every = [(j, m) for j in range(own.nodes) for m in range(len(own.terminals))]
        banned = frozenset(pair for pair in every if draw.random() < 0.2)
        evidence: dict[str, Any] = {"kind": kind}
        if kind == "flow":
            evidence = random_flow(draw, own, banned)
        if kind == "table":
            evidence["order"] = draw.sample(range(own.nodes), own.nodes)
        if kind == "dual":
            widths = own.pairwise(banned).widths
            evidence["messages"] = [
                [[draw.randint(-5, 5) for _ in range(widths[u])] for u in edge[:2]]
                for edge in own.edges
            ]
        found, unverified = own.bound(evidence, banned)
        most = best(own, banned)
        assert found >= most
        assert not unverified
        tight += found == most
        if kind in ("exhaustive", "table"):
            assert found == most
    assert tight > 10


def test_flows_are_told_from_less() -> None:
    """A flow through an edge, against its direction, proves the largest bound that is right."""
    given = {
        "labels": [0, 0],
        "terminals": [[], []],
        "edges": [[1, 0, 5], [0, 1, 1]],
        "rewards": [[0, 0, 9], [1, 1, 7], [0, 1, 2]],
    }
    own = Class(given, "class 0")
    flow = {"kind": "flow", "edges": [-5, 1], "rewards": [8, 6, 2]}
    assert own.bound(flow) == (24 - 8, False) == (best(own), False)
    less = {"kind": "flow", "edges": [0, 0], "rewards": [0, 0, 0]}
    assert own.bound(less) == (24, False)
    ban = frozenset({(1, 1)})
    assert own.bound({"kind": "flow", "edges": [0, 0], "rewards": [2, 2]}, ban) == (15, False)
    assert own.bound({"kind": "word", "bound": "47/3"}) == (15, True)


GOOD: dict[str, Any] = {
    "labels": [0, -1, -1],
    "terminals": [[], []],
    "edges": [[0, 1, 3], [1, 2, -4]],
    "rewards": [[0, 0, 2], [1, 1, 5], [2, 1, 0]],
}

FLOW: dict[str, Any] = {"kind": "flow", "edges": [2, 0], "rewards": [2, 2, 0]}


def test_terminals_below_others_are_left_out() -> None:
    """Where no edge is negative, three of six terminals are worth a label, and "elsewhere" none."""
    worth = [(3, 1), (1, 3), (2, 1), (1, 1), (2, 2), (0, 0)]
    given = {
        "labels": [0, 0],
        "terminals": [[]] * 6,
        "edges": [[0, 1, 2]],
        "rewards": [[i, m, w[i]] for m, w in enumerate(worth) for i in range(2)],
    }
    own = Class(given, "class 0")
    rows = sorted(map(tuple, np.array(own.pairwise().unary).T.tolist()))
    assert rows == [(1, 3), (2, 2), (3, 1)]
    banned = frozenset((0, m) for m in range(5))  # left are terminal 1, and elsewhere
    assert own.pairwise(banned).widths == [2, 2]
    assert own.bound({"kind": "exhaustive"}, banned)[0] == best(own, banned) == 3
    signed = Class(given | {"edges": [[0, 1, -2]]}, "class 0")
    assert signed.pairwise().widths == [8, 8]  # each node has a location of its own
    for kind in ({"kind": "exhaustive"}, {"kind": "table", "order": [1, 0]}):
        assert own.bound(kind)[0] == best(own) == 6
        assert signed.bound(kind)[0] == best(signed) == 6


def test_weights_of_any_size_are_exact() -> None:
    """Weights beyond what 53 or 64 bits hold are added up as whole numbers."""
    for one in (2**53 + 1, 2**63 + 1, 2**64 + 1, 10**30 + 1):
        for sign in (1, -1):
            given = {
                "labels": [0, 0],
                "terminals": [[]] * 2,
                "edges": [[0, 1, sign * (one + 2)]],
                "rewards": [[0, 0, one], [1, 1, one - 3], [0, 1, 1], [1, 0, -one]],
            }
            own = Class(given, "class 0")
            for banned in (frozenset[tuple[int, int]](), frozenset({(0, 0)})):
                assert own.bound({"kind": "exhaustive"}, banned)[0] == best(own, banned)


def test_terminals_that_are_worth_almost_the_same() -> None:
    """One of two large worths, of numbers that are no 64 bits together, is the larger one."""
    rewards = [[1, 0, 2**63], [0, 1, -1], [1, 1, 2**63 + 1]]
    given = {"labels": [0, 0], "terminals": [[]] * 2, "edges": [[0, 1, 0]], "rewards": rewards}
    own = Class(given, "class 0")
    assert own.bound({"kind": "exhaustive"}) == (2**63 + 1, False) == (best(own), False)


def test_large_classes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of worths of more entries than memory holds are refused before they are made."""
    own = random_class(random.Random(4), True)
    monkeypatch.setattr(classes, "MOST_ENTRIES", 2)
    with pytest.raises(Refused, match="class 0 is too large for this kind of evidence"):
        own.bound({"kind": "exhaustive"})
    assert own.bound({"kind": "word", "bound": 99}) == (99, True)  # needs no tables
    monkeypatch.setattr(classes, "MOST_ENTRIES", 10**7)
    assert own.bound({"kind": "exhaustive"})[0] == best(own)
