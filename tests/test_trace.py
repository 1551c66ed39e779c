"""How score and bound grew."""

from __future__ import annotations

from itertools import pairwise

from layoutopt.base.limits import POINTS, Progress, Trace
from layoutopt.base.result import Result


def heard(*messages: tuple[float, float | None, float | None]) -> Trace:
    """Return what is kept of messages."""
    trace = Trace()
    for seconds, score, bound in messages:
        trace(Progress("work", seconds, score, bound))
    return trace


def test_only_news_is_kept() -> None:
    """A message without numbers, with the same, or with worse ones tells nothing new."""
    told = [(0, None, None), (1, None, 9.0), (2, 0.0, None), (3, -5.0, 9.5), (4, 0.0, 9.0)]
    trace = heard(*told, (5, 1.0, 8.0))
    assert trace.heard == [(1, None, 9), (2, 0, 9), (5, 1, 8)]


def test_many_messages_are_thinned() -> None:
    """However many there are, few are kept, in order, evenly spread, the first one among them."""
    trace = heard(*((float(i), float(i), None) for i in range(100_000)))
    points = trace.points(1e5, Result(objective=10**5))
    assert len(trace.heard) < 2 * POINTS
    assert POINTS / 4 < len(points) <= POINTS
    times = [seconds for seconds, _, _ in points]
    assert times[0] == 0
    assert times == sorted(times)
    steps = [b - a for a, b in pairwise(times[:-1])]
    assert max(steps) == min(steps)
