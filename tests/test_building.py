"""Graphs from Python functions that users name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from layoutopt.reading import build, is_function, read
from tests.support import refused

CODE = """\
import os
import sys
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

def tidies():
    sys.path[:] = [place for place in sys.path if place != os.getcwd()]
    return build()

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
    "built_model:wrong_shape": ("shape [5] has 5 elements", "(built_model.py, line 15)"),
    "built_model:fails": ("KeyError: 'weights'", "(built_model.py, line 18)"),
    "built_model:leaves": ("SystemExit: 3", "(built_model.py, line 21)"),
    "built_model:nothing": ("returns an object of type NoneType, not a layoutopt.Graph",),
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


def test_users_code_may_change_where_python_looks() -> None:
    """A function that takes the working directory out of the search path builds its graph, too."""
    assert read("built_model:tidies").name == "built"


def test_what_names_no_function_is_refused() -> None:
    """Without a module and a function it is said what a name looks like."""
    for text in ("model", "model.txt", "a:b:c.txt", ""):
        with refused("must have the form module:function or file.py:function"):
            build(text)


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are looked up where the user stands; where there is no such place it is said."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with refused("the working directory cannot be read (No such file or directory)"):
        build("built_model:build")


def test_files_are_not_mistaken_for_functions(tmp_path: Path) -> None:
    """A file whose name has a colon is a file, and other names are no functions."""
    (tmp_path / "a:b").write_text("")
    assert not is_function("a:b")
    for text in ("model.txt", "model:", ":build", "a:b:c.txt", "model:1"):
        assert not is_function(text)
    graphs, costs = ".json, .json.gz, .onnx and module:function", ".npz, .cfn, .wcsp, .uai"
    with refused(f"unknown file type; allowed: {graphs}; for cost networks also {costs}"):
        read("model.txt")
    (tmp_path / "net.json").write_text('{"problem": {}}')
    for name in ("net.json", "net.npz"):
        with refused("is a cost network, not a graph; layoutopt.network.read and"):
            read(tmp_path / name)
    with refused("attractions, dims and training are for .onnx files only"):
        read("built_model:build", dims={"batch": 1})
