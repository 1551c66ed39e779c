"""Heuristics on labelling problems: guarantees, moves, and single steps against everything else."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from layoutopt.base.entries import Takes, load
from layoutopt.base.limits import Limits, Stopped
from layoutopt.network.heuristics import methods
from layoutopt.network.heuristics.methods import (
    expand,
    expansion,
    grow,
    isolate,
    on_simplex,
    refine,
    relax,
    round_off,
)
from layoutopt.network.problem import IntArray, Labelling, exact_sum, own_fresh, split
from layoutopt.network.solvers.formulation import Indicators, indicators
from tests.laws.test_solvers import stated
from tests.support import (
    allowed,
    hard_problem,
    labelling,
    optimum,
    random_labels,
    random_problem,
    worth,
)


def listed(pairs: IntArray, numbers: IntArray) -> list[tuple[tuple[int, int], int]]:
    """Return edges with weights, or choices with rewards."""
    return [((u, v), n) for (u, v), n in zip(pairs.tolist(), numbers.tolist(), strict=True)]


def exact(problem: Labelling) -> int:
    """Return the optimum, of a large problem that which ``auto`` proves."""
    if problem.nodes < 6:
        return optimum(problem)
    result = load("auto", Takes.LABELLING)(problem, Limits(), None)
    assert result.objective == result.bound
    return int(result.objective or 0)


def nowhere(problem: Labelling) -> IntArray:
    """Return a start of which methods that need none make nothing."""
    return np.zeros(problem.nodes, np.int64)


def grown(problem: Labelling, limits: Limits, start: IntArray) -> IntArray:
    """Return what the first start of the randomised greedy0 leads to."""
    return grow(problem, limits, start, starts=1)


def whole(problem: Labelling) -> int:
    """Return all weights, and each node's largest reward."""
    most = np.zeros(problem.nodes, np.int64)
    np.maximum.at(most, problem.reward_at[:, 0], problem.rewards)
    return exact_sum(problem.weights) + exact_sum(most)


GUARANTEES: dict[
    str, tuple[Callable[..., IntArray], Callable[[Labelling], tuple[int, Fraction]]]
] = {
    "alpha-expansion": (expand, lambda p: (whole(p), Fraction(2))),
    "isolating": (isolate, lambda p: (p.total(), 2 - Fraction(2, max(p.labels, 1)))),
    "rounded": (round_off, lambda p: (p.total(), Fraction(3, 2) - Fraction(1, max(p.labels, 2)))),
}
"""What is lost of a sum is at most a multiple of the least loss, in components."""


@cache
def _parts() -> list[tuple[Labelling, int]]:
    """Return all components of small problems and some larger problems, with their optima."""
    small = [part for seed in range(150) for part in split(random_problem(seed, 5, 4)).parts]
    return [(p, exact(p)) for p in [*small, *(hard_problem(seed, 30, 5) for seed in range(25))]]


@pytest.mark.parametrize("name", GUARANTEES)
def test_guarantees(name: str) -> None:
    """All components of 150 small problems, and 25 larger problems."""
    solve, promise = GUARANTEES[name]
    worse = several = 0
    for seed, (part, best) in enumerate(_parts()):
        total, factor = promise(part)
        lost = total - part.value(solve(part, Limits(), random_labels(part, seed)))
        least = total - best
        assert least <= lost <= factor * least
        worse += lost > least
        several += part.labels > 2
    assert several > 75
    assert worse > 5 or name != "isolating"


BY_HAND = tomllib.loads((Path(__file__).parents[1] / "cases/heuristics.toml").read_text())
METHODS = {"grow": grown, "isolate": isolate, "refine": refine, "expand": expand}


@pytest.mark.parametrize("name", BY_HAND)
def test_methods_by_hand(name: str) -> None:
    """What a method leads to, as worked out by hand."""
    case = BY_HAND[name]
    problem, start = stated(case), np.array(case.get("start", [0] * case["nodes"]))
    assert METHODS[case["method"]](problem, Limits(), start).tolist() == case["found"]


# Expansion


def best_step(problem: Labelling, labels: list[int], to: int) -> int:
    """Return the best value of all labellings in which some nodes change to a label."""
    moves = product((False, True), repeat=problem.nodes)
    moved = ([to if c else x for c, x in zip(move, labels, strict=True)] for move in moves)
    return max(worth(problem, after) for after in moved if allowed(problem, after))


