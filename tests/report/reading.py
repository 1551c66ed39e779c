"""What a reader sees of a page: sections, tables and words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

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


def sections(html: str) -> list[str]:
    """Return the names of a page's sections."""
    return re.findall(r'<section id="([\w-]+)">', html)


def part(html: str, key: str) -> str:
    """Return one section of a page."""
    return html.partition(f'<section id="{key}">')[2].partition("</section>")[0]


def cells(html: str, key: str = "") -> list[list[str]]:
    """Return the words of all cells of all tables of a page or of a section, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", part(html, key) if key else html, re.DOTALL)
    return [
        ["".join(read(c).text) for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)]
        for row in rows
    ]


def items(html: str) -> list[str]:
    """Return the words of the entries of a list."""
    return ["".join(read(item).text) for item in re.findall("<li>(.*?)</li>", html)]


def words(html: str) -> str:
    """Return all words."""
    return " ".join(" ".join(read(html).text).split())


def missing(html: str, *told: str) -> list[str]:
    """Return the texts that are not there."""
    return [text for text in told if text not in words(html)]
