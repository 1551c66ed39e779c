from __future__ import annotations

import pytest

from layoutopt.report.words import gaps, progress_charts
from tests.pictures.test_chart import read, texts

RUN = ((0.0, None, None), (1.0, None, 20.0), (2.0, 8.0, None), (3.0, 10.0, 12.0), (4.0, 10.0, 10.0))


def test_gaps_are_known_from_both_numbers_on() -> None:
    """(bound - score) / score, with the best of both so far: 12 / 8, then 2 / 10, then none."""
    assert gaps(RUN) == ((2.0, 1.5), (3.0, pytest.approx(0.2)), (4.0, 0.0))


def test_worse_news_is_no_news() -> None:
    """A later message that is worse, as of a part of the problem, changes nothing."""
    assert gaps([(1, 8.0, 12.0), (2, 5.0, 30.0)]) == ((1, 0.5), (2, 0.5))


def test_a_gap_is_never_negative() -> None:
    """Rounded numbers may cross."""
    assert gaps([(1, 10.0000001, 10.0)]) == ((1, 0.0),)


def test_a_run_has_two_charts() -> None:
    """Score and bound relative to the last score, and the gap; both over seconds."""
    both, gap = progress_charts(RUN)
    assert {"Score and bound", "distance from the last score", "score", "bound"} <= set(
        texts(read(both))
    )
    assert "100%" in texts(read(both))  # the bound of 20 for a score of 10
    assert "Gap over time" in texts(read(gap))
    assert "0" in texts(read(gap))


def test_what_is_unknown_is_not_drawn() -> None:
    """No trace, no two points in time, no score or no bound."""
    assert progress_charts([]) == []
    assert progress_charts([(1.0, 2.0, 3.0)]) == []
    assert progress_charts([(0.0, None, None), (1.0, None, None)]) == []
    [scores] = progress_charts([(0.0, 1.0, None), (1.0, 2.0, None)])
    assert "bound" not in texts(read(scores))
    [bounds] = progress_charts([(0.0, None, 5.0), (1.0, None, 4.0)])
    assert "distance from the last bound" in texts(read(bounds))


def test_a_score_of_zero_has_no_percent() -> None:
    """Nothing is relative to 0."""
    both = progress_charts([(0.0, -5.0, 20.0), (1.0, 0.0, 10.0)])[0]
    assert "20" in texts(read(both))
    assert not any("%" in words for words in texts(read(both)))
