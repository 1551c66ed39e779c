"""The size of the package against its budget: ``python -m tests.house.measure``."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import layoutopt
from tests.test_floors import DOOR, FLOORS, imports, modules, nodes, room_of

HOUSE = Path(layoutopt.__file__).parent
TESTS = Path(__file__).parents[1]
BUDGET = Path(__file__).with_name("budget.toml")
INSTANCES = TESTS.parent / "instances"

TRACED = """
import json, sys, threading
run, depth = set(), threading.local()
def trace(frame, event, _):
    code = frame.f_code
    if code.co_name == "<module>":
        depth.now = getattr(depth, "now", 0) + {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and code.co_flags & 1 and not getattr(depth, "now", 0):
        run.add(frame.f_globals.get("__name__", ""))
sys.setprofile(trace), threading.setprofile(trace)
from layoutopt.cli.main import main
try:
    main()
finally:
    sys.setprofile(None)
    own = [sum(n.partition(".")[0] == "layoutopt" for n in names) for names in (run, sys.modules)]
    print("\\n" + json.dumps(own), file=sys.stderr)
"""
"""A command that tells through how many modules it ran, and how many it imported.

What runs while a module is imported, and the bodies of classes, do not count as run."""


def traced(*arguments: object) -> tuple[int, int]:
    """Return how many of the package's modules a command runs through, and imports."""
    command = [sys.executable, "-c", TRACED, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    run, imported = json.loads(ran.stderr.splitlines()[-1])
    return run, imported


DOORS = {"__main__", "network"}
"""Modules that only name what visitors may use, as the package's front door does."""

NAMED = re.compile(r"(?:layoutopt\.)?([a-z0-9_.]+):[A-Za-z_]\w*")
"""A function or class in a table of names, as ``module:attribute``."""


def table_rows(house: Path = HOUSE) -> set[str]:
    """Return the modules whose contents are rows of a table.

    A dictionary, list or tuple at the top of a module is such a table if it holds what three or
    more modules of that room define, or names three or more modules as ``module:attribute``.
    """
    every, found = modules(house), set[str]()
    for name, path in every.items():
        home: dict[str, str] = {}
        [module, *_] = nodes(path.read_text())
        assert isinstance(module, ast.Module)
        for node in module.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("layoutopt."):
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}".removeprefix("layoutopt.")
                    inner = inner if inner in every else inner.rpartition(".")[0]
                    home[alias.asname or alias.name] = inner
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                parts = list(ast.walk(node.value))
                if any(isinstance(part, ast.Dict | ast.List | ast.Tuple) for part in parts):
                    own = {home.get(part.id, "") for part in parts if isinstance(part, ast.Name)}
                    words = (part.value for part in parts if isinstance(part, ast.Constant))
                    places = (NAMED.fullmatch(word) for word in words if isinstance(word, str))
                    for rows in (
                        {m for m in own & every.keys() if room_of(m) == room_of(name)},
                        {place[1] for place in places if place and place[1] in every},
                    ):
                        found |= rows if len(rows) > 2 else set()
    return found


def single_importers(house: Path = HOUSE) -> dict[str, str]:
    """Return the modules that a single other module imports, of the same room, and that one.

    Rows of tables are left out, and what only a front door names.
    """
    every = modules(house)
    users: dict[str, set[str]] = defaultdict(set)
    for name, path in every.items():
        for _, target in imports(path, name):
            parts = target.split(".")[1:]
            while parts and ".".join(parts) not in every:
                parts.pop()
            if target.startswith("layoutopt.") and parts and ".".join(parts) != name:
                users[".".join(parts)].add(name)
    alone = {name: next(iter(who)) for name, who in users.items() if len(who) == 1}
    left_out = table_rows(house)
    return {
        m: u
        for m, u in sorted(alone.items())
        if room_of(m) == room_of(u) != DOOR and u not in DOORS and m not in left_out
    }


def class_names(house: Path = HOUSE) -> dict[str, int]:
    """Return the names that several public classes have, and how many."""
    every = (node for path in house.rglob("*.py") for node in nodes(path.read_text()))
    named = (node.name for node in every if isinstance(node, ast.ClassDef))
    counts = Counter(name for name in named if not name.startswith("_"))
    return {name: count for name, count in sorted(counts.items()) if count > 1}


def lines(folder: Path) -> int:
    """Return how many lines the modules below a folder have."""
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))


def commands() -> dict[str, tuple[int, int]]:
    """Return what a tiny solve, a conversion and a batch run take."""
    figure = INSTANCES / "figures/single_pair.json"
    network = INSTANCES / "conversion/residual.onnx"
    with tempfile.TemporaryDirectory() as folder:
        store, out = Path(folder, "bench.sqlite"), Path(folder, "out.onnx")
        inside = ("--in-process", "--solver", "auto", "--store", store, "-q")
        return {
            "solve": traced("solve", figure, "-q"),
            "convert": traced("convert", network, "-o", out, "-q"),
            "bench": traced("bench", "run", figure, *inside),
        }


def measured() -> dict[str, int]:
    """Return every number that the budget holds."""
    found = {
        "lines": lines(HOUSE),
        "files": len(list(HOUSE.rglob("*.py"))),
        "floors": len(set(FLOORS.values())),
        "single_importers": len(single_importers()),
        "duplicate_classes": len(class_names()),
        "test_lines": lines(TESTS),
    }
    for name, (run, imported) in commands().items():
        found |= {f"{name}_run": run, f"{name}_imported": imported}
    return found


def budget() -> dict[str, int]:
    """Return what the numbers may be at most."""
    held: dict[str, int] = tomllib.loads(BUDGET.read_text())
    return held


def over(found: dict[str, int], most: dict[str, int]) -> Sequence[str]:
    """Return a line for each number that is above its budget, or has none."""
    return [
        f"{k}: {n:,}, budget {most.get(k, 0):,}" for k, n in found.items() if n > most.get(k, 0)
    ]


if __name__ == "__main__":
    now, most = measured(), budget()
    for key, number in now.items():
        print(f"{key:20} {number:8,} of {most.get(key, 0):8,}")
    print("single importers:", *(f"\n  {m} <- {u}" for m, u in single_importers().items()))
    print("classes of one name:", class_names())
    sys.exit(bool(over(now, most)))
