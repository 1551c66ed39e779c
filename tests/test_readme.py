"""The README and the guides show what really happens."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layoutopt.graphs.ops import type_name
from layoutopt.io.instance import OP_TYPES
from tests.cli.conftest import Run, run

__all__ = ["run"]

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"

GUIDES = {
    "bench": (2, 0),
    "certificates": (1, 0),
    "explain": (4, 1),
    "graph": (20, 0),
    "input": (2, 0),
    "layouts": (19, 3),
    "limits": (1, 0),
    "network": (7, 0),
    "onnx_conversion": (6, 2),
    "program": (5, 2),
    "reports": (6, 1),
    "requirements": (15, 1),
    "tiles": (3, 3),
    "using_results": (2, 0),
    "write_your_own": (3, 0),
}
"""For each guide with examples how many comments are compared, at least, and how many outputs."""


COMMANDS = 3
"""How many commands the README shows with their outputs."""


def blocks(text: str, kind: str) -> list[str]:
    """Return the code blocks of one kind."""
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def words(text: str) -> list[list[str]]:
    """Return the words of each line, without times."""
    return [re.sub(r"\b\d+\.\d{2,3}\b", "time", line).split() for line in text.splitlines()]


def test_the_python_examples_run_and_their_comments_hold() -> None:
    """The README's examples are one program; tuples may be shown without brackets."""
    names: dict[str, Any] = {}
    programs = blocks(README.read_text("utf-8"), "python")
    shown = [pair for code in programs for pair in run_statements(code, names, plainly)]
    assert len(shown) == 3
    for comment, value in shown:
        assert comment in (value, value.removeprefix("(").removesuffix(")"))


def plainly(value: object) -> str:
    """Return what a value looks like to people: tuples by their items, whole numbers whole."""
    if isinstance(value, tuple) and not any(isinstance(item, tuple) for item in value):
        return f"({', '.join(map(plainly, value))})"
    return str(value).removesuffix(".0")


def test_the_shown_outputs_are_real(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "instances").symlink_to(README.parent / "instances")
    monkeypatch.chdir(tmp_path)  # where commands may write
    shown = blocks(README.read_text("utf-8"), "text")
    assert len(shown) == COMMANDS
    for command, _, told in (text.partition("\n") for text in shown):
        lines, out = words(told), words(run(*command.removeprefix("$ layoutopt").split()).out)
        if lines[-1] == ["..."]:
            out = [*out[: len(lines) - 1], ["..."]]
        assert out == lines


def run_statements(
    code: str, names: dict[str, Any], shown: Callable[[object], str] = str
) -> list[tuple[str, str]]:
    """Run the statements of a code block one by one, and hold each comment against what happened.

    Parameters
    ----------
    shown
        How values are written.

    Returns
    -------
    list
        For each comment that can be wrong, it and what should stand there: the value of an
        expression, or the types of the ops that a line appended, where the comment names some.
    """
    lines, found = code.splitlines(), []
    for node in ast.parse(code).body:
        before = len(names["graph"].ops) if "graph" in names else 0
        text = ast.get_source_segment(code, node) or ""
        if decorators := getattr(node, "decorator_list", []):  # which a segment leaves out
            text = "\n".join(lines[decorators[0].lineno - 1 : node.end_lineno])
        line = lines[(node.end_lineno or 0) - 1].encode()
        comment = line[node.end_col_offset :].decode().partition("# ")[2]
        if isinstance(node, ast.Expr) and comment:
            found.append((comment, shown(eval(text, names))))
            continue
        exec(text, names)
        if set(comment.split(", ")) <= set(OP_TYPES):
            found.append((comment, ", ".join(map(type_name, names["graph"].ops[before:]))))
    return found


@pytest.mark.parametrize("name", GUIDES)
def test_the_guides_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All examples are one program; comments and printed text are what comes out."""
    guide = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    compared = printed = 0
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", guide, re.DOTALL):
        if kind == "text":
            assert capsys.readouterr().out == block
            printed += 1
            continue
        if kind in ("bash", "toml"):
            continue
        assert kind == "python"
        assert capsys.readouterr().out == ""
        for comment, value in run_statements(block, names):
            assert value == comment
            compared += 1
    assert compared >= GUIDES[name][0]
    assert printed == GUIDES[name][1]
    assert len(re.findall("```", guide)) == 2 * len(re.findall(r"```\w+\n.*?```", guide, re.DOTALL))


def test_no_guide_is_left_out() -> None:
    """Every page with examples is run."""
    shown = (path for path in DOCS.rglob("*.md") if "```python" in path.read_text("utf-8"))
    assert {path.relative_to(DOCS).with_suffix("").as_posix() for path in shown} == set(GUIDES)


@pytest.mark.parametrize("page", [README, *DOCS.glob("*.md")], ids=lambda page: page.name)
def test_readers_of_a_clone_find_what_is_linked(page: Path) -> None:
    """Each link leads to a file, and to a heading of it; the README is read in two minutes."""
    text = re.sub("```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    assert page != README or len(page.read_text("utf-8").splitlines()) < 200
    for target, _, place in (x.partition("#") for x in re.findall(r"\]\((?!http)([^)]+)\)", text)):
        path = page.parent / target if target else page
        assert path.exists(), target
        heads = re.findall("^#+( .*)$", path.read_text("utf-8"), re.MULTILINE) if place else []
        slugs = {re.sub(r"[^\w -]", "", head.lower())[1:].replace(" ", "-") for head in heads}
        assert not place or place in slugs, place


def test_wrong_comments_are_found() -> None:
    """A guide whose comment is wrong would be noticed, for values and for ops."""
    code = (
        "import layoutopt\ngraph = layoutopt.Graph()\nx = graph.sink((2,))  # source\nx.size  # 3"
    )
    assert run_statements(code, {}) == [("source", "sink"), ("3", "2")]


def test_the_picture_is_the_shown_result(run: Run, tmp_path: Path) -> None:
    """The README's picture is what ``show --svg`` draws of the example."""
    instance = README.parent / "instances/figures/chained_calls_copies.json"
    result, picture = tmp_path / "result.json", tmp_path / "picture.svg"
    assert run("solve", instance, "--json", result).code == 0
    assert run("show", result, "--instance", instance, "--svg", picture).code == 0
    assert picture.read_text() == (DOCS / "chained_calls.svg").read_text()


def test_the_chart_of_gaps_is_what_the_commands_draw(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no times in it, so that it is the same on every machine."""
    monkeypatch.chdir(README.parent)
    store, picture = tmp_path / "store.sqlite", tmp_path / "picture.svg"
    words = ["bench", "instances/figures", "instances/greedy", "--store", store]
    assert run(*words, "--in-process", "--quiet").code == 0
    assert run("bench", "show", store, "--plot", "gap", "--svg", picture).code == 0
    assert picture.read_text() == (DOCS / "gap_profile.svg").read_text()
