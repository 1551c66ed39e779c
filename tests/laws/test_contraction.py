"""Contraction: what it leaves is worth as much, comes back as good, and no rule fits it."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator

import networkx as nx
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network import contraction
from layoutopt.network.contraction import contract, dominated_labels, losses, strong_sets
from layoutopt.network.problem import Labelling
from tests.laws.reductions import APART, TRIANGLE, problems, sound
from tests.support import Edges, labelling, random_problem

Near = list[dict[int, int]]


def lists(problem: Labelling) -> tuple[Near, Near, list[set[int]]]:
    """Return each node's neighbours with weights, its labels with rewards, and its bans."""
    near: Near = [{} for _ in range(problem.nodes)]
    earns: Near = [{} for _ in range(problem.nodes)]
    bans: list[set[int]] = [set() for _ in range(problem.nodes)]
    for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        near[u][v] = near[v][u] = w
    for (u, label), r in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        earns[u][label] = r
    for u, label in problem.banned.tolist():
        bans[u].add(label)
    return near, earns, bans


def strong(problem: Labelling) -> bool:
    """Return whether some component has a strong set."""
    near, earns, bans = lists(problem)
    found = losses(near, earns, bans)
    return any(strong_sets(near, component, loss, Limits()) for component, loss in found)


def assert_nothing_fits(small: Labelling) -> None:
    """Check that no node, no edge and no label is left that a rule would take."""
    near, earns, bans = lists(small)
    for u, around in enumerate(near):
        assert len(around) > 1  # neither alone nor a leaf
        assert not bans[u] & earns[u].keys()
        total = sum(map(abs, around.values()))
        second, first = sorted([0, 0, *earns[u].values()])[-2:]
        assert first == 0 or first - second < total
        spread = first - min(0, *earns[u].values(), 0)
        ties = [v for v, w in around.items() if 2 * w - total >= spread]
        assert not any(bans[u] <= bans[v] for v in ties)
    assert dominated_labels(near, earns, bans) == {}


