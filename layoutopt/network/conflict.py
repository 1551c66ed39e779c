"""Parts of an infeasible network that cannot hold together, as few as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.network import Array, CostTable, Network, Usage, spans_of

Refutes: TypeAlias = Callable[[Network, Limits], bool | None]
"""Whether a network has no allowed labelling; ``None`` if that was not found out."""

SHARE = 8  # share of the time that is left that one test may take: an eighth
SHOWN = 8  # parts of a kind that a text lists


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkConflict:
    """Nodes of a network, and what is asked of them, that no labels satisfy."""

    network: Network = field(repr=False)  # the whole network
    nodes: tuple[int, ...]  # numbers of nodes that are part of it
    bans: tuple[int, ...] = ()  # those of them whose forbidden labels are
    tables: tuple[int, ...] = ()  # numbers of table edges, for what they forbid
    ties: tuple[int, ...] = ()  # numbers of ties
    # numbers of rows, those of all usages counted on; nodes that are no part are not counted
    rows: tuple[int, ...] = ()
    # whether without any of these there is an allowed labelling of what is left
    minimal: bool = False

    @property
    def part(self) -> Network:
        """The network of these parts alone, without costs."""
        net, nodes = self.network, np.array(self.nodes, np.int64)
        place = np.full(len(net), -1)
        place[nodes] = np.arange(len(nodes))
        edges = np.array(self.tables, np.int64)
        banned = net.banned[np.isin(net.banned[:, 0], self.bans)]
        free = tuple(CostTable(np.zeros(t.costs.shape, np.int64), t.allowed) for t in net.tables)
        usages = [_cut(usage, rows, place) for usage, rows in _by_usage(net, self.rows) if rows]
        return Network(
            nodes=tuple(net.nodes[u] for u in nodes.tolist()),
            domains=net.domains,
            domain_of=net.domain_of[nodes],
            banned=np.column_stack([place[banned[:, 0]], banned[:, 1]]),
            table_edges=place[net.table_edges[edges]],
            table_of=net.table_of[edges],
            tables=free,
            ties=place[net.ties[np.array(self.ties, np.int64)]],
            usages=tuple(usages),
            name=net.name,
        )

    def __str__(self) -> str:
        net, name = self.network, self.network.nodes
        bans = [
            f"{name[u]} = {net.label_name(u, i)}" for u, i in net.banned.tolist() if u in self.bans
        ]
        pairs = [
            [f"{name[u]} with {name[v]}" for u, v in ends[list(own)].tolist()]
            for ends, own in ((net.table_edges, self.tables), (net.ties, self.ties))
        ]
        rows = [usage.name(k) for usage, own in _by_usage(net, self.rows) for k in own]
        parts = {
            "nodes": [name[u] for u in self.nodes],
            "forbidden labels": bans,
            "forbidden pairs": pairs[0],
            "ties": pairs[1],
            "rows": rows,
        }
        listed = [f"{what} {_some(own)}" for what, own in parts.items() if own]
        return f"no labelling is allowed of {'; '.join(listed)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def find_conflict(network: Network, refutes: Refutes, limits: Limits) -> NetworkConflict:
    """Return parts of an infeasible network without which it would not be.

    Rows are left out first, as many at once as possible, then table edges and ties, what nodes must
    not choose, and nodes; what is infeasible still stays left out.
    """
    forbids = [table.allowed is not None for table in network.tables]
    found = NetworkConflict(
        network=network,
        nodes=tuple(range(len(network))),
        bans=tuple(np.unique(network.banned[:, 0]).tolist()),
        tables=tuple(np.flatnonzero(np.array(forbids, bool)[network.table_of]).tolist()),
        ties=tuple(range(len(network.ties))),
        rows=tuple(range(network.rows)),
        minimal=True,
    )
    for what in ("rows", "tables", "ties", "bans", "nodes"):
        found = _shrunk(found, what, refutes, limits)
    return found


def _shrunk(found: NetworkConflict, what: str, refutes: Refutes, limits: Limits) -> NetworkConflict:
    """Leave out parts of one kind: all at once, else half, and twice as many where that worked."""
    kept: list[int] = list(getattr(found, what))
    fixed = _needed(found) if what == "nodes" else set()
    place, size = 0, len(kept)
    while place < len(kept):
        size = min(size, len(kept) - place)
        stay = [k for k in kept[place : place + size] if k in fixed]
        without = [*kept[:place], *stay, *kept[place + size :]]
        if len(stay) == size:
            place += size
            continue
        change: dict[str, Any] = {what: tuple(without)}
        smaller = replace(found, **change)
        refuted = refutes(smaller.part, limits.within(limits.left / SHARE))
        if refuted:
            found, kept, place, size = smaller, without, place + len(stay), 2 * size
        elif size > 1:
            size //= 2
        else:
            place += 1
            if refuted is None:
                found = replace(found, minimal=False)
        if limits.over:
            return replace(found, minimal=False)
    return found


def _needed(conflict: NetworkConflict) -> set[int]:
    """Return nodes that cannot be left out: rows without them could be harder to hold."""
    net = conflict.network
    found = {
        *conflict.bans,
        *net.table_edges[list(conflict.tables)].reshape(-1).tolist(),
        *net.ties[list(conflict.ties)].reshape(-1).tolist(),
    }
    for usage, rows in _by_usage(net, conflict.rows):
        items, amounts = usage.at[:, 0], usage.amounts
        for row in rows:
            harder = np.zeros(len(amounts), bool)
            if usage.high[row] is not None:
                harder |= np.asarray(amounts < 0, bool)
            if usage.low[row] is not None:
                harder |= np.asarray(amounts > 0, bool)
            found.update(usage.nodes[np.intersect1d(items[harder], usage.counted(row))].tolist())
    return found


def _by_usage(network: Network, rows: Iterable[int]) -> list[tuple[Usage, list[int]]]:
    """Return the rows of each usage, numbered on their own."""
    first, found, every = 0, [], sorted(rows)
    for usage in network.usages:
        end = first + usage.rows
        found.append((usage, [k - first for k in every if first <= k < end]))
        first = end
    return found


def _cut(usage: Usage, rows: list[int], place: Array) -> Usage:
    """Return some rows of a usage, of the nodes that have a place."""
    kept = np.flatnonzero(place[usage.nodes] >= 0)
    item = np.full(len(usage.nodes), -1)
    item[kept] = np.arange(len(kept))
    at = np.flatnonzero(item[usage.at[:, 0]] >= 0)
    lists = [item[usage.counted(k)] for k in rows]
    return Usage(
        nodes=place[usage.nodes[kept]],
        at=np.column_stack([item[usage.at[at, 0]], usage.at[at, 1]]),
        amounts=usage.amounts[at],
        spans=spans_of([own[own >= 0] for own in lists]),
        low=tuple(usage.low[k] for k in rows),
        high=tuple(usage.high[k] for k in rows),
        names=tuple(usage.name(k) for k in rows) if usage.names else (),
        unit=usage.unit,
    )
