"""Random problems with capacity, and their optima by trying everything."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache
from operator import sub

import numpy as np

from layoutopt.network.capacity.answer import CapacityAnswer
from layoutopt.network.capacity.problem import CapacityProblem
from tests.support import Edges, labelling


def case(
    classes: Sequence[int],
    copies: Sequence[int],
    size: Sequence[int],
    capacity: Sequence[int],
    edges: Edges | None = None,
    rewards: Edges | None = None,
) -> CapacityProblem:
    """Write a problem down; ``classes`` and ``size`` have an entry for each node."""
    return CapacityProblem(
        labelling(len(classes), len(capacity), edges, rewards),
        np.array(classes, np.int64),
        np.array(copies, np.int64),
        np.array(size, np.int64),
        np.array(capacity, np.int64),
    )


def random_case(seed: int) -> CapacityProblem:
    """Return one to three classes of one to three nodes, one to three copies, on 2 to 4 tiles.

    Every third has nodes of one size; every seventh numbers beyond 64 bits.  Room is between
    a tenth too little and twice what is needed, on random tiles.
    """
    draw = random.Random(seed)
    wide = 2**70 if seed % 7 == 0 else 1
    tiles = draw.randint(2, 4)
    classes: list[int] = []
    edges: Edges = {}
    rewards: Edges = {}

    def number() -> int:
        value = draw.randint(1, 9) * wide + (draw.randint(0, 9) if wide > 1 else 0)
        return -value if draw.random() < 0.3 else value

    for c in range(draw.randint(1, 3)):
        nodes = range(len(classes), len(classes) + draw.randint(1, 3 if tiles < 4 else 2))
        classes += [c] * len(nodes)
        edges |= {p: number() for p in itertools.combinations(nodes, 2) if draw.random() < 0.8}
        places = itertools.product(nodes, range(tiles))
        rewards |= {place: number() for place in places if draw.random() < 0.5}
    size = [1 if seed % 3 == 0 else draw.choice([0, 1, 1, 2, 3, 5]) for _ in classes]
    copies = [draw.randint(1, 3 if classes.count(c) < 3 else 2) for c in range(classes[-1] + 1)]
    total = sum(s * copies[c] for s, c in zip(size, classes, strict=True))
    capacity = [0] * tiles
    for _ in range(int(total * draw.choice([0.9, 1, 1, 1.1, 1.3, 2])) + draw.randint(0, 1)):
        capacity[draw.randrange(tiles)] += 1
    return case(classes, copies, size, capacity, edges, rewards)


def optimum(problem: CapacityProblem) -> int | None:
    """Return the best value of any placement, copy by copy; ``None`` if nothing fits."""
    states = {tuple(problem.capacity.tolist()): 0}
    for c, copies in enumerate(problem.copies.tolist()):
        nodes = np.flatnonzero(problem.class_of == c).tolist()
        choices: dict[tuple[int, ...], int] = {}
        for labels in itertools.product(range(problem.problem.labels), repeat=len(nodes)):
            chosen = dict(zip(nodes, labels, strict=True))
            used = [0] * len(problem.capacity)
            for node, tile in chosen.items():
                used[tile] += int(problem.bytes[node])
            value = worth(problem, chosen)
            choices[tuple(used)] = max(value, choices.get(tuple(used), value))
        for _ in range(copies):
            after: dict[tuple[int, ...], int] = {}
            for room, value in states.items():
                for taken, more in choices.items():
                    left = tuple(map(sub, room, taken))
                    if min(left) >= 0 and after.get(left, value + more) <= value + more:
                        after[left] = value + more
            states = after
    return max(states.values(), default=None)


@cache
def solved_case(seed: int) -> tuple[CapacityProblem, int | None]:
    """Return a random problem, and the best value of any placement."""
    problem = random_case(seed)
    return problem, optimum(problem)


def worth(problem: CapacityProblem, chosen: dict[int, int]) -> int:
    """Return what one copy is worth, by the definition."""
    given = problem.problem
    tile = np.full(given.nodes, -1)
    tile[[*chosen]] = [*chosen.values()]
    one, two = tile[given.edges.T]
    agreed = given.weights[(one == two) & (one >= 0)].tolist()
    return sum(
        agreed + given.rewards[tile[given.reward_at[:, 0]] == given.reward_at[:, 1]].tolist()
    )


def assert_sound(problem: CapacityProblem, answer: CapacityAnswer) -> None:
    """Check a placement and its figures by the definition."""
    used = np.zeros(problem.problem.labels, np.int64)
    total = 0
    assert answer.placement is not None
    for c, copies in enumerate(problem.copies.tolist()):
        nodes = np.flatnonzero(problem.class_of == c).tolist()
        rows = list(answer.placement.of(c))
        assert sum(count for _, count in rows) == copies
        for labels, count in rows:
            assert count > 0
            total += count * worth(problem, dict(zip(nodes, labels.tolist(), strict=True)))
            np.add.at(used, labels, count * problem.bytes[nodes])
    assert total == answer.objective
    assert (used <= problem.capacity).all()


def large_case(seed: int) -> CapacityProblem:
    """Return a class of one component of 9 to 12 nodes, and up to 3 copies of one node.

    There are two or three tiles, whose room is what some labelling uses: everything fits,
    without a byte to spare.
    """
    draw = random.Random(seed)
    tiles = draw.choice([2, 3])
    nodes = draw.randint(9, 12 if tiles == 2 else 10)

    def number() -> int:
        return draw.randint(1, 9) * (-1 if draw.random() < 0.3 else 1)

    edges = {(draw.randrange(v), v): number() for v in range(1, nodes)}
    edges |= {p: number() for p in itertools.combinations(range(nodes), 2) if draw.random() < 0.2}
    places = itertools.product(range(nodes + 1), range(tiles))
    rewards = {place: number() for place in places if draw.random() < 0.3}
    size = [4, 9, *(draw.choice([4, 6, 9]) for _ in range(nodes - 1))]
    copies = draw.randint(0, 3)
    capacity = [0] * tiles
    for grains in size[:nodes] + size[nodes:] * copies:
        capacity[draw.randrange(tiles)] += grains
    return case([0] * nodes + [1], [1, copies], size, capacity, edges, rewards)


def all_labellings(problem: CapacityProblem) -> int | None:
    """Return the best value of a :func:`large_case` from a table of all labellings."""
    given, tiles = problem.problem, problem.problem.labels
    nodes = given.nodes - 1
    labels = np.array(list(itertools.product(range(tiles), repeat=nodes)))
    value = np.zeros(len(labels), np.int64)
    for (u, v), weight in zip(given.edges, given.weights, strict=True):
        value += weight * (labels[:, u] == labels[:, v])
    alone = np.zeros(tiles, np.int64)
    for (u, tile), reward in zip(given.reward_at, given.rewards, strict=True):
        if u < nodes:
            value += reward * (labels[:, u] == tile)
        else:
            alone[tile] += reward
    use = np.stack([(labels == t) @ problem.bytes[:nodes] for t in range(tiles)], axis=1)
    best: int | None = None
    for chosen in itertools.product(range(tiles), repeat=int(problem.copies[1])):
        each = np.bincount(np.array(chosen, np.int64), minlength=tiles)
        fits = (use + each * problem.bytes[nodes] <= problem.capacity).all(axis=1)
        if fits.any():
            found = int(value[fits].max() + alone @ each)
            best = found if best is None else max(best, found)
    return best
