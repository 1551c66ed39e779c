"""What the package never does.

It runs no texts as code, unpacks no pickles, uses no network, takes no temporary file that others
could guess, draws no random numbers without a seed, and checks nothing by ``assert``.
"""

from __future__ import annotations

import ast
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.figures import FIGURES
from layoutopt import write_instance
from tests.cli.conftest import Run, run
from tests.conftest import SLOW, marked
from tests.onnx.exports import random_export
from tests.test_floors import HOUSE, imports, modules, nodes

__all__ = ["run"]

NETWORK = {
    *("ftplib", "http", "httpx", "imaplib", "poplib", "requests", "smtplib", "socket"),
    *("socketserver", "ssl", "telnetlib", "urllib", "urllib3", "webbrowser", "xmlrpc"),
}
UNPACKING = {"dbm", "dill", "joblib", "cloudpickle", "marshal", "pickle", "shelve"}
UNSEEDED = {"uuid"}

HOMES = {
    "subprocess": {"base"},
    "multiprocessing": {"bench", "onnx"},
    "distributed": {"bench"},
    "dask": {"bench"},
    "asyncio": {"bench"},
    "ctypes": {"base", "bench"},
    "secrets": {"base", "certificate"},
} | {name: set[str]() for name in NETWORK | UNPACKING | UNSEEDED | {"yaml", "pty", "code"}}
"""Packages that only some rooms may import, or none.

Processes are started in one module, networks used by the cluster only.  ``secrets`` names
temporary files, and chooses where certificates are tested: nobody must guess either.
"""

RUNNING = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
"""Built-in functions that run texts, or wait for somebody."""

SHELLS = {"os.system", "os.popen", "os.spawnl", "os.execv", "os.startfile", "tempfile.mktemp"}

SEEDED = {"random.Random", "np.random.default_rng", "numpy.random.default_rng"}
"""Ways to random numbers, with a seed in brackets."""

TEMPORARY = {"mkstemp", "mkdtemp", "TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile"}
"""What makes a file or folder at once, under a name that nobody else has."""


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for an attribute of an attribute of a name, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    head = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{head}.{node.attr}" if head and isinstance(node, ast.Attribute) else ""


def faults_of_call(node: ast.Call, imported: set[str]) -> Iterator[str]:
    """Say what is wrong with a call, if anything.

    Parameters
    ----------
    imported
        What the module imports; ``random`` may be a variable elsewhere.
    """
    name = dotted(node.func)
    if name in RUNNING:
        yield f"calls {name}"
    if name in SHELLS:
        yield f"calls {name}"
    if any(k.arg == "shell" and not _is(k.value, False) for k in node.keywords):
        yield "runs a shell"
    if any(k.arg == "allow_pickle" and not _is(k.value, False) for k in node.keywords):
        yield "unpacks pickles"
    if name in SEEDED:
        if not node.args or _is(node.args[0], None):
            yield f"{name} without a seed"
    elif name.startswith(("np.random.", "numpy.random.")) or (
        name.startswith("random.") and "random" in imported
    ):
        yield f"{name} draws from what all share"
    if name.startswith("tempfile.") and name.removeprefix("tempfile.") not in TEMPORARY:
        yield f"{name} is no safe temporary file"


