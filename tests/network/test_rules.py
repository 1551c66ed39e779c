"""Lazy constraints: rules that yield nodes whose labels must not be chosen together."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from layoutopt.base.errors import InputError
from layoutopt.network import CostNetwork, solve
from layoutopt.network.certify import check_certificate

Forbidden = list[dict[str, int]]


def rule_of(forbidden: Forbidden) -> Callable[[dict[str, str | int]], Iterator[list[str]]]:
    def rule(labels: dict[str, str | int]) -> Iterator[list[str]]:
        for own in forbidden:
            if all(labels[name] == label for name, label in own.items()):
                yield [*own]

    return rule


def drawn(draw: random.Random) -> tuple[CostNetwork, list[list[int]], dict[str, list[list[int]]]]:
    net = CostNetwork("drawn", draw.choice(["min", "max"]))
    labels = draw.randint(2, 3)
    domain = net.domain(labels)
    costs = [[draw.randint(-5, 5) for _ in range(labels)] for _ in range(draw.randint(2, 5))]
    for u, own in enumerate(costs):
        net.node(str(u), domain, own)
    tables = {}
    for u, v in itertools.combinations(range(len(costs)), 2):
        if draw.random() < 0.5:
            rows = [[draw.randint(-4, 4) for _ in range(labels)] for _ in range(labels)]
            tables[f"{u}{v}"] = rows
            net.table(str(u), str(v), rows)
    return net, costs, tables


@pytest.mark.parametrize("seed", range(60))
def test_rules_hold_and_the_answer_is_the_best_under_them(seed: int) -> None:
    draw = random.Random(seed)
    net, costs, tables = drawn(draw)
    nodes, labels = range(len(costs)), range(len(costs[0]))
    forbidden: Forbidden = []
    for _ in range(draw.randint(0, 6)):
        some = draw.sample(nodes, draw.randint(1, 2))
        forbidden.append({str(u): draw.choice(labels) for u in some})
    if seed % 6 == 0:
        forbidden += [{"0": label} for label in labels]
    values = [
        sum(costs[u][x[u]] for u in nodes)
        + sum(rows[x[int(ends[0])]][x[int(ends[1])]] for ends, rows in tables.items())
        for x in itertools.product(labels, repeat=len(nodes))
        if not any(all(x[int(u)] == i for u, i in own.items()) for own in forbidden)
    ]
    found = solve(net, rules=[rule_of(forbidden[::2]), rule_of(forbidden[1::2])], certificate=True)
    if not values:
        assert found.status == "infeasible"
        assert found.why is not None
    else:
        assert found.status == "optimal"
        assert found.objective == (min if net.sense == "min" else max)(values)
    assert found.certificate is not None
    check_certificate(found.network, found.certificate)


def two_nodes() -> CostNetwork:
    net = CostNetwork()
    domain = net.domain(["a", "b"])
    net.node("u", domain, [0, 1])
    net.node("v", domain, [0, 1])
    return net


def test_without_time_the_answer_is_the_start_with_a_bound() -> None:
    def slow(labels: dict[str, str | int]) -> Iterator[list[str]]:
        if labels["u"] == labels["v"]:
            yield ["u", "v"]

    start = {"u": "a", "v": "b"}
    found = solve(two_nodes(), rules=[slow], start=start, time_limit=0)
    assert found.labels == start
    assert found.bound is None or found.bound <= 1
    assert found.status in ("feasible", "optimal")


def failing(_: dict[str, str | int]) -> Iterator[list[str]]:
    raise ZeroDivisionError("no")


def never(labels: dict[str, str | int]) -> list[list[str]]:
    return [["u"]] if labels["u"] == "a" else []


def test_fresh_labels_are_refused() -> None:
    net = CostNetwork()
    net.node("u", net.domain(["a"], open=True), [5])
    with pytest.raises(InputError, match="yields node 'u', whose label is fresh"):
        solve(net, rules=[lambda _: [["u"]]])
