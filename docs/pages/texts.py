"""Parts of generated pages: tables, docstrings, examples that are run."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

from layoutopt.graphs.store import ValuedPair


def ran(code: str) -> str:
    """Return an example as a block of Python, with the value of each expression as a comment.

    Values of expressions that add a ValuedPair are not shown.
    """
    names: dict[str, Any] = {}
    lines = code.strip().splitlines()
    for node in ast.parse("\n".join(lines)).body:
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.Expr):
            value = eval(text, names)
            if not isinstance(value, ValuedPair | None):
                lines[(node.end_lineno or 0) - 1] += f"  # {value}"
        else:
            exec(text, names)
    return "\n".join(["```python", *lines, "```"])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page(*blocks: str) -> str:
    """Return a page of blocks."""
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def text_of(thing: object) -> str:
    """Return a docstring as Markdown: names as code, blocks behind a double colon indented."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.getdoc(thing) or "")
    return (
        re.sub(r"^::$", "", text, flags=re.MULTILINE).replace(" ::\n", ":\n").replace("::\n", ":\n")
    )


def summary(thing: object) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return re.sub(r"``?([^`]+)``?", r"`\1`", " ".join(text_of(thing).partition("\n\n")[0].split()))


def documented(path: str, level: int = 3, **options: object) -> str:
    """Return what the documentation of an object is put for, from its docstring.

    Parameters
    ----------
    level
        Of its heading.
    """
    lines = [f"::: {path}", "    options:", f"      heading_level: {level}"]
    return "\n".join(lines + [f"      {name}: {value}" for name, value in options.items()])