def _is(node: ast.AST, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def narrows(test: ast.expr) -> bool:
    """Return whether a condition only tells a type checker what something is: no None, a class."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(map(narrows, test.values))
    if isinstance(test, ast.Call):
        return dotted(test.func) == "isinstance"
    is_not = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot)
    return is_not and _is(test.comparators[0], None)  # type: ignore[union-attr]


def faults(house: Path) -> list[str]:
    """Return a line for each thing that a package must not do."""
    found = []
    for name, path in modules(house).items():
        where = path.relative_to(house)
        imported = list(imports(path, name))
        for line, target in imported:
            head = target.partition(".")[0]
            if name.partition(".")[0] not in HOMES.get(head, {name.partition(".")[0]}):
                found.append(f"{where}:{line}: imports {target}")
        for node in nodes(path.read_text()):
            if isinstance(node, ast.Call):
                wrong = faults_of_call(node, {target for _, target in imported})
                found += [f"{where}:{node.lineno}: {fault}" for fault in wrong]
            elif isinstance(node, ast.Assert) and not narrows(node.test):
                found.append(f"{where}:{node.lineno}: asserts what an error should tell")
            elif isinstance(node, ast.ExceptHandler) and node.type is None:
                found.append(f"{where}:{node.lineno}: takes every exception for one")
    return found


def test_the_package_is_clean() -> None:
    """No module does any of this."""
    assert faults(HOUSE) == []


WRONG = {
    "import pickle": "imports pickle",
    "from marshal import loads": "imports marshal",
    "import urllib.request": "imports urllib.request",
    "def f():\n    from http import client": "imports http.client",
    "import subprocess": "imports subprocess",
    "import yaml": "imports yaml",
    "eval('1')": "calls eval",
    "exec('1')": "calls exec",
    "os.system('ls')": "calls os.system",
    "tempfile.mktemp()": "calls tempfile.mktemp",
    "tempfile.gettempdir()": "no safe temporary file",
    "run('ls', shell=True)": "runs a shell",
    "np.load('a', allow_pickle=True)": "unpacks pickles",
    "import random\nrandom.shuffle([])": "draws from what all share",
    "np.random.rand(3)": "draws from what all share",
    "random.Random()": "without a seed",
    "np.random.default_rng(None)": "without a seed",
    "assert x > 0": "asserts what an error should tell",
    "assert x is not None and y > 0": "asserts what an error should tell",
    "try:\n    f()\nexcept:\n    pass": "takes every exception",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_unclean_is_seen(tmp_path: Path, text: str) -> None:
    """Each fault alone is one line that says where and what."""
    (tmp_path / "io").mkdir()
    (tmp_path / "io/a.py").write_text(text + "\n")
    lines = faults(tmp_path)
    assert lines
    assert lines[0].startswith("io/a.py:")
    assert WRONG[text] in lines[0]


def test_what_is_clean_is_not_seen(tmp_path: Path) -> None:
    """Seeds, safe temporary files, and asserts that narrow types are fine."""
    clean = [
        "import random, tempfile, json",
        "draw = random.Random(3), np.random.default_rng(limits.seed)",
        "draw.random()",
        "tempfile.TemporaryDirectory()",
        "tempfile.mkstemp()",
        "assert x is not None and isinstance(y.z, int)",
        "run(['ls'], shell=False)",
        "re.compile('a')",
    ]
    (tmp_path / "a.py").write_text("\n".join(clean))
    assert faults(tmp_path) == []


def test_no_command_opens_a_connection(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sockets that cannot be made, everything works as before."""

    class Refused(socket.socket):
        def __init__(self, *_: object, **__: object) -> None:
            raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", Refused)
    with pytest.raises(AssertionError, match="was opened"):
        socket.create_connection(("localhost", 9))
    instance, network = tmp_path / "a.json", tmp_path / "a.onnx"
    write_instance(FIGURES["chained_calls_copies"](), instance)
    network.write_bytes(random_export(3, 20).SerializeToString())
    result, page, picture = (tmp_path / f"r.{suffix}" for suffix in ("json", "html", "png"))
    for words in (
        ["solve", instance, "--json", result, "--html", page],
        ["check", instance, result],
        ["compare", instance, "--solver", "all"],
        ["show", result, "--instance", instance, "--png", picture],
        ["explain", instance, "--sink", "x"],
        ["import", network, "-o", tmp_path / "b.json", "--training", "adam"],
        ["convert", network, "-o", tmp_path / "b.onnx", "--check"],
        ["generate", "random", "-o", tmp_path / "c.json"],
        ["layout", "transform", "NCHW", "NHWC", "1,2,3,4"],
        ["bench", "run", instance, "--store", tmp_path / "s.sqlite", "--in-process", "-q"],
    ):
        assert run(*words).code == 0, words


def test_random_numbers_of_the_interpreter_are_left_alone(run: Run, tmp_path: Path) -> None:
    """The state that all random numbers of a process share is as it was after a solve."""
    instance = tmp_path / "a.json"
    write_instance(FIGURES["chained_calls_copies"](), instance)
    before = np.random.get_state()[1].tolist()  # type: ignore[union-attr, index]  # noqa: NPY002
    assert run("compare", instance, "--solver", "all").code == 0
    assert np.random.get_state()[1].tolist() == before  # type: ignore[union-attr, index]  # noqa: NPY002


def test_slow_tests_exist() -> None:
    """The list of slow tests names no test that is gone."""
    for test in marked():
        file, _, name = test.partition("::")
        text = (SLOW.parents[1] / file).read_text()
        assert file.endswith(f"/{name}") or f"def {name.rpartition('::')[2]}(" in text, test
