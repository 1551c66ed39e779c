from __future__ import annotations

from html.parser import HTMLParser

import pytest

from layoutopt.base import html
from layoutopt.base.table import Table


class Reader(HTMLParser):
    """Collects tags and text, and holds end tags against begun ones."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Remember a tag, and that it is open."""
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the last open tag, which must be this one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember text."""
        self.text.append(data)


def read(text: str) -> Reader:
    """Return what a parser sees; every tag must be closed in order."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader


def test_a_table_holds_its_cells() -> None:
    """Heads and cells come in order, texts stay texts."""
    seen = read(Table(["<a>", "b"], [["1", "&"], ["</td>", '"']]).html())
    assert seen.tags == ["table", "tr", "th", "th", "tr", "td", "td", "tr", "td", "td"]
    assert seen.text == ["<a>", "b", "1", "&", "</td>", '"']


def test_first_columns_are_flush_left() -> None:
    """As many as asked for; the others are flush right."""
    row = Table(["a", "b", "c"], [], left=2).html()
    assert row.count("text-align:left") == 2
    assert row.count("text-align:right") == 1


@pytest.mark.parametrize("part", [html.heading, html.line])
def test_words_are_escaped(part: object) -> None:
    """A name with tags in it makes none."""
    assert callable(part)
    seen = read(part("<script>x</script>"))
    assert seen.tags == ["div"]
    assert seen.text == ["<script>x</script>"]


def test_an_empty_line_is_nothing() -> None:
    """No empty paragraphs."""
    assert html.line("") == ""


def test_pictures_shrink_and_stand_side_by_side() -> None:
    """A picture gets a style once; captions are escaped."""
    text = html.beside([("<1>", html.fitted("<svg width='9'><svg></svg></svg>")), ("2", "")])
    seen = read(text)
    assert text.count("max-width:100%;height:auto") == 1
    assert seen.tags.count("figure") == seen.tags.count("figcaption") == 2
    assert seen.text == ["<1>", "2"]
