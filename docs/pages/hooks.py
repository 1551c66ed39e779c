"""Hooks of MkDocs: add generated pages, and fill in tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from op_pages import op_pages, op_table
from operator_pages import operator_pages, operator_table
from reference_pages import reference_pages
from solver_pages import solver_pages, solver_table

TABLES = {"ops": op_table, "operators": operator_table, "solvers": solver_table}

PAGES: dict[str, str] = {}
"""Generated pages by path."""

ROLE = re.compile(r":\w+:<code>(~?)([\w.]+)</code>")


def on_config(config: MkDocsConfig) -> None:
    """Generate the pages, and put them into the folders of the navigation."""
    problem = (Path(__file__).parents[2] / "models/README.md").read_text(encoding="utf-8")
    PAGES.update(op_pages() | operator_pages() | solver_pages() | reference_pages())
    PAGES["mathematics.md"] = problem
    config.nav = [_filled(item) for item in config.nav or []]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the generated pages."""
    for path, text in PAGES.items():
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in tables, and turn links to files that are not pages into text."""
    markdown = re.sub(r"<!-- table: (\w+) -->", lambda mark: TABLES[mark[1]](), markdown)
    if "/" not in page.file.src_uri:
        markdown = markdown.replace("(../models/README.md)", "(mathematics.md)")
        markdown = re.sub(r"\[([^]]*)\]\(\.\./[^)]*\)", r"\1", markdown)
    return markdown


def on_page_content(html: str, **_: Any) -> str:
    """Turn names in docstrings into links to the reference."""
    return ROLE.sub(_linked, html)


def _linked(role: re.Match[str]) -> str:
    short, path = role.groups()
    shown = path.rpartition(".")[2] if short else path
    return f'<autoref identifier="{path}" optional><code>{shown}</code></autoref>'


def _filled(item: Any) -> Any:
    """Return an entry of the navigation with the pages of folders in it."""
    if not isinstance(item, dict):
        return item
    ((title, inside),) = item.items()
    if not isinstance(inside, list):
        return item
    entries: list[Any] = []
    for entry in inside:
        if isinstance(entry, str) and entry.endswith("/"):
            entries.extend(path for path in PAGES if path.startswith(entry))
        else:
            entries.append(entry)
    return {title: entries}
