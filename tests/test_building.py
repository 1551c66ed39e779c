"""Graphs from Python functions that users name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from layoutopt.building import is_function
from layoutopt.reading import read
from tests.support import refused

CODE = """\
import layoutopt as lo

def build():
    graph = lo.Graph("built")
    x = graph.sink((2, 3), name="x")
    graph.valued_pair(graph.dim_shuffle(x, (1, 0)), graph.source((3, 2), name="s"), 2)
    return graph

class Models:
    small = build()

def wrong_shape():
    build().reshape("x", (5,))

def fails():
    raise KeyError("weights")

def leaves():
    raise SystemExit(3)

def nothing():
    pass

def needs(width):
    pass
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder with a module of functions, and forget it afterwards."""
    (tmp_path / "built_model.py").write_text(CODE)
    (tmp_path / "broken_model.py").write_text("import layoutopt\nthis is no Python\n")
    monkeypatch.chdir(tmp_path)
    before = sys.path.copy()
    yield
    assert sys.path == before
    sys.modules.pop("built_model", None)


@pytest.mark.parametrize(
    "text",
    [
        "built_model:build",
        "built_model.py:build",
        "./built_model.py:build",
        "built_model:Models.small",
    ],
)
def test_a_function_or_a_graph_is_found(text: str) -> None:
    """Modules and files of the working directory give the graph that they build or hold."""
    graph = read(text)
    assert (graph.name, len(graph.ops), len(graph.pairs)) == ("built", 3, 1)


WRONG = {
    "built_model:wrong_shape": ("shape [5] has 5 elements", "(built_model.py, line 13)"),
    "built_model:fails": ("KeyError: 'weights'", "(built_model.py, line 16)"),
    "built_model:leaves": ("SystemExit: 3", "(built_model.py, line 19)"),
    "built_model:nothing": ("gives an object of type NoneType, a layoutopt.Graph is needed",),
    "built_model:needs": ("TypeError: needs() missing 1 required positional argument: 'width'",),
    "built_model:absent": ("has no attribute 'absent'",),
    "no_such_model:build": ("ModuleNotFoundError: No module named 'no_such_model'",),
    "no_such_model.py:build": ("FileNotFoundError",),
    "broken_model:build": ("SyntaxError", "line 2"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_goes_wrong_in_users_code_is_one_line(text: str) -> None:
    """Whatever a user's function raises names the function, the reason and the line."""
    with refused(f"{text}: ", *WRONG[text]):
        read(text)


def test_files_are_not_mistaken_for_functions(tmp_path: Path) -> None:
    """A file whose name has a colon is a file, and other names are no functions."""
    (tmp_path / "a:b").write_text("")
    assert not is_function("a:b")
    for text in ("model.txt", "model:", ":build", "a:b:c.txt", "model:1"):
        assert not is_function(text)
    with refused("is of no known kind; allowed: .json, .json.gz, .onnx and module:function"):
        read("model.txt")
    with refused("attractions, dims and training are for .onnx files only"):
        read("built_model:build", dims={"batch": 1})
