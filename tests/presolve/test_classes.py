"""Rules on whole classes, against their definitions on every pair of labels."""

from __future__ import annotations

import networkx as nx
import pytest

from layoutopt.network.contraction import dominated_labels, losses
from layoutopt.network.problem import Labelling
from tests.presolve.test_reductions import problems
from tests.presolve.test_strength import Near, lists
from tests.support import random_problem


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


def check(problem: Labelling) -> int:
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
    """On 2100 random problems all labels go that another one stands in for, and no others."""
    some = sum(check(problem) > 0 for problem in problems(600))
    for seed in range(1500):  # small numbers make equal ones
        given = random_problem(seed, 4, 5, negative=seed % 2 == 0, bans=seed % 3 == 0)
        sizes = given.rewards.clip(-1, 2)
        some += (
            check(
                Labelling(
                    given.nodes,
                    given.labels,
                    given.edges[:0],
                    given.weights[:0],
                    given.reward_at,
                    sizes,
                    given.banned,
                )
            )
            > 0
        )
    assert some > 600


@pytest.mark.parametrize(
    ("earns", "dropped"),
    [
        ([{0: 2, 1: 1}, {0: -1, 1: -1}, {0: 1}], {1: [0, 1]}),
        ([{0: 2, 1: 1}, {0: -2, 1: -1}, {0: 1}], {}),
        ([{0: 2, 1: 1}, {0: -1}, {1: -2}], {}),
        ([{0: 2, 1: 2}, {2: -1}, {2: -3}], {2: [1, 2], 0: [0]}),
    ],
)
def test_labels_that_lose_somewhere(earns: Near, dropped: dict[int, list[int]]) -> None:
    """A label that loses somewhere stands in for one that loses as much there, or more."""
    assert dominated_labels([{}, {}, {}], earns, [set(), set(), set()]) == dropped


def test_negative_edges_elsewhere_do_not_matter() -> None:
    """Label 0 is rewarded where an edge is negative; label 2 goes for label 1 in other parts."""
    near, earns = [{2: -1}, {}, {0: -1}], [{0: 1, 3: 1}, {1: 2, 2: 1}, {}]
    assert dominated_labels(near, earns, [set(), set(), set()]) == {2: [1]}


def test_equal_labels_leave_one() -> None:
    """Of many labels that earn the same at one node all but one are dropped."""
    earns = [dict.fromkeys(range(50), 3), {50: 1}]
    dropped = dominated_labels([{1: 1}, {0: 1}], earns, [set(), set()])
    assert len(dropped) == 49
    assert 50 not in dropped


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