@pytest.mark.parametrize("sets", [True, False], ids=["all rules", "without strong sets"])
def test_contraction_keeps_the_optimum(sets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 600 random problems, small and dense ones, with and without the rule for classes."""
    if not sets:
        monkeypatch.setattr(contraction, "losses", lambda *_: ())
    shrunk = fired = left = 0
    for problem in problems(600):
        fired += strong(problem)
        reduced = contract(problem)
        sound(reduced, 3)
        assert_nothing_fits(reduced.problem)
        shrunk += reduced.problem.nodes < problem.nodes
    for seed in range(400):  # larger ones, of which more is left
        wide = 10**30 if seed % 7 == 0 else 1
        kinds = {"negative": seed % 2 == 0, "bans": seed % 3 == 0}
        small = contract(random_problem(seed, 8, 5, wide=wide, **kinds)).problem
        assert_nothing_fits(small)
        assert not sets or not strong(small)
        left += small.nodes > 0
    assert shrunk > 300
    assert fired > 60
    assert left > 70


def test_a_retired_label_stays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label without rewards that is used all the same keeps to itself when restored.

    Label 3 goes because it is never worth anything.  In the signed triangle, node 0 with
    label 3 and node 1 with node 0's fresh label disagree, and must go on to.
    """
    monkeypatch.setattr(contraction, "losses", lambda *_: ())
    signed = {(0, 1): -1, (1, 2): -1, (0, 2): -1}
    other = {(u + 3, v + 3): w for (u, v), w in TRIANGLE.items()}
    rewards = {(u + 3, label): r for (u, label), r in APART.items()} | {(3, 3): -1}
    reduced = contract(labelling(6, 4, signed | other, rewards))
    assert reduced.problem.nodes == 6
    labels = reduced.kept * 0 + [3, 4 + 0, 4 + 2, 4 + 3, 4 + 4, 4 + 5]
    assert reduced.whole.value(reduced.restore(labels)) >= reduced.problem.value(labels) == 0


@pytest.mark.parametrize(("visits", "nodes"), [(1, 6), (2, 5), (6, 1), (7, 0), (1000, 0)])
def test_time_is_looked_at_now_and_then(
    monkeypatch: pytest.MonkeyPatch, visits: int, nodes: int
) -> None:
    """A path whose nodes leave one after the other stays where time ran out at a look."""
    monkeypatch.setattr(contraction, "VISITS", visits)
    path: Edges = {(u, u + 1): 1 for u in range(5)}
    problem = labelling(6, 2, path, {(0, 0): 2, (5, 1): 2})
    reduced = contract(problem, Limits(deadline=0.0))
    assert reduced.problem.nodes == nodes
    sound(reduced)


def test_without_time_classes_are_not_looked_at() -> None:
    """Neither a dominated label goes nor is a strong triangle tied; with time both happen."""
    equal = labelling(3, 4, TRIANGLE, APART | {(0, 3): 1})
    tied = labelling(3, 3, dict.fromkeys(TRIANGLE, 2), dict.fromkeys(APART, 3))
    for problem, rewards in ((equal, 4), (tied, 3)):
        late = contract(problem, Limits(deadline=0.0))
        assert (late.problem.nodes, len(late.problem.rewards)) == (3, rewards)
        assert contract(problem).problem.nodes == 0


def signed_nodes(near: Near) -> set[int]:
    """Return the nodes of components with a negative edge."""
    graph = nx.Graph((u, v) for u, around in enumerate(near) for v in around)
    signed = {u for u, around in enumerate(near) if min(around.values(), default=0) < 0}
    return {u for part in nx.connected_components(graph) if part & signed for u in part}


def stands_in(earns: Near, bans: list[set[int]], one: int, other: int) -> bool:
    """Return whether a label earns what another does, or more, and may be wherever that may."""
    nodes = range(len(earns))
    as_good = all(earns[u].get(one, 0) >= earns[u].get(other, 0) for u in nodes)
    return as_good and all(other in bans[u] or one not in bans[u] for u in nodes)


def dropped_labels(problem: Labelling) -> int:
    """Check what is dropped, and that what stays must; return how many labels were dropped."""
    near, earns, bans = lists(problem)
    at = {label: [u for u in range(problem.nodes) if label in earns[u]] for label in range(5)}
    dropped = dominated_labels(near, earns, bans)
    assert all(nodes == at[label] for label, nodes in dropped.items())
    free = {k for k, nodes in at.items() if nodes and not signed_nodes(near) & set(nodes)}
    worthless = {label for label in free if max(earns[u][label] for u in at[label]) <= 0}
    left = [label for label, nodes in at.items() if nodes and label not in dropped]
    for label in free:
        rivals = [m for m in left if m != label and stands_in(earns, bans, m, label)]
        if label in dropped:
            assert label in worthless or rivals
        else:
            assert label not in worthless
            # A label that earns nothing where the other loses is not looked for.
            assert not any(set(at[label]) <= set(at[m]) for m in rivals)
    assert dropped.keys() <= free
    return len(dropped)


def test_dominated_labels_are_those_of_the_definition() -> None:
    """On 1600 random problems all labels go that another one stands in for, and no others."""
    some = sum(dropped_labels(problem) > 0 for problem in problems(600))
    for seed in range(1000):  # small numbers make equal ones
        given = random_problem(seed, 4, 5, negative=seed % 2 == 0, bans=seed % 3 == 0)
        sizes = given.rewards.clip(-1, 2)
        at = given.nodes, given.labels, given.edges[:0], given.weights[:0], given.reward_at
        some += dropped_labels(Labelling(*at, sizes, given.banned)) > 0
    assert some > 500


def test_losses_are_the_second_largest_sums() -> None:
    """On 600 random problems each connected component without negative numbers and bans is there.

    A single node is not.  Its loss is the second largest of what labels earn, or 0.
    """
    found = 0
    for problem in problems(600):
        near, earns, bans = lists(problem)
        expected = {}
        graph = nx.Graph((u, v) for u, around in enumerate(near) for v in around)
        for nodes in nx.connected_components(graph):
            numbers = [w for u in nodes for w in (*near[u].values(), *earns[u].values())]
            if min(numbers) > 0 and not any(bans[u] for u in nodes):
                sums = [sum(earns[u].get(m, 0) for u in nodes) for m in range(problem.labels)]
                expected[frozenset(nodes)] = sorted([0, 0, *sums])[-2]
        given = list(losses(near, earns, bans))
        assert {frozenset(component): loss for component, loss in given} == expected
        assert all(len(component) == len(set(component)) for component, _ in given)
        found += len(given)
    assert found > 100


def graph_of(nodes: int, edges: Edges) -> Near:
    """Return each node's neighbours with the weights of the edges to them."""
    near: Near = [{} for _ in range(nodes)]
    for (u, v), w in edges.items():
        near[u][v] = near[v][u] = w
    return near


def random_graph(seed: int, wide: int = 1) -> tuple[Near, int]:
    """Return a random graph of up to 7 nodes, and a loss."""
    draw = random.Random(seed)
    n, density = draw.randint(2, 7), draw.choice([0.4, 0.7, 1.0])
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if draw.random() < density]
    near = graph_of(n, {pair: draw.randint(1, 4) * wide for pair in pairs})
    return near, draw.randint(0, 6) * wide


def partitions(nodes: list[int]) -> Iterator[list[list[int]]]:
    """Yield every partition of some nodes."""
    if not nodes:
        yield []
        return
    first, *rest = nodes
    for parts in partitions(rest):
        yield [[first], *parts]
        for k in range(len(parts)):
            yield [*parts[:k], [first, *parts[k]], *parts[k + 1 :]]


