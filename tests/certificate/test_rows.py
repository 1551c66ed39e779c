"""Rows stated by items and spans mean what each row of its own means."""

from __future__ import annotations

import random

import numpy as np
import pytest

from layoutopt.certificate.pairwise import Pairwise
from layoutopt.certificate.reductions import NoLabelling, ReducedPairwise
from layoutopt.certificate.rows import GroupedRows, RowGroup, RowLimits

FACTORS = (1, 10**30)


def random_group(draw: random.Random, widths: list[int]) -> RowGroup:
    """Return rows of items of different nodes; some use negative amounts."""
    count, factor = draw.randint(1, 9), draw.choice(FACTORS)
    items, spans = [], []
    for u in draw.sample(range(len(widths)), draw.randint(0, len(widths))):
        used = np.array([draw.randint(-2, 6) * factor for _ in range(widths[u])], object)
        begin = draw.randrange(count)
        items.append((u, used))
        spans.append((begin, draw.randint(begin + 1, count)))
    begin, end = np.array(spans, np.int64).reshape(-1, 2).T

    def limit(sign: int) -> int | None:
        return draw.choice([None, sign * draw.randint(0, 12) * factor])

    return RowGroup(items, begin, end, [(limit(-1), limit(1)) for _ in range(count)])


def narrowed(widths: list[int], rows: list[RowLimits]) -> list[list[bool]] | None:
    """Forbid labels that no choice of the other nodes allows, row by row, until none is left."""
    good = [[True] * width for width in widths]
    while True:
        before = [own[:] for own in good]
        for terms, low, high in rows:
            left = {
                u: [x for x, ok in zip(own, good[u], strict=True) if ok] for u, own in terms.items()
            }
            for u, own in terms.items():
                others = [v for v in terms if v != u]
                least = sum(min(left[v]) for v in others)
                most = sum(max(left[v]) for v in others)
                for i, x in enumerate(own):
                    over = high is not None and x + least > high
                    good[u][i] &= not over and (low is None or x + most >= low)
                if not any(good[u]):
                    return None
                left[u] = [x for x, ok in zip(own, good[u], strict=True) if ok]
            if not terms and ((low or 0) > 0 or (high or 0) < 0):
                return None
        if good == before:
            return good


def test_narrowing_by_spans_is_narrowing_by_rows() -> None:
    """Groups, the same rows one by one, and the definition forbid the same labels."""
    forbade = nothing = 0
    for seed in range(400):
        draw = random.Random(seed)
        widths = [draw.randint(1, 4) for _ in range(draw.randint(1, 6))]
        rows = GroupedRows([random_group(draw, widths) for _ in range(draw.randint(1, 2))])
        unary = [np.zeros(width, np.int64) for width in widths]
        wanted = narrowed(widths, list(rows))
        for own in (rows, list(rows)):
            found = None
            try:
                problem = ReducedPairwise(Pairwise(unary, [], (), own))
                problem.narrow()
                found = [good.tolist() for good in problem.good]
            except NoLabelling:
                pass
            assert found == wanted, seed
        nothing += wanted is None
        forbade += wanted is not None and not all(map(all, wanted))
    assert min(forbade, nothing) > 60


def test_rows_are_numbered_through_groups() -> None:
    """Items of one node in one row add up."""
    one = RowGroup(
        [(0, np.array([1, 2])), (0, np.array([3, 5])), (1, np.array([7]))],
        np.array([0, 1, 0]),
        np.array([2, 3, 1]),
        [(None, 1), (0, 2), (3, None)],
    )
    rows = GroupedRows([one, one])
    amounts = [{u: own.tolist() for u, own in row.terms.items()} for row in rows]
    assert amounts == 2 * [{0: [1, 2], 1: [7]}, {0: [4, 7]}, {0: [3, 5]}]
    assert [row[1:] for row in rows[2:5]] == [(3, None), (None, 1), (0, 2)]
    with pytest.raises(IndexError):
        rows[6]