def test_expansion_steps() -> None:
    """A step is the best of its kind if no edge is negative, and never loses if some are.

    Of two labels the first step from everything fresh takes all, the second the best part of it.
    """
    gained = missed = 0
    for seed in range(300):
        problem = random_problem(seed, 6, negative=seed % 2 == 0, bans=seed % 3 == 0)
        labels = random_labels(problem, seed)
        for to in range(problem.labels + 1):
            moved = expansion(problem, labels, to)
            assert allowed(problem, moved.tolist())
            assert ((moved == labels) | (moved == to)).all()
            value, best = problem.value(moved), best_step(problem, labels.tolist(), to)
            assert problem.value(labels) <= value <= best
            gained += value > problem.value(labels)
            missed += value < best
            if not (problem.weights < 0).any():
                assert value == best
        two = random_problem(seed, 6, 2)
        start = two.labels + np.arange(two.nodes)
        assert two.value(expand(two, Limits(), start)) == optimum(two)
    assert gained > 300
    assert 0 < missed < 60
    signed = labelling(3, 1, {(0, 1): 9, (1, 2): -9}, {(0, 0): 1, (2, 0): 8})
    assert signed.value(expand(signed, Limits(), np.array([0, 0, 0]))) == 9 + 8


def test_no_expansion_is_left() -> None:
    """No label's expansion improves the answer, which takes more than one round of all labels."""
    rounds = 0
    for seed in range(20):
        problem = hard_problem(seed, 150, 12)
        labels = random_labels(problem, seed)
        found = expand(problem, Limits(), labels)
        for to in range(problem.labels):
            assert problem.value(expansion(problem, found, to)) == problem.value(found)
            labels = expansion(problem, labels, to)
        rounds += problem.value(labels) < problem.value(found)
    assert rounds > 1


# Local search


def moves(problem: Labelling, labels: list[int]) -> Iterator[list[int]]:
    """Yield what every single move makes of a labelling, by the definition."""
    every = range(problem.labels + problem.nodes)
    for group in (*groups(problem, labels), *({u} for u in range(problem.nodes))):
        for label in every:
            yield [label if u in group else own for u, own in enumerate(labels)]
    for u, v in problem.edges.tolist():
        swapped = list(labels)
        swapped[u], swapped[v] = labels[v], labels[u]
        yield swapped


def groups(problem: Labelling, labels: list[int]) -> list[set[int]]:
    """Return the sets of nodes that agree along edges of positive weight."""
    found = [{u} for u in range(problem.nodes)]
    for (u, v), weight in listed(problem.edges, problem.weights):
        if labels[u] == labels[v] and weight > 0:
            one, two = (next(group for group in found if w in group) for w in (u, v))
            if one is not two:
                found.remove(two)
                one |= two
    return found


def test_no_move_is_left() -> None:
    """On 250 random problems no move of a node, a pair or a group improves the answer."""
    tried = 0
    for seed in range(250):
        problem = random_problem(seed, 7, negative=seed % 2 == 0, bans=seed % 3 == 0)
        start = random_labels(problem, seed)  # labels that somebody wants, and fresh ones
        known = np.isin(start, problem.reward_at[:, 1]) | (start >= problem.labels)
        start = np.where(known, start, problem.labels + np.arange(problem.nodes))
        labels = refine(problem, Limits(), start).tolist()
        value = worth(problem, labels)
        for moved in moves(problem, labels):
            if allowed(problem, moved):
                tried += 1
                assert worth(problem, moved) <= value, (seed, labels, moved)
    assert tried > 8_000
    both = labelling(2, 2, {(0, 1): 5}, {(0, 0): 1, (1, 1): 1})
    assert both.value(refine(both, Limits(), np.array([0, 1]))) == 6  # not swapped for ever
    assert own_fresh(np.array([7, 1, 9, 7, 3, 9]), 3).tolist() == [3, 1, 5, 3, 7, 5]


# Growth


def literal(problem: Labelling) -> list[int]:
    """Grow a labelling by the dearest tie between what is known and what is not."""
    labels = [-1] * problem.nodes
    while True:
        wishes = listed(problem.reward_at, problem.rewards)
        ties = [(r, u, label) for (u, label), r in wishes if labels[u] < 0]
        for (u, v), w in listed(problem.edges, problem.weights):
            for near, far in ((u, v), (v, u)):
                if labels[near] < 0 <= labels[far]:
                    ties.append((w, near, labels[far]))
        if not ties:
            return labels
        _, u, label = max(ties)
        labels[u] = label


