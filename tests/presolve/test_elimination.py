"""When dynamic programming gives up."""

from __future__ import annotations

import pytest

from layoutopt.network import elimination
from layoutopt.network.elimination import eliminate
from tests.presolve.test_reductions import APART, TRIANGLE
from tests.support import labelling, optimum


@pytest.mark.parametrize(
    ("banned", "table", "work"),
    [([], 3**3, 3**3 + 3**2 + 3), ([(0, 1)], 4**3, 4**3 + 4**2 + 4)],
    ids=["three labels", "and a fresh one"],
)
def test_limits_are_exact(
    monkeypatch: pytest.MonkeyPatch, banned: list[tuple[int, int]], table: int, work: int
) -> None:
    """A triangle takes tables of k^3, k^2 and k entries; with one less allowed it is refused."""
    problem = labelling(3, 3, TRIANGLE, APART, banned)
    for most, total, solved in [
        (table, work, True),
        (table - 1, work, False),
        (table, work - 1, False),
    ]:
        monkeypatch.setattr(elimination, "TABLE_LIMIT", most)
        monkeypatch.setattr(elimination, "WORK_LIMIT", total)
        result = eliminate(problem)
        assert (result is not None) == solved
        assert result is None or result.objective == optimum(problem)
