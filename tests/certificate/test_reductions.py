"""Steps of reductions never lose what is best, or are refused."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from layoutopt.certificate.bounds import bound
from layoutopt.certificate.pairwise import Pairwise, fixed
from layoutopt.certificate.reductions import DEEPEST, RULES
from layoutopt.certificate.refused import Refused
from layoutopt.certificate.rows import Array, RowLimits
from tests.certificate.problems import best

WIDE = (1, 1, 2**57, 10**30)
"""Factors of worths; the last two take sums beyond 64 bits."""


def draw(r: random.Random) -> Pairwise:
    """Return a small problem with forbidden entries, equal labels and rows."""
    factor = r.choice(WIDE)

    def array(*shape: int) -> Array:
        size = int(np.prod(shape))
        flat = [r.randint(-3, 3) * factor for _ in range(size)]
        worth = np.array(flat, object if factor > 2**50 else np.int64).reshape(shape)
        mask = np.array([r.random() < 0.2 for _ in range(size)]).reshape(shape)
        return np.asanyarray(np.ma.array(worth, mask=mask)) if r.random() < 0.5 else worth

    nodes = r.randint(1, 5)
    widths = [r.randint(1, 3) for _ in range(nodes)]
    edges, equal, rows = list[Any](), list[Any](), list[RowLimits]()
    for _ in range(r.randint(0, 2 * nodes) if nodes > 1 else 0):
        i, j = r.sample(range(nodes), 2)
        if widths[i] == widths[j] and r.random() < 0.2:
            equal.append((i, j, r.randint(-3, 3) * factor))
        else:
            edges.append((i, j, array(widths[i], widths[j])))
    for _ in range(r.choice([0, 0, 1, 1, 2])):
        counted = r.sample(range(nodes), r.randint(0, nodes))
        terms = {u: np.array([r.randint(-2, 3) for _ in range(widths[u])], object) for u in counted}
        rows.append(RowLimits(terms, r.choice([None, 0, -1]), r.choice([None, 1, 2, 3])))
    return Pairwise([array(width) for width in widths], edges, equal, rows)


def step(r: random.Random, problem: Pairwise, wanted: int, edges: int) -> list[Any]:
    """Return a random step; prices may forbid what is worth about as much as the best."""
    nodes = len(problem.widths)
    rule = r.choice([*RULES, "instead", "leave", "narrow", "price", "cases"])
    two = r.sample(range(nodes), 2) if nodes > 1 else [0, 0]
    entries = {"leave": two[:1], "instead": [two[0], r.randrange(3), r.randrange(3)]}
    if rule in RULES:
        return [rule, entries.get(rule, two)]
    if rule == "narrow":
        return [rule]
    if rule == "cases":
        of = [r.randrange(2) for _ in range(problem.widths[two[0]])]
        own = [[i for i, k in enumerate(of) if k == case] for case in (0, 1)]
        inner = [[step(r, problem, wanted, edges) for _ in range(r.randrange(3))] for _ in own]
        cases = [list(case) for case in zip(own, inner, strict=True)]
        return [rule, [two[0], cases[: r.choice([1, 2, 2, 2])]]]
    parts, size = r.choice([1, 2, 7]), max(1, problem.total // 50)
    price: dict[str, Any] = {
        "parts": parts,
        "rows": [
            [k, r.randint(-2, 2) * size] for k in range(len(problem.rows)) if r.random() < 0.7
        ],
        "messages": [
            r.choice([None, {"at": [0], "put": [r.randint(-2, 2) * parts * size]}])
            for _ in range(edges)
        ],
    }
    if r.random() < 0.7:
        price["forbid"] = wanted + r.choice([-3, -1, -1, 0, 0, 1]) * max(1, size // 3)
    return [rule, price]


def test_steps_never_lose_the_best() -> None:
    """Whatever steps say, in whatever order, the bound holds; mostly it is the best itself."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        r = random.Random(seed)
        problem = draw(r)
        label = r.choice([None, problem.widths[-1] - 1])
        wanted = best(problem, -1, label)
        if label is not None:  # its rows still count the node by its old number of the label
            problem = fixed(problem, len(problem.widths) - 1, label)
        evidence: dict[str, Any] = {"kind": "reductions", "steps": []}
        for _ in range(12):
            before = evidence["steps"]
            edges = r.choice([len(problem.edges), 0, 1, 2])
            evidence["steps"] = [*before, step(r, problem, wanted or 0, edges)]
            evidence["evidence"] = r.choice([None, {"kind": "exhaustive"}])
            try:
                found, word = bound(problem, evidence)
            except Refused as why:
                assert "\n" not in str(why)
                evidence["steps"] = before
                continue
            rule = evidence["steps"][-1][0]
            seen[rule] += 1
            assert not word
            assert wanted is None or found >= wanted, (seed, evidence)
            seen["tight"] += found == wanted
    assert all(seen[rule] > 15 for rule in (*RULES, "narrow", "price", "cases")), seen
    assert seen["tight"] > 400


PATH = Pairwise(
    [np.array([0, 2, 1]), np.array([0, 0]), np.array([1, 0])],
    [(0, 1, np.array([[3, 0], [0, 0], [0, 1]])), (1, 2, np.array([[0, 2], [1, 0]]))],
    (),
    [RowLimits({0: np.array([1, 2, 2], object), 2: np.array([2, 1], object)}, None, 2)],
)
"""The row leaves one labelling of the ends: 0 and 1, worth 3 + 2 with 0 between."""


FORBIDDEN = {"parts": 1, "rows": [], "messages": [None, None], "forbid": 100}
"""What is worth 100 or less is forbidden, so that nothing is left, which proves no more."""


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([["narrow"]], 5),
        ([["narrow"], ["leave", [0], [2], [1]]], 5),
        ([["leave", [1]], ["narrow"]], 5),
        ([], 2 + 0 + 1 + 3 + 2),
        ([["price", {"parts": 1, "rows": [], "messages": [None, None]}]], 5 + 1),
        ([["price", {"parts": 1, "rows": [], "messages": [None, {"at": [1], "put": [1]}]}]], 5),
        ([["cases", [0, [[[0], [["narrow"]]], [[1], [["narrow"]]], [[2], [["narrow"]]]]]]], 5),
        ([["cases", [0, [[[0], [["narrow"]]], [[1, 2], []]]]]], 2 + 0 + 1 + 3 + 2),
        ([["cases", [0, [[[0, 1, 2], [["price", FORBIDDEN]]]]]]], 100),
        ([["narrow"], ["cases", [0, [[[1, 2, 0], [["leave", [1]]]]]]]], 5),
    ],
)
def test_steps_prove_what_they_say(steps: list[Any], found: int) -> None:
    """Rows decide the ends, and what is between them follows."""
    assert best(PATH) == 5
    assert bound(PATH, {"kind": "reductions", "steps": steps}) == (found, False)


def test_cases_leave_out_no_label() -> None:
    """Each label that is allowed is in some case, and cases are nested to a limit."""
    with pytest.raises(Refused, match="cases of node 0 leave out some of its labels"):
        bound(PATH, {"kind": "reductions", "steps": [["cases", [0, [[[0], []], [[2], []]]]]]})
    steps: list[Any] = []
    for _ in range(DEEPEST):
        steps = [["cases", [1, [[[0, 1], steps]]]]]
    assert bound(PATH, {"kind": "reductions", "steps": [["narrow"], *steps]}) == (5, False)
    steps = [["cases", [1, [[[0, 1], steps]]]]]
    with pytest.raises(Refused, match="nested more than"):
        bound(PATH, {"kind": "reductions", "steps": steps})
