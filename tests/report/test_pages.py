"""What holds for every page, with no browser and in one."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from layoutopt.base.table import Table
from layoutopt.report import pages
from tests.browser import FACTS, Browser
from tests.report.reading import read
from tests.report.samples import LONG, MARKUP, PAGES

PHONE, DESK = 390, 1280
"""Widths of windows."""


@cache
def page(name: str) -> str:
    """Return a page, made once."""
    return PAGES[name]()


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_sound(name: str) -> None:
    """Tags are closed in order, ids unique, links lead to them, and nothing else is loaded.

    A name that looks like markup makes no element and no script.
    """
    text = page(name)
    seen = read(text)
    assert seen.tags.count("body") == 1
    if "instance" not in name:
        assert seen.tags.count("h1") == seen.tags.count("main") == 1
    plain = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<link|<img|<iframe|src=", plain)
    assert "<script>alert" not in text
    assert text.count("<script>") <= 1
    if name in ("awkward", "comparison", "batch"):
        assert MARKUP in "".join(seen.text)


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_their_window(browser: Browser, tmp_path: Path, name: str) -> None:
    """Nothing is wider than the window but in boxes that scroll, and nobody complains.

    Light and dark differ, text stands out from its ground, and only the page itself is loaded.
    """
    _view(browser, tmp_path, name, PHONE)
    for width, dark in product((PHONE, DESK), (False, True)):
        browser.sized(width)
        browser.liked(dark)
        facts = browser.evaluate(FACTS)
        assert facts["window"] == width
        assert facts["width"] == width
        assert facts["beyond"] == []
        assert len(facts["text"]) > 100
        ground, ink = (sum(map(int, re.findall(r"\d+", facts[k])[:3])) for k in ("ground", "ink"))
        assert (ground < 120 < 600 < ink) if dark else (ink < 200 < 700 < ground)
    assert browser.complaints() == []
    assert len(browser.requests()) == 1


def _view(browser: Browser, tmp_path: Path, name: str, width: int, dark: bool = False) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(name), encoding="utf-8")
    browser.view(path, width=width, dark=dark)


@pytest.mark.parametrize("name", ["figure", "batch"])
def test_links_lead_to_their_sections(browser: Browser, tmp_path: Path, name: str) -> None:
    """A click brings the section to the top, or as near as the page is long."""
    _view(browser, tmp_path, name, PHONE)
    browser.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    count = browser.evaluate("document.querySelectorAll('nav a').length")
    assert count >= 5
    for i in range(count):
        browser.evaluate(f"document.querySelectorAll('nav a')[{i}].click()")
        target = browser.evaluate("location.hash.slice(1)")
        top = browser.evaluate(f"document.getElementById('{target}').getBoundingClientRect().top")
        end = browser.evaluate("innerHeight + scrollY >= document.documentElement.scrollHeight - 2")
        assert end or -2 <= top <= 80


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_are_legible_on_their_ground(browser: Browser, tmp_path: Path, dark: bool) -> None:
    """Names of tensors have the ink of the page; words in cells stay dark on light, or reverse."""
    _view(browser, tmp_path, "figure", DESK, dark)
    ink = browser.evaluate("getComputedStyle(document.querySelector('.tensor > text')).fill")
    assert ink == ("rgb(228, 231, 235)" if dark else "rgb(35, 39, 46)")
    words = "getComputedStyle(document.querySelector('.tensor [pointer-events] text')).fill"
    assert browser.evaluate(words) == "rgb(35, 39, 46)"
    paper = "getComputedStyle(document.querySelector('.picture svg > rect')).fill"
    assert browser.evaluate(paper) == ("rgb(21, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_tables_are_sorted_by_a_click(browser: Browser, tmp_path: Path) -> None:
    """Numbers by size, also with separators, once more the other way round; Enter does the same."""
    _view(browser, tmp_path, "batch", DESK)
    head = "[...document.querySelectorAll('#solves th')].find(e => e.innerText == 'seconds')"
    column = (
        "[...document.querySelectorAll('#solves tbody tr')]"
        f".map(r => Number(r.cells[{head}.cellIndex].innerText))"
    )
    before = browser.evaluate(column)
    browser.evaluate(f"{head}.click()")
    assert browser.evaluate(column) == sorted(before) != before
    browser.evaluate(
        f"{head}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}}))"
    )
    assert browser.evaluate(column) == sorted(before, reverse=True)
    assert browser.evaluate(f"{head}.getAttribute('aria-sort')") == "descending"
    table = Table(["n"], [["1,000"], ["999"], ["12,345"], ["30"]], left=0)
    section = pages.Section("numbers", "Numbers", pages.parts.table(table, sortable=True))
    (tmp_path / "numbers.html").write_text(pages.page("", "", "", [section]), encoding="utf-8")
    browser.view(tmp_path / "numbers.html", width=DESK)
    key = "new KeyboardEvent('keydown', {key: ' ', bubbles: true})"
    browser.evaluate(f"document.querySelector('th').dispatchEvent({key})")
    cells = "[...document.querySelectorAll('tbody td')].map(cell => cell.innerText)"
    assert browser.evaluate(cells) == ["30", "999", "1,000", "12,345"]


def test_long_names_are_whole(browser: Browser, tmp_path: Path) -> None:
    """They are broken into lines, and not cut off."""
    path = tmp_path / "page.html"
    path.write_text(page("awkward"), encoding="utf-8")
    seen = browser.view(path, width=PHONE)
    assert seen.facts["text"].count(LONG) >= 5
    title = "document.querySelector('h1')"
    assert browser.evaluate(f"{title}.scrollWidth <= {title}.clientWidth")


def test_the_browser_would_tell(browser: Browser, tmp_path: Path) -> None:
    """A page that is too wide, loads something, and whose script fails, is noticed."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><meta name='viewport' content='width=device-width'>"
        "<body><p style='width:900px'>wide</p><img src='missing.png'>"
        "<script>console.error('told'); undefinedName()</script>"
    )
    seen = browser.view(path, width=PHONE)
    assert seen.facts["beyond"]
    assert "['told']" in seen.complaints
    assert len(seen.complaints) >= 2
    assert len(seen.requests) == 2
