"""The parts that pages are made of."""

from __future__ import annotations

import re

import pytest
from markupsafe import Markup

from layoutopt.base.table import Figures, Table, Words
from layoutopt.report import pages
from layoutopt.report.pages import Cell, Section, parts
from tests.report.reading import read


def test_a_page_is_whole() -> None:
    """It has a title and its sections with links to them; empty ones and a lone link are not."""
    sections = [Section("a", "One <1>", Markup("<p>1</p>")), Section("b", "Two", "2")]
    text = pages.page("<t>", "a kind", Markup("<p>lead</p>"), sections)
    seen = read(text)
    assert text.startswith("<!DOCTYPE html>")
    assert seen.tags[:3] == ["html", "head", "meta"]
    assert (seen.links, seen.ids) == (["#a", "#b"], ["a", "b"])
    assert {"<t>", "a kind", "lead", "One <1>", "1", "2"} <= set(seen.text)
    seen = read(pages.page("t", "k", "", [Section("a", "A", ""), Section("b", "B", "b")]))
    assert seen.ids == ["b"]
    assert "nav" not in seen.tags


def test_a_table_holds_its_cells() -> None:
    """Texts are escaped, HTML is not; columns know what they hold; three rows can be sorted."""
    cells = [Cell("n", Markup("<b>n</b>"), kind="name"), Cell("5 of 6", order="5"), "<7>"]
    text = parts.table(Table(["a", "b", "<c>"], [cells]), caption="<caption>")
    seen = read(text)
    assert seen.text[:4] == ["<caption>", "a", "b", "<c>"]
    assert [words for words in seen.text[4:] if words.strip()] == ["n", "5 of 6", "<7>"]
    assert 'data-sort="5"' in text
    assert re.findall(r'<td class="(\w+)"', text) == ["name", "number", "number"]
    rows = [["1"], ["2"], ["3"]]
    tables = [
        parts.table(Table(["a"], rows[:2], hidden=1), sortable=True),
        parts.table(Table(["a"], rows)),
        parts.table(Table(["a"], rows, hidden=-1), sortable=True),
    ]
    assert ["... and 1 more row" in table for table in tables] == [True, False, False]
    assert ["sortable" in table for table in tables] == [False, False, True]
    scripts = [pages.page("t", "k", "", [Section("a", "A", t)]).count("<script") for t in tables]
    assert scripts == [0, 0, 1]


@pytest.mark.parametrize(
    "part",
    [
        parts.paragraph("<x>"),
        parts.facts([("<x>", "<y>")]),
        parts.listing([("<x>", "<y>")]),
        parts.details("<x>", "body"),
        parts.pair("<x>", "<y>"),
        parts.alike(["<x>", "<y>"]),
        parts.command_line("<x>"),
    ],
)
def test_words_are_escaped(part: str) -> None:
    """A name with tags in it makes none."""
    assert "x" not in read(part).tags
    assert "<x>" in "".join(read(part).text)


def test_nothing_is_nothing() -> None:
    """No empty paragraphs, tables and folds."""
    nothing = [parts.paragraph(""), parts.details("a", ""), parts.listing([]), parts.facts([])]
    assert {*nothing, parts.charts([]), parts.table(Table(["a"], []))} == {""}


def test_bars_and_counts() -> None:
    """Bars are as long as their share, within their box; of many that are alike some are named."""
    bars = [re.findall(r"width:(\d+%)", parts.bar(share)) for share in (0.25, -1, 7)]
    assert bars == [["25%"], ["0%"], ["100%"]]
    told = "".join(read(parts.alike([f"n{i}" for i in range(65)])).text)
    assert told.startswith("and 65 like it")
    assert told.endswith("and 5 more")


def test_notebooks_show_parts() -> None:
    """Words, tables and pictures, whatever is in them escaped; pictures shrink."""
    picture = "<svg width='9'><svg></svg></svg>"
    text = pages.notebook(
        [
            Words("<script>", "title"),
            Words(""),
            Table(["<a>", "b", "c"], [["1", "&\x00", '"']], left=2),
            Figures([("", picture)]),
            Figures([("<1>", picture), ("2", picture)]),
        ]
    )
    seen = read(text)
    assert seen.tags[:4] == ["div", "div", "table", "tr"]
    assert seen.text == ["<script>", "<a>", "b", "c", "1", "&\ufffd", '"', "<1>", "2"]
    assert (text.count("text-align:left"), text.count("text-align:right")) == (4, 2)
    assert text.count("max-width:100%;height:auto") == 3
