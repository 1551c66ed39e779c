"""Problems with capacity: values, bounds and proofs against trying everything."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.result import Status
from layoutopt.network.capacity import pool, search, solve
from layoutopt.network.capacity.answer import CapacityAnswer, Reason, State
from layoutopt.network.capacity.fill import rounded
from layoutopt.network.capacity.problem import CapacityProblem, Columns
from layoutopt.network.capacity.solve import solve_capacity
from layoutopt.network.problem import IntArray, Labelling
from tests.network.capacity.cases import (
    all_labellings,
    assert_sound,
    case,
    large_case,
    optimum,
    random_case,
    solved_case,
)

PATHS: dict[str, tuple[tuple[str, ...], dict[tuple[Any, str], Any]]] = {
    # Which strategies are left (all if none), and what else is changed.
    "all": ((), {}),
    "search alone": (("free", "search"), {}),
    "search after poor placements": (("free", "pack", "search"), {}),
    "kinds beside single nodes": (("free", "search"), {(pool, "NODES"): 1}),
    "single nodes": ((), {(pool, "NODES"): 0}),
    "no linear programme": ((), {(solve, "solve_master"): lambda *_: None}),
}


def keep(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Leave some strategies only."""
    patch.setattr(solve, "STRATEGIES", {name: solve.STRATEGIES[name] for name in names})


