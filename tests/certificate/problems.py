"""Random pairwise problems, their optima, evidence of every kind, and wrong data."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutopt.certificate.pairwise import Pairwise
from layoutopt.certificate.refused import Refused

Evidence = dict[str, Any]

WIDE = (1, 2**40, 2**61, 10**30)
"""Factors of worths; the last two do not fit 64 bits."""


def random_pairwise(draw: random.Random, nodes: int = 6, labels: int = 3) -> Pairwise:
    """Return a problem with parallel edges and nodes of one label, some, or of none at all."""
    factor = draw.choice(WIDE)

    def array(*shape: int) -> np.ndarray:
        flat = [draw.randint(-9, 9) * factor for _ in range(int(np.prod(shape)))]
        return np.array(flat, object if factor > 2**50 else np.int64).reshape(shape)

    widths = [draw.randint(1, labels) for _ in range(draw.randint(0, nodes))]
    edges = []
    if len(widths) > 1:
        for _ in range(draw.randint(0, 2 * len(widths))):
            i, j = draw.sample(range(len(widths)), 2)
            edges.append((i, j, array(widths[i], widths[j])))
    return Pairwise([array(width) for width in widths], edges)


def worth(problem: Pairwise, labels: tuple[int, ...]) -> int | None:
    """Return what a labelling is worth, by the sum in the module's text; None if forbidden."""
    worths = [own[x] for own, x in zip(problem.unary, labels, strict=True)]
    worths += [table[labels[i], labels[j]] for i, j, table in problem.edges]
    for row in problem.rows:
        used = sum(int(own[labels[u]]) for u, own in row.terms.items())
        if (row.low is not None and used < row.low) or (row.high is not None and used > row.high):
            return None
    if any(worth < -problem.total for worth in worths):
        return None
    same = sum(w for i, j, w in problem.equal if labels[i] == labels[j])
    return sum(map(int, worths)) + same


def best(problem: Pairwise, node: int = 0, label: int | None = None) -> int | None:
    """Return the largest worth of all allowed labellings, ``None`` without any.

    Parameters
    ----------
    node, label
        What this node must have, if anything.
    """
    every = itertools.product(*map(range, problem.widths))
    worths = (worth(problem, x) for x in every if label is None or x[node] == label)
    return max((found for found in worths if found is not None), default=None)


def table(problem: Pairwise, draw: random.Random) -> Evidence:
    """Return a random order of elimination."""
    order = list(range(len(problem.widths)))
    draw.shuffle(order)
    return {"kind": "table", "order": order}


def dual(problem: Pairwise, draw: random.Random) -> Evidence:
    """Return random messages, whole numbers and ratios."""

    def entry() -> int | str:
        return draw.choice([draw.randint(-9, 9), f"{draw.randint(-30, 30)}/{draw.randint(1, 7)}"])

    return {
        "kind": "dual",
        "messages": [
            [[entry() for _ in range(problem.widths[u])] for u in (i, j)]
            for i, j, _ in problem.edges
        ],
    }


def branch(problem: Pairwise, draw: random.Random, leaf: Callable[..., Evidence]) -> Evidence:
    """Return a branch over a random node; evidence for leaves is made as ``leaf`` does."""
    node = draw.randrange(len(problem.widths))
    leaves = []
    for label in range(problem.widths[node]):
        unary = [
            own[label : label + 1] if u == node else own for u, own in enumerate(problem.unary)
        ]
        edges = [
            (
                i,
                j,
                t[label : label + 1] if i == node else t[:, label : label + 1] if j == node else t,
            )
            for i, j, t in problem.edges
        ]
        leaves.append(leaf(Pairwise(unary, edges), draw))
    return {"kind": "branch", "node": node, "leaves": leaves}


def components(problem: Pairwise, draw: random.Random, leaf: Callable[..., Evidence]) -> Evidence:
    """Return the components, nodes of one label on their own, each with evidence."""
    parts: list[set[int]] = [{u} for u in range(len(problem.widths))]
    for i, j, _ in problem.edges:
        one, two = (next(p for p in parts if u in p) for u in (i, j))
        if one is not two and min(problem.widths[i], problem.widths[j]) > 1:
            parts = [p for p in parts if p not in (one, two)] + [one | two]
    found = []
    for part in parts:
        nodes = list(part)
        draw.shuffle(nodes)
        inside = [
            (nodes.index(i), nodes.index(j), t)
            for i, j, t in problem.edges
            if i in part and j in part
        ]
        own = Pairwise([problem.unary[u] for u in nodes], inside)
        found.append({"nodes": nodes, "evidence": leaf(own, draw)})
    return {"kind": "components", "parts": found}


CASES = Path(__file__).parents[1] / "cases"


def cases(name: str) -> Any:
    """Return the rows of a file of cases."""
    return json.loads((CASES / f"{name}.json").read_text())


def apply(document: Any, changes: Mapping[str, Any], root: str = "") -> None:
    """Change a document as a row of a file of cases says.

    A change names a place by keys with blanks between, from ``root`` on unless the first is a key
    of the document itself; after a minus, what is there is removed.
    """
    for path, value in changes.items():
        words = path.removeprefix("-").split()
        keys: list[Any] = [root, *words] if root and words[0] not in document else words
        at = document
        for key in keys[:-1]:
            at = at[int(key) if isinstance(at, list) else key]
        last = int(keys[-1]) if isinstance(at, list) else keys[-1]
        if path[0] == "-":
            del at[last]
        else:
            at[last] = value


@contextmanager
def refused(reason: str = "") -> Iterator[None]:
    """Expect a refusal of one short line that contains a reason."""
    with pytest.raises(Refused) as caught:
        yield
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