def distinct(seed: int) -> Labelling:
    """Return a random problem no two numbers of which are equal."""
    draw = random.Random(seed)
    n, k = draw.randint(1, 9), draw.randint(1, 4)
    numbers = iter(draw.sample(range(1, 1000), 200))
    edges = {p: next(numbers) for p in combinations(range(n), 2) if draw.random() < 0.4}
    wishes = {p: next(numbers) for p in product(range(n), range(k)) if draw.random() < 0.3}
    return labelling(n, k, edges, wishes)


def test_growth() -> None:
    """Without chance the spanning tree gives what growing tie by tie gives; more starts help."""
    better = 0
    for seed in range(120):
        problem = distinct(seed)
        found = grown(problem, Limits(), nowhere(problem))
        for own, other in zip(found.tolist(), literal(problem), strict=True):
            assert own == other or (other < 0 and own >= problem.labels)
        if seed % 3 == 0:
            more = problem.value(grow(problem, Limits(), nowhere(problem), starts=40))
            assert problem.value(found) <= more <= exact(problem)
            better += problem.value(found) < more == exact(problem)
    assert better > 3


# Isolating cuts


@pytest.mark.parametrize("k", [3, 4, 5])
def test_the_guarantee_of_cuts_is_tight(k: int) -> None:
    """On a ring with a label for each node all isolating cuts take the wrong side.

    Edges of the ring weigh 10, every node wants its own label for 19.  To cut a node off costs
    20, its wish only 19, so k - 1 wishes are lost; cutting the ring would cost 10 k.
    """
    edges = {(min(u, (u + 1) % k), max(u, (u + 1) % k)): 10 for u in range(k)}
    problem = labelling(k, k, edges, {(u, u): 19 for u in range(k)})
    labels = isolate(problem, Limits(), nowhere(problem))
    assert problem.total() - problem.value(labels) == 19 * (k - 1)
    assert problem.total() - optimum(problem) == 10 * k


def test_against_all_cuts() -> None:
    """The rest has the label that earns most: the paper's dearest one where none earns more.

    The smallest of all cheapest inner sides is given to each label but the dearest.
    """
    ties = 0
    parts = (part for seed in range(120) for part in split(random_problem(seed, 5, 4)).parts)
    for part in parts:
        nodes = range(part.nodes)
        sides = [set(side) for size in range(part.nodes + 1) for side in combinations(nodes, size)]
        edges, wishes = listed(part.edges, part.weights), listed(part.reward_at, part.rewards)
        cost, side = {}, {}
        for label in range(part.labels):
            cuts = []
            for inside in sides:
                outer = sum(w for (u, v), w in edges if (u in inside) != (v in inside))
                lost = sum(r for (u, m), r in wishes if (u in inside) != (m == label))
                cuts.append((outer + lost, len(inside), inside))
            cost[label], _, side[label] = min(cuts, key=lambda cut: cut[:2])
        if not cost:
            continue
        dearest = max(cost, key=lambda label: (cost[label], -label))
        kept = {u: label for label in cost if label != dearest for u in side[label]}
        values = [worth(part, [kept.get(u, label) for u in nodes]) for label in cost]
        assert part.value(isolate(part, Limits(), nowhere(part))) == max(values)
        ties += min(values) < max(values)
    assert ties > 60
    # Without time for any cut all nodes take the label that would earn most in all.
    problem = labelling(3, 2, {(0, 1): 1, (1, 2): 1}, {(0, 0): 5, (1, 1): 4, (2, 1): 4})
    assert isolate(problem, Limits(deadline=0.0), nowhere(problem)).tolist() == [1, 1, 1]


# Rounding


