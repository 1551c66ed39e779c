"""Transcripts of commands: files, words, exit codes, and what is written.

A transcript begins with a line ``# title`` and has, in any order,

- ``< NAME``: the lines that follow are a file, of ONNX's text format if it is called ``.onnx``;
- ``$ words``: a command that ends with exit code 0, or ``2 $ words`` with another one.  The lines
  that follow are its output, those after ``! `` its errors.  ``...`` stands for any text within a
  line, and alone on a line for any lines.

Beside ``layoutopt`` there are the commands of :data:`TOOLS`; ``layoutopt ... | tool`` gives a tool
the output as its first file.  Files before the first title belong to all transcripts of a page.
``python -m tests.commands.transcripts PAGE`` prints a page with the output that there is now where
it is another one.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import onnx.parser

PAGES = Path(__file__).parent
ROOT = PAGES.parents[1]
MARK = re.compile(r"(# )|(< )|(?:(\d+) )?\$ ")
PROGRESS = re.compile(r" *\d+\.\d s  ")


class Block(NamedTuple):
    """A line with a mark, and the lines up to the next one."""

    head: str
    body: list[str]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    found: list[Block] = []
    for line in page.read_text().splitlines():
        if MARK.match(line):
            found.append(Block(line, []))
        else:
            found[-1].body.append(line)
    return found


def transcripts(page: Path) -> dict[str, list[Block]]:
    """Return the blocks of each transcript of a page by title, those of all before its own."""
    shared: list[Block] = []
    found: dict[str, list[Block]] = {}
    into = shared
    for block in blocks(page):
        if block.head.startswith("# "):
            into = found[block.head[2:]] = list(shared)
        else:
            into.append(block)
    return found


def place(block: Block) -> None:
    """Write the file of a block."""
    name = block.head[2:]
    text = "\n".join(block.body).strip("\n") + "\n"
    if name.endswith(".onnx"):
        Path(name).write_bytes(onnx.parser.parse_model(text).SerializeToString())
    else:
        Path(name).write_text(text)


def _read(name: str) -> Any:
    return json.loads(Path(name).read_text(), parse_float=str)


def _get(name: str, *paths: str) -> str:
    """Return values of a JSON file; a path is names and numbers between dots."""
    lines = []
    for path in paths:
        value = _read(name)
        for key in filter(None, path.split(".")):
            value = value[int(key) if isinstance(value, list) else key]
        lines.append(json.dumps(value) if not isinstance(value, str) else value)
    return " ".join(lines)


def _set(name: str, target: str, *changes: str) -> str:
    """Write a JSON file anew with other values, ``path=value``, or without some, ``path``."""
    document = json.loads(Path(name).read_text())
    for change in changes:
        path, equals, value = change.partition("=")
        *above, last = path.split(".")
        at = document
        for key in above:
            at = at[int(key) if isinstance(at, list) else key]
        if equals:
            at[int(last) if isinstance(at, list) else last] = json.loads(value)
        else:
            del at[last]
    Path(target).write_text(json.dumps(document))
    return ""


def _keys(name: str) -> str:
    return " ".join(sorted(_read(name)))


def _grep(name: str, *words: str) -> str:
    """Return the lines that hold one of some texts."""
    lines = Path(name).read_text().splitlines()
    return "\n".join(line for line in lines if any(word in line for word in words))


def _has(name: str, *words: str) -> str:
    """Return how often each text occurs."""
    text = Path(name).read_text()
    return " ".join(str(text.count(word)) for word in words)


def _head(name: str, count: str = "1") -> str:
    return "\n".join(Path(name).read_text().splitlines()[: int(count)])


def _copy(name: str, target: str) -> str:
    Path(target).write_bytes(Path(name).read_bytes())
    return ""


def _gzip(name: str) -> str:
    Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    return ""


def _mkdir(name: str) -> str:
    Path(name).mkdir()
    return ""


def _network(name: str, target: str) -> str:
    """Write a cost network in another format."""
    from layoutopt import network

    network.write(network.read(name), target)
    return ""


def _ops(name: str) -> str:
    return " ".join(node.op_type for node in onnx.load(name).graph.node)


TOOLS: dict[str, Callable[..., str]] = {
    "cat": lambda name: Path(name).read_text(),
    "cp": _copy,
    "get": _get,
    "grep": _grep,
    "gzip": _gzip,
    "has": _has,
    "head": _head,
    "keys": _keys,
    "ls": lambda name=".": " ".join(sorted(path.name for path in Path(name).iterdir())),
    "mkdir": _mkdir,
    "network": _network,
    "ops": _ops,
    "set": _set,
}
"""Small tools by name; each takes words and returns its output."""


def command(words: list[str]) -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, output and errors."""
    from layoutopt.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape", ""), io.StringIO()
    code: int | str | None = 0
    with (
        mock.patch.object(main, "_end", sys.exit),
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main.main()
        except SystemExit as end:
            code = end.code
    out.seek(0)
    return int(code or 0), out.read(), err.getvalue()


def ran(line: str) -> tuple[int, str, str]:
    """Run one line of a transcript; its parts are divided by bars."""
    parts = [shlex.split(part) for part in line.split(" | ")]
    (first, *words), *rest = parts
    code, out, err = 0, "", ""
    if first == "layoutopt":
        code, out, err = command([first, *words])
    else:
        try:
            out = TOOLS[first](*words)
        except (OSError, LookupError) as error:
            code, err = 1, repr(error)
    for tool, *words in rest:
        with tempfile.NamedTemporaryFile("w", errors="surrogateescape") as file:
            file.write(out)
            file.flush()
            out = TOOLS[tool](file.name, *words)
    return code, out, err


def told(out: str, err: str) -> list[str]:
    """Return what a command wrote as lines of a transcript, without lines of progress."""
    errors = [line for line in err.splitlines() if not PROGRESS.match(line)]
    lines = out.splitlines() + [f"! {line}" for line in errors]
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def fits(found: list[str], expected: list[str]) -> bool:
    """Return whether lines are the expected ones."""
    parts = []
    for line in expected:
        parts.append(
            "(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
        )
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in found)) is not None


