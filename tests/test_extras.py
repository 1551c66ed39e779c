"""Without an extra, whatever needs it says in one line how it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from layoutopt.base.errors import needed
from tests.support import refused

NETWORK = Path(__file__).parents[1] / "instances/conversion/residual.onnx"
FIGURE = Path(__file__).parents[1] / "instances/figures/single_pair.json"

WITHOUT = """
import os, sys
import layoutopt.converting, layoutopt.unwinding
from layoutopt.cli.main import main
for line in sys.argv.pop().splitlines():
    if not os.fork():
        package, *sys.argv[1:] = line.split()
        sys.modules[package] = None
        main()
    _, status = os.wait()
    print(f"= {os.waitstatus_to_exitcode(status)}", file=sys.stderr, flush=True)
"""
"""Carries out commands, each without a package, in copies of one process."""

COMMANDS = {
    "convert net.onnx": ("onnx", "net.onnx: reading a network needs onnx"),
    "check net.onnx net.onnx --certificate c.json": ("onnx", "reading a network needs onnx"),
    "solve net.onnx": ("onnx", "net.onnx: reading a network needs onnx"),
    "show net.onnx": ("onnx", "net.onnx: reading a network needs onnx"),
    "import net.onnx -o -": ("onnx", "net.onnx: reading a network needs onnx"),
    "verify net.onnx --backend nhwc": ("onnx", "net.onnx: reading a network needs onnx"),
    "convert net.onnx --check": ("onnxruntime", "running a network needs onnxruntime"),
    "convert net.onnx --peers": ("onnxruntime", "running a network needs onnxruntime"),
    "show g.json --png g.png": ("matplotlib", "a picture as PNG needs matplotlib"),
    "bench run g.json --dask 127.0.0.1:1": ("distributed", "--dask needs distributed"),
}
EXTRA = {"onnx": "onnx", "onnxruntime": "onnx", "matplotlib": "plot", "distributed": "dask"}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each command says and how it ends where its package is missing."""
    folder = tmp_path_factory.mktemp("without")
    shutil.copy(NETWORK, folder / "net.onnx")
    shutil.copy(FIGURE, folder / "g.json")
    lines = ["none convert net.onnx --certificate c.json -q"]
    lines += [f"{package} {words}" for words, (package, _) in COMMANDS.items()]
    command = [sys.executable, "-c", WITHOUT, "\n".join(lines)]
    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=120, check=True
    )
    assert ran.stdout == ""
    assert ran.stderr.startswith("= 0\n"), ran.stderr
    said = ran.stderr.removeprefix("= 0\n").split("\n= 2\n")
    return dict(zip(COMMANDS, said, strict=False))


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_without_an_extra(words: str, ends: dict[str, str]) -> None:
    """The last line, before exit code 2, is that of the extra."""
    assert "Traceback" not in ends[words]
    line = ends[words].splitlines()[-1]
    package, told = COMMANDS[words]
    assert told in line
    assert line.endswith(f'pip install ".[{EXTRA[package]}]" in a clone of layoutopt')


def test_a_package_that_is_there_but_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it cannot be imported is told, too."""

    def broken(_name: str) -> None:
        raise ImportError("libgomp.so.1 is missing")

    monkeypatch.setattr("layoutopt.base.errors.import_module", broken)
    with refused("running needs onnxruntime (libgomp.so.1 is missing), an extra"):
        needed("onnxruntime", "running")
