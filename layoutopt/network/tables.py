"""Cost networks as tables: open domains closed, networks to reduce, and arrays to solve."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from layoutopt.base.entries import Takes, load
from layoutopt.base.limits import Limits
from layoutopt.network.components import components
from layoutopt.network.costs.problem import FORBIDDEN, LARGEST, CostAnswer, Problem
from layoutopt.network.costs.work import Cost, Infeasible, Table, Work, transposed
from layoutopt.network.network import Array, Domain, Network


@dataclass(frozen=True, eq=False)
class ClosedNetwork:
    """A network with closed domains instead of open ones.

    Parameters
    ----------
    network
        The network; a node's labels beyond its ``named`` ones stand for fresh ones.
    named
        Number of named labels of each node.
    owners
        For each node the nodes whose fresh labels it may choose.
    """

    network: Network
    named: Array
    owners: list[Array]

    def restore(self, labels: Array) -> Array:
        """Return labels of the network with open domains."""
        whole = labels.copy()
        for u in np.flatnonzero(labels >= self.named).tolist():
            whole[u] = self.named[u] + self.owners[u][labels[u] - self.named[u]]
        return whole

    def cut(self, labels: Array) -> Array | None:
        """Return labels of the closed network; ``None`` where it has too few fresh ones."""
        own = labels.copy()
        seen: dict[tuple[int, int], int] = {}
        count: dict[int, int] = {}
        for u in np.flatnonzero(labels >= self.named).tolist():
            root = int(self.owners[u][0])
            key = root, int(labels[u] - self.named[u])
            if key not in seen:
                seen[key] = count[root] = count.get(root, -1) + 1
            if seen[key] >= len(self.owners[u]):
                return None
            own[u] = self.named[u] + seen[key]
        return own


def close_domains(network: Network) -> ClosedNetwork:
    """Close the open domains: nodes that equality edges join share as many fresh labels as help.

    Fresh labels cost nothing, and rows do not count them.  Two of them can be made one where no
    cost of agreement is positive; with ``m`` positive ones ``f`` are enough where
    ``f (f - 1) / 2 <= m``.
    """
    sizes = network.sizes
    count, of = components(len(network), *network.equal_edges.T)
    pays = np.zeros(count, np.int64)
    np.add.at(pays, of[network.equal_edges[:, 0]], (network.equal_costs > 0).astype(np.int64))
    size = np.bincount(of, minlength=count)
    opened = np.array([domain.open for domain in network.domains], bool)[network.domain_of]
    domains: dict[tuple[int, int], int] = {}
    domain_of = []
    by_root: dict[int, Array] = {}
    owners = []
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(size)
    for u, k in enumerate(network.domain_of.tolist()):
        c, more = int(of[u]), 0
        if opened[u]:
            more = min(int(size[c]), (1 + math.isqrt(1 + 8 * int(pays[c]))) // 2)
            if c not in by_root:
                by_root[c] = order[ends[c] - size[c] : ends[c] - size[c] + more]
        owners.append(by_root[c] if opened[u] else np.zeros(0, np.int64))
        domain_of.append(domains.setdefault((k, more), len(domains)))
    closed = replace(
        network,
        domains=tuple(Domain(network.domains[k].size + more) for k, more in domains),
        domain_of=np.array(domain_of, np.int64),
    )
    return ClosedNetwork(closed, sizes, owners)


def work_of(network: Network, limits: Limits) -> Work:
    """Return a network of closed domains, without its rows, as one to work on.

    Raises
    ------
    Infeasible
        If all labels of a node are forbidden.
    TimeoutError
        If time is up.
    """
    costs: list[list[Cost]] = [[0] * size for size in network.sizes.tolist()]
    for (u, i), cost in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
        costs[u][i] = cost
    for u, i in network.banned.tolist():
        costs[u][i] = inf
    work = Work(costs)
    work.constant = network.constant
    if any(min(own) == inf for own in costs):
        raise Infeasible
    tables: list[Table] = []
    for table in network.tables:
        if limits.over:
            raise TimeoutError
        rows = table.costs.tolist()
        if table.allowed is not None:
            allowed = table.allowed.tolist()
            rows = [
                [x if ok else inf for x, ok in zip(row, oks, strict=True)]
                for row, oks in zip(rows, allowed, strict=True)
            ]
        tables.append(tuple(map(tuple, rows)))
    turned = [transposed(table) for table in tables]
    for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
        if v in work.near[u]:
            work.add(u, v, tables[k])
        else:
            work.near[u][v], work.near[v][u] = tables[k], turned[k]
    known: dict[tuple[int, int], Table] = {}
    each = zip(network.equal_edges.tolist(), network.equal_costs.tolist(), strict=True)
    for (u, v), cost in each:
        n = len(costs[u])
        if (n, cost) not in known:
            known[n, cost] = tuple(
                tuple([cost if i == j else 0 for j in range(n)]) for i in range(n)
            )
        work.add(u, v, known[n, cost])
    return work


def by_tables(part: Network, limits: Limits, start: Array | None, solver: str) -> CostAnswer:
    """Solve a network of closed domains without rows and ties; equality edges become tables.

    Parameters
    ----------
    start
        An allowed labelling to begin with.
    """
    sizes = part.sizes.tolist()
    starts = np.cumsum([0, *sizes])
    flat: list[int] = [0] * int(starts[-1])
    for (u, i), cost in zip(part.cost_at.tolist(), part.costs.tolist(), strict=True):
        flat[starts[u] + i] = cost
    allowed = np.ones(len(flat), bool)
    allowed[starts[part.banned[:, 0]] + part.banned[:, 1]] = False
    tables = [(table.costs, table.allowed) for table in part.tables]
    table_of = part.table_of.tolist()
    number: dict[tuple[int, int], int] = {}
    for u, cost in zip(part.equal_edges[:, 0].tolist(), part.equal_costs.tolist(), strict=True):
        key = (sizes[u], cost)
        if key not in number:
            number[key] = len(tables)
            diagonal = np.zeros((sizes[u], sizes[u]), object if abs(cost) >= 2**62 else np.int64)
            np.fill_diagonal(diagonal, cost)
            tables.append((diagonal, None))
        table_of.append(number[key])
    used = sorted(set(table_of))
    place = {k: i for i, k in enumerate(used)}
    arrays = [tables[k] for k in used]
    times = np.bincount([place[k] for k in table_of], minlength=len(used)).tolist()
    total = sum(abs(x) for x in flat) + sum(
        t * max(map(abs, own.reshape(-1).tolist()), default=0)
        for t, (own, _) in zip(times, arrays, strict=True)
    )
    unit = math.gcd(*flat, *(x for own, _ in arrays for x in np.unique(own).tolist())) or 1
    while total // unit >= LARGEST:  # rounded down, so that the bound holds
        unit *= 2
    costs = np.array([x // unit for x in flat], np.int64)
    costs[~allowed] = FORBIDDEN
    problem = Problem(
        costs,
        starts,
        np.concatenate([part.table_edges, part.equal_edges]),
        np.array([place[k] for k in table_of], np.int64),
        tuple(_packed(own // unit, ok) for own, ok in arrays),
    )
    name = "auto" if solver == "auto" else "pbqp"
    answer: CostAnswer = load(name, Takes.TABLES)(problem, limits, start)
    if answer.infeasible:
        return answer
    bound = None if answer.bound is None else answer.bound * unit
    cost = None if answer.labelling is None else part.cost(answer.labelling)
    return replace(answer, objective=cost, bound=bound)


def _packed(costs: Array, allowed: Array | None) -> Array:
    table = costs.astype(np.int64)
    if allowed is not None:
        table[~allowed] = FORBIDDEN
    return table
