"""Small random networks of costs, and all their labellings."""

from __future__ import annotations

import itertools
import random

import numpy as np

from layoutopt.network import CostNetwork, Network
from layoutopt.network.network import Array


def draw(seed: int, *, nodes: int = 5, rows: bool = False) -> Network:
    """Return a random network: signs, senses, open and closed domains, ties, bans and tables."""
    r = random.Random(seed)
    net = CostNetwork(f"random {seed}", r.choice(["min", "max"]))
    domains = [net.domain(r.randint(1, 3), open=r.random() < 0.4) for _ in range(r.randint(1, 3))]
    signed = r.random() < 0.5

    def number() -> int:
        return r.choice([0, 1, 2, 3, 5, 8]) * (r.choice([-1, 1]) if signed else 1)

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
        net.row(amounts, low=low, high=None if high is None else max(high, low or high))
    return net.build()


def best_labels(network: Network) -> Array | None:
    """Return the best labelling of all, ``None`` if none is allowed."""
    choices = []
    for u in range(len(network)):
        domain = network.domain(u)
        fresh = [domain.size + v for v in range(len(network)) if network.domain(v) is domain]
        choices.append([*range(domain.size), *(fresh if domain.open else ())])
    every = (np.array(one, np.int64) for one in itertools.product(*choices))
    allowed = [labels for labels in every if not network.fault(labels)]
    sign = 1 if network.sense == "min" else -1
    return min(allowed, key=lambda labels: sign * network.cost(labels), default=None)


def best(network: Network) -> int | None:
    """Return the best cost of all labellings, ``None`` if none is allowed."""
    labels = best_labels(network)
    return None if labels is None else network.cost(labels)
