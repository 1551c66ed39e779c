"""How score and bound grew."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from layoutopt import unwind
from layoutopt.base.limits import POINTS, Progress, Trace
from layoutopt.base.result import Result
from tests.support import hard_graph


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


def test_the_last_point_is_the_result() -> None:
    """Also where nothing was heard, and where nothing is known."""
    trace = heard((1, 3.0, 9.0))
    result = Result(objective=Decimal(4), bound=None)
    assert trace.points(7.5, result) == ((1, 3, 9), (7.5, 4, None))
    assert Trace().points(1.0, Result()) == ((1.0, None, None),)


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


def test_a_real_run_ends_with_its_score() -> None:
    """Scores rise, bounds fall, and never cross."""
    trace = Trace()
    result = unwind(hard_graph(1, 6), progress=trace)
    points = trace.points(result.seconds["total"], result)
    assert result.score is not None
    assert points[-1][1:] == (float(result.score), float(result.score))
    scores = [score for _, score, _ in points if score is not None]
    bounds = [bound for _, _, bound in points if bound is not None]
    assert scores == sorted(scores)
    assert bounds == sorted(bounds, reverse=True)
    assert max(scores) <= min(bounds)
