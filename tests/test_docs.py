"""The documentation site is whole: it is built strictly, and its pages are looked at as files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import layoutopt
from layoutopt.conversion import convert
from layoutopt.conversion.rules.operator import Category
from layoutopt.io.instance import OP_TYPES
from tests.test_readme import DOCS, blocks, run_statements

ROOT = DOCS.parent

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""What a browser loads by itself: tags and the attribute that says from where."""


class Seen(HTMLParser):
    """What a page loads, where it leads, and which places of it can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down what a tag says."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given["id"]} if "id" in given else set()
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as its one command does; anything that does not lead anywhere stops it."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    quick = "import gc, runpy; gc.disable(); runpy.run_module('mkdocs', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", quick, "build", "--strict", "-f", ".mkdocs.yml", "-d", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Seen]:
    """Read all pages but the one for addresses that are none."""
    return {path: Seen(path) for path in site.rglob("*.html") if path.name != "404.html"}


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Make the pages that are made of code, without MkDocs."""
    found: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "pages"))
        for name in ("op", "operator", "solver"):
            found |= getattr(import_module(f"{name}_pages"), f"{name}_pages")()
    return found


def test_all_links_lead_somewhere(pages: dict[Path, Seen]) -> None:
    """Every link within the site has its page and place, also those that MkDocs does not see."""
    wrong = []
    for path, seen in pages.items():
        for link in seen.links:
            where = urlsplit(link)
            if where.scheme:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            if target.is_dir():
                target /= "index.html"
            known = target in pages and unquote(where.fragment) in pages[target].places
            if not known and not (target.suffix not in ("", ".html") and target.exists()):
                wrong.append(f"{path.name}: {link}")
    assert not wrong
    assert sum(len(seen.links) for seen in pages.values()) > 1000


def test_nothing_is_loaded_from_a_network(site: Path, pages: dict[Path, Seen]) -> None:
    """Pages and their styles load files of the site only, and these are there."""
    for path, seen in pages.items():
        assert seen.loads
        for load in seen.loads:
            where = urlsplit(load)
            assert not where.scheme, load
            assert not where.netloc, load
            assert (path.parent / where.path).exists(), load
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles
    assert not [
        style for style in styles if re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style)
    ]


def test_everything_has_its_page(site: Path, pages: dict[Path, Seen]) -> None:
    """Each op, category and solver has a page, each public name a place."""
    there = {path.relative_to(site).with_suffix("").as_posix() for path in pages}
    wanted = {f"ops/{name}" for name in OP_TYPES} | {f"solvers/{s}" for s in layoutopt.SOLVERS}
    wanted |= {f"solvers/conversion/{name}" for name in convert.SOLVERS}
    wanted |= {f"operators/{category.name.lower()}" for category in Category}
    assert wanted <= there
    places = set().union(*(seen.places for seen in pages.values()))
    names = {name for name in layoutopt.__all__ if not name.startswith("_")}
    assert names <= {place.rpartition(".")[2] for place in places if place.startswith("layoutopt.")}


def test_sets_in_braces_are_text(site: Path) -> None:
    """Braces, as of sets, are no attributes to what turns pages into HTML."""
    page = (site / "mathematics.html").read_text(encoding="utf-8")
    assert "F = {φ(e) : e ∈ E}" in page
    assert "x(e,l) ∈ {0,1}" in page


def test_examples_of_made_pages_run(made: dict[str, str]) -> None:
    """Each page of an op, category or solver has an example, and its comments are what happens."""
    for path, text in made.items():
        if path == "operators/opaque.md":  # nothing can be done to these
            continue
        shown: list[tuple[str, str]] = []
        names: dict[str, Any] = {}
        for block in blocks(text, "python"):
            shown += run_statements(block, names)
        assert shown, path
        assert all(comment == value for comment, value in shown), path


def test_what_ops_are_said_to_do_is_what_they_do(made: dict[str, str]) -> None:
    """Elements of the examples come from where a reader of the formulas would look for them."""
    shown = {
        "dim_shuffle": [[0, 3], [1, 4], [2, 5]],
        "reverse": [[2, 1, 0], [5, 4, 3]],
        "slice": [[1, 2], [4, 5]],
        "sub_sample": [[0, 2], [3, 5]],
        "sett_sample": [[0, 1, 3, 4], [6, 7, 9, 10]],
        "expand": [[0, 0, 0], [1, 1, 1]],
        "concat": [[0, 1, 2, -1], [3, 4, 5, -1]],
        "reshape": [[0, 1], [2, 3], [4, 5]],
    }
    for name, elements in shown.items():
        assert f".tolist()  # {elements}\n" in made[f"ops/{name}.md"]


def test_solvers_find_the_best_of_their_example(made: dict[str, str]) -> None:
    """The example has weights on which no solver is trapped; exact ones prove it."""
    for name in layoutopt.SOLVERS:
        assert "'80.0'" in made[f"solvers/{name}.md"]
    for name in ("auto", "cpsat", "mip"):
        assert "# ('optimal', '80.0', '80.0')" in made[f"solvers/{name}.md"]


def test_parameters_of_one_entry_are_told_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of several parameters are split, those of what is returned are not."""
    monkeypatch.syspath_prepend(str(DOCS / "pages"))
    before, entry, after = (
        "Add.\n\nParameters\n----------\n",
        "a, b\n    Two numbers,\n    or arrays.\n",
        "c\n    One.\n\nReturns\n-------\nlow, high\n    Two.\n",
    )
    split = "a\n    Two numbers,\n    or arrays.\nb\n    Two numbers,\n    or arrays.\n"
    found = import_module("parameters").one_by_one(before + entry + after)
    assert found == before + split + after
