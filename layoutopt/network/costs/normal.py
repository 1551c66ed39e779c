"""Normal form of an edge: what either end decides alone belongs to that end.

A row's least cost is paid whenever its label is chosen, so it moves to the label's own cost;
columns likewise.  A label whose row or column is all forbidden is out of the question.  A table
that is a sum of a row's and a column's part is all zero then, and its edge vanishes.  This is
soft arc consistency (Cooper and Schiex, Artificial Intelligence 154, 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from layoutopt.network.costs.work import Cost, Table, Work


def normalise(work: Work, u: int, v: int) -> bool:
    """Bring an edge to normal form; return whether it has vanished.

    Afterwards no cost is negative, each row and column has a 0, and those of labels that
    are out of the question hold nothing else.

    Raises
    ------
    Infeasible
        If a node has no label left.
    """
    table = work.near[u][v]
    rows = _rows_moved(work, u, table, work.costs[v])
    columns = _rows_moved(work, v, tuple(zip(*rows, strict=True)), work.costs[u])
    if not any(map(any, columns)):
        work.drop(u, v)
        return True
    normal = tuple(zip(*columns, strict=True))
    if normal != table:
        work.near[u][v], work.near[v][u] = normal, tuple(columns)
    return False


def _rows_moved(work: Work, u: int, table: Table, other: Sequence[Cost]) -> list[tuple[Cost, ...]]:
    """Move each row's least cost to its label; return what remains."""
    own = work.costs[u]
    partial = inf in other
    rows: list[tuple[Cost, ...]] = []
    for i, row in enumerate(table):
        if own[i] == inf:
            rows.append((0,) * len(row))
            continue
        if partial:
            row = tuple([0 if c == inf else x for x, c in zip(row, other, strict=True)])
            least = min([x for x, c in zip(row, other, strict=True) if c < inf])
        else:
            least = min(row)
        if least == inf:
            work.forbid(u, i)
            row = (0,) * len(row)
        elif least:
            own[i] += least
            if partial:
                row = tuple([x - least if c < inf else 0 for x, c in zip(row, other, strict=True)])
            else:
                row = tuple([x - least for x in row])
        rows.append(row)
    return rows


def normalise_all(work: Work) -> None:
    """Bring all edges to normal form; tables that many edges share are looked at once.

    Raises
    ------
    Infeasible
        If a node has no label left.
    """
    whole = [inf not in own for own in work.costs]
    known: dict[int, tuple[Table, bool]] = {}  # that it holds the tables keeps their ids
    for u, v, table in list(work.edges()):
        if id(table) not in known:
            lines = (*table, *zip(*table, strict=True))
            known[id(table)] = (table, not any(map(min, lines)) and any(map(any, table)))
        if not (known[id(table)][1] and whole[u] and whole[v]):
            normalise(work, u, v)


def level(work: Work) -> None:
    """Move each node's least cost to the constant."""
    for u in work.left():
        least = min(work.costs[u])
        if least:
            work.costs[u] = [cost - least for cost in work.costs[u]]
            work.constant += int(least)
