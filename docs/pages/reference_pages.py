"""The public names of the package, from their docstrings."""

from __future__ import annotations

import inspect
from typing import Any

import layoutopt
from texts import documented, page

ROOMS = {
    "graphs": "Graphs",
    "unwinding": "Solving",
    "comparison": "Solving",
    "lowering": "Solving",
    "check": "Solving",
    "base": "Solving",
    "registry": "Solvers of your own",
    "network": "Solvers of your own",
    "explain": "Explanations",
    "machine": "Tile memories",
    "program": "Programs",
    "layout": "Layouts and conversion",
    "conversion": "Layouts and conversion",
    "onnx": "Layouts and conversion",
    "converting": "Layouts and conversion",
    "io": "Files",
    "reading": "Files",
    "pictures": "Files",
}
"""Page of the public names of each folder of the package."""

HOMES: dict[str, str] = vars(layoutopt)["_HOME"]
"""The module of each public name, within the package."""


INHERITING = ("Graph", "UnwindingResult", "ConversionResult")
"""Classes that are documented with inherited members."""


def reference_pages() -> dict[str, str]:
    """Return the pages of the reference by their paths."""
    by_title: dict[str, list[str]] = {title: [] for title in ROOMS.values()}
    for name in layoutopt.__all__:
        if name != "__version__":
            title = ROOMS[HOMES[name].partition(".")[0]]
            by_title.setdefault(title, []).append(f"layoutopt.{HOMES[name]}.{name}")
    return {
        f"reference/{title.lower().replace(' ', '_')}.md": page(
            f"# {title}",
            "All names of this page are attributes of `layoutopt`.",
            *(documented(path, 2, **_options(path)) for path in sorted(paths, key=_order)),
            _helpers() if title == "Graphs" else "",
        )
        for title, paths in by_title.items()
        if paths
    }


def _options(path: str) -> dict[str, str]:
    whole = path.rpartition(".")[2] in INHERITING
    return {"inherited_members": "true"} if whole else {}


def _order(path: str) -> tuple[bool, str]:
    """Return the sort key of a name: functions first."""
    name = path.rpartition(".")[2]
    return inspect.isclass(getattr(layoutopt, name)), name


def _helpers() -> str:
    """Return the methods of a graph that other modules define."""
    found: dict[str, Any] = {
        name: value
        for name, value in vars(layoutopt.Graph).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    blocks = [documented(f"{f.__module__}.{f.__qualname__}") for f in found.values()]
    return page("## Further methods of `Graph`", "`graph` is the graph itself.", *blocks)
