"""Evidence is found that proves what is best, or says that it is a solver's word."""

from __future__ import annotations

import random

import numpy as np
import pytest

from layoutopt.base.limits import limited
from layoutopt.certificate.bounds import bound
from layoutopt.certificate.pairwise import Pairwise, value
from layoutopt.network import evidence as pairwise
from layoutopt.network.evidence import evidence
from tests.certificate.problems import best, random_pairwise
from tests.network.test_certificates import kinds


def best_labels(problem: Pairwise) -> list[int]:
    """Return a best labelling, found by improving one label after the other from many starts."""
    draw, found = random.Random(0), [0] * len(problem.widths)
    for _ in range(12):
        labels = [draw.randrange(width) for width in problem.widths]
        before = None
        while before != labels:
            before = list(labels)
            for u, width in enumerate(problem.widths):
                every = [[*labels[:u], x, *labels[u + 1 :]] for x in range(width)]
                labels = max([labels, *every], key=lambda own: value(problem, own))
        found = max(found, labels, key=lambda own: value(problem, own))
    return found


def attractive(nodes: int, seed: int) -> Pairwise:
    """Return a dense problem of two labels that agree gladly: its relaxation is integral."""
    draw = random.Random(seed)
    agree = np.array([[1, 0], [0, 1]])
    edges = [
        (u, v, agree * draw.randint(1, 3))
        for u in range(nodes)
        for v in range(u)
        if draw.random() < 0.4
    ]
    return Pairwise([np.array([0, draw.randint(-6, 6)]) for _ in range(nodes)], edges)


def repulsive(nodes: int) -> Pairwise:
    """Return a complete graph whose nodes would all like to differ: no messages prove much."""
    differ = np.array([[0, 1], [1, 0]])
    edges = [(u, v, differ) for u in range(nodes) for v in range(u)]
    return Pairwise([np.zeros(2, np.int64) for _ in range(nodes)], edges)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no table have more than 32 entries."""
    monkeypatch.setattr(pairwise, "TABLE", 32)


@pytest.mark.usefixtures("small")
def test_messages_are_taken_where_tables_are_large() -> None:
    """Problems whose relaxation is integral are proved by its messages, in whole numbers."""
    for seed in range(10):
        problem = attractive(16, seed)
        labels = best_labels(problem)
        proof = evidence(problem, labels)
        assert bound(problem, proof) == (value(problem, labels), False)
        assert kinds(proof) <= {"components", "dual", "table"}
        assert "dual" in kinds(proof)


@pytest.mark.usefixtures("small")
def test_hard_parts_do_not_spoil_easy_ones() -> None:
    """A part that tables prove, nodes of one label and two hard parts are proved one by one."""
    hard = repulsive(8)
    unary = [*hard.unary, *hard.unary, np.array([3]), np.array([0, 1]), np.array([2, 0])]
    edges = [*hard.edges, *((i + 8, j + 8, t) for i, j, t in hard.edges)]
    edges += [(16, u, np.array([[0, 5]])) for u in (0, 8, 17)]
    edges += [(17, 18, np.array([[0, 1], [4, 0]]))]
    problem = Pairwise(unary, edges)
    labels = [*(1 - u % 2 for u in range(8)), *(1 - u % 2 for u in range(8)), 0, 1, 0]
    proof = evidence(problem, labels)
    assert bound(problem, proof) == (value(problem, labels), False) == (16 * 2 + 10 + 3 + 12, False)
    assert len(proof["parts"]) == 3


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("setting", "value", "seconds"), [("SEARCH", 1e-9, None), ("DEPTH", 0, None), ("DEPTH", 9, 0.0)]
)
def test_what_is_not_proved_is_a_word(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: float, seconds: float | None
) -> None:
    """Without effort, branches or time, the bound is there, and is told to be a word."""
    monkeypatch.setattr(pairwise, setting, value)
    problem = repulsive(9)
    proof = evidence(problem, [u % 2 for u in range(9)], limited(seconds))
    assert bound(problem, proof) == (20, True)
    assert kinds(proof) == {"components", "word"}


@pytest.mark.parametrize("depth", [0, 2, 48])
@pytest.mark.parametrize("few", [(), ("TABLE",), ("TABLE", "ENTRIES")])
def test_nothing_proves_less_than_the_optimum(
    monkeypatch: pytest.MonkeyPatch, few: tuple[str, ...], depth: int
) -> None:
    """However tables, relaxations and branches are allowed, what is found proves what is asked.

    A bound below the optimum has no evidence; one at the optimum may have.
    """
    monkeypatch.setattr(pairwise, "DEPTH", depth)
    for setting in few:
        monkeypatch.setattr(pairwise, setting, 1)
    problems = [random_pairwise(random.Random(seed)) for seed in range(12)] + [repulsive(6)]
    for problem in problems:
        top = best(problem)
        assert pairwise.proof(problem, top - 1, limited()) is None
        found = pairwise.proof(problem, top, limited())
        assert found is None or bound(problem, found)[0] == top
