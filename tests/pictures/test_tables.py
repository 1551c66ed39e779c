from __future__ import annotations

import csv
import io
import re

from layoutopt.base.table import Table


def test_csv_comes_back_as_it_was() -> None:
    """Commas, quotes and line breaks in cells survive; nothing is an empty cell."""
    rows = [["a,b", 'c"d', "e\nf"], [1, None, 2.5]]
    text = Table(["x", "y", "z"], rows).csv()
    assert list(csv.reader(io.StringIO(text))) == [
        ["x", "y", "z"],
        ["a,b", 'c"d', "e\nf"],
        ["1", "", "2.5"],
    ]
    assert "\r" not in text


def test_markdown_keeps_cells_apart() -> None:
    """Signs with a meaning are escaped, line breaks are spaces, numbers flush right."""
    text = Table(["name", "n"], [["a|b", "1"], ["*x*\n<y>", "2"]]).markdown()
    head, sides, *rows = text.splitlines()
    assert head == "| name | n |"
    assert sides == "| --- | ---: |"
    assert rows == ["| a\\|b | 1 |", "| \\*x\\* \\<y\\> | 2 |"]
    for line in text.splitlines():
        assert len(re.findall(r"(?<!\\)\|", line)) == 3


def test_underlines_within_words_stay() -> None:
    """Markdown shows those as they are; at the ends of a word they would be emphasis."""
    assert Table(["a_b"], [["_c_"]]).markdown().splitlines()[0] == "| a_b |"
    assert Table(["a"], [["_c_"]]).markdown().splitlines()[2] == "| \\_c\\_ |"
