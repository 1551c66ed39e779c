"""The package stays within its budget, and a tiny command loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.house.measure import (
    INSTANCES,
    budget,
    class_names,
    measured,
    over,
    single_importers,
    table_rows,
)

HEAVY = {"scipy", "ortools", "networkx", "pandas", "onnx", "matplotlib"}

LOADED = """
import json, sys
from layoutopt.cli.main import app
for words in json.loads(sys.argv.pop()):
    assert app(words, standalone_mode=False) in (None, 0), words
print(*sys.modules)
"""


def loaded(*commands: Sequence[object]) -> set[str]:
    """Return the packages that some commands load, carried out in one new process."""
    every = json.dumps([list(map(str, words)) for words in commands])
    command = [sys.executable, "-c", LOADED, every]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return {name.partition(".")[0] for name in ran.stdout.split()}


def test_within_budget() -> None:
    """No number is above its budget; each has one."""
    found = measured()
    assert over(found, budget()) == []
    assert found.keys() == budget().keys()


def test_a_tiny_solve_loads_nothing_heavy(tmp_path: Path) -> None:
    """Where reductions suffice, neither SciPy nor a solver is loaded; nor to check the answer."""
    commands: list[Sequence[object]] = []
    for figure in ("single_pair", "chained_calls_barrier", "matmul"):
        instance, result = INSTANCES / f"figures/{figure}.json", tmp_path / f"{figure}.json"
        commands.append(("solve", instance, "--json", result, "-q"))
        commands.append(("check", instance, result, "-q"))
    found = loaded(*commands)
    assert "numpy" in found
    assert not HEAVY & found


def test_a_tiny_conversion_loads_no_solver(tmp_path: Path) -> None:
    """Where reductions suffice, neither SciPy nor CP-SAT is loaded."""
    network = INSTANCES / "conversion/residual.onnx"
    found = loaded(("convert", network, "-o", tmp_path / "out.onnx", "-q"))
    assert not {"scipy", "networkx", "pandas"} & found


def test_a_number_above_its_budget_is_named() -> None:
    """So is one that the budget does not know."""
    assert over({"lines": 3, "files": 2}, {"lines": 2, "files": 2}) == ["lines: 3, budget 2"]
    assert over({"lines": 3}, {}) == ["lines: 3, budget 0"]


def test_single_importers_and_homonyms_are_found(tmp_path: Path) -> None:
    """Of a room's modules, those that one other imports; classes of one name, private ones not."""
    (tmp_path / "tiles").mkdir()
    (tmp_path / "tiles/a.py").write_text("from layoutopt.tiles import b, c\nclass Kind: ...\n")
    (tmp_path / "tiles/b.py").write_text("import layoutopt.tiles.c\nclass Kind: ...\n")
    (tmp_path / "tiles/c.py").write_text("class _Own: ...\n")
    assert single_importers(tmp_path) == {"tiles.b": "tiles.a"}
    assert class_names(tmp_path) == {"Kind": 2}


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("from layoutopt.tiles import b, c, d\nROWS = {1: b.x, 2: c.x, 3: d.x}\n", True),
        ("import layoutopt\nROWS = ['tiles.b:x', 'layoutopt.tiles.c:x', 'tiles.d:x']\n", True),
        ("from layoutopt.tiles import b, c, d\nROWS = {1: b.x, 2: c.x, 3: c.x}\n", False),
        ("from layoutopt.tiles import b, c, d\nTOTAL = b.x + c.x + d.x\n", False),
    ],
)
def test_rows_of_tables_are_no_single_importers(tmp_path: Path, text: str, left_out: bool) -> None:
    """Three modules or more that a table holds or names are its rows; nothing else is."""
    (tmp_path / "tiles").mkdir()
    (tmp_path / "tiles/a.py").write_text(text)
    for name in "bcd":
        (tmp_path / f"tiles/{name}.py").write_text("x = 1\n")
    assert table_rows(tmp_path) == ({"tiles.b", "tiles.c", "tiles.d"} if left_out else set())
