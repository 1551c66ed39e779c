"""What only a process of its own can show: start-up, Ctrl-C, pipes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.support import ran

HEAVY = {"numpy", "scipy", "ortools", "networkx", "onnx", "matplotlib", "msgspec"}


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from layoutopt.cli.main import main; sys.argv[1:] = ['--help']\n"
    code += "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert "solve" in done.stdout
    assert not HEAVY & {name.partition(".")[0] for name in done.stderr.split()}


def test_ctrl_c_during_imports(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code += "; from layoutopt.__main__ import start; start()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_instances_and_results_come_through_pipes(tmp_path: Path) -> None:
    """``python -m layoutopt`` reads what ``-`` names from standard input, packed or not."""
    path = Path("instances/figures/chained_calls_copies.json").absolute()
    words: dict[str, object] = {"capture_output": True, "timeout": 60, "cwd": tmp_path}

    def piped(raw: bytes, *command: str) -> subprocess.CompletedProcess[bytes]:
        whole = [sys.executable, "-m", "layoutopt", *command]
        return subprocess.run(whole, input=raw, **words)  # type: ignore[call-overload, no-any-return]

    solved = piped(gzip.compress(path.read_bytes()), "solve", "-", "--quiet", "-o", "-")
    assert json.loads(solved.stdout)["score"] == 130
    for shown in (piped(solved.stdout, "show", "-"), piped(solved.stdout, "check", str(path), "-")):
        assert (shown.returncode, b"130" in shown.stdout) == (0, True), shown.stderr
    assert b"no ONNX model" in piped(b"nonsense", "solve", "-").stderr
    assert b"is empty, not JSON" in piped(b"", "solve", "-").stderr


@pytest.mark.parametrize(("words", "found"), [("solv", "solve"), ("bench sh", "show")])
def test_shells_complete_commands(words: str, found: str) -> None:
    asked = {"COMP_WORDS": f"layoutopt {words}", "COMP_CWORD": str(len(words.split()))}
    done = subprocess.run(
        [Path(sys.executable).with_name("layoutopt")],
        env=os.environ | asked | {"_LAYOUTOPT_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == [found]


def test_native_code_cannot_write_between_the_lines() -> None:
    code = (
        "import os\n"
        "from layoutopt.cli.streams import reserved_stdout\n"
        "with reserved_stdout():\n"
        "    os.write(1, b'noise')\n"
        "os.write(1, b'answer')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"answer", b"noise")


def test_what_a_users_function_prints_stays_out_of_the_answer(tmp_path: Path) -> None:
    """``solve module:function --json -`` writes JSON alone to stdout."""
    (tmp_path / "mine.py").write_text(
        "import os, layoutopt\n"
        "def build():\n"
        "    print('building')\n"
        "    os.write(1, b'raw')\n"
        "    graph = layoutopt.Graph('mine')\n"
        "    graph.valued_pair(graph.sink((2,), name='x'), graph.source((2,), name='s'), 3)\n"
        "    return graph\n"
    )
    found = ran("solve", "mine:build", "--quiet", "--json", "-", cwd=tmp_path)
    assert (found.code, json.loads(found.out)["score"]) == (0, 6)
    assert "building" in found.err
