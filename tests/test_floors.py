"""Which rooms may import which others and which packages, and how long functions may be."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import layoutopt

HOUSE = Path(layoutopt.__file__).parent

FLOORS = {
    "certificate": 0,
    "base": 0,
    "boxes": 1,
    "network": 1,
    "tiles": 1,
    "pictures": 1,
    "graphs": 2,
    "layout": 2,
    "check": 3,
    "conversion": 3,
    "generate": 3,
    "io": 3,
    "lowering": 4,
    "onnx": 4,
    "program": 4,
    "certify": 5,
    "machine": 5,
    "registry": 5,
    "reading": 5,
    "converting": 5,
    "unwinding": 6,
    "comparison": 7,
    "explain": 7,
    "bench": 7,
    "report": 8,
    "cli": 9,
}

DOOR = "__init__"
"""The front door names what visitors may use, from all floors; rooms may ask it the version."""

STRANGERS = {"check": {"lowering", "network"}, "network": {"graphs"}}
"""Rooms that must not see others, not even those below them."""

HOMES = {
    "ortools": {"network"},
    "onnx": {"conversion", "onnx"},
    "onnxruntime": {"onnx"},
    "matplotlib": {"report"},
    "typer": {"cli"},
    "rich": {"cli"},
    "jinja2": {"report"},
    "markupsafe": {"report"},
    "models": set(),
    "tests": set(),
}
"""Foreign packages that only some rooms may import."""


LONGEST_FUNCTION = 60


def modules(house: Path) -> dict[str, Path]:
    """Return every module below a directory, by dotted name within it."""
    found = {}
    for path in sorted(house.rglob("*.py")):
        parts = path.relative_to(house).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and parts[:-1] else parts)] = path
    return found


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Return all that a module's text consists of; many tests look at the same modules."""
    gc.disable()  # which would look through all trees again and again, and takes most of the time
    try:
        return tuple(ast.walk(ast.parse(text)))
    finally:
        gc.enable()


def imports(path: Path, name: str, package: str = "layoutopt") -> Iterator[tuple[int, str]]:
    """Yield line and absolute dotted name of every import, wherever it stands."""
    here = [package, *name.split(".")]
    if path.name == "__init__.py":
        here.append("__init__")
    for node in nodes(path.read_text()):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def room_of(name: str) -> str:
    """Return the room of a module within the package."""
    return "cli" if name == "__main__" else name.split(".")[0]


def fault(name: str, target: str, inside: set[str]) -> str | None:
    """Return what is wrong with one import, if anything.

    Parameters
    ----------
    inside
        The package's modules.
    """
    room = room_of(name)
    head, _, rest = target.partition(".")
    if head != "layoutopt":
        homes = HOMES.get(head)
        if homes is not None and room not in homes:
            return f"only {', '.join(sorted(homes)) or 'nobody'} may import {head}"
        return None
    other = room_of(rest)
    if other not in map(room_of, inside):
        return None if rest == "__version__" else "the front door is for visitors"
    if other == room:
        return None
    if other in STRANGERS.get(room, ()):
        return f"{room} never sees {other}"
    floor = FLOORS.get(other, FLOORS[room] + 1)
    if floor >= FLOORS[room]:
        return "sideways" if floor == FLOORS[room] else "up"
    return None


def faults(house: Path) -> list[str]:
    """Return a line for each import that the table of floors forbids."""
    every = modules(house)
    inside = set(every)
    found = []
    for name, path in every.items():
        room = room_of(name)
        if room == DOOR:
            continue
        if room not in FLOORS:
            found.append(f"{path.relative_to(house)}: {room} stands on no floor")
            continue
        for line, target in imports(path, name):
            reason = fault(name, target, inside)
            if reason is not None:
                found.append(f"{path.relative_to(house)}:{line}: imports {target}: {reason}")
    return found


def circles(house: Path) -> list[str]:
    """Return the modules that import each other, round and round."""
    every = {name: path for name, path in modules(house).items() if name != DOOR}
    needs: dict[str, set[str]] = {}
    for name, path in every.items():
        needs[name] = set()
        for _, target in imports(path, name):
            parts = target.split(".")[1:]
            while target.startswith("layoutopt.") and parts and ".".join(parts) not in every:
                parts.pop()
            if target.startswith("layoutopt.") and parts:
                needs[name].add(".".join(parts))
    while True:
        free = {name for name, others in needs.items() if not others & needs.keys() - {name}}
        if not free:
            return sorted(needs)
        needs = {name: others for name, others in needs.items() if name not in free}


