from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from layoutopt.base.shown import Figures, Words
from layoutopt.base.table import Table
from layoutopt.report import pages
from layoutopt.report.pages import Cell, Section

VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Collects tags, attributes and text, and holds end tags against begun ones."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag, that it is open, and what it links or names."""
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        self.ids += [str(value) for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag that is closed at once."""
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the last open tag, which must be this one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember text."""
        self.text.append(data)


def read(text: str) -> Reader:
    """Return what a parser sees; tags must be closed in order, and links lead somewhere."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    if "html" in reader.tags:
        assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    return reader


def test_a_page_is_whole() -> None:
    """It names its encoding and title, and holds its sections, with a link to each."""
    sections = [Section("a", "One <1>", Markup("<p>1</p>")), Section("b", "Two", "2")]
    text = pages.page("<t>", "a kind", Markup("<p>lead</p>"), sections)
    seen = read(text)
    assert text.startswith("<!DOCTYPE html>")
    assert seen.tags[:3] == ["html", "head", "meta"]
    assert seen.links == ["#a", "#b"]
    assert seen.ids == ["a", "b"]
    for told in ("<t>", "a kind", "lead", "One <1>", "1", "2"):
        assert told in seen.text


def test_empty_sections_are_left_out() -> None:
    """They have no heading and no link; a single section needs no links."""
    seen = read(pages.page("t", "k", "", [Section("a", "A", ""), Section("b", "B", "b")]))
    assert seen.ids == ["b"]
    assert "nav" not in seen.tags


def test_a_page_loads_nothing() -> None:
    """No address stands anywhere in it, and no sheet or script but its own."""
    rows = [["a", "1"], ["b", "2"], ["c", "3"]]
    body = pages.table(["x", "y"], rows, sortable=True)
    text = pages.page("t", "k", "", [Section("a", "A", body)])
    assert not re.search(r"https?:|url\(|@import|<link|<img|src=", text)
    assert "prefers-color-scheme: dark" in text
    assert text.count("<script>") == 1
    assert "<script" not in pages.page("t", "k", "", [Section("a", "A", "b")])


def test_a_table_holds_its_cells() -> None:
    """Texts are escaped, HTML is not; columns know what they hold."""
    cells = [Cell("n", Markup("<b>n</b>"), kind="name"), Cell("5 of 6", order="5"), "<7>"]
    text = pages.table(["a", "b", "<c>"], [cells], caption="<caption>")
    seen = read(text)
    assert seen.text[:4] == ["<caption>", "a", "b", "<c>"]
    assert [words for words in seen.text[4:] if words.strip()] == ["n", "5 of 6", "<7>"]
    assert 'data-sort="5"' in text
    assert re.findall(r'<td class="(\w+)"', text) == ["name", "number", "number"]
    assert pages.table(["a"], []) == ""


def test_small_tables_are_not_sorted() -> None:
    """Of two rows both are seen at once."""
    assert "sortable" not in pages.table(["a"], [["1"], ["2"]], sortable=True)
    assert "sortable" in pages.table(["a"], [["1"], ["2"], ["3"]], sortable=True)
    assert "sortable" not in pages.table(["a"], [["1"], ["2"], ["3"]])


@pytest.mark.parametrize(
    "part",
    [
        pages.paragraph("<x>"),
        pages.facts([("<x>", "<y>")]),
        pages.listing([("<x>", "<y>")]),
        pages.details("<x>", "body"),
        pages.pair("<x>", "<y>"),
        pages.alike(["<x>", "<y>"]),
        pages.command_line("<x>"),
    ],
)
def test_words_are_escaped(part: str) -> None:
    """A name with tags in it makes none."""
    assert "x" not in read(part).tags
    assert "<x>" in "".join(read(part).text)


@pytest.mark.parametrize(
    "part",
    [
        pages.paragraph(""),
        pages.details("a", ""),
        pages.listing([]),
        pages.facts([]),
        pages.charts([]),
    ],
)
def test_nothing_is_nothing(part: str) -> None:
    """No empty paragraphs, tables and folds."""
    assert part == ""


@pytest.mark.parametrize(("share", "width"), [(0.25, "25%"), (-1, "0%"), (7, "100%")])
def test_bars_stay_in_their_box(share: float, width: str) -> None:
    """They are as long as their share."""
    assert f"width:{width}" in pages.bar(share)


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


def test_many_alike_are_counted() -> None:
    """The first ones are named."""
    told = "".join(read(pages.alike([f"n{i}" for i in range(pages.NAMED + 5)])).text)
    assert told.startswith(f"and {pages.NAMED + 5} like it")
    assert told.endswith("and 5 more")
