from __future__ import annotations

import csv
import io
import re

from layoutopt.base.table import csv_table, markdown_table


def test_csv_comes_back_as_it_was() -> None:
    """Commas, quotes and line breaks in cells survive; nothing is an empty cell."""
    rows = [["a,b", 'c"d', "e\nf"], [1, None, 2.5]]
    text = csv_table(["x", "y", "z"], rows)
    assert list(csv.reader(io.StringIO(text))) == [
        ["x", "y", "z"],
        ["a,b", 'c"d', "e\nf"],
        ["1", "", "2.5"],
    ]
    assert "\r" not in text


def test_markdown_keeps_cells_apart() -> None:
    """Signs with a meaning are escaped, line breaks are spaces, numbers flush right."""
    text = markdown_table(["name", "n"], [["a|b", "1"], ["*x*\n<y>", "2"]])
    head, sides, *rows = text.splitlines()
    assert head == "| name | n |"
    assert sides == "| --- | ---: |"
    assert rows == ["| a\\|b | 1 |", "| \\*x\\* \\<y\\> | 2 |"]
    for line in text.splitlines():
        assert len(re.findall(r"(?<!\\)\|", line)) == 3


def test_underlines_within_words_stay() -> None:
    """Markdown shows those as they are; at the ends of a word they would be emphasis."""
    assert markdown_table(["a_b"], [["_c_"]]).splitlines()[0] == "| a_b |"
    assert markdown_table(["a"], [["_c_"]]).splitlines()[2] == "| \\_c\\_ |"