def lengths(house: Path) -> list[str]:
    """Return a line for each function that is too long."""
    found = []
    for path in modules(house).values():
        text = path.read_text()
        for node in nodes(text):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                long = (node.end_lineno or node.lineno) - node.lineno + 1
                if long > LONGEST_FUNCTION:
                    where = f"{path.relative_to(house)}:{node.lineno}"
                    found.append(f"{where}: {node.name} has {long} lines")
    return found


def test_imports_go_down() -> None:
    """Every module imports from lower floors, or from its own room."""
    assert faults(HOUSE) == []


def test_no_import_circles() -> None:
    """No modules import each other in a circle, not even within a room."""
    assert circles(HOUSE) == []


def test_no_function_is_too_long() -> None:
    """Functions have up to 60 lines."""
    assert lengths(HOUSE) == []


def test_whole_house_is_looked_at() -> None:
    """The tests above see every room, so that they cannot pass on nothing."""
    rooms = {room_of(name) for name in modules(HOUSE)}
    assert {"graphs", "lowering", "check", "network", "unwinding"} <= rooms
    seen = [target for name, path in modules(HOUSE).items() for _, target in imports(path, name)]
    assert "layoutopt.graphs.ops.Kind" in seen
    assert any(target.startswith("ortools.") for target in seen)


WRONG = {
    "lowering/a.py": ("from layoutopt.unwinding import unwind", "up"),
    "io/b.py": ("import layoutopt.lowering.lower", "up"),
    "io/c.py": ("from layoutopt.check import flow", "sideways"),
    "graphs/d.py": ("from layoutopt.io.instance import known_hash", "up"),
    "graphs/e.py": ("from ..lowering import lower", "up"),
    "network/f.py": ("from layoutopt.graphs.ops import Kind", "network never sees graphs"),
    "check/g.py": ("from layoutopt.lowering.lower import lower", "check never sees lowering"),
    "machine/h.py": (
        "def f():\n    from ortools.sat.python import cp_model",
        "only network may import ortools",
    ),
    "report/j.py": ("import onnx", "only conversion, onnx may import onnx"),
    "bench/k.py": ("import matplotlib.pyplot as plt", "only report may import matplotlib"),
    "unwinding.py": ("from rich.table import Table", "only cli may import rich"),
    "comparison.py": ("import models.exhaustive", "nobody may import models"),
    "tiles/i.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from layoutopt.graphs import ops",
        "up",
    ),
    "base/limits.py": ("import layoutopt.network.problem", "up"),
    "pictures/m.py": ("from ..network import problem", "sideways"),
    "base/result.py": ("from layoutopt import evaluate", "the front door is for visitors"),
    "attic/l.py": ("import os", "attic stands on no floor"),
}


@pytest.mark.parametrize("file", WRONG)
def test_a_wrong_import_is_reported(tmp_path: Path, file: str) -> None:
    """A house with one wrong import gives one line, which names module, import and reason."""
    every = [*WRONG, "lowering/lower.py", "check/flow.py", "graphs/ops.py", "network/problem.py"]
    for other in [*every, "lowering/__init__.py", "network/__init__.py", "io/instance.py"]:
        path = tmp_path / other
        path.parent.mkdir(exist_ok=True)
        if not other.startswith("attic"):
            path.write_text("import numpy\n")
    text, reason = WRONG[file]
    (tmp_path / file).write_text(text + "\n")
    [line] = faults(tmp_path)
    assert line.startswith(file)
    assert line.endswith(reason)


def test_right_imports_are_not_reported(tmp_path: Path) -> None:
    """Downward imports, and imports of the own room, are fine."""
    for file, text in {
        "__init__.py": "",
        "graphs/ops.py": "import numpy",
        "lowering/lower.py": "import layoutopt.graphs.ops\nfrom layoutopt.lowering import maps",
        "lowering/maps.py": "from layoutopt import __version__",
        "network/cuts.py": "from ortools.graph.python import max_flow",
        "cli/main.py": "import typer\nfrom layoutopt.lowering import lower",
    }.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text + "\n")
    assert faults(tmp_path) == []


def test_circles_and_long_functions_are_reported(tmp_path: Path) -> None:
    """Two modules that import each other, and a long function, are found."""
    (tmp_path / "tiles").mkdir()
    (tmp_path / "tiles/a.py").write_text("from layoutopt.tiles.b import x\n")
    (tmp_path / "tiles/b.py").write_text("from layoutopt.tiles import a\n")
    (tmp_path / "tiles/c.py").write_text("from layoutopt.tiles.a import y\n")
    assert {"tiles.a", "tiles.b"} <= set(circles(tmp_path))
    body = "    x = 1\n" * LONGEST_FUNCTION
    (tmp_path / "tiles/d.py").write_text(f"def f():\n{body}")
    assert lengths(tmp_path) == ["tiles/d.py:1: f has 61 lines"]
