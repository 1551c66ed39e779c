"""Pages that are parts of README files, which stand outside of ``docs``."""

from __future__ import annotations

import re
from pathlib import Path

from texts import page

ROOT = Path(__file__).parents[2]
"""The repository."""

PAGES = {
    "docs/": "",
    "models/README.md": "mathematics.md",
    "instances/": None,
    "layoutopt/": None,
    "CITATION.cff": None,
    "LICENSE": None,
    "#results": "results.md",
}
"""What links of the README lead to, by how they begin; nothing for files that are no pages."""


def readme_pages() -> dict[str, str]:
    """Return the pages of parts of READMEs by their paths."""
    problem = (ROOT / "models/README.md").read_text(encoding="utf-8")
    return {
        "results.md": page("# Results", section("Results"), section("How a result is proved", 2)),
        "limits.md": page("# Limits", section("Limits")),
        "mathematics.md": problem,
    }


def section(title: str, level: int = 0) -> str:
    """Return a section of the README; ``intro`` is what stands before the first one.

    Parameters
    ----------
    level
        Of the heading that it keeps; 0 for none.
    """
    readme = (
        (ROOT / "README.md").read_text(encoding="utf-8").replace("# layoutopt\n", "## intro\n", 1)
    )
    found = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise ValueError(f"the README has no section {title!r}")
    head = f"{'#' * level} {title}\n\n" if level else ""
    return head + re.sub(r"(!?)\[([^]]*)\]\(([^)]*)\)", _relinked, found[1]).strip()


def _relinked(link: re.Match[str]) -> str:
    mark, text, target = link.groups()
    for start, there in PAGES.items():
        if target.startswith(start):
            if there is None:
                return text if text.startswith("`") else f"`{target}`"
            rest = target.removeprefix(start)
            return f"{mark}[{text}]({there}{rest})"
    return link[0]
