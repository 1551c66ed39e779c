"""Evidence proves what it says, or is refused; it can never prove too much."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from layoutopt.certificate.bounds import DEEPEST, bound
from layoutopt.certificate.pairwise import Pairwise, fixed, split, value
from layoutopt.certificate.refused import Refused
from tests.certificate.problems import (
    Evidence,
    best,
    branch,
    cases,
    components,
    dual,
    random_pairwise,
    refused,
    table,
    worth,
)

SEEDS = range(300)


def test_values_are_sums() -> None:
    """The worth of a labelling is the sum over nodes and edges, whatever its size."""
    for seed in SEEDS:
        draw = random.Random(seed)
        problem = random_pairwise(draw)
        labels = [draw.randrange(width) for width in problem.widths]
        assert value(problem, labels) == worth(problem, tuple(labels))


@pytest.mark.parametrize("kind", ["exhaustive", "table", "branch", "components", "deep"])
def test_exact_kinds_prove_the_optimum(kind: str) -> None:
    """Enumeration, elimination in any order, and branches and parts of these, find the optimum."""
    for seed in SEEDS:
        draw = random.Random(seed)
        problem = random_pairwise(draw)
        if kind in ("branch", "deep") and not problem.widths:
            continue
        evidence = {
            "exhaustive": lambda p, _: {"kind": "exhaustive"},
            "table": table,
            "branch": lambda p, d: branch(p, d, table),
            "components": lambda p, d: components(p, d, table),
            "deep": lambda p, d: branch(p, d, lambda q, e: components(q, e, table)),
        }[kind](problem, draw)
        assert bound(problem, evidence) == (best(problem), False)


def test_messages_prove_no_less_than_the_optimum() -> None:
    """No messages whatsoever give a bound below what some labelling is worth."""
    tight = 0
    for seed in SEEDS:
        draw = random.Random(seed)
        problem = random_pairwise(draw)
        found, unverified = bound(problem, dual(problem, draw))
        assert found >= best(problem)
        assert not unverified
        tight += found == best(problem)
    assert 20 < tight < len(SEEDS)


@pytest.mark.parametrize("parts", [1, 7, 2**24, 2**61])
def test_messages_may_count_parts_of_one(parts: int) -> None:
    """Whole numbers of parts prove what the ratios prove that they stand for."""
    for seed in SEEDS:
        draw = random.Random(seed)
        problem = random_pairwise(draw)
        whole = [
            [[draw.randint(-9 * parts, 9 * parts) for _ in range(problem.widths[u])] for u in edge]
            for *edge, _ in problem.edges
        ]
        ratios = [[[str(Fraction(x, parts)) for x in side] for side in pair] for pair in whole]
        found = bound(problem, {"kind": "dual", "parts": parts, "messages": whole})
        assert found == bound(problem, {"kind": "dual", "messages": ratios})
        assert found[0] >= best(problem)


def test_ratios_are_rounded_down_to_whole_worths() -> None:
    """Worths are whole numbers, so that halves of a bound are of no use to a labelling."""
    problem = Pairwise([np.array([0, 0]), np.array([0])], [(0, 1, np.array([[1], [0]]))])
    sixths = [[["1/3", "1/2"], [0]]]  # 1/2 for node 0, 2/3 for the edge
    assert bound(problem, {"kind": "dual", "messages": sixths}) == (1, False)
    third = Pairwise([np.array([0, 0])], [])
    assert bound(third, {"kind": "word", "bound": "7/2"}) == (3, True)
    assert bound(third, {"kind": "word", "bound": "7"}) == (7, True)


def test_ratios_are_exact() -> None:
    """Halves and thirds together prove what neither would if it were rounded to the other."""
    six = range(0, 12, 2)
    unary = [np.array([0, 1]), np.array([0])] * 6
    problem = Pairwise(unary, [(u, u + 1, np.array([[1], [0]])) for u in six])
    messages = [[["1/2", "-1/2"], ["1/3"]] for _ in six]
    assert bound(problem, {"kind": "dual", "messages": messages}) == (6, False)


def test_messages_of_any_size_are_exact() -> None:
    """What an edge gives to all labels of a node alike cancels out, whatever its size."""
    plain = bound(BASE, {"kind": "dual", "messages": MESSAGES})
    for x in (2**53 + 1, 2**62, 2**63, 2**64 - 1, -(2**63) - 1, 10**30, "1/3"):
        messages = [[[x, x], [0, 0, 0]], [[0, 0], [x, x, x]]]
        assert bound(BASE, {"kind": "dual", "messages": messages}) == plain


def test_a_word_is_never_lost() -> None:
    """A solver's word in any leaf or part makes all of it a solver's word."""
    problem = Pairwise([np.array([0, 5]), np.array([1, 1])], [])
    word: Evidence = {"kind": "word", "bound": 3}
    order = {"kind": "table", "order": [0, 1]}
    parts = [{"nodes": [0], "evidence": word}, {"nodes": [1], "evidence": {"kind": "exhaustive"}}]
    assert bound(problem, word) == (3, True)
    branched = {"kind": "branch", "node": 0, "leaves": [word, order]}
    assert bound(problem, branched) == (6, True)
    assert bound(problem, {"kind": "components", "parts": parts}) == (4, True)


def test_parts_and_fixed_nodes_are_worth_what_they_were() -> None:
    """What is left when nodes are fixed, or edges to fixed ones cut, has the same worths."""
    for seed in SEEDS:
        draw = random.Random(seed)
        problem = random_pairwise(draw)
        labels = [draw.randrange(width) for width in problem.widths]
        cut = problem
        for node, label in enumerate(labels):
            cut = fixed(cut, node, label)
        assert cut.widths == [1] * len(labels)
        assert value(cut, [0] * len(labels)) == value(problem, labels)
        alone = split(cut, [[u] for u in range(len(labels))])
        assert sum(value(own, [0]) for own in alone) == value(problem, labels)


def test_forbidden_labels_stay_forbidden() -> None:
    """Label 0 of node 1 is forbidden in three ways at once, and no sum of these is allowed."""
    own = [np.array([0, -100]), np.ma.array([0, 0], mask=[True, False]), np.array([2, 2])]
    shut = np.ma.array(np.zeros((2, 2), int), mask=[[True, False], [False, False]])
    problem = Pairwise(own, [(0, 1, shut), (1, 2, np.zeros((2, 2), int))], [(0, 1, -1)])
    one, two, all_three = ({"kind": "table", "order": [*range(n)]} for n in (1, 2, 3))
    parts = [{"nodes": [0], "evidence": one}, {"nodes": [1, 2], "evidence": two}]
    apart = {"kind": "components", "parts": parts}
    found = bound(problem, {"kind": "branch", "node": 0, "leaves": [apart, all_three]})
    assert found == bound(problem, all_three) == (2, False)


BASE = Pairwise(
    [np.array([0, 2]), np.array([1, 0, 3]), np.array([0, 1])],
    [(0, 1, np.array([[1, 2, 0], [0, 4, 1]])), (2, 1, np.array([[0, 1, 2], [3, 0, 0]]))],
)
ORDER: Evidence = {"kind": "table", "order": [0, 1, 2]}
MESSAGES = [[[0, 0], [0, 0, 0]], [[0, 0], [0, 0, 0]]]


def _deep(levels: int) -> Evidence:
    evidence = ORDER
    for _ in range(levels):
        part = {"nodes": [0, 1, 2], "evidence": evidence}
        evidence = {"kind": "components", "parts": [part]}
    return evidence


def _message(entry: object) -> Evidence:
    return {"kind": "dual", "messages": [[[0, entry], [0, 0, 0]], MESSAGES[1]]}


def _part(**change: Any) -> Evidence:
    part = {"nodes": [0, 1, 2], "evidence": ORDER} | change
    return {"kind": "components", "parts": [part]}


def _leaves(*leaves: object, node: object = 0) -> Evidence:
    return {"kind": "branch", "node": node, "leaves": list(leaves)}


WRONG: dict[str, list[tuple[object, str]]] = cases("evidence") | {
    "without end": [
        (_message("9" * 5000), "neither an integer"),
        (_deep(DEEPEST + 1), "nested more than"),
        (_deep(400), "nested more than"),
    ]
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_evidence_is_refused_with_its_reason(kind: str) -> None:
    """Mistakes of each kind are refused in one line that names the mistake."""
    for evidence, reason in WRONG[kind]:
        with refused(reason):
            bound(BASE, evidence)


def test_what_is_wrong_above_is_right_otherwise() -> None:
    """The problem and evidence that the mistakes are made in are accepted without them."""
    assert bound(BASE, ORDER) == (best(BASE), False)
    assert bound(BASE, _part()) == (best(BASE), False)
    assert bound(BASE, _leaves(ORDER, ORDER)) == (best(BASE), False)
    assert bound(BASE, _deep(DEEPEST)) == (best(BASE), False)
    assert bound(BASE, _message("-4/6"))[0] >= best(BASE)
    assert bound(BASE, _message(10**400))[0] >= 10**400


def test_branches_are_nested_only_so_deep() -> None:
    """A branch on a node of one label counts as well, so that no recursion is too deep."""
    problem = Pairwise([np.array([4])], [])
    evidence: Evidence = {"kind": "exhaustive"}
    for _ in range(DEEPEST):
        evidence = _leaves(evidence)
    assert bound(problem, evidence) == (4, False)
    with pytest.raises(Refused, match="nested more than"):
        bound(problem, _leaves(evidence))


def test_large_tables_are_refused() -> None:
    """What would take too much memory is refused before it is made."""
    nodes = 25
    star = [(0, u, np.eye(2, dtype=np.int64)) for u in range(1, nodes)]
    problem = Pairwise([np.array([0, 1])] * nodes, star)
    order = list(range(nodes))
    with pytest.raises(
        Refused, match="eliminating node 0 makes a table of more than 10000000 entries"
    ):
        bound(problem, {"kind": "table", "order": order})
    with pytest.raises(Refused, match="more than 1000000 labellings"):
        bound(problem, {"kind": "exhaustive"})
    assert bound(problem, {"kind": "table", "order": order[::-1]}) == (2 * nodes - 1, False)


def problem_of(unary: Any, edges: Any) -> Pairwise:
    """Return the problem of lists of worths."""
    return Pairwise([np.array(own) for own in unary], [(i, j, np.array(t)) for i, j, t in edges])