def assert_proved(problem: CapacityProblem, answer: CapacityAnswer, best: int | None) -> None:
    """Check an answer that must be proved, against trying everything."""
    if best is None:
        assert answer.status is Status.INFEASIBLE
        assert answer.placement is None
        short = (problem.capacity // answer.grain).sum() * answer.grain < problem.total_bytes
        assert (answer.infeasible is Reason.BYTES) == short
    else:
        assert (answer.objective, answer.bound) == (best, best)
        assert answer.status is Status.OPTIMAL
        assert answer.dual is not None
        assert answer.dual >= best
        assert_sound(problem, answer)


@pytest.mark.parametrize("path", PATHS)
def test_random_problems_are_proved(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every path random problems are proved optimal, or not to fit, as trying all finds.

    CP-SAT does not take numbers beyond 64 bits; the search of single nodes rounds these up.
    """
    names, changes = PATHS[path]
    if names:
        keep(monkeypatch, *names)
    for (module, name), value in changes.items():
        monkeypatch.setattr(module, name, value)
    mixed, searched, both = [], 0, search._solve  # noqa: SLF001

    def watched(state: State, to: object, listed: object, nodes: object, *more: Any) -> None:
        mixed.append(listed is not None and nodes is not None)
        both(state, to, listed, nodes, *more)

    monkeypatch.setattr(search, "_solve", watched)
    for seed in range(45):
        if "search" in names and seed % 7 == 0:
            continue
        problem, best = solved_case(seed)
        answer = solve_capacity(problem, Limits())
        searched += "search" in answer.seconds
        if path == "single nodes" and seed % 7 == 0 and best is not None:
            assert answer.bound is not None
            assert answer.bound >= best
            assert_sound(problem, answer)
        else:
            assert_proved(problem, answer, best)
    assert searched > 5 or "search" not in names
    assert any(mixed) or path != "kinds beside single nodes"


def twin(problem: CapacityProblem) -> CapacityProblem:
    """Move one byte of room from the first tile that has some to the next."""
    room = problem.capacity.copy()
    tile = int(np.flatnonzero(room)[0])
    room[tile] -= 1
    room[(tile + 1) % len(room)] += 1
    return replace(problem, capacity=room)


@pytest.mark.parametrize("names", [tuple(solve.STRATEGIES), ("free", "search")])
def test_components_of_many_nodes_are_proved(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Components of 9 to 12 nodes are proved optimal where not a byte is to spare.

    Their twins with a byte of room elsewhere may not fit.  So they are by the search alone,
    without packing, moves and a start.
    """
    keep(monkeypatch, *names)
    fits = []
    for seed in (0, 1, 2, 3, 4, 9, 16):
        for problem in (large_case(seed), twin(large_case(seed))):
            best, answer = all_labellings(problem), solve_capacity(problem, Limits())
            assert best is not None or answer.status is Status.INFEASIBLE
            assert_proved(problem, answer, best)
            fits.append(best is not None)
    assert all(fits[::2])
    assert sum(fits[1::2]) == 5


# Two kinds want tile 0: one earns 5 there and 1 on tile 1, the other 3 and nothing elsewhere.
WANTED = {(0, 0): 5, (0, 1): 1, (1, 0): 3}

STRATEGIES = [
    # One node anywhere beside one on its tile: everything fits.
    ("free", case([0, 1], [2, 3], [1, 1], [2, 2, 1], None, {(0, 0): 5}), 10),
    # Room for two on tile 0: one of the first kind goes to tile 1, and the second anywhere.
    ("flow", case([0, 1], [3, 2], [2, 2], [4, 2, 6], None, WANTED), 11),
    # Sizes differ: for one of the first kind, tile 0 takes two others.
    ("flow", case([0, 1], [2, 2], [2, 1], [4, 2, 2], None, WANTED), 12),
    # Tile 0 holds a copy and a half, so that one copy has a node on tile 1: 10 and 8.
    (
        "prices",
        case([0, 0], [2], [1, 1], [3, 1], {(0, 1): 1}, {(0, 0): 5, (1, 0): 4, (1, 1): 3}),
        18,
    ),
    # Prices share tile 0 out to one and a half of the first kind, for 7; it holds one of each.
    ("exhaust", case([0, 1], [2, 1], [2, 1], [3, 9], None, {(0, 0): 5, (1, 0): 1}), 6),
]


@pytest.mark.parametrize(("strategy", "problem", "value"), STRATEGIES)
def test_each_strategy_closes_its_case(strategy: str, problem: CapacityProblem, value: int) -> None:
    """Hand-made problems are proved by the strategy made for them, at the value by hand.

    With less room than bytes by one grain a twin is refused.
    """
    answer = solve_capacity(problem, Limits())
    assert (answer.objective, answer.bound, list(answer.seconds)[-1]) == (value, value, strategy)
    assert optimum(problem) == value
    assert_sound(problem, answer)
    grain = int(np.gcd.reduce(problem.bytes))
    room = np.array([problem.total_bytes - grain] + [0] * (len(problem.capacity) - 1))
    answer = solve_capacity(replace(problem, capacity=room), Limits())
    assert (answer.infeasible, answer.stopped) == (Reason.BYTES, Stopped.FINISHED)


@pytest.mark.parametrize("times", [2**50 + 1, 2**54 + 1, 2**56 - 1])
@pytest.mark.parametrize(
    ("problem", "value"), [(problem, value) for _, problem, value in STRATEGIES]
)
def test_more_copies_than_doubles_can_tell_apart(
    monkeypatch: pytest.MonkeyPatch, problem: CapacityProblem, value: int, times: int
) -> None:
    """With all copies and tiles so many times as large, none is lost and bounds hold.

    What a placement earns once can be had so many times.  The searches are left out, which do not
    end on so large domains.
    """
    keep(monkeypatch, *(n for n in solve.STRATEGIES if n not in ("polish", "search")))
    many = replace(problem, copies=problem.copies * times, capacity=problem.capacity * times)
    answer = solve_capacity(many, Limits())
    assert_sound(many, answer)
    assert answer.objective is not None
    assert answer.bound is not None
    assert max(answer.objective, value * times) <= answer.bound


def test_an_answer_of_which_nothing_is_known() -> None:
    """Without placement and bound there is no gap."""
    answer = CapacityAnswer(stopped=Stopped.TIME_LIMIT)
    assert (answer.status, answer.gap) == (Status.UNKNOWN, None)


def test_whole_parts_of_shares_that_are_too_many() -> None:
    """The kind that would lose most keeps its tile; what does not fit takes its second choice.

    Two kinds of three copies want the three grains of tile 0, for 5 and for 2 more than tile 1.
    """
    columns = Columns(
        np.array([0, 0, 1, 1]),
        np.array([2, 0, 5, 0]),
        np.arange(5),
        np.array([0, 1, 0, 1]),
        np.ones(4, np.int64),
    )
    shares, copies, room = np.array([3.0, 0, 3, 0]), np.array([3, 3]), np.array([3, 9])
    found = rounded(columns, shares, columns.value.astype(float), copies, room)
    assert found is not None
    assert found.tolist() == [0, 3, 3, 0]
    assert rounded(columns, shares, columns.value.astype(float), copies, np.array([3, 2])) is None


def test_what_does_not_fit_is_told() -> None:
    """Three nodes of 2 bytes and one of 1 do not fit tiles of 3, 3 and 1 bytes.

    Nodes of 4 bytes waste the rest of a tile: two tiles of 7 hold two, not three.
    """
    answer = solve_capacity(case([0, 1], [3, 1], [2, 1], [3, 3, 1]), Limits())
    assert (answer.infeasible, answer.bound) == (Reason.PACKING, None)
    answer = solve_capacity(case([0], [3], [4], [7, 7]), Limits())
    assert (answer.infeasible, answer.grain) == (Reason.BYTES, 4)


def test_what_fits_freely_is_proved() -> None:
    """Copies that all fit where they want to lie are proved at once.

    Two nodes on one tile of no worth of its own are one slot, not two.  A class of two nodes
    without an edge is placed as if these were two classes.
    """
    problem = case([0, 0, 1], [2, 3], [1, 1, 1], [4, 3], {(0, 1): 1}, {(0, 0): 5})
    slot = case([0, 0], [2], [1, 1], [2, 2], {(0, 1): 3})
    for given, best in ((problem, 12), (slot, 6)):
        answer = solve_capacity(given, Limits())
        assert (answer.objective, answer.bound) == (best, best)
        assert list(answer.seconds)[-1] == "free"
        assert_sound(given, answer)
    problem = case([0, 0], [5], [1, 2], [2, 9, 6], None, {(0, 0): 3, (1, 0): 1, (1, 1): 4})
    answer = solve_capacity(problem, Limits())
    assert answer.objective == 2 * 3 + 4 * 4
    assert_sound(problem, answer)


def test_limits_leave_an_honest_answer() -> None:
    """Without time, or with a gap allowed, there is a bound that holds, and no claim of a proof."""
    _, problem, value = STRATEGIES[-1]
    for limits, why in (
        (Limits(deadline=0.0), Stopped.TIME_LIMIT),
        (Limits(gap=1.0), Stopped.GAP_LIMIT),
    ):
        answer = solve_capacity(problem, limits)
        assert answer.stopped is why
        assert answer.bound is not None
        assert answer.objective is None or answer.objective <= value <= answer.bound
        assert why is Stopped.TIME_LIMIT or 0 < (answer.gap or 0) <= 1


def test_prices_are_what_a_byte_is_worth() -> None:
    """A byte more on tile 0 lets one more copy move there from nothing: 3 for 2 bytes."""
    problem = case([0], [4], [2], [4, 9], None, {(0, 0): 3})
    answer = solve_capacity(problem, Limits())
    assert answer.prices == (Fraction(3, 2), 0)
    more = solve_capacity(replace(problem, capacity=np.array([6, 9])), Limits())
    assert (answer.objective, more.objective) == (6, 9)
    assert bound_at(problem, answer, np.array([6, 9])) == 9
    assert bound_at(problem, answer, np.array([5, 9])) == 6  # half a node is no node


def bound_at(problem: CapacityProblem, answer: CapacityAnswer, room: IntArray) -> Fraction | None:
    """Return what prices prove for other capacities."""
    more = (room // answer.grain - problem.capacity // answer.grain) * answer.grain
    each = zip(answer.prices, more.tolist(), strict=True)
    return None if answer.dual is None else sum((p * m for p, m in each), answer.dual)


def test_prices_bound_other_capacities() -> None:
    """More or less room on any tile changes the optimum by no more than prices allow."""
    for seed in range(40):
        problem = random_case(seed)
        answer = solve_capacity(problem, Limits())
        for tile, change in product(range(problem.problem.labels), (-1, 1, 3)):
            room = problem.capacity.copy()
            room[tile] = max(0, room[tile] + change)
            best, bound = optimum(replace(problem, capacity=room)), bound_at(problem, answer, room)
            assert answer.dual is None or bound is not None
            assert best is None or bound is None or best <= bound


def middling(seed: int, kinds: int = 300, tiles: int = 12) -> CapacityProblem:
    """Return pairs of nodes of unequal sizes with two tiles each that pay, in tight room."""
    draw = np.random.default_rng(seed)
    nodes = 2 * kinds
    size = draw.integers(1, 4, nodes)
    at = np.stack([np.repeat(np.arange(nodes), 2), draw.integers(0, tiles, 2 * nodes)], axis=1)
    at = np.unique(at, axis=0)
    ends = np.arange(nodes).reshape(-1, 2)
    given = Labelling(
        nodes, tiles, ends, draw.integers(1, 9, kinds), at, draw.integers(1, 20, len(at))
    )
    class_of, copies = np.repeat(np.arange(kinds), 2), draw.integers(1, 30, kinds)
    total = int((size * copies[class_of]).sum())
    room = np.full(tiles, int(total * 1.05 / tiles))
    return CapacityProblem(given, class_of, copies, size, room)


@pytest.mark.parametrize("seed", range(3))
def test_smooth_prices_agree_with_the_linear_programme(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Smoothing and the core give the bound of the linear programme, up to 1e-4, never less."""
    monkeypatch.setattr(solve, "POLISH", 1.0)
    keep(monkeypatch, "free", "flow", "prices")
    problem = middling(seed)
    exact = solve_capacity(problem, Limits())
    monkeypatch.setattr(solve, "LINEAR", 10)
    monkeypatch.setattr(solve, "LEAST", 50)
    smooth = solve_capacity(problem, Limits())
    assert_sound(problem, smooth)
    assert exact.dual is not None
    assert smooth.dual is not None
    assert smooth.gap is not None
    least = float(exact.dual)
    assert least * (1 - 1e-9) <= float(smooth.dual) <= least * (1 + 1e-4)
    assert 0 <= smooth.gap < 1e-2


def test_polish_improves_on_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search near the shares never loses what rounding had, and gains in some problem."""
    gains = []
    for seed in range(3):
        problem = middling(seed)
        found = []
        for names in (("free", "flow", "prices"), ("free", "flow", "prices", "polish")):
            monkeypatch.setattr(solve, "POLISH", 2.0)
            with monkeypatch.context() as patch:
                keep(patch, *names)
                answer = solve_capacity(problem, Limits())
            assert_sound(problem, answer)
            found.append(answer.objective or 0)
        gains.append(found[1] - found[0])
    assert min(gains) >= 0
    assert max(gains) > 0


@pytest.mark.parametrize(("room", "strategy", "away"), [(9, "free", 0), (2, "flow", 4)])
def test_copies_stay_at_home_if_nothing_is_lost(room: int, strategy: str, away: int) -> None:
    """Of equally good tiles a class takes its home, and only what does not fit goes elsewhere.

    Three classes of two copies earn 1 on each of tiles 0 and 1, and tile 1 is their home.
    """
    rewards = {(node, tile): 1 for node in range(3) for tile in (0, 1)}
    plain = case([0, 1, 2], [2, 2, 2], [1, 1, 1], [4, room], None, rewards)
    answer = solve_capacity(replace(plain, home=np.array([1, 1, 1])), Limits())
    assert (answer.objective, answer.bound, list(answer.seconds)[-1]) == (6, 6, strategy)
    found = answer.placement
    assert found is not None
    assert found.counts[found.labels == 0].sum() == away
    assert (np.bincount(found.classes) > 1).sum() == 0  # no class is divided
