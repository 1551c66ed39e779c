"""Small random cost networks, and all their labellings."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np

from layoutopt.network import CostNetwork, Network
from layoutopt.network.network import Array

UNITS = (1, 1, 1, 1, 1, 2**40, 10**20, Fraction(1, 3))
"""Factors of costs and amounts; sums of the largest do not fit 64 bits."""


def draw(seed: int, *, nodes: int = 5, rows: bool = False) -> Network:
    """Return a random network: signs, senses, open and closed domains, ties, bans and tables."""
    r = random.Random(seed)
    net = CostNetwork(f"random {seed}", r.choice(["min", "max"]))
    domains = [net.domain(r.randint(1, 3), open=r.random() < 0.4) for _ in range(r.randint(1, 3))]
    signed = r.random() < 0.5
    factor = random.Random(f"unit {seed}").choice(UNITS)

    def number() -> int | Fraction:
        return factor * r.choice([0, 1, 2, 3, 5, 8]) * (r.choice([-1, 1]) if signed else 1)

    every = []
    for k in range(r.randint(1, nodes)):
        own = r.choice(domains)
        costs = [None if r.random() < 0.1 else number() for _ in range(own.size)]
        every.append((net.node(f"n{k}", own, costs if r.random() < 0.8 else ()), own))
    for _ in range(r.randint(0, 2 * len(every))):
        (u, one), (v, two) = r.choice(every), r.choice(every)
        kind = r.random()
        if u == v:
            continue
        if kind < 0.5 and one is two:
            net.equal(u, v, number() if signed or net.sense == "max" else -number())
        elif kind < 0.6 and one is two:
            net.tie(u, v)
        elif not (one.open or two.open):
            table = [
                [None if r.random() < 0.15 else number() for _ in range(two.size)]
                for _ in range(one.size)
            ]
            net.table(u, v, table)
    for _ in range(r.randint(1, 2) if rows else 0):
        amounts = {
            (u, i): number() for u, own in every for i in range(own.size) if r.random() < 0.6
        }
        low = r.randint(-5, 10) if r.random() < 0.4 else None
        high = r.randint(-2, 15) if low is None or r.random() < 0.5 else None
        high = None if high is None else max(high, low or high)
        net.row(
            amounts, **{k: factor * x for k, x in (("low", low), ("high", high)) if x is not None}
        )
    net.constant(factor * random.Random(f"constant {seed}").choice([0, 0, 7, -7]))
    return net.build()


def best_labels(network: Network) -> Array | None:
    """Return the best labelling of all, ``None`` if none is allowed.

    All labellings are one array, ``(labellings, nodes)``; costs and limits are its columns' sums.
    """
    choices = []
    for u in range(len(network)):
        domain = network.domain(u)
        fresh = [domain.size + v for v in range(len(network)) if network.domain(v) is domain]
        choices.append([*range(domain.size), *(fresh if domain.open else ())])
    sizes = [*map(len, choices)]
    places = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
    labels = [np.array(own, np.int64)[at] for own, at in zip(choices, places, strict=True)]
    every = np.array(labels, np.int64).reshape(places.shape).T
    cost, allowed = np.zeros(len(every), object), np.ones(len(every), bool)
    for (u, i), paid in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
        cost[every[:, u] == i] += paid
    for u, i in network.banned.tolist():
        allowed &= every[:, u] != i
    for (u, v), paid in zip(
        network.equal_edges.tolist(), network.equal_costs.tolist(), strict=True
    ):
        cost[every[:, u] == every[:, v]] += paid
    for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
        cost = cost + network.tables[k].costs.astype(object)[every[:, u], every[:, v]]
        good = network.tables[k].allowed
        allowed &= True if good is None else good[every[:, u], every[:, v]]
    for u, v in network.ties.tolist():
        allowed &= every[:, u] == every[:, v]
    for usage in network.usages:
        for row, (low, high) in enumerate(zip(usage.low, usage.high, strict=True)):
            used = np.zeros(len(every), object)
            for item in usage.counted(row).tolist():
                for (own, i), amount in zip(usage.at.tolist(), usage.amounts.tolist(), strict=True):
                    if own == item:
                        used[every[:, usage.nodes[item]] == i] += amount
            allowed &= (low is None or used >= low) & (high is None or used <= high)
    if not allowed.any():
        return None
    sign = 1 if network.sense == "min" else -1
    return np.asarray(every[allowed][(cost[allowed] * sign).argmin()])


def best(network: Network) -> int | None:
    """Return the best cost of all labellings, ``None`` if none is allowed."""
    labels = best_labels(network)
    return None if labels is None else network.cost(labels)
