"""The README shows what really happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run, run

__all__ = ["run"]

README = Path(__file__).parents[1] / "README.md"


def blocks(kind: str) -> list[str]:
    """Return the code blocks of one kind."""
    return re.findall(rf"```{kind}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def words(text: str) -> list[list[str]]:
    """Return the words of each line, without times."""
    return [re.sub(r"\b\d+\.\d{2,3}\b", "time", line).split() for line in text.splitlines()]


def test_the_python_example_runs_and_its_comments_hold() -> None:
    (code,) = blocks("python")
    found: dict[str, object] = {}
    exec(code, found)
    result = found["result"]
    shown = [line.partition("#") for line in code.splitlines() if "#" in line]
    assert len(shown) == 2
    for expression, _, comment in shown:
        value = eval(expression, {"result": result})
        told = ", ".join(map(str, value)) if "status" in expression else str(value)
        assert told.replace(".0", "") == comment.strip()


def test_the_shown_outputs_are_real(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    solved, compared, *_ = blocks("text")
    ran = run("solve", "instances/figures/chained_calls_copies.json")
    *lines, dots = words(solved)
    assert dots == ["..."]
    assert words(ran.out)[: len(lines)] == lines
    command, *lines = compared.splitlines()
    ran = run(*command.removeprefix("$ layoutopt").split())
    assert words(ran.out) == words("\n".join(lines))