def linear_optimum(given: Indicators) -> float:
    """Return the optimum of the relaxation by HiGHS, row by row as it is written."""
    x, y = len(given.node), len(given.match)
    rows, limits = [], []
    for e, ((a, b), w) in enumerate(listed(given.match, given.weights)):
        for places, limit in [((a,), 0), ((b,), 0)] if w > 0 else [((a, b), 1)]:
            row = np.zeros(x + y)
            row[x + e] = 1 if w > 0 else -1
            row[list(places)] = -1 if w > 0 else 1
            rows.append(row)
            limits.append(limit)
    sums = np.zeros((given.nodes, x + y))
    sums[given.node, np.arange(x)] = 1
    objective = -np.concatenate([given.rewards, given.weights]).astype(float)
    upper = np.array(rows).reshape(-1, x + y) if rows else None
    found = linprog(objective, upper, limits or None, sums, np.ones(given.nodes), bounds=(0, 1))
    assert found.status == 0
    return float(-found.fun)


def value_of(given: Indicators, fractions: np.ndarray) -> float:
    """Return what fractions are worth."""
    a, b = fractions[given.match.T]
    earned = np.where(given.weights > 0, np.minimum(a, b), np.maximum(a + b - 1, 0))
    return float(given.rewards @ fractions + given.weights @ earned)


def test_relaxation() -> None:
    """On 120 small and 4 larger problems the fractions come within a hundredth of the optimum."""
    small = (
        random_problem(seed, 6, negative=seed % 2 == 0, bans=seed % 3 == 0) for seed in range(120)
    )
    large = (hard_problem(seed, 25, 4, negative=seed % 2 == 0) for seed in range(4))
    for problem in (*small, *large):
        given = indicators(problem)
        fractions = relax(given, Limits())
        assert (fractions >= 0).all()
        assert np.allclose(np.bincount(given.node, fractions), 1)
        best, found = linear_optimum(given), value_of(given, fractions)
        assert best - 0.01 * (1 + abs(best)) <= found <= best + 1e-6 * (1 + abs(best))


def test_projection() -> None:
    """The nearest point by trying how many of the largest numbers stay above 0."""
    draw = np.random.default_rng(0)
    for _ in range(200):
        node = np.repeat(np.arange(4), draw.integers(1, 6, 4))
        values = draw.normal(0, 2, len(node)) * 10.0 ** draw.integers(0, 6)
        found = on_simplex(values, node, np.searchsorted(node, np.arange(4)))
        for u in range(4):
            own = np.sort(values[node == u])[::-1]
            excess = [(own[:k].sum() - 1) / k for k in range(1, len(own) + 1)]
            k = max(k for k in range(1, len(own) + 1) if own[k - 1] > excess[k - 1])
            assert np.allclose(found[node == u], np.maximum(values[node == u] - excess[k - 1], 0))


def test_thresholds_decide_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the relaxation is all halves, or parts what should agree, thresholds find an optimum.

    Three nodes, tied by 1 each, want two of three labels for 3 each, so that any two have one label
    in common.  Halves earn 9 and half of each edge; one edge and 9 is the most that labels earn.
    Nodes 0 and 1, near either label, agree at some threshold; 2 and 3 keep their own labels.
    """
    wishes = {(u, label): 3 for u in range(3) for label in range(3) if u != label}
    problem = labelling(3, 3, {(0, 1): 1, (0, 2): 1, (1, 2): 1}, wishes)
    fractions = relax(indicators(problem), Limits())
    assert value_of(indicators(problem), fractions) == pytest.approx(10.5, abs=0.05)
    assert sorted(fractions.tolist()) == pytest.approx([0] * 3 + [0.5] * 6, abs=0.01)
    assert optimum(problem) == problem.value(round_off(problem, Limits(), nowhere(problem))) == 10
    wishes = {(0, 0): 1, (1, 1): 1, (2, 1): 10, (3, 0): 10}
    problem = labelling(4, 2, {(0, 1): 5, (1, 2): 1, (2, 3): 1}, wishes)
    fractions = np.array([0.6, 0.4, 0.4, 0.6, 0.01, 0.99, 0.99, 0.01])
    monkeypatch.setattr(methods, "relax", lambda *_: fractions)
    assert round_off(problem, Limits(), nowhere(problem)).tolist() == [1, 1, 1, 0]
    # A relaxation that is too large is not begun, and the result says so.
    monkeypatch.setattr(methods, "CELLS_LIMIT", 30)
    result = load("rounded", Takes.LABELLING)(hard_problem(1, 30, 4), Limits(), None)
    assert (result.labelling, result.objective, result.bound) == (None, None, None)
    assert result.stopped is Stopped.SIZE_LIMIT
