"""Cost networks in other forms: tied nodes merged, open domains closed, parts alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from layoutopt.network.components import components
from layoutopt.network.network import Array, Domain, Network
from layoutopt.network.problem import (
    by_component,
    exact_integers,
    fresh_enough,
    merge_parallel,
    own_fresh,
    restored_names,
)


@dataclass(frozen=True, eq=False)
class Merged:
    """A network in which tied nodes are one."""

    network: Network  # the smaller network
    of: Array  # for each node of the larger one its node in the smaller one
    first: Array  # for each node of the smaller one the first of the larger one

    def restore(self, labels: Array) -> Array:
        """Return labels of the larger network."""
        return restored_names(labels, self.first, self.network.sizes)[self.of]

    def cut(self, labels: Array) -> Array:
        """Return labels of the smaller network."""
        return own_fresh(labels[self.first], self.network.sizes)


def merge_ties(network: Network) -> Merged:
    """Merge tied nodes, and their domains if they differ; what they cost adds up."""
    of = components(len(network), *network.ties.T)[1]
    kind = components(len(network.domains), *network.domain_of[network.ties].T)[1]
    first, domain = (np.unique(each, return_index=True)[1] for each in (of, kind))
    cost_at = np.column_stack([of[network.cost_at[:, 0]], network.cost_at[:, 1]])
    costs = network.costs
    banned = np.column_stack([of[network.banned[:, 0]], network.banned[:, 1]])
    ends = of[network.table_edges]
    inside = ends[:, 0] == ends[:, 1]
    for u, k in zip(ends[inside, 0].tolist(), network.table_of[inside].tolist(), strict=True):
        table = network.tables[k]  # of a node with itself: the diagonal
        size = len(table.costs)
        here = np.column_stack([np.full(size, u), np.arange(size)])
        cost_at = np.concatenate([cost_at, here])
        costs = exact_integers([*costs.tolist(), *np.diagonal(table.costs).tolist()])
        if table.allowed is not None:
            banned = np.concatenate([banned, here[~np.diagonal(table.allowed)]])
    cost_at, costs = merge_parallel(cost_at, costs)
    equal = np.sort(of[network.equal_edges], axis=1)
    apart = equal[:, 0] != equal[:, 1]
    paid = sum(network.equal_costs[~apart].tolist())
    equal, equal_costs = merge_parallel(equal[apart], network.equal_costs[apart])
    smaller = replace(
        network,
        nodes=tuple(network.nodes[u] for u in first.tolist()),
        domain_of=domain[kind][network.domain_of[first]],
        cost_at=cost_at,
        costs=costs,
        banned=np.unique(banned, axis=0) if len(banned) else banned,
        equal_edges=equal,
        equal_costs=equal_costs,
        table_edges=ends[~inside],
        table_of=network.table_of[~inside],
        ties=network.ties[:0],
        usages=tuple(replace(usage, nodes=of[usage.nodes]) for usage in network.usages),
        constant=network.constant + paid,
    )
    return Merged(smaller, of, first)


@dataclass(frozen=True, eq=False)
class ClosedNetwork:
    """A network with closed domains instead of open ones."""

    network: Network  # the network; a node's labels beyond its `named` ones stand for fresh ones
    named: Array  # number of named labels of each node
    owners: list[Array]  # for each node the nodes whose fresh labels it may choose

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

    Fresh labels cost nothing, and rows do not count them; those are enough that
    :func:`layoutopt.network.problem.fresh_enough` tells of positive costs of agreement.
    """
    sizes = network.sizes
    count, of = components(len(network), *network.equal_edges.T)
    pays = of[network.equal_edges[(network.equal_costs > 0).astype(bool), 0]]
    enough = fresh_enough(np.bincount(pays, minlength=count)).tolist()
    every = by_component(np.arange(len(network)), of, count)
    shared = [own[:most] for own, most in zip(every, enough, strict=True)]
    domains: dict[tuple[int, int], int] = {}
    domain_of, owners = [], []
    each = zip(network.domain_of.tolist(), of.tolist(), network.opened.tolist(), strict=True)
    for k, c, opened in each:
        owners.append(shared[c] if opened else shared[c][:0])
        domain_of.append(domains.setdefault((k, len(owners[-1])), len(domains)))
    closed = replace(
        network,
        domains=tuple(Domain(network.domains[k].size + more) for k, more in domains),
        domain_of=np.array(domain_of, np.int64),
    )
    return ClosedNetwork(closed, sizes, owners)


def take(network: Network, nodes: Array) -> Network:
    """Return the part of a network without rows and ties on ascending nodes that no edge leaves."""
    place = np.full(len(network), -1)
    place[nodes] = np.arange(len(nodes))
    own, banned = place[network.cost_at[:, 0]] >= 0, place[network.banned[:, 0]] >= 0
    equal = place[network.equal_edges[:, 0]] >= 0
    table = place[network.table_edges[:, 0]] >= 0

    def moved(at: Array) -> Array:
        return np.column_stack([place[at[:, 0]], at[:, 1]])

    return replace(
        network,
        nodes=tuple(network.nodes[u] for u in nodes.tolist()),
        domain_of=network.domain_of[nodes],
        cost_at=moved(network.cost_at[own]),
        costs=network.costs[own],
        banned=moved(network.banned[banned]),
        equal_edges=place[network.equal_edges[equal]],
        equal_costs=network.equal_costs[equal],
        table_edges=place[network.table_edges[table]],
        table_of=network.table_of[table],
        ties=network.ties[:0],
        usages=(),
        constant=0,
    )