def played(transcript: list[Block]) -> Iterator[tuple[Block, Block]]:
    """Run a transcript in the current folder; yield each command's block as it is and was."""
    for block in transcript:
        if block.head.startswith("< "):
            place(block)
            continue
        mark = MARK.match(block.head)
        assert mark is not None
        code, out, err = ran(block.head[mark.end() :])
        prompt = f"{code} $ " if code else "$ "
        expected = list(block.body)
        while expected and not expected[-1]:
            expected.pop()
        found = Block(prompt + block.head[mark.end() :], told(out, err))
        if found.head == block.head and fits(found.body, expected):
            found = Block(block.head, expected)
        yield Block(block.head, expected), found


@contextlib.contextmanager
def desk() -> Iterator[Path]:
    """Work in a new folder, in which ``instances`` and ``cases`` are those of the repository."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "instances").symlink_to(ROOT / "instances")
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def _renewed(page: Path) -> Iterator[str]:
    """Yield the lines of a page as it would be now."""
    every = blocks(page)
    count = next(i for i, block in enumerate(every) if block.head.startswith("# "))
    for block in every[:count]:
        yield from (block.head, *block.body)
    for title, transcript in transcripts(page).items():
        yield f"# {title}"
        with desk():
            for block in transcript[:count]:
                place(block)
            for block in transcript[count:]:
                if block.head.startswith("< "):
                    place(block)
                    yield from (block.head, *block.body)
                else:
                    for _, found in played([block]):
                        yield from (found.head, *found.body)
        yield ""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        lines = list(_renewed(Path(name)))
        Path(name).write_text("\n".join(lines).rstrip("\n") + "\n")
