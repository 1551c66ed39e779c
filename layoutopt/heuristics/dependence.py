"""What in a graph depends on what: the tables that Greedy0 orders its work by."""

from __future__ import annotations

from collections import defaultdict

from layoutopt.graphs.given import Given
from layoutopt.graphs.op import Kind
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.values import to_integers


def relevant(graph: GraphStore, given: Given) -> list[int]:
    """Return the tensors that pairs, and barriers whose outputs matter, depend on."""
    found: set[int] = set()
    todo = [t for a, b, _ in graph.pairs for t in (a, b)]
    while todo:
        t = todo.pop()
        if t not in found:
            found.add(t)
            i = graph.producers[t]
            if graph.ops[i].kind is Kind.BARRIER:
                todo += [*graph.op_outputs[i], *graph.op_inputs[i]]
            todo += graph.carriers(i)
            todo += given.tensors(t) if t in given.origins else ()
    return sorted(found)


def consumers(graph: GraphStore) -> dict[int, list[tuple[int, int]]]:
    """Return for each tensor who reads it, in order: op and input index.

    Fixed points do not count: in the original they are sources that read nothing.
    """
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, op in enumerate(graph.ops):
        if op.kind is not Kind.FIXED_POINT:
            for k, t in enumerate(graph.op_inputs[i]):
                found[t].append((i, k))
    return found


def lengths(graph: GraphStore, readers: dict[int, list[tuple[int, int]]]) -> list[int]:
    """Return for each op the number of ops on the longest path from it to the end.

    Parameters
    ----------
    readers
        What :func:`consumers` returns.
    """
    length = [1] * len(graph.ops)
    for i in range(len(graph.ops) - 1, -1, -1):
        after = [length[j] for t in graph.op_outputs[i] for j, _ in readers.get(t, ())]
        length[i] = 1 + max(after, default=0)
    return length


def partners(graph: GraphStore) -> dict[int, dict[int, int]]:
    """Return for each tensor its partners, with the values of repeated pairs added up.

    Values are whole multiples of one unit, which compare faster than decimals.
    """
    found: dict[int, dict[int, int]] = defaultdict(dict)
    values, _ = to_integers([value for _, _, value in graph.pairs])
    for (a, b, _), value in zip(graph.pairs, values, strict=True):
        for t, p in ((a, b), (b, a)):
            found[t][p] = found[t].get(p, 0) + value
    return found