def gain(near: Near, parts: list[list[int]], loss: int) -> int:
    """Return what is kept within parts, less a loss for each node that is not the first of one."""
    kept = sum(near[u].get(v, 0) for part in parts for u in part for v in part if u < v)
    return kept - loss * sum(len(part) - 1 for part in parts)


@pytest.mark.parametrize("wide", [1, 2**40, 2**53 + 1])
def test_sets_are_those_of_the_best_partition(wide: int) -> None:
    """The sets found, and all else alone, are the best of all partitions, and the coarsest.

    Among them whole cliques of edges 3 3 3 and 1 1 1, which hold four nodes against just 4 for
    each; no three of them are strong, so the last to come must get a cut right.
    """
    tied = 0
    given = [random_graph(seed, wide) for seed in range(100)]
    for a, *others in itertools.permutations(range(4)):
        edges = {(a, v): 3 * wide for v in others}
        edges |= dict.fromkeys(itertools.combinations(others, 2), wide)
        given += [(graph_of(4, edges), 4 * wide), (graph_of(4, edges), 4 * wide + 1)]
    for near, loss in given:
        nodes = list(range(len(near)))
        sets = strong_sets(near, nodes, loss, Limits())
        inside = [u for own in sets for u in own]
        assert len(set(inside)) == len(inside)
        found = [*sets, *([u] for u in nodes if u not in inside)]
        every = list(partitions(nodes))
        best = max(gain(near, parts, loss) for parts in every)
        fewest = min(len(parts) for parts in every if gain(near, parts, loss) == best)
        if loss:
            assert (gain(near, found, loss), len(found)) == (best, fewest)
        for own in sets:  # and each of them is strong by the definition
            whole = gain(near, [own], loss)
            assert all(gain(near, parts, loss) <= whole for parts in partitions(own))
        tied += any(len(own) > 2 for own in sets)
    assert tied > 40


def heavy_closure(near: Near, loss: int) -> set[frozenset[int]]:
    """Return the sets that come of joining any two that edges of the loss or more join."""
    sets = [frozenset([u]) for u in range(len(near))]
    while True:
        for one, other in itertools.combinations(sets, 2):
            if 0 < sum(near[u].get(v, 0) for u in one for v in other) >= loss:
                sets = [own for own in sets if own not in (one, other)] + [one | other]
                break
        else:
            return {own for own in sets if len(own) > 1}


def test_without_cuts_heavy_edges_join_all_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time, without work left, or with numbers beyond 64 bits, joining is one by one."""
    large = 0
    for seed in range(300):
        near, loss = random_graph(seed)
        nodes, late = list(range(len(near))), Limits(deadline=time.monotonic())
        closed = heavy_closure(near, loss)
        assert set(map(frozenset, strong_sets(near, nodes, loss, late))) == closed
        large += any(len(own) > 2 for own in closed)
    assert large > 50
    near = graph_of(4, {(0, 1): 2, (1, 2): 2, (0, 2): 2, (2, 3): 3})
    huge = [{v: w * 2**60 for v, w in around.items()} for around in near]
    assert [sorted(own) for own in strong_sets(near, [0, 1, 2, 3], 3, Limits())] == [[0, 1, 2, 3]]
    found = strong_sets(huge, [0, 1, 2, 3], 3 * 2**60, Limits())
    monkeypatch.setattr(contraction, "WORK", -1)
    for sets in (found, strong_sets(near, [0, 1, 2, 3], 3, Limits())):
        assert [sorted(own) for own in sets] == [[2, 3]]


def test_numbers_up_to_the_limit() -> None:
    """All edges, seen from both sides, and the loss may add up to less than 2^61."""
    x = 2**61 // 15  # a triangle of 2 x is strong for 3 x; 15 x is 2^61 - 2
    for more, sets in ((0, [[10, 20, 30]]), (1, [])):
        near = graph_of(31, {(10, 20): 2 * x + more, (20, 30): 2 * x, (10, 30): 2 * x})
        assert [sorted(s) for s in strong_sets(near, [10, 20, 30], 3 * x, Limits())] == sets


def test_nodes_after_one_that_was_tied_early() -> None:
    """A triangle that becomes heavy enough for a fourth node is tied, and then another one."""
    triangles = {(u + k, v + k): 2 for u, v in TRIANGLE for k in (0, 4)}
    near = graph_of(7, triangles | {(0, 3): 1, (1, 3): 1, (2, 3): 1})
    found = strong_sets(near, list(range(7)), 3, Limits())
    assert sorted(map(sorted, found)) == [[0, 1, 2, 3], [4, 5, 6]]
