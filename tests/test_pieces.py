"""Pieces of layouts as loops."""

from __future__ import annotations

from layoutopt.base.result import read, written


def test_steps_of_loops_of_one_do_not_matter() -> None:
    """A loop that is walked once takes no step, of whatever size."""
    piece = ("b", 3, 5, ((1, 10**30, -(10**30)), (2, 1, 4)))
    assert read(piece).tolist() == [3, 4]
    assert written(piece).tolist() == [5, 9]
