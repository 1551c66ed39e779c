from __future__ import annotations

import re

from layoutopt.pictures.lines import Rectangle, commands, label_width, place


def overlap(a: Rectangle, b: Rectangle) -> bool:
    """Return whether two boxes have a point inside both."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_a_line_runs_through_its_stretches() -> None:
    """It begins and ends where they do, and is level in each."""
    path = commands([(0, 10, 5), (50, 80, 25), (120, 130, 5)])
    assert path.startswith("M0 5H10C")
    assert re.findall(r"H(\d+)", path) == ["10", "80", "130"]
    assert re.findall(r"C\S+ \S+ \S+ \S+ (\S+ \d+)", path) == ["50 25", "120 5"]


def test_a_line_that_returns_to_its_column_bulges() -> None:
    """Its curve leaves to the right before it comes back."""
    (first, second) = re.findall(r"C(\S+) \S+ (\S+) ", commands([(0, 10, 0), (10, 0, 100)]))[0]
    assert float(first) == float(second) > 20


def test_labels_keep_out_of_each_others_way() -> None:
    """Of three labels on one short line, no two overlap; the first stands in the middle."""
    line = [(0.0, 10.0, 0.0), (210.0, 220.0, 0.0)]
    taken: list[Rectangle] = []
    for _ in range(3):
        box = place("1", line, taken)
        assert not any(overlap(box, other) for other in taken)
        taken.append(box)
    assert (taken[0][0] + taken[0][2]) / 2 == 110


def test_a_label_without_free_place_hides_as_little_as_it_can() -> None:
    """Where everything is taken, it stands where least is hidden."""
    line = [(0.0, 0.0, 0.0), (100.0, 100.0, 0.0)]
    half = label_width("10") / 2
    box = place("10", line, [(-10, -50, 75, 50), (75, -4, 200, 4)])
    assert box[0] + half > 65
