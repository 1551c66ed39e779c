"""Packing, and placements made from it."""

from __future__ import annotations

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.result import Status
from layoutopt.network.capacity.answer import State
from layoutopt.network.capacity.fill import best_fit, filled, moved, packed, repaired
from layoutopt.network.capacity.pool import Pool, worth
from layoutopt.network.capacity.problem import CapacityProblem
from layoutopt.network.capacity.solve import solve_capacity
from tests.network.capacity.cases import assert_sound, case, optimum, random_case


def fits_somehow(size: list[int], room: tuple[int, ...]) -> bool:
    """Return whether nodes fit, by trying every tile for each."""
    rooms = {room}
    for grains in size:
        rooms = {
            (*left[:t], left[t] - grains, *left[t + 1 :])
            for left in rooms
            for t in range(len(left))
            if left[t] >= grains
        }
    return bool(rooms)


def test_packing_is_decided() -> None:
    """A packing fits, and where there is none that is proved, as trying every tile finds.

    Two tiles of 10 hold 4 + 3 + 3 each, though best fit has both 4 on one tile, and a 3 over.
    """
    seen = set()
    for seed in range(100):
        draw = np.random.default_rng(seed)
        sizes = np.sort(draw.choice([2, 3, 5, 7, 11], 3, replace=False))
        numbers = draw.integers(1, 4, 3)
        tiles = int(draw.integers(2, 5))
        room = draw.multinomial(int(sizes @ numbers), np.ones(tiles) / tiles)
        table, impossible = packed(sizes, numbers, room, Limits())
        fits = fits_somehow(np.repeat(sizes, numbers).tolist(), tuple(room.tolist()))
        assert impossible == (not fits)
        assert (table is not None) == fits
        if table is not None:
            assert (table.sum(axis=1) == numbers).all()
            assert (sizes @ table <= room).all()
            seen.add("searched" if best_fit(sizes, numbers, room) is None else "easy")
        else:
            seen.add("impossible")
    assert {"impossible", "easy"} <= seen
    sizes, numbers, room = np.array([3, 4]), np.array([4, 2]), np.array([10, 10])
    assert best_fit(sizes, numbers, room) is None
    table, _ = packed(sizes, numbers, room, Limits())
    assert table is not None
    assert table.tolist() == [[2, 2], [1, 1]]


def test_what_fits_is_placed() -> None:
    """Wherever anything fits, there is a placement before any search for the best one.

    Moves lead to a placement that fits and is worth no less; often more.
    """
    gains = []
    for seed in range(100):
        problem = random_case(seed)
        if problem.total_bytes > problem.total_capacity:
            continue
        pool = Pool(problem)
        room = State(pool, problem.capacity, Limits()).room
        found, impossible = repaired(pool, room, Limits())
        assert impossible == (optimum(problem) is None) == (found is None)
        if found is None:
            continue
        after = moved(pool, found, room, Limits())
        for filling in (found, after):
            state = State(pool, problem.capacity, Limits())
            state.offer(filling)
            assert_sound(problem, state.answer())
        values = [int(worth(pool, each.columns) @ each.counts) for each in (found, after)]
        gains.append(values[1] - values[0])
    assert min(gains) >= 0
    assert max(gains) > 0


def chain(copies: int, spare: int) -> CapacityProblem:
    """Return copies of a chain of 12 nodes, in turns of 5 and 7 grains, on 4 tiles."""
    edges = {(u, u + 1): 3 for u in range(11)}
    rewards = {(u, u % 4): 2 for u in range(12)}
    size = [5, 7] * 6
    room = copies * sum(size) // 4 + spare
    return case([0] * 12, [copies], size, [room] * 4, edges, rewards)


def test_a_million_copies_of_a_large_kind_are_placed() -> None:
    """Far too many nodes for a search node by node are placed, with bounds."""
    problem = chain(10**6, 100)
    answer = solve_capacity(problem, Limits())
    assert answer.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert answer.bound is not None
    assert answer.objective is not None
    assert 0 < answer.objective <= answer.bound
    assert_sound(problem, answer)


def test_repair_takes_what_is_worth_most_of_what_fits() -> None:
    """Each tile holds one node: the one that earns 5 on tile 1 gets it, the other earns 2 on 0."""
    problem = case([0, 1], [1, 1], [1, 1], [1, 1], None, {(0, 1): 1, (1, 1): 5, (0, 0): 2})
    pool = Pool(problem)
    found, _ = repaired(pool, problem.capacity, Limits())
    assert found is not None
    assert int(worth(pool, found.columns) @ found.counts) == 5 + 2


def test_nodes_move_to_where_they_are_worth_most() -> None:
    """Nodes change places, move on, stay, and come together, where that pays.

    On full tiles two nodes that earn 5 where the other is change places, and a third moves on;
    so do two that must not meet.  Two on an edge have nothing from changing places; where
    there is room, they come together.  From where it loses a node leaves for the emptiest tile.
    """
    table = [
        (None, {(0, 1): 5, (1, 0): 5, (2, 2): 2}, [4, 4, 1], [4, 4, 1, 1], [0, 1, 3], [1, 0, 2]),
        ({(0, 1): -4}, {(0, 1): 1, (1, 0): 1}, [1, 1], [2, 2], [0, 1], [1, 0]),
        ({(0, 1): 4}, {(0, 0): 1, (1, 1): 1}, [1, 1], [1, 1], [0, 1], [0, 1]),
        ({(0, 1): 4}, {(0, 0): 1, (1, 1): 1}, [1, 1], [2, 1], [0, 1], [0, 0]),
        (None, {(0, 0): -5}, [1], [1, 1, 2], [0], [2]),
    ]
    for edges, rewards, size, capacity, labels, expected in table:
        problem = case([0] * len(size), [1], size, capacity, edges, rewards)
        assert moved_labels(Pool(problem), labels) == expected


def moved_labels(pool: Pool, labels: list[int]) -> list[int]:
    """Return the labels of nodes after moves."""
    rows = []
    for kind in range(pool.kinds):
        part = int(np.flatnonzero(pool.kind_of == kind)[0])
        nodes = np.flatnonzero(pool.parts.of == part)
        rows.append((kind, 1, np.array(labels)[nodes], pool.problem.bytes[nodes]))
    state = State(pool, pool.problem.capacity, Limits())
    state.offer(moved(pool, filled(rows), pool.problem.capacity, Limits()))
    found = state.answer().placement
    assert found is not None
    after = np.zeros(len(labels), np.int64)
    after[found.nodes] = found.labels
    return list(map(int, after))


def test_what_is_too_large_for_a_search_moves_as_well() -> None:
    """Pairs of nodes of three sizes, which fit only one by one, get most of what they want."""
    draw = np.random.default_rng(0)
    size = draw.choice([2, 5, 11], 400).tolist()
    wanted = [draw.choice(100, 4, replace=False).tolist() for _ in size]
    rewards = {(u, tile): int(draw.integers(1, 10)) for u, own in enumerate(wanted) for tile in own}
    edges, room = {(u, u + 1): 5 for u in range(0, 400, 2)}, [sum(size) * 11 // 1000] * 100
    problem = case([u // 2 for u in range(400)], [1] * 200, size, room, edges, rewards)
    answer = solve_capacity(problem, Limits())
    assert_sound(problem, answer)
    assert (answer.objective or 0) > 0.8 * (answer.bound or 0) > 0
